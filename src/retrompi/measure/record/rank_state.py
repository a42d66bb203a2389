"""The recorder's state beside a rank's file: a page that survives the process (``State`` in native/recorder.h)."""

from __future__ import annotations

import os
import re
import struct
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from retrompi.base.files import folder_handle, open_own
from retrompi.traces.generate import MOST_RANKS

__all__ = ["ABORTED", "FINALIZED", "FULL", "RUNNING", "RankState", "names_of", "read_states"]

RUNNING, FINALIZED, ABORTED, FULL = 1, 2, 3, 4
_LAYOUT = struct.Struct("=8s14Q64s")
_NAME = re.compile(r"rank-(0|[1-9][0-9]{0,6})\.state")
_CALL = re.compile(r"[A-Za-z0-9_]{1,63}")
_WORDS = {RUNNING: "stopped", FINALIZED: "finished", ABORTED: "called MPI_Abort", FULL: "ran out of room for its trace"}


@dataclass(frozen=True)
class RankState:
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
    """The call that had not returned, a C identifier; empty when there was none, or what was told is none."""

    def end_text(self) -> str:
        """How the rank's recording ended, in words."""
        word = _WORDS.get(self.phase, "stopped")
        return f"{word} in {self.inside}" if self.phase == RUNNING and self.inside else word


def names_of(rank: int) -> tuple[str, str]:
    """The names of a rank's files: its lines, and its state."""
    return f"rank-{rank}.txt", f"rank-{rank}.state"


def read_states(folder: Path) -> dict[int, RankState]:
    """The states in a recording's folder, by rank; invalid ones (a rank killed in MPI_Init) are left out, links and what is no file too.

    What is in the folder may have been written by anybody: a recorded program can write to it.
    """
    states: dict[int, RankState] = {}
    with folder_handle(folder) as handle:
        for entry in os.scandir(handle):
            if found := _NAME.fullmatch(entry.name):
                state = _state(entry.name, handle)
                if state is not None and state.rank == int(found[1]):
                    states[state.rank] = state
    return states


def _state(name: str, folder: int) -> RankState | None:
    try:
        with open_own(name, folder) as file:
            data = file.read(_LAYOUT.size)
    except OSError:
        return None
    if len(data) < _LAYOUT.size:
        return None
    magic, *numbers, inside = _LAYOUT.unpack(data)
    call = inside.split(b"\0", 1)[0].decode("ascii", "replace")
    values: list[Any] = [*numbers, call if _CALL.fullmatch(call) else ""]
    state = RankState(**{f.name: value for f, value in zip(fields(RankState), values, strict=True)})
    possible = state.rank < state.ranks <= MOST_RANKS and state.phase in _WORDS and state.threads <= 3 and max(numbers) < 1 << 63
    return state if magic == b"RETROREC" and possible else None
