"""``retrompi share``: a scenario's jobs run together and each alone."""

from __future__ import annotations

import click

from retrompi.cli.bundle import options
from retrompi.cli.options import RunOutput, complete_scenario, progress
from retrompi.cli.output import Column, time_column
from retrompi.spec.declare.outcome import Outcome

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
@options(output=RunOutput)
@click.pass_context
def command(ctx: click.Context, scenario: str, output: RunOutput) -> None:
    """Run a scenario's jobs together and each alone, and show their slow-down.

    SCENARIO (a name or a TOML file) lists the additional jobs in its [[job]] tables. The time of a background job is the mean of
    its completed runs. Exit code 1 means that a job did not complete.

    \b
    Examples:
      retrompi share two-jobs-on-a-machine
      retrompi share two-jobs-on-a-hub --csv
    """
    from retrompi.studies.compare import sharing
    from retrompi.studies.define import catalogue

    s = catalogue.scenario(scenario)
    with progress("jobs") as report:
        rows = sharing.compare(output.open(), s, fresh=output.fresh, report=report)
    output.emit(rows, COLUMNS, keys=KEYS)
    bad = [r for r in rows if Outcome(r["outcome"]).exit_code]
    for r in bad:
        click.echo(f"{r['name']}: {r['outcome']}: {r['detail']}", err=True)
    if bad:
        ctx.exit(1)
