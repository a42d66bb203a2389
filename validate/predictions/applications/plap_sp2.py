"""The rows of PETSc's lap2d on Argonne's SP with P2SC nodes, predicted: ``python validate/predictions/applications/plap_sp2.py`` writes
plap-sp2.csv.

As plap_t3e.py: the open rows (PLAP-001, 002, 011, 012) fix two factors on computation. The library is not named: half of the draws have
IBM's MPI, half MPICH over the same packet layer; nominal is IBM's. What an empty message takes is documented for the nodes before (50 us,
E-SP2-05); a draw has something between that and that by the ratio of the clocks. ``--before`` says what was computed without the open rows.
"""

from __future__ import annotations

import math
from pathlib import Path
from random import Random

import _lap2d
from _common import SEED, SPEC, Row
from _lap2d import Case
from _sp2 import LATENCY, MODELS, user_space

from retrompi._engine import Trace
from retrompi.sim.resolved import Resolved
from retrompi.spec.question import Question, Replay
from retrompi.studies.draws.uncertainty import question_of

FILE = Path(__file__).parent / "plap-sp2.csv"
HOST = "ibm-p2sc-thin"
CLOCKS = 66 / 120
"""A thin node's of the SP2 over that of the P2SC's (E-SP2-01, E-SP2-04)."""
CASES = (
    Case(1000, (500,), (2, 4, 8, 16, 32), 95.54, 455.5, 1),
    Case(100, (543, 500, 719), (1, 2, 3, 4, 5, 6, 7, 8), 1.602, 9.425, 11),  # iterations: see plap_t3e.py
)
# Seconds an element of this node's kernels for cfd.2.10 (May 1998, PETC-002 and 004 to 010): N = 122880, 4134400 entries, blocks of 5 x 5.
KERNELS = {
    "spmv": 0.85087 / 9 / 4134400,
    **{kind: seconds / calls / 122880 for kind, seconds, calls in (
        ("norm", 0.024616, 10), ("scale", 0.038519, 10), ("copy", 0.0056514, 1), ("set", 0.0084705, 2), ("axpy", 0.0060774, 1),
        ("mdot", 0.21874, 9 * 5), ("maxpy", 0.34758, 10 * 5.4))},
}


def library(draw: int | None) -> tuple[str, float]:
    """The model, and the latency of an empty message, s; as many draws of each model, in an order of their own."""
    if draw is None:
        return MODELS[0], LATENCY * math.sqrt(CLOCKS)
    rng = Random(SEED + 1 + draw // 2)
    first, latencies = rng.randrange(2), [LATENCY * CLOCKS ** rng.random() for _ in range(2)]
    return MODELS[(first + draw) % 2], latencies[draw % 2]


def ask(trace: Trace, draw: int | None) -> Question:
    model, latency = library(draw)
    one = Question(model, f"{HOST}*{trace.ranks}@sp2-switch", Replay(trace), "distributed")
    # A single process has no messages, and no values of theirs.
    asked = one if trace.ranks == 1 else one.with_(overrides=list(user_space(model, HOST, latency)))
    return asked if draw is None else question_of(Resolved.of(asked), draw, SPEC)


def nominal(case: Case) -> list[Row]:
    """The times with nominal values, open ones too."""
    return _lap2d.nominal(ask, case)


TITLE = "PETSc's lap2d on an IBM SP with P2SC nodes, predicted by plap_sp2.py; not by hand. README.md explains it."

if __name__ == "__main__":
    _lap2d.main(__doc__, FILE, TITLE, ask, CASES, lambda: KERNELS)
