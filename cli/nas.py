"""``retrompi nas``: Table 1 of lefevre-westrelin, simulated beside published."""

from __future__ import annotations

import click

from retrompi.cli.options import csv_option, debug_option, fresh_option, json_option, open_for, progress, store_option
from retrompi.cli.output import Column, as_text, emit, time_column


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:+.1%}"


COLUMNS = (
    Column("program", "program"),
    Column("system", "system"),
    Column("processes", "processes", right=True),
    Column("use", "use"),
    Column("published_s", "published, s", as_text, right=True),
    Column("time_s", "simulated, s", as_text, right=True),
    Column("error", "off", _percent, right=True),
    Column("published_speedup", "speed-up", as_text, right=True),
    Column("speedup", "simulated", lambda v: "" if v is None else f"{v:.2f}", right=True),
    time_column("replay_s", "replayed in"),
)


@click.command()
@fresh_option
@json_option
@csv_option
@store_option
@debug_option
@click.pass_context
def command(ctx: click.Context, fresh: bool, as_json: bool, as_csv: bool, store: str | None) -> None:
    """Replay the captured NAS benchmarks (IS and LU, classes A and B) on MPI-BIP and show their times beside the published ones.

    Times on 1 and 4 processes were fitted ('retrompi calibrate mpibip --nas'); those on 8 and 16 and the speed-ups are
    predictions. Memory shares are counted in the programs' loops (docs/nas.md).
    """
    from retrompi.papers import nas, reproduction

    with progress("NAS") as report:
        facts = reproduction.facts_of_experiment(nas.PAPER, "nas", open_for(ctx, store), fresh, report)
    rows = nas.table(facts["nas"])
    emit(rows, COLUMNS, as_json=as_json, as_csv=as_csv)
    if not (as_json or as_csv):
        told = nas.summary(rows)
        click.echo(f"\nheld out: {told['cells']} times, median error {told['median']:.1%}, largest {told['largest']:.1%}")
