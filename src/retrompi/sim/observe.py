"""Optional records of a run: anatomy, timeline, profile, critical path. Observation changes no times, so it is not part of a question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from retrompi.sim.timeline import TimelineRequest

__all__ = ["NOTHING", "Observe"]


@dataclass(frozen=True)
class Observe:
    """``anatomy``: the breakdown of rank 0's time between its two marks ``between``; ``timeline``: states, calls and messages; ``profile``:
    totals of the calls; ``directions`` (from rank, its mark, to rank, its mark; with ``anatomy``): the path of messages between them;
    ``critical_path``: the chain of delays that the run's time consists of; ``trace_events``: a file to which every event of the engine is
    written, to debug it."""

    anatomy: bool = False
    between: tuple[str, str] = ("anatomy", "end")
    timeline: TimelineRequest | None = None
    profile: bool = False
    directions: tuple[tuple[int, str, int, str], ...] = ()
    critical_path: bool = False
    trace_events: str = ""


NOTHING = Observe()
