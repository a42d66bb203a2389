"""Which parts of a question lie outside the calibrated range of its model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from retrompi.base import units
from retrompi.spec import registry
from retrompi.spec.model import RuntimeModel, resolve
from retrompi.spec.platform import Platform

if TYPE_CHECKING:
    from retrompi._engine import Trace

__all__ = ["outside", "outside_of_points", "outside_of_trace"]


def outside(
    model: str | type[RuntimeModel],
    platform: str | Platform,
    *,
    sizes: Iterable[int] = (),
    ranks: int | None = None,
    sets: Mapping[str, str] | Sequence[str] = (),
) -> list[str]:
    """What lies outside the calibrated range of a model, one short text each; [] if nothing does.

    ``sizes`` are message sizes in bytes. An override of a fitted parameter, of the model or of the platform, counts as
    outside, since fitted values are valid only together. For a model that declares no range everything is outside.
    """
    cls = registry.model(model) if isinstance(model, str) else model
    room = registry.platform(platform) if isinstance(platform, str) else platform
    known = cls.calibrated
    if known is None:
        return ["the model states no calibrated range"]
    found = []
    if room.name not in known.platforms:
        found.append(f"platform {room.name} (calibrated on {', '.join(known.platforms)}; docs/transfer.md says how it does on others)")
    low, high = known.bytes
    beyond = [s for s in sizes if not low <= s <= high]
    if beyond:
        worst = max(beyond) if max(beyond) > high else min(beyond)
        found.append(f"messages of {units.format_bytes(worst)} (calibrated for {known.sizes[0]} to {known.sizes[1]})")
    if ranks is not None and not known.ranks[0] <= ranks <= known.ranks[1]:
        found.append(f"{ranks} ranks (calibrated for {' to '.join(str(r) for r in dict.fromkeys(known.ranks))})")
    values, changed = resolve(cls, room, sets)
    params = cls.params()
    what_if = [f"{cls.name}.{name}" for name, s in values.settings.items() if s.overridden and name in params and params[name].fitted]
    fitted = {path for path, q in room.quantities.items() if q.source.startswith("fit:")}
    what_if += [f"platform.{path}" for path in sorted(changed.overridden & fitted)]
    if what_if:
        found.append(f"{', '.join(what_if)} overridden, which {'was' if len(what_if) == 1 else 'were'} fitted (a what-if)")
    return found


def outside_of_points(points: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Model -> `outside` for the curves of a study (rows model, platform, size_B); only models with something outside."""
    sizes: dict[tuple[str, str], set[int]] = {}
    for p in points:
        sizes.setdefault((p["model"], p["platform"]), set()).add(int(p["size_B"]))
    found: dict[str, list[str]] = {}
    for (model, platform), used in sizes.items():
        lines = outside(model, platform, sizes=sorted(used))
        if lines:
            found[model] = [*found.get(model, []), *lines]
    return found


def outside_of_trace(
    model: str | type[RuntimeModel], platform: str | Platform, trace: Trace, *, sets: Mapping[str, str] | Sequence[str] = ()
) -> list[str]:
    """`outside` for a trace: its largest message and its number of ranks."""
    return outside(model, platform, sizes=[trace.info()["largest_B"]], ranks=trace.ranks, sets=sets)
