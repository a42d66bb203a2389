"""The order in which a message meets the stages of its path: that of every figure, table and legend of stages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

__all__ = ["ORDER", "in_order", "place_of"]

ORDER = ("library", "copy", "syscall", "event", "switch", "tick", "quantum", "queueing", "poll", "ack", "stack", "interrupt", "nic", "wire",
         "latency", "compute", "lock", "line", "wait")
"""The sender's work, what it waits for, its kernel, card and wire; then what is no part of a message by itself."""
Row = TypeVar("Row", bound=Mapping[str, Any])


def place_of(stage: str) -> int:
    """The position of a stage in `ORDER`; an unknown stage comes last."""
    return ORDER.index(stage) if stage in ORDER else len(ORDER)


def in_order(rows: Iterable[Row], nominal: Sequence[Mapping[str, Any]] | None = None) -> list[Row]:
    """Rows stage, process, from the sender to the receiver: by process, and of each process by stage.

    ``nominal`` are the engine's rows (``rows`` themselves if they are), in the order in which each was last on the chain of a round
    trip. That ends where it began: reversed, they lead from the sender over what lies between to the receiver.
    """
    rows = list(rows)
    known = list(dict.fromkeys(str(r["process"]) for r in reversed(rows if nominal is None else nominal)))
    return sorted(rows, key=lambda r: (known.index(r["process"]) if r["process"] in known else len(known), place_of(str(r["stage"]))))
