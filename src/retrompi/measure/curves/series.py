"""The content of a benchmark's output: one point per size, and its provenance."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from retrompi.base.errors import InputError

__all__ = ["MEANINGS", "Line", "Measured", "Point", "Provenance", "lines_of", "number", "whole"]

MEANINGS = {
    "pingpong": "half of a round trip between two ranks",
    "pingping": "one way, both ranks sending at once",
    "sendrecv": "one exchange around a ring",
    "exchange": "one exchange with two neighbours",
    "bw": "what a message adds to a stream one way",
    "bibw": "what a message adds to two streams, both ways counted together",
    "mbw_mr": "what a message adds to the streams of several pairs, all counted together",
    "multi_lat": "half of a round trip, several pairs at once",
    "ring": "one hop of a message around a ring",
}
"""What -> the definition of its time. Anything else is a collective or one-sided operation: the time of one call."""


@dataclass(frozen=True, slots=True)
class Point:
    """One size. ``time_us`` is defined in `MEANINGS`; bandwidth in 10^6 B/s; ``spread`` is a relative standard deviation (as reported, or
    from the printed digits), ``low_us`` and ``high_us`` the smallest and largest over ranks or repetitions; ``more`` holds other columns
    (``send_us``, ...). None and 0: not reported."""

    size_B: int
    time_us: float
    bandwidth_MBps: float
    repetitions: int = 0
    spread: float | None = None
    low_us: float | None = None
    high_us: float | None = None
    more: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of_time(cls, size: int, time_us: float, **more: Any) -> Point:
        """A point whose bandwidth is the size over the time."""
        return cls(size, time_us, size / time_us if time_us else 0.0, **more)

    def row(self) -> dict[str, Any]:
        """A flat object; fields that were not reported are left out."""
        told = {k: v for k, v in asdict(self).items() if k != "more" and v is not None}
        return told | dict(self.more)


@dataclass(frozen=True, slots=True)
class Provenance:
    """Provenance of measured points. ``units`` and ``said``: what the file or the user stated about them; ``host`` and ``date`` as
    printed."""

    file: str
    sha256: str
    tool: str
    version: str = ""
    units: str = ""
    host: str = ""
    date: str = ""
    said: tuple[str, ...] = ()
    by: str = ""
    """The importing user, if known."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The points of one benchmark. ``what`` is a key of `MEANINGS` or an operation; ``ranks`` None if the output does not state it."""

    what: str
    points: tuple[Point, ...]
    provenance: Provenance
    ranks: int | None = None
    pairs: int | None = None
    window: int | None = None

    def with_fields(self, **changes: Any) -> Measured:
        """A copy with other fields."""
        return replace(self, **changes)


Line = tuple[int, str]
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def lines_of(text: str) -> list[Line]:
    """Numbered lines without colours and without trailing blanks."""
    return [(n, _ANSI.sub("", line).rstrip()) for n, line in enumerate(text.splitlines(), 1)]


def number(text: str, path: Path, line: int, what: str) -> float:
    """A number >= 0. Raises InputError with the line otherwise."""
    try:
        value = float(text)
    except ValueError:
        raise InputError(f"'{text}' is no number; {what} is expected here", path, line, code="bad-syntax") from None
    if not 0 <= value < float("inf"):
        raise InputError(f"{text} cannot be {what}: it is not a number from 0 on", path, line)
    return value


def whole(text: str, path: Path, line: int, what: str) -> int:
    """An integer >= 0. Raises InputError with the line otherwise."""
    if not text.isdigit():
        raise InputError(f"'{text}' is not a whole number of {what}", path, line)
    return int(text)


def digits(text: str, value: float) -> float | None:
    """The relative standard deviation due to the number of digits printed; None for a value of 0."""
    places = len(text.partition(".")[2])
    return 10.0**-places / 12**0.5 / value if value > 0 else None


def cells(text: str, count: int, path: Path, line: int, columns: Sequence[str]) -> list[str]:
    """The columns of a row separated by blanks. Raises InputError unless there are ``count``."""
    found = text.split()
    if len(found) != count:
        raise InputError(f"a row of {len(found)} columns where the table has {count}: {', '.join(columns)}", path, line, code="no-results")
    return found
