"""Cross traffic and failures on the network during a job. docs/networks.md describes what is simulated.

``any->any 2Mbps 1500B poisson``, ``server->workstation 2Mbps 1500B``, ``any->n1 1Mbps 1518B onoff:10ms/90ms``;
``link server@1s..2s``, ``link n1-n2@1s`` (a cable, neighbours in a torus), ``switch@2s..``, ``switch 1.0@1s`` (fat tree: level, number),
``switch 1@1s`` (the switch of a site), ``wan@1s..2s``, ``wan 0-2@1s``, ``rail 1@1s``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from retrompi.base import units
from retrompi.base.errors import UsageError, nearest
from retrompi.spec.machine.topology import Failed, Part, whole_number
from retrompi.spec.platform import Platform

__all__ = ["failures", "traffic"]

LAWS = ("constant", "poisson", "onoff")
MOST_OFFERED = 1000
"""Largest offered load of a source, as a multiple of the capacity of its cards."""
_TRAFFIC = 'e.g. "server->workstation 2Mbps 1500B" or "any 2Mbps 1500B poisson"'
_FAILURE = 'e.g. "link server@1s..2s", "switch@2s.." or "wan@500ms..600ms"'

Row = tuple[Any, ...]


def traffic(texts: Sequence[str], platform: Platform, positions: Sequence[int]) -> tuple[list[Row], list[int]]:
    """(the engine's rows for the flows ``texts``, all host positions: ``positions``, those of the job, then those of further hosts).

    Rates and frame sizes are those on the wire, including headers and gaps. Raises UsageError for a flow that is invalid on this platform.
    """
    names = [h.name for h in platform.hosts]
    everywhere = list(positions)
    found = []
    for text in texts:
        words = text.split()
        if not 3 <= len(words) <= 4:
            raise UsageError(f"traffic '{text}' is not FROM->TO RATE FRAME [LAW]; {_TRAFFIC}", code="bad-traffic")
        ends, rate, frame = words[:3]
        source, arrow, target = ends.partition("->")
        pair = [_host(name, names, text) for name in ((source, target) if arrow else (ends, ends))]
        if not arrow and pair[0] >= 0:
            raise UsageError(f"traffic '{text}' has no destination; {_TRAFFIC}", code="bad-traffic")
        if (arrow and pair[0] == pair[1] >= 0) or len(names) < 2:
            raise UsageError(f"traffic '{text}' goes from one host to another", code="bad-traffic")
        for host in range(len(names)) if min(pair) < 0 else pair:
            if host not in everywhere:
                everywhere.append(host)
        try:
            numbers = (units.parse(rate, "B/s"), int(units.parse(frame, "B")))
            law = _law(words[3] if len(words) > 3 else "constant")
        except UsageError as error:
            raise UsageError(f"traffic '{text}': {error}", code=error.code) from None
        largest = int(platform.link.mtu + platform.link.frame_overhead)
        if not numbers[0] > 0 or not 1 <= numbers[1] <= largest:
            raise UsageError(f"traffic '{text}': the rate must be above 0, and a frame on the wire 1 to {largest} B", code="out-of-range")
        most = MOST_OFFERED * platform.link.bandwidth * platform.link.rails * (len(names) if pair[0] < 0 else 1)
        if numbers[0] > most:  # all but a few frames would be dropped, one event each
            raise UsageError(f"traffic '{text}' is more than {MOST_OFFERED} times what its cards can send", code="bad-traffic")
        found.append((pair, *numbers, *law))
    _leaves_processors(found, platform, positions)
    return [(*(everywhere.index(e) if e >= 0 else -1 for e in pair), *rest) for pair, *rest in found], everywhere


def _leaves_processors(found: Sequence[Row], platform: Platform, positions: Sequence[int]) -> None:
    """Refuses traffic whose frames would use up the only processor of a job's host, so that the run would never end."""
    others = len(platform.hosts) - 1
    for at in positions:
        host, load = platform.hosts[at], 0.0
        for pair, rate, frame, *_ in found:
            stack = host.tcp_segment + host.tcp_byte * max(0.0, frame - platform.link.frame_overhead)
            for end, cost in zip(pair, (stack, stack + host.interrupt), strict=True):
                share = 1.0 if end == at else 0.0 if end >= 0 else 1 / (others + 1 if min(pair) == max(pair) else others)
                load += share * min(rate, platform.link.bandwidth) / frame * cost  # more than the link carries is dropped
        if load >= 1 and host.cores == 1:
            raise UsageError(
                f"traffic takes {load:.0%} of the processor of {host.name}: no process of the job would ever run there", code="bad-traffic"
            )


def _host(name: str, names: Sequence[str], text: str) -> int:
    if name == "any":
        return -1
    if name not in names:
        raise UsageError(f"traffic '{text}': no host '{name}'{nearest(name, [*names, 'any'])}", code="unknown-host")
    return names.index(name)


def _law(text: str) -> tuple[int, float, float]:
    name, colon, periods = text.partition(":")
    if name not in LAWS or bool(colon) != (name == "onoff"):
        raise UsageError(f"no law '{text}'{nearest(name, LAWS)}; constant, poisson or onoff:10ms/90ms", code="unknown-name")
    on, slash, off = periods.partition("/")
    lengths = (units.parse(on, "s"), units.parse(off, "s")) if colon and slash else (0.0, 0.0)
    if colon and not min(lengths) > 0:
        raise UsageError(f"'{text}' needs an on and an off period; example: onoff:10ms/90ms", code="bad-traffic")
    return (LAWS.index(name), *lengths)


def failures(texts: Sequence[str], platform: Platform) -> list[Row]:
    """The engine's rows for failures: (kind, a, b, from in s, until in s or -1, name). UsageError if invalid."""
    found = []
    for text in texts:
        what, at, when = text.rpartition("@")
        begin, _, end = when.partition("..")
        words = what.split()
        if not at or not begin.strip() or not 1 <= len(words) <= 2:
            raise UsageError(f"failure '{text}' is not WHAT@FROM..TO; {_FAILURE}", code="bad-failure")
        try:
            times = (units.parse(begin, "s"), units.parse(end, "s") if end.strip() else -1.0)
        except UsageError as error:
            raise UsageError(f"failure '{text}': {error}", code=error.code) from None
        if 0 <= times[1] <= times[0]:
            raise UsageError(f"failure '{text}' ends before it begins", code="bad-failure")
        found += [(*place, *times, " ".join(words)) for place in _places(words[0], words[1] if len(words) > 1 else "", platform, text)]
    return found


def _places(word: str, which: str, platform: Platform, text: str) -> list[Failed]:
    """Each failed component, as the engine identifies it."""
    if word == "link" and which:
        return [_link(which, platform, text)]
    parts = re.split(r"[.-]", which) if which else []
    numbers = [n for n in map(whole_number, parts) if n is not None]
    if word == "rail" and len(numbers) == len(parts) == 1 and numbers[0] < platform.link.rails:
        return [(Part.RAIL, numbers[0], 0)]
    link = platform.link
    try:
        found = link.of_kind.failures(word, numbers, link.shape) if len(numbers) == len(parts) else []
    except UsageError as error:
        raise UsageError(f"failure '{text}': {error}", code=error.code) from None
    if found:
        return found
    raise UsageError(f"failure '{text}': no such component on a {link.kind}; valid: {', '.join(_things(platform))}", code="bad-failure")


def _things(platform: Platform) -> list[str]:
    """The components of a platform that can fail, for a message."""
    kind = platform.link.of_kind
    found = [f"'link {platform.hosts[0].name}'"]
    if len(platform.hosts) > 1 and kind.has_lines:
        found.append(f"'link {platform.hosts[0].name}-{platform.hosts[1].name}'")
    found += kind.can_fail(platform.link.shape)
    return found + ([f"'rail 0' to 'rail {int(platform.link.rails) - 1}'"] if platform.link.rails > 1 else [])


def _link(which: str, platform: Platform, text: str) -> Failed:
    names = [h.name for h in platform.hosts]
    if which in names:
        return (Part.HOST, names.index(which), 0)
    for i in (m.start() for m in re.finditer("-", which)):
        if which[:i] in names and which[i + 1 :] in names:
            a, b = names.index(which[:i]), names.index(which[i + 1 :])
            if not platform.link.of_kind.has_lines or a == b:
                raise UsageError(
                    f"failure '{text}': only a cable and neighbours in a torus have a separate link; 'link {which[:i]}'?",
                    code="bad-failure",
                )
            return (Part.PAIR, a, b)
    raise UsageError(f"failure '{text}': no host '{which}'{nearest(which, names)}", code="unknown-host")
