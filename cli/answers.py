"""Common parts of the commands that need several runs of a scenario: options, the scenario, and the executor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import click

from retrompi.base.errors import UsageError
from retrompi.cli.bundle import option
from retrompi.cli.options import Effort, RunOutput, Workers, complete_scenario, note_outside, progress, share

if TYPE_CHECKING:
    from retrompi.studies.metrics import Metric
    from retrompi.studies.reading import Asker
    from retrompi.studies.run import Executor
    from retrompi.studies.scenario import Scenario

__all__ = ["AnswerOptions", "Executors", "asking", "count_line", "metric_for", "outside_lines", "scenario_argument", "share",
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
        yield Asker(store, scenario, metric, executor, output.fresh, report, expected)


def count_line(counts: tuple[int, int]) -> str:
    """``34 runs, 30 of them simulated now``."""
    runs, simulated = counts
    if not runs:
        return "no run was possible"
    if simulated == runs:
        return f"{runs} runs, all simulated now"
    return f"{runs} runs, {simulated} of them simulated now" if simulated else f"{runs} runs, all found in the store"


def outside_lines(scenarios: Sequence[Scenario]) -> list[str]:
    """`note_outside` for the models of all scenarios; the lines, for JSON."""
    from retrompi.spec.outside_range import outside, outside_of_trace
    from retrompi.studies import metrics
    from retrompi.studies.keys import ranks_of
    from retrompi.studies.scenario import trace_of

    told: dict[str, list[str]] = {}
    for s in scenarios:
        if s.trace is not None:
            lines = outside_of_trace(s.model, s.platform, trace_of(s), sets=s.sets)
        else:
            sizes = () if s.start or s.generator == "rinf1" else metrics.sizes_of(s)
            lines = outside(s.model, s.platform, sizes=sizes, ranks=ranks_of(s), sets=s.sets)
        told.setdefault(s.model, [])
        told[s.model] += [line for line in lines if line not in told[s.model]]
    note_outside(told)
    return [f"{model}: {line}" for model, lines in told.items() for line in lines]
