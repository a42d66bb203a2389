"""From recorded values to one number each: low quantiles within a round, medians over rounds, and the spread of rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from retrompi.measure.fit.segments import partitions, starts_of
from retrompi.measure.this_machine.switches import spread

if TYPE_CHECKING:
    from retrompi.measure.this_machine.recording import MachineRecording

__all__ = ["Estimate", "copies", "first_use", "levels", "one_way", "stream_gap", "times", "work"]

NS = 1e-9
QUARTILE, MEDIAN = 2, 3
"""Indices of the lower quartile and the median among the quantiles that the programs print."""


def one_way(batches: Sequence[float]) -> float:
    """A round's time from those of its batches: their lower quartile. Interference makes a batch longer, never shorter."""
    s = sorted(batches)
    return s[(len(s) - 1) // 4]


@dataclass(frozen=True)
class Estimate:
    """A time in seconds: the median over rounds; ``low`` and ``high`` enclose the middle 80 % of all batches, ``deviation`` is relative."""

    value: float
    low: float
    high: float
    deviation: float
    rounds: int


def _of(rounds: Sequence[float], everything: Sequence[float]) -> Estimate:
    middle = median(rounds)
    ordered = sorted(everything)
    low, high = ordered[(len(ordered) - 1) // 10], ordered[(9 * (len(ordered) - 1) + 9) // 10]
    return Estimate(middle * NS, low * NS, high * NS, spread(rounds) / middle if middle > 0 else 0.0, len(rounds))


def times(recording: MachineRecording, what: str, kind: str = "same") -> dict[int, Estimate]:
    """Size -> time of a measurement by batches (pingpong, exchange, requests, rotating)."""
    return {s: _of([one_way(r) for r in rounds], [v for r in rounds for v in r]) for s, rounds in recording.of(what, kind).items()}


def median_times(recording: MachineRecording, what: str, kind: str = "same") -> dict[int, float]:
    """Size -> seconds of a measurement by quantiles (send, send_back, late), less the cost of reading the clock."""
    clock = costs(recording).get("clock", 0.0)
    return {s: max(0.0, median([r[MEDIAN] for r in rounds]) * NS - clock) for s, rounds in recording.of(what, kind).items()}


def stream_gap(recording: MachineRecording, what: str, kind: str = "same") -> dict[int, float]:
    """Size -> seconds that a message adds to a ``stream`` or, for ``both``, a message in each direction."""
    out = {}
    for size, rounds in recording.of(what, kind).items():
        gaps = []
        for values in rounds:
            half = len(values) // 2
            short, long = values[:half], values[half:]
            gaps.append((long[1 + QUARTILE] - short[1 + QUARTILE]) / (long[0] - short[0]))
        out[size] = max(0.0, median(gaps)) * NS
    return out


def first_use(recording: MachineRecording, kind: str = "same") -> float:
    """Seconds by which the first exchanges of two ranks exceed later ones, in total: connections, first page accesses."""
    rounds = [r for all_rounds in recording.of("first", kind).values() for r in all_rounds]
    # A disturbance of microseconds is negligible in a batch, but not in single messages.
    return max(0.0, one_way([r[0] for r in rounds]) * NS) if rounds else 0.0


OPERATIONS = ("barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall")


def work(recording: MachineRecording) -> dict[str, dict[int, float]]:
    """Costs of collectives other than messages -> {bytes: seconds}; {} for a recording without such measurements.

    ``call OPERATION``: the call on MPI_COMM_SELF; ``combine``: MPI_Reduce_local; ``buffers 1``, ``buffers 2``: allocating, filling and
    freeing that many temporary buffers, less the same copies between ordinary buffers.
    """
    found = {f"call {name}": _values(recording, f"self_{name}") for name in OPERATIONS}
    found["combine"] = _values(recording, "combine")
    plain = _values(recording, "plain")
    for count, name in ((1, "one_buffer"), (2, "two_buffers")):
        filled = _values(recording, name)
        found[f"buffers {count}"] = {s: max(0.0, t - count * plain[s]) for s, t in filled.items() if s in plain}
    return {what: sizes for what, sizes in found.items() if sizes}


def _values(recording: MachineRecording, what: str) -> dict[int, float]:
    return {s: e.value for s, e in times(recording, what).items()}


def costs(recording: MachineRecording) -> dict[str, float]:
    """Seconds of clock, wtime, syscall, iprobe, test, line, switch, less the cost of an empty call."""
    of = {what: recording.of(what) for what in ("nothing", "clock", "wtime", "syscall", "iprobe", "test", "line", "switch")}
    found = {what: median([v for r in sizes[0] for v in r]) * NS for what, sizes in of.items() if sizes}
    nothing = found.pop("nothing", 0.0)
    return {k: max(0.0, v - nothing) if k not in ("line", "switch") else v for k, v in found.items()}


def rates(recording: MachineRecording) -> dict[str, float]:
    """Floating point operations a second of one core alone (``flops``) and beside a busy one (``flops_both``)."""
    out = {}
    for what in ("flops", "flops_both"):
        values = [sorted(r)[3] for rounds in recording.of(what).values() for r in rounds]
        if values:
            out[what] = median(values)
    return out


def copies(recording: MachineRecording) -> dict[int, float]:
    """Working set in bytes (source and target) -> bytes copied a second."""
    found = {}
    for size, rounds in recording.of("copy").items():
        found[size] = (size // 2) / (median([min(r) for r in rounds]) * NS)
    return found


def levels(rates_by_set: Mapping[int, float], known: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The memory levels visible in copy rates: rows low_B, high_B (working sets), rate_Bps, and the matching level and size of sysfs.

    The logarithms of the rates are cut into the number of constant pieces that minimises BIC; pieces one size wide, or that differ by less
    than a tenth from the previous one, are ignored.
    """
    sizes = sorted(rates_by_set)
    y = [math.log(rates_by_set[s]) for s in sizes]
    cuts = _pieces(y) if y else []
    rows: list[dict[str, Any]] = []
    for i, j in cuts:
        rate = math.exp(median(y[i:j]))
        if rows and abs(rate / rows[-1]["rate_Bps"] - 1) < 0.10:
            rows[-1]["high_B"] = sizes[j - 1]
            continue
        rows.append({"low_B": sizes[i], "high_B": sizes[j - 1], "rate_Bps": rate})
    for row in rows:
        middle = math.sqrt(row["low_B"] * row["high_B"])
        fits = [c for c in known if c["size_B"] >= middle]
        row["sysfs"] = f"L{fits[0]['level']} {fits[0]['size_B'] // 1024} KiB" if fits else "memory"
    return rows


def _pieces(y: Sequence[float], most: int = 6) -> list[tuple[int, int]]:
    """Constant pieces [i, j) of a sequence, at least two long, by least squares and BIC."""
    n = len(y)
    costs = np.full((n, n), np.inf)
    for i, j in combinations_with_replacement(range(n), 2):
        mean = sum(y[i : j + 1]) / (j + 1 - i)
        costs[i, j] = sum((v - mean) ** 2 for v in y[i : j + 1])
    best, cuts = partitions(costs, most)
    scores = {k: n * math.log(cost / n + 1e-4) + 2 * k * math.log(n) for k, cost in best.items() if math.isfinite(cost)}
    starts = starts_of(cuts, min(scores, key=lambda k: scores[k]), n)
    return list(pairwise((*starts, n)))
