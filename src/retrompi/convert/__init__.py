"""Formats of traces (OTF2, DUMPI, GOAL, TI) and of timelines (HTML, Perfetto, OTF2, Paje, CSV, JSON); conversions report their losses.

A format is one module (`retrompi.convert.formats`); other packages can add theirs. Timelines are written by `retrompi.convert.timelines`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from retrompi.base.errors import UsageError
from retrompi.base.files import open_regular
from retrompi.convert.formats import BUILT_IN, Clock, Format, FormatOptions, find, names, readable
from retrompi.convert.losses import Loss, Losses
from retrompi.traces.errors import TraceError

if TYPE_CHECKING:
    from retrompi._engine import Trace

__all__ = ["BUILT_IN", "Clock", "Converted", "Format", "FormatOptions", "Loss", "Losses", "detect", "find", "load", "names", "readable",
           "save"]


@dataclass
class Converted:
    """A trace that was read from ``format``, and what was lost in the conversion."""

    trace: Trace
    format: str
    losses: Losses = field(default_factory=Losses)


def detect(path: Path) -> tuple[str, Path]:
    """The format of a trace by its content, and the file to open: for a folder its anchor, meta or first file.

    Raises ``TraceError`` when a folder holds several traces.
    """
    *known, rest = readable()
    if path.is_dir():
        return _folder(path, known) or (rest.name, path)
    try:
        with open_regular(path) as handle:
            head = handle.read(65536)
    except OSError:
        # ARCHIVE:FOLDER and the like: the TI reader knows these, and reports errors about them.
        return rest.name, path
    return next((f.name for f in known if f.sniff is not None and f.sniff(path, head)), rest.name), path


def _folder(path: Path, known: list[Format]) -> tuple[str, Path] | None:
    files = sorted(p for p in path.iterdir() if p.is_file())
    for one in known:
        for leader in one.leaders:
            found = [p for p in files if p.name.endswith(leader) and detect(p)[0] == one.name]
            if len(found) > 1:
                listed = ", ".join(p.name for p in found[:5])
                raise TraceError(f"holds several {one.name.upper()} traces; name one of {listed}", str(path), code="several-traces")
            if found:
                return one.name, found[0]
    return None


def load(path: str | Path, source: str | None = None, options: FormatOptions | None = None) -> Converted:
    """Read a trace of any format.

    ``path`` is a file or folder; ``source`` names its format (None: detected by content); ``options`` apply as far as the format uses them.
    Raises ``TraceError`` for a trace that cannot be read and ``UsageError`` when a library is missing.
    """
    found, where = detect(Path(path))
    if source is not None and source != found:
        rest = readable()[-1].name
        if rest not in (found, source):  # TI is assumed for what no other format recognises
            raise UsageError(f"{path} is {found}, not {source}")
        found, where = source, Path(path)
    losses = Losses()
    read = find(found).read
    if read is None:
        raise UsageError(f"traces of the format {found!r} cannot be read")
    return Converted(read(where, losses, options or FormatOptions()), found, losses)


def save(made: Converted, out: Path, target: str = "ti", options: FormatOptions | None = None) -> None:
    """Write the trace that `load` returned.

    ``target`` is ``ti`` (a folder; one file when ``out`` ends in .ti, .gz or .zst), ``smpi`` (likewise, with only the actions that SMPI
    replays) or ``goal`` (a schedule). Losses of the conversion are added to ``made``'s.
    """
    write = find(target).write if target in names() else None
    if write is None:
        targets = ", ".join(f for f in names() if find(f).write is not None)
        raise UsageError(f"there is no format {target!r} to write; there are {targets}", code="unknown-format")
    write(made.trace, out, made.losses, options or FormatOptions())
