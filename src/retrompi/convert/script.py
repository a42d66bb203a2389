"""Builds the lines of a trace: one `Script` per rank."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from retrompi.traces.lines import show_group as group_text

__all__ = ["ANY_SOURCE", "ANY_TAG", "BYTE", "PROC_NULL", "ROOT", "Requests", "Script", "group_text"]

ANY_SOURCE, ANY_TAG, PROC_NULL, ROOT = -555, -444, -666, -777
BYTE = 6
"""The type code in which all sizes are written."""


class Requests:
    """Identifiers of a rank's requests: small numbers, reused when the request is complete, so that loops repeat exactly."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self._next = 1

    def new(self) -> int:
        """The smallest identifier not in use."""
        if self._free:
            return heapq.heappop(self._free)
        self._next += 1
        return self._next - 1

    def release(self, req: int) -> None:
        """``req`` is no longer in use."""
        heapq.heappush(self._free, req)


class Script:
    """The lines of one rank.

    ``rate`` converts seconds into operations (flop/s); computation bursts shorter than ``shortest`` seconds are dropped.
    """

    def __init__(self, rank: int, rate: float = 1e9, shortest: float = 0.0) -> None:
        self.rank = rank
        self.rate = rate
        self.shortest = shortest
        self.lines: list[str] = []
        self._seconds = 0.0

    def compute(self, seconds: float) -> None:
        """Add computation before the next call."""
        if seconds > 0:
            self._seconds += seconds

    def operations(self, amount: float) -> None:
        """Add a computation of this many operations, none if it is 0."""
        self.flush()
        if amount > 0:
            self.lines.append(f"{self.rank} compute {amount!r}".removesuffix(".0"))

    def flush(self) -> None:
        """Write the computation accumulated so far."""
        if self._seconds >= self.shortest and self._seconds > 0:
            self.lines.append(f"{self.rank} compute {self._seconds * self.rate:.12g}")
        self._seconds = 0.0

    def add(self, action: str, *arguments: object, **attributes: object) -> None:
        """Add a line; attributes that are None are left out, ``source`` becomes ``from``, lists are joined by commas."""
        self.flush()
        words = [str(self.rank), action, *map(str, arguments)]
        for key, value in attributes.items():
            if value is None:
                continue
            name = "from" if key == "source" else key
            words.append(f"{name}={attribute_text(value)}")
        self.lines.append(" ".join(words))

    def text(self) -> str:
        """The file of this rank."""
        self.flush()
        return "".join(line + "\n" for line in self.lines)


def attribute_text(value: object) -> str:
    """An attribute's value: a list joined by commas (``none`` when empty), anything else as it is."""
    if isinstance(value, str):
        return value
    if isinstance(value, Iterable):
        return ",".join(map(str, value)) or "none"
    return str(value)
