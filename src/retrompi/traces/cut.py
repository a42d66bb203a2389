"""Cutting a piece out of a trace, as a valid trace."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from retrompi._engine import Trace

from .computation import keep_marks
from .cut_points import Finder, over
from .errors import TraceError
from .files import parse
from .lines import COMM_MAKERS, FAMILIES, join, rank_lines, split, whole
from .loops import find_loop
from .matching import MatchedJob
from .tracker import End, Request, Tracker

__all__ = ["Piece", "cut"]

_EPOCHS = {"Win_lock": "Win_unlock", "Win_lock_all": "Win_unlock_all", "Win_start": "Win_complete", "Win_post": "Win_wait"}


@dataclass
class Piece:
    """The result of `cut`: the piece; the line range in each rank's file (first, last; None: empty); the number of messages in it; messages
    that cross its borders (removed at both ends) with their bytes and the first places; receives posted before it and moved to its
    start; requests waited for at its end; and wildcard receives of the whole trace without a recorded source."""

    trace: Trace
    ranges: list[tuple[int, int] | None]
    messages: int = 0
    crossing: int = 0
    crossing_bytes: int = 0
    places: list[str] = field(default_factory=list)
    moved: int = 0
    waited: int = 0
    guessed: int = 0


def cut(
    trace: Trace,
    first: str | None = None,
    last: str | None = None,
    *,
    turns: tuple[int, int] | None = None,
    refuse_crossing: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Piece:
    """Cut a piece of a trace: from ``first`` to ``last``, each a line number of rank 0's file (inclusive) or the label of one of its marks;
    or the iterations ``turns`` (first, last, from 1) of the loop that rank 0 runs.

    The other ranks are cut at the same collectives and messages. Communicators, windows and persistent requests created earlier are
    created at the start of the piece; completions of requests posted earlier are removed; requests open at the end are waited for there.
    A message with only one end inside is removed at both ends and counted, or refused with ``refuse_crossing``. ``progress`` is called
    with (rank, ranks). Raises ``TraceError`` if the range is invalid or a collective or one-sided epoch crosses its border.
    """
    whole(trace)
    rows = [rank_lines(trace, r) for r in range(trace.ranks)]
    job = MatchedJob([texts for texts, _ in rows], progress=progress)
    numbers = [n for _, n in rows]
    if turns is not None:
        begin, end = _turns(trace, job.lines[0], turns)
    else:
        begin = _place(trace, job.lines[0], numbers[0], first, end=False, after=0)
        end = _place(trace, job.lines[0], numbers[0], last, end=True, after=begin)
    if begin >= end:
        raise TraceError(f"nothing lies between {first or 'the start'} and {last or 'the end'}", trace.files[0], code="no-section")
    finder = Finder(job)
    # No border is needed at the start or the end of the trace.
    starts = finder.cut(begin) if begin > 0 else [0] * trace.ranks
    ends = finder.cut(end, starts) if end < len(job.lines[0]) else [len(texts) for texts in job.lines]
    return _Cutter(trace, job, numbers, starts, ends).piece(refuse_crossing)


def _turns(trace: Trace, lines: Sequence[str], turns: tuple[int, int]) -> tuple[int, int]:
    loop = find_loop(lines)
    if loop is None:
        raise TraceError("rank 0 runs no loop: no sequence of its calls repeats three times in a row", trace.files[0], code="no-section")
    if not 1 <= turns[0] <= turns[1] <= loop.turns:
        raise TraceError(f"rank 0's loop has turns 1 to {loop.turns}, not {turns[0]} to {turns[1]}", trace.files[0], code="no-section")
    begin = loop.starts[turns[0] - 1]
    while begin > 0 and lines[begin - 1].split(None, 2)[1:2] == ["compute"]:
        begin -= 1
    return begin, loop.starts[turns[1]] if turns[1] < loop.turns else loop.end


def _place(trace: Trace, lines: Sequence[str], numbers: Sequence[int], what: str | None, *, end: bool, after: int) -> int:
    if what is None:
        return len(lines) if end else 0
    if re.fullmatch(r"\d+", what):
        wanted = int(what)
        found = next((i for i, n in enumerate(numbers) if (n > wanted if end else n >= wanted)), None)
        if found is None and not end:
            raise TraceError(
                f"rank 0 has no line {wanted} or later; its last action is at line {numbers[-1] if numbers else 0}",
                trace.files[0],
                code="no-section",
            )
        return len(lines) if found is None else found
    marks = [(i, line[len("# mark ") :]) for i, line in enumerate(lines) if line.startswith("# mark ")]
    for i, label in marks:
        if label == what and i >= after:
            return i + 1 if end else i
    from retrompi.base.errors import nearest

    raise TraceError(
        f"rank 0 has no mark {what!r}{' after it' if after else ''}{nearest(what, [m for _, m in marks])}",
        trace.files[0],
        code="unknown-name",
    )


class _Cutter:
    def __init__(self, trace: Trace, job: MatchedJob, numbers: list[list[int]], starts: list[int], ends: list[int]) -> None:
        self.trace = trace
        self.job = job
        self.numbers = numbers
        self.starts = starts
        self.ends = ends
        self.moved: dict[int, set[int]] = {}  # by rank: lines of receives posted before the piece for messages sent in it

    def where(self, rank: int, line: int) -> str:
        return f"{self.trace.files[rank]}:{self.numbers[rank][line]}"

    def inside(self, rank: int, line: int) -> bool:
        return self.starts[rank] <= line < self.ends[rank]

    def piece(self, refuse_crossing: bool) -> Piece:
        job = self.job
        ranges: list[tuple[int, int] | None] = [
            (self.numbers[r][a], self.numbers[r][b - 1]) if a < b else None
            for r, (a, b) in enumerate(zip(self.starts, self.ends, strict=True))
        ]
        out = Piece(self.trace, ranges, guessed=job.guessed)
        dropped: set[int] = set()  # ids of the ends of removed messages
        for m in job.messages:
            sent = self.inside(m.send.rank, m.send.post)
            early, late = over(m.recv) < self.starts[m.recv.rank], m.recv.post >= self.ends[m.recv.rank]
            if sent and not early and not late:
                out.messages += 1
                if m.recv.post < self.starts[m.recv.rank]:
                    self.moved.setdefault(m.recv.rank, set()).add(m.recv.post)
                continue
            dropped |= {id(m.send), id(m.recv)}
            # A receive posted early for a message sent after the piece does not cross it.
            if sent or (not early and not late and m.send.post < self.starts[m.send.rank]):
                out.crossing += 1
                out.crossing_bytes += m.send.bytes
                if len(out.places) < 5:
                    out.places.append(f"{self.where(m.send.rank, m.send.post)} -> {self.where(m.recv.rank, m.recv.post)}")
        out.moved = sum(map(len, self.moved.values()))
        if out.crossing and refuse_crossing:
            raise TraceError(f"{out.crossing} messages cross the cut, the first {out.places[0]}", self.trace.files[0], code="cut-crosses")
        self.refuse()
        keep = self.communicators()
        texts = []
        for rank in range(self.trace.ranks):
            lines = self.rank_piece(rank, keep, dropped, out)
            texts.append("".join(line + "\n" for line in lines))
        out.trace = keep_marks(self.trace, parse(texts, name="piece"))
        return out

    # -- refusals

    def refuse(self) -> None:
        for members in self.job.collectives.values():
            sides = {self._side(rank, line) for rank, line in members.items()}
            if len(sides) > 1:
                places = ", ".join(self.where(r, line) for r, line in sorted(members.items())[:4])
                raise TraceError(f"a collective crosses the cut: {places}; move the border before or behind it", self.trace.files[0])
        for rank, lines in enumerate(self.job.lines):
            held: dict[tuple[str, str], int] = {}
            for at, line in enumerate(lines):
                if at in (self.starts[rank], self.ends[rank]) and held:
                    opened = min(held.values())
                    raise TraceError(
                        "a one-sided epoch is open at the cut; move the border", self.trace.files[rank], self.numbers[rank][opened]
                    )
                words = line.split(None, 2)
                action = words[1] if len(words) > 1 else ""
                if action in _EPOCHS or action in _EPOCHS.values():
                    _, a, attributes = split(line)
                    target = a[0] if action in ("Win_lock", "Win_unlock") else ""
                    window = attributes.get("win", "") + " " + target
                    if action in _EPOCHS:
                        held[_EPOCHS[action], window] = at
                    else:
                        held.pop((action, window), None)

    def _side(self, rank: int, line: int) -> int:
        return -1 if line < self.starts[rank] else 0 if line < self.ends[rank] else 1

    # -- the piece

    def communicators(self) -> set[tuple[object, int]]:
        """The collectives before the piece that created communicators and windows not yet freed, or parents of such."""
        freed: set[str] = set()
        makers: dict[str, tuple[object, int]] = {}  # "c1" or "w1" -> the collective that made it
        parents: dict[str, str] = {}
        for key, members in self.job.collectives.items():
            for rank, line in members.items():
                if line >= self.starts[rank]:
                    continue
                action, a, attributes = split(self.job.lines[rank][line])
                if action in COMM_MAKERS and a and int(a[0]) > 0:
                    makers["c" + a[0]] = key
                    parents["c" + a[0]] = "c" + attributes.get("comm", "0")
                elif action == "win_create":
                    makers["w" + a[0]] = key
                    parents["w" + a[0]] = "c" + attributes.get("comm", "0")
                elif action == "comm_free":
                    freed.add("c" + attributes.get("comm", "0"))
                elif action == "win_free" and a:
                    freed.add("w" + a[0])
        needed: set[str] = set()
        for name in makers:
            at = name
            while name not in freed and at in makers and at not in needed:
                needed.add(at)
                at = parents[at]
        return {makers[name] for name in needed}

    def rank_piece(self, rank: int, keep: set[tuple[object, int]], dropped: set[int], out: Piece) -> list[str]:
        """The lines of one rank's piece, from init to finalize."""
        lines, begin, stop = self.job.lines[rank], self.starts[rank], self.ends[rank]
        tracker = Tracker(rank)
        for at in range(begin):
            if " compute " not in lines[at]:
                tracker.line(at, lines[at])
        before = {self.job.collectives[key][rank] for key in keep if rank in self.job.collectives[key]}
        moved = self.moved.get(rank, set())
        made = [f"{rank} init", *(lines[at] for at in sorted(before | {r.made for r in tracker.persistent}))]
        made += self._posted_before(rank, moved)
        old = self.job.trackers[rank]
        ends: dict[int, list[End]] = {}
        for end in (*old.sends, *old.recvs):
            if begin <= end.post < stop:
                ends.setdefault(end.post, []).append(end)
        left_out = {post for post, some in ends.items() if any(id(e) in dropped for e in some)}

        def is_gone(request: Request) -> bool:
            return (request.post < begin and request.post not in moved) or request.post in left_out

        for at in range(begin, stop):
            line = lines[at]
            words = line.split(None, 2)
            action = "#" if words[0] == "#" else words[1]
            kept: str | None = line
            if action in ("init", "finalize"):
                continue
            if at in self.job.probes[rank]:
                found = self.job.probe_match(self.job.probes[rank][at])
                kept = line if found is not None and self.inside(found.rank, found.post) and id(found) not in dropped else None
            elif action in ("wait", "test"):
                target = tracker.target(line)
                kept = None if target is not None and is_gone(target) else line
            elif action in FAMILIES and action != "startall":
                kept = _family(rank, line, tracker, is_gone)
            elif at in left_out:
                kept = self._without(line, at, ends[at], dropped)
            tracker.line(at, line)
            if kept is not None:
                made.append(kept)
        tail = [r for r in tracker.open if not is_gone(r)]
        if tail:
            out.waited += len(tail)
            reqs = [r.req for r in tail]
            made.append(f"{rank} waitall {len(tail)}" + (f" reqs={','.join(map(str, reqs))}" if all(reqs) else ""))
        made.append(f"{rank} finalize")
        return made

    def _posted_before(self, rank: int, moved: set[int]) -> list[str]:
        """The lines that post the receives moved to the start of the piece."""
        found = [self.job.lines[rank][at] for at in sorted(moved)]
        if any(split(line)[0] == "startall" for line in found):
            raise TraceError(
                "receives of a startall are open at the cut; move the border",
                self.trace.files[rank],
                self.numbers[rank][min(moved)],
                code="cut-crosses",
            )
        return found

    def _without(self, line: str, at: int, ends: Sequence[End], dropped: set[int]) -> str | None:
        """A line without its removed messages: half of a sendRecv, or None; raises TraceError for part of a startall."""
        action, a, attributes = split(line)
        rank = int(line.split(None, 1)[0])
        stays = [e for e in ends if id(e) not in dropped]
        if action == "sendRecv" and stays:
            keep = {k: v for k, v in attributes.items() if k == "comm"}
            if any(e is stays[0] for e in self.job.trackers[rank].sends):
                return join(rank, "send", [a[1], attributes.get("stag", "0"), a[0], "6"], keep)
            keep = {k: v for k, v in attributes.items() if k in ("mtag", "from", "comm")}
            return join(rank, "recv", [a[3], attributes.get("rtag", "0"), a[2], "6"], keep)
        if action == "startall" and stays:
            raise TraceError(
                "some messages of this startall cross the cut; move the border",
                self.trace.files[rank],
                self.numbers[rank][at],
                code="cut-crosses",
            )
        return None


def _family(rank: int, line: str, tracker: Tracker, gone: Callable[[Request], bool]) -> str | None:
    """A waitall or similar line without the requests outside of the piece; None if none is left."""
    action, a, attributes = split(line)
    if "reqs" not in attributes:
        return line if any(not gone(r) for r in tracker.open) else None

    def stays(req: str) -> bool:
        request = tracker.by_req.get(int(req))
        return request is None or not gone(request)

    for name in ("reqs", "done", "from", "mtag"):
        if name in attributes and attributes[name] != "none":
            parts = [p for p in attributes[name].split(",") if stays(p.partition(":")[0])]
            if parts:
                attributes[name] = ",".join(parts)
            elif name in ("from", "mtag"):
                del attributes[name]
            else:
                attributes[name] = "none"
    if attributes["reqs"] == "none":
        return None
    return join(rank, action, [str(attributes["reqs"].count(",") + 1), *a[1:]], attributes)
