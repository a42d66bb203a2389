"""Marks and sections: which part of a trace a benchmark times.

A trace captured by SMPI has no marks, since its tracer writes no comments. PingPong sections are recognized by their
call pattern, so that the captured curve can be compared with a generated one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from retrompi._engine import Trace

from .errors import TraceError

__all__ = ["Section", "mark_lines", "mark_pingpong", "pingpong_sections"]


@dataclass(frozen=True)
class Section:
    """A run of PingPong exchanges of one size on the first rank.

    ``size`` in bytes; ``reps`` exchanges (a message in each direction); ``first_line`` and ``last_line`` of the rank's file, from the
    first send to the last receive.
    """

    size: int
    reps: int
    first_line: int
    last_line: int

    @property
    def label(self) -> str:
        """The mark before the section, as the generators write it."""
        return f"size {self.size} reps {self.reps}"


_SENDS = ("send", "Ssend", "bsend", "rsend")


def pingpong_sections(trace: Trace, rank: int = 0, min_reps: int = 1) -> list[Section]:
    """Find the PingPong sections of a rank: runs of (send to a partner, receive from it) of equal size.

    Computation between the calls does not end a run, any other call does. Runs shorter than ``min_reps`` are omitted; a run that
    follows another of the same size and partner (e.g. after a warm-up and a barrier) is a separate section.
    Raises ``TraceError`` if there is none.
    """
    if not 0 <= rank < trace.ranks:
        raise TraceError(f"there is no rank {rank}: ranks are 0..{trace.ranks - 1}", trace.files[0], code="unknown-rank")
    found: list[Section] = []
    key: tuple[int, int] | None = None  # partner and size of the run
    reps = first = last = 0
    sent: tuple[int, int, int] | None = None  # line, partner and size of a send not yet answered

    def close() -> None:
        nonlocal key, reps
        if key is not None and reps >= min_reps:
            found.append(Section(key[1], reps, first, last))
        key, reps = None, 0

    for line, action, peer, _tag, _peer2, size, _size2, _amount in trace.rank_actions(rank):
        if action in ("compute", "sleep") or action.startswith("mark "):
            continue
        if action in _SENDS and sent is None:
            sent = (line, peer, size)
        elif action == "recv" and sent is not None and sent[1] == peer:
            # The receive buffer may be larger than the message: the size of the send is used.
            if key != sent[1:]:
                close()
                key, first = (sent[1], sent[2]), sent[0]
            reps, last, sent = reps + 1, line, None
        else:
            close()
            sent = (line, peer, size) if action in _SENDS else None
    close()
    if not found:
        raise TraceError(
            f"no PingPong section: rank {rank} never sends to a rank and then receives from it", trace.files[rank], code="no-section"
        )
    return found


def mark_pingpong(trace: Trace, rank: int = 0, min_reps: int = 1) -> Trace:
    """A copy of a captured PingPong with the marks of a generated one: ``size S reps R`` before each section and ``end``.

    If there are other calls between two sections (e.g. a barrier), a mark ``end`` closes the first, so that they are
    not timed; computation between the sections is attributed to the later one.
    """
    sections = pingpong_sections(trace, rank, min_reps)
    marks: list[tuple[int, int, str]] = []
    lines = [(line, action) for line, action, *_ in trace.rank_actions(rank)]
    at = 0
    for section, following in zip(sections, [*sections[1:], None], strict=True):
        marks.append((rank, section.first_line, section.label))
        while at < len(lines) and lines[at][0] <= section.last_line:
            at += 1
        between = at
        while between < len(lines) and lines[between][1] in ("compute", "sleep"):
            between += 1
        adjacent = following is not None and between < len(lines) and lines[between][0] == following.first_line
        if not adjacent:
            marks.append((rank, section.last_line + 1, "end"))
    return trace.with_marks(marks)


def mark_lines(trace: Trace, ranges: Iterable[tuple[str, int, int]], rank: int = 0) -> Trace:
    """A copy with marks around line ranges of a rank's file: ``(label, first line, last line)``, both inclusive.

    Each gives a mark ``LABEL`` before the first line and ``end`` after the last: the form in which published timed sections are
    recorded ("timed (rank 0): 11-72").
    """
    marks: list[tuple[int, int, str]] = []
    for label, first, last in ranges:
        if not 1 <= first <= last:
            raise TraceError(f"the line range {first}-{last} of {label!r} is empty", trace.files[rank], code="no-section")
        marks += [(rank, first, label), (rank, last + 1, "end")]
    return trace.with_marks(marks)
