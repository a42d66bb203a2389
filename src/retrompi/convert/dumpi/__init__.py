"""Reader for DUMPI, the trace format of SST's dumpi library."""

from __future__ import annotations

from pathlib import Path

from retrompi._engine import Trace
from retrompi.convert.dumpi.file import MAGIC, is_meta
from retrompi.convert.dumpi.reader import read_dumpi
from retrompi.convert.formats import Format, FormatOptions
from retrompi.convert.losses import Losses
from retrompi.traces import files

__all__ = ["FORMAT"]


def _is_dumpi(path: Path, head: bytes) -> bool:
    return head.startswith(MAGIC) or is_meta(head)


def _read(path: Path, losses: Losses, options: FormatOptions) -> Trace:
    o = options
    return files.parse(read_dumpi(path, losses, rate=o.rate, clock=o.clock, shortest=o.shortest, progress=o.progress), name=path.stem)


FORMAT = Format("dumpi", _is_dumpi, (".meta", "-0000.bin"), _read)
