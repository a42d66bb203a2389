"""Find a run in the store, or simulate it and store it: the one road from a question to a run identifier."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from retrompi.spec import cross_traffic as network
from retrompi.spec import registry
from retrompi.spec.cojobs import identity
from retrompi.store.identity import RunSpec, run_spec, sha256_json
from retrompi.studies.scenario import trace_of

if TYPE_CHECKING:
    from retrompi._engine import Trace
    from retrompi.sim.simulate import Result
    from retrompi.sim.timeline import Request
    from retrompi.spec.cojobs import JobSpec
    from retrompi.spec.timed_section import Program
    from retrompi.store.database import Store
    from retrompi.studies.scenario import Scenario

__all__ = ["Found", "benchmark", "explain", "facts_of", "pingpong", "pingpong_spec", "replay", "run_scenario"]

Sets = Mapping[str, str] | Sequence[str]


@dataclass(frozen=True)
class Found:
    """A run's id, its rows, and whether it was ``found`` in the store rather than simulated now."""

    run_id: int
    rows: list[dict[str, Any]]
    found: bool
    timeline: Any = None
    """All of the timeline that was asked for; the store keeps a sample."""


def _listed(sets: Sets) -> list[str]:
    return [f"{k}={v}" for k, v in sets.items()] if isinstance(sets, Mapping) else list(sets)


def _with_options(trace_hash: str, **options: Any) -> str:
    """The trace's hash, or one over it and the options that were given."""
    given = {k: v for k, v in options.items() if v is not None}
    return sha256_json({"trace": trace_hash, **given}) if given else trace_hash


def _prepare(
    store: Store, model: str, platform: str, mode: Any, ranks: int, sets: Sets, seed: int, fidelity: str, fresh: bool
) -> None:
    """Below ``mechanism``: the samples of the mechanism out of the store, or into it."""
    if fidelity != "mechanism":
        from retrompi.sim.fidelity import prepare
        from retrompi.sim.sampling import NotSampled

        with suppress(NotSampled):  # how the mechanism ended is then the end of the run as well
            prepare(store, model, platform, mode, ranks, _listed(sets), seed, fresh=fresh)


def facts_of(
    store: Store, spec: RunSpec, work: Callable[[], Mapping[str, Any]], *, fresh: bool = False
) -> tuple[int, dict[str, Any], bool]:
    """(run id, facts, found): the facts kept under ``spec``, or those ``work`` gives now (a JSON object; its ``outcome`` counts)."""
    known = None if fresh else store.find_run(spec)
    if known is not None:
        return known, dict(store.run(known)["facts"]), True
    began = time.perf_counter()
    facts = dict(work())
    run_id = store.add_run(spec, {"outcome": "completed", "wall_s": time.perf_counter() - began, **facts})
    return run_id, dict(store.run(run_id)["facts"]), False


def pingpong_spec(
    model: str,
    platform: str,
    mode: str | Sequence[int],
    sizes: Sequence[int] | None = None,
    *,
    sets: Sets = (),
    seed: int = 1,
    reps: int | None = None,
    fidelity: str = "mechanism",
    scenario: Scenario | None = None,
    traffic: Sequence[str] = (),
    failures: Sequence[str] = (),
    jobs: Sequence[JobSpec] = (),
) -> RunSpec:
    """The specification of a PingPong. The generator's arguments stand for its trace: its code is hashed anyway."""
    made = {"generator": "pingpong", "sizes": None if sizes is None else list(sizes), "repetitions": reps}
    return run_spec(
        "pingpong",
        model,
        platform,
        mode=mode,
        sets=sets,
        seed=seed,
        fidelity=fidelity,
        trace="pingpong",
        trace_hash=_with_options(sha256_json(made), jobs=identity(jobs), **network.options(traffic, failures)),
        scenario=scenario.name if scenario else "",
        scenario_hash=scenario.hash if scenario else "",
    )


def pingpong(
    store: Store,
    model: str,
    platform: str,
    mode: str | Sequence[int],
    sizes: Sequence[int] | None = None,
    *,
    sets: Sets = (),
    seed: int = 1,
    reps: int | None = None,
    fresh: bool = False,
    fidelity: str = "mechanism",
    scenario: Scenario | None = None,
    traffic: Sequence[str] = (),
    failures: Sequence[str] = (),
    jobs: Sequence[JobSpec] = (),
) -> Found:
    """A PingPong curve: rows size_B, time_us (one way), bandwidth_MBps (10^6 B/s), repetitions.

    ``sizes`` in bytes, None for the papers' sizes; ``reps`` None for the papers' repetitions. ``fresh`` simulates
    even when an identical run is stored. A mode by name is resolved on the platform. Raises
    `simulate.SimulationEnded` when the benchmark does not complete, after storing how it ended.
    """
    if sizes is None:
        from retrompi.traces.generate import DEFAULT_SIZES

        sizes = DEFAULT_SIZES
    where = _where(platform, mode)
    spec = pingpong_spec(model, platform, where, sizes, sets=sets, seed=seed, reps=reps, fidelity=fidelity, scenario=scenario,
                         traffic=traffic, failures=failures, jobs=jobs)  # fmt: skip
    args = {"sizes": sizes, "reps": reps}
    return _curve(store, spec, "pingpong", args, model, platform, mode, sets, fresh, traffic, failures, jobs)


def _where(platform: str, mode: str | Sequence[int]) -> Any:
    """A mode as the simulation takes it."""
    return registry.platform(platform).placement(mode) if isinstance(mode, str) else list(mode)


def _curve(
    store: Store,
    spec: RunSpec,
    generator: str,
    args: Mapping[str, Any],
    model: str,
    platform: str,
    mode: str | Sequence[int],
    sets: Sets,
    fresh: bool,
    traffic: Sequence[str] = (),
    failures: Sequence[str] = (),
    jobs: Sequence[JobSpec] = (),
) -> Found:
    """The points of a benchmark, found under ``spec`` or made now by its generator; SimulationEnded when it does not complete."""
    from retrompi.sim import simulate
    from retrompi.traces import generate

    where = _where(platform, mode)
    benchmarked = "PingPong" if generator == "pingpong" else generator
    what = f"{benchmarked} of {model} on {platform}, {mode if isinstance(mode, str) else ','.join(map(str, mode))}"
    known = None if fresh else store.find_run(spec)
    if known is not None:
        simulate.require_completed(_ended(store.run(known)), what)
        return Found(known, store.points(known), True)
    made = generate.generator(generator)
    trace = generate.made(generator, args)
    _prepare(store, model, platform, where, trace.ranks, sets, spec.seed, spec.fidelity, fresh)
    result = simulate.run(model, platform, trace, mode=where, sets=_listed(sets), seed=spec.seed, fidelity=spec.fidelity,
                          traffic=traffic, failures=failures, jobs=jobs)  # fmt: skip
    rows = simulate.rows_from_marks(result, made.parts, made.counted, args)
    # The marks are the points in another form. A benchmark that did not complete is stored as well: its end is data.
    run_id = store.add_run(spec, {**asdict(result), "marks": []}, points=rows)
    simulate.require_completed(result, what)
    return Found(run_id, store.points(run_id), False)


def benchmark(
    store: Store,
    generator: str,
    args: Mapping[str, Any],
    model: str,
    platform: str,
    mode: str | Sequence[int],
    *,
    sets: Sets = (),
    seed: int = 1,
    fresh: bool = False,
    fidelity: str = "mechanism",
    scenario: Scenario | None = None,
    traffic: Sequence[str] = (),
    failures: Sequence[str] = (),
    jobs: Sequence[JobSpec] = (),
) -> Found:
    """A benchmark by its generator's name: rows as of `pingpong`, with the generator's rule for what a rate counts.

    Raises UsageError for an unknown generator or argument, `simulate.SimulationEnded` when it does not complete (after
    storing how it ended).
    """
    from retrompi.traces import generate

    generate.generator(generator).check(args)
    where = _where(platform, mode)
    spec = run_spec(
        "benchmark", model, platform, mode=where, sets=sets, seed=seed, fidelity=fidelity, trace=generator,
        trace_hash=_with_options(
            sha256_json({"generator": generator, "args": dict(args)}), jobs=identity(jobs), **network.options(traffic, failures)
        ),
        scenario=scenario.name if scenario else "", scenario_hash=scenario.hash if scenario else "",
    )  # fmt: skip
    return _curve(store, spec, generator, args, model, platform, mode, sets, fresh, traffic, failures, jobs)


def _ended(row: Mapping[str, Any]) -> Any:
    """A stored run as far as `simulate.require_completed` looks at a result."""
    return SimpleNamespace(outcome=row["outcome"], detail=row["detail"], waits=row["facts"].get("waits", []))


def explain(
    store: Store,
    model: str,
    platform: str,
    mode: str | Sequence[int],
    size: int,
    *,
    sets: Sets = (),
    fresh: bool = False,
    fidelity: str = "mechanism",
) -> Found:
    """Where the time of one message of ``size`` bytes goes: rows stage, process, seconds, ps that sum to the total."""
    where = _where(platform, mode)
    made = {"generator": "explain", "size": size}
    spec = run_spec(
        "explain", model, platform, mode=where, sets=sets, fidelity=fidelity, trace="one message", trace_hash=sha256_json(made)
    )
    known = None if fresh else store.find_run(spec)
    if known is not None:
        return Found(known, store.anatomy(known), True)
    from retrompi.sim import simulate

    _prepare(store, model, platform, where, 2, sets, 1, fidelity, fresh)
    began = time.perf_counter()
    answer = simulate.explain(model, platform, where, size, _listed(sets), fidelity=fidelity)
    facts = {"outcome": "completed", "wall_s": time.perf_counter() - began, "ranks": 2, "time_s": answer["total_s"]}
    run_id = store.add_run(spec, facts, anatomy=answer["stages"], size_B=size)
    return Found(run_id, store.anatomy(run_id), False)


def replay(
    store: Store,
    trace: Trace,
    label: str,
    model: str,
    platform: str,
    mode: str | Sequence[int],
    *,
    sets: Sets = (),
    seed: int = 1,
    limit_s: float | None = None,
    with_startup: bool = False,
    program: Program | None = None,
    kills: Sequence[str] = (),
    fresh: bool = False,
    fidelity: str = "mechanism",
    wildcards: str = "recorded",
    scenario: Scenario | None = None,
    timeline: Request | None = None,
    kind: str = "replay",
    about: Callable[[Result], tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]] | None = None,
    traffic: Sequence[str] = (),
    failures: Sequence[str] = (),
    jobs: Sequence[JobSpec] = (),
) -> Found:
    """Replay ``trace``; the rows are the per-rank ones, everything else is in the run's row and its ``facts``.

    ``program`` says what the trace does not; a section's times are in ``facts``. ``limit_s`` ends the job after so much
    simulated time (outcome timeout); ``with_startup`` starts it the way the runtime did, which may fail; ``kills``
    ends processes, ``wildcards`` chooses matches; ``traffic``, ``failures`` and ``jobs`` are beside it, as of `simulate.run`. A
    ``timeline`` is no part of a run's identity; asking for one simulates anew. ``about`` turns the result, with the profile of its calls,
    into the facts and points to store with a run of another ``kind``.
    """
    where = _where(platform, mode)
    if trace.kernels():
        from retrompi.spec import kernels

        loops = kernels.model_hash(platform)
    else:
        loops = None
    spec = run_spec(
        kind,
        model,
        platform,
        mode=where,
        sets=sets,
        seed=seed,
        fidelity=fidelity,
        trace=label,
        trace_hash=_with_options(
            trace.sha256, limit_s=limit_s, startup=with_startup or None, kills=list(kills) or None, kernels=loops,
            wildcards=None if wildcards == "recorded" else wildcards, jobs=identity(jobs), **network.options(traffic, failures),
            **(program.row() if program else {}),
        ),
        scenario=scenario.name if scenario else "",
        scenario_hash=scenario.hash if scenario else "",
    )
    known = None if fresh or timeline else store.find_run(spec)
    if known is not None:
        old = store.run(known)
        # A trace hashes alike wherever it lies, but who waits for whom is told by file and line.
        if old["outcome"] == "completed" or old["trace"] == label:
            return Found(known, store.ranks(known), True)
    from retrompi.sim import simulate
    from retrompi.sim.timeline import STORED

    _prepare(store, model, platform, where, trace.ranks, sets, seed, fidelity, fresh)
    result = simulate.run(
        model,
        platform,
        trace,
        mode=where,
        sets=_listed(sets),
        seed=seed,
        fidelity=fidelity,
        timeout_s=limit_s,
        with_startup=with_startup,
        kills=kills,
        program=program or simulate.NOTHING_MORE,
        wildcards=wildcards,
        timeline=timeline,
        profile=about is not None,
        traffic=traffic,
        failures=failures,
        jobs=jobs,
    )
    whole = result.timeline
    if whole is not None:
        whole.about["trace"] = label
        result = replace(result, timeline=whole.thinned(STORED).row())
    facts, points = about(result) if about else ({}, ())
    run_id = store.add_run(spec, {**asdict(result), **facts}, points=points)
    return Found(run_id, store.ranks(run_id), False, whole)


def _start(store: Store, scenario: Scenario, fresh: bool) -> Found:
    """Starts a job many times; the rows are the steps of a start, the counts are in the run's ``facts``."""
    model, room = registry.model(scenario.model), registry.platform(scenario.platform)
    where, ranks, starts = room.placement(scenario.mode), scenario.start["ranks"], scenario.start["starts"]

    def work() -> dict[str, Any]:
        from retrompi.sim import simulate

        seeds = range(scenario.seed, scenario.seed + starts)
        told = simulate.startup(scenario.model, scenario.platform, ranks, seeds, _listed(scenario.sets), where)
        apart = model().joins(room, simulate.place(room, where, ranks))
        return {"startup": told, "outcome": "failed-start" if apart else "completed", "detail": apart, "ranks": ranks}

    spec = run_spec(
        "startup", scenario.model, scenario.platform, mode=where, sets=scenario.sets, seed=scenario.seed, trace="start-up",
        trace_hash=sha256_json({"starts": starts, "ranks": ranks}), scenario=scenario.name, scenario_hash=scenario.hash,
    )  # fmt: skip
    run_id, facts, found = facts_of(store, spec, work, fresh=fresh)
    return Found(run_id, facts["startup"]["steps"], found)


def run_scenario(store: Store, scenario: Scenario, *, fresh: bool = False) -> Found:
    """Run an experiment as its file says: a curve for a PingPong, the loops' rates for Rinf1, the ranks' rows for a trace."""
    if scenario.start:
        return _start(store, scenario, fresh)
    if scenario.generator == "rinf1":
        from retrompi.papers import rinf1

        return rinf1.measure(
            store, scenario.platform, scenario.mode, loops=scenario.args.get("kernels", ""), model=scenario.model,
            sets=scenario.sets, seed=scenario.seed, fresh=fresh, scenario=scenario,
        )  # fmt: skip
    if scenario.compute_kernel:
        from retrompi.spec import kernels

        scenario = replace(scenario, sets={**kernels.compute_sets(scenario.platform, scenario.compute_kernel), **scenario.sets})
    where = (scenario.model, scenario.platform, scenario.mode)
    beside: dict[str, Any] = {
        "sets": scenario.sets, "seed": scenario.seed, "fresh": fresh, "fidelity": scenario.fidelity, "scenario": scenario,
        "traffic": scenario.traffic, "failures": scenario.failures, "jobs": [j.spec(scenario.platform) for j in scenario.jobs],
    }  # fmt: skip
    if scenario.trace is not None:
        return replay(
            store, trace_of(scenario), scenario.trace.name, *where, kills=scenario.kills, program=scenario.program, **beside
        )  # fmt: skip
    if scenario.kills or scenario.outcome != "completed":
        # A benchmark that is not to end well has no curve: what became of its ranks is the result.
        return replay(store, trace_of(scenario), str(scenario.generator), *where, kills=scenario.kills, **beside)
    if scenario.generator == "pingpong":
        return pingpong(store, *where, scenario.args.get("sizes"), reps=scenario.args.get("reps"), **beside)
    return benchmark(store, str(scenario.generator), scenario.args, *where, **beside)
