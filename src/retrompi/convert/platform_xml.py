"""A platform as a SimGrid platform file (XML), for smpirun and any other program of SimGrid.

Hosts have their rate of computing and their cores, links their rate and latency, and every route the links that the engine's own
networks have. What SimGrid's format has no words for is in a comment at the top: operating system, card, the overhead of frames.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from retrompi.base.errors import UsageError
from retrompi.spec.host import Host
from retrompi.spec.machine.link import Link
from retrompi.spec.machine.topology import LinkLayout
from retrompi.spec.platform import Platform

__all__ = ["host_names", "xml"]

_HEAD = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
"""
_GRIDS = {LinkLayout.TORUS: "TORUS", LinkLayout.TREE: "FAT_TREE"}


def xml(platform: Platform) -> str:
    """The text of the file. Raises UsageError for what SimGrid has no words for: rails, a torus or fat tree of unequal hosts."""
    link = platform.link
    if link.file:
        return Path(link.file[0]).read_text(encoding="utf-8")
    if link.rails > 1:
        raise UsageError(f"platform '{platform.name}' has {int(link.rails)} rails, a SimGrid platform one network", code="bad-topology")
    top = Element("platform", version="4.1")
    layout = link.of_kind.layout
    if layout in _GRIDS:
        SubElement(top, "zone", id="world", routing="Full").append(_grid(platform))  # SimGrid 4.1 takes no torus as the whole platform
    elif layout is LinkLayout.PORTS:
        top.append(_switch_zone("platform", platform.hosts, link))
    elif layout is LinkLayout.SITES:
        top.append(_sites(platform))
    else:
        top.append(_direct(platform))
    indent(top, "  ")
    return f"{_HEAD}<!-- {_about(platform)} -->\n{tostring(top, encoding='unicode')}\n"


def host_names(platform: Platform) -> list[str]:
    """The names of the hosts in the file, in order: their own, except in a torus or fat tree whose hosts are not numbered."""
    if platform.link.of_kind.layout not in _GRIDS:
        return [h.name for h in platform.hosts]
    prefix, first = _numbering(platform.hosts)
    return [f"{prefix}{first + i}" for i in range(len(platform.hosts))]


def _about(platform: Platform) -> str:
    """Properties that the format cannot express, as the text of a comment (without two dashes, which would end it)."""
    link = platform.link
    lost = f"operating systems, cards, {link.frame_overhead:g} B around the payload of each frame, frames of {link.mtu:g} B"
    if link.buffer > 0:
        lost += f", that {link.buffer:g} B may wait in a {link.kind}"
    text = f"{platform.name} ({platform.title}), written by retrompi. Not in this file: {lost}."
    return re.sub("-(?=-)", "- ", text)


def _host(into: Element, h: Host, name: str = "") -> None:
    SubElement(into, "host", id=name or h.name, speed=f"{h.flops!r}f", core=str(int(h.cores)))


def _link(into: Element, name: str, bandwidth: float, latency: float, policy: str = "SPLITDUPLEX") -> None:
    SubElement(into, "link", id=name, bandwidth=f"{bandwidth!r}Bps", latency=f"{latency!r}s", sharing_policy=policy)


def _numbering(hosts: Sequence[Host]) -> tuple[str, int]:
    """(prefix, first number) of hosts called n1, n2, ...; of others, those that the file gives them: node-0, node-1, ..."""
    found = re.fullmatch(r"(.*?)(0|[1-9]\d*)", hosts[0].name)
    if found and all(h.name == f"{found[1]}{int(found[2]) + i}" for i, h in enumerate(hosts)):
        return found[1], int(found[2])
    return "node-", 0


def _grid(platform: Platform) -> Element:
    """A torus or a fat tree: SimGrid's own clusters, whose routing the engine has too."""
    hosts, link = platform.hosts, platform.link
    if len({(h.flops, h.cores) for h in hosts}) > 1:
        raise UsageError(f"platform '{platform.name}': the hosts of a {link.kind} in SimGrid are all alike, these differ in flops or cores",
                         code="bad-topology")
    prefix, first = _numbering(hosts)
    parts = link.of_kind.parts(link.shape)
    shape = ";".join(",".join(map(str, part)) for part in parts)
    places = link.of_kind.places(link.shape)
    kind = {"topology": _GRIDS[link.of_kind.layout], "topo_parameters": shape if len(parts) == 1 else f"{len(parts[0])};{shape}"}
    return Element(
        "cluster", kind, id="platform", prefix=prefix, suffix="", radical=f"{first}-{first + places - 1}", speed=f"{hosts[0].flops!r}f",
        core=str(int(hosts[0].cores)), bw=f"{link.bandwidth!r}Bps", lat=f"{link.latency!r}s", sharing_policy="SPLITDUPLEX",
    )


def _switch_zone(name: str, hosts: Sequence[Host], link: Link) -> Element:
    """Hosts on one switch: a link up and down for each."""
    zone = Element("zone", id=name, routing="Cluster")
    for h in hosts:
        _host(zone, h)
    for h in hosts:
        _link(zone, f"link-{h.name}", link.bandwidth, link.latency)
    for h in hosts:
        SubElement(zone, "host_link", id=h.name, up=f"link-{h.name}_UP", down=f"link-{h.name}_DOWN")
    SubElement(zone, "router", id=f"{name}-router")
    return zone


def _sites(platform: Platform) -> Element:
    """A switch for every site, and a line between every two."""
    link, sites = platform.link, max(platform.link.shape) + 1
    world = Element("zone", id="platform", routing="Full")
    for site in range(sites):
        world.append(_switch_zone(f"site-{site}", [h for h, at in zip(platform.hosts, link.shape, strict=True) if at == site], link))
    pairs = [(a, b) for a in range(sites) for b in range(a + 1, sites)]
    for a, b in pairs:
        _link(world, f"line-{a}-{b}", link.wan_bandwidth, link.wan_latency)
    for a, b in pairs:
        for src, dst, way in ((a, b, "UP"), (b, a, "DOWN")):
            over = SubElement(world, "zoneRoute", src=f"site-{src}", dst=f"site-{dst}", gw_src=f"site-{src}-router",
                              gw_dst=f"site-{dst}-router", symmetrical="NO")
            SubElement(over, "link_ctn", id=f"line-{a}-{b}", direction=way)
    return world


def _direct(platform: Platform) -> Element:
    """A cable between two hosts, or one medium that all share."""
    zone, link = Element("zone", id="platform", routing="Full"), platform.link
    for h in platform.hosts:
        _host(zone, h)
    if len(platform.hosts) == 1:
        return zone
    hub = link.of_kind.shared
    _link(zone, link.kind, link.bandwidth, link.latency, "SHARED" if hub else "SPLITDUPLEX")
    for i, a in enumerate(platform.hosts):
        for b in platform.hosts[i + 1 :]:
            for src, dst, way in ((a, b, "UP"), (b, a, "DOWN")) if not hub else ((a, b, ""),):
                route = SubElement(zone, "route", src=src.name, dst=dst.name, symmetrical="YES" if hub else "NO")
                SubElement(route, "link_ctn", {"id": link.kind, **({"direction": way} if way else {})})
    return zone
