"""More ranks than processors: told for a placement that says how ranks are spread, not which ranks share a host."""

from __future__ import annotations

from collections import Counter

from retrompi.base.errors import UsageError
from retrompi.sim.resolved import Resolved
from retrompi.spec import registry
from retrompi.spec.hosts import kinds
from retrompi.spec.machine.composition import with_size, without_size
from retrompi.spec.machine.placements import spreads

__all__ = ["crowding"]


def crowding(asked: Resolved) -> list[str]:
    """One sentence if a host runs more ranks than it has processors, with the factor and the platform that has enough; [] otherwise.

    ``shared``, lists of hosts and a platform's own placements name the hosts that are shared: nothing is told of them.
    """
    mode = asked.question.placement
    if not isinstance(mode, str) or not spreads(mode):
        return []
    prototypes, kind_of = kinds(asked.platform.hosts)
    cores = [h.cores for h in prototypes]
    found = [(n / cores[kind_of[i]], i, n) for i, n in Counter(asked.placement).items() if n > cores[kind_of[i]]]
    if not found:
        return []
    factor, index, ranks = max(found, key=lambda row: (row[0], -row[1]))
    host = asked.platform.hosts[index]
    processors = "processor" if host.cores == 1 else "processors"
    hosts = f"{len(found)} hosts have" if len(found) > 1 else f"{host.name} has"
    text = f"{hosts} more ranks than processors: {host.name} runs {ranks} on {host.cores:.0f} {processors}, {factor:.3g} times as many"
    return [text + _wider(asked)]


def _wider(asked: Resolved) -> str:
    """How the platform can be widened so that each rank has a processor; empty if it cannot."""
    try:
        own = registry.platform(without_size(asked.question.platform)).hosts
        each = sum(asked.platform.host(h.name).cores for h in own if asked.platform.index(h.name) is not None) / len(own)
        wider = with_size(asked.question.platform, -(-asked.ranks // max(1, int(each))))
        platform = registry.platform(wider)
    except UsageError:
        return ""
    if platform.link.of_kind.joins_two and len(platform.hosts) > 2:
        return ""
    return f"; -p '{wider}' has a processor for each rank"
