"""PETSc's lap2d: GMRES without preconditioner on the five-point Laplacian of a rectangle, generated for a number of processes.

Rows of the matrix, in the order of the grid's, are distributed in contiguous blocks, whose sizes differ by one at most. For a product a
process posts receives from the owners of the columns that it lacks, then its sends, from the lowest rank on; meanwhile it computes with
its own (code: PETSc, src/vec/utils/vpscat.c of August 1996, VecScatterBegin_PtoP and VecScatterEnd_PtoP; mpiaij.c, MatMult_MPIAIJ). A dot
product, a norm and the dot products of an unmodified Gram-Schmidt step each end with one all-reduce (code: pvec2.c of July 1997). Forms:

- PETSc 2.0: MPI_Irecv and MPI_Isend; then a wait for each receive (it was MPI_Waitany: here in the order of the ranks) and one for all
  sends. Its default was the modified Gram-Schmidt process (code: itcl.c of September 1997: the others are options).
- ``persistent``, PETSc 3.18: persistent requests, of which the sends are waited for first. Its default is the unmodified process. This is
  the form that is compared with recordings, call by call (tests/test_lap2d.py).

Computation is stated as kernels (docs/computation.md); ``over`` is what an iteration touches, the matrix and the basis so far.
"""

from __future__ import annotations

from collections.abc import Iterator

from retrompi._engine import Trace
from retrompi.base.errors import UsageError
from retrompi.traces.generate import GENERATORS, Generator
from retrompi.traces.making import Again, trace_of_lines

__all__ = ["first_row", "lacking", "lap2d"]

TAG = 1
"""One of the tags that PETSc gives to a scatter; nothing depends on it."""
MOST_ROWS = 1 << 30
MOST_RANKS = 1 << 12
WORD, INDEX = 8, 4


def first_row(rank: int, rows: int, ranks: int) -> int:
    """The first row of a process: the remainder of ``rows`` by ``ranks`` is spread over the first ones (PETSC_DECIDE)."""
    return rank * (rows // ranks) + min(rank, rows % ranks)


def lacking(rank: int, m: int, n: int, ranks: int) -> dict[int, int]:
    """How many columns a process's rows use that are others': owner -> number. It is symmetric: as many are asked of it."""
    begin, end = first_row(rank, m * n, ranks), first_row(rank + 1, m * n, ranks)
    below = range(max(0, begin - n), max(0, min(begin, end - n)))
    above = range(min(m * n, max(end, begin + n)), min(m * n, end + n))
    columns = [*_runs(below, begin - 1 if begin % n else -1), *_runs(above, end if end % n else -1)]
    found: dict[int, int] = {}
    for owner in range(ranks):
        low, high = first_row(owner, m * n, ranks), first_row(owner + 1, m * n, ranks)
        count = sum(max(0, min(high, run.stop) - max(low, run.start)) for run in columns)
        if count and owner != rank:
            found[owner] = count
    return found


def _runs(run: range, one: int) -> Iterator[range]:
    yield run
    if one >= 0 and one not in run:
        yield range(one, one + 1)


class _Rank:
    """The lines of one process."""

    def __init__(self, me: int, m: int, n: int, ranks: int, persistent: bool, times: tuple[float, float]) -> None:
        self.me, self.ranks, self.persistent = me, ranks, persistent
        self.product_times, self.vector_times = times
        begin, end = first_row(me, m * n, ranks), first_row(me + 1, m * n, ranks)
        self.rows = end - begin
        self.others = lacking(me, m, n, ranks)
        self.entries, self.outside = _entries(begin, end, m, n)
        self.matrix = self.entries * (WORD + INDEX) + 2 * WORD * self.rows

    def say(self, *texts: str) -> str:
        return "".join(f"{self.me} {text}\n" for text in texts)

    def compute(self, kind: str, length: float, times: float, over: float = 0) -> str:
        if length <= 0:
            return ""
        if over:
            kind += f"{',' if ':' in kind else ':'}over={over:.6g}"
        return self.say(f"kernel {kind} {length:g} {times:.6g}")

    def vectors(self, kind: str, over: float = 0) -> str:
        return self.compute(kind, self.rows, self.vector_times, over)

    def reduce(self, count: int) -> str:
        return self.say(f"allreduce {count} 0 0") if self.ranks > 1 else ""

    def prepare(self) -> str:
        """The persistent requests, of which the first are receives."""
        if not self.persistent:
            return ""
        made = [(f"{kind} {other} {TAG} {count} 0") for kind in ("recvInit", "sendInit") for other, count in self.others.items()]
        return self.say(*(f"{line} req={i}" for i, line in enumerate(made, 1)))

    def free(self) -> str:
        return self.say(*(f"requestFree req={i + 1}" for i in range(2 * len(self.others) * self.persistent)))

    def product(self, basis: int) -> str:
        """MatMult, when a basis of as many vectors is in use."""
        over = self.matrix + WORD * self.rows * (basis + 3)
        near = self.compute(f"spmv:nz={(self.entries - self.outside) / self.rows:.6g}", self.rows, self.product_times, over)
        if not self.others:
            return near
        count = len(self.others)
        receives, sends = range(1, count + 1), range(count + 1, 2 * count + 1)
        incoming, outgoing = (",".join(map(str, requests)) for requests in (receives, sends))
        # Values are packed before they are sent and unpacked when they have come. The far part (MatMultAdd) passes over every row, also of
        # those without an entry in it: a stream like that of a vector's operation.
        moved = [self.compute("copy", length, self.product_times) for length in self.others.values()]
        far = self.vectors("copy", over) + self.compute("spmv:nz=1", self.outside, self.product_times)
        if self.persistent:
            begin = self.say(f"startall {count} reqs={incoming}") + "".join(moved) + self.say(f"startall {count} reqs={outgoing}")
            waits = self.say(f"waitall {count} reqs={outgoing}", f"waitall {count} reqs={incoming}") + "".join(moved)
            return begin + near + waits + far
        begin = self.say(*(f"irecv {to} {TAG} {length} 0 req={i}" for i, (to, length) in enumerate(self.others.items(), 1)))
        for i, (to, length) in enumerate(self.others.items()):
            begin += moved[i] + self.say(f"isend {to} {TAG} {length} 0 req={sends[i]}")
        waits = "".join(self.say(f"wait req={receives[i]}") + moved[i] for i in range(count))
        return begin + near + waits + self.say(f"waitall {count} reqs={outgoing}") + far

    def normalize(self) -> str:
        return self.vectors("norm") + self.reduce(1) + self.vectors("scale")

    def step(self, j: int, modified: bool) -> str:
        """An iteration: a product, made orthogonal to the ``j + 1`` vectors of the basis, and normalized."""
        k = j + 1
        basis = self.matrix + WORD * self.rows * (k + 3)
        made = self.product(k) + self.vectors("copy")  # the preconditioner that is none copies
        if modified:
            made += (self.vectors("dot", basis) + self.reduce(1) + self.vectors("axpy")) * k
        else:
            made += self.vectors(f"mdot:vectors={k}", basis) + self.reduce(k) + self.vectors(f"maxpy:vectors={k}")
        return made + self.normalize()

    def cycle(self, steps: int, modified: bool) -> str:
        """Normalizes the residual, iterates, and adds to the solution."""
        made = self.normalize() + "".join(self.step(j, modified) for j in range(steps))
        return made + self.vectors("set") + self.vectors(f"maxpy:vectors={steps}") + self.vectors("axpy")

    def residual(self, restart: int) -> str:
        return self.product(restart) + self.vectors("copy") * 2 + self.vectors("axpy")

    def solve(self, iterations: int, restart: int, modified: bool) -> list[str | Again]:
        full, rest = divmod(iterations, restart)
        cycle = self.cycle(restart, modified)
        made: list[str | Again] = [self.vectors("copy") * 2]
        if full:
            made += [cycle, Again(self.residual(restart) + cycle, full - 1)]
        if rest:
            made += [self.residual(restart) if full else "", self.cycle(rest, modified)]
        return made


def _entries(begin: int, end: int, m: int, n: int) -> tuple[int, int]:
    """Entries of the rows from ``begin`` to ``end``, and how many of them are in columns outside of these rows."""
    total = m * n

    def overlap(a: int, b: int, c: int, d: int) -> int:
        return max(0, min(b, d) - max(a, c))

    rows = end - begin
    vertical = [overlap(begin - n, end - n, 0, total), overlap(begin + n, end + n, 0, total)]
    inside = [overlap(begin - n, end - n, begin, end), overlap(begin + n, end + n, begin, end)]
    # Of rows whose left (right) neighbour is in the same line of the grid; one of them may be the neighbour of the block's edge.
    lines = -(-end // n) - -(-begin // n)
    left = rows - lines
    right = rows - (end // n - begin // n)
    outside = sum(vertical) - sum(inside) + (begin % n > 0) + (end % n > 0)
    return rows + sum(vertical) + left + right, outside


def lap2d(
    m: int,
    n: int,
    ranks: int,
    iterations: int = 30,
    *,
    restart: int = 30,
    modified: bool = True,
    products: bool = False,
    persistent: bool = False,
    product: float = 1.0,
    vector: float = 1.0,
) -> Trace:
    """PETSc's GMRES without preconditioner on the five-point Laplacian of ``m`` x ``n`` points, as many ``iterations`` of it.

    Rank 0 has the marks ``begin`` and ``end`` around the solve. ``modified``: its Gram-Schmidt process, with an all-reduce for each dot
    product; otherwise one for all of a step. ``products``: nothing but ``iterations`` products. ``persistent``: the requests of PETSc 3.
    ``product`` and ``vector``: how many times as long as the roofline says a sparse product and an operation on vectors take, where they
    were measured. Raises UsageError.
    """
    if min(m, n, ranks, iterations, restart) < 1 or m * n > MOST_ROWS or ranks > min(m * n, MOST_RANKS):
        told = f"lap2d needs 1 to {MOST_ROWS} points, 1 to {MOST_RANKS} ranks with a row each, and iterations and restart from 1 on"
        raise UsageError(told, code="out-of-range")
    if not (0 < product < float("inf") and 0 < vector < float("inf")):
        raise UsageError("lap2d needs factors above 0 for 'product' and 'vector'", code="out-of-range")
    lines: list[list[str | Again]] = []
    for me in range(ranks):
        rank = _Rank(me, m, n, ranks, persistent, (product, vector))
        body = [Again(rank.product(1), iterations)] if products else rank.solve(iterations, restart, modified)
        begin, end = ("# mark begin\n", "# mark end\n") if me == 0 else ("", "")
        lines.append([rank.say("init") + rank.prepare() + begin, *body, end + rank.free() + rank.say("finalize")])
    return trace_of_lines("lap2d", lines)


GENERATORS["lap2d"] = Generator(lap2d, rule="no bytes are counted; its time is that between its marks")
