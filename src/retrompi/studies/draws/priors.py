"""The uncertain numbers of a run: each with its sourced range as a prior, and the canonical path under which posteriors know it.

The prior is log-uniform, or uniform where the range begins at zero; all are independent (docs/uncertainty.md). A number whose source is
``code:`` is known, and one that the question sets is what the user says; neither is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from retrompi.base import units
from retrompi.sim.resolved import Resolved
from retrompi.sim.simulate import of_message
from retrompi.spec.declare.number import Number
from retrompi.spec.question import Message
from retrompi.spec.runtime import origin
from retrompi.studies.define import case
from retrompi.studies.define.ranges import placed_hosts, ranged_of

__all__ = ["priors_of", "runnable", "sets_at"]


def priors_of(asked: Resolved) -> list[Number]:
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
    found: dict[str, Number] = {}
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
            low, high, value = (v if factor == 1 else float(f"{v / factor:.12g}") for v in (q.low, q.high, q.value))
            found[path] = Number(path, q.unit, low, high, low > 0, case.whole(name, cls.name), value, q.source)
    return [_with_keys(prior, keys[path], hosts) for path, prior in sorted(found.items())]


def sets_at(asked: Resolved, priors: Sequence[Number], shares: Mapping[str, float]) -> dict[str, str]:
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


def _with_keys(prior: Number, keys: Mapping[str, float], hosts: list[str]) -> Number:
    """The prior with its keys; one that all hosts of the run have alike is set by ``platform.host.KEY``."""
    merged: dict[str, float] = {}
    for name, factor in keys.items():
        owner, _, short = name.rpartition(".")
        alike = {keys.get(f"platform.{h}.{short}") for h in hosts}
        every = owner.removeprefix("platform.") in hosts and owner.startswith("platform.") and alike == {factor}
        merged[f"platform.host.{short}" if every else name] = factor
    return replace(prior, keys=merged)
