"""Writing a timeline in the format selected by the file's suffix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.convert import flat, paje, perfetto
from retrompi.convert.otf2 import timeline as otf2
from retrompi.render.timeline import timeline_page
from retrompi.sim.timeline import Timeline

__all__ = ["FORMATS", "GROUP", "check", "write"]

FORMATS = (".csv", ".html", ".json", ".otf2", ".paje", ".pftrace")
"""Suffixes of the built-in formats."""
GROUP = "retrompi.timelines"
"""Entry points by which another package adds a format: the suffix without its dot, and a function that takes a `Timeline` and a path and
returns what the format cannot express, one sentence each."""


@cache
def _others() -> dict[str, Callable[[Timeline, Path], list[str]]]:
    return {f".{p.name}": p.load() for p in entry_points(group=GROUP) if f".{p.name}" not in FORMATS}


def check(path: str | Path) -> Path:
    """The path, if its suffix names a format and its folder exists; raises an error otherwise, or when its library is missing."""
    target = Path(path)
    known = (*FORMATS, *_others())
    if target.suffix not in known:
        raise UsageError(f"'{path}': no timeline format '{target.suffix}'{nearest(target.suffix, known)}", code="unknown-format")
    if not target.parent.is_dir():
        raise InputError("there is no such folder", target.parent, code="not-found")
    if target.suffix == ".otf2":
        if not otf2.available():
            raise UsageError(otf2.MISSING, code="missing-tool")
        if target.exists():
            raise UsageError(f"{target} exists; OTF2 writes into a new folder", code="exists-already")
    if target.suffix == ".pftrace" and not perfetto.available():
        raise UsageError(perfetto.MISSING, code="missing-tool")
    return target


def write(timeline: Timeline, path: str | Path, told: Sequence[str] = ()) -> list[str]:
    """Write it; ``.otf2`` is a folder. Returns what the format cannot express and how the run was sampled, one sentence each.

    ``told``: lines on how the run ended, for the page. Raises UsageError for an unknown suffix, InputError when it cannot be written.
    """
    target = check(path)
    forms: dict[str, Callable[[Timeline, Path], list[str]]] = {
        ".csv": flat.write_csv,
        ".html": lambda t, p: timeline_page.write(t, p, told),
        ".json": flat.write_json,
        ".otf2": otf2.write,
        ".paje": paje.write,
        ".pftrace": perfetto.write,
    }
    try:
        return (forms | _others())[target.suffix](timeline, target)
    except OSError as error:
        raise InputError(f"cannot write the timeline: {error.strerror}", target, code="unwritable-file") from error
