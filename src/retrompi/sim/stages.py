"""The stages of a message's path: the order in which it meets them, which is that of every figure, table and legend, and their meaning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from retrompi.base.translate import lazy

__all__ = ["ORDER", "STAGE_WORDS", "in_order", "place_of"]

ORDER = ("library", "copy", "syscall", "event", "switch", "tick", "quantum", "queueing", "poll", "ack", "stack", "interrupt", "nic", "wire",
         "latency", "compute", "lock", "line", "wait")
"""The sender's work, what it waits for, its kernel, card and wire; then what is no part of a message by itself."""
STAGE_WORDS = {
    "library": lazy("the MPI library's own instructions"),
    "copy": lazy("copying in memory"),
    "syscall": lazy("calling the operating system"),
    "event": lazy("signalling another process through a kernel object"),
    "switch": lazy("switching the processor to another process"),
    "tick": lazy("waiting for the next tick of the clock"),
    "quantum": lazy("ready to run, but another process spins until its quantum ends"),
    "queueing": lazy("ready, but the processor or the device is busy with other work"),
    "poll": lazy("detecting an earlier arrival by polling"),
    "stack": lazy("TCP/IP in the kernel"),
    "interrupt": lazy("interrupted by the kernel"),
    "nic": lazy("transferring a frame over the network card's bus"),
    "wire": lazy("on the cable"),
    "latency": lazy("the network's latency"),
    "ack": lazy("waiting for an acknowledgement or its timer"),
    "compute": lazy("the program's own computation"),
    "lock": lazy("the library's lock"),
    "line": lazy("transferring a cache line from another core"),
    "wait": lazy("waiting"),
}
"""What the time of a stage is spent with."""
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
