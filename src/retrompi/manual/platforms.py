"""A page for every platform: hosts, link, placements, every number with its source; identical hosts share a table. A page for the
library's hosts and one for its networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retrompi.manual.markdown import ManualPage, anchor, cite, escape, link, slug, table
from retrompi.manual.models import range_text
from retrompi.papers.statements.sources import rows as reference_rows
from retrompi.render.cards.dossier import part_dossier, platform_dossier
from retrompi.spec import registry
from retrompi.spec.machine import machines
from retrompi.spec.machine.machines import Machine, Network
from retrompi.spec.platform import Quantity

__all__ = ["platform_pages"]

_ROOT = "../"


def _quantities(rows: list[Mapping[str, Any]], prefix: str, known: Mapping[str, Any]) -> str:
    cells = [
        [f"`{prefix}{r['path'].partition('.')[2]}`", escape(r["text"]), escape(range_text(r)), cite(r["help"], known, _ROOT),
         cite(r["source"], known, _ROOT)]
        for r in rows
    ]
    return table(["key", "value", "range", "what it is", "source"], cells)


def _alike(rows: list[Mapping[str, Any]], hosts: list[str]) -> list[tuple[list[str], list[Mapping[str, Any]]]]:
    """Hosts grouped by equal numbers from equal sources; in file order."""
    groups: dict[tuple[Any, ...], tuple[list[str], list[Mapping[str, Any]]]] = {}
    for host in hosts:
        own = [r for r in rows if r["path"].startswith(f"{host}.")]
        key = tuple((r["path"].partition(".")[2], r["text"], r["source"], r["help"], r["low"], r["high"]) for r in own)
        groups.setdefault(key, ([], own))[0].append(host)
    return list(groups.values())


def _page(name: str, known: Mapping[str, Any]) -> ManualPage:
    card = platform_dossier(registry.platform(name))
    out = [f"# {escape(card['title'])}", f"`{name}`, {escape(card['years'])}: {escape(card['summary'])}.", f"Link: {escape(card['link'])}."]
    out.append(
        table(
            ["host", "operating system", "byte order"],
            [[escape(h["name"]), escape(h["os"]), escape(h["byte_order"])] for h in card["hosts"]],
        )
    )
    if card["placements"]:
        out += ["## Placements", "Names that `--mode` takes here.",
                table(["placement", "ranks"], [[f"`{p['name']}`", escape(", ".join(p["ranks"]))] for p in card["placements"]])]
    out.append("## Hosts")
    out.append("`--set platform.host.KEY=VALUE` changes all hosts, `--set platform.HOST.KEY=VALUE` one.")
    for names, rows in _alike(card["quantities"], [h["name"] for h in card["hosts"]]):
        out += [f"### {escape(', '.join(names))}", _quantities(rows, "", known)]
    links = [r for r in card["quantities"] if r["path"].startswith("link.")]
    out += ["## Link", _quantities(links, "platform.link.", known)]
    if card["kernels"]:
        out.append("## Loops")
        out.append("What the host spends on the instructions of [Rinf1's loops](../../rinf1.md).")
        loops = [
            [f"`{r['path']}`", escape(r["text"]), escape(range_text(r)), cite(r["help"], known, _ROOT), cite(r["source"], known, _ROOT)]
            for r in card["kernels"]
        ]
        out.append(table(["key", "value", "range", "what it is", "source"], loops))
    out.append(f"`retrompi platforms show {name}` prints this card.")
    return ManualPage(f"reference/platforms/{slug(name)}.md", "Platforms", name, "\n\n".join(out) + "\n")


def _part(part: Machine | Network, known: Mapping[str, Any]) -> str:
    """The section of a host or a network of the library: of one that is like another, the values in which it differs."""
    card = part_dossier(part)
    other: Mapping[str, Quantity] = {}
    if part.like:
        other = (machines.network(part.like) if isinstance(part, Network) else machines.host(part.like)).quantities
    cells = [
        [f"`{r['path']}`", escape(r["text"]), escape(range_text(r)), cite(r["help"], known, _ROOT), cite(r["source"], known, _ROOT)]
        for r in card["quantities"]
        if other.get(r["path"]) != part.quantities[r["path"]]
    ]
    told = f" As [{escape(part.like)}](#{slug(part.like)}), except:" if part.like else ""
    return "\n\n".join([
        f"## {escape(card['title'])} {anchor(part.name)}",
        f"`{part.name}`, {escape(card['years'])}: {escape(card['summary'])}. {escape(card['about'])}.{told}",
        table(["key", "value", "range", "what it is", "source"], cells),
    ])


def _library(known: Mapping[str, Any]) -> list[ManualPage]:
    """The pages of the library's hosts and of its networks."""
    pages = []
    for name, title, told, parts in (
        ("hosts", "Hosts", "What a host states; its network card belongs to the network.", list(machines.hosts().values())),
        ("networks", "Networks", "What a network states, for its link and for the card of each host.", list(machines.networks().values())),
    ):
        ours = [p for p in parts if registry.origin(p.path) == "retrompi"]
        text = "\n\n".join([
            f"# {title} of the library",
            f"{told} `HOST*COUNT@NETWORK` is a platform ([adding a machine](../../add-a-platform.md)).",
            table(["name", "what", "years"], [[f"[{escape(p.name)}](#{slug(p.name)})", escape(p.title), escape(p.years)] for p in ours]),
            *(_part(p, known) for p in ours),
        ])
        pages.append(ManualPage(f"reference/platforms/{name}.md", "Platforms", f"{title} of the library", text + "\n"))
    return pages


def platform_pages() -> list[ManualPage]:
    """An overview, a page for every platform of the package, and those of the library."""
    known = reference_rows()
    found = {name: p for name, p in registry.platforms().items() if registry.origin(p.path) == "retrompi"}
    rows = [
        [link(name, f"{slug(name)}.md"), escape(p.title), escape(p.years), str(len(p.hosts)), escape(p.link.kind)]
        for name, p in found.items()
    ]
    text = "\n\n".join([
        "# Platforms",
        "A machine room is a TOML file in `platforms/`; `NAME*N` is a room of that kind with N hosts ([networks](../../networks.md)).",
        table(["name", "room", "years", "hosts", "link"], rows),
        "Further platforms are composed of the [hosts](hosts.md) and [networks](networks.md) of the library: `nt4-p6-200*8@switch-100`.",
    ])
    overview = ManualPage("reference/platforms/index.md", "Platforms", "Overview", text + "\n")
    return [overview, *_library(known), *(_page(name, known) for name in found)]
