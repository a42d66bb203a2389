"""HPL on four Athlons with bonded Fast Ethernet, predicted: ``python validate/predictions/applications/hpla.py`` writes hpl-athlon.csv."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random

import hpl_runs

from retrompi._engine import Trace
from retrompi.spec.question import Question, Replay

GRIDS = ((1, 4), (2, 2), (4, 1))
SIZES = (2000, 5000, 8000, 10000)


def question(trace: Trace, ranks: int) -> Question:
    return Question("mpich", f"linux-k7-500*{ranks}@switch-100-bonded", Replay(trace), "distributed")


def more(rng: Random) -> Mapping[str, str]:
    """The socket buffer that mpirun's environment may have set, and what frames out of order cost: the driver does not put them in order
    again, the model does (assumed: up to two fifths of the rate are lost)."""
    kept = 1.0 if rng.random() < 0.5 else rng.uniform(0.6, 1.0)
    return {"mpich.sockbuf": rng.choice(("16 KiB", "16 KiB", "32 KiB", "64 KiB")), "platform.link.bandwidth": f"{100 * kept:.4g} Mbps"}


MACHINE = hpl_runs.Machine(
    file=Path(__file__).parent / "hpl-athlon.csv",
    ids={(grid, n): f"HPLA-{4 * i + k + 1:03}" for i, grid in enumerate(GRIDS) for k, n in enumerate(SIZES)},
    draws=20,
    open=((1, 4), 10000, 1.95),
    question=question,
    more=more,
)

if __name__ == "__main__":
    hpl_runs.main(MACHINE, "HPL on four Athlons with two bonded Fast Ethernet cards, predicted by hpla.py.")
