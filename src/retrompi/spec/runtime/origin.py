"""The canonical name of a parameter: where its value is stated, the same for every run that uses that statement.

    MODEL.param                          of a model, or of the base (``_mpich1.library``) or model that it inherits it from
    HOST.key, NETWORK.card.key, NETWORK.link.key     of the library of machines
    PLATFORM.host.key, PLATFORM.HOSTNAME.key, PLATFORM.link.key    of a platform file with hosts of its own

A host that is ``like`` another one shares the values that it does not state itself; services scaled by the ratio of speeds are the other
host's times a factor.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from retrompi.base import paths
from retrompi.base import toml as toml_text
from retrompi.spec.declare.param import Param
from retrompi.spec.machine import composition, machines, platform_file
from retrompi.spec.model import RuntimeModel, fit_name

if TYPE_CHECKING:
    from retrompi.spec.platform import Platform, Quantity
    from retrompi.spec.values import Setting

__all__ = ["Origin", "is_composed", "of_model", "of_platform"]


@dataclass(frozen=True, slots=True)
class Origin:
    """The canonical ``path`` of a number, and the ``factor`` by which this host's value is larger than the one stated there."""

    path: str
    factor: float = 1.0


def of_model(cls: type[RuntimeModel], key: str, setting: Setting) -> str:
    """The canonical path of a model's parameter: of the class that declares it, unless the model has a fit of its own for it."""
    declares = next(k for k in cls.__mro__ if isinstance(k.__dict__.get(key), Param))
    if not issubclass(declares, RuntimeModel) or declares.folder() == cls.folder() or setting.source.startswith("fit:fit.toml "):
        declares = cls
    return f"{fit_name(declares).partition(':')[0]}.{key}"


def of_platform(platform: Platform, names: Iterable[str]) -> dict[str, Origin]:
    """Name (``server.quantum``, ``link.bandwidth``) -> origin, for numbers of a platform without overrides.

    Raises InputError if a file that the platform is made of cannot be read any more.
    """
    known = _origins(platform)
    return {name: known.of(name) for name in names}


def is_composed(platform: Platform) -> bool:
    """Whether a platform is of the library's hosts and network, so that a card is no faster than the bus of its host."""
    return _origins(platform).made is not None


_MOST = 64


def _origins(platform: Platform) -> _Origins:
    known = _KNOWN.get(id(platform))
    if known is None or known[0] is not platform:
        if len(_KNOWN) >= _MOST:
            _KNOWN.clear()
        known = _KNOWN[id(platform)] = platform, _Origins(platform)
    return known[1]


class _Origins:
    """Origins of the numbers of one platform, found when they are asked for."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.found: dict[str, Origin] = {}
        file = platform.path
        data = toml_text.read(file, "platform")[1] if file is not None else {}
        self.made: composition.Composition | None = None
        if file is None:
            self.made = composition.parse(composition.without_size(platform.name))
        elif "hosts" in data:
            self.made = composition.parse(f"{data['hosts']}@{data['network']}" if "network" in data else str(data["hosts"]))
        self.kinds = [name for name, count in self.made.terms for _ in range(count)] if self.made is not None else []
        self.beside = file.parent if file is not None else None
        self.base = platform_file.load(file) if file is not None else platform

    def of(self, name: str) -> Origin:
        """The origin of ``name``."""
        if name not in self.found:
            self.found[name] = self._of(name)
        return self.found[name]

    def _of(self, name: str) -> Origin:
        host, _, key = name.rpartition(".")
        if host == "link":
            return Origin(f"{self.made.network}.link.{key}" if self.made is not None else _stem(self.platform) + f".link.{key}")
        index = next(i for i, h in enumerate(self.platform.hosts) if h.name == host)
        if self.made is None:
            return self._own(self.base.hosts[index % len(self.base.hosts)].name, key)
        kind = self.kinds[index % len(self.kinds)]
        if key in machines.CARD_KEYS:
            net = machines.network(self.made.network, self.beside)
            q = net.quantities.get(f"card.{key}")
            if q is not None and q == self.platform.quantities[name]:
                return Origin(_of_network(net, f"card.{key}", self.beside))
            key = "bus_rate"  # a card is no faster than the bus of its host
        return _of_machine(machines.host(kind, self.beside), key, self.beside)

    def _own(self, host: str, key: str) -> Origin:
        """The origin of a number in a platform file with hosts of its own; one that all of them state alike is ``PLATFORM.host.key``."""
        assert self.base.path is not None
        found = _origin_in_file(self.base.path, host, key)
        mine = _stem(self.base)
        if not found.path.startswith(f"{mine}."):
            return found
        of_all = [(self.base.quantities.get(f"{h.name}.{key}"), _origin_in_file(self.base.path, h.name, key).path) for h in self.base.hosts]
        if all(q is not None and at.startswith(f"{mine}.") for q, at in of_all) and len({_range(q) for q, _ in of_all if q}) == 1:
            return Origin(f"{mine}.host.{key}")
        return found


_KNOWN: dict[int, tuple[Platform, _Origins]] = {}


def _range(q: Quantity) -> tuple[float, float | None, float | None]:
    return q.value, q.low, q.high


def _stem(platform: Platform) -> str:
    return platform.path.stem if platform.path is not None else composition.without_size(platform.name)


def _origin_in_file(file: Path, host: str, key: str) -> Origin:
    """The place where the number of a platform file's own host is stated: in its table, above it, in another file, or in the library."""
    tables = {t["name"]: t for t in toml_text.read(file, "platform")[1]["host"]}
    table = tables[host]
    if key in table or "like" not in table:
        return Origin(f"{file.stem}.{host}.{key}")
    other, colon, name = str(table["like"]).rpartition(":")
    if colon:
        theirs = file.parent / f"{other}.toml"
        return of_platform(platform_file.load(theirs if theirs.is_file() else paths.platforms_dir() / f"{other}.toml"),
                           [f"{name}.{key}"])[f"{name}.{key}"]
    return _origin_in_file(file, name, key) if name in tables else _of_machine(machines.host(name, file.parent), key, file.parent)


def _of_machine(machine: machines.Machine, key: str, beside: Path | None) -> Origin:
    q = machine.quantities[key]
    name = machine.services[key][0] if key in machine.services else ""
    if name and q.source.startswith(f"assumed: {name}'s "):  # and not fitted since
        root = machines.host(name, _root(machine, beside)).quantities[key]
        return Origin(f"{name}.{key}", q.high / root.high if q.high and root.high else 1.0)
    if machine.like:
        other = machines.host(machine.like, _root(machine, beside))
        if other.quantities.get(key) == q:
            return _of_machine(other, key, beside)
    return Origin(f"{machine.name}.{key}")


def _of_network(net: machines.Network, key: str, beside: Path | None) -> str:
    if net.like:
        other = machines.network(net.like, _root(net, beside))
        if other.quantities.get(key) == net.quantities[key]:
            return _of_network(other, key, beside)
    return f"{net.name}.{key}"


def _root(part: machines.Machine | machines.Network, beside: Path | None) -> Path:
    return part.path.parent.parent if beside is None else beside


