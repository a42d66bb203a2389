"""``retrompi validate``: every published statement judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from retrompi.cli.options import csv_option, debug_option, fresh_option, jobs_option, json_option, open_for, progress, store_option
from retrompi.cli.output import Column, as_text, emit

if TYPE_CHECKING:
    from retrompi.papers import Reproduction, Verdict

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


def print_verdicts(verdicts: Sequence[Verdict], *, as_json: bool, as_csv: bool, all_rows: bool = False) -> None:
    """The verdicts as JSON, CSV, or a table with a count for fit and held-out claims below it.

    The table has what was judged and what is excluded; ``all_rows`` adds the rest. JSON and CSV have everything.
    """
    from retrompi.papers import summary

    rows = [v.row() for v in verdicts]
    shown: list[dict[str, Any]] = rows
    if not (as_json or as_csv):
        shown = [{**row, "published": published(row)} for row in rows if all_rows or _interesting(row)]
    emit(shown, COLUMNS, as_json=as_json, as_csv=as_csv, keys=KEYS, empty="no claims to judge")
    if not (as_json or as_csv):
        click.echo("")
        for line in summary(verdicts):
            click.echo(str(line))


def _interesting(row: Mapping[str, Any]) -> bool:
    return bool(row["verdict"] != "unjudged" or row["use"] == "exclude")


def studies(
    ctx: click.Context, paper: str | None, store: str | None, fresh: bool, jobs: int | None = None, fidelity: str = "mechanism"
) -> list[Reproduction]:
    """The replayed study of ``paper``, or of every paper that is modelled, at a rung of the fidelity ladder; ``jobs`` at a time."""
    from retrompi.papers import all_papers, find_paper, run_papers
    from retrompi.papers.reproduction import WORKERS

    keys = [find_paper(paper).key] if paper is not None else list(all_papers())
    opened = open_for(ctx, store)
    with progress(keys[0] if len(keys) == 1 else f"{len(keys)} studies") as report:
        return run_papers(keys, opened, fresh, report, workers=jobs or WORKERS, fidelity=fidelity)


@click.command()
@click.option("--paper", metavar="KEY", help="Only this paper's statements (default: all).")
@click.option("--model", metavar="NAME|FOLDER", help="Judge this model by its own evidence.toml instead of the papers.")
@click.option("-p", "--platform", default="nt-pair", show_default=True, help="With --model: the machine room.")
@click.option("--all", "all_rows", is_flag=True, help="List also what is not judged (not simulated yet, definitions).")
@jobs_option
@fresh_option
@json_option
@csv_option
@store_option
@debug_option
@click.pass_context
def command(
    ctx: click.Context,
    paper: str | None,
    model: str | None,
    platform: str,
    all_rows: bool,
    jobs: int | None,
    fresh: bool,
    as_json: bool,
    as_csv: bool,
    store: str | None,
) -> None:
    """Judge the published statements against simulated points.

    What is not in the store yet is simulated. Fit and held-out claims are counted apart. Ends with exit code 1
    when a statement fails.
    """
    from retrompi.papers import judge_all

    if model is not None:
        from retrompi.papers.evidence import judge_model

        verdicts = judge_model(model, platform, open_for(ctx, store), fresh=fresh)
        print_verdicts(verdicts, as_json=as_json, as_csv=as_csv, all_rows=all_rows)
        if any(v.verdict == "fail" for v in verdicts):
            ctx.exit(1)
        return
    done = studies(ctx, paper, store, fresh, jobs)
    verdicts = done[0].verdicts if paper is not None else judge_all(done)
    print_verdicts(verdicts, as_json=as_json, as_csv=as_csv, all_rows=all_rows)
    if any(v.verdict == "fail" for v in verdicts):
        ctx.exit(1)
