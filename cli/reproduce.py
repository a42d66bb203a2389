"""``retrompi reproduce``: papers' studies, from simulation to report."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from retrompi.cli.bundle import option, options
from retrompi.cli.options import Fidelity, Overlaid, RunOutput, Uncertain, Workers, output_option
from retrompi.cli.output import Column, note, note_warnings, print_table, say

if TYPE_CHECKING:
    from retrompi.papers import Reproduction
    from retrompi.papers.network_agreement import NetworkAgreement

ALL = "all"
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
    from retrompi.papers import all_papers
    from retrompi.papers.paper import working_with

    names = [*all_papers()] if paper == ALL else [paper]
    with working_with(*names) as found:
        _reproduce([plan.key for plan in found], paper == ALL, given, output)


def _reproduce(keys: Sequence[str], every: bool, given: ReproduceOptions, output: RunOutput) -> None:
    """Replays the papers, which are at hand, and writes their report; ``every``: with a front page."""
    from retrompi import render
    from retrompi.cli.validate import keys_of, print_counts, print_digest, print_verdicts, rows_of, studies, with_agreement
    from retrompi.papers import judge_all
    from retrompi.papers.reproduction import WORKERS
    from retrompi.sim.cautions import gathered, of_points

    overlaid, spec = given.curves(output), given.spec()
    began = time.perf_counter()
    found = studies(keys, output, given.jobs, given.fidelity)
    beside = _beside_native(found, keys, given, output)
    if spec is not None:
        found = with_agreement(found, spec, output, given.jobs)
    spent = time.perf_counter() - began
    found = render.with_measured(found, overlaid)
    note_warnings(gathered((m, some) for s in found for m, some in of_points(s.points).items()))
    written: render.Written | render.Atlas
    if not every:
        written = render.write(found[0], given.out, images=given.images)
        if not output.text or given.full or spec is not None:
            print_verdicts(found[0].verdicts, output)
        else:
            print_digest(found[0])
            say("")
    else:
        from retrompi.render.front import made

        written = render.write_atlas(found, given.out, made(output.open(), found, spent, given.jobs or WORKERS), images=given.images,
                                     beside=beside)  # fmt: skip
        verdicts = judge_all(found)
        if not output.text:
            output.emit(rows_of(verdicts), (), keys=keys_of(verdicts))
        elif given.full:
            print_verdicts(verdicts, output)
        else:
            print_counts(verdicts)
    if written.missing:
        click.echo(written.missing, err=True)
    if not output.text:
        note(f"report: {written.page}")
        return
    if beside is not None:
        say(str(beside))
        print_table([d.row(beside.network) for d in beside.differing], _DIFFERING)
    runs = {i for s in found for i in s.runs}
    simulated = sum(s.simulated for s in found)
    say(f"{len(runs)} runs: {simulated} simulated, {len(runs) - simulated} found in the store")
    click.echo(f"to open the report: {Path(sys.executable).name} -m webbrowser {written.page}")
    click.echo(f"report: {written.page}")


def _beside_native(
    found: Sequence[Reproduction], keys: Sequence[str], given: ReproduceOptions, output: RunOutput
) -> NetworkAgreement | None:
    """The verdicts under another network beside those under the engine's own; None if that is what carried the frames."""
    from retrompi.cli.validate import studies
    from retrompi.papers.network_agreement import network_agreement
    from retrompi.spec.network_model import FLUID, NATIVE, using

    network = output.network or NATIVE
    if network == NATIVE:
        return None
    with using(NATIVE):
        own = studies(keys, output, given.jobs, given.fidelity)
    first = network_agreement(network, own, found)
    if not first.differing or network == FLUID:
        return first
    with using(FLUID):
        fluid = studies(list(dict.fromkeys(d.paper for d in first.differing)), output, given.jobs, given.fidelity)
    return network_agreement(network, own, found, fluid)
