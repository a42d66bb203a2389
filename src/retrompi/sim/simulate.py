"""Running a model on a platform: traces, PingPong curves, the anatomy of a message, start-up.

Every simulation goes through `run`: parameters are resolved and compiled to channel specifications, a worker process runs
the engine, and its answer is returned as a `Result`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from retrompi.base import units
from retrompi.base.errors import EngineError, InputError, RetrompiError, UsageError, nearest
from retrompi.base.units import PS
from retrompi.sim import fidelity as ladder
from retrompi.sim import repetitions
from retrompi.sim.cautions import Caution, of_trace, to_keep
from retrompi.sim.observe import NOTHING, Observe
from retrompi.sim.rank_table import RankTable
from retrompi.sim.resolved import Resolved, place
from retrompi.sim.result import Result, counters_of, job_result, traffic_results
from retrompi.sim.samples import Samples
from retrompi.sim.sampling import NotSampled
from retrompi.sim.worker import ForkServer, Stopped, shared_server
from retrompi.spec.collectives import PREFIX
from retrompi.spec.compiled.compile import Compiled as CompiledRuntime
from retrompi.spec.compiled.compile import compile_runtime, refuse, unused_by_start, unused_overrides, unused_parameters
from retrompi.spec.conditions import cojobs, cross_traffic
from retrompi.spec.conditions.cojobs import CompiledJob
from retrompi.spec.conditions.network_model import by_simgrid
from retrompi.spec.declare.calls import ANYTHING, Calls
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.declare.result import MarkRow, PointRow, StageRow, StartsRow, StepRow, Totals, outputs
from retrompi.spec.layout import Layout
from retrompi.spec.machine import derived, kernels
from retrompi.spec.model import StartStep
from retrompi.spec.question import WILDCARDS, Benchmark, Message, Question, Replay, Starts, pingpong
from retrompi.spec.runtime.users_code import users_code
from retrompi.spec.values import Values
from retrompi.traces import generate
from retrompi.traces.calls import calls_of
from retrompi.traces.origin import LOST_BY_SMPI, may_have_lost
from retrompi.traces.timed_section import compute_scale, prepare, section_of

if TYPE_CHECKING:
    from retrompi._engine import Trace
    from retrompi.sim.message_path import MessagePath

__all__ = ["WILDCARDS", "Benchmark", "Message", "Observe", "Question", "Replay", "Resolved", "Result", "SimulationEnded", "Starts",
           "benchmark", "compile_question", "explain", "library_steps", "message_path", "pingpong", "place", "run", "startup"]

_NO_PUT = "this runtime has no one-sided operations between ranks"  # engine/mpi/one_sided.cpp
EXPLAIN_REPETITIONS = 6
"""Round trips before the one whose anatomy is shown: queues, credits and caches of buffers are then in their steady state."""


class SimulationEnded(RetrompiError):
    """A benchmark did not complete; exit code 1, since the outcome is a result, not an error."""

    exit_code = 1
    code = "not-completed"
    run_id: int | None = None
    """Its run in the store, with the points of the sizes that it finished."""


def compile_question(asked: Resolved, calls: Calls = ANYTHING, others: Sequence[CompiledJob] = ()) -> CompiledRuntime:
    """The runtime of a question compiled for the engine, for a program that makes ``calls``.

    Raises UsageError for an override that the run does not use, unless the question accepts such; ``others`` are further jobs, whose use
    of the platform counts as well.
    """
    values = asked.values.fresh()  # earlier reads, for other purposes, do not count as used by this run
    found = compile_runtime(asked.model, values, Layout(asked.platform, asked.placement), calls)
    if not asked.question.idle_overrides:
        refuse(unused_overrides(asked.model, values, found, calls, [j.found for j in others]))
    return found


def library_steps(question: Question | Resolved) -> tuple[CompiledRuntime, list[Any]]:
    """The runtime of a question, compiled, and what its library does for the collectives and new communicators of each rank.

    Nothing is simulated. The second is ``_engine.library_steps``: by rank, ``(line, [(context, tag, [(step, peer, slot, bytes), ...])])``.
    """
    from retrompi import _engine

    asked = Resolved.of(question)
    _refuse_unsupported(asked.trace)
    found = compile_question(asked, calls_of(asked.trace, asked.question))
    rows = {**found.rows, "kills": []} | _asked_of_the_engine(asked, asked.trace, 1.0) | _observe_rows(NOTHING)
    return found, _engine.library_steps(rows, asked.trace)


def engine_rows(asked: Resolved) -> dict[str, Any]:
    """The engine's input for a question about one job, without simulating it; below mechanism level its curves are sampled.

    Raises UsageError where they cannot be.
    """
    _refuse_wireless(asked.question)
    rows = compile_question(asked, calls_of(asked.trace, asked.question)).rows
    rows["kills"] = _kills(asked.question.beside.kills, rows)
    try:
        rows, _ = _complete_rows(rows, asked, *_timed_trace(asked))
    except NotSampled as error:
        raise UsageError(f"fidelity '{asked.question.fidelity}' cannot be sampled: {error}", code="needs-mechanism") from None
    return rows


def run(question: Question | Resolved, observe: Observe = NOTHING, server: ForkServer | None = None) -> Result:
    """Run the simulation that a question describes, on ``server`` (default: the shared server of this thread).

    If the runtime cannot run one job across the hosts, the outcome is ``failed-start``. Further jobs are not also run alone.
    Raises UsageError for a wrong name, placement or override, InputError for a trace that cannot be simulated.
    """
    asked = Resolved.of(question)
    q = asked.question
    if q.fidelity != "mechanism" and asked.platform.link.file:
        raise UsageError(f"fidelity '{q.fidelity}' has one curve for all pairs of equal hosts, which a platform file's routes tell "
                         "apart; use mechanism", code="needs-mechanism")
    _refuse_wireless(q)
    _refuse_unsupported(asked.trace)
    begin = time.perf_counter()
    others = _compiled_jobs(asked)
    found = asked.once("compiled", lambda: compile_question(asked, calls_of(asked.trace, q), others))
    rows = dict(found.rows)
    with users_code(asked.model.folder(), "this model returns a value of a wrong type"):
        rows["kills"] = _kills(q.beside.kills, rows, others)
    if asked.apart:
        return _not_run(asked, Outcome.FAILED_START, asked.apart, begin)
    steps: list[StepRow] = []
    if q.start_up:
        steps, reason = start(asked, q.seed)
        if reason:
            return _not_run(asked, Outcome.FAILED_START, reason, begin, steps)
    trace, scale = _timed_trace(asked)
    beside = [j for j in others if not j.apart]
    try:
        rows, notes = _complete_rows(rows, asked, trace, scale, beside)
    except NotSampled as error:
        return _not_run(asked, error.outcome, str(error), begin)
    rows |= _observe_rows(observe)
    try:
        got = _answer(asked, rows, trace, beside, server or shared_server())
    except Stopped as error:
        return _not_run(asked, Outcome.LIMIT, str(error), begin)
    outcome = Outcome(got["outcome"])
    if outcome is Outcome.COMPLETED and not q.idle_overrides:
        _check_collectives(asked.values, {operation for operation, _, _ in got["collectives"]})
    return replace(
        _result(asked, trace, rows["hosts"], got),
        wall_s=time.perf_counter() - begin,
        timeline=_timeline(got, asked.trace, observe, {"model": q.model, "platform": q.platform, "mode": asked.mode}),
        startup=steps,
        cautions=[
            *asked.once("cautions", lambda: [*to_keep(asked), *_derived_cautions(asked, found.used)]),
            *(Caution("not-sampled", line) for line in notes), *(Caution("left-open", line) for line in _left_open(got, others)),
            *asked.once("of trace", lambda: of_trace(trace)),
            *(Caution("lost-in-recording", line) for line in _origin(trace, outcome)),
        ],
        used=asked.once("used", lambda: sorted(found.used)),
        jobs=_job_results(others, got["jobs"], rows["hosts"]["names"]),
    )


def _answer(asked: Resolved, rows: dict[str, Any], trace: Trace, beside: Sequence[CompiledJob], server: ForkServer) -> dict[str, Any]:
    """What the engine answers to its input; its errors are told as those of whose they are. Raises Stopped."""
    try:
        with users_code(asked.model.folder(), passing=(EngineError,)):
            return server.simulate(rows, trace, trace.sha256, [j.spec.trace for j in beside])
    except Stopped:
        raise
    except InputError as error:
        if _NO_PUT in str(error) and rows["bcast"]["algorithm"] == "put_tree":
            raise UsageError(f"{error}; {asked.model.name} broadcasts, and does what is made of a broadcast, by puts into the memory of "
                             "other ranks: use one host, or hosts that it joins", code=error.code) from None
        raise
    except EngineError as error:
        if asked.platform.link.file and error.code != "stopped":  # what the user has written is read and carried by SimGrid alone
            file = Path(asked.platform.link.file[0])
            raise InputError(f"SimGrid does not survive this platform: {error}", file, code="bad-platform-file") from None
        raise


def _result(asked: Resolved, trace: Trace, hosts: Mapping[str, Any], got: Mapping[str, Any]) -> Result:
    """The part of the result that the engine's answer has."""
    marks: list[MarkRow] = [{"rank": r, "label": label, "time_s": t * PS, "time_ps": t} for r, label, t in got["marks"]]
    section = asked.program.section
    numbers: dict[str, Any] = {**counters_of(got), **{name: got[name] for name in outputs(Totals)}}
    return Result(
        outcome=Outcome(got["outcome"]),
        detail=got["detail"],
        time_s=got["time_ps"] * PS,
        time_ps=got["time_ps"],
        ranks=trace.ranks,
        actions=trace.actions,
        per_rank=RankTable(got["per_rank"], hosts["names"]),
        marks=marks,
        section=None if section is None else section_of(marks, section),
        anatomy=[{"stage": s, "process": p, "seconds": t * PS, "ps": t} for s, p, t in got["anatomy"]],
        anatomy_ps=got["anatomy_total_ps"],
        waits=got["waits"],
        diagnosis=got.get("diagnosis", {}),
        message_path=_message_path(got),
        critical_path=_critical_path(got, hosts),
        profile=got.get("profile", {}),
        collectives=[{"operation": o, "algorithm": a, "calls": n} for o, a, n in got["collectives"]],
        traffic=traffic_results(asked.question.beside.traffic, got["traffic"]),
        failed=got["failed"],
        done=got["done"],
        **numbers,
    )


def _origin(trace: Trace, outcome: Outcome) -> list[str]:
    """Why a job may not have completed: a trace that keeps less than its program did."""
    return [LOST_BY_SMPI] if outcome in (Outcome.DEADLOCK, Outcome.ABORTED) and may_have_lost(trace) else []


def _derived_cautions(asked: Resolved, used: Collection[str]) -> list[Caution]:
    """Cautions about values derived from the user's overrides: which followed, and which kept a value of their own. Draws and other
    generated values are no changes of a user's."""
    if asked.question.idle_overrides:
        return []
    return [Caution("follows-override", line) for line in derived.lines(asked.base_platform, asked.platform, used)]


def _left_open(got: Mapping[str, Any], others: Sequence[CompiledJob]) -> list[str]:
    """Left open by the jobs that completed: messages not received, requests not completed, windows not freed."""
    names = [j.spec.name for j in others if not j.apart]
    further = [f"{name}: {told}" for name, job in zip(names, got["jobs"], strict=True) for told in job["leftovers"]]
    return [*got["leftovers"], *further]


def _refuse_unsupported(trace: Trace) -> None:
    for file, line, action, reason in trace.unsupported()[:1]:
        raise UsageError(f"{file}:{line}: {action}: {reason}", code="unsupported-action")


def _not_run(asked: Resolved, outcome: Outcome, detail: str, begin: float, steps: Sequence[StepRow] = ()) -> Result:
    """The result of a run that could not be started or sampled; ``begin`` is the value of `time.perf_counter` at its start."""
    trace = asked.trace
    wall_s = time.perf_counter() - begin
    return Result(outcome=outcome, detail=detail, ranks=trace.ranks, actions=trace.actions, wall_s=wall_s, startup=list(steps),
                  cautions=of_trace(trace))


def _timed_trace(asked: Resolved) -> tuple[Trace, float]:
    """The trace with its timed section marked, and the factor on its computation."""
    trace, program = asked.trace, asked.program
    if program.section is None:
        return trace, 1.0
    scale = 1.0
    if program.compute_s is not None:
        rates = [program.compute_flops or asked.platform.hosts[h].flops for h in asked.placement]
        scale = compute_scale(trace, program.section, program.compute_s, rates)
    return prepare(trace, program.section), scale


def _asked_of_the_engine(asked: Resolved, trace: Trace, scale: float) -> dict[str, Any]:
    """The settings of the question that the engine reads directly."""
    q = asked.question
    rows: dict[str, Any] = {
        "seed": q.seed,
        "wire": asked.network,
        "wildcards": q.wildcards,
        "limit_s": q.limit_s or 0.0,
        **q.bounds.rows(),
        "compute_scale": scale,
        "memory_share": asked.program.memory_share,
    }
    if q.order:
        rows["order"] = list(q.order)
    loops = trace.kernels()
    if loops:
        rows["kernels"] = kernels.rows(loops, asked.platform, asked.placement)
    return rows


def _observe_rows(observe: Observe) -> dict[str, Any]:
    rows: dict[str, Any] = {
        "repetitions": int(repetitions.from_environment()),
        "anatomy": observe.anatomy, "anatomy_rank": 0, "anatomy_from": observe.between[0], "anatomy_to": observe.between[1],
    }
    if observe.timeline is not None:
        wanted = observe.timeline
        rows |= {"timeline_limit": wanted.limit, "timeline_from": wanted.from_s, "timeline_until": wanted.until_s}
    if observe.profile:
        rows["profile"] = 1
    if observe.directions:
        rows["directions"] = list(observe.directions)
    if observe.critical_path:
        rows["critical_path"] = 1
    if observe.trace_events:
        rows["trace_events"] = observe.trace_events
    return rows


def _refuse_wireless(q: Question) -> None:
    """Raises UsageError where what is beside the program needs a wire and the level of detail has none."""
    if q.fidelity != "mechanism" and (q.beside.traffic or q.beside.failures):
        raise UsageError(f"fidelity '{q.fidelity}' has no wire for traffic and failures; use mechanism", code="needs-mechanism")


def _complete_rows(
    rows: dict[str, Any], asked: Resolved, trace: Trace, scale: float, beside: Sequence[CompiledJob] = ()
) -> tuple[dict[str, Any], list[str]]:
    """A compiled runtime's ``rows`` with the rest of the engine's input: at the question's level of fidelity, with its settings, further
    jobs, cross traffic and failures; and notes on what was sampled. Raises NotSampled."""
    q = asked.question
    notes: list[str] = []
    if q.fidelity != "mechanism":
        samples = Samples(run)
        rows, notes = ladder.lower_fidelity(rows, q.fidelity, asked.platform, asked.placement, lambda pair: samples.of(asked, pair))
    rows |= _asked_of_the_engine(asked, trace, scale)
    if beside:
        rows["positions"], rows["hosts"] = cojobs.merge_hosts(beside, q.model, rows)
        rows["jobs"] = cojobs.rows(beside, rows["positions"], asked.platform, q.wildcards)
    if q.beside.traffic:
        rows["traffic"], rows["positions"] = cross_traffic.traffic(q.beside.traffic, asked.platform, rows["positions"])
    if q.beside.failures:
        rows["failures"] = cross_traffic.failures(q.beside.failures, asked.platform)
    return rows, notes


def _compiled_jobs(asked: Resolved) -> list[CompiledJob]:
    """The further jobs, compiled for the platform with the overrides of the first one."""
    q = asked.question
    if not q.beside.jobs:
        return []
    if q.fidelity != "mechanism":
        raise UsageError(
            f"jobs share processors, cards and the wire, which fidelity '{q.fidelity}' omits; use mechanism", code="needs-mechanism"
        )
    if by_simgrid(q.network):
        raise UsageError(f"several jobs need --network native or fluid, not {q.network}", code="needs-mechanism")
    found = []
    for spec, job in asked.jobs:
        _refuse_unsupported(spec.trace)
        values, calls = job.values.fresh(), calls_of(spec.trace)
        try:
            compiled = compile_runtime(job.model, values, Layout(job.platform, job.placement), calls)
            refuse(unused_parameters(job.model, values, compiled, calls))
        except UsageError as error:
            raise UsageError(f"{spec.name}: {error}", code=error.code) from None
        found.append(CompiledJob(spec, job.model, compiled, values, job.apart))
    return found


def _job_results(jobs: Sequence[CompiledJob], got: Sequence[Mapping[str, Any]], hosts: Sequence[str]) -> list[dict[str, Any]]:
    answers = iter(got)
    rows = []
    for job in jobs:
        answer = None if job.apart else next(answers)
        if answer and answer["outcome"] == Outcome.COMPLETED:
            try:
                _check_collectives(job.values, {operation for operation, _, _ in answer["collectives"]})
            except UsageError as error:
                raise UsageError(f"{job.spec.name}: {error}", code=error.code) from None
        rows.append(job_result(job, answer, hosts))
    return rows


def _timeline(got: Mapping[str, Any], trace: Trace, observe: Observe, about: Mapping[str, Any]) -> Any:
    if observe.timeline is None or "timeline" not in got:  # ended by a bound before anything ran
        return None
    from retrompi.sim.timeline import Timeline

    made = Timeline.from_engine(got["timeline"], trace.files, got["end_ps"], observe.timeline, {**about, "outcome": got["outcome"]})
    made.program, made.marks = trace, [(label, at) for rank, label, at in got["marks"] if rank == 0]
    return made


def _check_collectives(values: Values, used: Collection[str]) -> None:
    """Raises UsageError for an algorithm that the user set for an operation that is not called."""
    for name in values.settings:
        if name.startswith(PREFIX) and name.removeprefix(PREFIX) not in used:
            raise UsageError(
                f"--set {name} has no effect: the trace calls no {name.removeprefix(PREFIX)} nor anything made of one", code="idle-override"
            )


def _message_path(got: Mapping[str, Any]) -> Any:
    if "message_path" not in got:
        return None
    from retrompi.sim.message_path import MessagePath

    return MessagePath.from_engine(got["message_path"])


def _critical_path(got: Mapping[str, Any], hosts: Mapping[str, Any]) -> Any:
    if "critical_path" not in got or got["outcome"] != Outcome.COMPLETED:
        return None
    from retrompi.sim.critical_path import CriticalPath

    return CriticalPath({**got["critical_path"], "kind_of": hosts["kind_of"]})


def _processes(rows: Mapping[str, Any]) -> list[str]:
    """The names of a job's processes."""
    roles = dict.fromkeys(end.partition("@")[0] for h in (*rows["same"], *rows["remote"]) for end in h["between"])
    names = [f"rank {r}" for r in range(len(rows["placement"]))]
    return names + [f"{role} on {name}" for role in roles if role != "rank" for name in rows["hosts"]["names"]]


def _kills(kills: Sequence[str], rows: Mapping[str, Any], others: Sequence[CompiledJob] = ()) -> list[tuple[str, float]]:
    """(process, seconds) for each ``NAME@TIME``. Raises UsageError for a name that is not a process of these jobs."""
    names = _processes(rows) + [f"{name} of {j.spec.name}" for j in others if not j.apart for name in _processes(j.rows)]
    found = []
    for text in kills:
        name, at, when = (part.strip() for part in text.rpartition("@"))
        if not at or not name or not when:
            raise UsageError(f"'--kill {text}' is not PROCESS@TIME; example: --kill \"rank 1@0.5s\"", code="bad-syntax")
        if name not in names:
            raise UsageError(f"no process '{name}' in this job{nearest(name, names)}", code="unknown-process")
        found.append((name, units.parse(when, "s")))
        for j in others:
            if name.endswith(f" of {j.spec.name}") and found[-1][1] < j.spec.start_s:
                raise UsageError(f"'{text}': {j.spec.name} starts at {j.spec.start_s:g} s", code="unknown-process")
    return found


def require_completed(result: Result, what: str) -> None:
    """Raises SimulationEnded with the outcome and the waiting ranks unless the run completed; ``what`` names the run."""
    if result.outcome == Outcome.COMPLETED:
        return
    waits = "; ".join(f"rank {w['rank']} at {w['file']}:{w['line']} {w['action']} waits for {w['on']}" for w in result.waits)
    raise SimulationEnded(f"{what}: {result.outcome}: {result.detail}{'; ' + waits if waits else ''}")


def rows_from_marks(
    result: Result, parts: int = 2, counted: Callable[[int, Mapping[str, Any]], int] | None = None, args: Mapping[str, Any] | None = None
) -> list[PointRow]:
    """Rows of a benchmark from the marks ``size S reps R`` of rank 0, each until the next mark.

    The time is that of a repetition divided by ``parts`` (2: half a round trip, as PingPong defines it); the bandwidth
    counts ``counted(S, args)`` bytes in it, by default S.
    """
    marks = [m for m in result.marks if m["rank"] == 0]
    rows: list[PointRow] = []
    for mark, after in pairwise(marks):
        words = str(mark["label"]).split()
        if len(words) != 4 or words[0] != "size" or words[2] != "reps":
            continue
        size, reps = int(words[1]), int(words[3])
        one_way = (after["time_ps"] - mark["time_ps"]) / (parts * reps) * PS
        moved = size if counted is None else counted(size, args or {})
        rows.append(
            {"size_B": size, "time_us": one_way * 1e6, "bandwidth_MBps": moved / one_way / 1e6 if one_way else 0.0, "repetitions": reps}
        )
    return rows


def benchmark(question: Question | Resolved, server: ForkServer | None = None) -> list[PointRow]:
    """The curve of a benchmark: rows size_B, time_us (one way: half a round trip), bandwidth_MBps (10^6 B/s), repetitions.

    The question's workload is a `Benchmark`. Raises SimulationEnded when it does not complete.
    """
    asked = Resolved.of(question)
    result = run(asked, server=server)
    require_completed(result, curve_title(asked.question))
    return curve_of(asked, result)


def curve_title(question: Question) -> str:
    """The name of the curve in messages: ``PingPong of wmpi on nt-pair, shared``."""
    label = question.workload.label
    return f"{'PingPong' if label == 'pingpong' else label} of {question.title}"


def curve_of(asked: Resolved, result: Result) -> list[PointRow]:
    """`rows_from_marks` with the ``parts`` and ``counted`` of the benchmark's generator."""
    workload = asked.question.workload
    assert isinstance(workload, Benchmark)
    made = generate.generator(workload.generator)
    return rows_from_marks(result, made.parts, made.counted, workload.arguments)


def explained_trace(size: int) -> Trace:
    """`EXPLAIN_REPETITIONS` round trips of ``size`` bytes, then one with the marks ``anatomy``, ``there`` (of rank 1) and ``end``."""
    from retrompi._engine import Trace

    ping, pong = f"send 1 0 {size} 6", f"recv 1 0 {size} 6"
    first = ["0 init", *([f"0 {ping}", f"0 {pong}"] * EXPLAIN_REPETITIONS)]
    first += ["# mark anatomy", f"0 {ping}", f"0 {pong}", "# mark end", f"0 {ping}", f"0 {pong}", "0 finalize", ""]
    receive, answer = f"1 recv 0 0 {size} 6", f"1 send 0 0 {size} 6"
    second = ["1 init", *([receive, answer] * EXPLAIN_REPETITIONS), receive, "# mark there", answer, receive, answer, "1 finalize", ""]
    return Trace.parse([("\n".join(lines).encode(), f"pingpong of {size} B, rank {r}", r) for r, lines in enumerate((first, second))])


def _size(asked: Resolved) -> int:
    workload = asked.question.workload
    assert isinstance(workload, Message)
    return workload.size


def of_message(asked: Resolved) -> Resolved:
    """A question about a `Message` as the replay of its trace."""
    size = _size(asked)
    return asked.with_fields(workload=Replay(explained_trace(size), f"{size} B"), placement=asked.where)


def explain(question: Question | Resolved) -> dict[str, Any]:
    """The breakdown of the time of one `Message` (half a round trip of a PingPong in steady state) by stage and process.

    The rows of ``stages`` have stage, process, seconds and ps; their picoseconds sum to ``total_ps`` and their seconds,
    added in order, to ``total_s``, exactly. Raises SimulationEnded if the PingPong does not complete.
    """
    message = Resolved.of(question)
    asked = of_message(message)
    q = asked.question
    result = run(asked, Observe(anatomy=True))
    require_completed(result, f"PingPong of {q.title}, {q.workload.label}")
    rows = [r for r in result.anatomy if r["ps"] > 0]
    halves = [r["ps"] // 2 for r in rows]
    # Halving integers loses up to half a picosecond per row; the total is restored by rounding up odd rows.
    spare = result.anatomy_ps // 2 - sum(halves)
    for i, r in enumerate(rows):
        if spare > 0 and r["ps"] % 2:
            halves[i] += 1
            spare -= 1
    stages: list[StageRow] = [
        {"stage": r["stage"], "process": r["process"], "seconds": h * PS, "ps": h} for r, h in zip(rows, halves, strict=True) if h > 0
    ]
    return {
        "model": q.model,
        "platform": q.platform,
        "mode": q.where,
        "size_B": _size(message),
        "total_s": sum(float(s["seconds"]) for s in stages),
        "total_ps": sum(int(s["ps"]) for s in stages),
        "stages": stages,
        "cautions": result.cautions,
    }


DIRECTIONS = ((0, "anatomy", 1, "there"), (1, "there", 0, "end"))
"""(from rank, its mark, to rank, its mark) of the message and of its reply."""


def message_path(question: Question | Resolved) -> MessagePath:
    """The path of the `Message` of `explain` and of its reply; the directions sum to the round trip exactly.

    Raises SimulationEnded if the message does not arrive.
    """
    asked = of_message(Resolved.of(question))
    result = run(asked, Observe(anatomy=True, directions=DIRECTIONS))
    require_completed(result, f"PingPong of {asked.question.title}, {asked.question.workload.label}")
    assert result.message_path is not None  # requested, of a run that completed
    return result.message_path


def start(asked: Resolved, seed: int) -> tuple[list[StepRow], str]:
    """One start of a job: its steps, and why it failed ("" if it did not)."""
    steps, reason = _steps(asked, seed)
    return [cast("StepRow", asdict(s)) for s in steps], reason


def _steps(asked: Resolved, seed: int) -> tuple[list[StartStep], str]:
    with users_code(asked.model.folder()):
        steps, reason = asked.model().startup(asked.values, asked.platform, list(asked.placement), random.Random(seed))
        return steps, str(reason) if reason else ""


def startup(question: Question | Resolved) -> StartsRow:
    """`Starts` of a job: the failure rate, and the steps of a start with their totals."""
    asked = Resolved.of(question)
    workload = asked.question.workload
    assert isinstance(workload, Starts)
    if not asked.question.idle_overrides:
        refuse(unused_by_start(asked.model, asked.values, Layout(asked.platform, asked.placement)))
    first = asked.question.seed
    steps, _reason = start(asked, first)
    failures = sum(bool(_steps(asked, seed)[1]) for seed in range(first, first + workload.starts))
    return {
        "attempts": workload.starts,
        "failures": failures,
        "failure_rate": failures / workload.starts,
        "windows": sum(int(s["windows"]) for s in steps),
        "daemons": sum(int(s["daemons"]) for s in steps),
        "manual_steps_per_job": sum(int(s["manual"]) for s in steps),
        "seconds": sum(float(s["seconds"]) for s in steps),
        "steps": steps,
        "hosts": len(set(asked.placement)),
        "ranks": workload.ranks,
    }
