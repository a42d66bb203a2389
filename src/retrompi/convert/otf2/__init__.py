"""OTF2, the archives of Score-P and other tracers: reads traces, writes timelines."""

from __future__ import annotations

from pathlib import Path

from retrompi._engine import Trace
from retrompi.convert.formats import Format, Options
from retrompi.convert.losses import Losses
from retrompi.convert.otf2.events import is_anchor
from retrompi.convert.otf2.reader import read_otf2
from retrompi.traces import files

__all__ = ["FORMAT"]


def _read(path: Path, losses: Losses, options: Options) -> Trace:
    o = options
    texts = read_otf2(path, losses, rate=o.rate, shortest=o.shortest, approximate=o.approximate, progress=o.progress)
    return files.parse(texts, name=path.stem)


FORMAT = Format("otf2", is_anchor, (".otf2",), _read)
