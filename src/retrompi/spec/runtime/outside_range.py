"""Parts of a question outside the calibrated range of its model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from retrompi.base import units
from retrompi.spec import registry
from retrompi.spec.model import RuntimeModel, resolve
from retrompi.spec.platform import Platform

if TYPE_CHECKING:
    from retrompi._engine import Trace
    from retrompi.spec.values import Values

__all__ = ["FAR", "Beyond", "beyond", "outside", "outside_of_trace"]

FAR = 10.0
"""How many times a size, a number of ranks or the rate of a network may be beyond what a model was calibrated for before it matters: up
to one order of magnitude is taken as an extrapolation that nearly every question needs."""


@dataclass(frozen=True)
class Beyond:
    """One property of a question outside a calibrated range: a sentence, a few words, and whether it is ``far`` outside (`FAR`)."""

    text: str
    short: str
    far: bool = False


def outside(
    model: str | type[RuntimeModel],
    platform: str | Platform,
    *,
    sizes: Iterable[int] = (),
    ranks: int | None = None,
    sets: Mapping[str, str] | Sequence[str] = (),
) -> list[str]:
    """A short text for each part of a question outside the calibrated range of a model; [] if all lie inside.

    ``sizes`` are message sizes in bytes. An override of a fitted parameter, of the model or of the platform, counts as
    outside, since fitted values are valid only together. For a model that declares no range everything is outside.
    """
    return [b.text for b in beyond(model, platform, sizes=sizes, ranks=ranks, sets=sets)]


def beyond(
    model: str | type[RuntimeModel],
    platform: str | Platform,
    *,
    sizes: Iterable[int] = (),
    ranks: int | None = None,
    sets: Mapping[str, str] | Sequence[str] = (),
) -> list[Beyond]:
    """As `outside`, with a few words for each property and whether it matters.

    What the user overrides himself has no words: he knows.
    """
    cls = registry.model(model) if isinstance(model, str) else model
    loaded = registry.platform(platform) if isinstance(platform, str) else platform
    return beyond_resolved(cls, loaded, *resolve(cls, loaded, sets), sizes=sizes, ranks=ranks)


def beyond_resolved(
    cls: type[RuntimeModel], loaded: Platform, values: Values, changed: Platform, *, sizes: Iterable[int] = (), ranks: int | None = None,
) -> list[Beyond]:
    """`beyond` with the values and the platform (``loaded``, with overrides ``changed``) that a question has been resolved to."""
    known = cls.calibrated
    if known is None:
        return [Beyond("the model states no calibrated range", "", far=True)]
    found = []
    if loaded.name not in known.platforms:
        told = f"platform {loaded.name} (calibrated on {', '.join(known.platforms)}; docs/transfer.md says how it does on others)"
        found.append(Beyond(told, f"platform {loaded.name}", _another_network(loaded, known.platforms)))
    low, high = known.bytes
    used = [s for s in sizes if not low <= s <= high]
    if used:
        worst = max(used) if max(used) > high else min(used)
        words = f"messages of {units.format_bytes(worst)}"
        far = _far(worst, high) or (min(used) < low and _far(low, min(used)))
        found.append(Beyond(f"{words} (calibrated for {known.sizes[0]} to {known.sizes[1]})", words, far))
    if ranks is not None and not known.ranks[0] <= ranks <= known.ranks[1]:
        words = f"{ranks} rank{'s' if ranks != 1 else ''}"
        told = f"{words} (calibrated for {' to '.join(str(r) for r in dict.fromkeys(known.ranks))})"
        found.append(Beyond(told, words, _far(ranks, known.ranks[1])))
    params = cls.params()
    what_if = [f"{cls.name}.{name}" for name, s in values.settings.items() if s.overridden and name in params and params[name].fitted]
    fitted = {path for path, q in loaded.quantities.items() if q.source.startswith("fit:")}
    what_if += [f"platform.{path}" for path in sorted(changed.overridden & fitted)]
    if what_if:
        found.append(Beyond(
            f"{', '.join(what_if)} overridden, which {'was' if len(what_if) == 1 else 'were'} fitted (a what-if)", ""))
    return found


def _far(value: float, bound: float) -> bool:
    """Whether ``value`` is more than `FAR` times ``bound``; nothing is smaller than a byte or a rank."""
    return value > FAR * max(bound, 1)


@cache
def _rate(platform: str) -> float:
    return registry.platform(platform).link.bandwidth


def _another_network(platform: Platform, calibrated: Sequence[str]) -> bool:
    """Whether the network's rate differs by more than `FAR` times from that of every calibrated platform."""
    return len(platform.hosts) > 1 and all(abs(math.log(platform.link.bandwidth / _rate(name))) > math.log(FAR) for name in calibrated)


def outside_of_trace(
    model: str | type[RuntimeModel], platform: str | Platform, trace: Trace, *, sets: Mapping[str, str] | Sequence[str] = ()
) -> list[str]:
    """`outside` for a trace: its largest message and its number of ranks."""
    return outside(model, platform, sizes=[trace.info()["largest_B"]], ranks=trace.ranks, sets=sets)
