"""Intel MPI Benchmarks (formerly Pallas MPI Benchmarks): every table of a file, one series each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from retrompi.base.errors import InputError
from retrompi.measure.curves.series import Line, Measured, Point, Provenance, cells, digits, number, whole

__all__ = ["detect", "read"]

_HEAD = re.compile(r"#\s+(?:Intel\s*\((?:R|TM)\)|PALLAS|Pallas) MPI Benchmarks?(?: Suite)?,?\s*(?:V(?:ersion)?\s*)?([\w. ]*)", re.I)
_BEGIN = re.compile(r"#\s*Benchmarking\s+(\S+)")
_RANKS = re.compile(r"#\s*\(?\s*#processes\s*=\s*(\d+)")
_GROUPS = re.compile(r"#\s*\(?\s*(\d+) groups? of (\d+) processes")
_NAMES = {
    "PingPong": "pingpong", "PingPing": "pingping", "PingPingSpecificSource": "pingping", "PingPongSpecificSource": "pingpong",
    "Sendrecv": "sendrecv", "Exchange": "exchange", "Uniband": "mbw_mr", "Biband": "bibw",
}


def detect(lines: Sequence[Line]) -> bool:
    return any(_BEGIN.match(text) or _HEAD.match(text) for _, text in lines)


def _fact(lines: Sequence[Line], name: str) -> str:
    found = (re.match(rf"#\s*{name}\s*:\s*(.+)", text) for _, text in lines)
    return next((m[1].strip() for m in found if m), "")


def read(lines: Sequence[Line], path: Path, about: Provenance) -> list[Measured]:
    """One series per table; several for a benchmark that was run with several numbers of processes."""
    head = next((m for m in (_HEAD.match(text) for _, text in lines) if m), None)
    said = [f"{name}: {_fact(lines, name)}" for name in ("Machine", "System", "Release", "MPI Version") if _fact(lines, name)]
    told = replace(
        about, tool="Intel MPI Benchmarks", version=head[1].strip() if head else "", units="us, MB/s as printed",
        date=about.date or _fact(lines, "Date"), said=(*about.said, *said),
    )
    found: list[Measured] = []
    what, begun = "", 0
    ranks: int | None = None
    pairs: int | None = None
    columns: list[str] = []
    points: list[Point] = []

    def end() -> None:
        if what and columns and points:
            streams = pairs if pairs is not None else ranks // 2 if ranks and what in ("mbw_mr", "bibw") else None
            found.append(Measured(what, tuple(points), told, ranks, streams))
        elif what and begun:
            raise InputError(f"no results of {what} in this table", path, begun, code="no-results")

    for n, text in lines:
        begins = _BEGIN.match(text)
        if begins:
            end()
            name = begins[1]
            what, ranks, pairs, columns, points, begun = _NAMES.get(name, name.lower()), None, None, [], [], n
        elif text.lstrip().startswith("#") and what:
            of = _RANKS.match(text)
            groups = _GROUPS.search(text)
            if of:
                ranks = int(of[1])
            if groups:
                pairs = int(groups[1])
            if re.search(r"#bytes|#repetitions", text):
                columns = text.split()
        elif columns and text.strip():
            if not re.match(r"\s*\d", text):
                continue
            points.append(_point(text, columns, what, path, n))
    end()
    if not found:
        raise InputError("no table of a benchmark in this output of the Intel MPI Benchmarks", path, code="no-results")
    return found


def _point(text: str, columns: Sequence[str], what: str, path: Path, line: int) -> Point:
    row = dict(zip(columns, cells(text, len(columns), path, line, columns), strict=True))
    size = whole(row["#bytes"], path, line, "bytes") if "#bytes" in row else 0
    runs = whole(row.get("#repetitions", "0"), path, line, "repetitions")
    if "Msg/sec" in row:
        rate = number(row["Msg/sec"], path, line, "a rate of messages")
        if rate <= 0:
            raise InputError(f"a rate of {row['Msg/sec']} messages a second gives no time", path, line, code="no-results")
        return Point.of_time(size, 1e6 / rate, repetitions=runs)
    low, high = (number(row[k], path, line, "a time in us") if k in row else None for k in ("t_min[usec]", "t_max[usec]"))
    # Its throughput is computed from the slowest rank's time for exchanges; for collectives both OSU and IMB show the mean over ranks.
    name = next((k for k in (("t_max[usec]",) if what in ("sendrecv", "exchange") else ("t[usec]", "t_avg[usec]")) if k in row), None)
    name = name or next((k for k in columns if k.startswith("t") and k.endswith("[usec]")), None)
    if name is None:
        raise InputError(f"no column of this table is a time: {' '.join(columns)}", path, line, code="no-results")
    time = number(row[name], path, line, "a time in us")
    return Point.of_time(size, time, repetitions=runs, spread=digits(row[name], time), low_us=low, high_us=high)
