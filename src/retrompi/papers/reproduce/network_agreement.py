"""Verdicts under another network beside those under the engine's own: how many agree, and what makes the others differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from retrompi.papers.judging.verdicts import Verdict
from retrompi.papers.reproduce.reproduction import Reproduction
from retrompi.spec.conditions.network_model import FLUID, NATIVE

__all__ = ["Differing", "NetworkAgreement", "network_agreement"]


@dataclass(frozen=True)
class Differing:
    """A statement with different verdicts under ``native`` and the ``other`` network; ``fluid``: under the engine's own fluid flows."""

    paper: str
    native: Verdict
    other: Verdict
    fluid: Verdict | None = None

    def reason(self, network: str) -> str:
        """Which of the two steps from the engine's network to the other makes the difference: fluid flows, or what SimGrid does."""
        if self.fluid is None or network == FLUID:
            return "flows share a link at once, where frames queue"
        if self.fluid.verdict == self.other.verdict:
            return "flows share a link at once, where frames queue: the engine's own fluid network gives this verdict as well"
        return f"what {network} does beyond fluid flows: the engine's own fluid network gives the native verdict"

    def row(self, network: str) -> dict[str, Any]:
        """A flat row for a table or CSV."""
        return {
            "paper": self.paper, "id": self.native.id, "native": self.native.verdict, "native_observed": self.native.observed,
            "verdict": self.other.verdict, "observed": self.other.observed, "low": self.native.low, "high": self.native.high,
            "unit": self.native.unit, "reason": self.reason(network),
        }


@dataclass(frozen=True)
class NetworkAgreement:
    """``judged`` statements (claims, points of measured curves) have verdicts under both networks; ``moved`` of their numbers differ, by at
    most the share ``farthest`` of their value."""

    network: str
    judged: int
    differing: tuple[Differing, ...] = field(default=())
    moved: int = 0
    farthest: float = 0.0

    def __str__(self) -> str:
        n = self.judged - len(self.differing)
        numbers = "every number is the same"
        if self.moved:
            numbers = f"{self.moved} numbers differ" if self.moved > 1 else "1 number differs"
            numbers += f", by at most {self.farthest:.1g} of {'their' if self.moved > 1 else 'its'} value"
        return f"network {self.network}: {n} of {self.judged} verdicts are those of the network {NATIVE}; {numbers}"


def network_agreement(
    network: str, native: Sequence[Reproduction], other: Sequence[Reproduction], fluid: Sequence[Reproduction] = ()
) -> NetworkAgreement:
    """The verdicts of the same papers under both networks; ``fluid``: those of the papers in which some differ."""
    between = {(s.paper.key, v.id): v for s in fluid for v in s.verdicts}
    differing, judged, moved, farthest = [], 0, 0, 0.0
    for a, b in zip(native, other, strict=True):
        there = {v.id: v for v in b.verdicts}
        for v in a.verdicts:
            w = there.get(v.id, v)
            if "unjudged" == v.verdict == w.verdict:
                continue
            judged += 1
            x, y = v.observed, w.observed
            if x != y:
                moved += 1
                if isinstance(x, int | float) and isinstance(y, int | float):
                    farthest = max(farthest, abs(y - x) / max(abs(x), abs(y)))
            if v.verdict != w.verdict:
                differing.append(Differing(a.paper.key, v, w, between.get((a.paper.key, v.id))))
    return NetworkAgreement(network, judged, tuple(differing), moved, farthest)
