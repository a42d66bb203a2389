"""The range over which a model is calibrated."""

from __future__ import annotations

from dataclasses import dataclass

from retrompi.base import units
from retrompi.spec.declare.sources import wrong_source

__all__ = ["Range"]


@dataclass(frozen=True)
class Range:
    """The range of the published data behind a model: message sizes (text with units), ranks and platforms, with the ``source``.

    Raises ValueError for an invalid declaration, so that a bad model fails on import.
    """

    sizes: tuple[str, str]
    ranks: tuple[int, int]
    platforms: tuple[str, ...]
    source: str

    def __post_init__(self) -> None:
        if problem := wrong_source(self.source):
            raise ValueError(f"Range: the source '{self.source}' {problem}")
        low, high = self.bytes
        if not low <= high or not 1 <= self.ranks[0] <= self.ranks[1] or not self.platforms:
            raise ValueError("Range: sizes and ranks must be (min, max), and one platform or more must be named")

    @property
    def bytes(self) -> tuple[float, float]:
        """(smallest, largest) message size in bytes."""
        low, high = (units.parse(s, "B") for s in self.sizes)
        return low, high

    def __str__(self) -> str:
        ranks = f"{self.ranks[0]} to {self.ranks[1]} ranks" if self.ranks[0] < self.ranks[1] else f"{self.ranks[0]} ranks"
        return f"{self.sizes[0]} to {self.sizes[1]}, {ranks}, {', '.join(self.platforms)}"
