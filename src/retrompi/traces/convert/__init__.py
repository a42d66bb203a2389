"""Import and conversion of traces: OTF2, DUMPI and GOAL in, plain TI and GOAL out, each with a report of what is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from retrompi._engine import Trace
from retrompi.base.errors import UsageError
from retrompi.traces import files
from retrompi.traces.errors import TraceError
from retrompi.traces.lines import not_held

from . import dumpi_file, goal_file, otf2_events
from .dumpi import Clock, read_dumpi
from .goal import read_goal
from .goal_out import write_goal
from .losses import Loss, Losses
from .otf2_in import read_otf2

__all__ = ["FORMATS", "TARGETS", "Clock", "Converted", "Loss", "Losses", "detect", "load", "save"]

Format = Literal["otf2", "dumpi", "goal", "ti"]
FORMATS: tuple[Format, ...] = ("otf2", "dumpi", "goal", "ti")
TARGETS = ("ti", "smpi", "goal")
SHARED = (".ti", ".gz", ".zst")


@dataclass
class Converted:
    """A trace that was read from ``format``, and what was lost on the way."""

    trace: Trace
    format: Format
    losses: Losses = field(default_factory=Losses)


def detect(path: Path) -> tuple[Format, Path]:
    """The format of a trace by its content, and the file to open: a folder's anchor, meta or first file stands for the folder.

    Raises ``TraceError`` when there is no such file, or when a folder holds several traces.
    """
    if path.is_dir():
        return _folder(path)
    try:
        with path.open("rb") as handle:
            data = handle.read(65536)
    except OSError:
        # ARCHIVE:FOLDER and the like: the reader of TI knows these, and how to complain.
        return "ti", path
    if otf2_events.is_anchor(path, data):
        return "otf2", path
    if data.startswith(dumpi_file.MAGIC) or dumpi_file.is_meta(data):
        return "dumpi", path
    if goal_file.is_goal(data):
        return "goal", path
    return "ti", path


def _folder(path: Path) -> tuple[Format, Path]:
    names = sorted(p for p in path.iterdir() if p.is_file())
    for what, suffix in (("otf2", ".otf2"), ("dumpi", ".meta")):
        found = [p for p in names if p.suffix == suffix and detect(p)[0] == what]
        if len(found) > 1:
            raise TraceError(
                f"holds several {what.upper()} traces; name one of {', '.join(p.name for p in found[:5])}", str(path), code="several-traces"
            )
        if found:
            return ("otf2" if what == "otf2" else "dumpi"), found[0]
    first = [p for p in names if p.name.endswith("-0000.bin") and detect(p)[0] == "dumpi"]
    if len(first) > 1:
        raise TraceError(
            f"holds several DUMPI traces; name one of {', '.join(p.name for p in first[:5])}", str(path), code="several-traces"
        )
    return ("dumpi", first[0]) if first else ("ti", path)


def load(
    path: str | Path,
    source: Format | None = None,
    *,
    rate: float = 1e9,
    clock: Clock | None = None,
    shortest: float = 0.0,
    approximate: bool = False,
    undefined_source: files.UndefinedSource = "refuse",
    progress: Callable[[int, int], None] | None = None,
) -> Converted:
    """Read a trace of any format (``source``: by its content).

    ``rate`` in flop/s turns recorded times into operations; ``clock`` chooses DUMPI's clock; computation shorter than ``shortest`` seconds
    is dropped; ``approximate`` allows what OTF2 does not say of MPI_Alltoallv to be guessed. Raises ``TraceError`` for what cannot be
    read and ``UsageError`` when a library is missing.
    """
    found, where = detect(Path(path))
    if source is not None and source != found:
        if found != "ti" and source != "ti":  # TI is what nothing else recognises
            raise UsageError(f"{path} is {found}, not {source}")
        found, where = source, Path(path)
    losses = Losses()
    if found == "ti":
        trace = files.read(path, undefined_source=undefined_source)
        for file, line, action, reason in not_held(trace):
            losses.add(action, reason, f"{file}:{line}")
        return Converted(trace, found, losses)
    if found == "otf2":
        texts = read_otf2(where, losses, rate=rate, shortest=shortest, approximate=approximate, progress=progress)
    elif found == "dumpi":
        texts = read_dumpi(where, losses, rate=rate, clock=clock, shortest=shortest, progress=progress)
    else:
        texts = read_goal(where, losses, rate=rate, shortest=shortest)
    return Converted(files.parse(texts, name=where.stem), found, losses)


def save(made: Converted, out: Path, target: str = "ti", *, rate: float = 1e9) -> None:
    """Write what `load` gave: ``ti`` as a folder (one file when ``out`` ends in .ti, .gz or .zst), ``smpi`` likewise with only what SMPI
    replays, ``goal`` as a schedule whose calculations last their operations at ``rate`` (flop/s). What is lost is added to its losses.
    """
    if target == "goal":
        write_goal(made.trace, out, made.losses, rate=rate)
    elif target == "ti":
        files.write(made.trace, out, shared=out.suffix in SHARED)
    elif target == "smpi":
        remarks, total = made.trace.smpi_losses()
        for file, line, action, reason in remarks:
            made.losses.add(action, reason, f"{file}:{line}")
        if total > len(remarks):
            made.losses.add("other calls", "beyond the first thousand", str(out), count=total - len(remarks))
        files.write(made.trace, out, shared=out.suffix in SHARED, smpi=True)
    else:
        raise UsageError(f"there is no format {target!r} to write; there are {', '.join(TARGETS)}", code="unknown-format")
