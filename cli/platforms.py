"""``retrompi platforms``: the available platforms and their parameters."""

from __future__ import annotations

import click

from retrompi.cli.bundle import debug_option, options
from retrompi.cli.models import print_rows_cited, range_of, warn_of_broken
from retrompi.cli.options import complete_platform
from retrompi.cli.output import Column, Output, print_json, print_table

LIST = (
    Column("name", "name"),
    Column("years", "years"),
    Column("hosts", "hosts", right=True),
    Column("link", "link"),
    Column("origin", "from"),
    Column("title", "title"),
)
LIST_KEYS = ("name", "title", "years", "summary", "hosts", "link", "path", "origin")
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
    """List the platforms, or show one with its values and sources.

    \b
    Examples:
      retrompi platforms list
      retrompi platforms show nt-pair
    """


@command.command("list")
@options(output=Output)
def list_platforms(output: Output) -> None:
    """List the platforms.

    \b
    Examples:
      retrompi platforms list
      retrompi platforms list --csv
    """
    from retrompi.spec import registry

    rows = [
        {
            "name": p.name,
            "title": p.title,
            "years": p.years,
            "summary": p.summary,
            "hosts": len(p.hosts),
            "link": p.link.kind,
            "path": str(p.path),
            "origin": registry.origin(p.path),
        }
        for p in registry.platforms().values()
    ]
    warn_of_broken(models=False)
    output.emit(rows, LIST, keys=LIST_KEYS, empty="no platforms")


@command.command("show")
@click.argument("platform", shell_complete=complete_platform)
@options(output=Output)
def show_platform(platform: str, output: Output) -> None:
    """Show PLATFORM: its hosts, its network, and every value with its source.

    PLATFORM is a name or a TOML file.

    \b
    Examples:
      retrompi platforms show nt-pair
      retrompi platforms show nt-pair --json
    """
    from retrompi.render.dossier import platform_dossier, references
    from retrompi.spec import registry

    card = platform_dossier(registry.platform(platform))
    rows = card["quantities"]
    if output.as_json:
        print_json(card)
        return
    if output.as_csv:
        output.emit(rows, CARD, keys=CARD_KEYS)
        return
    click.echo(f"{card['name']}: {card['title']}\n{card['summary']}\n{card['years']}, in {card['path']}")
    for host in card["hosts"]:
        click.echo(f"host {host['name']}: {host['os']}, {host['byte_order']} endian")
    for place in card["placements"]:
        click.echo(f"placement {place['name']}: {', '.join(place['ranks'])}")
    click.echo(f"link: {card['link']}\n")
    print_table([{**row, "range": range_of(row)} for row in rows], CARD)
    if card["kernels"]:
        click.echo("\nwhat the Rinf1 loops cost (docs/rinf1.md)")
        print_table([{**row, "range": range_of(row)} for row in card["kernels"]], CARD)
    print_rows_cited(references([*rows, *card["kernels"]]))
    fit = card["fit"]
    if fit is not None:
        meta = fit.get("meta", {})
        found = ", ".join(f"{k} = {v}" for k, v in fit.get("values", {}).items())
        click.echo(f"\nfit: {found}; with {meta.get('by')}, {meta.get('date')}, code {meta.get('version')}, seed {meta.get('seed')}")
        for r in fit["rows"]:
            click.echo(f"  {r['id']}  {r['text']}\n      in: {r['where']}")
