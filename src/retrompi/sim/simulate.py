"""Running a model on a platform: traces, PingPong curves, the anatomy of a message, start-up.

Everything that simulates goes through `run`: parameters are resolved and compiled to plain rows, a worker process runs
the engine, and its answer comes back as a `Result`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from retrompi.base import units
from retrompi.base.errors import RetrompiError, UsageError, nearest
from retrompi.base.units import PS
from retrompi.sim.worker import ForkServer, shared_server
from retrompi.spec import cross_traffic as network
from retrompi.spec import registry
from retrompi.spec.cojobs import Compiled, JobSpec
from retrompi.spec.collectives import PREFIX
from retrompi.spec.compile import ANYTHING, Calls, compile_runtime, refuse_unused, refuse_unused_parameters
from retrompi.spec.compile import Compiled as CompiledRuntime
from retrompi.spec.layout import Layout
from retrompi.spec.model import RuntimeModel, Values, parse_sets, resolve
from retrompi.spec.platform import Placement
from retrompi.spec.timed_section import Program, compute_scale, prepare, section_of
from retrompi.traces.calls import calls_of

if TYPE_CHECKING:
    from retrompi._engine import Trace
    from retrompi.sim.message_path import MessagePath
    from retrompi.sim.timeline import Request
    from retrompi.spec.platform import Platform

__all__ = [
    "MODES", "WILDCARDS", "Result", "SimulationEnded", "compile_model", "explain", "message_path", "pingpong", "place", "run", "startup",
]  # fmt: skip

Sets = Mapping[str, str] | Sequence[str]
Mode = str | Sequence[int]
Repetitions = int | Mapping[int, int] | Callable[[int], int] | None
MODES = ("shared", "distributed")
WILDCARDS = ("recorded", "free")
NOTHING_MORE = Program()
EXPLAIN_REPETITIONS = 6
"""Round trips before the one whose anatomy is shown: queues, credits and caches of buffers are then in their steady state."""


class SimulationEnded(RetrompiError):
    """A benchmark did not complete: the outcome is a result, with exit code 1."""

    exit_code = 1
    code = "not-completed"


@dataclass
class Result:
    """What became of a run. Times in simulated seconds (``_ps`` in picoseconds), sizes in bytes."""

    outcome: str
    detail: str
    time_s: float
    time_ps: int
    ranks: int
    actions: int
    messages: int
    bytes: int
    packets: int
    wall_s: float
    per_rank: list[dict[str, Any]]
    marks: list[dict[str, Any]]
    anatomy: list[dict[str, Any]] = field(default_factory=list)
    anatomy_ps: int = 0
    waits: list[dict[str, Any]] = field(default_factory=list)
    startup: list[dict[str, Any]] = field(default_factory=list)
    cautions: list[str] = field(default_factory=list)
    delivered: int = 0
    delivered_bytes: int = 0
    own_bytes: int = 0
    done: dict[str, int] = field(default_factory=dict)
    frames: int = 0
    retransmissions: int = 0
    duplicates: int = 0
    events: int = 0
    section: dict[str, Any] | None = None
    diagnosis: dict[str, Any] = field(default_factory=dict)
    """Of a run that did not complete: ``summary``, ``told`` and tables (docs of `retrompi.sim.diagnosis`)."""
    timeline: Any = None
    """The `retrompi.sim.timeline.Timeline` that was asked for."""
    message_path: Any = None
    """The `retrompi.sim.message_path.MessagePath` between the directions that were asked for."""
    profile: dict[str, Any] = field(default_factory=dict)
    """If asked for: ``calls`` (action, bytes, section of MPI_Pcontrol or -1, count, ps) summed over the ranks, ``finalized_ps`` by rank
    (-1: never)."""
    used: list[str] = field(default_factory=list)
    """The parameters of the model and numbers of the platform that the run used, as ``--set`` takes them."""
    collectives: list[dict[str, Any]] = field(default_factory=list)
    """Which algorithms ran: operation, algorithm, calls (of all members)."""
    lost: int = 0
    """Frames that something that was down has taken."""
    failed: str = ""
    """What was down and took frames: ``link server down from 1 s on (3 frames lost)``."""
    traffic: list[dict[str, Any]] = field(default_factory=list)
    """What became of the traffic beside the job: `retrompi.spec.cross_traffic.told`."""
    jobs: list[dict[str, Any]] = field(default_factory=list)
    """What became of the further jobs, as `retrompi.spec.cojobs.told`; all else is of the first."""


def place(platform: Platform, mode: Mode, ranks: int) -> Placement:
    """Host index of every rank: ``shared`` puts all on the first host, ``distributed`` one on each in turn.

    A named placement of the platform is used from its first rank on, a list is taken as it is. Raises UsageError for an unknown
    mode, a wrong length or a host that is not there.
    """
    if isinstance(mode, str):
        mode = platform.placement(mode)
    if mode == "shared":
        return Placement([0] * ranks)
    if mode == "distributed":
        return Placement(r % len(platform.hosts) for r in range(ranks))
    if isinstance(mode, str):
        placement = platform.placements[mode]
        if len(placement) < ranks:
            raise UsageError(
                f"placement '{mode}' of platform '{platform.name}' is for {len(placement)} ranks, not {ranks}", code="bad-placement"
            )
        return Placement(placement[:ranks], placement.cores[:ranks])
    placement = Placement((int(i) for i in mode), getattr(mode, "cores", ()))
    if len(placement) != ranks:
        raise UsageError(f"{len(placement)} hosts are named for {ranks} ranks", code="bad-placement")
    for i in placement:
        if not 0 <= i < len(platform.hosts):
            raise UsageError(f"host index {i} is not in 0..{len(platform.hosts) - 1} of platform '{platform.name}'", code="unknown-host")
    return placement


def compile_model(
    model: str, platform: str, mode: Mode, ranks: int, sets: Sets = (), *, idle_sets: bool = False
) -> tuple[dict[str, Any], Platform, Placement]:
    """The engine's rows of ``model`` on ``platform`` with overrides; refuses an override that no trace could use unless ``idle_sets``."""
    cls = registry.model(model)
    found, values = _compiled(cls, platform, mode, ranks, sets, ANYTHING)
    if not idle_sets:
        refuse_unused(cls, values, found, ANYTHING)
    return found.rows, found.layout.platform, found.layout.placement


def _compiled(
    cls: type[RuntimeModel], platform: str, mode: Mode, ranks: int, sets: Sets, calls: Calls
) -> tuple[CompiledRuntime, Values]:
    values, room = resolve(cls, registry.platform(platform), sets)
    return compile_runtime(cls, values, Layout(room, place(room, mode, ranks)), calls), values


def run(
    model: str,
    platform: str,
    trace: Trace,
    *,
    mode: Mode = "distributed",
    sets: Sets = (),
    seed: int = 1,
    fidelity: str = "mechanism",
    anatomy: bool = False,
    anatomy_between: tuple[str, str] = ("anatomy", "end"),
    timeout_s: float | None = None,
    with_startup: bool = False,
    kills: Sequence[str] = (),
    program: Program = NOTHING_MORE,
    server: ForkServer | None = None,
    idle_sets: bool = False,
    wire: str = "native",
    wildcards: str = "recorded",
    timeline: Request | None = None,
    profile: bool = False,
    directions: Sequence[tuple[int, str, int, str]] = (),
    traffic: Sequence[str] = (),
    failures: Sequence[str] = (),
    jobs: Sequence[JobSpec] = (),
) -> Result:
    """Replay ``trace``. ``timeout_s`` is in simulated seconds, ``program`` says what the trace does not, ``fidelity`` is a rung of
    `retrompi.sim.fidelity`; ``idle_sets`` accepts overrides that nothing reads. ``wildcards`` ``recorded`` lets a receive from any source
    match what it matched when the trace was taken (where the trace says so), ``free`` whatever comes first. ``timeline`` asks for the
    run's timeline, ``profile`` for its calls summed up, ``directions`` (from rank, its mark, to rank, its mark; with ``anatomy``) for the
    message path of what is sent between these marks; no event changes by them.

    ``traffic`` of others crosses the wire and ``failures`` take things down for a time, both as of `retrompi.spec.cross_traffic`.
    ``jobs`` run beside it on the same platform and are told of in ``Result.jobs``; what each would have taken alone is another run.
    ``kills`` ends processes: ``"proxy on server@0.5s"``, ``"rank 3@2s"``, ``"rank 0 of job 2@1s"``. Hosts that the runtime cannot join
    in one job give the outcome ``failed-start``.

    ``with_startup`` first starts the job as the runtime did, which may fail (outcome ``failed-start``, drawn from ``seed``).
    ``wire`` is ``native`` or ``simgrid``, the reference that it is tested against: the same times, an order of magnitude slower.
    Raises UsageError for a wrong name, mode or override, InputError for a trace that cannot be simulated.
    """
    from retrompi.sim import fidelity as ladder

    ladder.check(fidelity)
    if wildcards not in WILDCARDS:
        raise UsageError(f"wildcards cannot be '{wildcards}'{nearest(wildcards, WILDCARDS)}", code="unknown-name")
    refused = trace.unsupported()
    if refused:
        file, line, action, reason = refused[0]
        raise UsageError(f"{file}:{line}: {action}: {reason}", code="unsupported-action")
    begin = time.perf_counter()
    cls = registry.model(model)
    calls = calls_of(trace, start_up=with_startup, failures=bool(failures))
    found, values = _compiled(cls, platform, mode, trace.ranks, sets, calls)
    rows, room, placement = found.rows, found.layout.platform, found.layout.placement
    others = _compiled_jobs(jobs, platform, sets, fidelity, wire)
    if not idle_sets:
        refuse_unused(cls, values, found, calls, [j.found for j in others])
    steps: list[dict[str, Any]] = []
    notes: list[str] = []
    rows["kills"] = _kills(kills, rows, others)
    apart = cls().joins(room, placement)
    if apart:
        return Result("failed-start", apart, 0.0, 0, trace.ranks, trace.actions, 0, 0, 0, time.perf_counter() - begin, [], [])
    if with_startup:
        told = start(cls, values, room, placement, seed)
        steps = told["steps"]
        if told["failed"]:
            return Result("failed-start", told["reason"], 0.0, 0, trace.ranks, trace.actions, 0, 0, 0,
                          time.perf_counter() - begin, [], [], startup=steps)  # fmt: skip
    scale = 1.0
    if program.section is not None:
        if program.compute_s is not None:
            scale = compute_scale(trace, program.section, program.compute_s, [room.hosts[h].flops for h in placement])
        trace = prepare(trace, program.section)
    if fidelity != "mechanism":
        from retrompi.sim.sampling import NotSampled

        try:
            rows, notes = ladder.lowered(rows, fidelity, model, platform, room, placement, sets, seed)
        except NotSampled as error:
            return Result(error.outcome, str(error), 0.0, 0, trace.ranks, trace.actions, 0, 0, 0, time.perf_counter() - begin, [], [])
    named = trace.kernels()
    if named:
        from retrompi.spec import kernels

        rows["kernels"] = kernels.rows(named, room, placement)
    rows |= {
        "seed": seed,
        "wire": wire,
        "wildcards": wildcards,
        "limit_s": timeout_s or 0.0,
        "compute_scale": scale,
        "memory_share": program.memory_share,
        "anatomy": anatomy,
        "anatomy_rank": 0,
        "anatomy_from": anatomy_between[0],
        "anatomy_to": anatomy_between[1],
    }
    if timeline is not None:
        rows |= {"timeline_limit": timeline.limit, "timeline_from": timeline.from_s, "timeline_until": timeline.until_s}
    if profile:
        rows["profile"] = 1
    if directions:
        rows["directions"] = [tuple(d) for d in directions]
    beside = [j for j in others if not j.apart]
    if beside:
        from retrompi.spec import cojobs as sharing

        rows["positions"], rows["hosts"] = sharing.unshared(beside, model, rows)
        rows["jobs"] = sharing.rows(beside, rows["positions"], room, wildcards)
    if (traffic or failures) and fidelity != "mechanism":
        raise UsageError(f"fidelity '{fidelity}' draws no wire, which traffic and failures need: use mechanism", code="needs-mechanism")
    if traffic:
        rows["traffic"], rows["positions"] = network.traffic(traffic, room, rows["positions"])
    if failures:
        rows["failures"] = network.failures(failures, room)
    got = (server or shared_server()).simulate(rows, trace, trace.sha256, [j.spec.trace for j in beside])
    if got["outcome"] == "completed" and not idle_sets:
        _check_collectives(values, {operation for operation, _, _ in got["collectives"]})
    marks = [{"rank": r, "label": label, "time_s": t * PS, "time_ps": t} for r, label, t in got["marks"]]
    return Result(
        outcome=got["outcome"],
        detail=got["detail"],
        time_s=got["time_ps"] * PS,
        time_ps=got["time_ps"],
        ranks=trace.ranks,
        actions=trace.actions,
        messages=got["messages"],
        bytes=got["bytes"],
        packets=got["packets"],
        wall_s=time.perf_counter() - begin,
        per_rank=[_rank_row(r) for r in got["per_rank"]],
        marks=marks,
        section=None if program.section is None else section_of(marks, program.section),
        anatomy=[{"stage": s, "process": p, "seconds": t * PS, "ps": t} for s, p, t in got["anatomy"]],
        anatomy_ps=got["anatomy_total_ps"],
        waits=got["waits"],
        diagnosis=got.get("diagnosis", {}),
        timeline=_timeline(got, trace, timeline, {"model": model, "platform": platform, "mode": _mode_name(mode)}),
        message_path=_message_path(got),
        profile=got.get("profile", {}),
        startup=steps,
        cautions=[*cls().cautions(values, room, placement), *notes],
        used=sorted(found.used),
        collectives=[{"operation": o, "algorithm": a, "calls": n} for o, a, n in got["collectives"]],
        traffic=network.told(traffic, got["traffic"]),
        jobs=_told_jobs(others, got["jobs"]),
        **{k: got[k] for k in ("delivered", "delivered_bytes", "own_bytes", "done", "frames", "retransmissions", "duplicates", "events",
                                "lost", "failed")},
    )


def _compiled_jobs(jobs: Sequence[JobSpec], platform: str, sets: Sets, fidelity: str, wire: str) -> list[Compiled]:
    """The further jobs in the machine room that the first one's overrides make of ``platform``."""
    if not jobs:
        return []
    from retrompi.spec.cojobs import named

    if fidelity != "mechanism":
        raise UsageError(
            f"jobs share processors, cards and the wire, which fidelity '{fidelity}' does not draw: use mechanism", code="needs-mechanism"
        )
    if wire != "native":
        raise UsageError("several jobs need the native wire", code="needs-mechanism")
    room_sets = {k: v for k, v in parse_sets(sets).items() if k.startswith("platform.")}
    jobs_found = []
    for spec in named(jobs):
        for file, line, action, reason in spec.trace.unsupported()[:1]:
            raise UsageError(f"{file}:{line}: {action}: {reason}", code="unsupported-action")
        cls = registry.model(spec.model)
        try:
            calls = calls_of(spec.trace)
            found, values = _compiled(cls, platform, spec.mode, spec.trace.ranks, {**room_sets, **spec.alone()}, calls)
            refuse_unused_parameters(cls, values, found, calls)
        except UsageError as error:
            raise UsageError(f"{spec.name}: {error}", code=error.code) from None
        jobs_found.append(Compiled(spec, cls, found, values, cls().joins(found.layout.platform, found.layout.placement)))
    return jobs_found


def _told_jobs(jobs: Sequence[Compiled], got: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    from retrompi.spec.cojobs import told

    answers = iter(got)
    rows = []
    for job in jobs:
        answer = None if job.apart else next(answers)
        if answer and answer["outcome"] == "completed":
            try:
                _check_collectives(job.values, {operation for operation, _, _ in answer["collectives"]})
            except UsageError as error:
                raise UsageError(f"{job.spec.name}: {error}", code=error.code) from None
        rows.append(told(job, answer, _rank_row))
    return rows


def _mode_name(mode: Mode) -> str:
    return mode if isinstance(mode, str) else ",".join(map(str, mode))


def _timeline(got: Mapping[str, Any], trace: Trace, wanted: Request | None, about: Mapping[str, Any]) -> Any:
    if wanted is None:
        return None
    from retrompi.sim.timeline import Timeline

    return Timeline.from_engine(got["timeline"], trace.files, got["end_ps"], wanted, {**about, "outcome": got["outcome"]})


def _check_collectives(values: Values, used: Collection[str]) -> None:
    """Refuses an algorithm that a user chose for an operation that nobody called."""
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


def _processes(rows: Mapping[str, Any]) -> list[str]:
    """The names of a job's processes."""
    roles = dict.fromkeys(h[end].partition("@")[0] for h in (*rows["same"], *rows["remote"]) for end in ("from", "to"))
    names = [f"rank {r}" for r in range(len(rows["placement"]))]
    return names + [f"{role} on {h['name']}" for role in roles if role != "rank" for h in rows["hosts"]]


def _kills(kills: Sequence[str], rows: Mapping[str, Any], others: Sequence[Compiled] = ()) -> list[tuple[str, float]]:
    """(process, seconds) for each ``NAME@TIME``; UsageError for a name that no process of these jobs has."""
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


def _rank_row(r: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "rank": r["rank"],
        "host": r["host"],
        "time_s": r["time_ps"] * PS,
        "mpi_s": r["mpi_ps"] * PS,
        "compute_s": r["compute_ps"] * PS,
        "cpu_s": r["cpu_ps"] * PS,
        "sent": r["sent"],
        "received": r["received"],
        "bytes_sent": r["bytes_sent"],
        "bytes_received": r["bytes_received"],
    }


def require_completed(result: Result, what: str) -> None:
    """Raises SimulationEnded with the outcome, and who waits for whom, unless the run completed."""
    if result.outcome == "completed":
        return
    waits = "; ".join(f"rank {w['rank']} at {w['file']}:{w['line']} {w['action']} waits for {w['on']}" for w in result.waits)
    raise SimulationEnded(f"{what}: {result.outcome}: {result.detail}{'; ' + waits if waits else ''}")


def rows_from_marks(
    result: Result, parts: int = 2, counted: Callable[[int, Mapping[str, Any]], int] | None = None, args: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Rows of a benchmark from the marks ``size S reps R`` of rank 0; a row ends where the next mark begins.

    The time is that of a repetition divided by ``parts`` (2: half a round trip, as PingPong defines it); the bandwidth
    counts ``counted(S, args)`` bytes in it, by default S.
    """
    marks = [m for m in result.marks if m["rank"] == 0]
    rows = []
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


def pingpong(
    model: str,
    platform: str,
    mode: Mode,
    sizes: Sequence[int] | None = None,
    *,
    sets: Sets = (),
    seed: int = 1,
    reps: Repetitions = None,
    fidelity: str = "mechanism",
    server: ForkServer | None = None,
) -> list[dict[str, Any]]:
    """A PingPong curve: rows size_B, time_us (one way: half a round trip), bandwidth_MBps (10^6 B/s), repetitions.

    ``sizes`` in bytes, None for the papers' 0 B to 4 MiB; ``reps`` None for the papers' repetitions. Raises
    SimulationEnded when the benchmark does not complete.
    """
    from retrompi.traces import generate

    trace = generate.pingpong(sizes, reps)
    result = run(model, platform, trace, mode=mode, sets=sets, seed=seed, fidelity=fidelity, server=server)
    require_completed(result, f"PingPong of {model} on {platform}, {mode}")
    return rows_from_marks(result)


def _explained_trace(size: int) -> Trace:
    """Some round trips of ``size`` bytes, then one between the marks ``anatomy`` and ``end``; rank 1's ``there`` lies between."""
    from retrompi._engine import Trace

    ping, pong = f"send 1 0 {size} 6", f"recv 1 0 {size} 6"
    first = ["0 init", *([f"0 {ping}", f"0 {pong}"] * EXPLAIN_REPETITIONS)]
    first += ["# mark anatomy", f"0 {ping}", f"0 {pong}", "# mark end", f"0 {ping}", f"0 {pong}", "0 finalize", ""]
    receive, answer = f"1 recv 0 0 {size} 6", f"1 send 0 0 {size} 6"
    second = ["1 init", *([receive, answer] * EXPLAIN_REPETITIONS), receive, "# mark there", answer, receive, answer, "1 finalize", ""]
    return Trace.parse([("\n".join(lines).encode(), f"pingpong of {size} B, rank {r}", r) for r, lines in enumerate((first, second))])


def explain(
    model: str, platform: str, mode: Mode, size: int, sets: Sets = (), *, seed: int = 1, fidelity: str = "mechanism"
) -> dict[str, Any]:
    """Where the time of one message goes: half of a round trip of the PingPong in its steady state, by stage and process.

    ``stages`` rows have stage, process, seconds and ps; their picoseconds sum to ``total_ps`` and their seconds,
    added in the order given, to ``total_s``, exactly.
    """
    result = run(model, platform, _explained_trace(size), mode=mode, sets=sets, seed=seed, fidelity=fidelity, anatomy=True)
    require_completed(result, f"PingPong of {model} on {platform}, {mode}, {size} B")
    rows = [r for r in result.anatomy if r["ps"] > 0]
    halves = [r["ps"] // 2 for r in rows]
    # Halving integers loses at most one picosecond a row; the odd ones are given back in pairs.
    spare = result.anatomy_ps // 2 - sum(halves)
    for i, r in enumerate(rows):
        if spare > 0 and r["ps"] % 2:
            halves[i] += 1
            spare -= 1
    stages = [
        {"stage": r["stage"], "process": r["process"], "seconds": h * PS, "ps": h} for r, h in zip(rows, halves, strict=True) if h > 0
    ]
    return {
        "model": model,
        "platform": platform,
        "mode": _mode_name(mode),
        "size_B": size,
        "total_s": sum(float(s["seconds"]) for s in stages),
        "total_ps": sum(int(s["ps"]) for s in stages),
        "stages": stages,
    }


DIRECTIONS = ((0, "anatomy", 1, "there"), (1, "there", 0, "end"))
"""There and back."""


def message_path(model: str, platform: str, mode: Mode, size: int, sets: Sets = (), *, seed: int = 1) -> MessagePath:
    """The path of the message that `explain` explains, and of its answer: the directions sum to the round trip exactly.

    Raises SimulationEnded when the message does not arrive.
    """
    result = run(model, platform, _explained_trace(size), mode=mode, sets=sets, seed=seed, anatomy=True, directions=DIRECTIONS)
    require_completed(result, f"PingPong of {model} on {platform}, {mode}, {size} B")
    told: MessagePath = result.message_path
    return told


def start(cls: type[RuntimeModel], values: Any, platform: Platform, placement: Sequence[int], seed: int) -> dict[str, Any]:
    """One start of a job: its steps (step, manual, windows, daemons, seconds, note) and whether it failed."""
    steps, reason = cls().startup(values, platform, list(placement), random.Random(seed))
    return {"steps": [asdict(s) for s in steps], "failed": bool(reason), "reason": reason}


def startup(model: str, platform: str, n: int, seeds: Sequence[int], sets: Sets = (), mode: Mode = "distributed") -> dict[str, Any]:
    """Starts a job of ``n`` ranks once per seed: how often it fails and what a person has to do each time."""
    cls = registry.model(model)
    values, room = resolve(cls, registry.platform(platform), sets)
    placement = place(room, mode, n)
    told = [start(cls, values, room, placement, s) for s in seeds]
    steps = told[0]["steps"]
    failures = sum(t["failed"] for t in told)
    return {
        "attempts": len(told),
        "failures": failures,
        "failure_rate": failures / len(told),
        "windows": sum(int(s["windows"]) for s in steps),
        "daemons": sum(int(s["daemons"]) for s in steps),
        "manual_steps_per_job": sum(int(s["manual"]) for s in steps),
        "seconds": sum(float(s["seconds"]) for s in steps),
        "steps": steps,
        "hosts": len(set(placement)),
        "ranks": n,
    }
