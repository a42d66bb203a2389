"""Plain SMPI without the plug-in: piecewise factors and costs as SMPI settings, a platform file, and what is lost by that."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from retrompi.base.errors import UsageError
from retrompi.measure.smpi.export import Export
from retrompi.spec.hosts import one_by_one

__all__ = ["LOST", "Plain", "plain"]

ENVELOPE = 16
"""Bytes that SMPI adds to every message on the wire."""
BANDWIDTH = 1e9
PS = 1e-12
LOST = (
    "contention of a channel and of a host's ports, and a hub's wire: messages do not slow each other down",
    "the rule of progress: the data of a message that asks first set out whether or not its sender is inside an MPI call",
    "what a message that asks first costs its receiver and a blocking sender is in its latency, and both wait for its end",
    "the cost of a pair's first message, of tests and probes, and of a copy out of the library's buffer",
    "sizes that the mechanism does not carry: they are carried here",
    "other pair kinds than one: SMPI has one threshold and one set of factors",
    "collectives by size and ranks: one algorithm of SMPI's for each operation, the nearest of its own",
    "straight lines between sizes that would begin below 0 begin at 0",
)
"""What plain SMPI cannot represent, one statement each."""


@dataclass(frozen=True)
class Plain:
    """A platform file, a host file and SimGrid's settings; ``notes`` states what was left out or cannot be expressed."""

    platform: str
    hosts: str
    settings: dict[str, str]
    notes: tuple[str, ...]

    def command(self, platform: str, hosts: str, ranks: int) -> str:
        """smpirun's command line, up to the program's name."""
        settings = " ".join(shlex.quote(f"--cfg={key}:{value}") for key, value in self.settings.items())
        return f"smpirun -np {ranks} -platform {platform} -hostfile {hosts} {settings}"


Row = tuple[int, ...]


def plain(facts: Export, which: str | None = None) -> Plain:
    """Plain SMPI's nearest approximation of ``facts`` for pairs of one kind (``same`` or ``remote``; None: remote if there are such).

    Raises UsageError for a pair kind that the placement lacks.
    """
    kinds = facts.kinds()
    which = which or kinds[-1]
    if which not in kinds:
        raise UsageError(f"this placement has no pairs of kind '{which}'; valid: {', '.join(kinds)}")
    points: Sequence[Row] = facts.rows[which][0]["curve"]["tables"][0][0]
    asks = min((int(low) for low, _, kind in facts.rows[f"protocol_{which}"] if kind != "eager"), default=2**31 - 1)

    def flight(p: Row) -> float:
        return (p[2] if p[0] < asks else p[1] + p[2] + p[3]) * PS

    latency, rate = [], []
    for low, start, slope in _lines(points, flight):
        at = 0 if low == 0 else low + ENVELOPE - 1  # SMPI's bounds are inclusive: each belongs to the interval below
        start, slope = (start - ENVELOPE * slope, slope) if start > ENVELOPE * slope else (0.0, slope)
        latency.append(f"{at}:{start:.12g}")
        rate.append(f"{at}:{1 / (slope * BANDWIDTH) if slope > 0 else 1e9:.12g}")
    settings = facts.settings() | {
        "network/model": "SMPI",
        "smpi/lat-factor": ";".join(latency),
        "smpi/bw-factor": ";".join(rate),
        "smpi/os": _costs(points, lambda p: p[1] * PS),
        "smpi/ois": _costs(points, lambda p: p[1] * PS),
        "smpi/or": _costs(points, lambda p: p[3] * PS),
        "smpi/async-small-thresh": str(asks),
        "smpi/send-is-detached-thresh": str(asks),
        "smpi/simulate-computation": "yes",
    }
    notes = list(LOST)
    notes += [f"{operation}: SMPI has no '{algorithm}', its default stands" for operation, algorithm in facts.unknown()]
    return Plain(_platform(facts), "".join(f"rank{r}\n" for r in range(facts.ranks)), settings, tuple(notes))


def _lines(points: Sequence[Row], value: Callable[[Row], float]) -> list[tuple[int, float, float]]:
    """(from, start, slope) of the straight lines between points; a line that would start below 0 starts at 0 and keeps its end."""
    out: list[tuple[int, float, float]] = []
    for a, b in pairwise(points):
        slope = max(0.0, (value(b) - value(a)) / (b[0] - a[0]))
        start = value(a) - slope * a[0]
        if start < 0:
            start, slope = 0.0, value(b) / b[0]
        out.append((a[0], start, slope))
    return out or [(0, value(points[0]), 0.0)]


def _costs(points: Sequence[Row], value: Callable[[Row], float]) -> str:
    return ";".join(f"{low}:{start:.12g}:{slope:.12g}" for low, start, slope in _lines(points, value))


def _platform(facts: Export) -> str:
    values = one_by_one(facts.rows["hosts"])
    hosts = "".join(
        f'    <host id="rank{r}" speed="{values[place]["flops"]:.12g}f"/>\n' for r, place in enumerate(facts.rows["placement"])
    )
    pairs = combinations(range(facts.ranks), 2)
    routes = "".join(f'    <route src="rank{a}" dst="rank{b}"><link_ctn id="wire"/></route>\n' for a, b in pairs)
    lost = "".join(f"  lost: {line}\n" for line in LOST)
    return (
        "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
        f"<!-- {facts.model} on {facts.platform}, {facts.mode}, {facts.ranks} ranks, for SMPI without the plug-in.\n"
        f"  The link's latency is 1 s: smpi/lat-factor is in seconds.\n{lost}-->\n"
        f'<platform version="4.1">\n  <zone id="room" routing="Full">\n{hosts}'
        f'    <link id="wire" bandwidth="{BANDWIDTH:g}Bps" latency="1s" sharing_policy="FATPIPE"/>\n{routes}  </zone>\n</platform>\n'
    )
