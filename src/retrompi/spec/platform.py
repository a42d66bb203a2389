"""A platform: hosts with an operating system, and the link that connects them, read from one TOML file.

Every value is an inline table ``{value = "120 ms", source = "doc:E-NT-01", help = "..."}``; after loading,
``platform.hosts[0].quantum`` is a float in base units. The keys of a host and of the link are the fields of
`Host` and `Link`, where each is declared once: a missing or unknown key is an error, so that no value has a hidden default.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from retrompi.base import units
from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.spec.declare.fields import Field, Follows, quantities
from retrompi.spec.host import Host
from retrompi.spec.hosts import EVERY_HOST, Grown, GrownQuantities, Hosts
from retrompi.spec.machine import placements, topology
from retrompi.spec.machine.composition import MAX_SIZED
from retrompi.spec.machine.link import Link
from retrompi.spec.machine.placements import Placement
from retrompi.spec.machine.quantity_file import Quantity, fit_values, with_fitted
from retrompi.spec.runtime.overrides import absolute

__all__ = ["LINK_RATES", "LINK_WORDS", "Placement", "Platform", "Quantity", "declaration", "following"]

"""The prefixes of a source; the exact reference follows."""

LINK_RATES = ("bandwidth", "latency", "rails", "wan_bandwidth", "wan_latency", "buffer")
"""Values of a link that a SimGrid platform file has for each of its links."""
LINK_WORDS = ("kind", "shape", "sites", *topology.WORDS)
"""Keys that `Platform.with_overrides` accepts as ``link.KEY`` beside quantities."""

_SUGGESTED = 256
"""Hosts whose names are suggested for a name that does not exist, and that are told one by one."""
_CHANGED, _SIZED = 64, 4
"""Maximum number of derived platforms cached: with overrides, and of another size."""


@dataclass(frozen=True)
class Platform:
    """A loaded platform. ``quantities`` maps ``server.quantum`` or ``link.bandwidth`` to its value with provenance."""

    name: str
    title: str
    years: str
    summary: str
    hosts: Hosts
    link: Link
    quantities: Mapping[str, Quantity]
    path: Path | None = None
    overridden: frozenset[str] = frozenset()
    followed: Mapping[str, str] = field(default_factory=dict)
    """Path of each number that followed an override -> the path that was set."""
    placements: Mapping[str, Placement] = field(default_factory=dict)
    natural: str = ""
    """The placement of a job whose user names none, as the file declares it; empty: by the processors of its hosts."""
    technology: str = ""
    """What its network is, one of `retrompi.spec.needs.TECHNOLOGIES`; empty: not declared, or no network. It changes no time."""

    def host(self, name: str) -> Host:
        """The host called ``name``; raises UsageError, listing the hosts, if there is none."""
        found = self.index(name)
        if found is not None:
            return self.hosts[found]
        names = [h.name for h in self.hosts[:_SUGGESTED]]
        raise UsageError(f"platform '{self.name}' has no host '{name}'{nearest(name, names)}", code="unknown-host")

    def index(self, name: str) -> int | None:
        """The index in `hosts` of the host called ``name``; None if there is none."""
        if isinstance(self.hosts, Grown):
            return self.hosts.number(name)
        return next((i for i, h in enumerate(self.hosts) if h.name == name), None)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of every name and value, including overrides: equal for platforms with the same simulation results."""
        own, values = self.hosts, self.quantities
        facts: dict[str, Any] = {"kind": self.link.kind, "shape": self.link.shape}
        # Grown beyond their own number: the pattern, and what departs from it.
        if isinstance(own, Grown) and isinstance(values, GrownQuantities) and own.size > len(own.own):
            facts |= {"size": own.size, "changed": {path: q.value for path, q in values.changed.items()}}
            own, values = own.own, values.original
        facts |= {"hosts": [[h.name, h.os, h.byte_order] for h in own], "values": {path: q.value for path, q in values.items()}}
        if self.placements:
            facts["placements"] = {name: [list(p), list(p.cores)] for name, p in self.placements.items()}
        if self.link.file:
            facts["file"] = [hashlib.sha256(Path(self.link.file[0]).read_bytes()).hexdigest(), *self.link.file[1:]]
        facts |= {word: value for word, value in self.link.words.items() if value != topology.DEFAULT_WORDS[word]}
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def describe(self) -> list[dict[str, Any]]:
        """Rows path, value, unit, source, help, low, high (values in base units) for cards and tables."""
        return [
            {
                "path": path,
                "value": q.value,
                "text": q.text,
                "unit": q.unit,
                "source": q.source,
                "help": q.help,
                "low": q.low,
                "high": q.high,
            }
            for path, q in self.quantities.items()
        ]

    def placement(self, text: str) -> str | list[int]:
        """The placement in normal form (`retrompi.spec.machine.placements.normal`); raises UsageError for an unknown one."""
        return placements.normal(text, self.name, self.hosts, self.placements, self.natural)

    def with_overrides(self, sets: Mapping[str, str]) -> Platform:
        """A copy with ``{"host.quantum": "20 ms", "server.cores": "x2", "link.bandwidth": "100 Mbps"}`` and what derives from them.

        Keys have no ``platform.`` prefix; ``host`` means every host. ``x2`` and ``50%`` are parts of the value in force. Raises
        UsageError for an unknown key, a wrong unit or a value out of bounds.
        """
        key = tuple(sets.items())
        if key not in self._changed_before:
            if len(self._changed_before) >= _CHANGED:
                self._changed_before.clear()
            self._changed_before[key] = self._with(sets)
        return self._changed_before[key]

    @cached_property
    def _changed_before(self) -> dict[tuple[tuple[str, str], ...], Platform]:
        """Cache of `with_overrides`: the points of a study share few derived platforms."""
        return {}

    def _with(self, sets: Mapping[str, str]) -> Platform:
        words: dict[str, str] = {}
        numbers: dict[str, str] = {}
        for key, text in sets.items():
            name = key.removeprefix("link.")
            if self.link.file and key.startswith("link.") and name in (*LINK_WORDS, *LINK_RATES):
                raise UsageError(f"platform.{key}: the links are those of {Path(self.link.file[0]).name}", code="bad-topology")
            if key.startswith("link.") and name in LINK_WORDS:
                words[name] = text
            else:
                numbers[key] = text
        paths = {path for key in numbers for path in self.paths(key)}
        platform = self._with_numbers(numbers)
        try:
            platform = replace(platform, link=platform._link_with(words))
            link, kind = platform.link, platform.link.of_kind
            kind.check(link.shape, len(platform.hosts), [k for k in kind.needs if f"link.{k}" in platform.quantities])
            topology.check_sharing(link.kind, link.access, link.buffer)
        except UsageError as error:
            raise UsageError(f"platform.link: {error}", code=error.code) from None
        return replace(platform, overridden=self.overridden | paths | {f"link.{word}" for word in words})

    def _with_numbers(self, sets: Mapping[str, str]) -> Platform:
        """A copy with the numbers of ``sets`` and what follows them (`Follows`)."""
        if not isinstance(self.hosts, Grown) or not isinstance(self.quantities, GrownQuantities):
            return self._set(sets)
        # What every host has is set for the hosts of the pattern, each of which may have another value before.
        of_one = {key: text for key, text in sets.items() if not key.startswith(("link.", f"{EVERY_HOST}."))}
        of_all = {key: text for key, text in sets.items() if key not in of_one}
        pattern = replace(self, hosts=self.hosts.own, quantities=self.quantities.of_pattern())._set(of_all)
        kept = self.quantities.of_single({key.rpartition(".")[2] for key in of_all})
        hosts = Grown(pattern.hosts, self.hosts.size, which=self.hosts.which).with_values(_by_owner(kept))
        return replace(pattern, hosts=hosts, quantities=GrownQuantities(hosts, pattern.quantities, kept))._set(of_one)

    def _set(self, sets: Mapping[str, str]) -> Platform:
        """`_with_numbers` of a platform whose hosts each have values of their own, or of keys of single hosts."""
        changed: dict[str, Quantity] = {}
        # First the overrides of every host, then those of one: the more specific wins regardless of the order on the command line.
        for key in sorted(sets, key=lambda k: not k.startswith(f"{EVERY_HOST}.")):
            for path in self.paths(key):
                was, f = self.quantity(path), declaration(path)
                old = changed.get(path, was)
                text = absolute(sets[key], f.unit, old.text, f"platform.{key}")
                source = f"assumed: set by the user (was {was.text}, {was.source})"
                changed[path] = replace(old, value=f.parse(text, f"platform.{key}"), text=text, source=source)
        following = self._following(changed)
        bases = {path: base for path, (base, _) in following.items()}
        moved = {path: q for path, (_, q) in following.items()}
        return replace(self._with_quantities({**moved, **changed}, self.link), followed={**self.followed, **bases})

    def _following(self, changed: Mapping[str, Quantity]) -> dict[str, tuple[str, Quantity]]:
        """Path -> (the path that it follows, its value) of every number of a host that derives from one of ``changed`` and is not there."""
        found = {}
        for path, base in changed.items():
            owner, _, key = path.rpartition(".")
            owners = [h.name for h in self.hosts] if owner == "link" else [owner]
            for name, rule in following(path if owner == "link" else key):
                for mine in (f"{o}.{name}" for o in owners):
                    own = self.quantities.get(mine)
                    if own is None or mine in changed:
                        continue
                    text = rule.text(own.text, own.unit, self.quantity(path).value, base.value)
                    if text is not None:
                        source = f"assumed: follows platform.{path} (was {own.text}, {own.source})"
                        value = declaration(mine).parse(text, f"platform.{mine}, which follows platform.{path}")
                        found[mine] = path, replace(own, value=value, text=text, source=source)
        return found

    def _link_with(self, words: Mapping[str, str]) -> Link:
        """The link with another kind, shape, sites, rail policy or access rule. A new kind without a shape gets its default shape."""
        kind = topology.parse_kind(words["kind"]) if "kind" in words else self.link.kind
        shape = self.link.shape if kind == self.link.kind else topology.of(kind).default(len(self.hosts))
        if "shape" in words:
            shape = topology.of(kind).parse(words["shape"])
        if "sites" in words:
            if not topology.of(kind).sited:
                raise UsageError(f"a {kind} has no sites; a wan has", code="bad-topology")
            shape = topology.parse_sites(words["sites"], len(self.hosts))
        return replace(self.link, kind=kind, shape=shape).with_words(topology.words(words, self.link.words))

    def with_fit(self, file: Path, values: Mapping[str, str] | None = None, by: str = "") -> Platform:
        """A copy with the ``fit:`` quantities set to the results of calibrations (tables ``[BY.values]``, keys as in `with_overrides`).

        ``values`` are those of ``file`` that are meant, and ``by`` the paper at hand whose they are. Raises InputError for a value of a
        quantity that is not fitted or outside its sourced range.
        """
        changed: dict[str, Quantity] = {}
        for key, text in (fit_values(file) if values is None else values).items():
            try:
                for path in self.paths(key):
                    changed[path] = with_fitted(self.quantity(path), declaration(path), key, text, f"platform '{self.name}'", by)
            except UsageError as error:
                raise InputError(str(error), file, code=error.code) from None
        return self._with_quantities(changed, self.link)

    def of_size(self, n: int) -> Platform:
        """The same platform with ``n`` hosts, called ``NAME*n``: its own hosts cyclically, copies being called ``HOST-2``, ``HOST-3``, ...

        A torus becomes the most cubic one with at least ``n`` places, a fat tree gets as many switches as needed, a copy is
        at the site of its original (`topology.LinkKind.grow`). Placements that name a removed host are dropped.
        Intended for scaling studies; the effect of a larger switch or hub on its latency is not modelled. Copies share the values of
        their originals. Raises UsageError unless 1 <= n <= `MAX_SIZED`.
        """
        if not 1 <= n <= MAX_SIZED:
            raise UsageError(f"platform '{self.name}' can have 1 to {MAX_SIZED} hosts, not {n}", code="out-of-range")
        if self.link.file and n != len(self.hosts):
            file = Path(self.link.file[0]).name
            raise UsageError(f"'{self.name}' has the {len(self.hosts)} hosts of {file}, not {n}", code="bad-topology")
        if n not in self._sized_before:
            if len(self._sized_before) >= _SIZED:
                self._sized_before.clear()
            self._sized_before[n] = self._of_size(n)
        return self._sized_before[n]

    @cached_property
    def _sized_before(self) -> dict[int, Platform]:
        """Cache of `of_size`."""
        return {}

    def _of_size(self, n: int) -> Platform:
        hosts = Grown(self.hosts, n)
        own = GrownQuantities(hosts, self.quantities)
        kept = {name: p for name, p in self.placements.items() if max(p, default=0) < n}
        link = replace(self.link, shape=self.link.of_kind.grow(self.link.shape, n) if self.link.shape else ())
        return replace(self, name=f"{self.name}*{n}", hosts=hosts, link=link, quantities=own, placements=kept)

    def _with_quantities(self, changed: Mapping[str, Quantity], link: Link) -> Platform:
        values = _by_owner(changed)
        of_link = replace(link, **values.pop("link", {}))
        if isinstance(self.hosts, Grown) and isinstance(self.quantities, GrownQuantities):
            everywhere = values.pop(EVERY_HOST, {})
            grown = self.hosts.change_each(lambda h: replace(h, **everywhere)).with_values(values)
            return replace(self, hosts=grown, link=of_link, quantities=self.quantities.with_changed(changed))
        hosts = tuple(replace(h, **values.get(h.name, {})) for h in self.hosts)
        return replace(self, hosts=hosts, link=of_link, quantities={**self.quantities, **changed})

    def quantity(self, path: str) -> Quantity:
        """The quantity at a path returned by `paths`; for an optional value that is not given, its default. That of every host of a sized
        platform is its first host's."""
        owner, _, key = path.rpartition(".")
        if owner == EVERY_HOST:
            return self.quantities.get(path) or self.quantity(f"{self.hosts[0].name}.{key}")
        return self.quantities.get(path) or _absent(path)

    def texts(self, key: str) -> dict[str, str]:
        """The values at a key of `with_overrides` as texts: by ``key`` itself if they are equal, else by the path of each host.

        Raises UsageError for an unknown key, and for more than 256 hosts with different values.
        """
        found = {path: self.quantity(path).text for path in self.paths(key)}
        if isinstance(self.hosts, Grown) and isinstance(self.quantities, GrownQuantities) and key.startswith(f"{EVERY_HOST}."):
            name, pattern = key.rpartition(".")[2], self.quantities.of_pattern()
            found = {f"{h.name}.{name}": pattern[f"{h.name}.{name}"].text for h in self.hosts.own}
            if len({*found.values()}) > 1:
                if len(self.hosts) > _SUGGESTED:
                    raise UsageError(f"platform.{key}: the {len(self.hosts)} hosts have different values; give one", code="bad-value")
                found = {path: self.quantity(path).text for path in (f"{h.name}.{name}" for h in self.hosts)}
        return found if len({*found.values()}) > 1 else {key: next(iter(found.values()))}

    def paths(self, key: str) -> list[str]:
        """The paths of the quantities (`quantity`) that a key of `with_overrides` denotes; raises UsageError for an unknown key."""
        head, _, name = key.rpartition(".")
        if head == EVERY_HOST and name in quantities(Host):
            return [f"{EVERY_HOST}.{name}"] if isinstance(self.hosts, Grown) else [f"{h.name}.{name}" for h in self.hosts]
        if key in self.quantities or (head == "link" and name in quantities(Link)):
            return [key]
        if name in quantities(Host) and self.index(head) is not None:
            return [key]
        valid = [f"platform.host.{k}" for k in quantities(Host)] + [f"platform.link.{k}" for k in quantities(Link)]
        some = {h.name for h in self.hosts[:_SUGGESTED]}
        valid += [f"platform.{h}.{k}" for h in some for k in quantities(Host) if f"{h}.{k}" in self.quantities]
        if head == "link":
            valid = [v for v in valid if v.startswith("platform.link.")] + [f"platform.link.{w}" for w in LINK_WORDS]
        elif head == "host":
            valid = [v for v in valid if v.startswith("platform.host.")]
        elif head in some:
            valid = [v for v in valid if v.startswith(f"platform.{head}.")]
        raise UsageError(f"platform '{self.name}' has no 'platform.{key}'{nearest(f'platform.{key}', valid, 30)}", code="unknown-parameter")


def _by_owner(changed: Mapping[str, Quantity]) -> dict[str, dict[str, Any]]:
    values: dict[str, dict[str, Any]] = {}
    for path, quantity in changed.items():
        owner, _, name = path.partition(".")
        values.setdefault(owner, {})[name] = quantity.value
    return values


@cache
def following(base: str) -> list[tuple[str, Follows]]:
    """The numbers of a host that follow ``base`` (``clock``, ``link.mtu``), each with its rule, and those that stay beside it."""
    return [(name, rule) for name, f in quantities(Host).items() for rule in f.follows or () if rule.base == base]


def _absent(path: str) -> Quantity:
    """The default of an optional quantity."""
    f = declaration(path)
    return Quantity(float(f.default), units.canonical(f.unit), "none", "assumed: not given", f.help)


def declaration(path: str) -> Field:
    """The declaration of the quantity at a path returned by `Platform.paths`, or of ``host.KEY``."""
    owner, _, key = path.rpartition(".")
    return quantities(Link if owner == "link" else Host)[key]
