"""What the commands that answer a question by several runs share: their options, a scenario, and who simulates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from retrompi.base.errors import UsageError
from retrompi.cli.options import (
    complete_scenario,
    csv_option,
    debug_option,
    fresh_option,
    jobs_option,
    json_option,
    progress,
    store_option,
    warn,
)

if TYPE_CHECKING:
    from retrompi.store import Store
    from retrompi.studies.metrics import Metric
    from retrompi.studies.reading import Asker
    from retrompi.studies.run import Executor
    from retrompi.studies.scenario import Scenario

__all__ = ["answer_options", "asking", "count_line", "metric_for", "outside_lines", "scenario_argument", "share", "the_scenario", "workers"]

F = TypeVar("F", bound=Callable[..., Any])

scenario_argument = click.argument("scenario", metavar="SCENARIO", shell_complete=complete_scenario)
_metric = click.option("--metric", metavar="METRIC", help="What is looked at: time, time@1MiB, bandwidth@64KiB, latency, peak, mpi, ...")
_set = click.option(
    "--set", "sets", multiple=True, metavar="KEY=VALUE", help="Change the scenario first: a parameter, or model, mode, trace.reps, ..."
)


_EXECUTOR, _SCHEDULER = "retrompi.executor", "retrompi.scheduler"


def _keep(name: str) -> Callable[[click.Context, click.Parameter, str | None], None]:
    def keep(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
        ctx.meta[name] = value

    return keep


# Only `workers` reads these two: the commands need not hand them on.
_executor = click.option("--executor", type=click.Choice(["pool", "dask"]), expose_value=False, callback=_keep(_EXECUTOR),
                         help="Processes here (default) or a Dask cluster.")  # fmt: skip
_scheduler = click.option("--scheduler", metavar="URL", expose_value=False, callback=_keep(_SCHEDULER),
                          help="A Dask scheduler, e.g. tcp://host:8786 (default: a cluster of this machine).")  # fmt: skip


def answer_options(command: F) -> F:
    """The options of every such command, in one order."""
    for option in (debug_option, store_option, csv_option, json_option, fresh_option, _scheduler, _executor, jobs_option, _set, _metric):
        command = option(command)
    return command


def the_scenario(name: str, sets: Sequence[str]) -> Scenario:
    """The scenario with ``--set`` applied; refuses here, before anything runs, what no run could have."""
    from retrompi.spec import registry
    from retrompi.spec.model import parse_sets
    from retrompi.studies import case

    found = case.apply(registry.scenario(name), parse_sets(list(sets)))
    case.identity(found)
    return found


def metric_for(text: str | None, default: str, scenario: Scenario) -> Metric:
    """The metric by name, which the scenario's runs must be able to have."""
    from retrompi.studies import metrics

    found = metrics.parse(text or default)
    found.check(scenario)
    return found


def share(option: str, text: str) -> float:
    """``5%`` or ``0.05`` as 0.05; UsageError for what is neither."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*", text)
    if found is None:
        raise UsageError(f"{option} '{text}' is not a share; example: {option} 5%", code="bad-syntax")
    return float(found[1]) / (100 if found[2] else 1)


@contextmanager
def workers(jobs: int | None) -> Iterator[Executor]:
    """Who simulates: so many processes here (default: one for each processor), or what ``--executor`` says."""
    from retrompi.cli.sweep import executor_of
    from retrompi.studies.run import Here

    meta = click.get_current_context().meta
    kind, scheduler = meta.get(_EXECUTOR), meta.get(_SCHEDULER)
    alone = jobs == 1 and kind != "dask" and scheduler is None
    with Here() if alone else executor_of(kind, jobs, scheduler) as executor:
        yield executor


@contextmanager
def asking(
    label: str, store: Store, scenario: Scenario, metric: Metric, jobs: int | None, fresh: bool, expected: int = 0
) -> Iterator[Asker]:
    """An `Asker` with workers and progress."""
    from retrompi.studies.reading import Asker

    with progress(label) as report, workers(jobs) as executor:
        yield Asker(store, scenario, metric, executor, fresh, report, expected)


def count_line(counts: tuple[int, int]) -> str:
    """``34 runs, 30 of them simulated now``."""
    runs, simulated = counts
    if not runs:
        return "no run was possible"
    if simulated == runs:
        return f"{runs} runs, all simulated now"
    return f"{runs} runs, {simulated} of them simulated now" if simulated else f"{runs} runs, all found in the store"


def outside_lines(scenarios: Sequence[Scenario]) -> list[str]:
    """One warning on stderr for each model that is used outside of its calibrated range; the lines, for JSON."""
    from retrompi.spec.calibrated_range import outside, outside_of_trace
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
    return [f"{model}: {line}" for model, lines in told.items() for line in warn(lines, model)]
