"""Cautions about a run that its numbers do not show, decided once: every command, the Python interface and the studio show this list.

`of_question` needs no run, `stored_cautions` is what a run kept in its facts, `of_run` is both; `calibration` says what lies outside the
calibrated range of the model, and `first_call` what the first size of a PingPong contains. `merge_cautions` joins those of several runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from retrompi.base.units import format_bytes, format_time
from retrompi.sim.computation import scale_of
from retrompi.sim.crowding import crowding
from retrompi.spec.question import Replay
from retrompi.spec.runtime.outside_range import Beyond, beyond, beyond_resolved
from retrompi.traces import master_worker

if TYPE_CHECKING:
    from retrompi._engine import Trace
    from retrompi.sim.resolved import Resolved
    from retrompi.spec.model import RuntimeModel
    from retrompi.spec.platform import Platform
    from retrompi.traces.computation import Rate

__all__ = ["CODES", "Caution", "calibration", "first_call", "mark", "merge_cautions", "of_points", "of_question", "of_run", "of_trace",
           "split", "stored_cautions", "to_keep"]

CODES: Mapping[str, str] = {
    "more-ranks-than-processors": "a host runs more ranks than it has processors",
    "computation-assumed": "the trace does not say how fast the machine was on which its seconds were measured",
    "computation-carried": "the computation is stated in seconds of another machine and was scaled by the rates of the hosts",
    "work-handed-out": "a rank gives work to whichever rank asks first, and the replay keeps the recorded order",
    "never-ran-there": "the runtime needs another network or system than the platform has",
    "not-simulated": "the model knows of an effect for which no rate is published",
    "follows-override": "what follows a value that was overridden, and what does not",
    "not-sampled": "a part of the curve of a lower level of detail could not be sampled",
    "left-open": "messages were not received, requests not completed, or windows not freed",
    "partial-trace": "the trace ends before MPI_Finalize",
    "uneven-collectives": "not all members call the same collectives",
    "lost-in-recording": "the job may not have completed because the recording kept less than the program did",
    "outside-calibration": "the question lies outside the calibrated range of the model",
    "first-call": "the first size includes what the first call sets up",
    "unresolved-level": "there are fewer draws than the level of an interval takes",
    "nominal-outside": "the nominal value lies outside the interval of its draws",
    "far-end": "an end of an interval is far from the median",
    "comparison": "what a comparison of backends says of its runs",
}
"""Code of a caution -> what it is about. Codes are stable; texts are not."""

_OF_QUESTION = ("never-ran-there", "more-ranks-than-processors", "computation-assumed", "computation-carried", "work-handed-out",
                "not-simulated")


@dataclass(frozen=True)
class Caution:
    """``code``: one of `CODES`; ``text``: one sentence; ``about``: which of several runs, empty for all.

    One that is ``minor`` is not a line of its own where there is a title line: that has its ``mark``, if any.
    """

    code: str
    text: str
    about: str = ""
    minor: bool = False
    mark: str = ""

    def __str__(self) -> str:
        return f"{self.about}: {self.text}" if self.about else self.text

    def row(self) -> dict[str, Any]:
        """For JSON: code, about, text, minor."""
        return {"code": self.code, "about": self.about, "text": self.text, "minor": self.minor}


def of_question(asked: Resolved, rate: Rate | None = None) -> list[Caution]:
    """Cautions that follow from the question alone. ``rate``: as of `scale_of`, the rate to which the amounts of its trace were scaled."""
    scale = scale_of(asked, rate)
    assumed = [Caution("computation-assumed", scale.line)] if scale is not None and scale.assumed else []
    return [*assumed, *to_keep(asked)]


def to_keep(asked: Resolved) -> list[Caution]:
    """Those of `of_question` that a run keeps: what its trace was scaled to is not known where it runs."""
    found = [Caution("never-ran-there", asked.fiction)] if asked.fiction else []
    found += [Caution("more-ranks-than-processors", line) for line in crowding(asked)]
    if asked.program.compute_flops is not None and (scale := scale_of(asked)) is not None:
        found.append(Caution("computation-carried", scale.line))
    handed = master_worker.note(asked.trace) if isinstance(asked.question.workload, Replay) else ""
    found += [Caution("work-handed-out", handed)] if handed else []
    return found + [Caution("not-simulated", line) for line in asked.cautions()]


def of_trace(trace: Trace) -> list[Caution]:
    """That the trace is partial, and that its ranks do not call the same number of collectives."""
    found = []
    cut, total = trace.cut
    if cut:
        file, line, _, _ = cut[0]
        of = f"{total} of {trace.ranks} ranks end" if trace.ranks > 1 else "its rank ends"
        told = f"the trace is partial: {of} before MPI_Finalize, first at {file}:{line}; what a rank would do later is not simulated"
        found.append(Caution("partial-trace", told))
    uneven, total = trace.uneven
    if uneven:
        file, line, _, reason = uneven[0]
        more = f", and {total - 1} more such ranks" if total > 1 else ""
        found.append(Caution("uneven-collectives", f"not all members call the same collectives: {reason} ({file}:{line}){more}"))
    return found


def stored_cautions(facts: Mapping[str, Any] | None) -> list[Caution]:
    """Those that a run kept in its facts; of runs of earlier versions texts alone."""
    kept = (facts or {}).get("cautions", ())
    return [one if isinstance(one, Caution) else Caution("", one) if isinstance(one, str) else Caution(one["code"], one["text"])
            for one in kept]


def of_run(asked: Resolved, kept: Iterable[Caution], rate: Rate | None = None) -> list[Caution]:
    """Those of a question and those ``kept`` by the run that answers it."""
    return [*of_question(asked, rate), *(c for c in kept if c.code not in _OF_QUESTION)]


def calibration(
    model: str | type[RuntimeModel], platform: str | Platform, *, sizes: Iterable[int] = (), ranks: int | None = None,
    sets: Mapping[str, str] | Sequence[str] = (),
) -> list[Caution]:
    """Cautions about properties outside the calibrated range of a model: a caution where it is far outside, else a mark
    (`retrompi.spec.runtime.outside_range`)."""
    return _of_range(model if isinstance(model, str) else model.name, beyond(model, platform, sizes=sizes, ranks=ranks, sets=sets))


def calibration_of(asked: Resolved, sizes: Iterable[int]) -> list[Caution]:
    """`calibration` of a question whose messages have these ``sizes`` (B)."""
    return _of_range(asked.model.name, beyond_resolved(
        asked.model, asked.base_platform, asked.values, asked.platform, sizes=sizes, ranks=asked.ranks))


def _of_range(name: str, found: Iterable[Beyond]) -> list[Caution]:
    return [Caution("outside-calibration", f"far outside the calibrated range of {name}: {b.text}") if b.far else
            Caution("outside-calibration", b.text, minor=True, mark=b.short) for b in found]


def of_points(points: Iterable[Mapping[str, Any]]) -> dict[str, list[Caution]]:
    """Model -> `calibration` for the curves of a study (rows model, platform, size_B); only models with something outside."""
    sizes: dict[tuple[str, str], set[int]] = {}
    for p in points:
        sizes.setdefault((p["model"], p["platform"]), set()).add(int(p["size_B"]))
    found: dict[str, list[Caution]] = {}
    for (model, platform), used in sizes.items():
        if some := calibration(model, platform, sizes=sorted(used)):
            found[model] = [*found.get(model, []), *some]
    return found


IN_THE_PAPERS = "as in the papers, nothing is left out"
"""Why a curve of the papers' PingPong has no warm-up, in place of the remedy of `first_call`."""


def first_call(rows: Sequence[Mapping[str, Any]], remedy: str = "--warm-up 1 leaves it out") -> list[Caution]:
    """A caution if the first size of a curve visibly includes set-up besides its messages: a smaller message takes longer than the next."""
    if len(rows) < 2 or rows[0]["size_B"] >= rows[1]["size_B"] or rows[0]["time_us"] <= 1.01 * rows[1]["time_us"]:
        return []
    a, b = (f"{format_time(r['time_us'] * 1e-6)} at {format_bytes(r['size_B'])}" for r in rows[:2])
    return [Caution("first-call", f"the first size includes what the first call sets up: {a}, {b}; {remedy}")]


def merge_cautions(of: Iterable[tuple[str, Iterable[Caution]]]) -> list[Caution]:
    """The cautions of several runs, by name, each once: ``about`` names its runs, unless they are all of them."""
    names: dict[str, None] = {}
    found: dict[Caution, dict[str, None]] = {}
    for name, some in of:
        names[name] = None
        for one in some:
            found.setdefault(one, {})[name] = None
    return [one if len(whose) == len(names) else replace(one, about=", ".join(whose)) for one, whose in found.items()]


def split(told: Iterable[Caution]) -> dict[str, list[str]]:
    """Their texts: ``cautions``, and ``outside``, what lies outside the calibrated range and is minor."""
    some = list(told)
    beyond = [c.text for c in some if c.minor and c.code == "outside-calibration"]
    return {"cautions": [str(c) for c in some if not c.minor], "outside": beyond}


def mark(told: Iterable[Caution]) -> str:
    """The mark in the title line for a pair that never existed and for minor cautions: `` [outside calibration: platform nt-cluster, 4
    ranks]``; empty without any."""
    told = list(told)
    fictions = "".join(f" [{text}]" for text in dict.fromkeys(c.text for c in told if c.code == "never-ran-there"))
    about: dict[str, dict[str, None]] = {}
    for one in told:
        if one.minor and one.mark:
            about.setdefault(one.mark, {})[one.about] = None
    of: dict[str, list[str]] = {}
    for words, names in about.items():
        of.setdefault(", ".join(n for n in names if n), []).append(words)
    parts = [f"{f'{names}: ' if names else ''}{', '.join(words)}" for names, words in of.items()]
    return fictions + (f" [outside calibration: {'; '.join(parts)}]" if parts else "")
