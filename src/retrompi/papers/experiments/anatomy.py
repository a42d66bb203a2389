"""The time of single messages by stage."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from retrompi.base import units
from retrompi.papers.experiments import Done, Job
from retrompi.spec.question import Message, Question
from retrompi.store.lookup import answer

if TYPE_CHECKING:
    from retrompi.papers.statements.paper import Paper
    from retrompi.store.database import Store

JUDGED = False
KEYS = ("stage", "process", "seconds", "ps")


def jobs(plan: Paper, store: Store, fresh: bool) -> list[Job]:
    """Options: ``messages``, each with ``model``, ``mode``, ``size`` and, if it is not the study's first, ``platform``."""

    def explain(model: str, mode: str, size: int, platform: str) -> Done:
        got = answer(store, Question(model, platform, Message(size), mode, fidelity=plan.fidelity), fresh=fresh)
        stages = [{k: row[k] for k in KEYS if row.get(k) is not None} for row in got.rows]
        entry = {"model": model, "mode": mode, "size_B": size, "stages": stages, "run_id": got.run_id}
        total = sum(s["seconds"] for s in stages)
        return Done("anatomy", [{**entry, "total_s": total}], (got.run_id,), int(not got.found))

    return [
        Job(
            f"{m['model']} {m['mode']} {m['size']} anatomy",
            partial(explain, m["model"], m["mode"], int(units.parse(m["size"], "B")), m.get("platform", plan.platform)),
        )
        for m in plan.options("anatomy").get("messages", ())
    ]
