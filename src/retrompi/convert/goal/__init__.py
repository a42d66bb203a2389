"""Reader and writer for GOAL, the schedules of LogGOPSim."""

from __future__ import annotations

from pathlib import Path

from retrompi._engine import Trace
from retrompi.convert.formats import Format, FormatOptions
from retrompi.convert.goal.file import is_goal
from retrompi.convert.goal.reader import read_goal
from retrompi.convert.goal.writer import write_goal
from retrompi.convert.losses import Losses
from retrompi.traces import files

__all__ = ["FORMAT"]


def _is_goal(path: Path, head: bytes) -> bool:
    return is_goal(head)


def _read(path: Path, losses: Losses, options: FormatOptions) -> Trace:
    return files.parse(read_goal(path, losses, rate=options.rate, shortest=options.shortest), name=path.stem)


def _write(trace: Trace, out: Path, losses: Losses, options: FormatOptions) -> None:
    write_goal(trace, out, losses, rate=options.rate)


FORMAT = Format("goal", _is_goal, read=_read, write=_write)
