"""Names of composed platforms: ``HOST*COUNT@NETWORK``, ``A*2+B*4@NETWORK``, ``HOST`` for one machine on its own."""

from __future__ import annotations

import re
from dataclasses import dataclass

from retrompi.base import names
from retrompi.base.errors import UsageError

__all__ = ["MAX_HOSTS", "MAX_SIZED", "Composition", "parse", "with_size", "without_size"]

MAX_HOSTS = 1 << 14
"""Maximum number of hosts that are composed, each with its own values: 2 s and 0.2 GB at this size."""
MAX_SIZED = 1 << 20
"""Maximum number of hosts of a platform with a size at its end (``NAME*n``), whose hosts share their values."""
_TERM = re.compile(r"([^\s*+@]+)(?:\*([0-9]+))?")
_SIZED = re.compile(r"(.+)\*[0-9]{1,8}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Composition:
    """``terms``: (host of the library, how many of it) in order; ``network``: its name, empty for a machine on its own."""

    terms: tuple[tuple[str, int], ...]
    network: str = ""

    def __str__(self) -> str:
        hosts = "+".join(name if n == 1 else f"{name}*{n}" for name, n in self.terms)
        return f"{hosts}@{self.network}" if self.network else hosts

    @property
    def hosts(self) -> int:
        """How many hosts it has."""
        return sum(n for _, n in self.terms)


def parse(text: str) -> Composition:
    """The composition that ``text`` names. Raises UsageError for a wrong form, a count out of 1..`MAX_HOSTS`, hosts without a network."""
    hosts, at, network = (part.strip() for part in text.partition("@"))
    found: list[tuple[str, int]] = []
    for item in hosts.split("+"):
        term = _TERM.fullmatch(item.strip())
        if term is None or (at and (not network or not re.fullmatch(r"[^\s*+@]+", network))):
            raise UsageError(
                f"'{text[:80]}' is not HOST*COUNT@NETWORK; examples: nt4-p6-200*8@switch-100, nt4-p6-200*2+linux-p6-200*4@hub-10",
                code="bad-syntax",
            )
        name, n = term[1], int(term[2][:9]) if term[2] else 1
        if found and found[-1][0] == name:
            n += found.pop()[1]
        found.append((name, n))
    made = Composition(tuple(found), network)
    if min(n for _, n in found) < 1 or made.hosts > MAX_HOSTS:
        raise UsageError(f"'{text[:80]}': a platform has 1 to {MAX_HOSTS} hosts, and at least 1 of each", code="out-of-range")
    if not network and made.hosts > 1:
        raise UsageError(f"'{text[:80]}': {made.hosts} hosts need a network; example: {made}@switch-100", code="missing-key")
    names.check_name("a platform", str(made))
    return made


def without_size(platform: str) -> str:
    """The name of ``platform`` without the number of hosts at its end: ``nt-pair*64`` -> ``nt-pair``."""
    sized = _SIZED.fullmatch(platform)
    return sized[1] if sized else platform


def with_size(platform: str, hosts: int) -> str:
    """The name of ``platform`` with another number of hosts: ``nt-pair*64``, ``nt4-p6-200*64@switch-100``."""
    base = without_size(platform)
    of, at, network = base.rpartition("@")
    if at and "+" not in of and not any(c in base for c in "/\\"):
        return f"{of.partition('*')[0]}*{hosts}@{network}"
    return f"{base}*{hosts}"
