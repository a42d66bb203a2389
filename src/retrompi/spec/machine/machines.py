"""The library of machines: hosts (``hosts/NAME.toml``) and networks (``networks/NAME.toml``), and the platforms composed of them.

A host of the library has every value of a `Host` except those of its network card, which belong to the network (`CARD_KEYS`); its bus
limits the card. ``like = "HOST"`` takes over the values of another one; with ``services = "scaled"`` what its operating system does
(`SERVICES`) takes as much longer as its processor is slower.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from retrompi.base import paths, units
from retrompi.base import toml as toml_text
from retrompi.base.errors import InputError, RetrompiError, UsageError, nearest
from retrompi.base.paths import stamp
from retrompi.spec.declare.fields import fields_of, quantities
from retrompi.spec.host import REFERENCE_CLOCK, Host
from retrompi.spec.machine import topology
from retrompi.spec.machine.composition import Composition
from retrompi.spec.machine.link import Link
from retrompi.spec.machine.quantity_file import CARD, LINK, Reader, fit_values, fits_at_hand, with_fitted
from retrompi.spec.platform import Platform, Quantity

__all__ = [
    "CARD_KEYS",
    "SERVICES",
    "Machine",
    "Network",
    "Read",
    "at",
    "card_of",
    "compose",
    "files",
    "host",
    "host_names",
    "hosts",
    "load_errors",
    "network",
    "network_names",
    "networks",
    "platform",
]

CARD_KEYS = ("nic_rate", "nic_rate_in", "nic_latency", "mss", "rx_buffer")
"""Values of a host that its network card brings, and with it the network."""
SERVICES = ("dispatch", "syscall", "interrupt", "tcp_segment", "tcp_byte", "loopback_segment")
"""What an operating system does by computing; the other values of a system are periods, sizes and rules."""
_WORDS = ("os", "byte_order")
_ABOUT = ("title", "years", "summary")
_FOLDERS = {"host": "hosts", "network": "networks"}
_ALONE = "assumed: one machine, no network"
_DEEPEST = 16

T = TypeVar("T")
Read = dict[Path, tuple[int, int] | None]
"""The files that something was read from, with their stamps."""


@dataclass(frozen=True)
class Machine:
    """A host of the library: its values with provenance, all of `Host` but `CARD_KEYS`."""

    name: str
    title: str
    years: str
    summary: str
    os: str
    byte_order: str
    quantities: Mapping[str, Quantity]
    path: Path
    like: str = ""
    """The host that the values come from which its file does not state."""
    services: Mapping[str, tuple[str, Quantity, float]] = field(default_factory=dict)
    """Scaled value -> (host that it was stated for, the statement, the speed of that host)."""

    @property
    def speed(self) -> float:
        """Of its processor, on the scale of `Host.speed`."""
        return _speed(self.quantities)


@dataclass(frozen=True)
class Network:
    """A network of the library: ``quantities`` has ``link.KEY`` and ``card.KEY`` with provenance; ``shape`` is () where hosts give it."""

    name: str
    title: str
    years: str
    summary: str
    kind: str
    shape: tuple[int, ...]
    words: Mapping[str, str]
    quantities: Mapping[str, Quantity]
    path: Path
    like: str = ""
    technology: str = ""
    """One of `retrompi.spec.needs.TECHNOLOGIES`; empty where it is not declared."""


def _host_keys() -> dict[str, Any]:
    return {k: f for k, f in quantities(Host).items() if k not in CARD_KEYS}


def _card_keys() -> dict[str, Any]:
    return {k: f for k, f in quantities(Host).items() if k in CARD_KEYS}


def _speed(given: Mapping[str, Quantity]) -> float:
    return given["clock"].value * given["work"].value / REFERENCE_CLOCK


# --- where they are ------------------------------------------------------------------------------------------------------------


def _folders(kind: str, beside: Path | None) -> list[Path]:
    """Folders that are searched for hosts or networks: beside a platform's file, in the package, the papers at hand, the user's folder."""
    roots = [*([beside] if beside is not None else []), *paths.places("platforms")]
    return [root / _FOLDERS[kind] for root in roots]


def files(kind: str, beside: Path | None = None) -> dict[str, Path]:
    """Name -> file of every ``host`` or ``network``; ``beside`` is the folder of a platform's file, whose own come first."""
    found: dict[str, Path] = {}
    for folder in _folders(kind, beside):
        for file in sorted(folder.glob("*.toml"), key=lambda f: f.stem) if folder.is_dir() else ():
            if not file.name.endswith(".fit.toml"):
                found.setdefault(file.stem, file)
    return found


def host_names() -> list[str]:
    """The names of the library's hosts, the user's included."""
    return list(files("host"))


def network_names() -> list[str]:
    """The names of the library's networks, the user's included."""
    return list(files("network"))


def at(file: Path) -> Machine | Network:
    """The host or network in ``file``, by the folder that it is in. Raises as `host`."""
    root = file.resolve().parent.parent
    return network(file.stem, root) if file.resolve().parent.name == _FOLDERS["network"] else host(file.stem, root)


_PARTS: dict[tuple[str, ...], tuple[Read, Machine | Network]] = {}
"""(kind, name, file, folders of platforms) -> (the files it was read from with their stamps, the host or network)."""


def _remember(known: dict[tuple[str, ...], tuple[Read, T]], most: int, key: tuple[str, ...], made: Callable[[Read], T]) -> T:
    """What was read for ``key`` until one of its files changes; menus of the studio list the whole library for every page."""
    held = known.get(key)
    if held is not None and all(stamp(f) == then for f, then in held[0].items()):
        return held[1]
    read: Read = {}
    new = made(read)
    if len(known) >= most:
        known.clear()
    known[key] = read, new
    return new


def hosts() -> dict[str, Machine]:
    """Name -> host of the library; one of the user's that cannot be read is left out (`load_errors`)."""
    return {name: read for name, file in files("host").items() if isinstance(read := _read_or_error("host", name, file), Machine)}


def networks() -> dict[str, Network]:
    """Name -> network of the library, as `hosts`."""
    return {name: read for name, file in files("network").items() if isinstance(read := _read_or_error("network", name, file), Network)}


def load_errors() -> dict[str, RetrompiError]:
    """Name -> error of the user's hosts and networks that cannot be read."""
    theirs = ((kind, name, file) for kind in _FOLDERS for name, file in files(kind).items() if not _is_shipped(kind, file))
    tried = {name: _read_or_error(kind, name, file) for kind, name, file in theirs}
    return {name: error for name, error in tried.items() if isinstance(error, RetrompiError)}


def _read_or_error(kind: str, name: str, file: Path) -> Machine | Network | RetrompiError:
    """The host or network in ``file``, or the error of one of the user's; raises the error of one of the package's."""
    key = kind, name, str(file), *map(os.fspath, paths.places("platforms"))
    try:
        return _remember(_PARTS, 1024, key, lambda read: host(name, read=read) if kind == "host" else network(name, read=read))
    except RetrompiError as error:
        if _is_shipped(kind, file):
            raise
        return error


def _is_shipped(kind: str, file: Path) -> bool:
    return file.parent == paths.platforms_dir() / _FOLDERS[kind]


def _file(kind: str, name: str, beside: Path | None) -> Path:
    if not any(c in name for c in "/\\\0") and not name.startswith(".") and not name.endswith(".fit"):
        for folder in _folders(kind, beside):
            if (file := folder / f"{name}.toml").is_file():
                return file
    message = f"no {kind} '{name[:80]}' in the library{nearest(name, files(kind, beside), 40)}"
    raise UsageError(message, code="unknown-host") if kind == "host" else UsageError(message, code="unknown-network")


# --- reading -------------------------------------------------------------------------------------------------------------------


def _apply_fits(given: dict[str, Quantity], file: Path, own: Iterable[str], of: Callable[[str], Any], read: Read) -> dict[str, Quantity]:
    """``given`` with the results of ``<stem>.fit.toml`` beside ``file``; what this file says is fitted and is not there says so."""
    fit = file.with_name(f"{file.stem}.fit.toml")
    fits = [(fit, fit_values(fit) if fit.is_file() else {}, "")]
    fits += [(theirs, values, theirs.parent.name) for theirs, values in fits_at_hand(file.stem, file)]
    found: set[str] = set()
    for fit, values, by in fits:
        read[fit] = stamp(fit)
        found |= values.keys()
        for key, text in values.items():
            try:
                if key not in given:
                    raise UsageError(f"no '{key}' in '{file.stem}'{nearest(key, given)}", code="unknown-parameter")
                given[key] = with_fitted(given[key], of(key), key, text, f"'{file.stem}'", by)
            except UsageError as error:
                raise InputError(str(error), fit, code=error.code) from None
    unfitted = {k for k in own if given[k].source.startswith("fit:") and k not in found}
    return {k: replace(q, source="assumed: not fitted yet") if k in unfitted else q for k, q in given.items()}


def _about(reader: Reader) -> dict[str, str]:
    return {k: reader.string(reader.data, k) for k in _ABOUT}


def _like(reader: Reader, kind: str, depth: int) -> str:
    """``like`` of a file, or "". Raises InputError for a chain without an end."""
    if "like" not in reader.data:
        return ""
    name = reader.string(reader.data, "like")
    if depth > _DEEPEST or name == reader.path.stem:
        raise reader.fail(f"like = '{name}': these {kind}s are each like another one", "like", code="bad-value")
    return name


def _root(reader: Reader) -> Path:
    """The folder whose hosts and networks come first for a ``like``: the one that has the file's own folder."""
    return reader.path.parent.parent


def _scale_services(like: Machine, given: Mapping[str, Quantity]) -> tuple[dict[str, Quantity], dict[str, tuple[str, Quantity, float]]]:
    """The services of ``like`` by the ratio of speeds, and where each was stated: a chain of ``like`` scales once."""
    found, roots = {}, {}
    for key in SERVICES:
        name, q, speed = like.services.get(key) or (like.name, like.quantities[key], like.speed)
        roots[key] = (name, q, speed)
        ratio = speed / _speed(given)
        text = units.format_quantity(q.value * ratio, q.unit)
        low, high = (None if end is None else end * ratio for end in (q.low, q.high))
        source = f"assumed: {name}'s {q.text} ({q.source}) by the ratio of speeds"
        found[key] = Quantity(units.parse(text, q.unit), q.unit, text, source, q.help, low, high)
    return found, roots


def host(name: str, beside: Path | None = None, read: Read | None = None, depth: int = 0) -> Machine:
    """The host called ``name``. ``beside`` as of `files`; the files that it was read from are added to ``read``.

    Raises UsageError for an unknown name, InputError with file and line for an invalid file.
    """
    read = {} if read is None else read
    file = _file("host", name, beside)
    read[file] = stamp(file)
    with toml_text.taken_apart("host", file):
        return _host(Reader(file, "host"), read, depth)


def _host(reader: Reader, read: Read, depth: int) -> Machine:
    given, keys = reader.data, _host_keys()
    stated = reader.table(given, keys, (*_ABOUT, *_WORDS, "like", "services"), None)
    numbers, words, roots = dict(stated), {}, {}
    like = _like(reader, "host", depth)
    if like:
        try:
            other = host(like, _root(reader), read, depth + 1)
        except UsageError as error:
            raise reader.fail(f"like = '{like}': {error}", "like", code=error.code) from None
        numbers = {**other.quantities, **stated}
        words, roots = {"os": other.os, "byte_order": other.byte_order}, dict(other.services)
        if "services" in given:
            if given["services"] != "scaled":
                raise reader.fail("'services' is \"scaled\" or not given", "services", code="bad-value")
            scaled, roots = _scale_services(other, numbers)
            numbers = {**numbers, **scaled, **stated}
        roots = {k: v for k, v in roots.items() if k not in stated}
    elif "services" in given:
        raise reader.fail("'services' scales those of another host; say which with like", "services", code="missing-key")
    words = {k: reader.string(given, k) if k in given or k not in words else words[k] for k in _WORDS}
    try:
        fields_of(Host)["byte_order"].check(words["byte_order"], "byte_order")
    except UsageError as error:
        raise reader.fail(str(error), "byte_order", code=error.code) from None
    if missing := [k for k in keys if k not in numbers and not fields_of(Host)[k].optional]:
        raise reader.fail(f"host '{reader.path.stem}' lacks {', '.join(missing)}", code="missing-key")
    numbers = _apply_fits({k: numbers[k] for k in keys if k in numbers}, reader.path, stated, keys.__getitem__, read)
    return Machine(reader.path.stem, **_about(reader), **words, quantities=numbers, path=reader.path, like=like, services=roots)


def network(name: str, beside: Path | None = None, read: Read | None = None, depth: int = 0) -> Network:
    """The network called ``name``; as `host`."""
    read = {} if read is None else read
    file = _file("network", name, beside)
    read[file] = stamp(file)
    with toml_text.taken_apart("network", file):
        return _network(Reader(file, "network"), read, depth)


def _network(reader: Reader, read: Read, depth: int) -> Network:
    top = (*_ABOUT, "like", "link", "card")
    for key in reader.data:
        if key not in top:
            raise reader.fail(f"unknown key '{key}'{nearest(key, top)}", key, code="unknown-key")
    link, card = (reader.data.get(k, {}) for k in ("link", "card"))
    of_link, of_card = quantities(Link), _card_keys()
    stated = {f"link.{k}": q for k, q in reader.table(link, of_link, ("kind", "shape", "technology", *topology.WORDS), LINK).items()}
    stated |= {f"card.{k}": q for k, q in reader.table(card, of_card, (), CARD).items()}
    numbers, kind, words = dict(stated), "", topology.DEFAULT_WORDS
    technology = reader.technology(link, LINK)
    shape: tuple[int, ...] = ()
    like = _like(reader, "network", depth)
    if like:
        try:
            other = network(like, _root(reader), read, depth + 1)
        except UsageError as error:
            raise reader.fail(f"like = '{like}': {error}", "like", code=error.code) from None
        numbers, kind, shape, words = {**other.quantities, **stated}, other.kind, other.shape, dict(other.words)
        technology = technology or other.technology
    try:
        if "kind" in link or not kind:
            kind, shape = topology.parse_kind(reader.string(link, "kind", LINK)), ()
        if topology.of(kind).sited:
            raise UsageError("a network of the library has no sites; a platform with [[host]] tables has", code="bad-topology")
        if "shape" in link:
            shape = topology.of(kind).parse(reader.string(link, "shape", LINK))
        words = topology.words(link, words)
        topology.of(kind).check_needs([k.removeprefix("link.") for k in numbers])
        topology.check_sharing(kind, words["access"], numbers["link.buffer"].value if "link.buffer" in numbers else 0.0)
    except UsageError as error:
        raise reader.fail(str(error), "kind", LINK, code=error.code) from None
    needed = {f"link.{k}": f for k, f in of_link.items()} | {f"card.{k}": f for k, f in of_card.items()}
    if missing := [k for k, f in needed.items() if not f.optional and k not in numbers]:
        raise reader.fail(f"network '{reader.path.stem}' lacks {', '.join(missing)}", code="missing-key")
    ordered = {k: numbers[k] for k in needed if k in numbers}
    numbers = _apply_fits(ordered, reader.path, stated, needed.__getitem__, read)
    return Network(
        reader.path.stem, **_about(reader), kind=kind, shape=shape, words=words, quantities=numbers, path=reader.path, like=like,
        technology=technology,
    )


# --- composing -----------------------------------------------------------------------------------------------------------------


def card_of(machine: Machine, net: Network | None) -> dict[str, Quantity]:
    """The values of a host's card on a network; its rates are the host's bus's where that is slower."""
    if net is None:
        return {
            k: Quantity(f.parse(f.plain, k), units.canonical(f.unit), f.plain, _ALONE, f.help)
            for k, f in _card_keys().items()
            if not f.optional
        }
    found = {k: net.quantities[f"card.{k}"] for k in CARD_KEYS if f"card.{k}" in net.quantities}
    if not machine.os.startswith("Linux"):
        found.pop("rx_buffer", None)  # other systems count the data in a receive buffer
    bus = machine.quantities["bus_rate"]
    for key in ("nic_rate", "nic_rate_in"):
        if key in found and bus.value < found[key].value:
            found[key] = replace(bus, help=f"the host's bus; the card itself does {found[key].text}")
    return found


def _link(net: Network | None, hosts: int) -> tuple[Link, dict[str, Quantity]]:
    if net is None:
        found = {
            k: Quantity(f.parse(f.plain, k), units.canonical(f.unit), f.plain, _ALONE, f.help)
            for k, f in quantities(Link).items()
            if not f.optional
        }
        return Link(kind="switch", shape=(), **{k: q.value for k, q in found.items()}), found  # type: ignore[arg-type]
    found = {k.removeprefix("link."): q for k, q in net.quantities.items() if k.startswith("link.")}
    kind = topology.of(net.kind)
    shape = kind.grow(net.shape, hosts) if net.shape else kind.default(hosts)
    return Link(kind=net.kind, shape=shape, **{k: q.value for k, q in found.items()}).with_words(net.words), found  # type: ignore[arg-type]


def compose(what: Composition, beside: Path | None = None, read: Read | None = None) -> Platform:
    """The platform of hosts and network of the library, its hosts called n1, n2, ... Raises UsageError for an unknown name, InputError."""
    read = {} if read is None else read
    net = network(what.network, beside, read) if what.network else None
    if net is not None and topology.of(net.kind).joins_two and what.hosts > 2:
        raise UsageError(f"'{what.network}' is a {net.kind} between two hosts; '{what}' has {what.hosts}", code="bad-topology")
    link, of_link = _link(net, what.hosts)
    order = list(quantities(Host))
    hosts: list[Host] = []
    found: dict[str, Quantity] = {}
    kinds = {}
    for name, count in what.terms:
        kinds[name] = machine = host(name, beside, read)
        own = {**machine.quantities, **card_of(machine, net)}
        values = {k: own[k] for k in order if k in own}
        one = Host("n", machine.os, machine.byte_order, **{k: q.value for k, q in values.items()})
        for _ in range(count):
            hosts.append(replace(one, name=f"n{len(hosts) + 1}"))
            found |= {f"{hosts[-1].name}.{k}": q for k, q in values.items()}
    parts: list[Machine | Network] = [*kinds.values(), *([net] if net is not None else [])]
    title = ", ".join(kinds[name].title if n == 1 else f"{n} x {kinds[name].title}" for name, n in what.terms)
    return Platform(
        name=str(what),
        title=f"{title}; {net.title}" if net is not None else title,
        years=", ".join(dict.fromkeys(p.years for p in parts)),
        summary="; ".join(dict.fromkeys(p.summary for p in parts)),
        hosts=tuple(hosts),
        link=link,
        quantities={**found, **{f"link.{k}": q for k, q in of_link.items()}},
        technology=net.technology if net is not None else "",
    )


_KNOWN: dict[tuple[str, ...], tuple[Read, Platform]] = {}
"""(composition, folders of platforms) -> (the files it was read from with their stamps, the platform)."""


def platform(what: Composition) -> Platform:
    """`compose`, cached until one of the files changes."""
    key = str(what), *map(os.fspath, paths.places("platforms"))
    return _remember(_KNOWN, 64, key, lambda read: compose(what, None, read))  # as many as a large study has
