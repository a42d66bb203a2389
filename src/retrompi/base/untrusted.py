"""The mark of a folder that came out of a packed study and that nobody has vouched for.

While the mark lies in a folder, no Python below it is run (`retrompi.spec.registry`), and its traces name no file outside of it
(`retrompi.traces.files`). The mark is on disk, not in a process, so that workers, later commands and the studio keep to it too.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

__all__ = ["MARK", "mark", "outside", "root_of", "trust"]

MARK = "UNTRUSTED"
_TEXT = """This folder was unpacked from {origin}.
As long as this file is here, retrompi runs no Python below this folder and reads no file outside of it that a trace in it names.
`--trust` of `retrompi study run` removes it.
"""


def mark(folder: Path, origin: str) -> None:
    """Marks ``folder`` (an existing one); OSError when it cannot be written."""
    (folder / MARK).write_text(_TEXT.format(origin=" ".join(origin.split())), encoding="utf-8")


def trust(folder: Path) -> None:
    """Removes the marks of ``folder`` and above; OSError when one cannot be removed."""
    while (root := root_of(folder)) is not None:
        (root / MARK).unlink()


def root_of(place: Path) -> Path | None:
    """The nearest marked folder that ``place`` is or lies in, links resolved; None if there is none."""
    with suppress(OSError, RuntimeError, ValueError):  # a loop of links, a name with NUL: reading it reports the error
        found = place.resolve()
        return next((folder for folder in (found, *found.parents) if (folder / MARK).is_file()), None)
    return None


def outside(file: Path, root: Path | None) -> bool:
    """Whether ``file``, links resolved, lies outside of the marked folder ``root``; False without one."""
    return root is not None and not file.resolve().is_relative_to(root)
