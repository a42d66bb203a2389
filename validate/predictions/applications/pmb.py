"""PMB 2.2.1 over Open MPI 1.1 on four hosts with InfiniBand, predicted: ``python validate/predictions/applications/pmb.py`` writes
pmb-mvapi.csv.

The PingPong of these hosts is open, and is all that library, card and hosts are fitted to (validate/papers/weitzenkamp-2006). What the
simulated one misses of it at a size, every benchmark is corrected by. A value is the largest over the processes of the mean of a loop
behind two barriers, as the benchmark prints it. ``--before`` says what the model said of the PingPong before it was fitted and says since.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from _common import DRAWS, SEED, SPEC, Row, read, trace_of, with_intervals, write

from retrompi._engine import Trace
from retrompi.base import units
from retrompi.sim import simulate
from retrompi.sim.resolved import Resolved
from retrompi.spec.question import Question, Replay
from retrompi.studies.draws.uncertainty import question_of

FILE = Path(__file__).parent / "pmb-mvapi.csv"
PINGPONG = Path(__file__).parents[2] / "papers/weitzenkamp-2006/curves/curves_pmb.csv"
HOST, NETWORK = "poweredge-2650", "infiniband-topspin"
FIRST = ("openmpi.library=2us", "openmpi.fetch=1us", "openmpi.answer=10us",
         "platform.host.copy_mem=1000MB/s", "platform.host.nic_rate=800MB/s")
"""What the fit began with."""
BYTES = (0, *(1 << k for k in range(23)))
FLOATS = BYTES[3:]
VOLUME, MOST = 40 << 20, 1000
"""Bytes that a loop moves, and how often it goes round at most (assumed: as IMB, its successor; PMB 2.2.1's source was not at hand)."""
SIMULATED = 48
"""Rounds that are simulated at most: a loop of more is in its steady state by then."""
ASK = 32 * 1024 - 64
"""Longest message that is sent without asking."""
READ = 5.0
"""What a card that is asked to read takes of `answer` (us), in the draws in which the rest is work (assumed: reads of few bytes took about
twice as long as writes)."""
BESIDE = 0.1
"""Deviation of the logarithm of a benchmark's time beside what its PingPong has (assumed: as the prior of any library's
discrepancy)."""
CALL = 1.0
"""Microseconds that a call takes beside the messages that the PingPong knows, at most (assumed: choosing an algorithm, making the tree
of a new root, requests of their own)."""
CALLS = {"PingPong": 0, "Exchange": 3, "Allreduce": 2, "Reduce_scatter": 2}
"""How many such calls a round has, if not one."""
OPENED = 3.0
"""Microseconds that setting up a pair adds to each round of the first loop at most (assumed: as much as the open PingPong of no bytes has,
where one is set up)."""
TREE = ("Bcast", "Allreduce")
"""Operations in which two members read from the root at once, and one of them passes on."""


class Benchmark(NamedTuple):
    """``name``: PMB's, with what its loop does a round (`rounds`); ``first``: number of its first row in the set; ``sizes``: one a row."""

    name: str
    set: str
    first: int
    processes: int
    sizes: tuple[int, ...]


BENCHMARKS = (
    Benchmark("Alltoall", "PMBA", 1, 2, BYTES),
    Benchmark("Alltoall", "PMBA", 25, 4, BYTES[:20]),
    Benchmark("PingPong", "PMBA", 45, 2, BYTES[:11]),
    Benchmark("Reduce", "PMBC", 1, 2, FLOATS),
    Benchmark("Reduce", "PMBC", 22, 4, FLOATS),
    Benchmark("Exchange", "PMBC", 43, 2, BYTES),
    Benchmark("Exchange", "PMBC", 67, 4, BYTES),
    Benchmark("Barrier", "PMBC", 91, 2, (0,)),
    Benchmark("Barrier", "PMBC", 92, 4, (0,)),
    Benchmark("Sendrecv", "PMBC", 93, 4, BYTES[11:]),
    Benchmark("Alltoall", "PMBC", 106, 4, BYTES[:20]),
    Benchmark("Allreduce", "PMBC", 126, 2, FLOATS),
    Benchmark("Allreduce", "PMBC", 147, 4, FLOATS),
    Benchmark("Reduce_scatter", "PMBC", 168, 4, BYTES[5:]),
    Benchmark("Bcast", "PMBC", 187, 2, BYTES[1:]),
    Benchmark("Bcast", "PMBC", 210, 4, BYTES[1:]),
)
BYTE, FLOAT = 6, 1


def rounds(name: str, size: int, p: int, me: int, k: int) -> list[str]:
    """What a process does in round ``k`` of a loop (assumed: as the set says, and as IMB has it; roots go round, also of Reduce)."""
    left, right = (me - 1) % p, (me + 1) % p
    match name:
        case "PingPong":
            both = [f"send {1 - me} 1 {size} {BYTE}", f"recv {1 - me} 1 {size} {BYTE}"]
            return both if me == 0 else both[::-1]
        case "Sendrecv":
            return [f"sendRecv {size} {right} {size} {left} {BYTE} {BYTE}"]
        case "Exchange":
            sends = [f"isend {other} 1 {size} {BYTE}" for other in (right, left)]
            return [*sends, *(f"recv {other} 1 {size} {BYTE}" for other in (left, right)), "waitall 2"]
        case "Barrier":
            return ["barrier"]
        case "Bcast":
            return [f"bcast {size} {k % p} {BYTE}"]
        case "Reduce":
            return [f"reduce {size} 0 {k % p} {BYTE}"]
        case "Allreduce":
            return [f"allreduce {size} 0 {BYTE}"]
        case "Reduce_scatter":
            return ["reducescatter " + " ".join([str(size // p)] * p) + f" 0 {BYTE}"]
        case _:
            return [f"alltoall {size} {size} {BYTE} {BYTE}"]


def loop_length(name: str, size: int) -> int:
    """Rounds of a loop."""
    return min(SIMULATED, MOST if name == "Barrier" else max(1, min(MOST, VOLUME // max(size, 1))))


@cache
def trace(name: str, size: int, p: int) -> Trace:
    """As the benchmark runs a size: a round or two that are not timed, two barriers, the loop."""
    def lines(me: int) -> Iterator[str]:
        for k in range(2 * p):
            yield from rounds(name, size, p, me, k)
        yield from ["barrier"] * 2
        yield "# mark begin"
        for k in range(loop_length(name, size)):
            yield from rounds(name, size, p, me, k)
        yield "# mark end"

    return trace_of(name, lines, p)


def question_about(name: str, size: int, p: int) -> Question:
    """Neighbouring blocks of an all-to-all among four share a page, unless a buffer begins with one: registering a block takes the
    registration of the one before away, and each is registered anew in each call (code: open-mpi/ompi of 2006, pml_ob1_rdma.c,
    rcache_rb.c)."""
    again = name == "Alltoall" and p > 2 and size > ASK
    sets = ["openmpi.leave_pinned=no"] if again else []
    return Question("openmpi", f"{HOST}*{p}@{NETWORK}", Replay(trace(name, size, p)), "distributed", overrides=sets)


def microseconds(name: str, size: int, p: int, question: Question) -> float:
    """t_max; of a PingPong the half round trip."""
    at: dict[int, dict[str, float]] = {}
    for row in simulate.run(question).marks:
        at.setdefault(row["rank"], {})[row["label"]] = row["time_s"]
    longest = max(marks["end"] - marks["begin"] for marks in at.values())
    return longest / loop_length(name, size) * 1e6 / (2 if name == "PingPong" else 1)


def of_draw(question: Question, draw: int | None) -> Question:
    """What `answer` holds beyond a card's read is latency of the card in half of the draws, and work of both processors in the others."""
    if draw is None:
        return question
    one = Resolved.of(question)
    drawn = question_of(one, draw, SPEC)
    if draw % 2 == 0:
        return drawn
    sets = drawn.sets
    answer, pin, page = (units.parse(sets[f"openmpi.{key}"], "s") * 1e6 for key in ("answer", "pin", "pin_page"))
    again = question.sets.get("openmpi.leave_pinned") == "no"
    more = {
        "openmpi.leave_pinned": "no", "openmpi.answer": f"{min(answer, READ):.4f} us",
        "openmpi.pin": f"{max(0.0, answer - READ) / 2 + again * pin:.4f} us", "openmpi.pin_page": f"{again * page:.4f} us",
    }
    return drawn.with_(overrides={**sets, **more})


def published() -> dict[int, float]:
    return {int(row["bytes"]): float(row["value"]) for row in read(PINGPONG)}


@cache
def correction(size: int, draw: int | None) -> float:
    """The open PingPong over the simulated one at a size (at 1 B for none, whose time has the set-up)."""
    at = max(size, 1)
    return published()[at] / microseconds("PingPong", at, 2, of_draw(question_about("PingPong", at, 2), draw))


def value(row: Benchmark, size: int, draw: int | None) -> float:
    """Microseconds. A draw has a factor of its own on each benchmark, and the first loop of some draws has the setting up of pairs. In half
    of the draws a card that two members read from serves them in turn, so that the one that passes on has its data as late as the other."""
    question = of_draw(question_about(row.name, size, row.processes), draw)
    told = microseconds(row.name, size, row.processes, question) * correction(size, draw)
    if draw is None:
        return told
    rng = Random(f"{SEED} {draw} {row.name} {row.processes} {row.set}")
    told *= math.exp(rng.gauss(0, BESIDE))
    if rng.random() < 0.5 and row.processes == 4 and row.name in TREE and size > ASK:
        told += published()[size]
    told += rng.uniform(0, CALL) * CALLS.get(row.name, 1)
    opening = rng.choice((0.0, rng.uniform(0, OPENED))) * (row.processes - 1)
    return told + opening * (size == row.sizes[0])


def rows(draws: int) -> list[Row]:
    found, told = [], {}
    for bench in BENCHMARKS:
        for i, size in enumerate(bench.sizes):
            name = f"{bench.set}-{bench.first + i:03}"
            found.append(Row(name, size, bench.processes, bench.name, value(bench, size, None)))
            told[name] = [value(bench, size, draw) for draw in range(draws)]
    return with_intervals(found, told) if draws else found


def print_before() -> None:
    """The PingPong before its fit (values as the model, the host and the network were first written down) and after it."""
    told = published()
    for size in BYTES:
        one = question_about("PingPong", size, 2)
        before, after = (microseconds("PingPong", size, 2, one.with_(overrides=list(sets))) for sets in (FIRST, ()))
        print(f"{size:8} {told[size]:8.2f} {before:8.2f} {before / told[size] - 1:+.3f} {after:8.2f} {after / told[size] - 1:+.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--before", action="store_true", help="the PingPong before and after its fit, instead of a file")
    parser.add_argument("--nominal", action="store_true", help="without the draws: the ends of the intervals stay empty")
    given = parser.parse_args()
    if given.before:
        print_before()
        return
    title = "PMB 2.2.1 over Open MPI 1.1a2 and InfiniBand, predicted by pmb.py; not by hand. README.md explains it."
    write(FILE, title, "the PingPong is open; points: bytes of a message or block", rows(0 if given.nominal else DRAWS), "us")


if __name__ == "__main__":
    main()
