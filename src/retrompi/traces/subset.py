"""Extracting some ranks of a trace as a separate trace."""

from __future__ import annotations

from collections.abc import Sequence

from retrompi._engine import Trace

from .computation import keep_marks as kept_facts
from .errors import TraceError
from .files import parse
from .lines import COMM_MAKERS, Renumber, parse_group, rank_lines, split, whole
from .matching import MatchedJob

__all__ = ["keep_ranks"]


def keep_ranks(trace: Trace, ranks: Sequence[int]) -> Trace:
    """The trace of ``ranks`` only, renumbered in the order given.

    Raises ``TraceError`` with the lines if one of them exchanges a message or takes part in a collective with another rank, since the
    result would not represent what these ranks did.
    """
    wrong = next((r for r in ranks if not 0 <= r < trace.ranks), None)
    if wrong is not None:
        raise TraceError(f"there is no rank {wrong}: ranks are 0..{trace.ranks - 1}", trace.files[0], code="unknown-rank")
    if len(set(ranks)) != len(ranks) or not ranks:
        raise TraceError("name every rank once", trace.files[0], code="duplicate-name")
    kept = set(ranks)
    whole(trace)
    rows = [rank_lines(trace, r) for r in range(trace.ranks)]
    job = MatchedJob([texts for texts, _ in rows])

    def where(rank: int, line: int) -> str:
        return f"{trace.files[rank]}:{rows[rank][1][line]}"

    crossing = [m for m in job.messages if (m.send.rank in kept) != (m.recv.rank in kept)]
    if crossing:
        m = crossing[0]
        raise TraceError(
            f"{len(crossing)} messages go between ranks that are kept and others, the first from {where(m.send.rank, m.send.post)} to "
            f"{where(m.recv.rank, m.recv.post)}", trace.files[0], code="cut-crosses")
    for members in job.collectives.values():
        if kept & members.keys() and members.keys() - kept:
            inside, outside = min(kept & members.keys()), min(members.keys() - kept)
            here, there = where(inside, members[inside]), where(outside, members[outside])
            raise TraceError(f"a collective joins ranks that are kept ({here}) and others ({there})", trace.files[0], code="cut-crosses")
    ordered = next((r for r in ranks if job.worlds[r]), None) if list(ranks) != sorted(ranks) else None
    if ordered is not None:
        raise TraceError(
            f"the roots and counts of the collectives on MPI_COMM_WORLD ({where(ordered, job.worlds[ordered][0])}) are in the order of its "
            "ranks; give the ranks in ascending order", trace.files[0], code="cut-crosses")
    new = {old: at for at, old in enumerate(ranks)}

    def number(old: int) -> int:
        if old not in new:
            raise TraceError(f"rank {old} is named by a line that is kept", trace.files[0], code="unknown-rank")
        return new[old]

    numbers = Renumber(number, lambda c: c, lambda w: w)
    texts = []
    for old in ranks:
        lines = []
        for at, line in enumerate(rows[old][0]):
            action, a, _ = split(line)
            if action in COMM_MAKERS and any(r not in new for group in a[1:] for r in parse_group(group)):
                raise TraceError(f"a communicator has other members ({where(old, at)})", trace.files[0], code="cut-crosses")
            lines.append(numbers.line(line))
        texts.append("".join(line + "\n" for line in lines))
    return kept_facts(trace, parse(texts, name="piece"))
