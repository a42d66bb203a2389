"""Pairs of a runtime and a platform that can have been. Another one is refused, or called a fiction where it is asked for."""

from __future__ import annotations

from collections.abc import Iterator

from retrompi.base.errors import RetrompiError, UsageError
from retrompi.spec import registry
from retrompi.spec.machine import composition, machines
from retrompi.spec.model import RuntimeModel
from retrompi.spec.needs import lacks
from retrompi.spec.platform import Platform
from retrompi.spec.technology import TECHNOLOGIES

__all__ = ["check", "fiction", "nearby"]

_MOST = 3


def fiction(model: type[RuntimeModel] | str, platform: Platform | str) -> str:
    """``a what-if: MPICH-GM on Ethernet, where it never ran``; empty for a pair that can have been. Raises the errors of the registry."""
    cls = registry.model(model) if isinstance(model, str) else model
    loaded = registry.platform(platform) if isinstance(platform, str) else platform
    lacking = lacks(cls.needs, loaded)
    where = {"network": f"on {_network(loaded)}", "system": f"under {_systems(loaded)}"}
    return f"a what-if: {cls.title} {' '.join(where[what] for what in lacking)}, where it never ran" if lacking else ""


def check(cls: type[RuntimeModel], platform: Platform) -> None:
    """Raises UsageError, with the nearest platforms on which the model can run, if it cannot have run on this one."""
    lacking = lacks(cls.needs, platform)
    if lacking:
        has = {"network": f"has {_network(platform)}", "system": f"runs {_systems(platform)}"}
        near = nearby(cls, platform)
        others = f"; it can run on {', '.join(near)}" if near else ""
        raise UsageError(f"{cls.name} needs {cls.needs}, but '{platform.name}' {' and '.join(has[what] for what in lacking)}{others}; "
                         "--what-if-hardware simulates it all the same", code="impossible-hardware")


def _network(platform: Platform) -> str:
    return TECHNOLOGIES.get(platform.technology, platform.technology)


def _systems(platform: Platform) -> str:
    return " and ".join(dict.fromkeys(h.os for h in platform.hosts[:_SOME]))


_SOME = 64
"""Hosts of a platform whose systems are named in a refusal."""


def nearby(cls: type[RuntimeModel], platform: Platform) -> list[str]:
    """Platforms like ``platform`` on which the model can run: its hosts on another network of the library, or its own."""
    found = []
    for name in _like(cls, platform):
        try:
            made = registry.platform(name)
        except RetrompiError:  # a cable has two ends
            continue
        if name not in found and not lacks(cls.needs, made):
            found.append(name)
        if len(found) == _MOST:
            break
    return found


def _like(cls: type[RuntimeModel], platform: Platform) -> Iterator[str]:
    hosts, at, _ = platform.name.rpartition("@")
    if at and cls.needs is not None:
        for name, net in machines.networks().items():
            if net.technology in cls.needs.networks:
                yield f"{hosts}@{name}"
                break
    for own in registry.own_platforms(cls):
        yield composition.with_size(own, len(platform.hosts)) if len(platform.hosts) != len(registry.platform(own).hosts) else own
        yield own
