"""``retrompi optimise``: the best value of a metric over several keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from retrompi.base.units import format_quantity
from retrompi.cli.answers import AnswerOptions, asking, count_line, metric_for, note_search, scenario_argument, the_scenario
from retrompi.cli.bundle import option, options
from retrompi.cli.options import RunOutput
from retrompi.cli.output import Column, print_csv, print_json, print_table, say

if TYPE_CHECKING:
    from retrompi.studies.metrics import Metric
    from retrompi.studies.optimise import Optimum, Over

_SHOWN = 8


@dataclass(frozen=True)
class OptimiseOptions(AnswerOptions):
    """Options of ``retrompi optimise``."""

    over: tuple[str, ...] = option("Key and what it may be: a range or a list, e.g. wmpi.packet=16KiB..1MiB (repeatable).",
                                   required=True, metavar="KEY=LOW..HIGH|A,B")  # fmt: skip
    trials: int = option("Number of points to try.", type=click.IntRange(1, 100_000), metavar="N", default=60)
    seed: int = option("Seed of the search (the runs' own: --set seed=N).", "--search-seed", type=click.IntRange(0, 2**32 - 1),
                       metavar="SEED", default=1)  # fmt: skip


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
    from retrompi.studies import case
    from retrompi.studies.optimise import optimise, space

    base = the_scenario(scenario, given.sets)
    overs = space(base, given.over)
    wanted = metric_for(given.metric, "time", base)
    ends = [base, *(case.apply(base, {over.key: end}) for over in overs for end in over.ends)]
    with asking("optimise", base, wanted, given, output, expected=given.trials + 1) as ask:
        found = optimise(ask, overs, trials=given.trials, seed=given.seed, more_is_better=wanted.more_is_better)
        warnings, mark = note_search(ask, ends)
    rows = [t.row(overs, wanted) for t in (found.base, *found.trials)]
    if output.as_json:
        best = None if found.best is None else found.best.row(overs, wanted)
        print_json({"scenario": base.name, "metric": wanted.name, "unit": wanted.unit, "seed": given.seed, "best": best, "trials": rows,
                    "warnings": warnings})  # fmt: skip
    elif output.as_csv:
        print_csv(rows, list(rows[0]))
    else:
        _print(found, overs, wanted, mark)
    if found.best is None:
        ctx.exit(1)


def _print(found: Optimum, overs: list[Over], metric: Metric, mark: str) -> None:
    """The best points, how far they are from the scenario as it is, and what it took."""
    sign = -1 if metric.more_is_better else 1
    having = sorted((t for t in found.trials if t.reading.value is not None), key=lambda t: (sign * (t.reading.value or 0.0), t.number))
    different = list({tuple(t.values.items()): t for t in reversed(having)}.values())[::-1]
    say(f"{metric.name}: {metric.label}, the {'largest' if metric.more_is_better else 'smallest'} of {len(found.trials)} trials{mark}")
    columns = (Column("trial", "trial", right=True), *(Column(o.key, o.key, right=True) for o in overs),
               Column(metric.name, metric.name, lambda v: "" if v is None else format_quantity(v, metric.unit), right=True),
               Column("run_id", "run", right=True))  # fmt: skip
    rows = [t.row(overs, metric) for t in different[:_SHOWN]]
    print_table([*rows, {**found.base.row(overs, metric), "trial": "as it is"}], columns, empty="no trial has a number")
    lost = [t for t in found.trials if t.reading.value is None]
    if lost:
        say(f"{len(lost)} trials have no number, the first at {' '.join(f'{k}={v}' for k, v in lost[0].values.items())}: "
            f"{lost[0].reading.told()}"[:300])  # fmt: skip
    say(count_line(found.counts))
