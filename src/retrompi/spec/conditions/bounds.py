"""Limits of a simulation, so that an endless one ends by itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from retrompi.base.errors import UsageError

__all__ = ["MEMORY_B", "Bounds"]

MEMORY_B = 2 << 30
"""The bound on memory (B) where none is given; 200,000 ranks of a halo at curve or loggp fit into it."""


@dataclass(frozen=True)
class Bounds:
    """A simulation that reaches one of these ends with outcome ``limit``, and what was computed until then is kept.

    ``events`` of the engine, which is deterministic; ``wall_s``, seconds of the simulating process; ``memory_B``, bytes that the
    simulation adds to it (None: `MEMORY_B`). They say nothing about the program and are no part of a question: its answer is the same
    under all bounds that it stays below. Simulated time is different, see ``limit_s`` of `retrompi.spec.question.Question`.
    Raises UsageError for a bound that is not above zero.
    """

    events: int | None = None
    wall_s: float | None = None
    memory_B: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("events", self.events), ("wall time", self.wall_s), ("memory", self.memory_B)):
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise UsageError(f"the bound on {name} must be more than zero, not {value:g}", code="out-of-range")

    def within(self, other: Bounds) -> Bounds:
        """The tighter of two for each bound."""

        def least(a: Any, b: Any) -> Any:
            return b if a is None else a if b is None else min(a, b)

        return Bounds(least(self.events, other.events), least(self.wall_s, other.wall_s), least(self.memory_B, other.memory_B))

    def rows(self) -> Mapping[str, float]:
        """The engine's settings; 0: unbounded."""
        return {
            "event_limit": self.events or 0,
            "wall_limit": self.wall_s or 0.0,
            "memory_limit": MEMORY_B if self.memory_B is None else self.memory_B,
        }
