"""HPL on eight dual Pentium III with Myrinet, predicted: ``python validate/predictions/applications/hplt.py`` writes hpl-torc.csv."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random

import hpl_runs

from retrompi._engine import Trace
from retrompi.spec.conditions.timed_section import Program
from retrompi.spec.question import Question, Replay

NODES = 8
GRIDS = ((2, 4), (4, 4))
SIZES = (2000, 5000, 8000, 10000, 15000, 20000)
NETWORK = "myrinet-lanai4"


def question(trace: Trace, ranks: int) -> Question:
    """Eight processes have a node each: 20000 rows need 3.2 GB, which four nodes of 512 MB do not have. Sixteen are two a node, and share
    its card and its memory, for which each waits in a share of its computation that is the product's (`hpl_runs.memory_share`)."""
    platform = f"linux-piii-550*{NODES}@{NETWORK}"
    program = Program(memory_share=hpl_runs.memory_share(platform, hpl_runs.USUAL) if ranks > NODES else 0.0)
    return Question("mpichgm", platform, Replay(trace, program=program), "distributed")


def more(rng: Random) -> Mapping[str, str]:
    """The card is not stated: one for 32-bit slots of up to 1999, or one of 2000 in the same slot, whose processor takes half the time."""
    return {"platform.host.nic_latency": f"{rng.choice((3.4, 1.7)):g} us"}


MACHINE = hpl_runs.Machine(
    file=Path(__file__).parent / "hpl-torc.csv",
    ids={(grid, n): f"HPLT-{6 * i + k + 1:03}" for i, grid in enumerate(GRIDS) for k, n in enumerate(SIZES)},
    draws=16,
    open=((2, 4), 20000, 2.73),
    question=question,
    more=more,
    ahead=False,
    blocks=(40, 60, 80),
)

if __name__ == "__main__":
    hpl_runs.main(MACHINE, "HPL on eight dual Pentium III with Myrinet, predicted by hplt.py.")
