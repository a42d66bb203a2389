"""TI, the project's native format: assumed when no other format recognises a trace."""

from __future__ import annotations

from pathlib import Path

from retrompi._engine import Trace
from retrompi.convert.formats import Format, FormatOptions
from retrompi.convert.losses import Losses
from retrompi.traces import files
from retrompi.traces.lines import not_held

__all__ = ["FORMAT", "ONE_FILE"]

ONE_FILE = (".ti", ".gz", ".zst")
"""Suffixes that select one file instead of a folder."""


def _read(path: Path, losses: Losses, options: FormatOptions) -> Trace:
    trace = files.read(path, undefined_source=options.undefined_source)
    for file, line, action, reason in not_held(trace):
        losses.add(action, reason, f"{file}:{line}")
    return trace


def _write(trace: Trace, out: Path, losses: Losses, options: FormatOptions) -> None:
    files.write(trace, out, shared=out.suffix in ONE_FILE)


FORMAT = Format("ti", read=_read, write=_write)
