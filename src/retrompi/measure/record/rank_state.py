"""The recorder's state beside a rank's file: a page that survives the process (``State`` in native/recorder.h)."""

from __future__ import annotations

import struct
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

__all__ = ["ABORTED", "FINALIZED", "FULL", "RUNNING", "State", "read_states"]

RUNNING, FINALIZED, ABORTED, FULL = 1, 2, 3, 4
_LAYOUT = struct.Struct("=8s14Q64s")
_WORDS = {RUNNING: "stopped", FINALIZED: "finished", ABORTED: "called MPI_Abort", FULL: "ran out of room for its trace"}


@dataclass(frozen=True)
class State:
    """State of one rank's recording: its progress, and counts of what could not be recorded."""

    rank: int
    ranks: int
    written: int
    """Bytes of complete lines in the rank's file."""
    lines: int
    calls: int
    phase: int
    cancels: int
    unknown_requests: int
    failed_calls: int
    threads: int
    """0: one thread called MPI, 1: several in turn, 3: several at once (the trace is refused)"""
    unsupported: int
    overhead_ns: int
    gap: int
    """Subtracted from each burst of computation: ns, or events."""
    nested: int
    """Calls made during another call: by a profiler or a callback."""
    inside: str
    """The call that had not returned."""

    def ended(self) -> str:
        """How the rank's recording ended, in words."""
        word = _WORDS.get(self.phase, "stopped")
        return f"{word} in {self.inside}" if self.phase == RUNNING and self.inside else word


def read_states(folder: Path) -> dict[int, State]:
    """The states in a recording's folder, by rank; invalid ones (a rank killed in MPI_Init) are left out."""
    states: dict[int, State] = {}
    for path in folder.glob("rank-*.state"):
        data = path.read_bytes()[: _LAYOUT.size]
        if len(data) < _LAYOUT.size:
            continue
        magic, *numbers, inside = _LAYOUT.unpack(data)
        if magic != b"RETROREC":
            continue
        values: list[Any] = [*numbers, inside.split(b"\0", 1)[0].decode("ascii", "replace")]
        state = State(**{f.name: value for f, value in zip(fields(State), values, strict=True)})
        states[state.rank] = state
    return states
