"""The measurements for calibrating Cray MPT: the point-to-point rates of Tables 1 and 4, all libraries on both machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from retrompi.papers.experiments import Job
from retrompi.sim import simulate
from retrompi.sim.resolved import Resolved
from retrompi.studies import catalogue
from retrompi.traces.calls import calls_of

if TYPE_CHECKING:
    from retrompi.papers.paper import Paper
    from retrompi.store.database import Store
    from retrompi.studies.scenario import Scenario

FITTED = "hw-*-point-*"
"""Scenarios of the tables that a fit may use."""


def jobs(plan: Paper, store: Store, fresh: bool) -> list[Job]:
    """No jobs: the study runs the scenarios."""
    return []


def _used_by(scenario: Scenario, sets: Sequence[str]) -> list[str]:
    """Those of ``sets`` that the scenario's run uses: the toolkit's three libraries share one set of numbers."""
    asked = Resolved.of(scenario.question())
    used = simulate.compile_question(asked, calls_of(asked.trace, asked.question)).used
    base = scenario.model.partition(":")[0]
    return [s for s in sets if f"{base}.{s.partition('=')[0].rpartition('.')[2]}" in used]


def look(model: str, platform: str, sets: Sequence[str]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Facts ``scenarios.NAME.peak`` (B/s) of every point-to-point scenario, with overrides; ``platform`` is the scenario's own."""
    from fnmatch import fnmatch

    facts: dict[str, Any] = {}
    for name in catalogue.scenarios():
        if not fnmatch(name, FITTED):
            continue
        scenario = catalogue.scenario(name)
        mine = _used_by(scenario, sets)
        rows = simulate.benchmark(scenario.question().with_(overrides=mine))
        facts[name] = {"peak": max(r["bandwidth_MBps"] for r in rows) * 1e6}
    return [], {"scenarios": facts}
