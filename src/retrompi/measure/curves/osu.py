"""OSU Micro-Benchmarks: latency, bandwidth and message rate between ranks, collectives, one-sided operations; headers of 2.x to 7.x."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from retrompi.base.errors import InputError
from retrompi.measure.curves.series import Line, Measured, Point, Provenance, cells, digits, number, whole

__all__ = ["detect", "read"]

_TITLE = re.compile(r"#\s*OSU (MPI\S*.*?) Test(?: v(\S+)| \(Version ([^)]+)\))?\s*$")
_NAMES = {
    "Latency": "pingpong",
    "Bandwidth": "bw",
    "Bi-Directional Bandwidth": "bibw",
    "Bidirectional Bandwidth": "bibw",
    "Multiple Bandwidth / Message Rate": "mbw_mr",
    "Multi Latency": "multi_lat",
    "Multi-threaded Latency": "multi_lat",
    "Multi-process Latency": "multi_lat",
    "Broadcast Latency": "bcast",
    "All-to-All Personalized Exchange Latency": "alltoall",
    "All-to-Allv Personalized Exchange Latency": "alltoallv",
    "All-to-Allw Personalized Exchange Latency": "alltoallw",
}
_TIMES = ("avg latency(us)", "latency(us)", "overall(us)")


def detect(lines: Sequence[Line]) -> bool:
    return any(_TITLE.match(text) for _, text in lines)


def _what(title: str) -> str:
    """``MPI-CUDA Broadcast Latency`` -> ``bcast``; for an operation unknown here, its words."""
    kind = title.split(" ", 1)
    rest = kind[1] if len(kind) > 1 else ""
    one_sided = kind[0].removeprefix("MPI").lstrip("_-")
    if one_sided and title.startswith("MPI_"):
        return re.sub(r"\W+", "_", f"{one_sided} {rest}".lower()).strip("_").removesuffix("_latency")
    persistent, waits = " Persistent" in rest, not rest.lower().startswith("non-blocking ")
    rest = re.sub(r"(?i) Persistent|^Non-blocking ", "", rest)
    name = _NAMES.get(rest) or re.sub(r"\W+", "_", rest.removesuffix(" Latency").lower()).strip("_")
    name = name if waits else f"i{name}"
    return f"{name}_persistent" if persistent else name


def read(lines: Sequence[Line], path: Path, about: Provenance) -> list[Measured]:
    """One series per title. Raises InputError with the line for an invalid row of its table."""
    found: list[Measured] = []
    title: re.Match[str] | None = None
    columns: list[str] = []
    facts: dict[str, Any] = {}
    points: list[Point] = []

    def end() -> None:
        if title is None:
            return
        if not points:
            raise InputError(
                f"no results of {title[1]}: the benchmark ended before it printed any",
                path,
                lines[-1][0] if lines else None,
                code="no-results",
            )
        told = replace(about, tool="OSU Micro-Benchmarks", version=title[2] or title[3] or "", units="us, MB/s of 10^6 B")
        found.append(Measured(_what(title[1]), tuple(points), told, facts.get("ranks"), facts.get("pairs"), facts.get("window")))

    for n, text in lines:
        begins = _TITLE.match(text)
        if begins:
            end()
            title, columns, points = begins, [], []
            facts = {"ranks": 2} if _what(begins[1]) in ("pingpong", "bw", "bibw") else {}
        elif text.lstrip().startswith("#") or re.match(r"\s+[A-Z].*\(us\)", text):  # osu_ibarrier's header has no '#'
            pairs = re.search(r"pairs: (\d+)", text)
            window = re.search(r"window size: (\d+)", text)
            if pairs:
                facts |= {"pairs": int(pairs[1]), "ranks": 2 * int(pairs[1])}
            if window:
                facts["window"] = int(window[1])
            head = re.sub(r"\s+\(", "(", text.lstrip("# ")).strip()
            if title is not None and re.search(r"\((us|MB/s)\)|MB/s", head):
                columns = [c.lower() for c in re.split(r"\s{2,}|\t", re.sub(r"(\)|Iterations|MB/s|Size)(?=\s)", r"\1  ", head)) if c]
        elif text.strip() and title is not None and columns:
            if not re.match(r"\s*\d", text):
                continue  # output of the library or the launcher between rows
            point = _point(text, columns, path, n)
            if point is not None:
                points.append(point)
    end()
    return found


def _point(text: str, columns: Sequence[str], path: Path, line: int) -> Point | None:
    row = dict(zip(columns, cells(text, len(columns), path, line, columns), strict=True))
    size = whole(row["size"], path, line, "bytes") if "size" in row else 0
    rate = next((c for c in columns if c in ("bandwidth(mb/s)", "bi-bandwidth(mb/s)", "mb/s")), None)
    if rate is not None:
        value = number(row[rate], path, line, "a rate in MB/s")
        messages = number(row.get("messages/s", "0"), path, line, "a rate of messages")
        if messages > 0:
            return Point.of_time(size, 1e6 / messages, spread=digits(row["messages/s"], messages))
        # Rounded to hundredths, the rate of a byte on a slow machine is 0, from which no time follows.
        return Point(size, size / value, value, spread=digits(row[rate], value)) if value > 0 else None
    times = [c for c in _TIMES if c in row] or [c for c in columns if c.endswith("(us)")]
    if not times:
        raise InputError(f"no column of this table is a time or a rate: {', '.join(columns)}", path, line, code="no-results")

    def time(name: str) -> float | None:
        return number(row[name], path, line, "a time in us") if name in row else None

    value = number(row[times[0]], path, line, "a time in us")
    runs = row.get("iterations", "0")
    return Point.of_time(
        size,
        value,
        repetitions=whole(runs, path, line, "iterations"),
        spread=digits(row[times[0]], value),
        low_us=time("min latency(us)"),
        high_us=time("max latency(us)"),
    )
