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
    from retrompi.papers import Reproduction, Verdict
    from retrompi.studies.uncertainty import Spec

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

    drawn, rows = _drawn(verdicts), rows_of(verdicts)
    shown: list[dict[str, Any]] = rows
    if output.text:
        shown = [{**row, "published": published(row), **_third(row)} for row in rows if all_rows or _interesting(row)]
    columns = (*COLUMNS[:3], THIRD[0], *COLUMNS[3:5], THIRD[1], *COLUMNS[5:]) if drawn else COLUMNS
    output.emit(shown, columns, keys=keys_of(verdicts), empty="no claims to judge")
    if output.text:
        say("")
        for line in summary(verdicts):
            say(str(line))


def print_digest(study: Reproduction) -> None:
    """A screen about one paper."""
    from retrompi.papers.digest import digest

    for line in digest(study):
        say(line)


def print_counts(verdicts: Sequence[Verdict]) -> None:
    """How many statements pass, a line for each paper and one for all; papers that were not replayed have only unjudged ones."""
    from retrompi.papers import summary
    from retrompi.papers.claims import by_paper, papers

    mine = {v.id: v for v in verdicts}
    rows = [_counted([mine[c.id] for c in by_paper(p) if c.id in mine], p) for p in papers()]
    print_table([*rows, _counted(verdicts, "all")], COUNTS)
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


def _counted(verdicts: Sequence[Verdict], name: str) -> dict[str, Any]:
    from retrompi.papers import summary

    by_use = {s.use: s for s in summary(verdicts)}
    row: dict[str, Any] = {"paper": name}
    for key, use in (("fit", "calibrate"), ("held_out", "validate")):
        part = by_use.get(use)
        row[key] = f"{part.passed} of {part.judged} ({part.passed / part.judged:.0%})" if part and part.judged else _NONE
    row["unjudged"] = sum(v.verdict == "unjudged" and v.use in ("calibrate", "validate") for v in verdicts)
    return row


def _drawn(verdicts: Sequence[Verdict]) -> bool:
    return any(v.agreement is not None for v in verdicts)


def rows_of(verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """The flat rows of the verdicts, with the third verdict if draws were made."""
    from retrompi.papers.verdicts import NOT_DRAWN

    if not _drawn(verdicts):
        return [v.row() for v in verdicts]
    return [{**v.row(), **(NOT_DRAWN if v.agreement is None else v.agreement.row())} for v in verdicts]


def keys_of(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """The keys of `rows_of` in JSON and CSV."""
    from retrompi.papers.verdicts import NOT_DRAWN

    return (*KEYS, *NOT_DRAWN) if _drawn(verdicts) else KEYS


def _third(row: Mapping[str, Any]) -> dict[str, str]:
    """The third verdict and the interval of a row as texts."""
    if not row.get("agreement"):
        return {"agreement": "", "interval": ""}
    low, high = row["observed_low"], row["observed_high"]
    return {"agreement": f"{row['agreement']}, {row['share']:.0%}", "interval": "" if low is None else f"{as_text(low)}..{as_text(high)}"}


def _interesting(row: Mapping[str, Any]) -> bool:
    return bool(row["verdict"] != "unjudged" or row["use"] == "exclude")


def studies(keys: Sequence[str], output: RunOutput, jobs: int | None, fidelity: str = "mechanism") -> list[Reproduction]:
    """The replayed papers, which are at hand, at a rung of the fidelity ladder; ``jobs`` at a time."""
    from retrompi.papers import run_papers
    from retrompi.papers.reproduction import WORKERS

    opened = output.open()
    with progress(keys[0] if len(keys) == 1 else f"{len(keys)} studies") as report:
        return run_papers(keys, opened, output.fresh, report, workers=jobs or WORKERS, fidelity=fidelity)


def with_agreement(done: Sequence[Reproduction], spec: Spec, output: RunOutput, jobs: int | None) -> list[Reproduction]:
    """The replayed papers, which are at hand, with what the draws of their parameters say."""
    from retrompi.papers.agreement import with_agreement as judged
    from retrompi.papers.reproduction import WORKERS

    with progress("draws") as report:
        return judged(done, output.open(), spec, report, fresh=output.fresh, workers=jobs or WORKERS)


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
    from retrompi.papers import all_papers, judge_all, of_curves
    from retrompi.papers.coverage import written
    from retrompi.papers.paper import working_with

    spec = given.spec()

    if given.model is not None:
        from retrompi.papers.evidence import judge_model
        from retrompi.spec import registry

        verdicts = judge_model(given.model, given.platform or registry.own_platform(given.model), output.open(), fresh=output.fresh)
        print_verdicts(verdicts, output, all_rows=given.all_rows)
        if any(v.verdict == "fail" for v in verdicts):
            ctx.exit(1)
        return
    with working_with(*(all_papers() if given.paper is None else [given.paper])) as found:
        done = studies([plan.key for plan in found], output, given.jobs)
        if spec is not None:
            done = with_agreement(done, spec, output, given.jobs)
            if given.write:
                click.echo(f"written: {written(done).name}", err=True)
        verdicts = done[0].verdicts if given.paper is not None else [*judge_all(done), *of_curves(done)]
    if not output.text or given.full or given.all_rows or spec is not None:
        print_verdicts(verdicts, output, all_rows=given.all_rows)
    elif given.paper is not None:
        print_digest(done[0])
    else:
        print_counts(verdicts)
        say("\nevery verdict: --full, of one paper: --paper KEY, why one is so: retrompi claims show ID")
    if any(v.verdict == "fail" for v in verdicts):
        ctx.exit(1)
