"""OTF2, the archives of Score-P and other tracers: reads traces, writes timelines."""

from __future__ import annotations

from pathlib import Path

from retrompi._engine import Trace
from retrompi.convert.formats import Format, FormatOptions
from retrompi.convert.losses import Losses
from retrompi.convert.otf2.events import is_anchor, read_archive
from retrompi.convert.otf2.reader import read_otf2
from retrompi.traces import files

__all__ = ["FORMAT"]


def _read(path: Path, losses: Losses, options: FormatOptions) -> Trace:
    o = options
    archive = read_archive(path, o.progress)
    if archive.program is not None:
        # As one file of all ranks, in which a rank may do nothing; not all need reach finalize (replay --partial).
        return files.parse("".join(archive.program), np=len(archive.program), name=path.name, partial=True)
    texts = read_otf2(archive, path, losses, rate=o.rate, shortest=o.shortest, approximate=o.approximate)
    return files.parse(texts, name=path.stem)


FORMAT = Format("otf2", is_anchor, (".otf2",), _read)
