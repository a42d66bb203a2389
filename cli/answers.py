"""Common parts of the commands that need several runs of a scenario: options, the scenario, and the executor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import click

from retrompi.base.errors import UsageError
from retrompi.cli.bundle import option
from retrompi.cli.options import Effort, RunOutput, Workers, complete_scenario, progress, share
from retrompi.cli.output import note_warnings

if TYPE_CHECKING:
    from retrompi.studies.metrics import Metric
    from retrompi.studies.reading import Asker
    from retrompi.studies.run import Executor
    from retrompi.studies.scenario import Scenario
    from retrompi.studies.uncertainty import Spec

__all__ = ["AnswerOptions", "Executors", "asking", "count_line", "metric_for", "note_search", "scenario_argument", "share",
           "the_scenario"]

scenario_argument = click.argument("scenario", metavar="SCENARIO", shell_complete=complete_scenario)


@dataclass(frozen=True)
class Executors(Effort, Workers):
    """Options for where the simulations run."""

    executor: Literal["pool", "dask"] | None = option("Run the simulations in processes on this machine (default) or on a Dask cluster.")
    scheduler: str | None = option("Address of a Dask scheduler, e.g. tcp://host:8786 (default: a cluster of this machine).", metavar="URL")

    def make(self) -> Executor:
        """The executor selected by the options, with their bounds."""
        from retrompi.studies.bounded import Bounded

        return Bounded(self._executor(), self.bounds())

    def _executor(self) -> Executor:
        if self.executor == "dask" or (self.executor is None and self.scheduler is not None):
            from retrompi.studies.dask_executor import DaskExecutor

            return DaskExecutor(workers=self.jobs, scheduler=self.scheduler, say=lambda line: click.echo(line, err=True))
        if self.scheduler is not None:
            raise UsageError("--scheduler is for --executor dask", code="unused-option")
        from retrompi.studies.worker_pool import Pool

        return Pool(self.jobs)

    @contextmanager
    def working(self) -> Iterator[Executor]:
        """Context of the executor; with one job and no Dask, this process."""
        from retrompi.studies.bounded import Bounded
        from retrompi.studies.run import Here

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
    from retrompi.spec.model import parse_sets
    from retrompi.studies import case, catalogue
    from retrompi.studies.applies import refuse_idle

    found = case.apply(catalogue.scenario(name), parse_sets(list(sets)))
    case.identity(found)
    refuse_idle(found)
    return found


def metric_for(text: str | None, default: str, scenario: Scenario) -> Metric:
    """The metric by name; UsageError if the scenario's runs cannot have it."""
    from retrompi.studies import metrics

    found = metrics.parse(text or default)
    found.check(scenario)
    return found


@contextmanager
def asking(
    label: str, scenario: Scenario, metric: Metric, given: AnswerOptions, output: RunOutput, *, expected: int
) -> Iterator[Asker]:
    """An `Asker` on the store of ``output``, with workers and progress."""
    from retrompi.studies.reading import Asker

    store = output.open()
    with progress(label) as report, given.working() as executor:
        yield Asker(store, scenario, metric, executor, output.fresh, report, expected, label)


def count_line(counts: tuple[int, int]) -> str:
    """``34 runs, 30 of them simulated now``."""
    runs, simulated = counts
    if not runs:
        return "no run was possible"
    if simulated == runs:
        return f"{runs} runs, all simulated now"
    return f"{runs} runs, {simulated} of them simulated now" if simulated else f"{runs} runs, all found in the store"


def note_search(ask: Asker, scenarios: Sequence[Scenario], spec: Spec | None = None) -> tuple[list[dict[str, Any]], str]:
    """Tells the cautions of a search: those of ``scenarios``, its base and its ends, by model, what its runs kept, and that the draws of
    ``spec`` are too few.

    Returns their rows, for JSON, and the mark of the title line.
    """
    from retrompi.sim.cautions import mark
    from retrompi.studies.cautions import of_search
    from retrompi.studies.interval_reasons import unresolved

    found = [*of_search(ask.store, scenarios, ask.run_ids), *(unresolved(spec) if spec is not None else [])]
    return note_warnings(found), mark(found)
