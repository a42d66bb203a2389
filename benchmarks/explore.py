"""How many orders a search of all message orders follows, against brute force: random programs, and a master with workers.

    python benchmarks/explore.py [PROGRAMS]
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from brute_orders import EAGER, Brute, program, text

from retrompi import traces
from retrompi.explore.buffers import Buffers
from retrompi.explore.program import ExploredProgram
from retrompi.explore.result import Explored
from retrompi.explore.search import SearchLimits, explore_program

LARGE = 10_000


def search(lines: str, ranks: int, limits: SearchLimits) -> Explored:
    """The search without a runtime: messages of up to EAGER bytes are buffered."""
    buffers = Buffers.without_limit(ranks, EAGER)
    return explore_program(ExploredProgram.of(traces.parse(lines, ranks), buffers, [[] for _ in range(ranks)]), buffers, limits)


def random_programs(count: int) -> None:
    """Prints the factors of those with more than LARGE orders."""
    factors, spent, differ = [], [0.0, 0.0], 0
    for seed in range(count):
        ranks = program(seed)
        began = time.perf_counter()
        brute = Brute(ranks)
        middle = time.perf_counter()
        found = search(text(ranks), len(ranks), SearchLimits(descents=0))
        spent = [spent[0] + middle - began, spent[1] + time.perf_counter() - middle]
        differ += found.classes != len(brute.classes)
        if brute.orders > LARGE:
            factors.append(brute.orders / (found.orders + found.abandoned))
    print(f"{count} random programs: {differ} differ; brute force {spent[0]:.1f} s, search {spent[1]:.2f} s")
    least, most, middle_one = min(factors), max(factors), statistics.median(factors)
    print(f"{len(factors)} of more than {LARGE:,} orders: {least:,.0f} to {most:.2g} times fewer, median {middle_one:.2g}")


def master(workers: int) -> None:
    """A master that receives one message of each worker from any source: workers! outcomes."""
    lines = "".join(f"0 recv -555 1 10 6\n{w} send 0 1 10 6\n" for w in range(1, workers + 1))
    found = search(lines, workers + 1, SearchLimits())
    assert found.unreduced is not None
    rate = found.orders / found.seconds
    whole = f"{found.orders:,} orders of {found.unreduced.text}"
    print(f"master and {workers} workers: {found.classes:,} outcomes, {whole}, {rate:,.0f} a second")


if __name__ == "__main__":
    random_programs(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
    for n in (4, 6, 7):
        master(n)
