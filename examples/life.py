"""Conway's game of life with mpi4py: each process has some rows of a torus and exchanges its border rows before every generation.

    mpirun -np 4 python3 life.py [--size N] [--generations N] [--every N]
    retrompi trace record -o life -- mpirun -np 4 python3 life.py

The board begins with one glider in every 8 x 8 cells. A glider is itself again after 4 generations, one cell further down and to the right,
so the board is known after any multiple of 4; the number of generations is therefore rounded up to one, and every cell of the result is
compared with what it must be: exit code 1 when one differs.

Sections of MPI_Pcontrol: K (0, every, 2 every, ...) are the generations from number K on until the next count of the living; their parts
are generations.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
from array import array

from mpi4py import MPI

GLIDER = {(0, 1), (1, 2), (2, 0), (2, 1), (2, 2)}
CELLS = 8
UP, DOWN = 1, 2


class _Options(argparse.ArgumentParser):
    """Every process reads the same options; one of them says what is wrong."""

    def error(self, message: str) -> None:
        if MPI.COMM_WORLD.rank == 0:
            print(f"life: {message}", file=sys.stderr)
        MPI.Finalize()
        sys.exit(2)

    def print_help(self, file: object = None) -> None:
        if MPI.COMM_WORLD.rank == 0:
            super().print_help()


def section(level: int) -> None:
    """MPI_Pcontrol, past mpi4py's own, which refuses levels other than 0, 1 and 2. Where no profiler listens there may be none to call."""
    call = getattr(ctypes.CDLL(None), "MPI_Pcontrol", None)
    if call is not None:
        call(level)


def total(world: MPI.Comm, mine: int) -> int:
    """The sum over all processes."""
    numbers = array("q", [mine])
    world.Allreduce(MPI.IN_PLACE, numbers, MPI.SUM)
    return numbers[0]


def alive(row: int, column: int, generation: int) -> int:
    """The cell of the known board after a multiple of 4 generations."""
    moved = generation // 4
    return int(((row - moved) % CELLS, (column - moved) % CELLS) in GLIDER)


def following(rows: list[array[int]]) -> list[array[int]]:
    """The next generation of all rows but the first and last, which are the neighbours'."""
    size = len(rows[0])
    after = []
    for above, here, below in zip(rows, rows[1:], rows[2:], strict=False):
        column = [a + h + b for a, h, b in zip(above, here, below, strict=True)]
        around = [column[j - 1] + column[j] + column[(j + 1) % size] - here[j] for j in range(size)]
        after.append(array("B", [int(n == 3 or (n == 2 and cell)) for n, cell in zip(around, here, strict=True)]))
    return after


def main() -> int:
    world = MPI.COMM_WORLD
    parser = _Options(prog="life", description="Conway's game of life on a torus.")
    parser.add_argument("--size", type=int, default=128, help="cells a side, a multiple of 8 (%(default)s)")
    parser.add_argument("--generations", type=int, default=40, help="generations, rounded up to a multiple of 4 (%(default)s)")
    parser.add_argument("--every", type=int, default=10, help="generations between two counts of the living (%(default)s)")
    asked = parser.parse_args()
    if asked.size < CELLS or asked.size % CELLS or asked.size < world.size:
        parser.error(f"--size must be a multiple of {CELLS} and at least the number of processes, not {asked.size}")
    if asked.generations < 1 or asked.every < 1:
        parser.error("--generations and --every must be at least 1")
    size, generations = asked.size, -(-asked.generations // 4) * 4

    first, end = (size * (world.rank + k) // world.size for k in (0, 1))
    rows = [array("B", [alive(i, j, 0) for j in range(size)]) for i in range(first, end)]
    above, below = array("B", bytes(size)), array("B", bytes(size))
    before, after = (world.rank - 1) % world.size, (world.rank + 1) % world.size
    if world.rank == 0:
        print(f"{'generations':>12} {'alive':>10} {'time_us_each':>14}")

    done = 0
    while done < generations:
        more = min(asked.every, generations - done)
        section(done)
        start = MPI.Wtime()
        for _ in range(more):
            world.Sendrecv(rows[0], before, UP, below, after, UP)
            world.Sendrecv(rows[-1], after, DOWN, above, before, DOWN)
            rows = following([above, *rows, below])
        living = total(world, sum(map(sum, rows)))
        took = MPI.Wtime() - start
        section(-more)
        done += more
        if world.rank == 0:
            print(f"{done:12d} {living:10d} {took / more * 1e6:14.3f}")

    wrong = sum(cell != alive(i, j, generations) for i, row in enumerate(rows, first) for j, cell in enumerate(row))
    wrong = total(world, wrong)
    if world.rank == 0:
        print("# board: correct" if wrong == 0 else f"# board: WRONG in {wrong} places")
    return int(wrong != 0)


if __name__ == "__main__":
    sys.exit(main())
