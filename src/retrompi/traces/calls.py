"""What a trace calls, as far as it decides which parts of a runtime and of a platform a run needs."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from retrompi.spec.compile import Calls

if TYPE_CHECKING:
    from retrompi._engine import Trace

__all__ = ["PINGPONG", "calls_of"]

PINGPONG = Calls(frozenset({"init", "send", "recv", "finalize"}), to_self=False, start_up=False, failures=False)
"""Of a PingPong."""

_KNOWN = 256
"""Traces whose calls are kept, by their hash."""


class _ByHash:
    """A trace that is looked up by what it says."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __hash__(self) -> int:
        return hash(self.trace.sha256)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByHash) and self.trace.sha256 == other.trace.sha256


def calls_of(trace: Trace, *, start_up: bool = False, failures: bool = False) -> Calls:
    """The calls of ``trace`` in a run that does or does not simulate a job's start and failures of links and hosts."""
    actions, to_self = _calls(_ByHash(trace))
    return Calls(actions, to_self, start_up, failures)


@lru_cache(maxsize=_KNOWN)
def _calls(key: _ByHash) -> tuple[frozenset[str], bool]:
    actions = frozenset(name.lower() for name in key.trace.first_lines())
    return actions, any(a == b for a, b, _, _ in key.trace.traffic()["pairs"])
