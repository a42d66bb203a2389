"""Platforms of SimGrid: an XML file says which hosts there are, what joins them and how messages are routed; the rest of a host, its
operating system, card and memory, is that of a host of the library.

``nt4-p6-200@cluster.xml`` has a host of the library for every one of the file. A TOML file has more to say (docs/simgrid.md)::

    name = "..."                      # title, years, summary, natural, [placement.NAME]: as for any platform
    simgrid = "cluster.xml"           # beside this file
    hosts = "nt4-p6-200"              # what every host is
    network = "switch-100"            # of the library: its cards and the overhead of its frames
    [like]
    "node-1*" = "linux-p6-200"        # other hosts, by name or pattern

The number of processors and their rate of computing are those of the file.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from retrompi.base import units
from retrompi.base.errors import InputError, UsageError
from retrompi.base.paths import stamp
from retrompi.spec.declare.fields import quantities
from retrompi.spec.host import Host
from retrompi.spec.machine.composition import MAX_HOSTS
from retrompi.spec.machine.link import Link
from retrompi.spec.machine.machines import Machine, Network, card_of, host
from retrompi.spec.machine.quantity_file import LONGEST_HOST, Quantity
from retrompi.spec.machine.topology import PLATFORM_FILE
from retrompi.spec.platform import LINK_RATES, Platform

__all__ = ["FileHost", "Filled", "PlatformFile", "compose_platform", "is_xml", "read", "resolve_name", "split"]

_PATIENCE_S = 60
_READ = """
import json, sys
from retrompi import _engine
try:
    json.dump(_engine.read_platform_file(sys.argv[1]), sys.stdout)
except _engine.ConfigError as error:
    sys.exit(str(error))
"""


@dataclass(frozen=True)
class FileHost:
    """A host of a platform file: its name there, the rate of a core in flop/s, its cores."""

    name: str
    speed: float
    cores: int


@dataclass(frozen=True)
class PlatformFile:
    """A platform as SimGrid reads it: hosts, and the links from the first of them to the others and back as (name, B/s, s)."""

    hosts: tuple[FileHost, ...]
    links: tuple[tuple[str, float, float], ...]


def is_xml(text: str) -> bool:
    """Whether the name of a platform is that of a SimGrid platform file, with or without a host of the library before an @."""
    return text.lower().endswith(".xml")


def split(text: str) -> tuple[str, Path]:
    """``nt4-p6-200@dir/cluster.xml`` -> host and file; a file alone has the host ""."""
    head, at, tail = text.partition("@")
    return (head, Path(tail)) if at and "/" not in head else ("", Path(text))


_KNOWN: dict[str, tuple[tuple[int, int] | None, PlatformFile]] = {}


def read(file: Path) -> PlatformFile:
    """A platform file as SimGrid reads it, the hosts in the order of their names with numbers compared as numbers.

    Raises InputError for a file that SimGrid refuses. A process of its own reads it, as SimGrid ends the process on some mistakes.
    """
    where, now = os.path.abspath(file), stamp(file)
    if now is None:
        raise UsageError(f"no platform file {file}; give a platform's name or the path of its .toml or .xml file", code="unknown-platform")
    known = _KNOWN.get(where)
    if known is None or known[0] != now:
        try:
            done = subprocess.run([sys.executable, "-c", _READ, where], capture_output=True, text=True, errors="replace", check=False,
                                  timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise InputError(f"SimGrid has not read it within {_PATIENCE_S} s", file, code="bad-platform-file") from None
        if done.returncode:
            raise _refusal(file, done.stderr)
        hosts, links = json.loads(done.stdout)
        known = now, PlatformFile(tuple(sorted((FileHost(*row) for row in hosts), key=_by_number)), tuple(map(tuple, links)))
        _KNOWN[where] = known
    return known[1]


def _by_number(h: FileHost) -> list[Any]:
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.findall(r"\d+|\D+", h.name)]


def _refusal(file: Path, said: str) -> InputError:
    """The first thing that SimGrid has said, without its own places."""
    lines = [re.sub(r"^\[[^]]*\]\s*|\S+\.[ch]pp:\d+:\s*|\[[\w/]+\]\s*", "", line).strip() for line in said.splitlines()]
    told = next((line for line in lines if line and not line.startswith(("->", "Current backtrace"))), "it ended without a reason")
    told = re.sub(r"^(SimGrid refuses [^:]*: |Uncaught exception \S+: )+", "", told)
    at = re.search(rf"{re.escape(file.name)}:(\d+)", told)
    told = re.sub(rf"(Parse error )?(at )?\S*{re.escape(file.name)}:\d+:?\s*", "", told)
    return InputError(f"SimGrid refuses it: {told[:300]}", file, int(at[1]) if at else None, code="bad-platform-file")


@dataclass(frozen=True)
class Filled:
    """Values for the hosts of a file: the ``host`` of most, ``others`` by pattern of the name, and the ``network`` whose cards they
    have."""

    host: Machine
    network: Network | None = None
    others: Mapping[str, Machine] = field(default_factory=dict)

    def of(self, name: str) -> Machine:
        """The host of the library that a host of the file is like."""
        return next((machine for pattern, machine in self.others.items() if fnmatchcase(name, pattern)), self.host)


def _names(found: Sequence[FileHost], file: Path) -> list[str]:
    """Names without the dots that separate a host from its value: without the domain that all have, others with a dash."""
    whole = [h.name for h in found]
    heads = [name.partition(".")[0] for name in whole]
    alike = len({name.partition(".")[2] for name in whole}) == 1 and len(set(heads)) == len(heads)
    names = heads if alike else [name.replace(".", "-") for name in whole]
    for name, full in zip(names, whole, strict=True):
        if len(name) > LONGEST_HOST or name in ("host", "link") or any(c in name for c in ",*:@+"):
            raise InputError(f"the host name '{full[:80]}' cannot be one here: at most {LONGEST_HOST} characters, none of , * : @ +", file,
                             code="bad-name")
    if len(set(names)) < len(names):
        raise InputError("two of its hosts have names that differ in dots and dashes only", file, code="duplicate-name")
    return names


def compose_platform(file: Path, filled: Filled) -> Platform:
    """The platform of a file's hosts and links. Raises as `read`, and InputError for a file without hosts or with too many."""
    whole = read(file)
    found = whole.hosts
    if not 1 <= len(found) <= MAX_HOSTS:
        raise InputError(f"it has {len(found)} hosts; a platform has 1 to {MAX_HOSTS}", file, code="out-of-range")
    by = f"assumed: {file.name}"
    hosts: list[Host] = []
    numbers: dict[str, Quantity] = {}
    for name, given in zip(_names(found, file), found, strict=True):
        machine = filled.of(given.name)
        own = {**machine.quantities, **card_of(machine, filled.network)}
        for key, value in (("cores", float(given.cores)), ("flops", given.speed)):
            own[key] = _stated_quantity(key, value, by, name)
        values = {k: own[k] for k in quantities(Host) if k in own}
        hosts.append(Host(name, machine.os, machine.byte_order, **{k: q.value for k, q in values.items()}))
        numbers |= {f"{name}.{k}": q for k, q in values.items()}
    link, of_link = _link(file, whole, filled.network)
    title = f"{file.name}: {len(found)} hosts, {filled.host.title}" if len(found) > 1 else f"{file.name}: {filled.host.title}"
    return Platform(
        name=f"{filled.host.name}@{file.name}"[-80:], title=title, years=filled.host.years,
        summary=f"hosts, links and routes of {file.name}",
        hosts=tuple(hosts), link=link, quantities={**numbers, **of_link},
        technology=filled.network.technology if filled.network is not None else "",
    )


def _stated_quantity(key: str, value: float, source: str, name: str) -> Quantity:
    f = quantities(Host)[key]
    text = units.format_quantity(value, f.unit)
    return Quantity(f.parse(text, f"{name}.{key}"), units.canonical(f.unit), text, source, f.help)


def _link(file: Path, read: PlatformFile, net: Network | None) -> tuple[Link, dict[str, Quantity]]:
    """The link: what frames are like is the network's, else nothing is added to them; every link's rate and latency is the file's."""
    numbers: dict[str, Quantity] = {}
    extremes = {"bandwidth": min((b for _, b, _ in read.links), default=1e9), "latency": max((t for _, _, t in read.links), default=0.0)}
    for key, f in quantities(Link).items():
        if key in extremes:
            text = units.format_quantity(extremes[key], f.unit)
            which = "slowest" if key == "bandwidth" else "longest"
            source = f"assumed: {file.name}, the {which} link from its first host to the others"
            numbers[key] = Quantity(extremes[key], units.canonical(f.unit), text, source, f.help)
        elif key in LINK_RATES:
            continue
        elif net is not None and f"link.{key}" in net.quantities:
            numbers[key] = net.quantities[f"link.{key}"]
        elif not f.optional:
            plain = f.parse(f.plain, key)
            numbers[key] = Quantity(plain, units.canonical(f.unit), f.plain, f"assumed: {file.name} does not say", f.help)
    names = tuple(h.name for h in read.hosts)
    values: dict[str, Any] = {k: q.value for k, q in numbers.items()}
    link = Link(kind=PLATFORM_FILE, shape=(), **values, file=(os.path.abspath(file), *names))
    return link, {f"link.{k}": q for k, q in numbers.items()}


def resolve_name(text: str) -> Platform | Path:
    """The platform called ``HOST@FILE.xml``; for ``FILE.xml`` the TOML file beside it, which says what its hosts are.

    Raises UsageError if there is none, or for an unknown host, and as `compose_platform`.
    """
    name, file = split(text)
    if name:
        return replace(compose_platform(file, Filled(host(name))), path=None)
    beside = file.with_suffix(".toml")
    if beside.is_file():
        return beside
    read(file)
    raise UsageError(f"{file.name} does not say what its hosts are; -p nt4-p6-200@{file} takes a host of the library for each, or write "
                     f"{beside.name} beside it (docs/simgrid.md)", code="missing-key")
