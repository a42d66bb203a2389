"""The points of a measured curve: a table in a paper's folder, or the output of a benchmark as ``retrompi measured import`` reads it.

A table has ``bytes`` (or ``bytes_approx``) and one of ``time_us``, ``mbps``, ``MBps``, or ``value`` with ``unit``; ``plus_minus`` is the
error of the value in its own unit. A column ``mbps`` does not say how many bits its megabit has (NetPIPE's had 2^20 before 3.x and 10^6
after): the author does. Lines that begin with ``#`` are comments; ``# way: round trip`` says that the times are those of a round trip.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from retrompi.base.errors import InputError, nearest
from retrompi.base.paths import stamp
from retrompi.measure.curves import read as read_measured
from retrompi.measure.curves.table import RATES, TIMES, WAYS
from retrompi.papers.statements.tables import text_of

__all__ = ["FORMATS", "MEGABITS", "CurvePoint", "PointSource", "points"]

SIZES = ("bytes", "bytes_approx")
COLUMNS = ("time_us", "mbps", "MBps", "value")
MEGABITS = (10**6, 2**20)
"""The bits of a megabit that a column ``mbps`` can mean."""
FORMATS = ("csv", "netpipe", "osu", "imb", "mpptest", "mpi4py")


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One way of ``size`` bytes takes ``time`` s; ``error`` (a share of the value) is the measurement's, or its drawing's."""

    size: int
    time: float
    error: float


@dataclass(frozen=True, slots=True)
class PointSource:
    """The place of a curve's points: ``where`` selects rows of a table by their columns; ``error`` (a share) where the file has none;
    ``megabit`` (bits) of a column mbps; ``series`` of an output with several, and its ``format`` if it is not to be detected."""

    file: Path
    where: tuple[tuple[str, str], ...] = ()
    error: float | None = None
    megabit: int | None = None
    series: str | None = None
    format: str | None = None


def points(source: PointSource) -> tuple[CurvePoint, ...]:
    """The points by size. Raises InputError with file and line for a bad row, a missing column or statement, or without rows."""
    return _points(source, stamp(source.file))


@lru_cache(maxsize=256)
def _points(source: PointSource, _read_at: tuple[int, int] | None) -> tuple[CurvePoint, ...]:
    text = text_of(source.file)
    _, lines = _rows(text)
    head = next(csv.reader(lines[:1]), [])
    ours = source.format in (None, "csv") and any(s in head for s in SIZES)
    found = _table(source, text) if ours else _read_series(source)
    return tuple(sorted(found, key=lambda p: p.size))


# --- a table -----------------------------------------------------------------------------------------------------------------------


def _table(source: PointSource, text: str) -> list[CurvePoint]:
    numbers, lines = _rows(text)
    rows = csv.DictReader(lines, restkey="\0more")
    head = list(rows.fieldnames or ())
    ways = _ways(source, text)
    value = next((c for c in COLUMNS if c in head), None)
    if value is None:
        raise InputError(
            f"no column is a time or a rate; one of {', '.join(COLUMNS)} (with unit) is right", source.file, 1, code="missing-key"
        )
    if value == "value" and "unit" not in head:
        raise InputError("the column 'value' needs a column 'unit' beside it", source.file, 1, code="missing-key")
    for key, _ in source.where:
        if key not in head:
            raise InputError(
                f"'where' names the column '{key}', which is not there{nearest(key, head)}", source.file, 1, code="missing-key"
            )
    found, selected = [], 0
    try:
        for row in rows:
            if any((row.get(k) or "") != v for k, v in source.where):
                continue
            selected += 1
            if None in row.values() or "\0more" in row:
                raise InputError(
                    f"the row has not the {len(head)} columns of the header", source.file, numbers[rows.line_num - 1], code="missing-key"
                )
            point = _row(source, row, value, numbers[rows.line_num - 1])
            if point is not None:
                timed = value == "time_us" or row.get("unit", "").strip() in ("time_us", *TIMES)  # a rate is that of one way
                found.append(replace(point, time=point.time / ways) if timed else point)
    except csv.Error as error:
        raise InputError(f"no table: {error}", source.file, numbers[min(rows.line_num, len(numbers)) - 1], code="bad-syntax") from None
    if not found:
        wanted = " and ".join(f"{k} = {v}" for k, v in source.where)
        told = f"no row has {wanted}{_values(source, text)}" if source.where and not selected else "no row has a value above 0"
        raise InputError(told, source.file, code="no-results")
    return found


def _rows(text: str) -> tuple[list[int], list[str]]:
    """The numbers, and the lines, of a table without its comments."""
    kept = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip() and not line.lstrip().startswith("#")]
    return [n for n, _ in kept], [line for _, line in kept]


def _ways(source: PointSource, text: str) -> int:
    """How often a message crosses the network in a time of the table: once, unless a comment says ``# way: round trip``."""
    for number, line in enumerate(text.splitlines(), 1):
        told = re.match(r"\s*#\s*way\s*[:=]\s*(.+?)\s*$", line)
        if told is not None:
            if told[1] not in WAYS:
                raise InputError(f"a time is {' or '.join(WAYS)}, not '{told[1]}'", source.file, number, code="unknown-name")
            return WAYS[told[1]]
    return 1


def _values(source: PointSource, text: str) -> str:
    """What the first column of ``where`` has instead."""
    key, wanted = source.where[0]
    return nearest(wanted, dict.fromkeys((r.get(key) or "") for r in csv.DictReader(_rows(text)[1])), 12)


def _row(source: PointSource, row: Mapping[str, str], column: str, line: int) -> CurvePoint | None:
    """The point of a row; None for a value of 0, which its drawing cannot tell from nothing."""
    named = next(s for s in SIZES if s in row)
    size = _number(row[named], named, source.file, line)
    if size != int(size) or size < 0:
        raise InputError(f"{named} is '{row[named]}'; a whole number of bytes is right", source.file, line, code="bad-size")
    value = _number(row[column], column, source.file, line)
    spread = _number(row["plus_minus"], "plus_minus", source.file, line) if row.get("plus_minus") else None
    if value == 0 and spread:
        return None
    if value <= 0:
        raise InputError(
            f"{column} is {row[column]}: a message takes time; a number above 0 is right", source.file, line, code="out-of-range"
        )
    unit = row["unit"].strip() if column == "value" else {"time_us": "us", "mbps": "Mbit/s", "MBps": "MB/s"}[column]
    time = _time(int(size), value, unit, source, line)
    if time is None:
        return None
    if spread is None and source.error is None:
        raise InputError("its error is not known: give the column plus_minus, or 'error' (a share of the value) in the [[curve]]",
                         source.file, line, code="missing-key")
    return CurvePoint(int(size), time, spread / value if spread is not None else float(source.error or 0))


def _time(size: int, value: float, unit: str, source: PointSource, line: int) -> float | None:
    """Seconds one way; None for a rate of 0 bytes."""
    unit = {"time_us": "us", "Mbps": "Mbit/s", "mbps": "Mbit/s", "MBps": "MB/s", "kbps": "kbit/s"}.get(unit, unit)
    if unit in TIMES:
        return value * TIMES[unit] * 1e-6
    if unit == "Mbit/s":
        if source.megabit is None:
            raise InputError("how many bits has a megabit here? Say megabit = 1000000 or 1048576 in the [[curve]] "
                             "(NetPIPE before 3.x: 1048576)", source.file, line, code="missing-key")
        return size * 8 / (value * source.megabit) if size else None
    if unit in RATES:
        return size / (value * RATES[unit] * 1e6) if size else None
    raise InputError(
        f"no unit '{unit}' of a time or a rate{nearest(unit, ('time_us', *TIMES, *RATES), 20)}", source.file, line, code="bad-unit"
    )


def _number(text: str, column: str, file: Path, line: int) -> float:
    try:
        found = float(text)
    except ValueError:
        raise InputError(f"{column} is '{text}'; a number is right", file, line, code="bad-number") from None
    if not math.isfinite(found):
        raise InputError(f"{column} is {text}; a finite number is right", file, line, code="bad-number")
    return found


# --- the output of a benchmark -----------------------------------------------------------------------------------------------------


def _read_series(source: PointSource) -> list[CurvePoint]:
    if source.where:
        raise InputError("'where' selects rows of a table with a column bytes; this file is none", source.file, code="unused-option")
    series = read_measured(source.file, source.format, what=source.series)
    if series.what not in ("pingpong", "multi_lat"):
        raise InputError(f"its series is '{series.what}'; the half round trips of a PingPong are right", source.file, code="wrong-kind")
    return _with_errors(source, [(p.size_B, p.time_us * 1e-6, p.spread) for p in series.points])


def _with_errors(source: PointSource, rows: Sequence[tuple[int, float, float | None]]) -> list[CurvePoint]:
    found = []
    for size, time, spread in rows:
        error = source.error if source.error is not None else spread
        if error is None:
            raise InputError("it does not say how exact it is: give 'error' (a share of the value) in the [[curve]]", source.file,
                             code="missing-key")
        found.append(CurvePoint(size, time, error))
    return found
