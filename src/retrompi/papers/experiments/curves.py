"""A paper's measured curves (``[[curve]]``), each simulated once at its own sizes and at those that the checks of claims ask for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from retrompi.papers.experiments import Done, Job
from retrompi.papers.judging.curve_checks import curves_of, facts_of, sizes_asked
from retrompi.papers.statements.claims import by_paper, checks
from retrompi.papers.statements.curves import PaperCurve, of, question
from retrompi.papers.statements.draw import answer_drawn

if TYPE_CHECKING:
    from retrompi.papers.statements.paper import Paper
    from retrompi.store.database import Store


def jobs(plan: Paper, store: Store, fresh: bool) -> list[Job]:
    """A job a curve; nothing is optional. A draw has only the curves that something judges."""
    curves = of(plan)
    below = {c.name: c.layer_below for c in curves}
    if plan.draw is not None:
        curves = tuple(c for c in curves if c.points or c.name in checked_curves(plan, below))
    sizes = sizes_asked(by_paper(plan.key), checks(), below)

    def one(curve: PaperCurve) -> Done:
        got = answer_drawn(plan.draw, store, question(curve, {*curve.grid, *sizes[curve.name]}), fresh)
        times = {int(r["size_B"]): float(r["time_us"]) * 1e-6 for r in got.rows}
        told: dict[str, Any] = {curve.name: facts_of(curve.grid, times)}
        return Done("curves", told, (got.run_id,), int(not got.found))

    first = Job("layers below", lambda: Done("layers_below", below), 0.1)
    return [first, *(Job(c.title, partial(one, c), sum(c.grid) * 1e-7 + 0.5) for c in curves)]


def checked_curves(plan: Paper, below: Mapping[str, str]) -> set[str]:
    """The curves that a check of the paper's claims names."""
    how = checks()
    mine = (c for claim in by_paper(plan.key) for c in how.get(claim.id, ()) if c.get("kind") == "curve")
    return {name for c in mine for name in curves_of(c, below.get(str(c["curve"]), ""))}
