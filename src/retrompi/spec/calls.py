"""What a program calls, as far as it decides which parts of a runtime a run needs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from retrompi.spec.collectives import OPERATIONS

__all__ = ["ANYTHING", "Calls"]

_PROBING = frozenset({"test", "testall", "testany", "testsome", "probe", "iprobe"})
_REDUCING = frozenset({"reduce", "allreduce", "scan", "exscan", "reducescatter", "reducescatterblock"})


@dataclass(frozen=True, slots=True)
class Calls:
    """What a run does that decides which parts of a runtime it needs.

    ``actions``: the names of the trace's actions in lower case, None for a program that may do anything; ``to_self``: whether a rank sends
    to itself; ``start_up``: whether the job's start is simulated; ``failures``: whether links or hosts fail;
    ``traffic``: whether others send over the link.
    """

    actions: frozenset[str] | None = None
    to_self: bool = True
    start_up: bool = True
    failures: bool = True
    traffic: bool = True

    def any(self, wanted: Collection[str]) -> bool:
        """Whether one of ``wanted`` is called, in its blocking, non-blocking or request form."""
        return self.actions is None or any(a in wanted or a[1:] in wanted for a in self.actions)

    @property
    def probing(self) -> bool:
        """Whether something looks for a message or a completion without waiting for it."""
        return self.any(_PROBING)

    @property
    def one_sided(self) -> bool:
        """Whether there are one-sided operations."""
        return self.any({"put", "get", "accumulate"}) or any(a.startswith("win_") for a in self.actions or ())

    @property
    def collective(self) -> bool:
        """Whether there are collective operations; making communicators, windows and intercommunicators is one."""
        return self.any(OPERATIONS) or any(a.startswith(("comm_", "win_", "intercomm_")) for a in self.actions or ())

    @property
    def computing(self) -> bool:
        """Whether ranks compute: by themselves or in a reduction."""
        return self.any({"compute"}) or self.any(_REDUCING)

    @property
    def kernels(self) -> bool:
        """Whether ranks run named loops."""
        return self.any({"kernel"})


ANYTHING = Calls()
"""A program of which nothing is known."""
