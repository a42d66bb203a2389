"""``retrompi validate``: every published statement judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from retrompi.cli.bundle import option, options
from retrompi.cli.options import RunOutput, Workers, progress
from retrompi.cli.output import Column, Output, as_text

if TYPE_CHECKING:
    from retrompi.papers import Study, Verdict

KEYS = ("id", "system", "use", "verdict", "observed", "low", "high", "unit", "note")
COLUMNS = (
    Column("id", "id"),
    Column("use", "use"),
    Column("verdict", "verdict"),
    Column("system", "system", lambda v: _cut(str(v), 28)),
    Column("observed", "observed", lambda v: _cut(as_text(v), 28)),
    Column("published", "published"),
    Column("unit", "unit"),
    Column("note", "note"),
)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def published(row: Mapping[str, Any]) -> str:
    """The published range of a verdict's row."""
    low, high = row["low"], row["high"]
    if low is None and high is None:
        return ""
    return as_text(low) if low == high else f"{as_text(low)}..{as_text(high)}"


def print_verdicts(verdicts: Sequence[Verdict], output: Output, *, all_rows: bool = False) -> None:
    """The verdicts as JSON, CSV, or a table with a count for fit and held-out claims below it.

    The table has what was judged and what is excluded; ``all_rows`` adds the rest. JSON and CSV have everything.
    """
    from retrompi.papers import summary

    rows = [v.row() for v in verdicts]
    shown: list[dict[str, Any]] = rows
    if output.text:
        shown = [{**row, "published": published(row)} for row in rows if all_rows or _interesting(row)]
    output.emit(shown, COLUMNS, keys=KEYS, empty="no claims to judge")
    if output.text:
        click.echo("")
        for line in summary(verdicts):
            click.echo(str(line))


def _interesting(row: Mapping[str, Any]) -> bool:
    return bool(row["verdict"] != "unjudged" or row["use"] == "exclude")


def studies(paper: str | None, output: RunOutput, jobs: int | None, fidelity: str = "mechanism") -> list[Study]:
    """The replayed study of ``paper``, or of every paper that is modelled, at a rung of the fidelity ladder; ``jobs`` at a time."""
    from retrompi.papers import run_papers, setup, setups
    from retrompi.papers.study import WORKERS

    keys = [setup(paper).paper] if paper is not None else list(setups())
    opened = output.open()
    with progress(keys[0] if len(keys) == 1 else f"{len(keys)} studies") as report:
        return run_papers(keys, opened, output.fresh, report, workers=jobs or WORKERS, fidelity=fidelity)


@dataclass(frozen=True)
class ValidateOptions(Workers):
    """Options of ``retrompi validate``."""

    paper: str | None = option("Only this paper's statements (default: all).", metavar="KEY")
    model: str | None = option("Judge this model by its own evidence.toml instead of the papers.", metavar="NAME|FOLDER")
    platform: str = option("With --model: the machine room.", "-p", "--platform", default="nt-pair")
    all_rows: bool = option("List also what is not judged (not simulated yet, definitions).", "--all")


@click.command()
@options(given=ValidateOptions, output=RunOutput)
@click.pass_context
def command(ctx: click.Context, given: ValidateOptions, output: RunOutput) -> None:
    """Judge the published statements against simulated points.

    What is not in the store yet is simulated. Fit and held-out claims are counted apart. Ends with exit code 1
    when a statement fails.
    """
    from retrompi.papers import judge_all

    if given.model is not None:
        from retrompi.papers.evidence import judge_model

        verdicts = judge_model(given.model, given.platform, output.open(), fresh=output.fresh)
        print_verdicts(verdicts, output, all_rows=given.all_rows)
        if any(v.verdict == "fail" for v in verdicts):
            ctx.exit(1)
        return
    done = studies(given.paper, output, given.jobs)
    verdicts = done[0].verdicts if given.paper is not None else judge_all(done)
    print_verdicts(verdicts, output, all_rows=given.all_rows)
    if any(v.verdict == "fail" for v in verdicts):
        ctx.exit(1)
