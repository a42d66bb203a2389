"""All message orders of a program under the buffers of a runtime: which of its executions complete, and which do not.

A trace is one execution. Where it receives from any source, probes, or tests, another execution of the same calls may match its messages
otherwise; and how far a sender may run ahead of its receiver depends on the runtime's buffers. `explore` visits every execution that the
program can distinguish::

    found = explore(Question("wmpi", "nt-cluster", Replay(trace), "shared"))
    found.classes, found.failing

``program`` reads the calls of a trace, ``buffers`` the limits of a compiled model, ``machine`` carries out calls and matches messages,
``search`` visits the executions, ``result`` says what was found, and ``forced`` is the file of one execution that a replay follows.
"""

from __future__ import annotations

from .result import ExecutionEnd, Explored
from .run import explore
from .search import SearchLimits

__all__ = ["ExecutionEnd", "Explored", "SearchLimits", "explore"]
