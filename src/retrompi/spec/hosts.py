"""Many hosts with few differences: a platform of a million hosts keeps the values of each kind once.

`Grown` is the hosts of a sized platform (``NAME*n``): a sequence of `Host` whose items are made when they are looked at. What would look at
each of a million asks for the kinds instead (`kinds`, `mapped`, `host_names`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from retrompi.spec.declare.fields import fields_of, quantities, to_engine
from retrompi.spec.host import Host
from retrompi.spec.machine.quantity_file import Quantity

__all__ = ["EVERY_HOST", "Grown", "GrownQuantities", "Hosts", "engine_rows", "host_names", "kinds", "mapped", "one_by_one", "rows_of"]

Hosts = Sequence[Host]
_SET = object.__setattr__

EVERY_HOST = "host"
"""The owner of a value that is set for every host, in a key of `Platform.with_overrides` and in the paths of a sized platform."""


class Grown(Sequence[Host]):
    """``size`` hosts: those of ``own`` cyclically, the second copy called ``HOST-2``; ``changed``: those that have values of their own.

    ``which``: of a selection, the number of each host in the whole platform.
    """

    def __init__(self, own: Sequence[Host], size: int, changed: Mapping[int, Host] | None = None,
                 which: Sequence[int] | None = None) -> None:
        self.own, self.size, self.changed = tuple(own), size, dict(changed or {})
        self.which = range(size) if which is None else which
        self._index = {h.name: i for i, h in enumerate(self.own)}
        self._values = [[(key, getattr(h, key)) for key in fields_of(Host)] for h in self.own]

    def __len__(self) -> int:
        return len(self.which)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return self.select(self.which[at])
        number = self.which[at]
        return self.changed.get(number) or self._host_at(self.own[number % len(self.own)], number)

    def __iter__(self) -> Iterator[Host]:
        return (self[i] for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Grown) and self.which == other.which:
            return self.own == other.own and self.changed == other.changed
        return isinstance(other, Sequence) and len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash((self.own, self.size, len(self.which)))

    def _host_at(self, host: Host, number: int) -> Host:
        if number < len(self.own):
            return host
        # Not by `replace`, which takes four times as long: a loop over all hosts makes a million of them.
        made = object.__new__(Host)
        for key, value in self._values[number % len(self.own)]:
            _SET(made, key, value)
        _SET(made, "name", self.name(number))
        return made

    def name(self, number: int) -> str:
        """The name of a host by its number in the whole platform."""
        copy, at = divmod(number, len(self.own))
        return self.own[at].name if copy == 0 else f"{self.own[at].name}-{copy + 1}"

    def number(self, name: str) -> int | None:
        """The number of the host of that name in the whole platform; None if there is none."""
        if name in self._index:
            found = self._index[name]
        else:
            first, _, copy = name.rpartition("-")
            if first not in self._index or not copy.isdecimal() or len(copy) > 8 or str(int(copy)) != copy or int(copy) < 2:
                return None
            found = (int(copy) - 1) * len(self.own) + self._index[first]
        return found if found < self.size else None

    def select(self, numbers: Sequence[int]) -> Grown:
        """A selection of these hosts."""
        return self if len(numbers) == self.size else Grown(self.own, self.size, self.changed, numbers)

    def change_each(self, change: Callable[[Host], Host]) -> Grown:
        """The same hosts, each kind changed alike."""
        return Grown([change(h) for h in self.own], self.size, {i: change(h) for i, h in self.changed.items()}, self.which)

    def with_values(self, values: Mapping[str, Mapping[str, Any]]) -> Grown:
        """The same hosts with ``values`` (host -> key -> value); those of a host of the pattern are its own alone."""
        changed = dict(self.changed)
        for name, new in values.items():
            number = self.number(name)
            if number is not None:
                changed[number] = replace(self[self.which.index(number)], **new)
        return Grown(self.own, self.size, changed, self.which)


class GrownQuantities(Mapping[str, Quantity]):
    """The quantities of a sized platform: each of a copied host is that of its original unless ``changed`` has it."""

    def __init__(self, hosts: Grown, original: Mapping[str, Quantity], changed: Mapping[str, Quantity] | None = None) -> None:
        self.hosts, self.original, self.changed = hosts, original, dict(changed or {})
        self._given = {h.name: [k for k in quantities(Host) if f"{h.name}.{k}" in original] for h in hosts.own}

    def _path(self, path: str) -> str:
        owner, _, key = path.rpartition(".")
        if owner == "link":
            return path
        number = self.hosts.number(owner)
        if number is None:
            raise KeyError(path)
        return f"{self.hosts.own[number % len(self.hosts.own)].name}.{key}"

    def __getitem__(self, path: str) -> Quantity:
        if path in self.changed:
            return self.changed[path]
        owner, _, key = path.rpartition(".")
        of_all = self.changed.get(f"{EVERY_HOST}.{key}")
        if of_all is not None and (owner == EVERY_HOST or self.hosts.number(owner) is not None):
            return of_all
        return self.original[self._path(path)]

    def __iter__(self) -> Iterator[str]:
        seen = set()
        for path in self.original:
            if path.startswith("link."):
                seen.add(path)
                yield path
        for number in range(self.hosts.size):
            own = self.hosts.own[number % len(self.hosts.own)].name
            name = self.hosts.name(number)
            yield from (f"{name}.{key}" for key in self._given[own])
        of_one = (p for p in self.changed if p not in seen and not p.startswith(f"{EVERY_HOST}."))
        yield from (p for p in of_one if p.startswith("link.") or self._path(p) not in self.original)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def of_pattern(self) -> dict[str, Quantity]:
        """The quantities of the link and of the hosts of the pattern, without those of single hosts."""
        found = dict(self.original)
        for path, q in self.changed.items():
            owner, _, key = path.rpartition(".")
            found |= {f"{h.name}.{key}": q for h in self.hosts.own} if owner == EVERY_HOST else {path: q} if owner == "link" else {}
        return found

    def of_single(self, without: Collection[str]) -> dict[str, Quantity]:
        """The quantities that single hosts have of their own, but for the keys ``without``."""
        parts = ((path, path.rpartition("."), q) for path, q in self.changed.items())
        return {path: q for path, (owner, _, key), q in parts if owner not in ("link", EVERY_HOST) and key not in without}

    def with_changed(self, more: Mapping[str, Quantity]) -> GrownQuantities:
        """With other values at some paths."""
        return GrownQuantities(self.hosts, self.original, {**self.changed, **more})


def kinds(hosts: Hosts) -> tuple[list[Host], list[int]]:
    """(a host of each kind, the kind of every host). Without a pattern, every host is a kind of its own."""
    if not isinstance(hosts, Grown):
        return list(hosts), list(range(len(hosts)))
    prototypes, changed = list(hosts.own), {}
    for number, host in hosts.changed.items():
        changed[number] = len(prototypes)
        prototypes.append(host)
    of, m = [number % len(hosts.own) for number in hosts.which], len(hosts.own)
    if changed:
        of = [changed.get(number, number % m) for number in hosts.which]
    return prototypes, of


def mapped(hosts: Hosts, change: Callable[[Host], Host]) -> Hosts:
    """The hosts with ``change`` applied to each, once a kind; ``change`` keeps the name."""
    return hosts.change_each(change) if isinstance(hosts, Grown) else [change(h) for h in hosts]


def host_names(hosts: Hosts) -> list[str]:
    """The name of every host."""
    return [hosts.name(i) for i in hosts.which] if isinstance(hosts, Grown) else [h.name for h in hosts]


# -- for the engine -----------------------------------------------------------------------------------------------------------


def engine_rows(hosts: Hosts) -> dict[str, Any]:
    """Hosts for the engine: ``kinds``, the values of each kind; ``kind_of`` and ``names``, of every host."""
    prototypes, of = kinds(hosts)
    return {"kinds": [to_engine(h) for h in prototypes], "kind_of": of, "names": host_names(hosts)}


def one_by_one(rows: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The values of every host of `engine_rows`, each with its name."""
    return [{**rows["kinds"][kind], "name": name} for kind, name in zip(rows["kind_of"], rows["names"], strict=True)]


def rows_of(hosts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The inverse of `one_by_one`, every host a kind of its own."""
    given = [dict(h) for h in hosts]
    return {"kinds": given, "kind_of": list(range(len(given))), "names": [str(h["name"]) for h in given]}
