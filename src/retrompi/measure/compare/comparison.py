"""Executions of one program on several backends, aligned: sections, calls, the origin of the difference, and bounds.

Nothing is executed here. Times are seconds; a native time is the median of its repetitions; an error is signed and relative,
``time / reference - 1``. The reference is the native run, or SMPI when there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from retrompi.base.errors import UsageError
from retrompi.measure.compare.errors import Band, Distribution, band, distribution, relative
from retrompi.measure.compare.seen import NOTHING_SEEN, Seen
from retrompi.measure.launch.execution import BACKENDS, Execution
from retrompi.sim.cautions import Caution

__all__ = ["CallRow", "Comparison", "ComparisonRow", "Split", "build", "calls_of", "sections_of"]

FIT, HELD_OUT = "fit", "held out"
_POINT_TO_POINT = frozenset(["MPI_Send", "MPI_Recv", "MPI_Sendrecv"])


@dataclass(frozen=True)
class ComparisonRow:
    """One time on every backend: a section, or the whole program.

    ``times``: backend -> seconds of one part (`backends.Execution.parts`); ``bands``: backend -> its repeated measurements, if there are
    several. ``use``: whether the model's fit saw such a message ("fit", "held out"; "" when the model was not fitted to measured curves).
    """

    label: str
    size_B: int | None
    parts: int
    times: Mapping[str, float]
    bands: Mapping[str, Band]
    use: str = ""

    def error(self, backend: str, reference: str) -> float | None:
        """Signed relative error; None where either backend has no time."""
        return relative(self.times.get(backend), self.times.get(reference))

    def inside(self, backend: str, reference: str) -> bool | None:
        """Whether the time lies in the reference's noise band; None without a band or a time."""
        held = self.bands.get(reference)
        return None if held is None or backend not in self.times else held.holds(self.times[backend])

    def row(self, pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
        """A flat object: a time for each backend, the band of the native one, an error for each pair."""
        out: dict[str, Any] = {"section": self.label, "size_B": self.size_B, "parts": self.parts, "use": self.use}
        out |= {f"{b}_s": self.times.get(b) for b in BACKENDS}
        held = self.bands.get("native")
        low, high, n = (held.low, held.high, held.n) if held else (None, None, None)
        out |= {"band_low_s": low, "band_high_s": high, "repetitions": n}
        for backend, reference in pairs:
            out[f"{backend}_to_{reference}"] = self.error(backend, reference)
            if reference == "native":
                out[f"{backend}_in_band"] = self.inside(backend, reference)
        return out


@dataclass(frozen=True)
class CallRow:
    """All calls of one MPI function with one size: their count and the time that all ranks together spent in them."""

    call: str
    size_B: int
    counts: Mapping[str, int]
    seconds: Mapping[str, float]

    def difference(self, backend: str, reference: str) -> float:
        """Seconds, summed over the ranks, that ``backend`` spends more than ``reference``; a backend without such a call spends none."""
        return self.seconds.get(backend, 0.0) - self.seconds.get(reference, 0.0)

    def row(self, pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
        """A flat object: count and seconds for each backend, difference and error for each pair."""
        out: dict[str, Any] = {"call": self.call, "size_B": self.size_B}
        for b in BACKENDS:
            out |= {f"{b}_count": self.counts.get(b), f"{b}_s": self.seconds.get(b)}
        for b, r in pairs:
            out |= {f"{b}_minus_{r}_s": self.difference(b, r), f"{b}_to_{r}": relative(self.seconds.get(b), self.seconds.get(r))}
        return out


@dataclass(frozen=True)
class Split:
    """The origin of the difference between two backends, in seconds summed over the ranks.

    ``communication`` is time inside MPI calls, ``computation`` the rest; ``calls``: those that account for most of it, largest first.
    """

    backend: str
    reference: str
    total: float
    computation: float
    communication: float
    reference_total: float
    calls: tuple[tuple[str, float], ...]

    def row(self) -> dict[str, Any]:
        """A flat object."""
        return {
            "backend": self.backend, "reference": self.reference, "difference_rank_s": self.total,
            "computation_rank_s": self.computation, "communication_rank_s": self.communication,
            "reference_rank_s": self.reference_total, "calls": [{"call": c, "difference_rank_s": d} for c, d in self.calls],
        }


@dataclass(frozen=True)
class Comparison:
    """A program on several backends. ``warnings``: why some numbers may be meaningless; ``pairs``: (backend, reference)."""

    program: str
    arguments: tuple[str, ...]
    ranks: int
    executions: Mapping[str, Execution]
    pairs: tuple[tuple[str, str], ...]
    whole: ComparisonRow
    sections: tuple[ComparisonRow, ...]
    calls: tuple[CallRow, ...]
    splits: tuple[Split, ...]
    seen: Seen = NOTHING_SEEN
    warnings: tuple[str, ...] = ()

    @property
    def rows(self) -> tuple[ComparisonRow, ...]:
        """The rows that are judged: the sections, or the whole program if there are none."""
        return self.sections or (self.whole,)

    @property
    def completed(self) -> bool:
        """Whether the program completed on every backend."""
        return all(e.completed for e in self.executions.values())

    def judged_rows(self) -> tuple[ComparisonRow, ...]:
        """The rows that no fit saw; all rows if none is marked."""
        return tuple(r for r in self.rows if r.use == HELD_OUT) or tuple(r for r in self.rows if r.use != FIT)

    def distribution(self, backend: str, reference: str, use: str | None = None) -> Distribution | None:
        """The distribution over the rows with this ``use`` (default: all rows). None if there are none."""
        return distribution((r.label, r.error(backend, reference)) for r in self.rows if use is None or r.use == use)

    def distributions(self) -> list[dict[str, Any]]:
        """Rows backend, reference, use ("all", "fit", "held out"), inside (share in the noise band) and the fields of `Distribution`."""
        out = []
        for backend, reference in self.pairs:
            for use in ("all", *(u for u in (FIT, HELD_OUT) if any(r.use == u for r in self.rows))):
                found = self.distribution(backend, reference, None if use == "all" else use)
                if found is not None:
                    mine = [r.inside(backend, reference) for r in self.rows if use in ("all", r.use)]
                    known = [i for i in mine if i is not None]
                    share = sum(known) / len(known) if known and reference == "native" else None
                    out.append({"backend": backend, "reference": reference, "use": use, "inside": share, **found.row()})
        return out

    def noise(self) -> float | None:
        """Half the median relative width of the native bands: the smallest error that can be resolved; None without repetitions."""
        widths = [s for r in self.rows if (held := r.bands.get("native")) is not None and held.n > 1 and (s := held.spread) is not None]
        return sorted(widths)[len(widths) // 2] / 2 if widths else None


def pairs_of(backends: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """(backend, reference) for these backends: each simulation against the machine, and the model against SMPI."""
    have = set(backends)
    return tuple(p for p in (("model", "native"), ("smpi", "native"), ("model", "smpi")) if have.issuperset(p))


def is_message(execution: Execution, label: str) -> bool:
    """Whether a section is of the kind that fits use: messages of the size in its label between two ranks, and nothing else.

    A PingPong, a stream and an exchange by blocking calls are treated alike: a fit that saw the size saw all of them.
    """
    mine = [c for c in execution.calls if c.section == label and c.call not in ("MPI_Pcontrol", "MPI_Wtime")]
    kinds = {c.call for c in mine}
    return execution.ranks == 2 and bool(kinds) and kinds <= _POINT_TO_POINT and all(str(c.size_B) == label for c in mine)


def _point(samples: Sequence[float]) -> float | None:
    found = band(samples)
    return found.median if found else None


def _row(label: str, size: int | None, parts: int, samples: Mapping[str, Sequence[float]], use: str = "") -> ComparisonRow:
    times = {b: t for b, s in samples.items() if (t := _point(s)) is not None}
    bands = {"native": held} if (held := band(samples.get("native", ()))) is not None and held.n > 1 else {}
    return ComparisonRow(label, size, parts, times, bands, use)


def sizes_of(executions: Mapping[str, Execution], labels: Iterable[str]) -> frozenset[str]:
    """The labels that are message sizes: some call in the section has that size. All of them if no calls are known.

    A section 0 contains empty messages if every other label is a message size; otherwise it is a number of the program's own.
    """
    known = {(c.section, c.size_B) for e in executions.values() for c in e.calls}
    numbers = [label for label in labels if label.isdecimal()]
    if not known:
        return frozenset(numbers)
    found = {label for label in numbers if (label, int(label)) in known}
    return frozenset(found if found.issuperset(numbers) else found - {"0"})


def sections_of(executions: Mapping[str, Execution], seen: Seen = NOTHING_SEEN) -> tuple[ComparisonRow, ...]:
    """The sections of all backends by label: numbers in order, then other labels in order of occurrence. A backend may lack some."""
    labels = list(dict.fromkeys(label for e in executions.values() for label in e.sections))
    labels.sort(key=lambda s: (0, int(s)) if s.isdecimal() else (1, 0))
    sizes = sizes_of(executions, labels)
    out = []
    for label in labels:
        size = int(label) if label in sizes else None
        parts = next((e.parts[label] for e in executions.values() if label in e.parts), 1)
        use = ""
        if seen.fitted:
            alike = size in seen.sizes and any(is_message(e, label) for e in executions.values())
            use = FIT if alike else HELD_OUT
        out.append(_row(label, size, parts, {b: e.sections.get(label, ()) for b, e in executions.items()}, use))
    return tuple(out)


def calls_of(executions: Mapping[str, Execution]) -> tuple[CallRow, ...]:
    """The calls of all backends by function and size, whatever the section; those with the most time first."""
    counts: dict[tuple[str, int], dict[str, int]] = {}
    seconds: dict[tuple[str, int], dict[str, float]] = {}
    for backend, execution in executions.items():
        for c in execution.calls:
            key = (c.call, c.size_B)
            counted, timed = counts.setdefault(key, {}), seconds.setdefault(key, {})
            counted[backend] = counted.get(backend, 0) + c.count
            timed[backend] = timed.get(backend, 0.0) + c.seconds
    rows = [CallRow(*key, counts=counts[key], seconds=seconds[key]) for key in counts]
    return tuple(sorted(rows, key=lambda r: (-max(r.seconds.values()), r.call, r.size_B)))


def split_of(backend: str, reference: str, executions: Mapping[str, Execution], calls: Sequence[CallRow], most: int = 5) -> Split | None:
    """None where one of the two has no profile or no time. The native profile comes from a separate run, whose own time is used."""
    totals: dict[str, tuple[float, float]] = {}
    for name in (backend, reference):
        e = executions[name]
        time = e.profile_s if e.profile_s is not None else _point(e.samples_s)
        if time is None or not e.calls:
            return None
        totals[name] = (e.ranks * time, sum(c.seconds for c in e.calls))
    (mine, inside), (other, theirs) = totals[backend], totals[reference]
    by_call: dict[str, float] = {}
    for row in calls:
        by_call[row.call] = by_call.get(row.call, 0.0) + row.difference(backend, reference)
    ranked = sorted(by_call.items(), key=lambda kv: (-abs(kv[1]), kv[0]))
    top = tuple((c, d) for c, d in ranked[:most] if d)
    return Split(backend, reference, mine - other, (mine - inside) - (other - theirs), inside - theirs, other, top)


def cautions(c: Comparison) -> list[Caution]:
    """Cautions about its numbers and its executions; ``about`` names the backend."""
    own = [Caution("comparison", text) for text in c.warnings]
    return [*own, *(replace(one, about=name) for name, e in c.executions.items() for one in e.cautions)]


def _warnings(executions: Mapping[str, Execution], sections: Sequence[ComparisonRow], seen: Seen) -> list[str]:
    """Reasons why the numbers may be meaningless, most serious first."""
    ended: dict[str, list[str]] = {}  # how -> backends
    for b, e in executions.items():
        if not e.completed:
            ended.setdefault(e.outcome + (f": {e.detail}" if e.detail else ""), []).append(b)
    out = [f"{' and '.join(names)} did not complete ({how})" for how, names in ended.items()]
    native, model = executions.get("native"), executions.get("model") or executions.get("smpi")
    if native is not None:
        out += native.notes
        if len(native.samples_s) == 1:
            out.append("one native repetition has no noise band")
        if model is not None:
            out += seen.apart(native)
    for b, e in executions.items():
        lacking = [r.label for r in sections if r.label not in e.sections]
        if lacking and e.completed:
            out.append(f"{b} has no section {', '.join(lacking[:3])}{' …' if len(lacking) > 3 else ''}")
    return out


def build(executions: Iterable[Execution], seen: Seen = NOTHING_SEEN) -> Comparison:
    """Align executions of one program on different backends. Raises UsageError for fewer than two, or for different rank counts."""
    given = list(executions)
    found = {e.backend: e for e in sorted(given, key=lambda e: BACKENDS.index(e.backend))}
    if len(found) < 2 or len(found) != len(given):
        raise UsageError(
            f"a comparison needs two or three runs of different backends, not {', '.join(e.backend for e in given) or 'none'}",
            code="missing-option",
        )
    first = next(iter(found.values()))
    for other in found.values():
        if other.ranks != first.ranks:
            raise UsageError(
                f"{first.backend} ran on {first.ranks} ranks and {other.backend} on {other.ranks}: these cannot be compared",
                code="wrong-ranks",
            )
    sections, calls, pairs = sections_of(found, seen), calls_of(found), pairs_of(found)
    whole = _row("whole program", None, 1, {b: e.samples_s for b, e in found.items()}, HELD_OUT if seen.fitted else "")
    splits = tuple(s for p in pairs if (s := split_of(*p, found, calls)) is not None)
    warnings = tuple(_warnings(found, sections, seen))
    return Comparison(first.program, tuple(first.arguments), first.ranks, found, pairs, whole, sections, calls, splits, seen, warnings)
