"""Starting a job many times: its failure rate and the manual steps required."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from retrompi.papers.experiments import Done, Job
from retrompi.papers.statements.draw import apply_draw
from retrompi.sim import simulate
from retrompi.sim.resolved import Resolved
from retrompi.spec.question import Question, Starts
from retrompi.store.identity import specification
from retrompi.store.lookup import facts_of

if TYPE_CHECKING:
    from retrompi.papers.statements.paper import Paper
    from retrompi.store.database import Store


def jobs(plan: Paper, store: Store, fresh: bool) -> list[Job]:
    """Options: ``processes``, ``machines``, ``starts``; the facts are ``startup.MODEL``, ``machines`` and ``processes``."""
    o = plan.options("startup")
    processes, starts = int(o["processes"]), int(o["starts"])

    def start(model: str) -> Done:
        asked = Resolved.of(apply_draw(plan.draw, Question(model, plan.platform, Starts(processes, starts))))
        run_id, facts, found = facts_of(store, specification(asked), lambda: {"startup": simulate.startup(asked)}, fresh=fresh)
        return Done(f"startup.{model}", facts["startup"], (run_id,), int(not found))

    told = [Job(f"{model} start-up", partial(start, model)) for model in plan.models]
    told += [Job(f"{key} of the start-up", partial(Done, key, int(o[key])), 0.0) for key in ("machines", "processes")]
    return told
