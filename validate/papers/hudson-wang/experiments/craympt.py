"""The measurements for calibrating Cray MPT: the point-to-point rates of Tables 1 and 4, all libraries on both machines."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import TYPE_CHECKING

from retrompi.papers.experiments import Job, Look, Seen
from retrompi.sim import simulate
from retrompi.sim.resolved import Resolved
from retrompi.studies.define import catalogue
from retrompi.traces.calls import calls_of

if TYPE_CHECKING:
    from retrompi.papers.statements.paper import Paper
    from retrompi.spec.question import Question
    from retrompi.store.database import Store
    from retrompi.studies.define.scenario import Scenario

FITTED = "hw-*-point-*"
"""Scenarios of the tables that a fit may use."""


def jobs(plan: Paper, store: Store, fresh: bool) -> list[Job]:
    """No jobs: the study runs the scenarios."""
    return []


def looks(model: str, platform: str) -> list[Look]:
    """Facts ``scenarios.NAME.peak`` (B/s) of every point-to-point scenario; model and platform are the scenario's own."""
    return [_look(catalogue.scenario(name)) for name in catalogue.scenarios() if fnmatch(name, FITTED)]


def _look(scenario: Scenario) -> Look:
    base = scenario.model.partition(":")[0]

    def peak(question: Question) -> Seen:
        used = _used(scenario)  # the toolkit's three libraries share one set of numbers
        mine = {k: v for k, v in question.sets.items() if k.startswith("platform.") or f"{base}.{k.rpartition('.')[2]}" in used}
        rows = simulate.benchmark(question.with_(overrides=mine))
        return [], {"scenarios": {scenario.name: {"peak": max(r["bandwidth_MBps"] for r in rows) * 1e6}}}

    return Look(scenario.name, scenario.question(), peak)


def _used(scenario: Scenario) -> frozenset[str]:
    asked = Resolved.of(scenario.question())
    return frozenset(simulate.compile_question(asked, calls_of(asked.trace, asked.question)).used)
