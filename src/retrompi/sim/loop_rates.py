"""The rates of the Rinf1 benchmark from a run, as measured with a clock of limited resolution."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from retrompi.base.units import PS
from retrompi.spec.machine import kernels

if TYPE_CHECKING:
    from retrompi.sim.result import Result

__all__ = ["readings", "table"]


def readings(result: Result, tick: float) -> list[dict[str, Any]]:
    """Rows kernel, n, repetitions, seconds, clock_s, rate, seen from the marks ``kernel NAME n N reps R`` of rank 0.

    ``seconds`` is the elapsed time, ``clock_s`` the reading of a clock with period ``tick`` (s); ``rate`` and ``seen`` are the
    operations per second by the former and the latter.
    """
    marks = [m for m in result.marks if m["rank"] == 0]
    tick_ps = round(tick / PS)
    rows = []
    for mark, after in pairwise(marks):
        words = str(mark["label"]).split()
        if len(words) != 6 or words[::2] != ["kernel", "n", "reps"]:
            continue
        which, n, reps = kernels.loop(words[1]), int(words[3]), int(words[5])
        passed = after["time_ps"] - mark["time_ps"]
        # No rate can be computed from zero ticks: at least one is assumed.
        ticks = max(1, after["time_ps"] // tick_ps - mark["time_ps"] // tick_ps)
        done = which.counted * which.turns(n) * reps
        rows.append({"kernel": which.key, "n": n, "repetitions": reps, "seconds": passed * PS, "clock_s": ticks * tick,
                     "rate": done / (passed * PS), "seen": done / (ticks * tick)})
    return rows


def table(rows: Iterable[Mapping[str, Any]], machine: kernels.KernelMachine | None = None) -> list[dict[str, Any]]:
    """One row per loop: kernel, title, statement, claim, min, max (flop/s by the clock), at_min, at_max (lengths), rinf, n_half.

    The last two are None without a ``machine``.
    """
    by: dict[str, list[Mapping[str, Any]]] = {}
    for r in rows:
        by.setdefault(str(r["kernel"]), []).append(r)
    out = []
    for key, mine in by.items():
        which = kernels.loop(key)
        low, high = min(mine, key=lambda r: r["seen"]), max(mine, key=lambda r: r["seen"])
        rinf, half = kernels.in_cache(which, machine) if machine else (None, None)
        out.append({"kernel": key, "title": which.title, "statement": which.statement, "claim": which.claim, "min": low["seen"],
                    "at_min": low["n"], "max": high["seen"], "at_max": high["n"], "rinf": rinf, "n_half": half})
    return out
