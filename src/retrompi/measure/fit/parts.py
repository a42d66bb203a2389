"""From a fitted curve to the engine's curve: how a one-way time is split, and how long a message occupies channel and ports.

Measured columns are used as measured; the rest follow a declared rule, whose sources begin with ``assumed:``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from retrompi.base.errors import UsageError
from retrompi.base.units import PS
from retrompi.sim.sampling import Sample, SamplePoint

if TYPE_CHECKING:
    from retrompi.measure.fit.segments import SegmentFit

__all__ = ["COLUMNS", "Parts", "sample_of"]

COLUMNS = ("send", "recv", "gap", "port", "both")
OVERHEAD = 0.25
"""The share of a one-way time that each end is assumed to work."""

Known = Mapping[int, float]


@dataclass(frozen=True)
class Parts:
    """Values known besides the one-way time: column -> {size in bytes: seconds}.

    ``send`` and ``recv`` are the sender's and receiver's own work, ``gap`` the time that a message of a stream adds on one channel,
    ``port`` on a host's port with several pairs at once, ``both`` with both directions at once. Interpolation is linear between sizes,
    beyond them at the last rate. ``overhead`` is the share of the one-way time that each end is assumed to work where ``send`` or
    ``recv`` is not measured.
    """

    measured: Mapping[str, Known] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    overhead: float = OVERHEAD
    remote: bool = False

    def __post_init__(self) -> None:
        for name in self.measured:
            if name not in COLUMNS:
                raise UsageError(f"no column '{name}'; valid: {', '.join(COLUMNS)}", code="unknown-name")
        if not 0 <= self.overhead <= 0.5:
            raise UsageError(
                f"an overhead of {self.overhead:g} of the one-way time at either end is not between 0 and 0.5", code="out-of-range"
            )

    def column_sources(self) -> dict[str, str]:
        """Column -> its source."""
        rule = {
            "send": f"assumed: {self.overhead:g} of the one-way time",
            "recv": f"assumed: {self.overhead:g} of the one-way time",
            "gap": "assumed: the part of the one-way time that grows with the size, so that latencies of a stream overlap",
            "port": "assumed: one port a host, busy as long as the channel"
            if self.remote
            else "assumed: pairs of one host do not hinder each other",
            "both": "assumed: both directions at once cost nothing more",
        }
        told = {k: self.sources.get(k, "fit: measured") for k in self.measured}
        return {"transit": "fit: what is left of the one-way time", **rule, **told}


def _line(known: Known, size: int) -> float:
    """Piecewise linear between the sizes of ``known``, beyond them the last rate; never negative."""
    sizes = sorted(known)
    if len(sizes) == 1 or size <= sizes[0]:
        return known[sizes[0]]
    above = next((i for i, s in enumerate(sizes) if s >= size), len(sizes) - 1)
    a, b = sizes[above - 1], sizes[above]
    return max(0.0, known[a] + (known[b] - known[a]) * (size - a) / (b - a))


def _knots(fit: SegmentFit, measured: Iterable[Known]) -> list[int]:
    """Sizes of a curve's table: both ends of every segment, and every size at which a column was measured."""
    top = max([r.size for r in fit.residuals] + [fit.segments[-1].low + 1])
    sizes = {fit.segments[0].low, top, *(s for known in measured for s in known if s <= top)}
    for segment in fit.segments[1:]:
        sizes |= {segment.low - 1, segment.low}
    if len(sizes) == 1:
        sizes.add(top + 1)
    # The last rate is that between the last two points: both must belong to the last segment.
    if sum(s >= fit.segments[-1].low for s in sizes) < 2:
        sizes.add(2 * top)
    return sorted(sizes)


def sample_of(fit: SegmentFit, parts: Parts | None = None, *, connect_s: float = 0.0) -> Sample:
    """The sample of a pair kind whose one-way times equal ``fit``'s, to the picosecond at the ends of its segments.

    ``parts``: measured columns (default: assumptions only); ``connect_s``: extra seconds of the first message.
    """
    known = parts or Parts()
    points = []
    for size in _knots(fit, known.measured.values()):
        points.append(_point(size, fit, known))
    return Sample(tuple(points), tuple(points), round(connect_s / PS))


def _point(size: int, fit: SegmentFit, known: Parts) -> SamplePoint:
    total = fit.time(size)

    def column(name: str, otherwise: float) -> float:
        return _line(known.measured[name], size) if name in known.measured else otherwise

    send, recv = column("send", known.overhead * total), column("recv", known.overhead * total)
    if send + recv > total:  # a sender blocked until its receiver has copied: the overlap is not charged twice
        send, recv = (send * total / (send + recv), recv * total / (send + recv))
    gap = min(column("gap", max(0.0, total - max(0.0, fit.segment(size).latency_s))), total)
    port = min(column("port", gap if known.remote else 0.0), gap)
    both = min(column("both", 0.0), gap)
    whole = round(total / PS)
    sent, got = round(send / PS), round(recv / PS)
    got = min(got, whole - min(sent, whole))
    return SamplePoint(size, min(sent, whole), max(0, whole - sent - got), got, round(gap / PS), round(port / PS), round(both / PS))
