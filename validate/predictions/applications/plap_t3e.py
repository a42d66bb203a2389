"""The rows of PETSc's lap2d on the Cray T3E, predicted: ``python validate/predictions/applications/plap_t3e.py`` writes plap-t3e.csv.

The open rows (PLAP-027, 028, 037, 038: the smallest number of processes of each grid) fix two factors on the roofline's time, of products
and of operations on vectors; nothing else is fitted. A draw has values of the library and the machine from their posterior or range, finds
its factors, and goes to the other numbers of processes. ``--before`` says what was computed of the open rows without them.
"""

from __future__ import annotations

from pathlib import Path

import _lap2d
from _common import SPEC, Row
from _lap2d import Case

from retrompi._engine import Trace
from retrompi.sim.resolved import Resolved
from retrompi.spec.question import Question, Replay
from retrompi.studies.draws.uncertainty import question_of

FILE = Path(__file__).parent / "plap-t3e.csv"
CASES = (
    Case(1000, (500,), (2, 4, 8, 16, 32), 134.6, 432.3, 27),
    # Not stated: as many as it takes to a residual of 1e-5, PETSc's default (543, counted with PETSc 3.18), of 1e-2 / 101^2, as later
    # examples set it (719, counted), or as the larger grid's.
    Case(100, (543, 500, 719), (1, 2, 3, 4, 5, 6, 7, 8), 2.233, 9.566, 37),
)


def ask(trace: Trace, draw: int | None) -> Question:
    one = Question("craympt", f"cray-t3e-pe*{trace.ranks}@t3e-torus", Replay(trace), "distributed")
    return one if draw is None else question_of(Resolved.of(one), draw, SPEC)


def nominal(case: Case) -> list[Row]:
    """The times with nominal values, open ones too."""
    return _lap2d.nominal(ask, case)


TITLE = "PETSc's lap2d on a Cray T3E, predicted by plap_t3e.py; not by hand. README.md explains it."

if __name__ == "__main__":
    # PETC-057 to 065
    _lap2d.main(__doc__, FILE, TITLE, ask, CASES, lambda: _lap2d.elements("cray-t3e-pe", "cfd"))
