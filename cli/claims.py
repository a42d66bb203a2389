"""``retrompi claims``: the published statements."""

from __future__ import annotations

import click

from retrompi.cli.bundle import debug_option, options
from retrompi.cli.output import Column, Output, as_text, print_table

LIST = (
    Column("id", "id"),
    Column("use", "use"),
    Column("system", "system"),
    Column("observable", "observable"),
    Column("value", "value"),
    Column("unit", "unit"),
)


@click.group()
@debug_option
def command() -> None:
    """List the published claims, or show one.

    \b
    Examples:
      retrompi claims list --paper baker-fox
      retrompi claims show BF-CFG-01
    """


@command.command("list")
@click.option("--paper", metavar="KEY|FOLDER", help="Paper: only its claims.")
@click.option("--use", type=click.Choice(["calibrate", "validate", "context", "exclude"]), help="Only claims with this use.")
@click.option("--system", metavar="TEXT", help="Only claims about systems whose name contains this text.")
@options(output=Output)
def list_claims(paper: str | None, use: str | None, system: str | None, output: Output) -> None:
    """List the claims of all papers or of one.

    \b
    Examples:
      retrompi claims list --paper baker-fox --use validate
      retrompi claims list --paper ./mypaper
      retrompi claims list --system WMPI --csv
    """
    from retrompi.papers import claims
    from retrompi.papers.paper import working_with

    with working_with(*([] if paper is None else [paper])) as plans:
        found = list(plans[0].claims) if plans else claims.load()
    rows = [c.row() for c in found]
    rows = [r for r in rows if use in (None, r["use"]) and (system or "").lower() in str(r["system"]).lower()]
    keys = list(rows[0]) if rows else [c.key for c in LIST]
    output.emit(rows, LIST, keys=keys, empty="no claims match", cut=True)


@command.command("show")
@click.argument("claim", metavar="ID")
@options(output=Output)
def show_claim(claim: str, output: Output) -> None:
    """Show claim ID with everything known about it, including contradictions.

    \b
    Examples:
      retrompi claims show BF-CFG-01
    """
    from retrompi.papers import claims

    row = claims.find(claim).row()
    if not output.text:
        output.emit([row], LIST, keys=list(row))
        return
    rows = [{"what": k, "value": as_text(v)} for k, v in row.items() if v not in ("", None)]
    print_table(rows, (Column("what", "what"), Column("value", "value")))
