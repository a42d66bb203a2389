"""Facts about a program that are not in its trace: the timed section, its computation time on the platform, and the share of it
spent waiting for memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from retrompi.base.errors import UsageError

__all__ = ["Program"]


@dataclass(frozen=True)
class Program:
    """Options of a replay that belong to the program.

    ``section`` is the timed part: lines of rank 0 (``34-40``, both inclusive) or two of its marks
    (``LABEL..LABEL``); None for none. ``compute_s`` is the computation in it in seconds, summed over the
    ranks; all amounts of the trace are scaled by one factor to match it (None: as captured). It holds for hosts that compute at
    ``compute_flops`` (flop/s), and takes longer on slower ones (None: for the hosts of the question). ``memory_share`` (0..1) is
    the part of the computation spent waiting for the memory bus when alone on a host. Raises UsageError for values out of range
    or ``compute_s`` without a section.
    """

    section: str | None = None
    compute_s: float | None = None
    memory_share: float = 0.0
    compute_flops: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.memory_share <= 1:
            raise UsageError(f"the memory share is {self.memory_share:g}; it must be in 0..1", code="out-of-range")
        if self.compute_s is not None and self.compute_s < 0:
            raise UsageError(f"{self.compute_s:g} s of computation; it cannot be negative", code="out-of-range")
        if self.compute_s is not None and self.section is None:
            raise UsageError("seconds of computation are those of a section; name it", code="no-section")

    def row(self) -> dict[str, Any]:
        """The options that were given, as part of the identity of a run; {} for none."""
        stated = {"section": self.section, "compute_s": self.compute_s, "memory_share": self.memory_share or None,
                  "compute_flops": self.compute_flops}
        return {k: v for k, v in stated.items() if v is not None}
