"""The calls of a trace that decide which parts of a runtime and of a platform a run needs."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from retrompi.spec.declare.calls import Calls
from retrompi.spec.machine import kernels

if TYPE_CHECKING:
    from retrompi._engine import Trace
    from retrompi.spec.question import Question

__all__ = ["PINGPONG", "calls_of"]

PINGPONG = Calls(frozenset({"init", "send", "recv", "finalize"}), to_self=False, start_up=False, failures=False, traffic=False,
                 loops=False, kernels=False)
"""The calls of a PingPong."""

_KNOWN = 256
"""Number of traces whose calls are cached."""


class _ByHash:
    """A trace as a cache key, compared by content."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __hash__(self) -> int:
        return hash(self.trace.sha256)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByHash) and self.trace.sha256 == other.trace.sha256


def calls_of(trace: Trace, question: Question | None = None) -> Calls:
    """The calls of ``trace``, with the features that ``question`` adds: start of the job, failures, cross traffic."""
    actions, to_self, loops, stated = _calls(_ByHash(trace))
    if question is None:
        return Calls(actions, to_self, start_up=False, failures=False, traffic=False, loops=loops, kernels=stated)
    beside = question.beside
    return Calls(actions, to_self, question.start_up, bool(beside.failures), bool(beside.traffic), loops, stated)


@lru_cache(maxsize=_KNOWN)
def _calls(key: _ByHash) -> tuple[frozenset[str], bool, bool, bool]:
    actions = frozenset(name.lower() for name in key.trace.first_lines())
    of_rinf1 = {name in kernels.loops() for name, *_ in key.trace.kernels()} if "kernel" in actions else set()
    return actions, key.trace.to_self, True in of_rinf1, False in of_rinf1
