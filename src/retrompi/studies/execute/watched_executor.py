"""An executor that says what it is at: an answer that does not come has a name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from retrompi.spec.conditions.bounds import Bounds
from retrompi.studies.define.case import PointJob, PointResult
from retrompi.studies.execute.run import Executor, Here, Report

__all__ = ["Watched"]


@dataclass
class Watched:
    """``executor`` (None: this process), whose jobs are called ``names``, by position, and end with outcome ``limit`` at ``bounds``.

    ``report`` is told after each answer which of the jobs that were handed out has waited longest for its own. It is entered and left by
    whoever made ``executor``.
    """

    executor: Executor | None
    names: Sequence[str]
    bounds: Bounds
    report: Report | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    """Name -> the wall time of its job."""

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *what: object) -> None:
        return None

    def evaluate(self, jobs: Iterable[PointJob], window: int = 0) -> Iterator[tuple[int, PointResult]]:
        """As of `retrompi.studies.execute.run.Executor`."""
        some = [PointJob(job.position, job.scenario, job.bounds.within(self.bounds)) for job in jobs]
        under_way: dict[int, str] = {}
        self._tell(0, len(some), self.names[some[0].position] if some else "")
        for done, (position, result) in enumerate((self.executor or Here()).evaluate(_note_jobs(some, under_way, self.names), window), 1):
            self.seconds[self.names[position]] = result.wall_s
            under_way.pop(position, None)
            self._tell(done, len(some), next(iter(under_way.values()), "") or (self.names[some[done].position] if done < len(some) else ""))
            yield position, result

    def _tell(self, done: int, total: int, what: str) -> None:
        if self.report is not None:
            self.report(done, total, what)

    def ready(self, within: float = 0.0) -> bool:
        """As of `retrompi.studies.execute.run.Executor`."""
        return self.executor is not None and self.executor.ready(within)

    def describe(self) -> str:
        """A few words."""
        return (self.executor or Here()).describe()

    @property
    def longest(self) -> Mapping[str, float]:
        """Name -> the wall time (s) of its job, the longest first."""
        return dict(sorted(self.seconds.items(), key=lambda item: -item[1]))


def _note_jobs(jobs: Iterable[PointJob], under_way: dict[int, str], names: Sequence[str]) -> Iterator[PointJob]:
    """The jobs, each noted as under way when it is taken."""
    for job in jobs:
        under_way[job.position] = names[job.position]
        yield job
