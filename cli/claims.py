"""``retrompi claims``: the published statements."""

from __future__ import annotations

import click

from retrompi.cli.options import csv_option, debug_option, json_option
from retrompi.cli.output import Column, as_text, emit

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
    """List the published statements or show one."""


@command.command("list")
@click.option("--paper", metavar="KEY", help="Only this paper's.")
@click.option("--use", type=click.Choice(["calibrate", "validate", "context", "exclude"]), help="Only this use.")
@click.option("--system", metavar="TEXT", help="Only systems that contain this text.")
@json_option
@csv_option
@debug_option
def list_claims(paper: str | None, use: str | None, system: str | None, as_json: bool, as_csv: bool) -> None:
    """List the claims of all papers or of one."""
    from retrompi.papers import claims

    found = claims.load() if paper is None else claims.by_paper(paper)
    rows = [c.row() for c in found]
    rows = [r for r in rows if use in (None, r["use"]) and (system or "").lower() in str(r["system"]).lower()]
    keys = list(rows[0]) if rows else [c.key for c in LIST]
    emit(rows, LIST, as_json=as_json, as_csv=as_csv, keys=keys, empty="no claims match")


@command.command("show")
@click.argument("claim", metavar="ID")
@json_option
@csv_option
@debug_option
def show_claim(claim: str, as_json: bool, as_csv: bool) -> None:
    """Show the claim ID with everything that is known about it, contradictions included."""
    from retrompi.papers import claims

    row = claims.find(claim).row()
    if as_json or as_csv:
        emit([row], LIST, as_json=as_json, as_csv=as_csv, keys=list(row))
        return
    rows = [{"what": k, "value": as_text(v)} for k, v in row.items() if v not in ("", None)]
    emit(rows, (Column("what", "what"), Column("value", "value")), as_json=False, as_csv=False)
