"""The cautions of scenarios and of the runs of studies and searches (`retrompi.sim.cautions`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from retrompi.base.errors import RetrompiError
from retrompi.sim.cautions import Caution, calibration, merge_cautions, of_run, of_trace, stored_cautions
from retrompi.sim.resolved import Resolved
from retrompi.studies.define import metrics
from retrompi.studies.define.keys import ranks_of
from retrompi.studies.define.scenario import trace_of

if TYPE_CHECKING:
    from retrompi.store import Store
    from retrompi.studies.define.scenario import Scenario
    from retrompi.studies.execute.run import StudyRun

__all__ = ["count_cautions", "kept_by", "of_scenario", "of_scenarios", "of_search", "of_study"]


def of_scenario(scenario: Scenario, kept: Iterable[Caution] = ()) -> list[Caution]:
    """The cautions of a scenario and those ``kept`` by its run, if it was run. Raises UsageError for a scenario that cannot be asked."""
    s = scenario
    if s.trace is not None:
        trace = trace_of(s)
        of = of_trace(trace)
        beyond = calibration(s.model, s.platform, sizes=[trace.info()["largest_B"]], ranks=trace.ranks, sets=s.sets)
    else:
        of = []
        sizes = () if s.start or s.generator == "rinf1" else metrics.sizes_of(s)
        beyond = calibration(s.model, s.platform, sizes=sizes, ranks=ranks_of(s), sets=s.sets)
    return [*dict.fromkeys([*of_run(Resolved.of(s.question()), kept), *of, *beyond])]


def of_scenarios(named: Iterable[tuple[str, Scenario]], kept: Mapping[str, Sequence[Caution]] | None = None) -> list[Caution]:
    """The cautions of several scenarios, by name; scenarios that cannot be asked have none (who runs them says why)."""
    some: dict[str, list[Caution]] = {}
    for name, scenario in named:
        with suppress(RetrompiError):
            some.setdefault(name, []).extend(of_scenario(scenario, (kept or {}).get(name, ())))
    return merge_cautions(some.items())


def of_search(store: Store, scenarios: Iterable[Scenario], run_ids: Iterable[int | None]) -> list[Caution]:
    """The cautions of a search: of its base and its ends, by model, and those kept by its runs."""
    found = of_scenarios((s.model, s) for s in scenarios)
    known = {c.code for c in found}
    return [*found, *(c for c in kept_by(store, run_ids) if c.code not in known)]


def kept_by(store: Store, run_ids: Iterable[int | None]) -> list[Caution]:
    """The cautions kept by the runs of a search or a study, each once; ``about`` says how many of them have it, unless all do."""
    wanted = sorted({i for i in run_ids if i is not None})
    return count_cautions(store.cautions(wanted).values(), len(wanted), "runs")


def of_study(store: Store, told: StudyRun) -> list[Caution]:
    """The cautions of a study that was run: those of its question, and those kept by its runs."""
    return [*told.warnings, *count_cautions(store.study_cautions(told.study_id), told.points, "points")]


def count_cautions(of: Iterable[Iterable[Mapping[str, str] | str]], total: int, what: str) -> list[Caution]:
    """Cautions as they are stored, of ``total`` runs or points: each once, with how many have it."""
    counts: dict[Caution, int] = {}
    for some in of:
        for one in dict.fromkeys(stored_cautions({"cautions": some})):
            counts[one] = counts.get(one, 0) + 1
    return [one if n == total else replace(one, about=f"{n} of {total} {what}") for one, n in counts.items()]
