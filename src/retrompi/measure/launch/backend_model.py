"""The ``model`` backend: replays the trace of the program, recorded once and cached, on a runtime model."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi import traces
from retrompi.base.cache import cache_dir
from retrompi.base.errors import UsageError
from retrompi.measure.launch import executions, machine_load, mpi_job, profile, stats
from retrompi.measure.launch.backend_native import argv_for
from retrompi.measure.launch.build import Built, build, default_family, is_source
from retrompi.measure.launch.execution import KINDS, BackendError, Execution, RunRequest, on_model
from retrompi.measure.launch.mpiexec import TITLES, find_mpiexec
from retrompi.measure.record import Clock, RecordError, record
from retrompi.measure.record.compiled import making
from retrompi.measure.record.library import recorder_version
from retrompi.sim.cautions import calibration, of_question
from retrompi.sim.computation import scale_of
from retrompi.sim.resolved import Resolved
from retrompi.spec import registry
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.question import Experiment, Replay
from retrompi.store.identity import specification
from retrompi.store.lookup import Record, answer
from retrompi.traces.computation import Rate
from retrompi.traces.source import Source

if TYPE_CHECKING:
    from retrompi.sim.result import Result
    from retrompi.store.database import Store

__all__ = ["RecordedProgram", "execute", "home_rate", "record_program", "trace_digest"]

THIS_MACHINE = "this-machine"
"""The platform that 'retrompi calibrate this-machine' writes."""


@dataclass(frozen=True)
class RecordedProgram:
    """A program's trace and how the program ended while it was recorded. ``family``: the MPI used for recording."""

    folder: Path
    output: str
    errors: str
    exit_code: int
    failed: str
    family: str
    busy: str = ""
    """The load of the machine during recording, in words: the wall clock counts it as computation."""


def _family(request: RunRequest) -> str | None:
    """The MPI to record with: the user's choice, the one a binary links (None), an installed native one, else SMPI."""
    if request.mpi is not None or not is_source(request.program):
        return request.mpi
    return default_family() or "smpi"


def _clock(built: Built, request: RunRequest) -> Clock:
    """The wall clock where each rank has a core of its own: reading a thread's CPU time is a system call, and its cost in the middle of a
    program differs by 20 ns from that at the start, for every call."""
    alone = built.family != "smpi" and request.ranks <= len(mpi_job.cores())
    return Clock("wall" if alone else "cpu")


def trace_digest(built: Built, request: RunRequest) -> str:
    """Identifies a recording: a digest of the program, its arguments and the contents of files among them, the ranks, MPI and recorder."""
    files = {a: hashlib.sha256(Path(a).read_bytes()).hexdigest() for a in request.arguments if Path(a).is_file()}
    what = [built.digest, list(request.arguments), files, request.ranks, built.family, recorder_version(), _clock(built, request).kind]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()


def record_program(request: RunRequest) -> RecordedProgram:
    """The program's trace, from the cache or recorded now. ``fresh`` always records, as does a cached recording of a busy machine that is
    now idle.

    Raises BackendError when it cannot be built, started or recorded. Failure of the program itself is part of the result.
    """
    built = build(request.program, _family(request))
    folder = cache_dir("traces") / trace_digest(built, request)[:24]
    if not request.fresh:
        known = _read_cached(folder)
        if known is not None and not (known.busy and machine_load.waiting() < stats.BUSY_WAITING):
            return known
    if built.family == "smpi":
        words = [str(built.path) if is_source(built.path) else built.command[0], *request.arguments]
    else:
        launcher = find_mpiexec(built.family)
        words = argv_for(launcher, request, built)
    limit = request.recording_limit_s
    ends: list[mpi_job.Ended] = []

    def runner(line: list[str], environment: dict[str, str]) -> int:
        ends.append(mpi_job.run(line, environment, limit))
        return ends[0].code

    request.report(0, 1, "recording the trace")
    try:
        with making(folder.parent, BackendError) as work:
            smpi = built.family == "smpi"
            ranks, clock = request.ranks if smpi else None, _clock(built, request)
            before, queue = machine_load.CpuTimes.now(), [machine_load.waiting()]
            done = record(words, work / "trace", use_smpi=smpi, ranks=ranks, clock=clock, check=False, runner=runner)
            queue.append(machine_load.waiting())
            noise = stats.judge_noise([], [], machine_load.elsewhere(before, machine_load.CpuTimes.now()), sum(queue) / len(queue), 0.0)
            ended = ends[0]
            failed = ""
            if ended.timed_out:
                failed = f"not finished after {limit:g} s: " + ", ".join(f"rank {s.rank} {s.end_text()}" for s in done.states if s.inside)
            elif done.failed or done.partial:
                failed = mpi_job.ending(ended)[1] or "not every rank reached MPI_Finalize"
            about = {"output": ended.output, "errors": ended.errors, "exit_code": ended.code, "failed": failed, "family": built.family}
            about["busy"] = noise.why if noise.loaded and clock.kind == "wall" else ""
            (work / "about.json").write_text(json.dumps(about), encoding="utf-8")
            if failed:
                return RecordedProgram(Path(), ended.output, ended.errors, ended.code, failed, built.family)
            if folder.exists():
                shutil.rmtree(folder)
            work.rename(folder)
    except RecordError as error:
        why = mpi_job.ending(ends[0])[1] if ends else ""
        raise BackendError(str(error) + (f" ({why})" if why else ""), code=error.code) from error
    kept = _read_cached(folder)
    assert kept is not None
    return kept


def _read_cached(folder: Path) -> RecordedProgram | None:
    try:
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        return RecordedProgram(folder / "trace", **about) if (folder / "trace" / "index.txt").is_file() else None
    except (OSError, ValueError, TypeError):
        return None


def execute(store: Store, request: RunRequest) -> Execution:
    """Replay the program's trace on a model: see `retrompi.measure.launch.run`."""
    asked, done = on_model("model", request)
    if request.trace is not None:
        folder = Path(request.trace)
        done.notes.append(f"the trace {request.trace} was replayed")
    else:
        program = record_program(request)
        done.output, done.errors, done.exit_code = program.output, program.errors, program.exit_code
        if program.failed:
            done.outcome, done.detail = Outcome.FAILED, f"the program failed while its trace was recorded: {program.failed}"
            made = [done.program, done.arguments, done.ranks, done.detail]
            failed = asked.with_(workload=Experiment.of(KINDS["model"], done.program, made))
            return executions.save(store, specification(failed), done)
        folder = program.folder
        recorder = TITLES.get(program.family, program.family)
        done.notes.append(f"its trace was recorded on this machine with {recorder}")
        if program.busy:
            done.notes.append(f"this machine was busy then ({program.busy}): what the program computes is too long in the trace")
    done.trace = str(folder)
    read, home = traces.read(folder), home_rate(asked.platform)
    if home is not None and traces.rate_of(read) is not None:
        read = traces.at_rate(read, home)
    else:
        home = None
    source = Source(str(folder), rate=None if home is None else (home.flops, home.source))
    if read.ranks != request.ranks:
        raise UsageError(f"{folder} is of {read.ranks} ranks, not {request.ranks}", code="wrong-ranks")
    done.cautions += calibration(asked.model, asked.platform, sizes=[read.info()["largest_B"]], ranks=read.ranks, sets=asked.sets)
    resolved = Resolved.of(asked.with_(workload=Replay(read, done.program, source=source.row()), bounds=request.bounds))
    scale = scale_of(resolved, home)
    done.notes += [scale.line] if scale and not scale.assumed else []
    done.cautions += [c for c in of_question(resolved, home) if c.code == "computation-assumed"]
    return _replay(store, request, done, resolved)


def home_rate(platform: str) -> Rate | None:
    """The rate at which the calibrated platform of this machine computes, where a recorded second stays a second; None for any other."""
    loaded = registry.platform(platform)
    if loaded.name != THIS_MACHINE:
        return None
    return Rate(loaded.hosts[0].flops, "that of the platform, which is this machine")


def _replay(store: Store, request: RunRequest, done: Execution, asked: Resolved) -> Execution:
    def about(result: Result) -> tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]:
        told = _execution(done, result)
        # The marks are the sections in another form, the profile is the calls.
        facts = {k: v for k, v in executions.facts(told).items() if k != "cautions"}  # the result's own are kept
        return {**facts, "detail": told.detail, "marks": [], "profile": {}}, executions.points(told)

    request.report(0, 1, "replaying")
    found = answer(store, asked, fresh=request.fresh, record=Record("program", about))
    again = executions.load(store, found.run_id)
    # An identical trace may come from another program: fields that do not depend on the trace are this one's.
    return replace(
        again, program=done.program, arguments=done.arguments, output=done.output, errors=done.errors, exit_code=done.exit_code,
        notes=done.notes, cautions=[*done.cautions, *(replace(c, text=c.text.replace(f"{done.trace}/", "")) for c in again.cautions)],
        trace=done.trace, mode=done.mode, found=found.found,
    )


def _execution(done: Execution, result: Result) -> Execution:
    """A replay's result as an execution."""
    detail = result.detail.replace(f"{done.trace}/", "")
    if not result.profile:  # it failed to start
        return replace(done, outcome=result.outcome, detail=detail)
    profiles = profile.of_replay(result.marks, result.profile, result.ranks)
    sections, parts = profile.sections(profiles)
    took = profile.elapsed_seconds(profiles) if result.outcome == Outcome.COMPLETED else result.time_s
    return replace(
        done, outcome=result.outcome, detail=detail, samples_s=[took], sections=sections, parts=parts, calls=profile.calls(profiles),
        profile_s=took,
    )
