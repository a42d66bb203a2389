"""All-to-all of Open MPI on 32 hosts of four processors and one Gigabit switch, predicted:
``python validate/predictions/applications/kut.py`` writes alltoall-gigabit.csv.

Nothing is open, and the processor is not stated: hosts, cards and switch are assumed, with ranges. A value is the mean of what the
processes measure from one barrier to the next, without the first round (which process printed it is not said; the simulated first one
shares its processor with the kernel). Rounds are alike after the first, so few are simulated. Draws simulate blocks of up to 16 KiB; a
longer one has the nominal ratio to that, and a deviation of its own. Time that is lost with frames does not grow with the block: draws in
which the switch drops frames simulate up to 128 KiB, and longer ones lose once to twice as much.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import NamedTuple

from _common import DRAWS, SEED, SPEC, Row, trace_of, with_intervals, write

from retrompi._engine import Trace
from retrompi.base import units
from retrompi.sim import simulate
from retrompi.sim.resolved import Resolved
from retrompi.spec.question import Question, Replay
from retrompi.studies.draws.uncertainty import question_of

FILE = Path(__file__).parent / "alltoall-gigabit.csv"
MODEL, HOST, NETWORK, HOSTS, EACH = "ompitcp", "opteron-2200", "gigabit-paused", 32, 4
SIZES = tuple(4 << k for k in range(18))
LONG = 131072
DRAWN = 16384
"""Longest block that draws simulate in which no frame is lost."""
BESIDE = 0.1
"""Deviation of the logarithm of a longer one's time beside its ratio (assumed: as the prior of any library's discrepancy)."""
DROPS, SHARED = 0.4, 8
"""Share of the draws in which nobody pauses, and a port holds so many times what stays at one input before its card is asked to (assumed:
flow control was enabled, but for many nodes it did not prevent losses, as the abstract of Kutzner et al., J. Comput. Chem. 28 (2007) says;
how often is not said)."""
BYTE = 6


def standard(size: int) -> str:
    """The tuned component's algorithm for 128 processes (code: open-mpi/ompi of January 2006, coll_tuned_decision_fixed.c)."""
    return "bruck" if size * HOSTS * EACH <= 768 else "linear" if size * HOSTS * EACH <= 131072 else "rotated"


def modified(draw: int | None, size: int) -> str:
    """Fagg's decision of January 2006 was not in the source then, nor a month later. Taken: that of Open MPI 1.2 (by the block: Bruck's
    below 200 B, all at once below 3000 B); in a third of the draws each, pairs where the standard one posts all at once, or
    Bruck's."""
    match (draw or 0) % 3:
        case 0:
            return "bruck" if size < 200 else "linear" if size < 3000 else "rotated"
        case 1:
            return standard(size).replace("linear", "rotated")
        case _:
            return standard(size).replace("linear", "bruck")


def node_ordered(me: int, size: int) -> Iterator[str]:
    """A step exchanges blocks with the processes of one host."""
    host = me // EACH
    for step in range(HOSTS):
        for k in range(EACH):
            source, target = ((host + shift) % HOSTS * EACH + k for shift in (-step, step))
            if source != me:
                yield f"irecv {source} 1 {size} {BYTE}"
            if target != me:
                yield f"isend {target} 1 {size} {BYTE}"
        yield "waitall"


def one_by_one(me: int, size: int, p: int, paired: bool, barriers: bool) -> Iterator[str]:
    """A step exchanges a block with one process, or sends to one above while receiving from one below. Paired: the other's number is the
    own one with some bits changed (assumed, as for powers of two)."""
    for step in range(1, p):
        target, source = (me ^ step, me ^ step) if paired else ((me + step) % p, (me - step) % p)
        yield f"sendRecv {size} {target} {size} {source} {BYTE} {BYTE}"
        if barriers:
            yield "barrier"


class Asked(NamedTuple):
    """``program``: of one process for blocks of a size; ``algorithm``: of MPI_Alltoall, empty for others."""

    program: str
    size: int
    processes: int = HOSTS * EACH
    algorithm: str = ""

    @property
    def rounds(self) -> int:
        """Simulated after the first one."""
        return 4 if self.size <= DRAWN else 1


def lines(asked: Asked, me: int) -> Iterator[str]:
    match asked.program.split():
        case ["alltoall"]:
            yield f"alltoall {asked.size} {asked.size} {BYTE} {BYTE}"
        case ["hosts"]:
            yield from node_ordered(me, asked.size)
        case [name, *barriers]:
            yield from one_by_one(me, asked.size, asked.processes, name == "paired", bool(barriers))


def trace(asked: Asked) -> Trace:
    def rounds(me: int) -> Iterator[str]:
        for k in range(asked.rounds + 1):
            yield from ("barrier", f"# mark begin {k}", *lines(asked, me), "barrier", f"# mark end {k}")

    return trace_of(asked.program, rounds, asked.processes)


@cache
def question_about(asked: Asked) -> Question:
    """Of Open MPI 1.0 the basic component's barrier, and a read that takes the header alone, on one process a host."""
    sets = [f"{MODEL}.coll.alltoall={asked.algorithm}"] if asked.algorithm else []
    one_each = asked.processes <= HOSTS
    sets += [f"{MODEL}.coll.barrier=tree", f"{MODEL}.cache=16 B"] if one_each else []
    mode = "distributed" if one_each else f"block:{EACH}"
    return Question(MODEL, f"{HOST}*{HOSTS}@{NETWORK}", Replay(trace(asked)), mode, overrides=sets)


def drops(draw: int) -> bool:
    """Whether nobody pauses."""
    return Random(f"{SEED} {draw} drops").random() < DROPS


def of_draw(question: Question, draw: int | None) -> Question:
    if draw is None:
        return question
    drawn = question_of(Resolved.of(question), draw, SPEC)
    if not drops(draw):
        return drawn
    buffer = SHARED * units.parse(drawn.sets["platform.link.buffer"], "B")
    return drawn.with_(overrides={**drawn.sets, "platform.link.kind": "switch", "platform.link.buffer": f"{buffer:.0f} B"})


@cache
def simulated(asked: Asked, draw: int | None) -> float:
    spent = 0.0
    for row in simulate.run(of_draw(question_about(asked), draw)).marks:
        what, k = row["label"].split()
        if k != "0":
            spent += row["time_s"] if what == "end" else -row["time_s"]
    return spent / asked.rounds / asked.processes


def seconds(asked: Asked, draw: int | None) -> float:
    """A draw has a factor of its own where it is not simulated."""
    if draw is None or asked.processes <= HOSTS or asked.size <= (LONG if drops(draw) else DRAWN):
        return simulated(asked, draw)
    own = Random(f"{SEED} {draw} {asked.program} {asked.size}")
    shorter = asked._replace(size=LONG if drops(draw) else DRAWN)
    nominal, told = simulated(shorter, None), simulated(shorter, draw)
    beside = simulated(asked, None) * math.exp(own.gauss(0, BESIDE))
    return beside + max(0.0, told - nominal) * own.uniform(1, 2) if drops(draw) else beside * told / nominal


def questions(draw: int | None) -> Iterator[tuple[int, Asked]]:
    """The numbers of the set's rows, every third from 1 on."""
    number = iter(range(1, 1000, 3))
    for rule in (standard, partial(modified, draw)):
        for size in SIZES:
            yield next(number), Asked("alltoall", size, algorithm=rule(size))
    for size in SIZES:
        yield next(number), Asked("hosts", size)
    for processes in (16, 32):
        yield next(number), Asked("ring", LONG, processes)
    for processes in (16, 32):
        yield next(number), Asked("alltoall", LONG, processes, "linear")
    for program in ("ring barriers", "ring", "paired", "paired barriers"):
        yield next(number), Asked(program, LONG, 32)


def rows(draws: int) -> list[Row]:
    found = [
        Row(f"KUT-{n:03}", asked.size, asked.processes, asked.program.replace(" ", " with "), seconds(asked, None))
        for n, asked in questions(None)
    ]
    told: dict[str, list[float]] = {row.id: [] for row in found}
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # each thread has a server of simulations
        for values in pool.map(lambda draw: [(n, seconds(asked, draw)) for n, asked in questions(draw)], range(draws)):
            for n, value in values:
                told[f"KUT-{n:03}"].append(value)
            print(f"draw {len(told[found[0].id])} of {draws}", flush=True)
    return with_intervals(found, told) if draws else found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--nominal", action="store_true", help="without the draws: the ends of the intervals stay empty")
    given = parser.parse_args()
    title = "All-to-all of Open MPI 1.0 and 1.1a1 on Gigabit Ethernet, predicted by kut.py; not by hand. README.md explains it."
    write(FILE, title, "nothing is open; points: bytes of a block", rows(0 if given.nominal else DRAWS))


if __name__ == "__main__":
    main()
