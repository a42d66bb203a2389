"""The Rinf1 loops on every host of the study's platform, timed with its clock."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from retrompi.papers import rinf1 as benchmark
from retrompi.papers.draw import drawn
from retrompi.papers.experiments import Done, Job
from retrompi.spec import registry
from retrompi.spec.question import Benchmark, Question
from retrompi.store.lookup import answer

if TYPE_CHECKING:
    from retrompi.papers.paper import Paper
    from retrompi.store.database import Store


def jobs(plan: Paper, store: Store, fresh: bool) -> list[Job]:
    """Option ``platform`` (the study's first); the facts are ``rinf1.HOST.KERNEL.min`` and ``max``, ``rinf1.peak``, ``rinf1.ratio``."""
    platform = str(plan.options("rinf1").get("platform", plan.platform))
    asked = Question(plan.models[0], platform, Benchmark("rinf1"))
    hosts = [h.name for h in registry.platform(platform).hosts]

    def loops() -> Done:
        got = {h: answer(store, drawn(plan.draw, asked.with_(placement=h)), fresh=fresh) for h in hosts}
        runs = tuple(g.run_id for g in got.values())
        return Done("rinf1", benchmark.facts({h: g.rows for h, g in got.items()}), runs, sum(not g.found for g in got.values()))

    return [Job("Rinf1", partial(loops), 0.5)]
