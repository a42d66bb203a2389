"""Curves and message paths of the period's runtimes in one line, for the tests of their mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrompi.sim import simulate
from retrompi.spec.question import Message, Question, pingpong

GIGABIT = "p4-1800*2@ge-ga620"


def times(model: str, sizes: Sequence[int], platform: str = GIGABIT, mode: str = "distributed", sets: Sequence[str] = ()) -> list[float]:
    """One-way times (us) at ``sizes``, after one round trip that opens connections."""
    program = pingpong([sizes[0], *sizes], 2)
    return [float(r["time_us"]) for r in simulate.benchmark(Question(model, platform, program, mode, list(sets)))][-len(sizes) :]


def time_of(model: str, size: int, *sets: str, **where: str) -> float:
    return times(model, [size], sets=sets, **where)[0]


def mbps(model: str, size: int, *sets: str, **where: str) -> float:
    return size * 8 / time_of(model, size, *sets, **where)


def stages(model: str, size: int, *sets: str, platform: str = GIGABIT, mode: str = "distributed") -> list[tuple[str, str, float]]:
    """(stage, process, us) of one message."""
    told: dict[str, Any] = simulate.explain(Question(model, platform, Message(size), mode, list(sets)))
    return [(s["stage"], s["process"], s["seconds"] * 1e6) for s in told["stages"]]


def total(rows: Sequence[tuple[str, str, float]], stage: str, process: str = "") -> float:
    """Microseconds of a stage, in processes whose name begins with ``process``."""
    return sum(us for s, who, us in rows if s == stage and who.startswith(process))
