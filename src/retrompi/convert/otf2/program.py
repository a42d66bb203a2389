"""The program of an archive that retrompi wrote: every rank's lines of the trace, in properties of its location.

OTF2's events cannot express all that a replay needs (receive buffers, which requests a wait was given, operations computed), and a
timeline may be sampled. The lines can: an archive that holds them is read from them, whatever its events are. Other tools see properties
of locations, which they may ignore:

- ``retrompi::program``: the number of parts (unsigned integer), on the location of every rank;
- ``retrompi::program::0``, ``::1``, …: the rank's lines as in a trace file of all ranks, sizes in bytes, amounts in operations.
  Parts end with a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from retrompi._engine import Trace
from retrompi.traces.errors import TraceError

__all__ = ["NAME", "keep", "program_lines"]

NAME = "retrompi::program"
PART = 1 << 20
"""Characters of a part at most, unless one line is longer: a record of a definition must fit into the library's chunk of 4 MiB."""


def keep(definitions: Any, locations: Sequence[Any], trace: Trace) -> None:
    """Adds the lines of ``trace`` to the definitions of an archive: rank r's to ``locations[r]``."""
    from otf2.enums import Type

    for rank, location in enumerate(locations):
        parts = list(_parts(trace.to_ti(rank, shared=True)))
        definitions.location_property(location, NAME, Type.UINT64, len(parts))
        for number, part in enumerate(parts):
            definitions.location_property(location, f"{NAME}::{number}", Type.STRING, part)


def _parts(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        end = len(text)
        if end - at > PART:
            end = text.rfind("\n", at, at + PART) + 1 or text.find("\n", at) + 1 or end
        yield text[at:end]
        at = end


def program_lines(locations: Sequence[Any], path: str) -> list[str] | None:
    """The lines of every rank, whose locations are given in rank order; None if the archive does not hold a program.

    Raises TraceError when only a part of it is there.
    """
    texts: list[str] = []
    for rank, location in enumerate(locations):
        try:
            count = location[NAME]
        except KeyError:
            if texts:
                raise _damage_error(rank, NAME, path) from None
            return None
        try:
            texts.append("".join(_text(location[f"{NAME}::{number}"]) for number in range(count)))
        except (KeyError, TypeError):
            raise _damage_error(rank, f"{NAME}::…", path) from None
    return texts


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _damage_error(rank: int, name: str, path: str) -> TraceError:
    return TraceError(f"the program of rank {rank} is not whole: the property {name} of its location is missing", path, code="damaged-file")
