"""SWEEP3D on 128 processing elements of a Cray T3D, predicted: ``python validate/predictions/applications/swp_t3d.py`` writes swp-t3d.csv.

No row of this machine is open, so that computation is the roofline's with its discrepancy. How the processes were laid out and how large
blocks of work were is not stated; a draw has one of each. PVM is the T3E's model with the T3D's processors, memory and links. The row of
512 elements (SWP-014) is of another program, over SHMEM, and is not predicted.
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
SIDE, ANGLES = 150, 48
GRIDS, MK, MMI = ((8, 16), (16, 8)), (10, 5, 15, 30), (3, 1, 2, 6)
PUT_RATE = "120MB/s"
"""Of remote stores (assumed: below the half of a node's link that is one element's)."""


class Setting(NamedTuple):
    grid: tuple[int, int]
    mk: int
    mmi: int


def setting(draw: int | None) -> Setting:
    """Nominal: the blocks of the smaller input file, which the program's source recommends where messages are fast."""
    rng = Random(SEED + 200 + (draw or 0))
    return Setting(GRIDS[0], MK[0], MMI[0]) if draw is None else Setting(rng.choice(GRIDS), rng.choice(MK), rng.choice(MMI))


def asked(at: Setting, fixups: int, computation: float = 1.0) -> Question:
    """One iteration: without mending fluxes (-1) or with it (0)."""
    trace = sweep3d(SIDE, SIDE, SIDE, *at.grid, at.mk, at.mmi, 1, fixups=fixups, pvm=True, computation=computation)
    put = f"craympt.put_rate={PUT_RATE}"
    return Question("craympt:pvm", "cray-t3d-pe*128@t3d-torus", Replay(trace), "distributed", overrides=[put])


def grind_us(draw: int | None) -> float:
    """Elapsed time a cell, angle and iteration, us, as the program prints it: of 12 iterations seven without mending and five with it."""
    at = setting(draw)
    if draw is None:
        took = [seconds_of(asked(at, fixups)) for fixups in (-1, 0)]
    else:
        more = math.exp(float(log_computation(Resolved.of(asked(at, -1)), SPEC)[draw]))
        took = [seconds_of(question_of(Resolved.of(asked(at, fixups, more)), draw, SPEC)) for fixups in (-1, 0)]
    return (7 * took[0] + 5 * took[1]) / 12 / (SIDE**3 * ANGLES) * 1e6


def rows(draws: int = DRAWS) -> list[Row]:
    nominal = Row("SWP-013", SIDE, 128, "elapsed grind time", grind_us(None))
    return with_intervals([nominal], {nominal.id: [grind_us(draw) for draw in range(draws)]}) if draws else [nominal]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--nominal", action="store_true", help="without the draws: the ends of the interval stay empty")
    given = parser.parse_args()
    title = "SWEEP3D on a Cray T3D, predicted by swp_t3d.py; not by hand. README.md explains it."
    write(FILE, title, "no row is open", rows(0 if given.nominal else DRAWS), unit="us")


if __name__ == "__main__":
    main()
