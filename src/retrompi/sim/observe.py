"""What is observed of a run beside its times. No time changes by it, so it is no part of a question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from retrompi.sim.timeline import Request

__all__ = ["NOTHING", "Observe"]


@dataclass(frozen=True)
class Observe:
    """``anatomy``: where rank 0's time goes between its two marks ``between``; ``timeline``: states, calls and messages; ``profile``: the
    calls summed up; ``directions`` (from rank, its mark, to rank, its mark; with ``anatomy``): the path of what is sent between them."""

    anatomy: bool = False
    between: tuple[str, str] = ("anatomy", "end")
    timeline: Request | None = None
    profile: bool = False
    directions: tuple[tuple[int, str, int, str], ...] = ()


NOTHING = Observe()
