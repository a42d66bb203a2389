"""``retrompi validate``: judges every published statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from retrompi.cli.bundle import option, options
from retrompi.cli.options import RunOutput, Workers, complete_model, progress
from retrompi.cli.output import Column, Output, as_text, say

if TYPE_CHECKING:
    from retrompi.papers import Reproduction, Verdict

KEYS = ("id", "system", "use", "verdict", "observed", "low", "high", "unit", "note")
COLUMNS = (
    Column("id", "id"),
    Column("use", "use"),
    Column("verdict", "verdict"),
    Column("system", "system"),
    Column("observed", "observed"),
    Column("published", "published"),
    Column("unit", "unit"),
    Column("note", "note"),
)


def published(row: Mapping[str, Any]) -> str:
    """The published range of a verdict's row."""
    low, high = row["low"], row["high"]
    if low is None and high is None:
        return ""
    return as_text(low) if low == high else f"{as_text(low)}..{as_text(high)}"


def print_verdicts(verdicts: Sequence[Verdict], output: Output, *, all_rows: bool = False) -> None:
    """The verdicts as JSON, CSV, or a table with a count for fit and held-out claims below it.

    The table lists judged and excluded claims; ``all_rows`` adds the others. JSON and CSV contain all.
    """
    from retrompi.papers import summary

    rows = [v.row() for v in verdicts]
    shown: list[dict[str, Any]] = rows
    if output.text:
        shown = [{**row, "published": published(row)} for row in rows if all_rows or _interesting(row)]
    output.emit(shown, COLUMNS, keys=KEYS, empty="no claims to judge")
    if output.text:
        say("")
        for line in summary(verdicts):
            say(str(line))


def _interesting(row: Mapping[str, Any]) -> bool:
    return bool(row["verdict"] != "unjudged" or row["use"] == "exclude")


def studies(keys: Sequence[str], output: RunOutput, jobs: int | None, fidelity: str = "mechanism") -> list[Reproduction]:
    """The replayed papers, which are at hand, at a rung of the fidelity ladder; ``jobs`` at a time."""
    from retrompi.papers import run_papers
    from retrompi.papers.reproduction import WORKERS

    opened = output.open()
    with progress(keys[0] if len(keys) == 1 else f"{len(keys)} studies") as report:
        return run_papers(keys, opened, output.fresh, report, workers=jobs or WORKERS, fidelity=fidelity)


@dataclass(frozen=True)
class ValidateOptions(Workers):
    """Options of ``retrompi validate``."""

    paper: str | None = option("Paper: only its claims (default: all).", metavar="KEY|FOLDER")
    model: str | None = option(
        "Runtime model: judge it by its own evidence.toml instead of the papers.", "-m", "--model", metavar="NAME|FOLDER",
        shell_complete=complete_model)
    platform: str = option("Platform: with --model, the one to judge it on.", "-p", "--platform", default="nt-pair", metavar="NAME|FILE")
    all_rows: bool = option("Also list claims that are not judged (not simulated yet, definitions).", "--all")


@click.command()
@options(given=ValidateOptions, output=RunOutput)
@click.pass_context
def command(ctx: click.Context, given: ValidateOptions, output: RunOutput) -> None:
    """Judge the published claims against simulated results.

    Runs that are not in the store are simulated. Claims used for the fit and held-out claims are counted separately. Exit code 1
    means that a claim fails.

    \b
    Examples:
      retrompi validate --paper baker-fox
      retrompi validate --paper ./mypaper
      retrompi validate --all --csv
    """
    from retrompi.papers import all_papers, judge_all, of_curves
    from retrompi.papers.paper import working_with

    if given.model is not None:
        from retrompi.papers.evidence import judge_model

        verdicts = judge_model(given.model, given.platform, output.open(), fresh=output.fresh)
        print_verdicts(verdicts, output, all_rows=given.all_rows)
        if any(v.verdict == "fail" for v in verdicts):
            ctx.exit(1)
        return
    with working_with(*(all_papers() if given.paper is None else [given.paper])) as found:
        done = studies([plan.key for plan in found], output, given.jobs)
        verdicts = done[0].verdicts if given.paper is not None else [*judge_all(done), *of_curves(done)]
    print_verdicts(verdicts, output, all_rows=given.all_rows)
    if any(v.verdict == "fail" for v in verdicts):
        ctx.exit(1)
