"""``retrompi transfer``: the table of transfer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click

from retrompi.base.errors import UsageError
from retrompi.cli.bundle import option, options
from retrompi.cli.options import RunOutput, complete_model, progress
from retrompi.cli.output import Column, print_table, say


def columns(names: Sequence[str]) -> tuple[Column, ...]:
    """Columns of texts under their own names; numbers are right-aligned."""
    return tuple(Column(name, name, right=name in ("published", "simulated", "ratio")) for name in names)


@dataclass(frozen=True)
class TransferOptions:
    """Options of ``retrompi transfer``."""

    model: str = option(
        "Runtime model: it and its variants only.", "-m", "--model", default="", metavar="NAME|FOLDER", shell_complete=complete_model
    )
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

    A number is 'fitted' if a fit saw it, 'input' if a value of the model or machine comes from it, 'held out' if neither, 'blind' if the
    published value is not known to the project: the range is then the prediction's interval. The ratio is the simulated over the published
    number. Statements of the papers are counted by the store's newest verdicts ('retrompi validate --all'), or else by those shipped.

    \b
    Examples:
      retrompi transfer --model mpibip
      retrompi transfer --csv
    """
    from retrompi.api.predicting import transfer_of
    from retrompi.papers import transfer
    from retrompi.render.transfer_table import HELD, NUMBERS, held, numbers

    with progress("transfer") as report:
        rows = transfer_of(given.model, output.open(), output.fresh, report).rows
    if given.write:
        click.echo(f"written: {transfer.write(rows)}", err=True)
    if not output.text:
        output.emit(rows, keys=transfer.KEYS)
        return
    print_table(numbers(rows), columns(NUMBERS), empty="no number is known for this model")
    say("\nstatements of the papers on their own machines")
    print_table(held(rows), columns(HELD), empty="none")
