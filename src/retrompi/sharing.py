"""How much jobs that share a machine room slow each other down: a scenario's jobs together, and each alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from retrompi import experiment, registry
from retrompi.errors import UsageError
from retrompi.jobs import JobSpec, named

if TYPE_CHECKING:
    from retrompi.scenario import Scenario
    from retrompi.store.database import Store

__all__ = ["compare"]


def compare(store: Store, scenario: Scenario, *, fresh: bool = False, report: Callable[[int, int, str], None] | None = None) -> list[dict[str, Any]]:
    """A row for every job, the first one first: name, model, mode, trace, start_s, outcome, detail, runs, alone_s, together_s, slowdown.

    Times are in seconds since the job's start; of a background job ``together_s`` is the mean of the runs that ended. A time is None
    where the job did not complete. All runs are found in the store or put there. Raises UsageError for a scenario without ``[[job]]``.
    """
    if not scenario.jobs:
        raise UsageError(f"scenario '{scenario.name}' has no [[job]]: nothing shares its machines (docs/sharing.md)")
    jobs = named([j.spec(scenario.platform) for j in scenario.jobs])
    first = JobSpec(scenario.model, _trace(scenario), registry.platform(scenario.platform).placement(scenario.mode), scenario.sets,
                    memory_share=scenario.program.memory_share, name=scenario.name, label=scenario.generator or str(scenario.trace))  # fmt: skip
    room = {k: v for k, v in scenario.sets.items() if k.startswith("platform.")}
    done = 0

    def run(spec: JobSpec, beside: list[JobSpec]) -> dict[str, Any]:
        nonlocal done
        own = {k: v for k, v in room.items() if k not in spec.alone() and _counts(k, spec, scenario)} | spec.alone()
        program = replace(scenario.program, section=None, compute_s=None, memory_share=spec.memory_share)
        found = experiment.replay(
            store, spec.trace, spec.label, spec.model, scenario.platform, spec.mode, sets=own, seed=scenario.seed, program=program,
            kills=scenario.kills if beside else (), fresh=fresh, scenario=scenario if beside else None, jobs=beside,
        )  # fmt: skip
        done += 1
        if report:
            report(done, len(jobs) + 2, spec.name)
        return store.run(found.run_id)

    together = run(first, jobs)
    rows = [_row(first, {**together, "runs": int(together["outcome"] == "completed")}, run(first, []))]
    for spec, got in zip(jobs, together["facts"]["jobs"], strict=True):
        rows.append(_row(spec, got, run(spec, [])))
    return rows


def _counts(key: str, spec: JobSpec, scenario: Scenario) -> bool:
    """Whether an override of the room is one of the job's machines: of others it would be refused as idle when the job is alone."""
    owner = key.split(".")[1]
    room = registry.platform(scenario.platform)
    if owner in ("host", "link"):
        return True
    from retrompi.simulate import place

    return owner in {room.hosts[i].name for i in place(room, spec.mode, spec.trace.ranks)}


def _trace(scenario: Scenario) -> Any:
    from retrompi import traces
    from retrompi.traces import generate

    if scenario.trace is not None:
        return traces.read(scenario.trace, np=scenario.np)
    return generate.generator(str(scenario.generator)).make(**scenario.args)


def _row(spec: JobSpec, got: dict[str, Any], alone: dict[str, Any]) -> dict[str, Any]:
    before = alone["time_s"] if alone["outcome"] == "completed" else None
    after = None
    if spec.background and got["runs"]:
        after = got["time_s"] / got["runs"]
    elif got["outcome"] == "completed":
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
