"""How much jobs that share a platform slow each other down: a scenario's jobs run together and each alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import UsageError
from retrompi.sim.resolved import Resolved
from retrompi.spec.conditions.cojobs import JobSpec, with_names
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.question import Beside, Question, Replay
from retrompi.store.lookup import answer
from retrompi.studies.define.scenario import source_of, trace_of

if TYPE_CHECKING:
    from retrompi.store.database import Store
    from retrompi.studies.define.scenario import Scenario

__all__ = ["compare"]


def compare(
    store: Store, scenario: Scenario, *, fresh: bool = False, report: Callable[[int, int, str], None] | None = None
) -> list[dict[str, Any]]:
    """A row for every job, the first one first: name, model, mode, trace, start_s, outcome, detail, runs, alone_s, together_s, slowdown.

    Times are in seconds since the job's start; for a background job ``together_s`` is the mean of its completed runs. A time is
    None if the job did not complete. Runs are looked up in the store, or simulated and stored. Raises UsageError
    for a scenario without ``[[job]]``.
    """
    if not scenario.jobs:
        raise UsageError(f"scenario '{scenario.name}' has no [[job]]: nothing shares its machines (docs/sharing.md)")
    jobs = with_names([j.spec() for j in scenario.jobs])
    first = JobSpec(
        scenario.model, trace_of(scenario), scenario.mode, scenario.sets, memory_share=scenario.program.memory_share, name=scenario.name,
        label=scenario.generator or str(scenario.trace), source=source_of(scenario),
    )
    program = replace(scenario.program, section=None, compute_s=None)
    asked = Resolved.of(Question(
        scenario.model, scenario.platform, Replay(first.trace, first.label, program, first.source), scenario.mode, scenario.sets,
        scenario.setting("seed"),
    ))
    done = 0

    def run(trace: Any, label: str, beside: list[JobSpec], kills: Sequence[str] = ()) -> dict[str, Any]:
        nonlocal done
        around = Beside(scenario.setting("traffic"), scenario.setting("failures"), beside, kills)
        workload = Replay(trace, label, program, first.source if trace is first.trace else {})
        found = answer(store, asked.with_fields(workload=workload, beside=around), fresh=fresh)
        done += 1
        if report:
            report(done, len(jobs) + 2, label)
        return store.run(found.run_id)

    together = run(first.trace, first.label, jobs, scenario.setting("kills"))
    rows = [_row(first, {**together, "runs": int(together["outcome"] == Outcome.COMPLETED)}, run(first.trace, first.label, []))]
    for spec, got in zip(jobs, together["facts"]["jobs"], strict=True):
        # Alone except for an idle first job, so that the machines' clocks tick as they do beside the real one.
        alone = run(_nothing(first.trace.ranks), "nothing", [replace(spec, background=False)])
        rows.append(_row(spec, got, alone["facts"]["jobs"][0]))
    return rows


def _nothing(ranks: int) -> Any:
    from retrompi._engine import Trace

    return Trace.parse([(f"{r} init\n{r} finalize\n".encode(), f"nothing, rank {r}", r) for r in range(ranks)])


def _row(spec: JobSpec, got: dict[str, Any], alone: dict[str, Any]) -> dict[str, Any]:
    before = alone["time_s"] if alone["outcome"] == Outcome.COMPLETED else None
    after = None
    if spec.background and got["runs"]:
        after = got["time_s"] / got["runs"]
    elif got["outcome"] == Outcome.COMPLETED:
        after = got["time_s"]
    return {
        "name": spec.name,
        "model": spec.model,
        "mode": spec.where,
        "trace": spec.label,
        "start_s": spec.start_s,
        "outcome": got["outcome"],
        "detail": got["detail"],
        "runs": got["runs"],
        "alone_s": before,
        "together_s": after,
        "slowdown": after / before if after is not None and before else None,
    }
