"""``retrompi platforms``: the machine rooms there are, and their numbers."""

from __future__ import annotations

import click

from retrompi.cli.models import range_of
from retrompi.cli.options import complete_platform, csv_option, debug_option, json_option
from retrompi.cli.output import Column, emit

LIST = (
    Column("name", "name"),
    Column("years", "years"),
    Column("hosts", "hosts", right=True),
    Column("link", "link"),
    Column("title", "title"),
)
LIST_KEYS = ("name", "title", "years", "summary", "hosts", "link", "path")
CARD = (
    Column("path", "quantity"),
    Column("text", "value", right=True),
    Column("range", "range"),
    Column("source", "source"),
    Column("help", "meaning"),
)
CARD_KEYS = ("path", "value", "text", "unit", "low", "high", "source", "help")


@click.group()
@debug_option
def command() -> None:
    """List the machine rooms or show one with its numbers and sources."""


@command.command("list")
@json_option
@csv_option
@debug_option
def list_platforms(as_json: bool, as_csv: bool) -> None:
    """List every platform."""
    from retrompi import registry

    rows = [
        {
            "name": p.name,
            "title": p.title,
            "years": p.years,
            "summary": p.summary,
            "hosts": len(p.hosts),
            "link": p.link.kind,
            "path": str(p.path),
        }
        for p in registry.platforms().values()
    ]
    emit(rows, LIST, as_json=as_json, as_csv=as_csv, keys=LIST_KEYS, empty="no platforms")


@command.command("show")
@click.argument("platform", shell_complete=complete_platform)
@json_option
@csv_option
@debug_option
def show_platform(platform: str, as_json: bool, as_csv: bool) -> None:
    """Show PLATFORM (a name or a TOML file): its hosts, its link and every number with its source."""
    from retrompi import registry

    p = registry.platform(platform)
    rows = p.describe()
    if not (as_json or as_csv):
        click.echo(f"{p.name}: {p.title}\n{p.summary}\n{p.years}, in {p.path}")
        for host in p.hosts:
            click.echo(f"host {host.name}: {host.os}, {host.byte_order} endian")
        for name, place in p.placements.items():
            told = [f"{p.hosts[h].name}" + (f" core {place.cores[i]}" if place.cores else "") for i, h in enumerate(place)]
            click.echo(f"placement {name}: {', '.join(told)}")
        click.echo(f"link: {p.link.kind}\n")
        rows = [{**row, "range": range_of(row)} for row in rows]
    emit(rows, CARD, as_json=as_json, as_csv=as_csv, keys=CARD_KEYS)
