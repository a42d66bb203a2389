"""One order in which a job can run, and what its wildcard receives take in it.

Sends are buffered unless told otherwise, and the ranks take turns, a line each.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Protocol

from .lines import split
from .tracker import End, Request, Tracker

__all__ = ["ExecutableJob", "JobExecution"]


class ExecutableJob(Protocol):
    """The interface of a job that an execution needs (`retrompi.traces.matching.MatchedJob`)."""

    lines: list[list[str]]
    trackers: list[Tracker]
    collectives: dict[tuple[object, int], dict[int, int]]
    completes: list[dict[int, list[Request]]]
    probes: list[dict[int, End]]


class JobExecution:
    """Runs a job, in which the sends that are ``synchronous`` end when a receive has taken them.

    ``taken``: by ``id`` of a receive, the send that it takes; ``stuck``: the first rank and line at which all ranks waited for each
    other, None if the job runs through.
    """

    def __init__(self, job: ExecutableJob, synchronous: Callable[[End], bool] = lambda end: False) -> None:
        self.job = job
        ranks = range(len(job.lines))
        self.taken: dict[int, End] = {}
        self.met: set[int] = set()  # ids of ends whose other end has come
        self.stuck: tuple[int, int] | None = None
        self.posts: list[dict[int, list[tuple[bool, End]]]] = [defaultdict(list) for _ in ranks]  # by rank and line: (is it a send, end)
        self.needs: list[dict[int, list[End]]] = [defaultdict(list) for _ in ranks]  # by rank and line: ends that it waits for
        for rank, tracker in enumerate(job.trackers):
            for is_send, ends in ((True, tracker.sends), (False, tracker.recvs)):
                for end in ends:
                    if end.real:
                        self.posts[rank][end.post].append((is_send, end))
                        if end.done is not None and (not is_send or synchronous(end)):
                            self.needs[rank][end.done].append(end)
        # By rank and line: the collectives that it waits for. A non-blocking one is waited for where its request is complete.
        self.joins: list[dict[int, list[tuple[object, int]]]] = [defaultdict(list) for _ in ranks]
        self.enters: list[dict[int, tuple[object, int]]] = [{} for _ in ranks]
        self.absent = {key: len(members) for key, members in job.collectives.items()}
        for key, members in job.collectives.items():
            for rank, line in members.items():
                self.enters[rank][line] = key
                if not split(job.lines[rank][line])[0].startswith("i") or key[0] == "win":
                    self.joins[rank][line].append(key)
        for rank, completes in enumerate(job.completes):
            for line, requests in completes.items():
                self.joins[rank][line] += [self.enters[rank][r.post] for r in requests if r.end is None and r.post in self.enters[rank]]
        self.sent: dict[tuple[int, int], list[End]] = defaultdict(list)  # to a rank, on a communicator: not yet received, as they came
        self.open: dict[tuple[int, int], list[End]] = defaultdict(list)  # receives that have taken nothing yet
        self._run()

    def _run(self) -> None:
        at = [0] * len(self.job.lines)
        entered = [-1] * len(at)
        turns = deque(range(len(at)))
        idle = 0  # ranks in a row that could not go on
        while turns:
            rank = turns.popleft()
            if at[rank] >= len(self.job.lines[rank]):
                continue
            line = at[rank]
            if entered[rank] < line:
                entered[rank] = line
                self._enter(rank, line)
                idle = 0
            # Where nobody can go on, whatever is waited for does not come: one rank is let through, so that the others are matched.
            if idle > len(turns) and self.stuck is None:
                self.stuck = rank, line
            if idle > len(turns) or self._complete(rank, line):
                at[rank] += 1
                idle = 0
            else:
                idle += 1
            turns.append(rank)

    def _enter(self, rank: int, line: int) -> None:
        for is_send, end in self.posts[rank].get(line, ()):
            if is_send:
                receives = self.open[end.peer, end.comm]
                receive = next((r for r in receives if r.fits(end.rank, end.tag)), None)
                if receive is None:
                    self.sent[end.peer, end.comm].append(end)
                else:
                    receives.remove(receive)
                    self._meet(receive, end)
            else:
                sends = self.sent[rank, end.comm]
                send = next((s for s in sends if end.fits(s.rank, s.tag)), None)
                if send is None:
                    self.open[rank, end.comm].append(end)
                else:
                    sends.remove(send)
                    self._meet(end, send)
        key = self.enters[rank].get(line)
        if key is not None:
            self.absent[key] -= 1

    def _meet(self, receive: End, send: End) -> None:
        self.taken[id(receive)] = send
        self.met |= {id(receive), id(send)}

    def _complete(self, rank: int, line: int) -> bool:
        if any(id(end) not in self.met for end in self.needs[rank].get(line, ())):
            return False
        if any(self.absent[key] for key in self.joins[rank].get(line, ())):
            return False
        probe = self.job.probes[rank].get(line)
        return probe is None or any(probe.fits(s.rank, s.tag) for s in self.sent[rank, probe.comm])
