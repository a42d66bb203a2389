"""Runs: a PingPong curve, the replay of a trace, and the anatomy of one message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from retrompi.api.asking import Size, Where, as_bytes, as_seconds, as_sizes, asked_of
from retrompi.api.checking import check_arguments
from retrompi.api.frames import Progress, Row, Table, reporting
from retrompi.api.options import Options
from retrompi.api.paths import CriticalPath, path_of
from retrompi.base.errors import UsageError
from retrompi.base.units import format_bytes
from retrompi.sim.cautions import Caution, calibration_of, first_call, of_run, stored_cautions
from retrompi.sim.observe import NOTHING, Observe
from retrompi.sim.resolved import Resolved
from retrompi.sim.simulate import SimulationEnded
from retrompi.sim.stages import in_order
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.question import Beside, Message, Question, Replay
from retrompi.spec.question import pingpong as pingpong_of
from retrompi.store.lookup import Found, answer
from retrompi.studies.define import metrics
from retrompi.traces.generate import WARM_UP

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from retrompi._engine import Trace
    from retrompi.render.pages.curve_page import Simulated
    from retrompi.render.pages.message_page import Stages
    from retrompi.studies.draws.uncertainty import Ensemble, Interval
    from retrompi.studies.read.interval_reasons import DrawnReading
    from retrompi.traces.computation import Rate

__all__ = ["Anatomy", "Curve", "Run", "anatomy_of", "curve_of", "message", "pingpong", "replay", "run_of"]


@dataclass(frozen=True, repr=False)
class _Answer(Table):
    """The answer to a question: its ``rows`` and its run in the store."""

    asked: Resolved
    found: Found
    where: Where
    drawn: Ensemble | None = None
    rate: Rate | None = None
    """The rate to which the amounts of the trace were scaled, if they were."""

    @property
    def question(self) -> Question:
        """The question: model, platform, workload, placement, overrides, seed."""
        return self.asked.question

    @property
    def run_id(self) -> int:
        """The number of the run in the store."""
        return self.found.run_id

    @property
    def outcome(self) -> str:
        """``completed``, or how the job ended otherwise: ``deadlock``, ``aborted``, ``failed-start``, ``timeout``, ``limit``."""
        return str(self.row["outcome"])

    @property
    def detail(self) -> str:
        """Why the job did not complete; empty if it did."""
        return str(self.row["detail"] or "")

    def diagnosis(self) -> list[str]:
        """Why the job did not complete, line by line: who waits for whom, and on which line of the trace."""
        from retrompi.sim import diagnosis

        return [] if self.outcome == Outcome.COMPLETED else diagnosis.of_run(self.row)

    @property
    def row(self) -> dict[str, Any]:
        """The run as it is stored: outcome, times (s), counts, versions, hashes of model, platform and trace, facts."""
        return self.where.store.run(self.run_id)

    @property
    def title(self) -> str:
        """The question in a few words, e.g. for a heading."""
        q = self.question
        return "; ".join(w for w in (f"{q.model} on {q.platform}, {self.asked.mode_text}", self.asked.fiction) if w)

    @property
    def rows(self) -> Sequence[Row]:
        """The rows, as the command prints them with ``--json``."""
        return self.found.rows

    @property
    def warnings(self) -> tuple[Caution, ...]:
        """Cautions about the run that its numbers do not show, as the command prints them: code, text, about, minor."""
        asked = self.asked
        beyond = calibration_of(asked, self._sizes())
        return (*of_run(asked, stored_cautions(self.row["facts"]), self.rate), *beyond, *self._of_draws())

    def _readings(self, drawn: Ensemble) -> list[DrawnReading]:
        """The numbers that have intervals: of the nominal run and of each draw."""
        from retrompi.studies.read.interval_reasons import DrawnReading

        nominal = self.row["time_s"]
        return [] if nominal is None else [DrawnReading("time", float(nominal), drawn.values(metrics.parse("time")))]

    def _of_draws(self) -> list[Caution]:
        """Cautions about the intervals, e.g. too few draws for their level."""
        if self.drawn is None:
            return []
        from retrompi.studies.read.interval_reasons import reasons

        return reasons(self.drawn, self._readings(self.drawn))

    def _sizes(self) -> Sequence[int]:
        """The sizes of its messages (B)."""
        raise NotImplementedError

    @property
    def ensemble(self) -> Ensemble:
        """The draws, run by run. UsageError for an answer without draws."""
        if self.drawn is None:
            raise UsageError("there are no draws yet; ask for .uncertainty(0.9) first", code="not-run-yet")
        return self.drawn

    def _draw(self, level: float, draws: int, progress: Progress | None, asked: Resolved | None = None) -> Ensemble:
        from retrompi.studies.draws.uncertainty import Spec, ensemble

        if not 0 < level < 1:
            raise UsageError(f"a level of {level} is not above 0 and below 1; example: 0.9", code="out-of-range")
        with reporting(progress, "draws") as report:
            return ensemble(self.where.store, [asked or self.asked], Spec(level, draws), report, self.where.fresh)[0]


@dataclass(frozen=True, repr=False)
class Curve(_Answer):
    """A PingPong curve: rows size_B, time_us (one way), bandwidth_MBps (10^6 B/s), repetitions; with `uncertainty` also their intervals.

    >>> curve = retrompi.pingpong("wmpi", mode="shared", sizes="256KiB,512KiB")
    >>> round(curve.time("512 KiB"), 3)    # s
    0.13
    """

    ended: SimulationEnded | None = None
    """Of a PingPong that did not complete: the error that says so."""

    @property
    def warnings(self) -> tuple[Caution, ...]:
        """Cautions as of every answer, and one if the first size includes the set-up of the connection (no warm-up)."""
        return (*super().warnings, *first_call(self.found.rows))

    def _sizes(self) -> Sequence[int]:
        return [int(row["size_B"]) for row in self.found.rows]

    def _readings(self, drawn: Ensemble) -> list[DrawnReading]:
        from retrompi.studies.read.interval_reasons import DrawnReading

        columns = drawn.times(self._sizes()).T
        return [DrawnReading(f"time at {format_bytes(row['size_B'])}", row["time_us"] * 1e-6, list(map(float, column)))
                for row, column in zip(self.found.rows, columns, strict=True)]

    def time(self, size: Size) -> float:
        """The one-way time (s) of a size that was simulated; UsageError for another."""
        return float(self._at(size)["time_us"]) * 1e-6

    def bandwidth(self, size: Size) -> float:
        """The bandwidth (B/s) at a size that was simulated; UsageError for another."""
        return float(self._at(size)["bandwidth_MBps"]) * 1e6

    def _at(self, size: Size) -> Row:
        wanted = as_bytes(size)
        for row in self.found.rows:
            if row["size_B"] == wanted:
                return row
        told = ", ".join(format_bytes(r["size_B"]) for r in self.found.rows[:6])
        more = ", ..." if len(self.found.rows) > 6 else ""
        raise UsageError(f"{format_bytes(wanted)} was not simulated; sizes: {told}{more}", code="bad-size")

    def interval(self, size: Size) -> Interval:
        """The interval of the one-way time (s) at a size. UsageError for a curve without draws."""
        return self.ensemble.curve([as_bytes(size)])[0]

    def uncertainty(self, level: float = 0.9, draws: int = 100, progress: Progress | None = None) -> Curve:
        """The same curve with central intervals at ``level`` over ``draws`` draws of what is uncertain (docs/uncertainty.md).

        Its rows also have time_us_low, time_us_high (µs), bandwidth_MBps_low, bandwidth_MBps_high (10^6 B/s) and completed, the share of
        the draws that completed. The draws are runs of the store: asking again finds them. ``progress`` is called with (done, all,
        outcome); True shows a bar.
        """
        from retrompi.studies.draws.uncertainty import brief, with_intervals

        drawn = self._draw(level, draws, progress, brief(self.asked))
        return replace(self, found=replace(self.found, rows=with_intervals(self.found.rows, drawn)), drawn=drawn)

    def path(self) -> CriticalPath:
        """The critical path of the run: it is run again, and recorded. SimulationEnded for a PingPong that does not complete."""
        return path_of(self.asked)

    def anatomy(self, size: Size) -> Anatomy:
        """The anatomy of one message of this size: its one-way time by stage and process."""
        return anatomy_of(self.asked.with_fields(workload=Message(as_bytes(size)), beside=Beside()), self.where)

    @property
    def simulated(self) -> Simulated:
        """The data of its page and its figure."""
        from retrompi.render.pages.curve_page import Simulated

        q, spec = self.question, None if self.drawn is None else self.drawn.spec
        of_draws = (0.0, 0) if spec is None else (spec.level, spec.draws)
        return Simulated(q.model, q.platform, self.asked.mode, tuple(self.rows), self.run_id, *of_draws)

    def plot(self, what: Literal["time", "bandwidth"] = "bandwidth") -> go.Figure:
        """A Plotly figure of time or bandwidth against size, with published statements about the same configuration."""
        from retrompi.render.pages import curve_page

        found = curve_page.figures(self.simulated)
        if what not in found:
            raise UsageError(f"no figure of '{what}': time or bandwidth", code="unknown-name")
        return found[what]


@dataclass(frozen=True, repr=False)
class Anatomy(_Answer):
    """The time of one message by stage: rows stage, process, seconds, ps, share (0 to 1); the picoseconds sum to the total exactly.

    >>> stages = retrompi.message("wmpi", size="512 KiB", mode="shared")
    >>> sum(row["ps"] for row in stages.rows) == round(stages.total * 1e12)    # total: s
    True
    """

    @property
    def rows(self) -> Sequence[Row]:
        """stage, process, seconds, ps, share of each stage, in the order of the message's path; with `uncertainty` also seconds_low and
        seconds_high (s)."""
        total = self.total
        told: list[dict[str, Any]] = [{**row, "share": row["seconds"] / total if total else 0.0} for row in self.found.rows]
        return in_order(told if self.drawn is None else _stages_drawn(told, self.drawn), self.found.rows)

    def _sizes(self) -> Sequence[int]:
        return [self.size]

    @property
    def size(self) -> int:
        """The size of the message (B)."""
        workload = self.question.workload
        assert isinstance(workload, Message)
        return workload.size

    @property
    def total(self) -> float:
        """The one-way time (s)."""
        return float(self.row["time_s"])

    @property
    def title(self) -> str:
        """The question in a few words, e.g. for a heading."""
        return f"{format_bytes(self.size)} with {super().title}"

    def plot(self) -> go.Figure:
        """A Plotly figure: a bar for each stage (s)."""
        from retrompi.render.pages import message_page

        return message_page.figures(self.stages)["stages"]

    @property
    def stages(self) -> Stages:
        """The data of its page and its figure."""
        from retrompi.render.pages import message_page

        found = message_page.Stages(self.title, tuple(self.rows), self.whole, self.run_id)
        if self.drawn is None:
            return found
        return replace(found, level=self.drawn.spec.level, draws=self.drawn.spec.draws, completed=self.drawn.completed)

    @property
    def whole(self) -> Row:
        """The total as a row: seconds, ps (None below mechanism), share; with `uncertainty` seconds_low and seconds_high (s)."""
        ps = [row.get("ps") for row in self.found.rows]
        exact = None if None in ps else sum(p for p in ps if p is not None)
        told = {"stage": "total", "process": "", "seconds": self.total, "ps": exact, "share": 1.0 if self.total else 0.0}
        if self.drawn is None:
            return told
        from retrompi.studies.draws.uncertainty import ends  # numpy takes a fifth of the time of a command that needs none

        return {**told, **ends("seconds", self.interval())}

    def interval(self) -> Interval:
        """The interval of the one-way time (s). UsageError for an anatomy without draws."""
        return self.ensemble.interval(metrics.parse("time"))

    def uncertainty(self, level: float = 0.9, draws: int = 100, progress: Progress | None = None) -> Anatomy:
        """The same message with a central interval for each stage, those that only draws have among them. Arguments as for a curve."""
        return replace(self, drawn=self._draw(level, draws, progress))


class Run(_Answer):
    """The replay of a trace: a row for each rank (times in s), and how the job ended.

    A job that does not complete is a result: `outcome` says how it ended, and `detail` why.

    >>> run = retrompi.replay("examples/traces/jacobi-4.tar.zst", "winmpich", "nt-cluster", kills=["proxy on n2@0.1s"])
    >>> run.outcome
    'deadlock'
    """

    def _sizes(self) -> Sequence[int]:
        return [int(self.asked.trace.info()["largest_B"])]

    @property
    def time(self) -> float | None:
        """The job's time (s), of one that did not complete until it ended; None for one that did not start."""
        found = self.row["time_s"]
        return None if found is None else float(found)

    @property
    def section(self) -> dict[str, Any] | None:
        """The timed section: section, begin_s, end_s, seconds; None without one."""
        found: dict[str, Any] | None = (self.row["facts"] or {}).get("section")
        return found

    @property
    def rows(self) -> Sequence[Row]:
        """rank, host, time_s, mpi_s, compute_s, cpu_s (s), sent, received, bytes_sent, bytes_received and more, of each rank; with
        `uncertainty` also time_s_low, time_s_high, mpi_s_low, mpi_s_high (s)."""
        return self.found.rows if self.drawn is None else _ranks_drawn(self.found.rows, self.drawn)

    def path(self) -> CriticalPath:
        """The critical path of the run: it is run again, and recorded. SimulationEnded for a job that does not complete."""
        return path_of(self.asked)

    def uncertainty(self, level: float = 0.9, draws: int = 100, progress: Progress | None = None) -> Run:
        """The same run with a central interval for each rank's times; `interval` has that of the job's. Arguments as for a curve."""
        return replace(self, drawn=self._draw(level, draws, progress))

    def interval(self, metric: str = "time") -> Interval:
        """The interval of a metric (``time``, ``section``, ...) in its unit. UsageError for a run without draws."""
        return self.ensemble.interval(metrics.parse(metric))


RANK_DRAWN = ("time_s", "mpi_s")
"""The columns of a rank that have intervals."""


def _ranks_drawn(rows: Sequence[Row], drawn: Ensemble) -> list[dict[str, Any]]:
    """The rows of the ranks with the ends of their intervals."""
    from retrompi.studies.draws.uncertainty import ends, interval

    by_rank = [{r["rank"]: r for r in drawn.at(i)[2]} if outcome == Outcome.COMPLETED else {} for i, outcome in enumerate(drawn.outcomes)]
    told = []
    for row in rows:
        mine = [of.get(row["rank"]) for of in by_rank]
        both: dict[str, Any] = {}
        for key in RANK_DRAWN:
            both |= ends(key, interval([None if r is None else r[key] for r in mine], drawn.spec.level))
        told.append({**row, **both})
    return told


def _stages_drawn(rows: Sequence[Row], drawn: Ensemble) -> list[dict[str, Any]]:
    """The stages with ``seconds_low`` and ``seconds_high``; stages that only draws have are added, with 0 s."""
    from retrompi.studies.draws.uncertainty import ends, interval

    found = drawn.stage_seconds()
    nominal = {(row["stage"], row["process"]): dict(row) for row in rows}
    told = []
    for name in dict.fromkeys([*nominal, *found]):
        row = nominal.get(name) or {"stage": name[0], "process": name[1], "seconds": 0.0, "ps": 0, "share": 0.0}
        both = ends("seconds", interval(found.get(name, ()), drawn.spec.level))
        if name in nominal or both["seconds_high"]:
            told.append({**row, **both})
    return told


def curve_of(asked: Resolved, where: Where) -> Curve:
    """The curve that answers a question, found in the store or simulated; also of a PingPong that did not complete."""
    try:
        return Curve(asked, answer(where.store, asked, fresh=where.fresh), where)
    except SimulationEnded as ended:
        if ended.run_id is None:
            raise
        return Curve(asked, Found(ended.run_id, where.store.points(ended.run_id), False), where, ended=ended)


def anatomy_of(asked: Resolved, where: Where) -> Anatomy:
    """The anatomy that answers a question. Raises SimulationEnded if the message does not arrive."""
    return Anatomy(asked, answer(where.store, asked, fresh=where.fresh), where)


def run_of(asked: Resolved, where: Where, observe: Observe = NOTHING, rate: Rate | None = None) -> Run:
    """The replay that answers a question; with ``observe`` its ``found.timeline`` is what was recorded. ``rate``: to which its trace was
    scaled."""
    return Run(asked, answer(where.store, asked, fresh=where.fresh, observe=observe), where, rate=rate)


@check_arguments
def pingpong(
    model: str | Path, platform: str | Path | None = None, *, sizes: Size | Sequence[Size] | None = None, reps: int | None = None,
    warm_up: int = WARM_UP, **options: Unpack[Options],
) -> Curve:
    """A PingPong curve: one-way time (µs) and bandwidth (10^6 B/s) against the size of the message (B).

    ``model`` is a runtime's name or the folder of one's own, ``platform`` a name, a composition (``"nt4-p6-200*2@switch-100"``) or a file
    (default: the model's own).
    ``sizes`` is a number of bytes, a list of bytes or texts, or a text such as ``"1KiB..1MiB:x2"`` (default: powers of two up to 4 MiB);
    ``reps`` repetitions at each (default: as in the papers); ``warm_up`` exchanges before each size are not timed (0: none, as in the
    papers). `Options` has the others.

    A PingPong that does not complete is a result too: the curve has the sizes that it finished, its ``outcome`` and its ``detail``.
    Raises UsageError for a wrong name, unit or size.

    >>> retrompi.pingpong("wmpi", mode="shared", sizes=["256 KiB"]).time("256 KiB")    # s
    0.0093...
    """
    return curve_of(*asked_of(model, platform, pingpong_of(as_sizes(sizes), reps, warm_up), options))


@check_arguments
def message(model: str | Path, platform: str | Path | None = None, *, size: Size, **options: Unpack[Options]) -> Anatomy:
    """The anatomy of one message of ``size`` (B, or text): its one-way time by stage and process, exact to the picosecond.

    Raises UsageError for a wrong name, unit or size, and SimulationEnded if the message does not arrive.

    >>> stages = retrompi.message("wmpi", size="512 KiB", mode="shared").rows
    >>> stages[0]["process"], max(stages, key=lambda row: row["ps"])["stage"]
    ('rank 0', 'quantum')
    """
    return anatomy_of(*asked_of(model, platform, Message(as_bytes(size)), options))


@check_arguments
def replay(
    trace: Trace | str | Path, model: str | Path, platform: str | Path | None = None, *, ranks: int | None = None,
    section: str | None = None, compute: str | float | None = None, kills: Sequence[str] = (),
    wildcards: Literal["recorded", "free"] = "recorded", **options: Unpack[Options],
) -> Run:
    """The replay of a trace: a file or folder (docs/trace-format.md), or one read by `retrompi.traces.read`.

    ``section`` times a part of the program (lines of rank 0, or from one mark to another), ``compute`` is how long it computes there,
    summed over all ranks (s, or a text with a unit); ``kills`` are processes killed at a time (``"proxy on server@0.5s"``). A job that
    does not complete is returned as any other, with its outcome.

    Raises UsageError for a wrong name or placement, InputError for a trace that cannot be read or simulated.

    >>> retrompi.replay("examples/traces/jacobi-4.tar.zst", "wmpi", "nt-cluster").time    # s
    0.85594...
    """
    from retrompi.spec.conditions.timed_section import Program
    from retrompi.traces.source import Source

    program = Program(section, None if compute is None else as_seconds(compute), 0.0)
    if isinstance(trace, str | Path):
        source = Source(str(trace), ranks)
        workload = Replay(source.read(), str(trace), program, source.row())
    else:
        workload = Replay(trace, "a trace", program)
    asked, where = asked_of(model, platform, workload, options, kills=tuple(kills), wildcards=wildcards)
    return run_of(asked, where)
