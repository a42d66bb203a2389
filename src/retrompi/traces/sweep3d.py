"""ASCI's SWEEP3D 2.2b (December 1995): wavefronts of discrete ordinates through a box of cells, pipelined over a grid of processes.

A process has all planes of its part of the box's i and j. An iteration sweeps eight octants, three or six angles each; a block of work is
``mk`` planes by ``mmi`` angles. For each block a process receives inflows in i and in j from its neighbours against the sweep, computes,
and sends outflows on, all blocking (code: SWEEP3D 2.2b, sweep.f, octant.f). It ends with a sum and a maximum over all processes (inner.f,
flux_err.f). With MPI these are all-reduces; with PVM they are messages to the first process and a broadcast (msg_stuff.cpp).

Computation is stated as kernels (docs/computation.md), a pass for each line of cells along i, loop by loop. ``over`` of an angle that is
the first of its block is what the process has; of the others it is a diagonal of lines, which the next angle follows. The boundary is
vacuum.

``shmem`` is a form that was not recorded: what the "cousin" over SHMEM must do, which is told of and whose source is not public. A put into
the neighbour's inflow, then a flag behind it, for which the neighbour waits; its sums are SHMEM's.
"""

from __future__ import annotations

from typing import NamedTuple

from retrompi._engine import Trace
from retrompi.base.errors import UsageError
from retrompi.traces.generate import GENERATORS, Generator
from retrompi.traces.making import Again, trace_of_lines
from retrompi.traces.tracker import ANY_SOURCE

__all__ = ["share", "sweep3d"]

MOST_RANKS = 256
"""As many as its list of tasks holds (code: msg_stuff.h)."""
MOST_ELEMENTS = 2048
"""Over SHMEM, which has no such list: the processing elements of the largest T3D."""
MOST_CELLS = 1 << 20
OCTANTS = tuple((i, j) for i in (-1, 1) for j in (-1, 1) for _ in range(2))
"""Directions of the sweeps in i and j; every second one goes up in k (code: octant.f)."""
WORD = 8
RECURSION, COMPARED = 16, 3
"""Operations of a cell's balance and its three auxiliary equations, a division among them, with twice the flux computed once; comparisons
where fluxes below zero are mended."""


def share(cells: int, parts: int, part: int) -> int:
    """Cells of a part along an axis: the first ones have one more (code: decomp.f)."""
    return cells // parts + (part < cells % parts)


class Setup(NamedTuple):
    """The values of the input file, and the factors on computation."""

    cells: tuple[int, int, int]
    grid: tuple[int, int]
    mk: int
    mmi: int
    angles: int
    moments: int
    leakage: bool
    pvm: bool
    shmem: bool
    computation: float
    half: float


class _Rank:
    """The lines of one process."""

    def __init__(self, me: int, setup: Setup) -> None:
        p, q = setup.grid
        column, row = me % p, me // p
        self.me, self.setup, self.ranks = me, setup, p * q
        self.it, self.jt, self.kt = share(setup.cells[0], p, column), share(setup.cells[1], q, row), setup.cells[2]
        self.i_neighbours = {-1: me - 1 if column > 0 else None, 1: me + 1 if column < p - 1 else None}
        self.j_neighbours = {-1: me - p if row > 0 else None, 1: me + p if row < q - 1 else None}
        self.words = 1 + 2 * setup.moments + 3 * setup.leakage  # the cross section, sources and fluxes, currents through faces

    def say(self, *texts: str) -> str:
        return "".join(f"{self.me} {text}\n" for text in texts)

    def compute(self, kind: str, length: float, times: float = 1) -> str:
        return self.say(f"kernel {kind} {length:g} {times * self.setup.computation:.6g}") if length > 0 and times > 0 else ""

    def work(self, lines: float, over: float, operations: int, read: int, written: int) -> str:
        """A loop along i for each of a number of lines: words read and written a cell."""
        stated = {"operations": operations, "read": WORD * read, "written": WORD * written, "over": over}
        kind = "work:" + ",".join(f"{name}={value:.6g}" for name, value in stated.items() if value)
        return self.compute(kind, self.it, lines * (1 + self.setup.half / self.it))

    # --- a block of work ---------------------------------------------------------------------------------------------------

    def block(self, planes: int, fix: bool) -> str:
        """``planes`` by ``mmi`` angles, from the diagonals' first line to their last."""
        lines, mmi = self.jt * planes, self.setup.mmi
        diagonal = lines / (self.jt + planes - 1) * mmi * self.it * (self.words + 2) * WORD
        mine = self.it * self.jt * self.kt * self.words * WORD
        told = self.angle(lines, max(mine, diagonal), diagonal, fix)
        return told + (self.angle(lines * (mmi - 1), diagonal, diagonal, fix) if mmi > 1 else "")

    def angle(self, lines: float, over: float, diagonal: float, fix: bool) -> str:
        """Loops of a line: the source from its moments, the recursion, the moments of the flux, the currents. Of the recursion's words,
        fluxes through the faces in j and k were used by the diagonal before; the line itself (phi, phii, hi) stays where it is."""
        nm = self.setup.moments
        told = self.work(lines, over, 2 * (nm - 1), nm, 0)
        told += self.work(lines, over, 0, 1, 0)  # the cross section
        told += self.work(lines, diagonal, RECURSION + COMPARED * fix, 2, 2)
        told += self.work(lines, over, 2 * nm, nm, nm)
        if self.setup.leakage:
            told += self.work(lines, over, 6, 3, 3)
        return told + self.work(lines, 0, 0, 2 * nm + 1, nm + 2)

    def inflow(self, count: int, frm: int | None, tag: int, size: int) -> str:
        told = self.compute("set", count) if frm is None else self.say(f"recv {frm} {tag} {1 if self.setup.shmem else size} 0")
        # Currents through the boundary of each block.
        return told + (self.compute(f"work:operations=2,read={2 * WORD},written={WORD}", count) if self.setup.leakage else "")

    def outflow(self, count: int, to: int | None, tag: int, size: int) -> str:
        """What no process takes leaks out of the box, and is summed up."""
        if to is None:
            return self.compute(f"work:operations=4,read={WORD}", count)
        if self.setup.shmem:
            return self.say(f"Put {to} 0 {WORD * size} 6", f"send {to} {tag} 1 0")
        return self.say(f"send {to} {tag} {size} 0")

    # --- an iteration ------------------------------------------------------------------------------------------------------

    def sweep(self, fix: bool) -> str:
        s = self.setup
        told, blocks = "", [min(s.mk, self.kt - at) for at in range(0, self.kt, s.mk)]
        work = {planes: self.block(planes, fix) for planes in blocks}
        sizes = self.jt * s.mk * s.mmi, self.it * s.mk * s.mmi
        for octant, (i, j) in enumerate(OCTANTS, 1):
            tags = (1000 if i > 0 else 3000) * octant, (2000 if j > 0 else 4000) * octant
            one = ""
            for planes in blocks:
                counts = self.jt * planes * s.mmi, self.it * planes * s.mmi
                one += self.inflow(counts[0], self.i_neighbours[-i], tags[0], sizes[0])
                one += self.inflow(counts[1], self.j_neighbours[-j], tags[1], sizes[1])
                one += work[planes]
                one += self.outflow(counts[0], self.i_neighbours[i], tags[0], sizes[0])
                one += self.outflow(counts[1], self.j_neighbours[j], tags[1], sizes[1])
            area = self.it * self.jt * s.mmi
            told += (self.compute("set", area) + one + self.compute(f"work:operations=4,read={WORD}", area)) * (s.angles // s.mmi)
        return told

    def iteration(self, fix: bool) -> str:
        """The source from the last flux, the sweep, the number of cells mended and the largest change."""
        cells, nm = self.it * self.jt * self.kt, self.setup.moments
        source = self.compute(f"work:operations={nm + 1},read={WORD * (2 + (nm > 1) + nm)},written={WORD * (2 * nm + 1)}", cells)
        if self.setup.leakage:
            source += self.compute("set", 3 * cells)
        told = source + self.sweep(fix) + self.reduce(444, 1)
        return told + self.compute(f"work:operations=3,read={2 * WORD}", cells) + self.reduce(333, 0)

    def reduce(self, tag: int, kind: int, ordered: bool = False) -> str:
        """A number of all, for all; ``kind`` 0: a double, 1: an integer, which PVM's form sends to the first process as a double."""
        if not self.setup.pvm:
            return self.say(f"allreduce 1 0 {kind}")
        if self.ranks == 1:
            return ""
        if self.me:
            return self.say(f"send 0 {tag} 1 0", f"bcast 1 0 {kind}")
        return self.say(*(f"recv {other if ordered else ANY_SOURCE} {tag} 1 0" for other in range(1, self.ranks)), f"bcast 1 0 {kind}")

    def together(self, *texts: str) -> str:
        """Calls that a single process leaves out."""
        return self.say(*texts) if self.ranks > 1 else ""

    def program(self, iterations: int, fixups: int) -> list[str | Again]:
        plain = iterations if fixups < 0 else min(fixups, iterations)
        begin, end = ("# mark begin\n", "# mark end\n") if self.me == 0 else ("", "")
        input_read = self.together("bcast 1 0 1", f"bcast {self.ranks} 0 1", "barrier", "bcast 16 0 1", "bcast 4 0 0", "barrier")
        cells = self.it * self.jt * self.kt
        balance = self.compute(f"work:operations=8,read={4 * WORD}", cells) + self.reduce(444, 0, ordered=True) * 8
        return [
            self.say("init") + input_read + begin,
            *(Again(self.iteration(fix), times) for fix, times in ((False, plain), (True, iterations - plain)) if times),
            self.together("barrier") + end + balance + self.say("finalize"),
        ]


def sweep3d(
    nx: int,
    ny: int,
    nz: int,
    p: int,
    q: int,
    mk: int = 10,
    mmi: int = 3,
    iterations: int = 12,
    *,
    angles: int = 6,
    scattering: int = 1,
    leakage: bool = True,
    fixups: int = 7,
    pvm: bool = False,
    shmem: bool = False,
    computation: float = 1.0,
    half: float = 0.0,
) -> Trace:
    """SWEEP3D 2.2b on ``nx`` x ``ny`` x ``nz`` cells and ``p`` x ``q`` processes, in blocks of ``mk`` planes and ``mmi`` angles.

    Rank 0 has the marks ``begin`` and ``end``, between which the benchmark takes its time. ``angles``: in an octant, 6 (S6) or 3 (S4).
    ``scattering``: 1 for four moments, 0 for one. ``leakage``: currents through faces are summed up. ``fixups``: negative fluxes are mended
    after that many iterations (-1: never). ``pvm``: sums and maxima by the messages of its PVM form. ``shmem``: inflows are put,
    with a flag behind each, for a runtime with one-sided operations. ``computation``: how many times as long as the roofline says
    computation takes; ``half``: how many cells' time a line takes besides its cells, where they were measured. Raises UsageError.
    """
    most = MOST_ELEMENTS if shmem else MOST_RANKS
    if min(nx, ny, nz, p, q, mk, mmi, iterations) < 1 or max(nx, ny, nz) > MOST_CELLS or p > nx or q > ny or p * q > most:
        told = f"sweep3d needs a cell in i and j for each of 1 to {most} processes, and mk, mmi and iterations from 1 on"
        raise UsageError(told, code="out-of-range")
    if pvm and shmem:
        raise UsageError("sweep3d is over PVM or over SHMEM, not both", code="out-of-range")
    if p * q == 1:  # a single process is not pipelined (code: read_input.f)
        mk, mmi = nz, angles
    if angles not in (3, 6) or angles % mmi or scattering not in (0, 1) or fixups < -1:
        told = "sweep3d needs angles=3 or 6 that mmi divides, scattering=0 or 1, and fixups from -1 on"
        raise UsageError(told, code="out-of-range")
    if not (0 < computation < float("inf") and 0 <= half < float("inf")):
        raise UsageError("sweep3d needs a factor above 0 for 'computation', and 'half' from 0 on", code="out-of-range")
    moments = 1 if scattering == 0 else 4
    setup = Setup((nx, ny, nz), (p, q), min(mk, nz), mmi, angles, moments, leakage, pvm, shmem, computation, half)
    return trace_of_lines("sweep3d", [_Rank(me, setup).program(iterations, fixups) for me in range(p * q)])


GENERATORS["sweep3d"] = Generator(sweep3d, rule="no bytes are counted; its time is that between its marks")
