"""The recognised pattern, for the user: the grid, the calls with their peers and laws, the computation, and the check on the largest
size."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from retrompi._engine import Trace

from .calls import RecordedCalls
from .grid import relation_text
from .program import Round, Step
from .recognise import Pattern, is_root, relations_of

__all__ = ["Report", "TraceComparison", "compare", "report_on"]


@dataclass(frozen=True)
class TraceComparison:
    """An extrapolated trace beside a recorded one: messages and bytes of both, whether every pair of ranks exchanges the same number of
    messages and bytes, and the operations of computation of both."""

    ranks: int
    messages: tuple[int, int]
    bytes: tuple[int, int]
    equal: bool
    compute: tuple[float, float]

    @property
    def compute_error(self) -> float:
        """Relative error of the computation."""
        made, recorded = self.compute
        return made / recorded - 1 if recorded else 0.0


@dataclass
class Report:
    """The recognised pattern of a program.

    ``grid`` the law of the grid and ``grids`` its dimensions by number of ranks, the wanted one last; ``places`` the number of kinds of
    places whose ranks do different things; ``calls`` a row for each kind of call (``action``, ``peers``, ``calls`` of the largest
    recording, ``law``, ``tested``: by how many recorded sizes beyond those that the law needs); ``computation`` a row for each kind of law
    (``law``, ``share`` of the operations of the largest recording, ``error``: mean over contexts of the largest relative error at a
    recorded size); ``held_out`` the largest recording beside its extrapolation from the smaller ones, or ``why_not``.
    """

    grid: str
    grids: dict[int, str]
    places: int
    calls: list[dict[str, Any]]
    computation: list[dict[str, Any]]
    held_out: TraceComparison | None = None
    why_not: str = ""
    notes: list[str] = field(default_factory=list)


def compare(made: Trace, recorded: Trace) -> TraceComparison:
    """An extrapolated trace beside the recorded one of as many ranks."""
    pairs = [sorted(t.traffic()["pairs"]) for t in (made, recorded)]
    return TraceComparison(
        made.ranks,
        (sum(p[2] for p in pairs[0]), sum(p[2] for p in pairs[1])),
        (sum(p[3] for p in pairs[0]), sum(p[3] for p in pairs[1])),
        pairs[0] == pairs[1] and _collectives(made) == _collectives(recorded),
        (float(made.info()["compute_flops"]), float(recorded.info()["compute_flops"])),
    )


def _collectives(trace: Trace) -> dict[str, int]:
    quiet = {"compute", "sleep"}
    return {name: n for name, n in dict(trace.info()["calls"]).items() if name not in quiet}


def report_on(pattern: Pattern, ranks: int, grid: str) -> Report:
    """The report on a pattern extrapolated to ``ranks`` on ``grid``."""
    grids = {p: str(g) for p, g in pattern.grids.items()} | {ranks: grid}
    return Report(pattern.law.name, grids, len(pattern.classes), _calls(pattern), _computation(pattern))


def _calls(pattern: Pattern) -> list[dict[str, Any]]:
    count: Counter[tuple[str, int, int]] = Counter()
    of: dict[int, str] = {r: key for key, group in pattern.classes.items() for r in group.members}
    for rank, where in pattern.where.items():
        count.update((of[rank], p, place) for p, place, _, _ in where)
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for (key, p, place), calls in count.items():
        part = pattern.classes[key].parts[p]
        step = part.body[place] if isinstance(part, Round) else part
        assert isinstance(step, Step)
        if step.shape.action == "#":
            continue
        law, tested = _law(pattern, (key, p, place), step)
        what = {"action": step.shape.action, "peers": _peers(part, step), "law": law}
        row = rows.setdefault(tuple(what.values()), {**what, "calls": 0, "tested": tested})
        row["calls"] += calls
        if row["tested"] is not None and tested is not None:
            row["tested"] = min(row["tested"], tested)
    return sorted(rows.values(), key=lambda row: -row["calls"])


def _peers(part: Step | Round, step: Step) -> str:
    if isinstance(part, Round):
        if part.kind == "butterfly":
            return f"butterfly along axis {part.axis + 1}, bits {'upwards' if part.order > 0 else 'downwards'}"
        order = {1: "in order of ranks", -1: "from the last rank down", 2: "beginning with the next", -2: "beginning with the previous"}
        return f"every other rank, {order[part.order]}"
    found = relations_of(step, is_root(step.shape))
    return ", ".join(("root " if is_root(step.shape) and r and r[0] == "rank" else "") + relation_text(r) for r in found if r)


def _law(pattern: Pattern, spot: tuple[str, int, int], step: Step) -> tuple[str, int | None]:
    texts, tested = [], None
    for n, name in enumerate(step.shape.names):
        form = pattern.forms[(*spot, n)]
        for which in ("value",) if form == "same" else ("first", "step") if form in ("up", "down") else ("first",):
            laws = pattern.numbers[(*spot, n, which)]
            how = "" if form == "same" else f" {'each turn' if which == 'step' else 'at first' if form in ('up', 'double') else 'at last'}"
            if form in ("double", "halve"):
                how += ", twice that the next"
            texts.append(f"{name}{how} " + " or ".join(law.text for law in laws))
            tested = laws[0].spare if tested is None else min(tested, laws[0].spare)
    return "; ".join(texts), tested


def _computation(pattern: Pattern) -> list[dict[str, Any]]:
    """A row for each kind of law, by the widest context that has one."""
    from .recognise import call_context, contexts

    share: Counter[str] = Counter()
    errors: dict[str, list[float]] = {}
    largest: RecordedCalls = pattern.largest
    for group in pattern.classes.values():
        for member in group.members:
            calls = [call_context(pattern, group, p, place, turn) for p, place, turn, _ in pattern.where[member]]
            for i, call in enumerate(largest.calls[member]):
                if not call.compute:
                    continue
                law = next((a for c in contexts(calls[max(0, i - 3) : i + 1]) if (a := pattern.amounts.get(c)) is not None), None)
                kind = law.kind if law is not None else "constant"
                share[kind] += call.compute  # type: ignore[assignment]
                errors.setdefault(kind, []).append(law.error if law is not None else 0.0)
    total = sum(share.values()) or 1
    return [
        {"law": kind, "share": amount / total, "error": sum(errors[kind]) / len(errors[kind])} for kind, amount in share.most_common()
    ]
