"""``retrompi reproduce``: papers' studies, from simulation to report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from retrompi.cli.bundle import option, options
from retrompi.cli.options import Fidelity, Overlaid, RunOutput, Uncertain, Workers, note_outside, output_option
from retrompi.cli.output import Column, note, print_table, say

if TYPE_CHECKING:
    from retrompi.papers import Reproduction, Verdict
    from retrompi.papers.network_agreement import NetworkAgreement

ALL = "all"
_SUMMARY = (
    Column("paper", "paper"),
    Column("fit", "fit", right=True),
    Column("held_out", "held out", right=True),
    Column("unjudged", "not judged", right=True),
    Column("failed", "fails"),
)


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
    images: tuple[str, ...] = option("Also write every figure in this format (repeatable).", "--image", type=click.Choice(["png", "svg"]))


@click.command()
@click.argument("paper", metavar="KEY|FOLDER|all")
@options(given=ReproduceOptions, output=RunOutput)
def command(paper: str, given: ReproduceOptions, output: RunOutput) -> None:
    """Replay the experiments of a paper, judge its claims and write a report.

    Give the key of one of retrompi's papers, the folder of your own ('retrompi paper new'), or "all" for a report on every paper of
    retrompi with the verdict matrix on its front page. Prints the verdicts and the report's path. A failed claim is a finding shown in
    the report, not an error; 'retrompi validate' turns it into an exit code. With --uncertainty, curves have bands, and claims the
    third verdict of 'retrompi validate'. With --network, the front page and the last lines say how many verdicts are those of the
    engine's own network.

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
    from retrompi.cli.validate import keys_of, print_verdicts, rows_of, studies, with_agreement
    from retrompi.papers import judge_all
    from retrompi.papers.reproduction import WORKERS
    from retrompi.spec.outside_range import outside_of_points

    overlaid, spec = given.curves(output), given.spec()
    began = time.perf_counter()
    found = studies(keys, output, given.jobs, given.fidelity)
    beside = _beside_native(found, keys, given, output)
    if spec is not None:
        found = with_agreement(found, spec, output, given.jobs)
    spent = time.perf_counter() - began
    found = render.with_measured(found, overlaid)
    note_outside({m: told for s in found for m, told in outside_of_points(s.points).items()})
    written: render.Written | render.Atlas
    if not every:
        written = render.write(found[0], given.out, images=given.images)
        print_verdicts(found[0].verdicts, output)
    else:
        from retrompi.render.front import made

        written = render.write_atlas(found, given.out, made(output.open(), found, spent, given.jobs or WORKERS), images=given.images,
                                     beside=beside)  # fmt: skip
        verdicts = judge_all(found)
        if not output.text:
            output.emit(rows_of(verdicts), (), keys=keys_of(verdicts))
        else:
            _print_summary(found, verdicts)
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
    say(f"report: {written.page}")


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


def _counted(verdicts: Sequence[Verdict], name: str) -> dict[str, Any]:
    from retrompi.papers import summary

    by_use = {s.use: s for s in summary(verdicts)}
    row: dict[str, Any] = {"paper": name}
    for key, use in (("fit", "calibrate"), ("held_out", "validate")):
        part = by_use.get(use)
        row[key] = f"{part.passed} of {part.judged} pass ({part.passed / part.judged:.0%})" if part and part.judged else "none judged"
    row["unjudged"] = sum(v.verdict == "unjudged" and v.use in ("calibrate", "validate") for v in verdicts)
    row["failed"] = " ".join(v.id for v in verdicts if v.verdict == "fail")
    return row


def _print_summary(found: Sequence[Reproduction], verdicts: Sequence[Verdict]) -> None:
    """Counts per paper and in total; papers that were not replayed have only unjudged claims."""
    from retrompi.papers import summary
    from retrompi.papers.claims import by_paper, papers

    mine = {v.id: v for v in verdicts}
    rows = [_counted([mine[c.id] for c in by_paper(p) if c.id in mine], p) for p in papers()]
    print_table([*rows, {**_counted(verdicts, ALL), "failed": ""}], _SUMMARY)
    say("")
    for text in summary(verdicts):
        say(str(text))
