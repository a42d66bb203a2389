"""A free value of a fit: whose it is, the sourced range it may move in, how it is set in a run, and where a fit of it is written."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrompi.base import toml as toml_text
from retrompi.base import units
from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.spec import registry
from retrompi.spec.declare.number import Number
from retrompi.spec.machine import composition, machines
from retrompi.spec.model import fit_place

__all__ = ["FitPlace", "Owner", "add_to_fit", "belongs", "free_number", "limit_cards", "number_text", "options", "owner", "place", "span",
           "value_text"]


def free_number(path: str, unit: str, low: float, high: float) -> Number:
    """The free value ``path``, on a logarithmic scale, or a linear one if its range begins at zero."""
    return Number(path, unit, low, high, low > 0)


def number_text(free: Number, u: float) -> str:
    """The value at ``u`` in 0..1 of the range of a free value, as written to a fit file."""
    return value_text(free.at(u), free.unit)


def value_text(value: float, unit: str) -> str:
    """A value with its unit and six digits, as written to a fit file."""
    if unit == "s":
        for name, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
            if value >= scale or name == "ns":
                return f"{value / scale:.6g} {name}"
    if unit == "B/s":
        return f"{value / 1e6:.6g} MB/s"
    if unit == "B":
        return f"{max(1, round(value))} B"
    return f"{value:.6g}" if unit in ("1", "count", "probability") else f"{value:.6g} {unit}"


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a free value: ``kind`` host, network, platform or model, its name, and the key there."""

    kind: str
    name: str
    key: str
    file: Path
    """That of the host, network or platform, or a model's folder."""


def owner(path: str) -> Owner:
    """Whose value ``path`` is: ``p4-1800.interrupt``, ``ge-ga620.card.nic_rate``, ``nt-pair.host.syscall``, ``euih.rate``.

    Raises UsageError for no one's.
    """
    name, dot, key = path.partition(".")
    if not dot or not key:
        raise UsageError(f"'{path}' is not MODEL.param, HOST.key or NETWORK.card.key", code="bad-syntax")
    if name in machines.host_names():
        return Owner("host", name, key, machines.host(name).path)
    if name in machines.network_names():
        return Owner("network", name, key, machines.network(name).path)
    if name in registry.platform_names() and (file := registry.platform(name).path) is not None:
        return Owner("platform", name, key, file)
    try:
        return Owner("model", name, key, registry.model(name).folder())
    except UsageError:
        known = [*machines.host_names(), *machines.network_names(), *registry.platform_names(), *registry.model_names()]
        raise UsageError(f"'{path}': no model, host, network or platform '{name}'{nearest(name, known)}", code="unknown-name") from None


def span(path: str, o: Owner, *, beside: bool = True) -> Number:
    """The free value with the range of its own file. ``beside``: the fit is written beside it, and so its source says that it is fitted.

    Raises UsageError for an unknown key, one without a range, and one whose source is not ``fit:`` (or ``assumed:``, if not ``beside``).
    """
    q: Any
    if o.kind == "model":
        params = registry.model(o.name).params()
        known: Mapping[str, Any] = params
        q = params.get(o.key)
    elif o.kind == "platform":
        platform = registry.platform(o.name)
        known = platform.quantities
        q = known.get(platform.paths(o.key)[0])
    else:
        known = (machines.host(o.name) if o.kind == "host" else machines.network(o.name)).quantities
        q = known.get(o.key)
    if q is None:
        raise UsageError(f"'{path}': {o.kind} '{o.name}' has no '{o.key}'{nearest(o.key, known, 40)}", code="unknown-parameter")
    kinds = ("fit:",) if beside else ("fit:", "assumed:")
    if not q.source.startswith(kinds) and not (o.kind != "model" and q.source == "assumed: not fitted yet"):
        raise UsageError(f"'{path}' is to be fitted, but its source is '{q.source}'; {' or '.join(kinds)} is right", code="bad-source")
    if q.low is None or q.high is None or q.low >= q.high:
        raise UsageError(f"'{path}' is to be fitted but states no range low..high", code="bad-range")
    return free_number(path, q.unit, q.low, q.high)


def _made_of(platform: str) -> composition.Composition | None:
    """The hosts and the network of the library that a platform is composed of, by its name or by its file; None if of none."""
    base = composition.without_size(platform)
    if "@" in platform:
        return composition.parse(platform)
    if base in registry.platform_names() and (file := registry.platform(base).path) is not None:
        told = toml_text.read(file, "platform")[1]
        if "hosts" not in told:
            return None
        return composition.parse(f"{told['hosts']}@{told['network']}" if "network" in told else str(told["hosts"]))
    return composition.parse(platform)


def belongs(o: Owner, model: str, platform: str) -> bool:
    """Whether a run of ``model`` on ``platform`` has this value."""
    if o.kind == "model":
        return o.name in (model, model.partition(":")[0])
    if o.kind == "platform":
        return composition.without_size(platform) == o.name
    made = _made_of(platform)
    if made is None:
        return False
    return o.name == made.network if o.kind == "network" else o.name in {n for n, _ in made.terms}


def options(o: Owner, platform: str, text: str) -> list[str]:
    """The overrides that give the value ``text`` to a run on ``platform``."""
    if o.kind == "model":
        return [f"{o.name}.{o.key}={text}"]
    if o.kind == "platform":
        return [f"platform.{o.key}={text}"]
    table, _, of = o.key.partition(".")
    if o.kind == "network":
        return [f"platform.{'link' if table == 'link' else 'host'}.{of}={text}"]
    made = _made_of(platform)
    terms = made.terms if made is not None else ()
    if len(terms) == 1:
        return [f"platform.host.{o.key}={text}"]
    kinds = [name for name, count in terms for _ in range(count)]
    return [f"platform.n{i}.{o.key}={text}" for i, name in enumerate(kinds, 1) if name == o.name]


def limit_cards(owners: Mapping[str, Owner], values: Mapping[str, str], platforms: Sequence[str]) -> dict[str, str]:
    """The free values, a card's rates at most those of the buses of its hosts on ``platforms``, as `machines.compose` has them."""
    found = dict(values)
    for path, o in owners.items():
        if o.kind == "network" and o.key in ("card.nic_rate", "card.nic_rate_in"):
            made = [m for m in map(_made_of, platforms) if m is not None]
            hosts = {name for m in made if m.network == o.name for name, _ in m.terms}
            buses = [values.get(f"{h}.bus_rate") or machines.host(h).quantities["bus_rate"].text for h in sorted(hosts)]
            found[path] = min(values[path], *buses, key=lambda text: units.parse(text, "B/s"))
    return found


# --- where a fit is written --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FitPlace:
    """A table of a fit file, and the key there."""

    file: Path
    table: str
    key: str


def place(path: str, o: Owner, folder: Path | None, name: str) -> FitPlace:
    """The file into which the fit ``name`` writes the value: beside its owner, or in ``folder``'s ``fit.toml`` if a paper there is not its
    owner's.

    ``folder`` None: of a paper of the package, or no paper's.
    """
    if folder is not None and not o.file.resolve().is_relative_to(folder.resolve()):
        return FitPlace(folder / "fit.toml", name, path)
    if o.kind == "model":
        return FitPlace(*fit_place(registry.model(o.name), o.key), o.key)
    return FitPlace(o.file.with_name(f"{o.file.stem}.fit.toml"), "fit", o.key)


def add_to_fit(file: Path, table: str, values: Mapping[str, str], meta: Mapping[str, Any], by: str) -> None:
    """Adds ``values`` to a table of a fit file, where those of other fits stay; lists of ``meta`` are united with those there.

    ``by``: the command that writes. Raises InputError if the file cannot be read or written.
    """
    tables = toml_text.read(file, "fit")[1] if file.exists() else {}
    mine = tables.setdefault(table, {})
    before = mine.get("meta", {})
    united = {k: sorted({*before.get(k, []), *v}) if isinstance(v, list) else v for k, v in meta.items()}
    mine["values"] = {**mine.get("values", {}), **values}
    mine["meta"] = {**before, "date": datetime.date.today().isoformat(), **united}
    try:
        file.write_text(toml_text.tables(by, tables), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write the fit: {error.strerror}", file, code="unwritable-file") from None
