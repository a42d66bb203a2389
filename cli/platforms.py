"""``retrompi platforms``: the available platforms and their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from retrompi.base.errors import UsageError
from retrompi.cli.bundle import debug_option, option, options
from retrompi.cli.models import print_rows_cited, range_of, warn_of_broken
from retrompi.cli.options import Overrides, complete_platform, output_option
from retrompi.cli.output import Column, Output, note, print_json, print_table, say

LIST = (
    Column("name", "name"),
    Column("years", "years"),
    Column("hosts", "hosts", right=True),
    Column("link", "link"),
    Column("origin", "from"),
    Column("title", "title"),
)
LIST_KEYS = ("name", "title", "years", "summary", "hosts", "link", "path", "origin")
HOSTS = (
    Column("name", "name"),
    Column("years", "years"),
    Column("cores", "processors", right=True),
    Column("clock", "clock", right=True),
    Column("os", "operating system"),
    Column("origin", "from"),
    Column("title", "title"),
)
HOST_KEYS = ("name", "title", "years", "summary", "os", "cores", "clock", "path", "origin")
NETWORKS = (
    Column("name", "name"),
    Column("years", "years"),
    Column("link", "link"),
    Column("bandwidth", "bandwidth", right=True),
    Column("origin", "from"),
    Column("title", "title"),
)
NETWORK_KEYS = ("name", "title", "years", "summary", "link", "bandwidth", "path", "origin")
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
    """List the platforms and the library of hosts and networks, or show one with its values and sources.

    \b
    Examples:
      retrompi platforms list
      retrompi platforms show nt-pair
      retrompi platforms show 'nt4-p6-200*8@switch-100'
    """


@command.command("list")
@options(output=Output)
def list_platforms(output: Output) -> None:
    """List the platforms, and the library's hosts and networks.

    HOST*COUNT@NETWORK is a platform, too. JSON and CSV have the platforms alone; 'hosts' and 'networks' print the others.

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
    output.emit(rows, LIST, keys=LIST_KEYS, empty="no platforms", cut=True)
    if output.text:
        say("\nhosts of the library")
        output.emit(_hosts(), HOSTS, cut=True)
        say("\nnetworks of the library")
        output.emit(_networks(), NETWORKS, cut=True)


def _hosts() -> list[dict[str, Any]]:
    from retrompi.spec import machines, registry

    return [
        {"name": m.name, "title": m.title, "years": m.years, "summary": m.summary, "os": m.os, "path": str(m.path),
         "cores": int(m.quantities["cores"].value), "clock": m.quantities["clock"].text, "origin": registry.origin(m.path)}
        for m in machines.hosts().values()
    ]  # fmt: skip


def _networks() -> list[dict[str, Any]]:
    from retrompi.spec import machines, registry

    return [
        {"name": n.name, "title": n.title, "years": n.years, "summary": n.summary, "link": n.kind, "path": str(n.path),
         "bandwidth": n.quantities["link.bandwidth"].text, "origin": registry.origin(n.path)}
        for n in machines.networks().values()
    ]  # fmt: skip


@command.command("hosts")
@options(output=Output)
def list_hosts(output: Output) -> None:
    """List the hosts of the library.

    \b
    Examples:
      retrompi platforms hosts
      retrompi platforms hosts --json
    """
    warn_of_broken(models=False)
    output.emit(_hosts(), HOSTS, keys=HOST_KEYS, empty="no hosts", cut=True)


@command.command("networks")
@options(output=Output)
def list_networks(output: Output) -> None:
    """List the networks of the library.

    \b
    Examples:
      retrompi platforms networks
      retrompi platforms networks --json
    """
    warn_of_broken(models=False)
    output.emit(_networks(), NETWORKS, keys=NETWORK_KEYS, empty="no networks", cut=True)


def equal_hosts(hosts: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The first host of each kind -> the names of those like it: with the same texts, values and sources."""
    kinds: dict[Any, list[str]] = {}
    for host in hosts:
        own = [(r["path"].partition(".")[2], r["text"], r["source"]) for r in rows if r["path"].partition(".")[0] == host["name"]]
        kinds.setdefault((host["os"], host["byte_order"], tuple(own)), []).append(host["name"])
    return {names[0]: names[1:] for names in kinds.values()}


@command.command("show")
@click.argument("platform", shell_complete=complete_platform)
@options(output=Output)
def show_platform(platform: str, output: Output) -> None:
    """Show PLATFORM: its hosts, its network, and every value with its source.

    PLATFORM is a name, a TOML file, hosts and network of the library (HOST*COUNT@NETWORK), or one host or network of it.

    \b
    Examples:
      retrompi platforms show nt-pair
      retrompi platforms show nt4-p6-200
      retrompi platforms show nt-pair --json
    """
    from retrompi.render.dossier import part_dossier, platform_dossier, references
    from retrompi.spec import registry

    if part := registry.part(platform):
        _show_part(part_dossier(part), output)
        return
    card = platform_dossier(registry.platform(platform))
    rows = card["quantities"]
    if output.as_json:
        print_json(card)
        return
    if output.as_csv:
        output.emit(rows, CARD, keys=CARD_KEYS)
        return
    where = f", in {card['path']}" if card["path"] else ", of hosts and networks of the library"
    say(f"{card['name']}: {card['title']}\n{card['summary']}\n{card['years']}{where}")
    alike = equal_hosts(card["hosts"], [*rows, *card["kernels"]])
    for first, others in alike.items():
        host = next(h for h in card["hosts"] if h["name"] == first)
        names = f"host {first}" if not others else f"hosts {first} to {others[-1]} ({len(others) + 1}, with the values of {first})"
        say(f"{names}: {host['os']}, {host['byte_order']} endian")
    for place in card["placements"]:
        say(f"placement {place['name']}: {', '.join(place['ranks'])}")
    say(f"link: {card['link']}\n")
    hidden = tuple(f"{name}." for others in alike.values() for name in others)
    rows, loops = ([row for row in given if not row["path"].startswith(hidden)] for given in (rows, card["kernels"]))
    print_table([{**row, "range": range_of(row)} for row in rows], CARD)
    if loops:
        say("\nwhat the Rinf1 loops cost (docs/rinf1.md)")
        print_table([{**row, "range": range_of(row)} for row in loops], CARD)
    print_rows_cited(references([*rows, *loops]))
    _say_fits(card)


@dataclass(frozen=True)
class ExportOptions:
    """Options of ``retrompi platforms export``."""

    out: Path | None = output_option("the platform, for SimGrid (default: standard output)", "xml")
    hostfile: Path | None = option(
        "Hostfile of mpirun: written beside the platform, a line for each processor.", type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE")


@command.command("export")
@click.argument("platform", shell_complete=complete_platform)
@options(given=ExportOptions, changed=Overrides, output=Output)
def export_platform(platform: str, given: ExportOptions, changed: Overrides, output: Output) -> None:
    """Write PLATFORM as a platform file of SimGrid: its hosts, links and routes.

    smpirun and every other program of SimGrid reads it. What SimGrid's format has no words for (operating systems, cards, frames) is
    not in it; 'retrompi smpi export' has a runtime's costs as well.

    \b
    Examples:
      retrompi platforms export nt-cluster -o nt-cluster.xml
      retrompi platforms export 'nt4-p6-200*8@switch-100' -o cluster.xml --hostfile hosts
      retrompi platforms export nt-cluster --set platform.link.bandwidth=100Mbps -o fast.xml
    """
    from retrompi.convert.platform_xml import host_names, xml
    from retrompi.spec import registry
    from retrompi.spec.overrides import parse_sets

    sets = parse_sets(changed.sets)
    for key in sets:
        if not key.startswith("platform."):
            raise UsageError(f"--set {key}: a platform has the parameters platform.host.KEY, platform.link.KEY, platform.HOST.KEY",
                             code="idle-override")  # fmt: skip
    room = registry.platform(platform).with_overrides({k.removeprefix("platform."): v for k, v in sets.items()})
    text = xml(room)
    if given.hostfile is not None:
        lines = [name for name, h in zip(host_names(room), room.hosts, strict=True) for _ in range(int(h.cores))]
        given.hostfile.write_text("\n".join(lines) + "\n")
    if given.out is not None:
        given.out.write_text(text, encoding="utf-8")
    if not output.text:
        row = {"platform": room.name, "hosts": len(room.hosts), "file": None if given.out is None else str(given.out),
               "hostfile": None if given.hostfile is None else str(given.hostfile), "xml": text}  # fmt: skip
        output.emit([row], (), keys=list(row))
    elif given.out is None:
        say(text.rstrip())
    else:
        note(f"written: {given.out}")


def _show_part(card: Mapping[str, Any], output: Output) -> None:
    """The card of a host or a network of the library."""
    from retrompi.render.dossier import references

    rows = card["quantities"]
    if output.as_json:
        print_json(dict(card))
        return
    if output.as_csv:
        output.emit(rows, CARD, keys=CARD_KEYS)
        return
    say(f"{card['name']}: {card['title']}\n{card['summary']}\n{card['years']}, in {card['path']}\n{card['about']}\n")
    print_table([{**row, "range": range_of(row)} for row in rows], CARD)
    print_rows_cited(references(rows))
    _say_fits(card)


def _say_fits(card: Mapping[str, Any]) -> None:
    for fit in card["fits"]:
        meta = fit.get("meta", {})
        found = ", ".join(f"{k} = {v}" for k, v in fit.get("values", {}).items())
        say(f"\nfit: {found}; with {fit['by']}, {meta.get('date')}, code {meta.get('version')}, seed {meta.get('seed')}")
        for r in fit["rows"]:
            say(f"  {r['id']}  {r['text']}\n      in: {r['where']}")
