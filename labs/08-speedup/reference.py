"""Lab 08: speed-ups by replaying the captured NAS traces, and what Amdahl's law makes of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from retrompi import traces
from retrompi.base.paths import reference_dir
from retrompi.labs.bench import Bench
from retrompi.labs.student import Parameters
from retrompi.spec.conditions.timed_section import Program
from retrompi.spec.question import Question, Replay
from retrompi.store.lookup import answer

FILES = {1: "one.tar.zst", 4: "four.tar.zst", 8: "eight.tar.zst"}
TITLES = {"cg": "CG, conjugate gradients", "mg": "MG, multigrid", "is": "IS, an integer sort"}
SYSTEMS = {"linux": ("mpibip", "Linux"), "windows": ("mpibip:windows", "Windows 2000")}
PLATFORM = "myrinet-piii"
PAIRED = "n1,n1,n2,n2,n3,n3,n4,n4"


def derive(p: Parameters) -> dict[str, str]:
    """The names that the text has besides the parameters."""
    model, system = SYSTEMS[p["system"]]
    flops = p.text("flops").replace(" ", "")
    return {"title": TITLES[p["program"]], "os": system, "options": f"-m {model} -p {PLATFORM} --set platform.host.flops={flops}"}


def _trace(p: Parameters, ranks: int) -> Path:
    return reference_dir() / "traces" / f"npb3.3.1-{p['program']}-A-{ranks}.tar.zst"


def prepare(folder: Path, p: Parameters) -> None:
    """The student's traces."""
    for ranks, name in FILES.items():
        shutil.copyfile(_trace(p, ranks), folder / name)


def replayed(
    p: Parameters, bench: Bench, ranks: int, mode: str = "distributed", share: float = 0.0, own: bool = True
) -> list[dict[str, Any]]:
    """The rows of a replay, one a rank."""
    sets = {"platform.host.flops": p.text("flops")} if own else {}

    def work() -> list[dict[str, Any]]:
        trace = traces.read_once(_trace(p, ranks))
        workload = Replay(trace, FILES[ranks], Program(memory_share=share))
        return answer(bench.store, Question(SYSTEMS[p["system"]][0], PLATFORM, workload, mode, sets)).rows

    rows: list[dict[str, Any]] = bench.once(("replay", tuple(sorted(p.texts.items())), ranks, mode, share, own), work)
    return rows


def seconds(rows: list[dict[str, Any]]) -> float:
    """The time of a job: that of its last rank, s."""
    return max(float(r["time_s"]) for r in rows)


def fraction(speedup: float, ranks: int) -> float:
    """Karp and Flatt's serial fraction."""
    return (1 / speedup - 1 / ranks) / (1 - 1 / ranks)


def amdahl(f: float, ranks: float) -> float:
    """The speed-up after Amdahl."""
    return 1 / (f + (1 - f) / ranks)


def fitted(s4: float, s8: float) -> float:
    """The fraction that fits both speed-ups best."""
    x4, x8 = 1 - 1 / 4, 1 - 1 / 8
    return (x4 * (1 / s4 - 1 / 4) + x8 * (1 / s8 - 1 / 8)) / (x4 * x4 + x8 * x8)


def expected(p: Parameters, bench: Bench) -> dict[str, Any]:
    """Task -> answer."""
    t = {n: seconds(replayed(p, bench, n)) for n in FILES}
    s4, s8 = t[1] / t[4], t[1] / t[8]
    f4, f8, fit = fraction(s4, 4), fraction(s8, 8), fitted(s4, s8)
    shared = seconds(replayed(p, bench, 8, PAIRED, p["share"]))
    cost = {"4x1": 4 * t[4], "4x2": 4 * shared, "8x1": 8 * t[8]}
    return {
        "time-one": t[1],
        "time-four": t[4],
        "time-eight": t[8],
        "speedup": s8,
        "efficiency": s8 / 8,
        "fraction-few": f4,
        "amdahl": amdahl(f4, 8),
        "fraction-more": f8,
        "trend": "rises" if f8 > 1.1 * f4 else "falls" if f8 < f4 / 1.1 else "stays",
        "fit": fit,
        "far": amdahl(fit, p["many"]),
        "in-mpi": max(float(r["mpi_s"]) for r in replayed(p, bench, 8)) / t[8],
        "what": "undivided",
        "stretch": 1 + p["share"] ** 2,
        "shared-time": shared,
        "shared-ratio": shared / t[8],
        "cheapest": sorted(cost, key=cost.__getitem__),
    }


def mistakes(p: Parameters, bench: Bench) -> dict[str, dict[str, Any]]:
    """Task -> mistake -> the value that it leads to."""
    right = expected(p, bench)
    t = {1: right["time-one"], 4: right["time-four"], 8: right["time-eight"]}
    s4, s8 = t[1] / t[4], t[1] / t[8]
    fit = right["fit"]
    return {
        "time-one": {"plain": seconds(replayed(p, bench, 1, own=False))},
        "time-four": {"plain": seconds(replayed(p, bench, 4, own=False))},
        "time-eight": {"plain": seconds(replayed(p, bench, 8, own=False))},
        "speedup": {"from-four": t[4] / t[8]},
        "efficiency": {"four": s4 / 4},
        "fraction-few": {"not-divided": 1 / s4 - 1 / 4, "lost": 1 - s4 / 4},
        "amdahl": {"limit": 1 / right["fraction-few"], "measured": s8},
        "fraction-more": {"not-divided": 1 / s8 - 1 / 8, "four": right["fraction-few"]},
        "fit": {"first": right["fraction-few"], "last": right["fraction-more"]},
        "far": {"limit": 1 / fit, "from-four": amdahl(right["fraction-few"], p["many"])},
        "in-mpi": {"least": min(float(r["mpi_s"]) for r in replayed(p, bench, 8)) / t[8]},
        "stretch": {"sum": 1 + p["share"]},
        "shared-time": {"no-share": seconds(replayed(p, bench, 8, PAIRED)), "own": t[8]},
        "cheapest": {},
    }


def statements(p: Parameters, bench: Bench) -> dict[str, bool]:
    """Sentence of the lab -> whether it is true for the student."""
    right = expected(p, bench)
    few, more = right["fraction-few"], right["fraction-more"]
    one, eight = replayed(p, bench, 1), replayed(p, bench, 8)
    computing = [float(r["time_s"]) - float(r["mpi_s"]) for r in eight]
    alone = sum(float(r["time_s"]) - float(r["mpi_s"]) for r in one)
    cost = sorted((4 * right["time-four"], 4 * right["shared-time"], 8 * right["time-eight"]))
    return {
        "a law that your two fractions contradict": max(few / more, more / few) > 1.1,
        "My two serial fractions differ by more than a quarter": max(few / more, more / few) > 1.25,
        "they differ by more than a tenth": max(few / more, more / few) > 1.1,
        "from 4 to 8 machines the job becomes shorter, but the efficiency falls": (
            right["time-eight"] < right["time-four"] and right["efficiency"] < right["time-one"] / right["time-four"] / 4
        ),
        "Two ranks on each machine take longer than a machine for each rank": right["shared-ratio"] > 1.05,
        "Without contention it would be smaller": seconds(replayed(p, bench, 8, PAIRED)) < right["shared-time"],
        "and there 8 machines come last": right["cheapest"][-1] == "8x1" and cost[2] > 1.01 * cost[1] > 1.02 * cost[0],
        "No part of this program is computed by one rank alone while the others are idle.": max(computing) < 1.5 * min(computing),
        "look at the column 'computing': does rank 0 compute much longer than the others?": computing[0] < 1.1 * sum(computing) / 8,
        "I left out messages and redundant computation": sum(computing) > 1.02 * alone and right["in-mpi"] > 0.1,
    }
