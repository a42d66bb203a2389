"""``retrompi validate``: judges every published statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from retrompi.base.errors import UsageError
from retrompi.cli.bundle import option, options
from retrompi.cli.options import RunOutput, Uncertain, Workers, complete_model, progress
from retrompi.cli.output import Column, Output, as_text, print_table, say

if TYPE_CHECKING:
    from retrompi.api.judging import Verdicts
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


THIRD = (
    Column("agreement", "third verdict"),
    Column("interval", "interval", right=True),
)
"""The columns of the third verdict, after that of pass and fail, and after the number."""


def published_range(row: Mapping[str, Any]) -> str:
    """The published range of a verdict's row."""
    low, high = row["low"], row["high"]
    if low is None and high is None:
        return ""
    return as_text(low) if low == high else f"{as_text(low)}..{as_text(high)}"


def print_verdicts(told: Verdicts, output: Output, *, all_rows: bool = False) -> None:
    """The verdicts as JSON, CSV, or a table with a count for fit and held-out claims below it.

    The table lists judged and excluded claims; ``all_rows`` adds the others. JSON and CSV contain all.
    """
    from retrompi.papers import summary

    rows = told.rows
    shown: Sequence[Mapping[str, Any]] = rows
    if output.text:
        shown = [{**row, "published": published_range(row), **_third(row)} for row in rows if all_rows or _interesting(row)]
    columns = (*COLUMNS[:3], THIRD[0], *COLUMNS[3:5], THIRD[1], *COLUMNS[5:]) if told.drawn else COLUMNS
    output.emit(shown, columns, keys=keys_of(told), empty="no claims to judge")
    if output.text:
        say("")
        for line in summary(told.found):
            say(str(line))


def print_digest(study: Reproduction) -> None:
    """A screen about one paper."""
    from retrompi.papers.reproduce.digest import digest

    for line in digest(study):
        say(line)


def print_counts(verdicts: Sequence[Verdict]) -> None:
    """How many statements pass, a line for each paper and one for all; papers that were not replayed have only unjudged ones."""
    from retrompi.papers import summary
    from retrompi.papers.statements.claims import by_paper, papers

    mine = {v.id: v for v in verdicts}
    rows = [_count_row([mine[c.id] for c in by_paper(p) if c.id in mine], p) for p in papers()]
    print_table([*rows, _count_row(verdicts, "all")], COUNTS)
    say("")
    for text in summary(verdicts):
        say(str(text))


_NONE = "-"
COUNTS = (
    Column("paper", "paper"),
    Column("fit", "fit passes", right=True),
    Column("held_out", "held out passes", right=True),
    Column("unjudged", "not judged", right=True),
)


def _count_row(verdicts: Sequence[Verdict], name: str) -> dict[str, Any]:
    from retrompi.papers import summary

    by_use = {s.use: s for s in summary(verdicts)}
    row: dict[str, Any] = {"paper": name}
    for key, use in (("fit", "calibrate"), ("held_out", "validate")):
        part = by_use.get(use)
        row[key] = f"{part.passed} of {part.judged} ({part.passed / part.judged:.0%})" if part and part.judged else _NONE
    row["unjudged"] = sum(v.verdict == "unjudged" and v.use in ("calibrate", "validate") for v in verdicts)
    return row


def keys_of(told: Verdicts) -> tuple[str, ...]:
    """The keys of the rows in JSON and CSV."""
    from retrompi.papers.judging.verdicts import NOT_DRAWN

    return (*KEYS, *NOT_DRAWN) if told.drawn else KEYS


def _third(row: Mapping[str, Any]) -> dict[str, str]:
    """The third verdict and the interval of a row as texts."""
    if not row.get("agreement"):
        return {"agreement": "", "interval": ""}
    low, high = row["observed_low"], row["observed_high"]
    return {"agreement": f"{row['agreement']}, {row['share']:.0%}", "interval": "" if low is None else f"{as_text(low)}..{as_text(high)}"}


def _interesting(row: Mapping[str, Any]) -> bool:
    return bool(row["verdict"] != "unjudged" or row["use"] == "exclude")


@dataclass(frozen=True)
class ValidateOptions(Uncertain, Workers):
    """Options of ``retrompi validate``."""

    paper: str | None = option("Paper: only its claims (default: all).", metavar="KEY|FOLDER")
    model: str | None = option(
        "Runtime model: judge it by its own evidence.toml instead of the papers.", "-m", "--model", metavar="NAME|FOLDER",
        shell_complete=complete_model)
    platform: str = option("Platform: with --model, the one to judge it on (default: the model's own).", "-p", "--platform", default="",
                           metavar="NAME|FILE")
    full: bool = option("Print all of it instead of a summary: every verdict.", "--full")
    all_rows: bool = option("Also what is left out otherwise: every verdict, and claims that are not judged.", "--all")
    write: bool = option("Write the files that the package keeps: what the draws say of its papers (validate/agreement.csv).", "--write")

    def __post_init__(self) -> None:
        if self.model is not None and self.uncertainty is not None:
            raise UsageError("--uncertainty judges the claims of papers, --model a model's own", code="conflicting-options")
        if self.write and self.uncertainty is None:
            raise UsageError("--write is for --uncertainty; example: --uncertainty 90% --write", code="unused-option")


@click.command()
@options(given=ValidateOptions, output=RunOutput)
@click.pass_context
def command(ctx: click.Context, given: ValidateOptions, output: RunOutput) -> None:
    """Judge the published claims against simulated results.

    Runs that are not in the store are simulated. Prints a summary, in which claims used for the fit and held-out claims are counted
    separately; --full has every verdict. Exit code 1 means that a claim fails.

    With --uncertainty, a third verdict stands beside pass and fail: a claim agrees if at least half of the draws of the parameters
    pass, disagrees if at most 5 % do, and otherwise one cannot tell. Slow experiments have 5 draws. The draws are runs of the store:
    an interrupted command goes on where it was.

    \b
    Examples:
      retrompi validate --paper baker-fox
      retrompi validate --paper ./mypaper
      retrompi validate --all --csv
      retrompi validate --paper mpptest-1994 --uncertainty 90% --draws 20
    """
    from retrompi.api.judging import Judging, validate_model_of, validate_of
    from retrompi.papers.reproduce.coverage import update_file

    spec = given.spec()
    if given.model is not None:
        told = validate_model_of(given.model, given.platform, output.open(), output.fresh)
    else:
        told = validate_of(given.paper, Judging(output.open(), output.fresh, given.jobs, progress), spec)
        if given.write:
            click.echo(f"written: {update_file(told.papers).name}", err=True)
    if not output.text or given.full or given.all_rows or spec is not None or given.model is not None:
        print_verdicts(told, output, all_rows=given.all_rows)
    elif given.paper is not None:
        print_digest(told.papers[0])
    else:
        print_counts(told.found)
        say("\nevery verdict: --full, of one paper: --paper KEY, why one is so: retrompi claims show ID")
    if told.failed:
        ctx.exit(1)
