"""The executable specification: the engine's mechanism once more, in plain Python that can be read.

It takes what the engine takes, the compiled question and the calls of a trace, and must give the same: every time to the picosecond,
every counter, every match, every outcome. It has no caches, plans nothing ahead, leaves out no repetition and shares no code with the
engine; clarity is its only quality. What it has no rule for yet it refuses in one line (`NotCovered`); docs/specification.md has the
table of rules.

    python -m retrompi.reference -m wmpi -p nt-pair --mode shared job.ti

Read in this order: `loop`, `memory`, `host`, `channel`, then a channel (`shared_memory`, `curve`, `stream` with `tcp`, `datagram`, `dma`),
`network`, `fluid`, `mpi`, `collectives` with `algorithms`, `simulation`.
"""

from retrompi.reference.simulation import simulate
from retrompi.reference.values import NotCovered

__all__ = ["NotCovered", "simulate"]
