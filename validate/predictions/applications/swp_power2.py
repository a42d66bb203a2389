"""SWEEP3D on six POWER2 nodes of 1995, predicted: ``python validate/predictions/applications/swp_power2.py`` writes swp-power2.csv.

The open rows (SWP-010, SWP-012: processor time of one process on each grid) fix computation and nothing else: a factor on the roofline's
time, and what a line of cells takes besides its cells. Half of the draws have these two for both grids, half a factor for each grid. Model
and network of the nodes, which MPI it was and how AIX was set up are not stated: a draw has one of each (`setting`). ``--before`` says what
was computed of the open rows without them.
"""

from __future__ import annotations

import argparse
import math
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from _common import DRAWS, ELSEWHERE, SEED, SPEC, Row, with_intervals, write
from _sp2 import MODELS, user_space

from retrompi.sim import simulate
from retrompi.sim.resolved import Resolved
from retrompi.spec.question import Question, Replay
from retrompi.studies.draws.uncertainty import log_job, question_of
from retrompi.traces.sweep3d import sweep3d

FILE = Path(__file__).parent / "swp-power2.csv"
GRID = (2, 3)
OBSERVABLES = ("elapsed time, MPI", "processor time of the master, MPI", "elapsed time, PVM", "processor time of the master, PVM",
               "elapsed time, PVM over MPI")
"""The rows of a case, and the ratio of two, which has no error of computation in it."""
PVM = ("pvm.route=direct", "pvm.encoding=inplace")
"""What the program asks for (code: SWEEP3D 2.2b, msg_stuff.cpp)."""
HOSTS = ("ibm-sp2-wide", "ibm-sp2-thin", "ibm-power2")
"""POWER2 of 66 MHz with 256 KB of data cache (wide nodes; the RS/6000 590), with 64 KB (thin nodes; the 390), of 71.5 MHz (the 990)."""
NETWORKS = ("fddi", "hub-10", "sp2-switch")
BUFFERS = ("16KiB", "64KiB")
"""Of a socket: AIX's default, or as a network like these is set up (assumed); p4 left them alone (code: MPICH 1.0.11, p4_sock_util.c)."""


class Case(NamedTuple):
    """A cube of ``side`` cells; the open processor time; the first row's id."""

    side: int
    mk: int
    mmi: int
    processor_s: float
    first: int


CASES = (Case(150, 30, 2, 1970.94, 1), Case(50, 10, 3, 81.37, 5))


class Setting(NamedTuple):
    """A draw's machine: ``mpi`` is ch_p4 or one that looks for messages itself, whose waits are processor time."""

    host: str
    network: str
    mpi: str
    buffer: str
    lines: bool
    elsewhere: float


def setting(draw: int | None) -> Setting:
    if draw is None:
        return Setting(HOSTS[0], NETWORKS[0], "mpich", BUFFERS[0], True, 1.0)
    rng = Random(SEED + 100 + draw)
    host, network = rng.choice(HOSTS), NETWORKS[draw % 3]
    mpi = rng.choice(("mpich", "mpich", *MODELS)) if network == "sp2-switch" else "mpich"
    buffer = BUFFERS[1] if network == "sp2-switch" else rng.choice(BUFFERS)
    return Setting(host, network, mpi, buffer, draw // 3 % 2 == 0, math.exp(rng.gauss(0, ELSEWHERE)))


def asked(case: Case, model: str, at: Setting, grid: tuple[int, int], computation: float = 1.0, half: float = 0.0) -> Question:
    p, q = grid
    trace = sweep3d(case.side, case.side, case.side, p, q, case.mk, case.mmi, pvm=model == "pvm", computation=computation, half=half)
    sets = {"pvm": PVM, "mpich": (f"mpich.sockbuf={at.buffer}",)}.get(model) or user_space(model, at.host)
    return Question(model, f"{at.host}*{p * q}@{at.network}", Replay(trace), "distributed", overrides=list(sets) if p * q > 1 else [])


def times(question: Question, draw: int | None) -> tuple[float, float]:
    """Elapsed seconds between the marks, and the master's computation. A draw has the library's discrepancy, on what is not computation."""
    one = Resolved.of(question)
    run = simulate.run(question if draw is None else question_of(one, draw, SPEC))
    at = {row["label"]: row["time_s"] for row in run.marks}
    computed = min(run.per_rank[0]["compute_s"], at["end"] - at["begin"])
    more = 1.0 if draw is None else math.exp(float(log_job(one, SPEC)[draw]))
    return computed + (at["end"] - at["begin"] - computed) * more, computed


@cache
def factors(case: Case, draw: int | None) -> dict[str, float]:
    """``computation`` and ``half`` of the generated program, as the open rows have it; computation is linear in both."""
    at = setting(draw)

    def alone(one: Case, half: float) -> float:
        return times(asked(one, "mpich", at, (1, 1), half=half), draw)[1]

    if not at.lines:
        return {"computation": case.processor_s / alone(case, 0.0)}
    (big, more_big), (small, more_small) = ((alone(one, 0.0), alone(one, 1.0) - alone(one, 0.0)) for one in CASES)
    ratio = CASES[1].processor_s / CASES[0].processor_s
    half = max(0.0, (ratio * big - small) / (more_small - ratio * more_big))
    return {"computation": CASES[0].processor_s / (big + half * more_big), "half": half}


def values(case: Case, draw: int | None) -> list[float]:
    """As OBSERVABLES. Processor time is the user's: computation, and waits where the library looks for messages itself; that of copies
    and calls of the library is left out (below 1 % of it)."""
    at, found = setting(draw), []
    own = factors(case, draw)
    more = {**own, "computation": own["computation"] * at.elsewhere}
    for model in (at.mpi, "pvm"):
        elapsed, computed = times(asked(case, model, at, GRID, **more), draw)
        found += [elapsed, elapsed if model in MODELS else computed]
    return [*found, found[2] / found[0]]


def named(case: Case) -> list[str]:
    rows = [f"SWP-{case.first + i:03}" for i in range(4)]
    return [*rows, f"{rows[2]}/{rows[0]}"]


def nominal(case: Case) -> list[Row]:
    told = zip(named(case), OBSERVABLES, values(case, None), strict=True)
    return [Row(name, case.side, GRID[0] * GRID[1], f'"{what}"', value) for name, what, value in told]


def predict(case: Case) -> list[Row]:
    told: dict[str, list[float]] = {}
    for draw in range(DRAWS):
        for name, value in zip(named(case), values(case, draw), strict=True):
            told.setdefault(name, []).append(value)
    return with_intervals(nominal(case), told)


def print_before() -> None:
    for host in HOSTS:
        at = Setting(host, NETWORKS[0], "mpich", BUFFERS[0], True, 1.0)
        alone = [times(asked(case, "mpich", at, (1, 1)), None)[1] / case.processor_s for case in CASES]
        print(f"{host}, the roofline:", "; ".join(f"{case.side}^3 {ratio:.2f}" for case, ratio in zip(CASES, alone, strict=True)))
    print("nominal:", ", ".join(f"{name} {value:.3g}" for name, value in factors(CASES[0], None).items()))


def print_settings() -> None:
    """What each assumption does to the predictions, the others being nominal."""
    at, own = setting(None), [factors(case, None) for case in CASES]
    for one in (at, *(at._replace(network=n, buffer=b) for n in NETWORKS for b in BUFFERS)):
        for mpi in ("mpich", *(MODELS if one.network == "sp2-switch" else ())):
            told = [f"{case.side}^3 " + " ".join(f"{times(asked(case, model, one, GRID, **f), None)[0]:.4g}" for model in (mpi, "pvm"))
                    for case, f in zip(CASES, own, strict=True)]
            print(one.network, one.buffer, mpi, "MPI, PVM:", "; ".join(told))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--before", action="store_true", help="the roofline and the factors, instead of a file")
    parser.add_argument("--settings", action="store_true", help="what network and buffers do, instead of a file")
    parser.add_argument("--nominal", action="store_true", help="without the draws: the ends of the intervals stay empty")
    given = parser.parse_args()
    if given.before or given.settings:
        (print_before if given.before else print_settings)()
        return
    rows = [row for case in CASES for row in (nominal(case) if given.nominal else predict(case))]
    title = "SWEEP3D on six POWER2 nodes, predicted by swp_power2.py; not by hand. README.md explains it."
    write(FILE, title, "SWP-009 to 012 are open", rows)


if __name__ == "__main__":
    main()
