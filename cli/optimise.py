"""``retrompi optimise``: the best value of a metric over several keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from retrompi.base.units import format_quantity
from retrompi.cli.answers import AnswerOptions, asking_of, count_line, scenario_argument, the_scenario
from retrompi.cli.bundle import option, options
from retrompi.cli.options import RunOutput
from retrompi.cli.output import Column, note_warnings, print_csv, print_json, print_table, say

if TYPE_CHECKING:
    from retrompi.studies.define.axes import Axis
    from retrompi.studies.define.metrics import Metric
    from retrompi.studies.search.optimise import Optimum

_SHOWN = 8


@dataclass(frozen=True)
class OptimiseOptions(AnswerOptions):
    """Options of ``retrompi optimise``."""

    over: tuple[str, ...] = option("Key and what it may be: a range or a list, e.g. wmpi.packet=16KiB..1MiB (repeatable).",
                                   required=True, metavar="KEY=LOW..HIGH|A,B")
    trials: int = option("Number of points to try.", type=click.IntRange(1, 100_000), metavar="N", default=60)
    seed: int = option("Seed of the search (the runs' own: --set seed=N).", "--search-seed", type=click.IntRange(0, 2**32 - 1),
                       metavar="SEED", default=1)


@click.command()
@scenario_argument
@options(given=OptimiseOptions, output=RunOutput)
@click.pass_context
def command(ctx: click.Context, scenario: str, given: OptimiseOptions, output: RunOutput) -> None:
    """Find the best value of a metric over several keys: the least time, the largest bandwidth.

    Optuna proposes points near the best ones known. Each is simulated or found in the store, so the same command again simulates
    nothing, and more --trials continue the search. The result depends on --search-seed, not on --jobs. CSV lists every point. Exit code 1
    means that no run has a number.

    \b
    Examples:
      retrompi optimise bf-wmpi-shared --metric time@1MiB --over wmpi.packet=16KiB..512KiB --over wmpi.pool=1MiB..16MiB
      retrompi optimise bf-wmpi-distributed --metric bandwidth@64KiB --over model=wmpi,hpvm --over trace.reps=1..4 --trials 20
    """
    from retrompi.api.answering import metric_of
    from retrompi.api.searches import search_of
    from retrompi.sim.cautions import mark
    from retrompi.studies.search.optimise import space

    base = the_scenario(scenario, given.sets)
    overs = space(base, given.over)
    asking, wanted = asking_of("optimise", given, output), metric_of(given.metric, "time", base)
    told = search_of(base, wanted, overs, asking, trials=given.trials, seed=given.seed)
    warnings = note_warnings(told.warnings)
    if output.as_json:
        best = None if told.found.best is None else told.best
        print_json({"scenario": base.name, "metric": told.metric.name, "unit": told.metric.unit, "seed": given.seed, "best": best,
                    "trials": told.rows, "warnings": warnings})
    elif output.as_csv:
        print_csv(told.rows, list(told.rows[0]))
    else:
        _print(told.found, overs, told.metric, mark(told.warnings))
    if told.found.best is None:
        ctx.exit(1)


def _print(found: Optimum, overs: list[Axis], metric: Metric, mark: str) -> None:
    """The best points, how far they are from the scenario as it is, and what it took."""
    sign = -1 if metric.more_is_better else 1
    having = sorted((t for t in found.trials if t.reading.value is not None), key=lambda t: (sign * (t.reading.value or 0.0), t.number))
    different = list({tuple(t.values.items()): t for t in reversed(having)}.values())[::-1]
    say(f"{metric.name}: {metric.label}, the {'largest' if metric.more_is_better else 'smallest'} of {len(found.trials)} trials{mark}")
    columns = (Column("trial", "trial", right=True), *(Column(o.key, o.key, right=True) for o in overs),
               Column(metric.name, metric.name, lambda v: "" if v is None else format_quantity(v, metric.unit), right=True),
               Column("run_id", "run", right=True))
    rows = [t.row(overs, metric) for t in different[:_SHOWN]]
    print_table([*rows, {**found.base.row(overs, metric), "trial": "as it is"}], columns, empty="no trial has a number")
    lost = [t for t in found.trials if t.reading.value is None]
    if lost:
        say(f"{len(lost)} trials have no number, the first at {' '.join(f'{k}={v}' for k, v in lost[0].values.items())}: "
            f"{lost[0].reading.outcome_text()}"[:300])
    say(count_line(found.counts))
