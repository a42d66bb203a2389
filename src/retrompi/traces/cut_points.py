"""The cut points of the other ranks when rank 0 is cut at a line.

The collectives of MPI_COMM_WORLD are anchors: every rank has as many of them before its cut as rank 0. Between two anchors the cut
is moved forward on ranks other than 0 until no message crosses it: a message sent before it is received before it and vice versa,
requests posted before it complete before it, and a collective is before the cut on all of its members or on none. Where this is not
possible (open requests of rank 0, receives posted an iteration ahead) messages cross, and the cut with the fewest crossings is used.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from .matching import MatchedJob
from .tracker import End

__all__ = ["Finder"]


Ends = tuple[tuple[int, int, int], ...]
"""An operation on several ranks: (rank, line that decides its side of the cut, line of its completion) of each."""


class Finder:
    """Finds cuts in a job in time linear in its lines."""

    def __init__(self, job: MatchedJob) -> None:
        self.job = job
        collectives: list[Ends] = [tuple((rank, line, line) for rank, line in c.items()) for c in job.collectives.values()]
        # A receive is assigned to its completion, or to its posting if that gives fewer crossings.
        messages = [(m.send, m.recv) for m in job.messages]
        complete = [((s.rank, s.post, over(s)), (r.rank, over(r), over(r))) for s, r in messages]
        posted = [((s.rank, s.post, s.post), (r.rank, r.post, r.post)) for s, r in messages]
        self.complete = _Joints([*complete, *collectives], len(job.lines))
        self.posted = _Joints([*posted, *collectives], len(job.lines))

    def cut(self, line: int, least: Sequence[int] | None = None) -> list[int]:
        """The first line after the cut on every rank if that of rank 0 is ``line``. ``least``: lower bounds of the cut at the end of a
        piece; None for the cut at its start."""
        anchors = bisect_left(self.job.worlds[0], line)
        low, high = [line], [line]
        for rank in range(1, len(self.job.lines)):
            worlds, lines = self.job.worlds[rank], self.job.lines[rank]
            start = worlds[anchors - 1] + 1 if 0 < anchors <= len(worlds) else _after_init(lines) if anchors == 0 else len(lines)
            end = worlds[anchors] if anchors < len(worlds) else _before_finalize(lines)
            if least is not None:
                start = max(start, least[rank])
            low.append(start)
            high.append(max(start, end))
        # A receive posted before a piece but completed in it is moved to its start; one posted in it may be waited for at its end.
        judge = self.complete if least is None else self.posted
        return min([self.complete.close(low, high), self.posted.close(low, high), low], key=judge.crossing)


def over(end: End) -> int:
    """The line that completes a send or receive; the line itself if none is known."""
    return end.post if end.done is None else end.done


class _Joints:
    def __init__(self, joints: Sequence[Ends], ranks: int) -> None:
        self.joints = joints
        at: list[list[tuple[int, int]]] = [[] for _ in range(ranks)]  # by rank: (line, joint)
        for number, ends in enumerate(joints):
            for rank, line, _ in ends:
                at[rank].append((line, number))
        for row in at:
            row.sort()
        self.at = at
        self.lines_at = [[line for line, _ in row] for row in at]

    def close(self, low: Sequence[int], high: Sequence[int]) -> list[int]:
        """The cut moved forward from ``low``, up to ``high``, until operations begun before it on one rank complete before it on all."""
        cut = list(low)
        seen = [0] * len(cut)  # entries of `at` that have been looked at
        work = list(range(len(cut)))
        while work:
            rank = work.pop()
            upto = bisect_left(self.lines_at[rank], cut[rank])
            for _, number in self.at[rank][seen[rank] : upto]:
                for other, _, last in self.joints[number]:
                    if last >= cut[other] and high[other] > cut[other]:
                        cut[other] = min(last + 1, high[other])
                        work.append(other)
            seen[rank] = upto
        return cut

    def crossing(self, cut: Sequence[int]) -> int:
        """Number of messages and collectives that the cut divides."""
        return sum(len({line < cut[rank] for rank, line, _ in ends}) > 1 for ends in self.joints)


def _after_init(lines: Sequence[str]) -> int:
    return next((i + 1 for i, line in enumerate(lines[:1000]) if line.split(None, 2)[1:2] == ["init"]), 0)


def _before_finalize(lines: Sequence[str]) -> int:
    return next(
        (i for i in range(len(lines) - 1, max(len(lines) - 1000, -1), -1) if lines[i].split(None, 2)[1:2] == ["finalize"]), len(lines)
    )
