"""The reading at one point of a search: its number, or the reason for having none, and its run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from retrompi.base.errors import RetrompiError
from retrompi.spec.declare.outcome import Outcome

if TYPE_CHECKING:
    from retrompi.store import Store
    from retrompi.studies.define.metrics import Metric
    from retrompi.studies.define.scenario import Scenario
    from retrompi.studies.execute.run import Executor

__all__ = ["Asker", "NoNumber", "Reading", "count_runs"]


class NoNumber(RetrompiError):
    """Runs without a number have made an answer impossible: a negative outcome."""

    exit_code = 1
    code = "no-number"


@dataclass(frozen=True)
class Reading:
    """A point's metric in base units (None if its run has none), its run (None for outcome ``error``), the outcome with its reason,
    and whether the run was ``found`` in the store rather than simulated now."""

    value: float | None
    run_id: int | None = None
    outcome: str = Outcome.COMPLETED
    reason: str = ""
    found: bool = False

    def outcome_text(self) -> str:
        """The outcome, in a few words."""
        return self.outcome if not self.reason else f"{self.outcome}: {self.reason}"


def count_runs(readings: Iterable[Reading]) -> tuple[int, int]:
    """(runs, of which simulated now): each run counts once; points without a run do not count."""
    runs: set[int] = set()
    simulated: set[int] = set()
    for r in readings:
        if r.run_id is not None:
            runs.add(r.run_id)
            if not r.found:
                simulated.add(r.run_id)
    return len(runs), len(simulated)


@dataclass
class Asker:
    """Evaluates points of a scenario, looked up in the store or simulated by ``executor`` and stored; called with ``{key: text}`` of each.

    Each point is evaluated once. ``report(done, expected, what)`` is called for each run; the total is not known before a search
    ends, so ``expected`` is an estimate that grows.
    """

    store: Store
    scenario: Scenario
    metric: Metric
    executor: Executor
    fresh: bool = False
    report: Callable[[int, int, str], None] = lambda done, total, what: None
    expected: int = 0
    part_of: str = "a search"
    _known: dict[tuple[tuple[str, str], ...], Reading] = field(default_factory=dict)
    _done: int = 0

    def __call__(self, points: Sequence[Mapping[str, str]]) -> list[Reading]:
        """The readings of ``points``, in their order."""
        from retrompi.studies.define import case
        from retrompi.studies.execute.run import runs_of

        names = [tuple(sorted(p.items())) for p in points]
        new = [n for n in dict.fromkeys(names) if n not in self._known]
        if new:
            before = self._done

            def report_point(done: int, total: int, what: str) -> None:
                self._done = before + done
                self.report(self._done, max(self.expected, before + total + 1), what)

            made = [self._shortest(case.apply(self.scenario, dict(n))) for n in new]
            found = runs_of(self.store, made, executor=self.executor, fresh=self.fresh, report=report_point, part_of=self.part_of)
            self._known.update((n, self._read(r.run_id, r.outcome, r.reason, r.found)) for n, r in zip(new, found, strict=True))
        return [self._known[n] for n in names]

    @property
    def run_ids(self) -> list[int]:
        """The runs that were evaluated."""
        return [r.run_id for r in self._known.values() if r.run_id is not None]

    def _shortest(self, scenario: Scenario) -> Scenario:
        """The scenario with only the sizes that the metric needs, unless the run of all of them is stored already."""
        from retrompi.studies.define import case

        short = self.metric.shorten(scenario)
        if short is scenario or self.fresh:
            return short
        try:
            return scenario if self.store.find_run(case.identity(scenario)) is not None else short
        except RetrompiError:
            return short  # it cannot be run: the caller of its run tells the reason

    def _read(self, run_id: int | None, outcome: str, reason: str, found: bool) -> Reading:
        value = None
        if run_id is not None:
            value = self.metric.of(self.store.run(run_id), self.store.points(run_id), self.store.ranks(run_id))
        return Reading(value, run_id, outcome, reason, found)
