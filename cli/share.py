"""``retrompi share``: a scenario's jobs together and each alone."""

from __future__ import annotations

import click

from retrompi.cli.options import complete_scenario, csv_option, debug_option, fresh_option, json_option, open_for, progress, store_option
from retrompi.cli.output import Column, emit, time_column

COLUMNS = (
    Column("name", "job"),
    Column("model", "model"),
    Column("trace", "trace"),
    time_column("start_s", "starts"),
    Column("outcome", "outcome"),
    Column("runs", "runs", right=True),
    time_column("alone_s", "alone"),
    time_column("together_s", "together"),
    Column("slowdown", "slow-down", lambda v: "" if v is None else f"{v:.3f}", right=True),
)
KEYS = ("name", "model", "mode", "trace", "start_s", "outcome", "detail", "runs", "alone_s", "together_s", "slowdown")


@click.command()
@click.argument("scenario", shell_complete=complete_scenario)
@fresh_option
@json_option
@csv_option
@store_option
@debug_option
@click.pass_context
def command(ctx: click.Context, scenario: str, fresh: bool, as_json: bool, as_csv: bool, store: str | None) -> None:
    """Run a scenario's jobs together and each alone, and show how much they slow each other down.

    SCENARIO (a name or a TOML file) has the further jobs in its [[job]] tables. The time of a background job is the mean of its
    runs that ended. Ends with exit code 1 when a job did not complete.
    """
    from retrompi.spec import registry
    from retrompi.studies import sharing

    s = registry.scenario(scenario)
    with progress("jobs") as report:
        rows = sharing.compare(open_for(ctx, store), s, fresh=fresh, report=report)
    emit(rows, COLUMNS, as_json=as_json, as_csv=as_csv, keys=KEYS)
    bad = [r for r in rows if r["outcome"] not in ("completed", "ended")]
    for r in bad:
        click.echo(f"{r['name']}: {r['outcome']}: {r['detail']}", err=True)
    if bad:
        ctx.exit(1)
