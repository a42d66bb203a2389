"""A curve as a table: digitised from a figure, printed by the user's own program, or written by ``retrompi pingpong --csv``.

A header names the columns; units are in its names (``time_us``, ``bandwidth_MBps``, ``t [ms]``), in a comment (``# unit: us``), or given by
the caller. Whether a time is one way or a round trip follows from a column's name, a comment (``# way: round trip``), the caller, or a
bandwidth in the next column. Neither is guessed.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from retrompi.base import units
from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.measure.curves.series import MEANINGS, Line, Measured, Point, Provenance, number

__all__ = ["RATES", "TIMES", "WAYS", "Said", "read"]

TIMES = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
"""Unit of time -> microseconds."""
RATES = {
    "B/s": 1e-6,
    "kB/s": 1e-3,
    "KiB/s": 2.0**10 / 1e6,
    "MB/s": 1.0,
    "MiB/s": 2.0**20 / 1e6,
    "GB/s": 1e3,
    "Mbit/s": 0.125,
    "Gbit/s": 125.0,
}
"""Unit of bandwidth -> 10^6 B/s."""
WAYS = {"one way": 1, "round trip": 2}
"""Number of message transfers that a time covers."""

_SPELLED = {
    **{k: k for k in (*TIMES, *RATES)},
    **dict.fromkeys(("usec", "µs", "μs", "microseconds"), "us"),
    **{"msec": "ms", "milliseconds": "ms", "sec": "s", "seconds": "s", "nsec": "ns"},
    **dict.fromkeys(("MBps", "MBytes/s", "Mbytes/sec", "MByte/s"), "MB/s"),
    **{"Mbps": "Mbit/s", "Mb/s": "Mbit/s", "Gbps": "Gbit/s", "MiBps": "MiB/s", "kBps": "kB/s", "GBps": "GB/s", "Bps": "B/s"},
}
_CLOSE = 0.02
"""Tolerance between a printed bandwidth and size over time."""
_TOLD = ("unit", "units", "way", "what", "tool", "version", "host", "date", "source", "by", "ranks", "library", "figure", "paper")
_PARTS = ("send", "recv", "gap", "port", "both")
_SIZES = ("size", "size_b", "bytes", "b", "message size", "msgsize", "length", "len", "#bytes", "size [b]", "size (b)", "nbytes")


@dataclass(frozen=True)
class Said:
    """The caller's declarations where the file has none: a unit of `TIMES` or `RATES`, a key of `WAYS`, the columns by name or number."""

    unit: str | None = None
    way: str | None = None
    columns: Mapping[str, str] | None = None
    what: str | None = None


@dataclass(frozen=True)
class _Column:
    """A column's index, its content (``size``, ``time``, ``rate``, ``send`` .. ``both``, ``spread``, ``deviation``, ``repetitions``) and
    its unit."""

    index: int
    role: str
    unit: str
    way: str


def _unit(text: str) -> str:
    """A unit in the project's spelling; "" for none. Case distinguishes bits from bytes and is not ignored for rates."""
    return _SPELLED.get(text) or (_SPELLED[text.lower()] if _SPELLED.get(text.lower()) in TIMES else "")


def _column_named(name: str, index: int) -> _Column | None:
    """The column described by a header's name; None for a column that is not used."""
    plain = name.strip().strip('"').lstrip("#").strip()
    low = plain.lower()
    if low in _SIZES:
        return _Column(index, "size", "B", "")
    split = re.match(r"(.*?)[\s_]*[\[(]([^\])]*)[\])]\s*$", plain) or re.match(r"(.*)_([A-Za-z/µμ]+)$", plain)
    head, unit = (split[1].strip().lower(), _unit(split[2].strip())) if split else (low, _unit(plain))
    if split and not unit:
        head = low
    if head in _SIZES and unit in ("", "B"):
        return _Column(index, "size", "B", "")
    if low in ("repetitions", "samples", "iterations", "reps", "#repetitions"):
        return _Column(index, "repetitions", "", "")
    if low in ("spread", "relative_spread"):
        return _Column(index, "spread", "", "")
    if head in ("stdev", "deviation", "sd", "stddev"):
        return _Column(index, "deviation", unit, "")
    if head in _PARTS:
        return _Column(index, head, unit, "one way")
    way = "round trip" if re.search(r"round.?trip|rtt", head) else "one way" if re.search(r"one.?way", head) else ""
    if unit in RATES or re.search(r"bandwidth|rate|throughput", head):
        return _Column(index, "rate", unit, way)
    if unit in TIMES or re.search(r"time|latency|^t$|rtt|round.?trip|one.?way", head):
        return _Column(index, "time", unit, way)
    return None


def _split(text: str, delimiter: str | None) -> list[str]:
    return text.split() if delimiter is None else [c.strip() for c in next(csv.reader([text], delimiter=delimiter))]


def _delimiter(text: str) -> str | None:
    return next((d for d in (",", ";", "\t") if d in text), None)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _size(text: str, path: Path, line: int) -> int:
    """``65536`` or ``64 KiB``; digitised sizes are rounded to whole bytes."""
    if _is_number(text):
        return round(number(text, path, line, "a size in bytes"))
    try:
        return round(units.parse(text, "B"))
    except UsageError as error:
        raise InputError(str(error), path, line, code=error.code) from None


def _columns(head: Sequence[str], said: Said, path: Path, line: int) -> dict[str, _Column]:
    """Role -> column, from a header's names and the caller's declarations."""
    found: dict[str, _Column] = {}
    for i, name in enumerate(head):
        column = _column_named(name, i)
        if column is not None:
            found.setdefault(column.role, column)
    for role, which in (said.columns or {}).items():
        if role not in ("size", "time", "rate", "repetitions", "spread", "deviation", *_PARTS):
            raise UsageError(
                f"no kind of column '{role}'{nearest(role, ('size', 'time', 'rate', 'repetitions', 'spread', 'deviation', *_PARTS))}",
                code="unknown-name",
            )
        if which.isdigit() and 1 <= int(which) <= len(head):
            index = int(which) - 1
        elif which in head:
            index = list(head).index(which)
        else:
            raise InputError(
                f"no column '{which}'{nearest(which, head)}, or a number from 1 to {len(head)}", path, line, code="unknown-name"
            )
        known = _column_named(head[index], index)
        found[role] = _Column(index, role, known.unit if known else "", known.way if known else "")
    if said.columns and not {"time", "rate"} <= set(said.columns):  # a column chosen by the caller replaces one found by name
        for other in {"time", "rate"} - set(said.columns):
            if {"time", "rate"} & set(said.columns):
                found.pop(other, None)
    if "size" not in found:
        shown = ", ".join(head)
        shown = shown if len(shown) <= 60 else f"{shown[:60]}…"
        raise InputError(
            f"no output of a known benchmark, and as a table no column of it is a message size: {shown}; "
            "name one size_B, or say which with --column size=NUMBER",
            path,
            line,
            code="no-results",
        )
    if not {"time", "rate"} & set(found):
        raise InputError(
            f"no column is a time or a bandwidth: {', '.join(head)}; name one time_us, or say which with --column time=NUMBER",
            path,
            line,
            code="no-results",
        )
    return found


def _columns_and_rows(
    rows: list[Line], delimiter: str | None, said: Said, told: Mapping[str, str], path: Path
) -> tuple[list[str], dict[str, _Column], list[Line]]:
    """(the columns' names, those of them that are read by what they hold, the rows of numbers)."""
    first = rows[0]
    head = _split(first[1], delimiter)
    if all(_is_number(c) for c in head):
        if not said.columns and len(head) > 2:
            raise InputError(
                "no header names the columns; add one (size_B,time_us), or say which with --column size=1 --column time=2",
                path,
                first[0],
                code="no-results",
            )
        head = [f"column {i}" for i in range(1, len(head) + 1)]
        columns = _columns(head, Said(columns=said.columns or {"size": "1", "time": "2"}), path, first[0])
        if not said.columns and _given_unit(said.unit, told, path) in RATES:
            columns = {"size": columns["size"], "rate": _Column(1, "rate", "", "")}
    else:
        columns, rows = _columns(head, said, path, first[0]), rows[1:]
    return head, columns, rows


def _stated_unit(main: _Column, unit: str, head: str, path: Path, line: int) -> str:
    """The unit of the column that is read, by its name or by what is said of it. UsageError where the two differ."""
    stated = main.unit or (unit if unit in (TIMES if main.role == "time" else RATES) else "")
    if unit and main.unit and unit != main.unit and unit in (TIMES if main.role == "time" else RATES):
        raise UsageError(f"the column '{head}' of {path} is in {main.unit}, not {unit}; leave out --unit or rename the column")
    if not stated:
        example = "--unit us" if main.role == "time" else "--unit MB/s"
        raise InputError(
            f"the unit of '{head}' is not stated: name the column time_us or bandwidth_MBps, add a line '# unit: us', "
            f"or give {example}",
            path,
            line,
            code="no-results",
        )
    return stated


def read(lines: Sequence[Line], path: Path, about: Provenance, said: Said) -> list[Measured]:
    """One series. Raises InputError with the line for a missing declaration or an invalid number, UsageError for an invalid declaration."""
    told, rows = _declarations(lines)
    if not rows:
        raise InputError("no rows in this file", path, code="no-results")
    first = rows[0]
    delimiter = _delimiter(first[1])
    head, columns, rows = _columns_and_rows(rows, delimiter, said, told, path)
    unit = _given_unit(said.unit, told, path)
    way = _given_way(said.way, told, path)
    if unit in RATES and "rate" in columns:
        columns.pop("time", None)  # the user's declaration of what is measured takes precedence
    main = columns.get("time") or columns["rate"]
    stated = _stated_unit(main, unit, head[main.index], path, first[0])
    crossings = main.way or way or _meaning_by_rate(rows, delimiter, columns, main, stated)
    if main.way and said.way and main.way != said.way:
        raise UsageError(
            f"the column '{head[main.index]}' of {path} says {main.way}, not {said.way}; leave out the option or rename the column"
        )
    if main.role == "time" and not crossings:
        raise InputError(
            "is a time one way or a round trip? Add a line '# way: one way' (or round trip), or give --one-way or --round-trip",
            path,
            first[0],
            code="no-results",
        )
    points = [
        _point(n, _split(text, delimiter), len(head), columns, main, stated, WAYS.get(crossings or "one way", 1), path) for n, text in rows
    ]
    known = sorted((p for p in points if p is not None), key=lambda p: p.size_B)
    if not known:
        raise InputError("no row holds a size and a time", path, code="no-results")
    what = said.what or told.get("what", "pingpong")
    named = tuple(f"{k}: {v}" for k, v in told.items() if k in ("source", "figure", "paper", "library"))
    stood = {k: getattr(about, k) or told.get(k, "") for k in ("host", "date", "by")}
    provenance = replace(
        about, tool=told.get("tool", "table"), version=told.get("version", ""), units=f"{stated}, {crossings or 'one way'}",
        said=(*about.said, *named), **stood,
    )
    ranks = int(told["ranks"]) if told.get("ranks", "").isdigit() else 2 if what in MEANINGS else None
    return [Measured(what, tuple(known), provenance, ranks)]


def _declarations(lines: Sequence[Line]) -> tuple[dict[str, str], list[Line]]:
    """Declarations in comments (``# unit: us``), and the lines that are not comments."""
    told: dict[str, str] = {}
    rows = []
    for n, text in lines:
        found = re.match(r"\s*#\s*([A-Za-z]+)\s*[:=]\s*(.+)", text)
        if found and found[1].lower() in _TOLD:
            told[found[1].lower().replace("units", "unit")] = found[2].strip()
        elif text.strip() and not (text.lstrip().startswith("#") and not _is_header(text)):
            rows.append((n, text.lstrip().lstrip("#").strip() if text.lstrip().startswith("#") else text))
    return told, rows


def _is_header(text: str) -> bool:
    """A comment that names columns: ``# size_B time_us``."""
    words = _split(text.lstrip().lstrip("#").strip(), _delimiter(text))
    roles = {c.role for c in (_column_named(w, i) for i, w in enumerate(words)) if c is not None}
    return "size" in roles and bool(roles & {"time", "rate"})


def _meaning_by_rate(rows: Sequence[Line], delimiter: str | None, columns: Mapping[str, _Column], main: _Column, unit: str) -> str:
    """The meaning of the times, from a bandwidth beside them: size over time is one way, twice that is a round trip; "" for neither."""
    rate = columns.get("rate")
    if main.role != "time" or rate is None or not rate.unit:
        return ""
    ratios = []
    for _, text in rows:
        row = _split(text, delimiter)
        try:
            size, time, moved = (
                float(row[columns["size"].index]),
                float(row[main.index]) * TIMES[unit],
                float(row[rate.index]) * RATES[rate.unit],
            )
        except (ValueError, IndexError):
            return ""  # reported with its line where the row is read
        if size > 0 and time > 0:
            ratios.append(moved * time / size)
    return next((way for way, ways in WAYS.items() if ratios and all(abs(r / ways - 1) < _CLOSE for r in ratios)), "")


def _given_unit(option: str | None, told: Mapping[str, str], path: Path) -> str:
    text = option or told.get("unit", "")
    if not text:
        return ""
    unit = _unit(text)
    if not unit:
        raise UsageError(
            f"no unit '{text}' of a time or a bandwidth{nearest(text, (*TIMES, *RATES))}" + ("" if option else f" (in {path})"),
            code="unknown-name",
        )
    return unit


def _given_way(option: str | None, told: Mapping[str, str], path: Path) -> str:
    text = option or told.get("way", "")
    way = re.sub(r"[\s_-]+", " ", text.lower()).strip().replace("oneway", "one way").replace("roundtrip", "round trip")
    if way and way not in WAYS:
        raise UsageError(f"a time is 'one way' or 'round trip', not '{text}'" + ("" if option else f" (in {path})"))
    return way


def _point(
    line: int, row: Sequence[str], count: int, columns: Mapping[str, _Column], main: _Column, unit: str, crossings: int, path: Path
) -> Point | None:
    if len(row) != count:
        raise InputError(f"a row of {len(row)} columns where the header has {count}", path, line, code="no-results")

    def time(column: _Column) -> float:
        return number(row[column.index], path, line, f"a time in {column.unit or unit}") * TIMES.get(column.unit or unit, 1.0)

    size = _size(row[columns["size"].index], path, line)
    more = {f"{k}_us": time(columns[k]) for k in _PARTS if k in columns and row[columns[k].index].strip()}
    if main.role == "time":
        value = time(_Column(main.index, "time", unit, "")) / crossings
        if value <= 0:
            raise InputError(f"a time of {row[main.index]} cannot be: a message takes more than nothing", path, line, code="no-results")
    else:
        rate = number(row[main.index], path, line, f"a bandwidth in {unit}") * RATES[unit]
        if size == 0:
            return None  # the bandwidth of zero bytes determines no time
        if rate <= 0:
            raise InputError(f"a bandwidth of {row[main.index]} {unit} gives no time", path, line, code="no-results")
        value = size / rate
    spread = None
    if "spread" in columns:
        spread = number(row[columns["spread"].index], path, line, "a relative spread")
    elif "deviation" in columns:
        spread = time(columns["deviation"]) / crossings / value
    runs = columns.get("repetitions")
    told = round(number(row[runs.index], path, line, "a number of repetitions")) if runs else 0
    return Point.of_time(size, value, repetitions=told, spread=spread, more=more)
