"""Common parts of the commands that need several runs of a scenario: options, the scenario, and the executor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import click

from retrompi.base.errors import UsageError
from retrompi.cli.bundle import option
from retrompi.cli.options import Effort, RunOutput, Workers, complete_scenario, progress, share

if TYPE_CHECKING:
    from retrompi.api.answering import Asking
    from retrompi.studies.define.metrics import Metric
    from retrompi.studies.define.scenario import Scenario
    from retrompi.studies.execute.run import Executor
    from retrompi.studies.search.reading import Asker

__all__ = ["AnswerOptions", "Executors", "asking_of", "count_line", "scenario_argument", "share", "the_scenario"]

scenario_argument = click.argument("scenario", metavar="SCENARIO", shell_complete=complete_scenario)


@dataclass(frozen=True)
class Executors(Effort, Workers):
    """Options for where the simulations run."""

    executor: Literal["pool", "dask"] | None = option("Run the simulations in processes on this machine (default) or on a Dask cluster.")
    scheduler: str | None = option("Address of a Dask scheduler, e.g. tcp://host:8786 (default: a cluster of this machine).", metavar="URL")

    def make(self) -> Executor:
        """The executor selected by the options, with their bounds."""
        from retrompi.studies.execute.bounded_executor import Bounded

        return Bounded(self._executor(), self.bounds())

    def _executor(self) -> Executor:
        if self.executor == "dask" or (self.executor is None and self.scheduler is not None):
            from retrompi.studies.execute.dask_executor import DaskExecutor

            return DaskExecutor(workers=self.jobs, scheduler=self.scheduler, say=lambda line: click.echo(line, err=True))
        if self.scheduler is not None:
            raise UsageError("--scheduler is for --executor dask", code="unused-option")
        from retrompi.studies.execute.worker_pool import WorkerPool

        return WorkerPool(self.jobs)

    @contextmanager
    def working(self) -> Iterator[Executor]:
        """Context of the executor; with one job and no Dask, this process."""
        from retrompi.studies.execute.bounded_executor import Bounded
        from retrompi.studies.execute.run import Here

        alone = self.jobs == 1 and self.executor != "dask" and self.scheduler is None
        with Bounded(Here(), self.bounds()) if alone else self.make() as executor:
            yield executor


@dataclass(frozen=True)
class AnswerOptions(Executors):
    """Options of every command that answers a question about a scenario by several runs."""

    sets: tuple[str, ...] = option(
        "Override a parameter: of the model or platform, or a key of the scenario (model, mode, trace.reps, ...).",
        "--set", metavar="KEY=VALUE")
    metric: str | None = option(
        "Quantity: what is compared, e.g. time, time@1MiB, bandwidth@64KiB, latency, peak, mpi, ...", metavar="METRIC")


def the_scenario(name: str, sets: Sequence[str]) -> Scenario:
    """The scenario with ``--set`` applied; rejects invalid overrides before anything runs."""
    from retrompi.api.answering import scenario_of
    from retrompi.spec.model import parse_sets

    return scenario_of(name, parse_sets(list(sets)))


def asking_of(label: str, given: AnswerOptions, output: RunOutput) -> Asking:
    """Runs in the store of ``output``, with the workers of the options and progress."""
    from retrompi.studies.search.reading import Asker

    @contextmanager
    def ask(scenario: Scenario, metric: Metric, expected: int) -> Iterator[Asker]:
        store = output.open()
        with progress(label) as report, given.working() as executor:
            yield Asker(store, scenario, metric, executor, output.fresh, report, expected, label)

    return ask


def count_line(counts: tuple[int, int]) -> str:
    """``34 runs, 30 of them simulated now``."""
    runs, simulated = counts
    if not runs:
        return "no run was possible"
    if simulated == runs:
        return f"{runs} runs, all simulated now"
    return f"{runs} runs, {simulated} of them simulated now" if simulated else f"{runs} runs, all found in the store"
