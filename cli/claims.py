"""``retrompi claims``: the published statements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import click

from retrompi.cli.bundle import debug_option, option, options
from retrompi.cli.output import Column, Output, as_text, print_table, say

if TYPE_CHECKING:
    from retrompi.papers.statements.claims import Claim

LIST = (
    Column("id", "id"),
    Column("use", "use"),
    Column("system", "system"),
    Column("observable", "observable"),
    Column("value", "value"),
    Column("unit", "unit"),
)
USES = ("calibrate", "validate", "context", "exclude")
BY_PAPER = (Column("paper", "paper"), Column("claims", "claims", right=True), *(Column(use, use, right=True) for use in USES),
            Column("systems", "systems", right=True))


@click.group()
@debug_option
def command() -> None:
    """List the published claims, or show one.

    \b
    Examples:
      retrompi claims list --paper baker-fox
      retrompi claims show BF-CFG-01
    """


@dataclass(frozen=True)
class ClaimsOptions:
    """Options of ``retrompi claims list``."""

    paper: str | None = option("Paper: only its claims.", metavar="KEY|FOLDER")
    use: Literal["calibrate", "validate", "context", "exclude"] | None = option("Only claims with this use.")
    system: str | None = option("Only claims about systems whose name contains this text.", metavar="TEXT")
    full: bool = option("Print all of it instead of a summary: every claim of every paper.", "--full")


@command.command("list")
@options(given=ClaimsOptions, output=Output)
def list_claims(given: ClaimsOptions, output: Output) -> None:
    """List the claims of all papers or of one.

    Without --paper, --use or --system there is a line for each paper; --full has every claim, as have JSON and CSV.

    \b
    Examples:
      retrompi claims list --paper baker-fox --use validate
      retrompi claims list --paper ./mypaper
      retrompi claims list --system WMPI --csv
    """
    from retrompi.papers.statements import claims
    from retrompi.papers.statements.paper import working_with

    with working_with(*([] if given.paper is None else [given.paper])) as plans:
        found = list(plans[0].claims) if plans else claims.load()
    if output.text and not (given.full or given.paper or given.use or given.system):
        print_table([_count_row(claims.by_paper(key), key) for key in claims.papers()], BY_PAPER, empty="no claims match")
        say(f"\n{len(found)} claims; those of one paper: --paper KEY, every one: --full")
        return
    rows = [c.row() for c in found]
    rows = [r for r in rows if given.use in (None, r["use"]) and (given.system or "").lower() in str(r["system"]).lower()]
    keys = list(rows[0]) if rows else [c.key for c in LIST]
    output.emit(rows, LIST, keys=keys, empty="no claims match", cut=True)


def _count_row(mine: Sequence[Claim], paper: str) -> dict[str, Any]:
    """A line of a paper: its claims by use, and of how many systems they are."""
    return {"paper": paper, "claims": len(mine), "systems": len({c.system for c in mine}), **Counter(str(c.use) for c in mine)}


@command.command("show")
@click.argument("claim", metavar="ID")
@options(output=Output)
def show_claim(claim: str, output: Output) -> None:
    """Show claim ID with everything known about it, including contradictions.

    \b
    Examples:
      retrompi claims show BF-CFG-01
    """
    from retrompi.papers.statements import claims

    row = claims.find(claim).row()
    if not output.text:
        output.emit([row], LIST, keys=list(row))
        return
    rows = [{"what": k, "value": as_text(v)} for k, v in row.items() if v not in ("", None)]
    print_table(rows, (Column("what", "what"), Column("value", "value")))
