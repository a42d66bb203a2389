"""What is known of one point of an answer: its number, or why it has none, and the run it is from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from retrompi.base.errors import RetrompiError

if TYPE_CHECKING:
    from retrompi.store import Store
    from retrompi.studies.metrics import Metric
    from retrompi.studies.run import Executor
    from retrompi.studies.scenario import Scenario

__all__ = ["Asker", "NoNumber", "Reading", "counted"]


class NoNumber(RetrompiError):
    """Runs without a number have made an answer impossible: a negative outcome."""

    exit_code = 1
    code = "no-number"


@dataclass(frozen=True)
class Reading:
    """A point's metric in base units (None where its run has none), its run (None for outcome ``error``), how it ended and why, and
    whether it was ``found`` in the store rather than simulated now."""

    value: float | None
    run_id: int | None = None
    outcome: str = "completed"
    reason: str = ""
    found: bool = False

    def told(self) -> str:
        """How it ended, in a few words."""
        return self.outcome if not self.reason else f"{self.outcome}: {self.reason}"


def counted(readings: Iterable[Reading]) -> tuple[int, int]:
    """(runs, of them simulated now): each run counts once, and a point that is no run not at all."""
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
    """Points of a scenario, found in the store or simulated and stored by ``executor``: call it with ``{key: text}`` of each.

    A point is asked for once however often it is wanted. ``report(done, expected, what)`` is told of each run; how many there will be is
    not known before a search ends, so ``expected`` is a guess that grows.
    """

    store: Store
    scenario: Scenario
    metric: Metric
    executor: Executor
    fresh: bool = False
    report: Callable[[int, int, str], None] = lambda done, total, what: None
    expected: int = 0
    _known: dict[tuple[tuple[str, str], ...], Reading] = field(default_factory=dict)
    _done: int = 0

    def __call__(self, points: Sequence[Mapping[str, str]]) -> list[Reading]:
        """The readings of ``points``, in their order."""
        from retrompi.studies import case
        from retrompi.studies.run import runs_of

        names = [tuple(sorted(p.items())) for p in points]
        new = [n for n in dict.fromkeys(names) if n not in self._known]
        if new:
            before = self._done

            def told(done: int, total: int, what: str) -> None:
                self._done = before + done
                self.report(self._done, max(self.expected, before + total + 1), what)

            made = [case.apply(self.scenario, dict(n)) for n in new]
            found = runs_of(self.store, made, executor=self.executor, fresh=self.fresh, report=told)
            self._known.update((n, self._read(r.run_id, r.outcome, r.reason, r.found)) for n, r in zip(new, found, strict=True))
        return [self._known[n] for n in names]

    def _read(self, run_id: int | None, outcome: str, reason: str, found: bool) -> Reading:
        value = None
        if run_id is not None:
            value = self.metric.of(self.store.run(run_id), self.store.points(run_id), self.store.ranks(run_id))
        return Reading(value, run_id, outcome, reason, found)
