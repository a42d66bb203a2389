"""Current values of a scenario's numeric keys, and the keys that have a sourced range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from retrompi.base import units
from retrompi.base.errors import UsageError
from retrompi.sim.resolved import Resolved, place
from retrompi.spec.number import Number, readable_unit
from retrompi.spec.platform import Quantity
from retrompi.studies import axes, case
from retrompi.studies.ranges import placed_hosts, ranged_of
from retrompi.studies.scenario import trace_of

if TYPE_CHECKING:
    from retrompi.spec.platform import Platform
    from retrompi.studies.scenario import Scenario

__all__ = ["Key", "hosts_of", "number", "ranks_of", "sourced_factors", "sourced_of"]


@dataclass(frozen=True)
class Key:
    """A numeric key: its full ``name``, ``value`` in base units of ``unit`` (None: not set), ``text`` for display."""

    name: str
    unit: str
    whole: bool
    value: float | None
    text: str


def ranks_of(scenario: Scenario) -> int:
    """Number of ranks of the scenario's job."""
    if scenario.start:
        return scenario.start["ranks"]
    if "ranks" in scenario.args:
        return int(scenario.args["ranks"])
    return trace_of(scenario).ranks


def hosts_of(scenario: Scenario, platform: Platform) -> list[str]:
    """The hosts that run a rank, in the platform's order."""
    return [platform.hosts[i].name for i in sorted(set(place(platform, scenario.mode, ranks_of(scenario))))]


def number(scenario: Scenario, key: str) -> Key:
    """The value of ``key`` in ``scenario``; UsageError in one line if the key is unknown, is not numeric, or differs between hosts."""
    name = case.proper(key)
    if not case.concerns(name, scenario.model):
        raise UsageError(f"'{key}' is a parameter of another model than '{scenario.model}'", code="unknown-parameter")
    told = case.about(scenario, name)
    unit = told.unit or ("1" if name.startswith("trace.") and name not in ("trace.file", "trace.section") else "")
    if not unit:
        choices = f": {', '.join(told.choices)}" if told.choices else ""
        raise UsageError(
            f"'{key}' is no number{choices}; give a key whose values have an order, e.g. platform.link.bandwidth", code="bad-syntax"
        )
    value = float(told.value) if isinstance(told.value, int | float) else None
    if name.startswith("platform.host."):
        _alike(scenario, name)
    shown = told.text if value is None else units.format_quantity(value, unit)
    return Key(name, unit, case.whole(name, scenario.model), value, shown)


def _alike(scenario: Scenario, name: str) -> None:
    from retrompi.spec.registry import resolve

    _, platform = resolve(scenario.model, scenario.platform, scenario.sets)
    short = name.rpartition(".")[2]
    found = {h: platform.quantity(f"{h}.{short}") for h in hosts_of(scenario, platform)}
    if len({q.value for q in found.values()}) > 1:
        told = ", ".join(f"platform.{h}.{short} = {units.format_quantity(q.value, q.unit)}" for h, q in list(found.items())[:4])
        raise UsageError(f"'{name}' differs among the hosts; take one of them: {told}", code="not-a-number")


def sourced_factors(scenario: Scenario) -> list[axes.Axis]:
    """Every number that the scenario's run uses and that has a sourced range, as a factor between its ends.

    Includes parameters of the model, the platform's hosts (``platform.host.KEY`` if all of them have the same value and range) and the
    link. A range of 0..1 for a probability is not an estimate and is left out.
    """
    return sourced_of(Resolved.of(scenario.question()))


def sourced_of(asked: Resolved) -> list[axes.Axis]:
    """`sourced_factors` for a run that is no scenario's."""
    model, told, numbers = asked.model.name, [], ranged_of(asked)
    hosts = placed_hosts(asked)
    for key in dict.fromkeys(_short(name, hosts) for name in numbers):
        owner, _, short = key.rpartition(".")
        if owner != "platform.host":
            told.append(_factor(key, numbers[key], model))
            continue
        own = {h: numbers[f"platform.{h}.{short}"] for h in hosts if f"platform.{h}.{short}" in numbers}
        if len(own) == len(hosts) and len({(q.value, q.low, q.high) for q in own.values()}) == 1:
            own = {"host": next(iter(own.values()))}
        told += [_factor(f"platform.{host}.{short}", q, model) for host, q in own.items()]
    return [f for f in told if f.span is not None and f.ends[0] != f.ends[1] and not _anything(f.span)]


def _short(name: str, hosts: Sequence[str]) -> str:
    owner, _, key = name.rpartition(".")
    return f"platform.host.{key}" if owner.removeprefix("platform.") in hosts and owner.startswith("platform.") else name


def _anything(span: Number) -> bool:
    return span.base_unit == "probability" and (span.low, span.high) == (0.0, 1.0)


def _factor(name: str, q: Quantity, model: str) -> axes.Axis:
    assert q.low is not None
    assert q.high is not None
    spelling = "" if units.canonical(q.unit) == "B" else readable_unit(q.unit, (q.low, q.high))
    span = Number(name, q.unit, q.low, q.high, value=q.value, spelling=spelling, digits=12)
    whole = span.in_whole_numbers() if case.whole(name, model) else span
    return axes.Axis(name, (), whole, base=units.format_quantity(q.value, q.unit), source=q.source)
