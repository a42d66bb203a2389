"""The calls of a program that decide which parts of a runtime a run needs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from retrompi.spec.collectives import OPERATIONS

__all__ = ["ANYTHING", "Calls"]

_PROBING = frozenset({"test", "testall", "testany", "testsome", "probe", "iprobe"})
_REDUCING = frozenset({"reduce", "allreduce", "scan", "exscan", "reducescatter", "reducescatterblock"})


@dataclass(frozen=True, slots=True)
class Calls:
    """Features of a run that decide which parts of a runtime it needs.

    ``actions``: the names of the trace's actions in lower case, None if any call is possible; ``to_self``: whether a rank sends
    to itself; ``start_up``: whether the start of the job is simulated; ``failures``: whether links or hosts fail;
    ``traffic``: whether there is cross traffic on the link.
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
        """Whether the program tests or probes for a message or completion without blocking."""
        return self.any(_PROBING)

    @property
    def one_sided(self) -> bool:
        """Whether there are one-sided operations."""
        return self.any({"put", "get", "accumulate"}) or any(a.startswith("win_") for a in self.actions or ())

    @property
    def collective(self) -> bool:
        """Whether there are collective operations; creating communicators, windows and intercommunicators counts as one."""
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
"""An unknown program, which may make any call."""
