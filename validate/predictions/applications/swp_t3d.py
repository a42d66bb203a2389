"""SWEEP3D on a Cray T3D, predicted: ``python validate/predictions/applications/swp_t3d.py`` writes swp-t3d.csv.

No row of this machine is open, so that computation is the roofline's with its discrepancy. How the processes were laid out and how large
blocks of work were is not stated; a draw has one of each.

- SWP-013, 128 elements: PVM, which is the T3E's model with the T3D's processors, memory and links.
- SWP-014, 512 elements: a "cousin" of the program over SHMEM, of which nothing else is known. It is SWEEP3D whose inflows are put, with a
  flag behind each; that it computes as much a cell as SWEEP3D does is assumed. 256 planes of 512 elements are more calls than are worth
  simulating for each draw: a sweep's time is linear in its blocks of planes, once all elements work, so two shorter boxes say it.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from random import Random
from typing import NamedTuple

from _common import DRAWS, SEED, SPEC, Row, seconds_of, with_intervals, write

from retrompi.sim.resolved import Resolved
from retrompi.spec.question import Question, Replay
from retrompi.studies.draws.uncertainty import log_computation, question_of
from retrompi.traces.sweep3d import sweep3d

FILE = Path(__file__).parent / "swp-t3d.csv"
ANGLES = 48
MMI = (3, 1, 2, 6)
PUT_RATE = "120MB/s"
"""Of remote stores (assumed: below the half of a node's link that is one element's)."""
BLOCKS = (2, 4)
"""Blocks of planes of the two shorter boxes."""


class Setting(NamedTuple):
    grid: tuple[int, int]
    mk: int
    mmi: int


class Case(NamedTuple):
    """A row: a cubic box of ``side``; ``grids`` and ``mk`` of which a draw has one each, the first nominally; ``blocks`` of planes that are
    simulated, () for all of them."""

    id: str
    side: int
    runtime: str
    grids: tuple[tuple[int, int], ...]
    mk: tuple[int, ...]
    salt: int
    blocks: tuple[int, ...] = ()

    @property
    def elements(self) -> int:
        return self.grids[0][0] * self.grids[0][1]


PVM = Case("SWP-013", 150, "craympt:pvm", ((8, 16), (16, 8)), (10, 5, 15, 30), 200)
SHMEM = Case("SWP-014", 256, "craympt:shmem", ((16, 32), (32, 16)), (8, 4, 16, 32), 300, BLOCKS)
CASES = PVM, SHMEM


def setting(case: Case, draw: int | None) -> Setting:
    """Nominal: blocks about as large as those of the smaller input file, which the program's source recommends where messages are fast."""
    rng = Random(SEED + case.salt + (draw or 0))
    if draw is None:
        return Setting(case.grids[0], case.mk[0], MMI[0])
    return Setting(rng.choice(case.grids), rng.choice(case.mk), rng.choice(MMI))


def asked(case: Case, at: Setting, fixups: int, computation: float = 1.0, planes: int | None = None) -> Question:
    """One iteration: without mending fluxes (-1) or with it (0)."""
    over = {"pvm" if case is PVM else "shmem": True}
    trace = sweep3d(case.side, case.side, planes or case.side, *at.grid, at.mk, at.mmi, 1, fixups=fixups, computation=computation, **over)
    put = f"craympt.put_rate={PUT_RATE}"
    return Question(case.runtime, f"cray-t3d-pe*{case.elements}@t3d-torus", Replay(trace), "distributed", overrides=[put])


def took(case: Case, at: Setting, fixups: int, draw: int | None) -> float:
    """Seconds of an iteration."""
    boxes = [blocks * at.mk for blocks in case.blocks] or [case.side]
    found = []
    for planes in boxes:
        one = asked(case, at, fixups, planes=planes)
        if draw is not None:
            more = math.exp(float(log_computation(Resolved.of(one), SPEC)[draw]))
            one = question_of(Resolved.of(asked(case, at, fixups, more, planes)), draw, SPEC)
        found.append(seconds_of(one))
    if len(found) == 1:
        return found[0]
    return found[1] + (found[1] - found[0]) * (case.side - boxes[1]) / (boxes[1] - boxes[0])


def grind_us(case: Case, draw: int | None) -> float:
    """Elapsed time a cell, angle and iteration, us, as the program prints it: of 12 iterations seven without mending and five with it."""
    at = setting(case, draw)
    each = [took(case, at, fixups, draw) for fixups in (-1, 0)]
    return (7 * each[0] + 5 * each[1]) / 12 / (case.side**3 * ANGLES) * 1e6


def rows(draws: int = DRAWS, cases: tuple[Case, ...] = CASES) -> list[Row]:
    nominal = [Row(case.id, case.side, case.elements, "elapsed grind time", grind_us(case, None)) for case in cases]
    return with_intervals(nominal, {case.id: [grind_us(case, draw) for draw in range(draws)] for case in cases}) if draws else nominal


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--nominal", action="store_true", help="without the draws: the ends of the interval stay empty")
    parser.add_argument("--check", action="store_true", help="SWP-014 from more blocks of planes, instead of a file")
    given = parser.parse_args()
    if given.check:
        for blocks in ((2, 4), (4, 8)):
            print(f"{blocks}: {grind_us(SHMEM._replace(blocks=blocks), None):.5g} us", flush=True)
        return
    title = "SWEEP3D on a Cray T3D, predicted by swp_t3d.py; not by hand. README.md explains it."
    write(FILE, title, "no row is open", rows(0 if given.nominal else DRAWS), unit="us")


if __name__ == "__main__":
    main()
