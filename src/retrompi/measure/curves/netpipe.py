"""NetPIPE: the output of NPmpi and its file np.out, of 2.x and 3.x (three columns; a megabit has 2^20 bits, or 10^6 in some) and 5.x (five
columns, Gbit/s of 10^9). Only times are taken: they do not depend on what a megabit is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from retrompi.base.errors import InputError
from retrompi.measure.curves.series import Line, Measured, Point, Provenance, digits, number, whole

__all__ = ["detect", "read"]

_PRINTED = re.compile(
    r"\s*\d+:\s+([\d.]+)\s*(bytes|B|KB|MB|GB)\s+(\d+)\s+times\s+-->\s+([\d.]+)\s*(\S*bps)\s+in\s+([\d.]+)\s*(nsecs?|usecs?|msecs?|secs?)"
)
_TIMES = {"n": 1e-3, "u": 1.0, "m": 1e3, "s": 1e6}
_CLOSE = 0.03
"""Tolerance between a rate and size over time: both are rounded."""


def _rows(lines: Sequence[Line]) -> list[list[float]] | None:
    """The rows of a table of numbers only; None for anything else."""
    rows = []
    for _, text in lines:
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        try:
            rows.append([float(c) for c in text.split()])
        except ValueError:
            return None
    return rows or None


def _ways(ratios: Sequence[float]) -> int:
    """The number of directions, from rate over size by time: 1, 2 (the rate is their sum), or 0 when it is neither."""
    for ways in (1, 2):
        if ratios and sum(abs(r / ways - 1) < _CLOSE for r in ratios) > len(ratios) / 2:
            return ways
    return 0


def _file_kind(lines: Sequence[Line]) -> int:
    """3 or 5: a table whose rates and times are consistent with that version's np.out; 0 otherwise."""
    rows = _rows(lines)
    if rows is None or len({len(r) for r in rows}) != 1:
        return 0
    kind = len(rows[0]) if len(rows[0]) in _SCALES else 0
    return kind if kind and _directions(rows, kind) else 0


_SCALES = {3: (2**20, 10**6), 5: (1e3,)}
"""Columns -> the bits of a megabit times seconds of a time, as they can be."""


def _directions(rows: Sequence[Sequence[float]], kind: int) -> int:
    """As `_ways`, of the rows of a np.out."""
    large = [r for r in rows if r[0] >= 64] or [r for r in rows if r[0] > 0]
    return next((w for s in _SCALES[kind] if (w := _ways([r[1] * s * r[-1] / (8 * r[0]) for r in large]))), 0)


def detect(lines: Sequence[Line]) -> bool:
    return any(_PRINTED.match(text) for _, text in lines) or _file_kind(lines) > 0


def read(lines: Sequence[Line], path: Path, about: Provenance) -> list[Measured]:
    """One series. Neither form states whether a stream was timed instead of a PingPong, except what 5.x prints about both directions."""
    printed = [(n, row) for n, row in ((n, _PRINTED.match(text)) for n, text in lines) if row is not None]
    both = any("Bidirectional mode" in text or "both directions simultaneously" in text for _, text in lines)
    if printed:
        version, points = _parse_printed(printed, path)
    else:
        kind = _file_kind(lines)
        if not kind:
            raise InputError(
                "neither what NetPIPE prints nor its np.out: rows of 3 (3.x) or 5 (5.x) numbers whose rates are size over time",
                path,
                code="no-results",
            )
        version, points = f"{kind}.x", _file(lines, kind, path)
        both = both or _directions(_rows(lines) or [], kind) == 2
    if both:  # each of the two messages that cross within a time contributes half of it
        points = [Point.of_time(p.size_B, p.time_us / 2, repetitions=p.repetitions, spread=p.spread) for p in points]
    units = "s, Mbit/s" if version == "3.x" else "us, Gbit/s of 10^9"
    told = replace(about, tool="NetPIPE", version=version, units=units)
    return [Measured("bibw" if both else "pingpong", tuple(points), told, 2)]


def _parse_printed(rows: Sequence[tuple[int, re.Match[str]]], path: Path) -> tuple[str, list[Point]]:
    points, version = [], "3.x"
    for n, row in rows:
        amount, unit, runs = row[1], row[2], int(row[3])
        if unit in ("MB", "GB"):
            raise InputError(
                "NetPIPE 5 rounds sizes from 1 MB on when it prints them; read the file it writes (np.out) instead",
                path,
                n,
                code="no-results",
            )
        if unit != "bytes":
            version = "5.x"
        size = round(float(amount) * (1000 if unit == "KB" else 1))
        points.append(_of(size, row[6], _TIMES[row[7][0]], path, n, runs))
    return version, points


def _file(lines: Sequence[Line], kind: int, path: Path) -> list[Point]:
    points = []
    for n, text in lines:
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        row = text.split()
        size = whole(row[0], path, n, "bytes")
        points.append(_of(size, row[-1], 1e6 if kind == 3 else 1.0, path, n, 0))
    return points


def _of(size: int, text: str, scale: float, path: Path, line: int, runs: int) -> Point:
    time = number(text, path, line, "a time")
    if time <= 0:
        raise InputError("a time of 0: fewer repetitions than the clock can tell; run NetPIPE longer", path, line, code="no-results")
    return Point.of_time(size, time * scale, repetitions=runs, spread=digits(text, time))
