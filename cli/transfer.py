"""``retrompi transfer``: the table of transfer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from retrompi.base.errors import UsageError
from retrompi.cli.bundle import option, options
from retrompi.cli.options import RunOutput, complete_model, progress
from retrompi.cli.output import Column, print_table, say


def columns(names: Sequence[str]) -> tuple[Column, ...]:
    """Columns of texts under their own names; numbers are right-aligned."""
    return tuple(Column(name, name, right=name in ("published", "simulated", "ratio")) for name in names)


USES = ("fitted", "input", "held out")
SUMMARY = (
    Column("model", "model"), Column("machines", "machines", right=True), *(Column(use, use) for use in USES),
    Column("predicted", "predicted", right=True), Column("hold, fitted", "hold, fitted"), Column("hold, held out", "hold, held out"),
)


def by_model(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """A row with texts for `SUMMARY` for each model of which something is known: of each use the range of the ratios and how many they are,
    how many numbers are predicted, and how many statements hold."""
    from retrompi.papers.predict.transfer import STATEMENTS

    of: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["unit"] is not None:
            of[row["model"]].append(row)
    told = []
    for model, mine in of.items():
        statements = [r for r in mine if r["unit"] == STATEMENTS and r["simulated"] is not None]
        line = {use: _ratios([r["ratio"] for r in mine if r["use"] == use and r["unit"] != STATEMENTS]) for use in USES}
        line |= {f"hold, {use}": _held_count([r for r in statements if r["use"] == use]) for use in ("fitted", "held out")}
        predicted = sum(r["use"] == "blind" for r in mine)
        told.append({"model": model, "machines": str(len({r["machine"] for r in mine})), "predicted": str(predicted or ""), **line})
    return told


def _ratios(found: Sequence[float | None]) -> str:
    told = sorted(r for r in found if r is not None)
    if not told:
        return ""
    return f"{told[0]:.2f}" if len(told) == 1 else f"{told[0]:.2f}..{told[-1]:.2f} ({len(told)})"


def _held_count(judged: Sequence[Mapping[str, Any]]) -> str:
    return f"{sum(r['simulated'] for r in judged):g} of {sum(r['published'] for r in judged):g}" if judged else ""


@dataclass(frozen=True)
class TransferOptions:
    """Options of ``retrompi transfer``."""

    model: str = option(
        "Runtime model: it and its variants only.", "-m", "--model", default="", metavar="NAME|FOLDER", shell_complete=complete_model
    )
    all_rows: bool = option("Also what is left out otherwise: every number, not only a line for each model.", "--all")
    write: bool = option(
        "Write the files that the package keeps: the table for the cards of the models (validate/transfer.csv).", "--write"
    )

    def __post_init__(self) -> None:
        if self.model and self.write:
            raise UsageError("--write keeps the whole table; leave --model out", code="conflicting-options")


@click.command()
@options(given=TransferOptions, output=RunOutput)
def command(given: TransferOptions, output: RunOutput) -> None:
    """Show every model on every machine it is known to have run on, simulated and published.

    A line for each model has the range of its ratios, simulated over published, and how many they are; --model or --all shows every number.
    A number is 'fitted' if a fit saw it, 'input' if a value of the model or machine comes from it, 'held out' if neither, 'blind' if the
    published value is not known to the project: the range is then the prediction's interval. Statements of the papers are counted by the
    store's newest verdicts ('retrompi validate --all'), or else by those shipped.

    \b
    Examples:
      retrompi transfer
      retrompi transfer --model mpibip
      retrompi transfer --csv
    """
    from retrompi.api.predicting import transfer_of
    from retrompi.papers.predict import transfer
    from retrompi.render.atlas.transfer_table import HELD, NUMBERS, numbers, statement_rows

    with progress("transfer") as report:
        rows = transfer_of(given.model, output.open(), output.fresh, report).rows
    if given.write:
        click.echo(f"written: {transfer.write(rows)}", err=True)
    if not output.text:
        output.emit(rows, keys=transfer.KEYS)
        return
    if not given.model and not given.all_rows:
        print_table(by_model(rows), SUMMARY)
        without = [name for name in dict.fromkeys(r["model"] for r in rows) if all(r["unit"] is None for r in rows if r["model"] == name)]
        say(f"\nno number is published of {', '.join(without)}")
        say("ratios are simulated over published, with how many they are; hold: statements of papers; every number: --model NAME, or --all")
        return
    print_table(numbers(rows), columns(NUMBERS), empty="no number is known for this model")
    say("\nstatements of the papers on their own machines")
    print_table(statement_rows(rows), columns(HELD), empty="none")
