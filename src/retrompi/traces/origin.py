"""Whether a trace has the form in which SMPI's tracer writes, which keeps neither communicators nor the identities of requests."""

from __future__ import annotations

from retrompi._engine import Trace
from retrompi.traces.lines import COLLECTIVES

__all__ = ["LOST_BY_SMPI", "may_have_lost"]

LOST_BY_SMPI = (
    "this trace has the form of SMPI's tracer, which loses communicators, requests and what wildcards matched: if the program used them, "
    "this outcome may be that of the trace alone; record it with 'retrompi trace record'"
)
LOOKED_AT = 20_000
"""Actions of each rank that are looked at; a trace that says more does so soon."""


def may_have_lost(trace: Trace) -> bool:
    """Whether no line of a trace names a communicator or request, although it has collectives or requests that could.

    A trace with attributes, or with facts about its recording, was written by something that keeps them; one of blocking messages alone
    has nothing that its form could lose.
    """
    if getattr(trace, "about", None):
        return False
    candidates = any(action in ("comm_split", "comm_dup") for _, _, action, _ in trace.warnings)
    for rank in range(trace.ranks):
        for row in trace.rank_actions(rank, 0, LOOKED_AT, extension=True):
            if row[8]:
                return False
            candidates = candidates or row[1] in COLLECTIVES or row[1].startswith(("is", "IS", "ir", "ib", "wait", "test"))
    return candidates
