"""The trace formats: one module each, with an entry point for formats of other packages.

A format is a module with a `Format` called ``FORMAT``. Those of retrompi are in `BUILT_IN`; another package adds its own by an entry
point of the group ``retrompi.formats``, whose name is the format's and whose value is the module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from retrompi.base.errors import UsageError, nearest

if TYPE_CHECKING:
    from retrompi._engine import Trace
    from retrompi.convert.losses import Losses
    from retrompi.traces.files import UndefinedSource

__all__ = ["BUILT_IN", "GROUP", "Clock", "Format", "FormatOptions", "find", "names", "readable"]

GROUP = "retrompi.formats"
BUILT_IN = {
    "otf2": "retrompi.convert.otf2",
    "dumpi": "retrompi.convert.dumpi",
    "goal": "retrompi.convert.goal",
    "ti": "retrompi.convert.ti",
    "smpi": "retrompi.convert.smpi",
}
Clock = Literal["cpu", "wall"]


@dataclass(frozen=True)
class FormatOptions:
    """How a trace is read and written; each format uses the options that apply to it.

    ``rate`` in flop/s converts recorded times into operations and back; ``clock`` chooses DUMPI's clock (None: the CPU's if recorded);
    computation shorter than ``shortest`` seconds is dropped; ``approximate`` estimates what OTF2 does not record of MPI_Alltoallv;
    ``undefined_source`` is the meaning of a receive from -333 in TI; ``progress(done, total)`` is called to report progress.
    """

    rate: float = 1e9
    clock: Clock | None = None
    shortest: float = 0.0
    approximate: bool = False
    undefined_source: UndefinedSource = "refuse"
    progress: Callable[[int, int], None] | None = None


@dataclass(frozen=True)
class Format:
    """A trace format.

    ``sniff(path, head)`` returns whether a file that begins with ``head`` has this format; None for the fallback format. In a folder, each
    file whose name ends in one of ``leaders`` represents one trace. ``read`` and ``write`` are None where the direction is not supported;
    both count losses. ``read`` raises TraceError for a trace that cannot be read, UsageError when a library is missing.
    """

    name: str
    sniff: Callable[[Path, bytes], bool] | None = None
    leaders: tuple[str, ...] = ()
    read: Callable[[Path, Losses, FormatOptions], Trace] | None = None
    write: Callable[[Trace, Path, Losses, FormatOptions], None] | None = None


@cache
def _modules() -> dict[str, str]:
    return BUILT_IN | {p.name: p.value for p in entry_points(group=GROUP) if p.name not in BUILT_IN}


def names() -> list[str]:
    """Every format's name, retrompi's own first."""
    return list(_modules())


@cache
def find(name: str) -> Format:
    """The format of that name. Raises UsageError if it is unknown or its module has no `Format`."""
    if name not in _modules():
        raise UsageError(f"there is no format '{name}'{nearest(name, names())}", code="unknown-format")
    made = getattr(import_module(_modules()[name]), "FORMAT", None)
    if not isinstance(made, Format):
        raise UsageError(f"the module of the format '{name}' has no FORMAT", code="unknown-format")
    return made


def readable() -> list[Format]:
    """The formats that can be read, in the order in which they are tried; the fallback format is last."""
    found = [f for f in map(find, names()) if f.read is not None]
    return [*(f for f in found if f.sniff is not None), *(f for f in found if f.sniff is None)]
