"""What a study will take, before it runs: its points, its runs, how many the store has, and the time of the rest."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from retrompi.errors import RetrompiError
from retrompi.studies import case, design

if TYPE_CHECKING:
    from retrompi.scenario import Scenario
    from retrompi.store.database import Store
    from retrompi.store.identity import RunSpec
    from retrompi.studies.design import Study

__all__ = ["OVERHEAD_S", "Outside", "Plan", "plan"]

OVERHEAD_S = 0.003
"""What a run takes besides its simulation (benchmarks/studies.py measures it)."""
SAMPLED = 3
"""Points that are timed where nothing alike is stored, for each kind of run that a study has; the first ones, and one in the middle."""
KINDS = 4
"""At most so many kinds of run are timed."""


@dataclass
class Outside:
    """Points outside the calibrated range of their models: how many, and why, with how many points each reason has."""

    points: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    _known: dict[tuple[object, ...], list[str]] = field(default_factory=dict, repr=False)

    def add(self, scenario: Scenario) -> None:
        """Counts a point."""
        from retrompi.calibrated import outside

        args = scenario.args
        sizes = args.get("sizes") or ([args["size"]] if "size" in args else [])
        ranks = scenario.np or args.get("ranks") or scenario.start.get("ranks")
        key = (scenario.model, scenario.platform, tuple(sizes), ranks, tuple(sorted(scenario.sets)))
        if key not in self._known:
            try:
                self._known[key] = outside(scenario.model, scenario.platform, sizes=sizes, ranks=ranks, sets=scenario.sets)
            except RetrompiError:
                return  # such a point is no run, and its row says why
        if self._known[key]:
            self.points += 1
            self.reasons.update(f"{scenario.model}: {line}" for line in self._known[key])

    def line(self, total: int) -> str:
        """One line for a person; empty where every point lies inside."""
        if not self.points:
            return ""
        told = [f"{reason}{f' ({n} points)' if n < self.points else ''}" for reason, n in self.reasons.most_common(3)]
        more = f"; and {len(self.reasons) - 3} more reasons" if len(self.reasons) > 3 else ""
        return f"{self.points} of {total} points lie outside the calibrated range: {'; '.join(told)}{more}"


@dataclass
class Plan:
    """``points`` come to ``runs`` different runs, of which ``found`` are stored; ``refused`` points are no runs.

    ``seconds`` is the time of the others on ``jobs`` processes and ``how`` says where it is from; None where nothing is left to do.
    """

    points: int
    jobs: int
    runs: int = 0
    found: int = 0
    refused: int = 0
    seconds: float | None = None
    how: str = ""
    outside: Outside = field(default_factory=Outside)
    reasons: list[str] = field(default_factory=list)

    @property
    def left(self) -> int:
        """Runs that have to be simulated."""
        return self.runs - self.found


def plan(
    store: Store,
    study: Study,
    *,
    jobs: int,
    limit: int = design.LIMIT,
    fresh: bool = False,
    report: Callable[[int, int, str], None] | None = None,
) -> Plan:
    """What `retrompi.studies.run.run_study` would do. A few points may be simulated to time them; nothing is stored."""
    design.check(study, limit)
    out = Plan(design.count(study), jobs)
    seen: set[str] = set()
    kinds: dict[tuple[str, ...], list[Scenario]] = {}
    alike: dict[tuple[str, ...], RunSpec] = {}
    counts: Counter[tuple[str, ...]] = Counter()
    with store.held():
        for point in design.each(study):
            out.outside.add(point.scenario)
            if report is not None:
                report(point.position + 1, out.points, "")
            try:
                spec = case.specification(point.scenario)
            except RetrompiError as error:
                out.refused += 1
                if len(out.reasons) < 5 and str(error) not in out.reasons:
                    out.reasons.append(str(error))
                continue
            if spec.identity in seen:
                continue
            seen.add(spec.identity)
            if not fresh and store.find_run(spec) is not None:
                out.found += 1
                continue
            kind = (spec.kind, spec.model, spec.mode, spec.fidelity, spec.trace_hash)
            alike.setdefault(kind, spec)
            counts[kind] += 1
            some = kinds.setdefault(kind, [])
            if len(some) < SAMPLED - 1 or counts[kind] & (counts[kind] - 1) == 0:  # at 1, 2, 4, 8 ...: the last of them is far in
                some[SAMPLED - 1 :] = [point.scenario]
        out.runs = len(seen)
        if counts:
            out.seconds, out.how = _seconds(store, counts, alike, kinds, jobs)
    return out


def _seconds(
    store: Store,
    counts: Counter[tuple[str, ...]],
    alike: dict[tuple[str, ...], RunSpec],
    kinds: dict[tuple[str, ...], list[Scenario]],
    jobs: int,
) -> tuple[float, str]:
    """The time of so many runs of each kind: by what is stored of it, or by timing a few."""
    work = known = timed = 0.0
    stored, tried, unknown = 0, 0, 0
    for kind, count in counts.most_common():
        mean, number = store.alike(alike[kind])
        if not number and tried < KINDS * SAMPLED:
            took = [_timed(scenario) for scenario in kinds[kind]]
            mean, number = sum(took) / len(took), len(took)
            tried += number
            timed += count
        elif number:
            stored += number
        if not number:
            unknown += count
            continue
        work += mean * count
        known += count
    total = counts.total()
    if known:
        work *= total / known  # kinds that were not timed are taken for the mean of the others
    words = []
    if stored:
        words.append(f"wall times of {stored} runs alike in the store")
    if tried:
        words.append(f"timing {tried} of its points now")
    return work / min(jobs, total) + OVERHEAD_S * total, "from " + " and ".join(words)


def _timed(scenario: Scenario) -> float:
    began = time.perf_counter()
    case.evaluate(case.Job(0, scenario))
    return time.perf_counter() - began
