"""What a run's trace and its end say that a user should know: one sentence each, whatever the outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from retrompi._engine import Trace

__all__ = ["of_trace"]


def of_trace(trace: Trace) -> list[str]:
    """That the trace is partial, and that its ranks do not call the same number of collectives."""
    told = []
    cut, total = trace.cut
    if cut:
        file, line, _, _ = cut[0]
        of = f"{total} of {trace.ranks} ranks end" if trace.ranks > 1 else "its rank ends"
        told.append(f"the trace is partial: {of} before MPI_Finalize, first at {file}:{line}; what a rank would do later is not simulated")
    uneven, total = trace.uneven
    if uneven:
        file, line, _, reason = uneven[0]
        more = f", and {total - 1} more such ranks" if total > 1 else ""
        told.append(f"not all members call the same collectives: {reason} ({file}:{line}){more}")
    return told
