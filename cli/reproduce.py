"""``retrompi reproduce``: papers' studies, from simulation to report."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import click

from retrompi.cli.bundle import option, options
from retrompi.cli.options import Fidelity, Overlaid, RunOutput, Uncertain, Workers, output_option, progress
from retrompi.cli.output import Column, note, note_warnings, print_table, say

_DIFFERING = (
    Column("id", "id"),
    Column("native", "native"),
    Column("native_observed", "observed", right=True),
    Column("verdict", "this network"),
    Column("observed", "observed", right=True),
    Column("reason", "why"),
)


@dataclass(frozen=True)
class ReproduceOptions(Uncertain, Fidelity, Overlaid, Workers):
    """Options of ``retrompi reproduce``."""

    out: Path = output_option("the folder of the report", folder=True, metavar="FOLDER", default=Path("report"))
    full: bool = option("Print all of it instead of a summary: every verdict.", "--full")
    images: tuple[str, ...] = option("Also write every figure in this format (repeatable).", "--image", type=click.Choice(["png", "svg"]))


@click.command()
@click.argument("paper", metavar="KEY|FOLDER|all")
@options(given=ReproduceOptions, output=RunOutput)
def command(paper: str, given: ReproduceOptions, output: RunOutput) -> None:
    """Replay the experiments of a paper, judge its claims and write a report.

    Give the key of one of retrompi's papers, the folder of your own ('retrompi paper new'), or "all" for a report on every paper of
    retrompi with the verdict matrix on its front page. Prints a summary and the report's path; --full, --csv and --json have every
    verdict. A failed claim is a finding shown in the report, not an error; 'retrompi validate' turns it into an exit code. With
    --uncertainty, curves have bands, and claims the third verdict of 'retrompi validate'. With --network, the front page and the last
    lines say how many verdicts are those of the engine's own network.

    \b
    Examples:
      retrompi reproduce baker-fox
      retrompi reproduce ./mypaper -o report
      retrompi reproduce all -o report
      retrompi reproduce all --network simgrid -o report
      retrompi reproduce baker-fox --measured 12@pingpong --image svg
    """
    from retrompi.api.judging import ALL, Judging, reproduce_of
    from retrompi.cli.validate import keys_of, print_counts, print_digest, print_verdicts
    from retrompi.spec.conditions.network_model import NATIVE

    spec = given.spec()
    overlaid = given.curves(output)
    told = reproduce_of(
        paper, given.out, Judging(output.open(), output.fresh, given.jobs, progress), fidelity=given.fidelity,
        network=output.network or NATIVE, spec=spec, overlaid=overlaid, images=given.images,
    )
    note_warnings(told.warnings)
    if not output.text and paper == ALL:
        output.emit(told.rows, (), keys=keys_of(told))
    elif not output.text or given.full or (spec is not None and paper != ALL):
        print_verdicts(told, output)
    elif paper == ALL:
        print_counts(told.found)
    else:
        print_digest(told.papers[0])
        say("")
    if told.written.missing:
        click.echo(told.written.missing, err=True)
    if not output.text:
        note(f"report: {told.page}")
        return
    if told.beside is not None:
        say(str(told.beside))
        print_table([d.row(told.beside.network) for d in told.beside.differing], _DIFFERING)
    runs, simulated = told.runs
    say(f"{runs} runs: {simulated} simulated, {runs - simulated} found in the store")
    click.echo(f"to open the report: {Path(sys.executable).name} -m webbrowser {told.page}")
    click.echo(f"report: {told.page}")
