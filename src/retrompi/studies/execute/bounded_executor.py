"""An executor whose simulations have bounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from retrompi.spec.conditions.bounds import Bounds
from retrompi.studies.define.case import PointJob, PointResult
from retrompi.studies.execute.run import Executor

__all__ = ["Bounded"]


@dataclass(frozen=True)
class Bounded:
    """``executor``, each of whose simulations ends with outcome ``limit`` when it reaches one of the ``bounds``."""

    executor: Executor
    bounds: Bounds

    def __enter__(self) -> Bounded:
        self.executor.__enter__()
        return self

    def __exit__(self, *what: object) -> None:
        self.executor.__exit__(*what)

    def evaluate(self, jobs: Iterable[PointJob], window: int = 0) -> Iterator[tuple[int, PointResult]]:
        """As of `retrompi.studies.execute.run.Executor`."""
        return self.executor.evaluate((replace(job, bounds=job.bounds.within(self.bounds)) for job in jobs), window)

    def ready(self, within: float = 0.0) -> bool:
        """As of `retrompi.studies.execute.run.Executor`."""
        return self.executor.ready(within)

    def describe(self) -> str:
        """A few words."""
        return self.executor.describe()
