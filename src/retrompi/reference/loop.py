"""Time and events.

Time is a whole number of picoseconds. An event is a time and something to be called; of two events at one time the one that was scheduled
first happens first. That is the whole rule of their order, and it makes a run repeatable.

An event is *passive* when it only decides who runs: the end of a quantum, a spinning process that offers its processor to others. Where
nobody has work, that helps nobody: when nothing but passive events is left, nothing is on the wire and no process that has work is ready
(``could_act``), no process can ever go on: a deadlock.

What happens on links is kept apart (`network.Wire`), because at one instant the hosts come first: everything that was to happen on the
hosts until and at an instant has happened before the first frame of that instant arrives, and all frames of one instant arrive before any
host reacts to one of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from retrompi.reference.values import NEVER, NotCovered

__all__ = ["Abort", "EventLoop"]


class Abort(Exception):
    """The simulated job ended badly: memory exhausted, retries used up. A result, not a defect."""


class EventLoop:
    """The clock of all hosts and the list of their events."""

    def __init__(self) -> None:
        self.now = 0
        self.stopped = False
        self.limit = NEVER
        self._events: list[tuple[int, int, bool, Callable[..., None], tuple[Any, ...]]] = []
        self._scheduled = 0
        self._active = 0

    def schedule(self, at: int, call: Callable[..., None], *arguments: Any, passive: bool = False) -> None:
        """Calls something at a time; at once, but after what was scheduled before, if that time has come."""
        if at >= NEVER:
            raise NotCovered("a time beyond 106 days (2^63 ps)")
        self._scheduled += 1
        self._active += not passive
        heapq.heappush(self._events, (max(at, self.now), self._scheduled, passive, call, arguments))

    def run(self, wire: Any, could_act: Callable[[], bool]) -> bool:
        """Runs until the job is over (the last rank sets ``stopped``) or the question's time limit is reached, where ``now`` is then. True:
        nothing can happen any more, a deadlock. `Wire.advance` sets the clock, and delivers all frames of its instant; what a host does
        about one is an event of that instant, after all of them."""
        while not self.stopped and self.now <= self.limit:
            if self._active == 0 and not wire.under_way() and not could_act():
                return True
            on_hosts = self._events[0][0] if self._events else NEVER
            on_links = wire.next_time()
            if self._events and on_hosts <= on_links:
                if on_hosts > self.limit:
                    self.now = self.limit
                    return False
                self.now, _, passive, call, arguments = heapq.heappop(self._events)
                self._active -= not passive
                call(*arguments)
            elif on_links == NEVER:
                return True
            elif on_links > self.limit:
                self.now = self.limit
                return False
            else:
                wire.advance()
        return False
