"""The uncertain numbers of a run: each with its sourced range as a prior, and the canonical path under which posteriors know it.

The prior is log-uniform, or uniform where the range begins at zero; all are independent (docs/uncertainty.md). A number whose source is
``code:`` is known, and one that the question sets is what the user says; neither is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from retrompi.base import units
from retrompi.sim.resolved import Resolved
from retrompi.sim.simulate import of_message
from retrompi.spec import origin
from retrompi.spec.question import Message
from retrompi.studies import case
from retrompi.studies.ranges import placed_hosts, ranged_of, spelling

__all__ = ["Prior", "priors_of", "runnable", "sets_at"]


@dataclass(frozen=True)
class Prior:
    """An uncertain number, in base units of ``unit`` where it is stated.

    ``keys``: the ``--set`` keys that set it in this run, each with the factor by which that host's value is larger (1, but for services
    scaled by the ratio of speeds). ``base`` is its value with nothing drawn, ``whole`` whether only whole numbers make sense.
    """

    path: str
    key: str
    unit: str
    low: float
    high: float
    log: bool
    whole: bool
    source: str
    base: float
    keys: Mapping[str, float] = field(default_factory=dict)

    def value(self, u: float) -> float:
        """The value (base units) at the share ``u`` in 0..1 of the prior; of whole numbers each has an equal part of it."""
        u = min(max(u, 0.0), 1.0)
        if self.whole:
            low, high = math.ceil(self.low), math.floor(self.high)
            if self.log and low > 0:
                return float(min(int(low * math.exp(u * math.log((high + 1) / low))), high))
            return float(min(low + int(u * (high - low + 1)), high))
        if self.log:
            return float(self.low * (self.high / self.low) ** u)
        return float(self.low + u * (self.high - self.low))

    def share(self, value: float) -> float:
        """The share u in 0..1 of the prior at which ``value`` (base units) is; of a whole number the middle of its part."""
        if self.whole:
            low, high, value = math.ceil(self.low), math.floor(self.high), round(value)
            if self.log and low > 0:
                at, span = math.log((value + 0.5) / low) if value > 0 else 0.0, math.log((high + 1) / low)
            else:
                at, span = value + 0.5 - low, high + 1.0 - low
        elif self.log:
            at, span = math.log(value / self.low) if value > 0 else 0.0, math.log(self.high / self.low)
        else:
            at, span = value - self.low, self.high - self.low
        return min(max(at / span, 0.0), 1.0) if span > 0 else 0.5

    def text(self, u: float) -> str:
        """The value at the share ``u`` as text with its unit, which ``--set`` reads."""
        return _text(self.value(u), self.unit, self.whole)

    def sets(self, u: float) -> dict[str, str]:
        """The overrides, ``--set`` key -> text, that give this run the value at the share ``u``."""
        return {key: _text(self.value(u) * factor, self.unit, self.whole) for key, factor in self.keys.items()}


def _text(value: float, unit: str, whole: bool) -> str:
    base = units.canonical(unit)
    if base == "B":
        return f"{round(value)}B"
    if whole:
        return str(round(value))
    spelled = spelling(unit, (value,))
    return f"{value / units.UNITS[base][spelled]:.9g}{spelled}"


def priors_of(asked: Resolved) -> list[Prior]:
    """Every number that the run uses, has a sourced range, is no library's constant (``code:``) and is not set by the question, by path.

    Those of the model, the hosts that run a rank, and the link; of jobs beside it nothing is drawn. A range of 0..1 for a probability is
    no estimate and is left out. Numbers stated once are one prior, whatever number of hosts has them. Raises what `Resolved` and the
    model's compilation raise.
    """
    asked = runnable(asked)
    cls, hosts = asked.model, placed_hosts(asked)
    numbers = {name: q for name, q in ranged_of(asked).items() if not q.source.startswith("code:") and q.low != q.high}
    drawn = {name for name in numbers if not _set_by_user(name, asked)}
    names = [name.removeprefix("platform.") for name in drawn if name.startswith("platform.")]
    origins = {f"platform.{name}": found for name, found in origin.of_platform(asked.base_platform, names).items()}
    settings = asked.values.settings
    found: dict[str, Prior] = {}
    keys: dict[str, dict[str, float]] = {}
    for name, q in numbers.items():
        assert q.low is not None
        assert q.high is not None
        if name not in drawn or (units.canonical(q.unit) == "probability" and (q.low, q.high) == (0.0, 1.0)):
            continue
        if name in origins:
            path, factor = origins[name].path, origins[name].factor
        else:
            short = name.rpartition(".")[2]
            path, factor = origin.of_model(cls, short, settings[short]), 1.0
        keys.setdefault(path, {})[name] = factor
        if path not in found:
            low, high, base = (v if factor == 1 else float(f"{v / factor:.12g}") for v in (q.low, q.high, q.value))
            found[path] = Prior(path, name, q.unit, low, high, low > 0, case.whole(name, cls.name), q.source, base)
    return [_with_keys(prior, keys[path], hosts) for path, prior in sorted(found.items())]


def sets_at(asked: Resolved, priors: Sequence[Prior], shares: Mapping[str, float]) -> dict[str, str]:
    """The overrides that give the run ``asked`` the values of its ``priors`` at ``shares`` (path -> u); priors without a share stay.

    On a platform of the library a card's rates are at most the rate of the host's bus, as where the platform is composed.
    """
    asked = runnable(asked)
    sets: dict[str, str] = {}
    for prior in priors:
        if prior.path in shares:
            sets |= prior.sets(shares[prior.path])
    if not origin.is_composed(asked.base_platform):
        return sets
    for key, text in list(sets.items()):
        owner, _, short = key.rpartition(".")
        if short not in ("nic_rate", "nic_rate_in"):
            continue
        for host in placed_hosts(asked) if owner == "platform.host" else [owner.removeprefix("platform.")]:
            drawn = sets.get(f"platform.{host}.bus_rate") or sets.get("platform.host.bus_rate")
            bus = drawn or asked.platform.quantities[f"{host}.bus_rate"].text
            if units.parse(bus, "B/s") < units.parse(text, "B/s"):
                sets[f"platform.{host}.{short}"] = bus
    return sets


def runnable(asked: Resolved) -> Resolved:
    """The question with a program that has a trace and a placement: of one message, its exchange."""
    return of_message(asked) if isinstance(asked.question.workload, Message) else asked


def _set_by_user(name: str, asked: Resolved) -> bool:
    if name.startswith("platform."):
        return name.removeprefix("platform.") in asked.platform.overridden
    return asked.values.settings[name.rpartition(".")[2]].overridden


def _with_keys(prior: Prior, keys: Mapping[str, float], hosts: list[str]) -> Prior:
    """The prior with its keys; one that all hosts of the run have alike is set by ``platform.host.KEY``."""
    merged: dict[str, float] = {}
    for name, factor in keys.items():
        owner, _, short = name.rpartition(".")
        alike = {keys.get(f"platform.{h}.{short}") for h in hosts}
        every = owner.removeprefix("platform.") in hosts and owner.startswith("platform.") and alike == {factor}
        merged[f"platform.host.{short}" if every else name] = factor
    return replace(prior, key=next(iter(merged)), keys=merged)


