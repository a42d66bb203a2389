"""Estimate of a study before it runs: its points and runs, how many runs are stored, and the time of the others."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from retrompi.base.errors import RetrompiError
from retrompi.studies.define import case
from retrompi.studies.execute import design

if TYPE_CHECKING:
    from retrompi.sim.cautions import Caution
    from retrompi.store.database import Store
    from retrompi.store.identity import RunSpec
    from retrompi.studies.define.scenario import Scenario
    from retrompi.studies.execute.design import Study

__all__ = ["OVERHEAD_S", "Outside", "Plan", "keep_reason", "plan"]

OVERHEAD_S = 0.003
"""Overhead of a run besides its simulation, seconds (measured by benchmarks/studies.py)."""
SAMPLED = 3
"""Points timed for each kind of run of which no similar one is stored: the first ones, and one in the middle."""
KINDS = 4
"""Maximum number of kinds of run that are timed."""
LONGEST_S = 10.0
"""Time limit of a timed point, seconds: an estimate must not take long itself."""


@dataclass
class Outside:
    """Points outside the calibrated range of their models: how many, and the reasons with the number of points of each."""

    points: int = 0
    reasons: Counter[tuple[str, Caution]] = field(default_factory=Counter)
    """(model, what of it is outside) -> number of points."""
    _known: dict[tuple[object, ...], list[Caution]] = field(default_factory=dict, repr=False)

    def add(self, scenario: Scenario) -> None:
        """Counts a point."""
        from retrompi.sim.cautions import calibration

        args = scenario.args
        sizes = args.get("sizes") or ([args["size"]] if "size" in args else [])
        ranks = scenario.np or args.get("ranks") or scenario.start.get("ranks")
        key = (scenario.model, scenario.platform, tuple(sizes), ranks, tuple(sorted(scenario.sets)))
        if key not in self._known:
            try:
                self._known[key] = calibration(scenario.model, scenario.platform, sizes=sizes, ranks=ranks, sets=scenario.sets)
            except RetrompiError:
                return  # such a point has no run; its row holds the reason
        if self._known[key]:
            self.points += 1
            self.reasons.update((scenario.model, one) for one in self._known[key])

    def line(self, total: int) -> str:
        """One line of text; empty if every point lies inside."""
        if not self.points:
            return ""
        told = [f"{model}: {c.text}{f' ({n} points)' if n < self.points else ''}" for (model, c), n in self.reasons.most_common(3)]
        more = f"; and {len(self.reasons) - 3} more" if len(self.reasons) > 3 else ""
        return f"{self.points} of {total} points lie outside the calibrated range: {'; '.join(told)}{more}"


    def cautions(self, total: int) -> list[Caution]:
        """What lies outside, of ``total`` points."""
        return [c if n == total else replace(c, about=f"{n} of {total} points") for (_, c), n in self.reasons.most_common()]


def keep_reason(reasons: list[str], reason: str) -> None:
    """Adds the reason of a point without a run to the first few distinct reasons."""
    if len(reasons) < 5 and reason not in reasons:
        reasons.append(reason)


@dataclass
class Plan:
    """``points`` correspond to ``runs`` distinct runs, of which ``found`` are stored; ``refused`` points have no run.

    ``seconds`` is the estimated time of the others on ``jobs`` processes, and ``how`` its basis; None if nothing is left to do or no
    timed point has a run. ``at_least``: a timed point was stopped, so that the estimate is a lower bound.
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
        """Number of runs that have to be simulated."""
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
    """The plan of what `retrompi.studies.execute.run.run_study` would do. A few points may be simulated for timing; nothing is stored."""
    design.check(study, limit)
    out = Plan(design.count(study), jobs)
    seen: set[str] = set()
    kinds: dict[tuple[str, ...], list[Scenario]] = {}
    alike: dict[tuple[str, ...], RunSpec] = {}
    counts: Counter[tuple[str, ...]] = Counter()
    with store.hold_connection():
        for point in design.each(study):
            if not point.scenario.drawn:
                out.outside.add(point.scenario)
            if report is not None:
                report(point.position + 1, out.points, "")
            try:
                spec = case.specification(point.scenario)
            except RetrompiError as error:
                out.refused += 1
                if not point.scenario.drawn:
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
            if len(some) < SAMPLED - 1 or counts[kind] & (counts[kind] - 1) == 0:  # at 1, 2, 4, 8 ...: the last one lies well inside
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
    """Estimated time of the given number of runs of each kind, from stored runs or by timing a few."""
    work = known = 0.0
    stored, tried = 0, 0
    for kind, count in counts.most_common():
        mean, number = store.alike(alike[kind])
        if not number and tried < KINDS * SAMPLED and not out.at_least:
            took = [t for t in (_time_point(scenario, out) for scenario in kinds[kind]) if t is not None]
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
    work *= total / known  # kinds that were not timed are assumed to take the mean of the others
    words = []
    if stored:
        words.append(f"wall times of {stored} runs alike in the store")
    if tried:
        words.append(f"timing {tried} of its points now")
    if out.at_least:
        words.append(f"stopping one after {LONGEST_S:g} s")
    out.seconds, out.how = work / min(out.jobs, total) + OVERHEAD_S * total, "from " + " and ".join(words)


class _Enough(BaseException):
    """Time limit reached. Not an Exception, so that no handler in between takes it for an error of the point."""


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Interrupts the body with `_Enough` after ``seconds``. No limit outside the main thread, the only one to receive the alarm."""
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


def _time_point(scenario: Scenario, out: Plan) -> float | None:
    """The wall time of a point; None for one without a run, whose reason is recorded."""
    if out.at_least:
        return None
    began = time.perf_counter()
    try:
        with _at_most(LONGEST_S):
            done = case.evaluate(case.PointJob(0, scenario))
    except _Enough:
        out.at_least = True
        return LONGEST_S
    if done.outcome == case.ERROR:
        keep_reason(out.reasons, done.reason)
        return None
    return time.perf_counter() - began
