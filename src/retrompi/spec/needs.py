"""Requirements of a runtime on its platform: a network that it can drive, and an operating system.

A model declares its `Needs` once, a network of the library its ``technology``, a host its operating system. A pair of model and platform
that cannot have been is refused (`retrompi.spec.runtime.possible`), unless a fiction is asked for (``--what-if-hardware``); then titles say
so. What is not declared restricts nothing: a user's model without `Needs`, a network without a technology.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from retrompi.spec.declare.sources import wrong_source
from retrompi.spec.hosts import kinds, mapped
from retrompi.spec.technology import IP, TECHNOLOGIES

if TYPE_CHECKING:
    from retrompi.spec.host import Host
    from retrompi.spec.platform import Platform

__all__ = ["SYSTEMS", "Needs", "allows_fiction", "as_needed", "asking", "foreign", "lacks"]

SYSTEMS = {
    "win32": "Windows",
    "unix": "Unix",
    "linux": "Linux",
    "aix": "AIX",
    "unicos": "UNICOS",
    "tru64": "Tru64 UNIX",
    "windows 2000": "Windows 2000",
}
"""Name of an operating system, or of a family of them (`retrompi.spec.host.Host.family`) -> in words."""


@dataclass(frozen=True)
class Needs:
    """Requirements of a runtime: one of ``networks`` (`TECHNOLOGIES`; () for any, or for none) between its hosts, and one of ``systems``
    (`SYSTEMS`; () for any) on every host, with the ``source``. Raises ValueError for an unknown name or a wrong source."""

    networks: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    source: str = ""
    mixed: bool = False
    """Whether one host of such a system is enough: `RuntimeModel.joins` says which others a job takes."""

    def __post_init__(self) -> None:
        for what, given, known in (("network", self.networks, TECHNOLOGIES), ("system", self.systems, SYSTEMS)):
            if unknown := [name for name in given if name not in known]:
                raise ValueError(f"Needs: no {what} '{unknown[0]}'; valid: {', '.join(known)}")
        if problem := wrong_source(self.source):
            raise ValueError(f"Needs: the source '{self.source}' {problem}")

    def __str__(self) -> str:
        """``Myrinet and Linux``."""
        return " and ".join(w for w in (self.network_words, self.system_words) if w) or "nothing in particular"

    @property
    def network_words(self) -> str:
        """The networks in words; empty for any."""
        return "a network with TCP/IP" if self.networks == IP else " or ".join(TECHNOLOGIES[n] for n in self.networks)

    @property
    def system_words(self) -> str:
        """The systems in words; empty for any."""
        return " or ".join(SYSTEMS[s] for s in self.systems)


def lacks(needs: Needs | None, platform: Platform) -> tuple[str, ...]:
    """The requirements of ``needs`` that a platform does not meet: ``network``, ``system``; () if the runtime can run there."""
    if needs is None:
        return ()
    found = []
    if needs.networks and len(platform.hosts) > 1 and platform.technology and platform.technology not in needs.networks:
        found.append("network")
    if needs.systems:
        right = [_has_system(needs, h) for h in kinds(platform.hosts)[0]]
        if not (any(right) if needs.mixed else all(right)):
            found.append("system")
    return tuple(found)


def foreign(needs: Needs | None, hosts: Iterable[Host]) -> Host | None:
    """The first of the ``hosts`` of a job if none of them has a system that the runtime needs; None if one has."""
    each = list(hosts)
    if needs is None or not needs.systems or any(_has_system(needs, h) for h in each):
        return None
    return each[0]


def as_needed(needs: Needs | None, platform: Platform, *, fiction: bool) -> Platform:
    """The platform as `RuntimeModel.joins` is to see it: of a host that runs one of several systems ("Linux 2.4 or Windows 2000") the one
    that the runtime needs, and in a ``fiction`` that system on every host."""
    prototypes = kinds(platform.hosts)[0]
    if needs is None or not needs.systems or not (fiction or any(" or " in h.os for h in prototypes)):
        return platform

    def change(host: Host) -> Host:
        right = [name for name in host.os.split(" or ") if any(_is(name, wanted) for wanted in needs.systems)]
        return replace(host, os=right[0] if right else SYSTEMS[needs.systems[0]]) if right or fiction else host

    return replace(platform, hosts=mapped(platform.hosts, change))


def _has_system(needs: Needs, host: Host) -> bool:
    return any(_is(host.os, wanted) for wanted in needs.systems)


def _is(os: str, wanted: str) -> bool:
    """Whether an operating system by its name ("Linux 2.4 or Windows 2000") is, or may be, the wanted one."""
    names = [name.strip().lower() for name in os.split(" or ")]
    if wanted in ("win32", "unix"):
        return any(name.startswith("windows") == (wanted == "win32") for name in names)
    return any(name.startswith(wanted) for name in names)


_asked: list[bool] = []


def allows_fiction() -> bool:
    """Whether questions of now may be about pairs that never were: what the innermost `asking` says, else no."""
    return bool(_asked) and _asked[-1]


@contextmanager
def asking(fictions: bool = True) -> Iterator[None]:
    """In the body, questions and scenarios that say nothing themselves may be about pairs that never were, in every thread."""
    _asked.append(fictions)
    try:
        yield
    finally:
        _asked.pop()
