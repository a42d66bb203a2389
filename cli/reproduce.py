"""``retrompi reproduce``: a paper's study from the first simulation to the report."""

from __future__ import annotations

from pathlib import Path

import click

from retrompi.cli.options import csv_option, debug_option, fidelity_option, fresh_option, json_option, store_option, warn
from retrompi.cli.output import note


@click.command()
@click.argument("paper")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("report"),
    show_default=True,
    help="Folder the report is written to.",
)
@click.option("--image", "images", type=click.Choice(["png", "svg"]), multiple=True, help="Also write every figure so.")
@fidelity_option
@fresh_option
@json_option
@csv_option
@store_option
@debug_option
@click.pass_context
def command(
    ctx: click.Context,
    paper: str,
    out: Path,
    images: tuple[str, ...],
    fidelity: str,
    fresh: bool,
    as_json: bool,
    as_csv: bool,
    store: str | None,
) -> None:
    """Replay a paper's study, judge its statements and write the report.

    PAPER is a key such as baker-fox. Prints the verdict table and the report's path; a failing statement is a
    finding shown there, not an error (use 'retrompi validate' for an exit code).
    """
    from retrompi import report
    from retrompi.calibrated import outside_of_points
    from retrompi.cli.validate import print_verdicts, studies

    study = studies(ctx, paper, store, fresh, fidelity)[0]
    for model, lines in outside_of_points(study.points).items():
        warn(lines, model)
    written = report.write(study, out, images=images)
    print_verdicts(study.verdicts, as_json=as_json, as_csv=as_csv)
    if written.missing:
        click.echo(written.missing, err=True)
    if as_json or as_csv:
        note(f"report: {written.page}")
        return
    found = len(study.runs) - study.simulated
    click.echo(f"{len(study.runs)} runs: {study.simulated} simulated, {found} found in the store")
    click.echo(f"report: {written.page}")
