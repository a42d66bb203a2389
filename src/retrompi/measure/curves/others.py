"""mpptest (Gropp and Lusk, with MPICH 1) and the benchmarks of mpi4py."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

from retrompi.base.errors import InputError
from retrompi.measure.curves.series import Line, Measured, Point, Provenance, number, whole

__all__ = ["detect_mpi4py", "detect_mpptest", "read_mpi4py", "read_mpptest"]

_MPPTEST = re.compile(r"\s*#\s*p0\s+p1\s+dist\s+len\s+ave time \(us\)")


def detect_mpptest(lines: Sequence[Line]) -> bool:
    return any(_MPPTEST.match(text) for _, text in lines)


def read_mpptest(lines: Sequence[Line], path: Path, about: Provenance) -> list[Measured]:
    """One series: the average one-way time of a message (half of a round trip, its default) against its length."""
    kind = next((m[1] for m in (re.search(r"'type = ([^']*)'", text) for _, text in lines) if m), "")
    host = next((m[1] for m in (re.search(r"Comm Perf for MPI \(([^)]*)\)", text) for _, text in lines) if m), "")
    points, begun = [], False
    for n, text in lines:
        if _MPPTEST.match(text):
            begun = True
        elif begun and re.match(r"\s*\d", text):
            row = text.split()
            if len(row) != 6:
                raise InputError(
                    f"a row of {len(row)} columns where mpptest has 6: p0, p1, dist, len, time in us, rate", path, n, code="no-results"
                )
            points.append(Point.of_time(whole(row[3], path, n, "bytes"), number(row[4], path, n, "a time in us")))
    if not points:
        raise InputError("no row below mpptest's header", path, code="no-results")
    what = "exchange" if "halo" in kind else "pingping" if "head" in kind else "pingpong"
    said = (*about.said, f"type: {kind}") if kind else about.said
    told = replace(about, tool="mpptest", units="us, B/s", host=about.host or host, said=said)
    return [Measured(what, tuple(points), told, 2 if what == "pingpong" else None)]


_PINGPONG = re.compile(r"\s*(\d+)\s+([\d.]+|nan|inf)(?:\s*\|\s*([\d.e+-]+)\s*(?:\u00b1|\+/-)\s*([\d.e+-]+)\s+(\d+))?\s*$")
_RING = re.compile(r"\s*time for (\d+) loops = ([\d.e+-]+) seconds \((\d+) processes, (\d+) bytes\)")


def detect_mpi4py(lines: Sequence[Line]) -> bool:
    return any(text.startswith("# MPI PingPong Test") or _RING.match(text) for _, text in lines)


def read_mpi4py(lines: Sequence[Line], path: Path, about: Provenance) -> list[Measured]:
    """``pingpong``: mean and deviation of the one-way time; ``ringtest``: a hop of a ring, one point per size, mean of its runs."""
    version = next((m[1] for m in (re.search(r"mpi4py[ -]v?(\d[\w.]*)", text) for _, text in lines) if m), "")
    told = replace(about, tool="mpi4py.bench", version=version, units="s, MB/s of 10^6 B")
    points, begun = [], False
    rings: dict[tuple[int, int], list[tuple[float, int]]] = {}
    for n, text in lines:
        ring = _RING.match(text)
        if text.startswith("# MPI PingPong Test"):
            begun = True
        elif ring:
            loops, seconds, ranks, size = int(ring[1]), float(ring[2]), int(ring[3]), int(ring[4])
            rings.setdefault((ranks, size), []).append((seconds / (loops * ranks) * 1e6, loops))
        elif begun and text.strip() and not text.startswith("#"):
            row = _PINGPONG.match(text)
            if row is None:
                raise InputError(
                    "a row of mpi4py's pingpong is: bytes, MB/s | mean in s \u00b1 deviation in s, samples", path, n, code="no-results"
                )
            size = int(row[1])
            if row[3] is None:  # --no-stats
                rate = number(row[2], path, n, "a rate in MB/s")
                if rate <= 0:
                    raise InputError(f"a rate of {row[2]} MB/s gives no time; leave out --no-stats", path, n, code="no-results")
                points.append(Point(size, size / rate, rate))
                continue
            mean, deviation, runs = number(row[3], path, n, "a time in s"), number(row[4], path, n, "a deviation in s"), int(row[5])
            # The output has the scatter of single messages; a curve needs that of their mean.
            spread = deviation / mean / max(1, runs) ** 0.5 if mean else None
            points.append(Point.of_time(size, mean * 1e6, repetitions=runs, spread=spread))
    found = [Measured("pingpong", tuple(points), told, 2)] if points else []
    for ranks in sorted({r for r, _ in rings}):
        hops = []
        for (_, size), runs_of in sorted((k, v) for k, v in rings.items() if k[0] == ranks):
            times = [t for t, _ in runs_of]
            spread = stdev(times) / fmean(times) / len(times) ** 0.5 if len(times) > 1 else None
            hops.append(Point.of_time(size, fmean(times), repetitions=sum(n for _, n in runs_of), spread=spread))
        found.append(Measured("ring", tuple(hops), told, ranks))
    if not found:
        raise InputError("no row below mpi4py's header", path, code="no-results")
    return found
