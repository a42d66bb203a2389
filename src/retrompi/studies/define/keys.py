"""Current values of a scenario's numeric keys, and the keys that have a sourced range."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from retrompi.base import units
from retrompi.base.errors import UsageError
from retrompi.sim.resolved import Resolved, place
from retrompi.spec.declare.number import Number, readable_unit
from retrompi.spec.platform import Quantity
from retrompi.studies.define import axes, case
from retrompi.studies.define.ranges import placed_hosts, ranged_of
from retrompi.studies.define.scenario import trace_of

if TYPE_CHECKING:
    from retrompi.spec.platform import Platform
    from retrompi.studies.define.scenario import Scenario

__all__ = ["hosts_of", "number", "ranks_of", "sourced_factors", "sourced_of", "with_range"]

DIGITS = 6
"""Digits of the values that a search tries."""


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


def number(scenario: Scenario, key: str) -> Number:
    """``key`` and its value in ``scenario``, without a range. UsageError in one line if it is unknown, not numeric, or differs between
    hosts."""
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
    value = float(told.value) if isinstance(told.value, int | float) else math.nan
    if name.startswith("platform.host."):
        _alike(scenario, name)
    return Number(name, unit, whole=case.whole(name, scenario.model), value=value)


def with_range(number: Number, texts: Sequence[str], *, log: bool | None = None) -> Number:
    """``number`` between the first and the last of ``texts``, in whose units it is written; ``log`` None: logarithmic if they are a factor
    8 apart.

    Raises UsageError for a wrong unit, ends that are not whole where it takes whole numbers, or a logarithm from zero.
    """
    values = []
    for text in texts:
        try:
            values.append(units.parse(text, number.unit))
        except UsageError as error:
            raise UsageError(f"{number.path}: {error}", code=error.code) from None
        if number.whole and values[-1] != int(values[-1]):
            raise UsageError(f"{number.path}: '{text}' is not a whole number", code="bad-value")
    spellings = [m[1] for t in texts if (m := re.fullmatch(r"[\d._+eE-]+\s*(\S*)\s*", t.strip())) and m[1]]
    of_base = units.UNITS[number.base_unit]
    known = sorted((s for s in dict.fromkeys(spellings) if s in of_base), key=of_base.__getitem__) or [min(of_base, key=len)]
    low = min(values)
    if log is None:
        log = low > 0 and max(values) >= 8 * low
    if log and low <= 0:
        raise UsageError(f"{number.path}: '{texts[values.index(low)]}' has no logarithm; begin above zero or take a linear scale",
                         code="out-of-range")
    return replace(number, low=values[0], high=values[-1], log=log, spelling=known[0], larger=known[-1] if len(known) > 1 else "",
                   digits=DIGITS)


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
