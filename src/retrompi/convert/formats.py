"""The formats of traces: one module each, and the place where others add theirs.

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

__all__ = ["BUILT_IN", "GROUP", "Clock", "Format", "Options", "find", "names", "readable"]

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
class Options:
    """How a trace is read and written; a format takes what concerns it.

    ``rate`` in flop/s turns recorded times into operations and back; ``clock`` chooses DUMPI's clock (None: the CPU's where recorded);
    computation shorter than ``shortest`` seconds is dropped; ``approximate`` allows what OTF2 does not say of MPI_Alltoallv to be
    guessed; ``undefined_source`` says what a receive from -333 is in TI; ``progress(done, total)`` is told of progress.
    """

    rate: float = 1e9
    clock: Clock | None = None
    shortest: float = 0.0
    approximate: bool = False
    undefined_source: UndefinedSource = "refuse"
    progress: Callable[[int, int], None] | None = None


@dataclass(frozen=True)
class Format:
    """A format of traces.

    ``sniff(path, head)`` says whether a file that begins with ``head`` is of this format; None for the format that is meant when no other
    one is. In a folder the files that end in one of ``leaders`` stand for a trace each. ``read`` and ``write`` are None where there is no
    such way; both count what they lose. ``read`` raises TraceError for what cannot be read, UsageError when a library is missing.
    """

    name: str
    sniff: Callable[[Path, bytes], bool] | None = None
    leaders: tuple[str, ...] = ()
    read: Callable[[Path, Losses, Options], Trace] | None = None
    write: Callable[[Trace, Path, Losses, Options], None] | None = None


@cache
def _modules() -> dict[str, str]:
    return BUILT_IN | {p.name: p.value for p in entry_points(group=GROUP) if p.name not in BUILT_IN}


def names() -> list[str]:
    """Every format's name, retrompi's own first."""
    return list(_modules())


@cache
def find(name: str) -> Format:
    """The format of that name. Raises UsageError for one that is unknown, or whose module has no `Format`."""
    if name not in _modules():
        raise UsageError(f"there is no format '{name}'{nearest(name, names())}", code="unknown-format")
    made = getattr(import_module(_modules()[name]), "FORMAT", None)
    if not isinstance(made, Format):
        raise UsageError(f"the module of the format '{name}' has no FORMAT", code="unknown-format")
    return made


def readable() -> list[Format]:
    """The formats that can be read, in the order in which they are tried; the one that is meant when no other is, last."""
    found = [f for f in map(find, names()) if f.read is not None]
    return [*(f for f in found if f.sniff is not None), *(f for f in found if f.sniff is None)]
