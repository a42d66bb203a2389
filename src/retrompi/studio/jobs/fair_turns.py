"""Fair scheduling of the studio's jobs, whose durations are unknown: which of them begin, run and pause. Decisions only, no processes.

A new job runs at once and undisturbed for its first half second (`FIRST_S`), which is enough for a what-if. From then on it is a *long*
job: it has low priority on the processors, and a few long ones run at a time. Those that have had the least time go first, after `EVEN_S`
seconds they take turns of `TURN_S`, and one place goes to those that have waited longest. The others are paused and keep what they have
computed. Long jobs never take the places of new ones: when too many are begun, one of them has to start again later. So however many
endless runs there are, a new job waits only for other new jobs, and among those for its turn by client (address), then by session.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

__all__ = ["EVEN_S", "FIRST_S", "GRACE_S", "TURN_S", "JobShare", "TurnPlan", "Turns"]

FIRST_S = 0.5
"""Running time of a new job before it is a long one, in seconds."""
GRACE_S = 5.0
"""Running time from which a job starts again rather than a younger one: a short job on a busy machine takes longer than usual."""
TURN_S = 2.0
"""Shortest running time of a long job between two pauses."""
EVEN_S = 30.0
"""Running time from which all long jobs are treated alike, in seconds."""


@dataclass
class JobShare:
    """A job as this module sees it; times in seconds, of a monotonic clock."""

    session: str
    client: str = ""
    number: int = 0
    """Order of arrival."""
    alive: bool = False
    """Whether it has a process."""
    paused: bool = False
    again: bool = False
    """Whether it was displaced: it starts again as a long job."""
    before_s: float = 0.0
    """Running time up to ``since``."""
    since: float = 0.0
    """When it was begun, continued or paused last."""

    def running_time(self, now: float) -> float:
        """Running time of its process, without pauses."""
        return self.before_s + (now - self.since if self.alive and not self.paused else 0.0)

    def long(self, now: float) -> bool:
        """Whether its first seconds are over."""
        return self.alive and (self.again or self.running_time(now) >= FIRST_S)


@dataclass
class TurnPlan:
    """The changes to make now."""

    begin: list[JobShare] = field(default_factory=list)
    pause: list[JobShare] = field(default_factory=list)
    resume: list[JobShare] = field(default_factory=list)
    displace: list[JobShare] = field(default_factory=list)
    """Their processes are ended; they start again when there is a place for another long job."""


@dataclass
class Turns:
    """``new``: places of new jobs; ``long``: long jobs that run at once; ``begun``: jobs with a process, paused ones included;
    ``a_session``: those of one session."""

    new: int
    long: int
    begun: int
    a_session: int
    _served: dict[str, int] = field(default_factory=dict)
    _number: int = 0

    def began(self, share: JobShare) -> None:
        """Notes that a job was begun: other clients and sessions are next."""
        self._number += 1
        for name in (f"client {share.client}", f"session {share.session}"):
            self._served.pop(name, None)
            self._served[name] = self._number
        while len(self._served) > 10_000:
            del self._served[next(iter(self._served))]

    def queue(self, shares: Iterable[JobShare]) -> Iterator[JobShare]:
        """The waiting jobs in the order in which they would begin, as far as known now."""
        served = dict(self._served)
        step = self._number

        def rank(s: JobShare) -> tuple[bool, int, int, int]:
            return s.again, served.get(f"client {s.client}", 0), served.get(f"session {s.session}", 0), s.number

        heap = [(rank(s), s.number, s) for s in shares if not s.alive]
        heapq.heapify(heap)
        while heap:
            known, number, first = heapq.heappop(heap)
            if (now := rank(first)) != known:  # its client or session has had a turn since
                heapq.heappush(heap, (now, number, first))
                continue
            yield first
            step += 1
            served[f"client {first.client}"] = served[f"session {first.session}"] = step

    def plan(self, shares: Sequence[JobShare], now: float, held: Iterable[JobShare] = ()) -> TurnPlan:
        """What to do now; ``held`` are jobs that cannot be paused at the moment. Jobs to begin are in their order."""
        alive = [s for s in shares if s.alive]
        long = [s for s in alive if s.long(now)]
        new = [s for s in alive if not s.long(now)]
        plan = TurnPlan()
        mine: dict[str, int] = {}
        for s in alive:
            mine[s.session] = mine.get(s.session, 0) + 1
        blocked = False
        many, fresh = len(alive), len(new)
        for s in self.queue(shares):
            if mine.get(s.session, 0) >= self.a_session:
                continue
            if fresh >= self.new or many >= self.begun:
                blocked = fresh < self.new and not s.again
                break
            if s.again and len(long) + sum(b.again for b in plan.begin) >= self.begun - self.new:
                break
            plan.begin.append(s)
            mine[s.session] = mine.get(s.session, 0) + 1
            many += 1
            fresh += not s.again
        if blocked and (victim := self._victim(long, now)) is not None:
            plan.displace.append(victim)
        self._share(plan, [s for s in long if s not in plan.displace], set(map(id, held)), now)
        return plan

    def _victim(self, long: Sequence[JobShare], now: float) -> JobShare | None:
        """The long job whose process is ended: the one that loses least; that of a client with most of the places loses most."""
        if len(long) <= self.begun - self.new:
            return None
        clients = {s.client for s in long}
        for client in clients if len(clients) > 1 else ():
            theirs = [s for s in long if s.client == client]
            if 2 * len(theirs) > len(long):
                return max(theirs, key=lambda s: s.running_time(now))
        grown = [s for s in long if s.running_time(now) >= GRACE_S]
        return min(grown, key=lambda s: s.running_time(now)) if grown else max(long, key=lambda s: s.running_time(now))

    def _share(self, plan: TurnPlan, long: Sequence[JobShare], held: set[int], now: float) -> None:
        """The long jobs that run: by the least time, then within their turn; the last place goes to those that have paused longest, so that
        a stream of shorter ones holds nobody up for ever."""

        def sort_key(s: JobShare) -> tuple[bool, float, int]:
            within = not s.paused and now - s.since < TURN_S
            return not within, s.since if s.paused else now, s.number

        def rank(s: JobShare) -> tuple[float, tuple[bool, float, int]]:
            return min(s.running_time(now), EVEN_S) // TURN_S, sort_key(s)

        # However many cannot be paused now, one of the others runs: in a class they come without end.
        places = max(self.long - sum(not s.paused and id(s) in held for s in long), 1)
        chosen = sorted((s for s in long if s.paused or id(s) not in held), key=rank)
        by_time = chosen[: max(places - 1, min(places, 1))]
        rest = sorted(chosen[len(by_time) :], key=sort_key)
        chosen = [*by_time, *rest[: places - len(by_time)]]
        plan.resume += [s for s in chosen if s.paused]
        plan.pause += [s for s in long if not s.paused and id(s) not in held and s not in chosen]
