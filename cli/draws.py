"""Common to the commands with --uncertainty: drawing, columns of intervals, and the lines printed about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from retrompi.base.units import format_span
from retrompi.cli.options import progress
from retrompi.cli.output import Column, say
from retrompi.spec.declare.outcome import Outcome

if TYPE_CHECKING:
    from retrompi.sim.resolved import Resolved
    from retrompi.store import Store
    from retrompi.studies.draws.uncertainty import Ensemble, Spec

__all__ = ["draw", "drawing", "interval_column", "note_draws", "note_worth", "percent"]


def percent(level: float) -> str:
    """``90 %``; a level that is nearly all is not rounded to all."""
    return f"{100 * level:.12g} %"


@contextmanager
def drawing() -> Iterator[Callable[[int, int, str], None]]:
    """Progress of draws; after an interruption a line says how many are stored."""
    done = [0, 0]
    with progress("draws") as report:

        def report_draw(count: int, total: int, outcome: str) -> None:
            done[:] = count, total
            report(count, total, outcome)

        try:
            yield report_draw
        except KeyboardInterrupt:
            if done[1]:
                click.echo(f"{done[0]} of {done[1]} runs are stored; run the same command again to continue", err=True)
            raise


def draw(store: Store, asked: Sequence[Resolved], spec: Spec, fresh: bool = False) -> list[Ensemble]:
    """The draws of each question, with progress."""
    from retrompi.studies.draws.uncertainty import ensemble

    with drawing() as report:
        return ensemble(store, asked, spec, report, fresh)


def interval_column(name: str, level: float, unit: str, scale: float = 1.0) -> Column:
    """The column of ``NAME_low`` to ``NAME_high``; a row has both under the key ``NAME_interval``. ``scale`` converts to base units."""

    def show(value: Any) -> str:
        low, high = value or (None, None)
        return "" if low is None or high is None else format_span(low * scale, high * scale, unit)

    return Column(f"{name}_interval", f"{percent(level)} interval", show, right=True)


def note_worth(drawn: Ensemble, metrics: Sequence[str]) -> None:
    """On stderr, for each metric: which parameters would make it more certain, if the draws show any."""
    from retrompi.studies.define.metrics import parse
    from retrompi.studies.search.worth import worth_lines

    for name in dict.fromkeys(metrics):
        for line in worth_lines(drawn, parse(name)):
            say(f"note: {line}", err=True)


def note_draws(ensembles: Sequence[Ensemble]) -> None:
    """On stderr: what the intervals contain, and the draws that did not complete."""
    from retrompi.studies.draws.posteriors import NOT_DETERMINED

    spec = ensembles[0].spec
    paths = {p.path for e in ensembles for p in e.drawn.priors}
    seen = {path for e in ensembles for path, left in e.seen.items() if left < NOT_DETERMINED}
    known = f" ({len(seen)} of them narrowed by calibrations)" if seen else ""
    discrepancy = ", and the model's own error" if spec.discrepancy else ""
    drawn = f"{len(paths)} parameter{'s' if len(paths) != 1 else ''}{known}{discrepancy}"
    say(f"note: {percent(spec.level)} intervals over {spec.draws} draws of {drawn} (docs/uncertainty.md)", err=True)
    for line in dict.fromkeys(line for e in ensembles for line in e.drawn.applied.warnings()):
        say(f"warning: {line}", err=True)
    ended = Counter(outcome for e in ensembles for outcome in e.outcomes if outcome != Outcome.COMPLETED)
    if ended:
        total = spec.draws * len(ensembles)
        how = ", ".join(f"{n} {outcome}" for outcome, n in ended.most_common())
        say(f"note: {total - sum(ended.values())} of {total} draws completed ({how}); the intervals are of those", err=True)
