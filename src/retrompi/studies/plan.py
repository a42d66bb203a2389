"""What a study will take, before it runs: its points, its runs, how many the store has, and the time of the rest."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from retrompi.base.errors import RetrompiError
from retrompi.studies import case, design

if TYPE_CHECKING:
    from retrompi.store.database import Store
    from retrompi.store.identity import RunSpec
    from retrompi.studies.design import Study
    from retrompi.studies.scenario import Scenario

__all__ = ["OVERHEAD_S", "Outside", "Plan", "keep_reason", "plan"]

OVERHEAD_S = 0.003
"""What a run takes besides its simulation (benchmarks/studies.py measures it)."""
SAMPLED = 3
"""Points that are timed where nothing alike is stored, for each kind of run that a study has; the first ones, and one in the middle."""
KINDS = 4
"""At most so many kinds of run are timed."""
LONGEST_S = 10.0
"""A point that is timed is stopped then: whoever asks how long a study takes will not wait for it."""


@dataclass
class Outside:
    """Points outside the calibrated range of their models: how many, and why, with how many points each reason has."""

    points: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    _known: dict[tuple[object, ...], list[str]] = field(default_factory=dict, repr=False)

    def add(self, scenario: Scenario) -> None:
        """Counts a point."""
        from retrompi.spec.outside_range import outside

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
        more = f"; and {len(self.reasons) - 3} more" if len(self.reasons) > 3 else ""
        return f"{self.points} of {total} points lie outside the calibrated range: {'; '.join(told)}{more}"


def keep_reason(reasons: list[str], reason: str) -> None:
    """Adds why a point is no run to the first few different reasons."""
    if len(reasons) < 5 and reason not in reasons:
        reasons.append(reason)


@dataclass
class Plan:
    """``points`` come to ``runs`` different runs, of which ``found`` are stored; ``refused`` points are no runs.

    ``seconds`` is the time of the others on ``jobs`` processes and ``how`` says where it is from; None where nothing is left to do, or
    where no point that was timed is a run. ``at_least``: a point was stopped while it was timed, so that it takes longer.
    """

    points: int
    jobs: int
    runs: int = 0
    found: int = 0
    refused: int = 0
    seconds: float | None = None
    how: str = ""
    at_least: bool = False
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
                keep_reason(out.reasons, str(error))
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
            _time(out, store, counts, alike, kinds)
    return out


def _time(
    out: Plan,
    store: Store,
    counts: Counter[tuple[str, ...]],
    alike: dict[tuple[str, ...], RunSpec],
    kinds: dict[tuple[str, ...], list[Scenario]],
) -> None:
    """The time of so many runs of each kind: by what is stored of it, or by timing a few."""
    work = known = 0.0
    stored, tried = 0, 0
    for kind, count in counts.most_common():
        mean, number = store.alike(alike[kind])
        if not number and tried < KINDS * SAMPLED and not out.at_least:
            took = [t for t in (_timed(scenario, out) for scenario in kinds[kind]) if t is not None]
            mean, number = sum(took) / max(len(took), 1), len(took)
            tried += number
        elif number:
            stored += number
        if number:
            work += mean * count
            known += count
    if not known:
        return
    total = counts.total()
    work *= total / known  # kinds that were not timed are taken for the mean of the others
    words = []
    if stored:
        words.append(f"wall times of {stored} runs alike in the store")
    if tried:
        words.append(f"timing {tried} of its points now")
    if out.at_least:
        words.append(f"stopping one after {LONGEST_S:g} s")
    out.seconds, out.how = work / min(out.jobs, total) + OVERHEAD_S * total, "from " + " and ".join(words)


class _Enough(BaseException):
    """A point takes longer than we want to wait; no error of it, so that nobody on the way takes it for one."""


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Ends what is inside with `_Enough` after so long. Outside of the main thread, which alone hears the alarm, it waits."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: object) -> None:
        raise _Enough

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _timed(scenario: Scenario, out: Plan) -> float | None:
    """The wall time of a point; None for one that is no run, whose reason is kept."""
    if out.at_least:
        return None
    began = time.perf_counter()
    try:
        with _at_most(LONGEST_S):
            done = case.evaluate(case.Job(0, scenario))
    except _Enough:
        out.at_least = True
        return LONGEST_S
    if done.outcome == case.ERROR:
        keep_reason(out.reasons, done.reason)
        return None
    return time.perf_counter() - began
