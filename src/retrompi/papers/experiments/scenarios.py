"""Scenarios of a study: every scenario whose name matches a pattern, as facts ``scenarios.NAME`` and as points."""

from __future__ import annotations

from fnmatch import fnmatch
from functools import partial
from typing import TYPE_CHECKING

from retrompi.papers.experiments import MESSAGES, Done, Job
from retrompi.papers.statements.draw import answer_drawn
from retrompi.sim.cautions import stored_cautions
from retrompi.spec.declare.curve import TimeCurve
from retrompi.studies.define import catalogue

if TYPE_CHECKING:
    from retrompi.papers.statements.paper import Paper
    from retrompi.store.database import Store

FACTS = {"scenarios": MESSAGES}


def jobs(plan: Paper, store: Store, fresh: bool) -> list[Job]:
    """Options: ``names``, patterns such as "hw-*". Facts: outcome, time_s, cautions, and of a benchmark ``peak`` (B/s), ``startup`` (s),
    model, platform, rule (what its rate counts)."""

    def one(name: str) -> Done:
        from retrompi.traces import generate

        scenario = catalogue.scenario(name)
        if plan.fidelity != "mechanism":
            scenario = scenario.with_settings({"fidelity": plan.fidelity})
        got = answer_drawn(plan.draw, store, scenario.question(), fresh)
        run = store.run(got.run_id)
        facts = {
            "outcome": run["outcome"], "time_s": run["time_s"], "model": scenario.model, "platform": scenario.platform,
            "cautions": sum(c.code == "not-simulated" for c in stored_cautions(run["facts"])),
        }
        if scenario.generator:
            facts["rule"] = generate.generator(scenario.generator).rule
            facts["peak"] = TimeCurve.of(got.rows).number("peak")
            facts["startup"] = got.rows[0]["time_us"] * 1e-6
        return Done(f"scenarios.{name}", facts, (got.run_id,), int(not got.found))

    wanted = plan.options("scenarios").get("names", ())
    return [Job(name, partial(one, name)) for name in catalogue.scenarios() if any(fnmatch(name, w) for w in wanted)]
