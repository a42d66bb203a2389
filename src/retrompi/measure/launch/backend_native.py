"""The ``native`` backend: ranks pinned, warm-up and repetitions, times taken without a profile, the profile from a separate run."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from retrompi.base.errors import UsageError
from retrompi.base.scratch import folder as temporary
from retrompi.base.units import PS
from retrompi.measure.launch import executions, machine_load, mpi_job, profile, stats
from retrompi.measure.launch.build import Built, build
from retrompi.measure.launch.execution import BackendError, Execution, Noise, RunRequest
from retrompi.measure.launch.mpiexec import FAMILIES, TITLES, command_line, find_mpiexec
from retrompi.measure.record import RecordError
from retrompi.measure.record.library import Compiler, find_compiler, library
from retrompi.measure.record.rank_state import read_states
from retrompi.measure.record.run import Launcher, with_environment
from retrompi.measure.this_machine import core_distance
from retrompi.spec.declare.outcome import Outcome

if TYPE_CHECKING:
    from retrompi.store.database import Store

__all__ = ["argv_for", "execute"]

_WAIT_S = 0.5
_MOST_WAITS = 60
"""The most waits for the required machine state: half a minute in total."""


@dataclass(frozen=True)
class _Ready:
    """Everything needed to run a program."""

    built: Built
    launcher: Launcher
    compiler: Compiler
    words: list[str]


@dataclass(frozen=True)
class _Once:
    """One run: how it ended and the files of its ranks."""

    ended: mpi_job.Ended
    profiles: list[profile.RankProfile]
    inside: str
    """The calls in which unfinished ranks were, in words."""


def argv_for(launcher: Launcher, request: RunRequest, built: Built) -> list[str]:
    """The launcher's command line for a program on this machine."""
    allowed = mpi_job.cores()
    return command_line(launcher, request.ranks, [*built.command, *request.arguments], mpi_job.whole_cores(allowed), len(allowed))


def prepare(request: RunRequest) -> _Ready:
    """Build the program and find its launcher. Raises UsageError or BackendError."""
    built = build(request.program, request.mpi)
    if built.family == "smpi":
        raise BackendError(
            f"{built.path.name} was built by smpicc and runs on SMPI alone: use --backend smpi, or give its source", code="wrong-mpi"
        )
    launcher = find_mpiexec(built.family)
    try:
        compiler = find_compiler(built.family, launcher.path)
    except RecordError as error:
        raise BackendError(str(error).replace(", or name the mpicc with --mpicc", ""), code=error.code) from error
    return _Ready(built, launcher, compiler, argv_for(launcher, request, built))


def _once(ready: _Ready, request: RunRequest, *, calls: bool = False) -> _Once:
    """Run the program with the timer preloaded or, with ``calls``, the recorder."""
    try:
        shim = library(ready.compiler, timer=not calls)
    except RecordError as error:
        raise BackendError(str(error), code=error.code) from error
    with temporary("run") as name:
        before = os.environ.get("LD_PRELOAD")
        variables = {"RETROMPI_PROFILE_DIR": str(name), "LD_PRELOAD": str(shim) + (f":{before}" if before else "")}
        if calls:
            variables |= {"RETROMPI_RECORD_DIR": str(name), "RETROMPI_RECORD_LINES": "0", "RETROMPI_RECORD_CLOCK": "wall"}
        words, environment = with_environment(ready.launcher, ready.words, variables)
        ended = mpi_job.run(words, environment, request.wall_s, memory_B=request.bounds.memory_B)
        states = read_states(Path(name)) if calls else {}
        stuck = [f"rank {s.rank} {s.end_text()}" for s in states.values() if s.inside]
        return _Once(ended, profile.read(Path(name)), ", ".join(stuck[:4]))


def _judge(once: _Once, request: RunRequest, built: Built) -> tuple[Outcome, str]:
    """(outcome, detail) of a run. Raises BackendError when it is not an MPI program."""
    if once.ended.timed_out or once.ended.too_large:
        return request.stop_outcome(once.ended.timed_out, once.inside)
    outcome, detail = mpi_job.ending(once.ended, any(p.how == "aborted" for p in once.profiles))
    if outcome != Outcome.COMPLETED:
        return outcome, detail
    if not once.profiles:
        raise BackendError(
            f"{built.path.name} ended well and no rank came through MPI_Init: is it an MPI program, linked dynamically?", code="wrong-mpi"
        )
    if len(once.profiles) != once.profiles[0].ranks or once.profiles[0].ranks != request.ranks:
        return Outcome.FAILED, f"{len(once.profiles)} of {request.ranks} ranks reached MPI_Finalize"
    return Outcome.COMPLETED, ""


def _is_pinned(profiles: Sequence[profile.RankProfile], ranks: int) -> bool:
    """Whether no two ranks shared a processor."""
    seen = [core for p in profiles for core in p.cores]
    return len(profiles) == ranks and all(p.cores for p in profiles) and len(set(seen)) == len(seen) and ranks > 0


class _Gate:
    """The machine state required for a measurement, checked before and after every run that counts (`RunRequest.odd_state`)."""

    def __init__(self, request: RunRequest) -> None:
        self._ask, self._most = request.odd_state, request.repetitions
        self._state: str | None = None  # None: must be queried again
        self._left_out, self._waited, self._odd, self._unsure = 0, 0, "", False

    def enter(self) -> None:
        """Wait for the required state until the patience is used up."""
        while self._state is None:
            now = self._ask()
            if now and self._waited < _MOST_WAITS:
                self._waited, self._odd = self._waited + 1, now
                time.sleep(_WAIT_S)
            else:
                self._state = now

    def leave(self, once: _Once) -> bool:
        """Whether the run counts, judged by the state before and after it."""
        before, self._state = self._state, self._ask()
        odd = before or self._state
        if odd and once.ended.code == 0 and self._left_out < self._most:
            self._left_out, self._odd, self._state = self._left_out + 1, odd, None
            return False
        self._unsure = self._unsure or bool(odd)
        return True

    def forget(self) -> None:
        """Note a run that does not count."""
        self._state = None

    def notes(self) -> list[str]:
        if not self._left_out and not self._waited:
            return []
        too = "; runs that count were of that state too" if self._unsure else ""
        return [f"{self._left_out} runs were repeated and {self._waited * _WAIT_S:g} s waited: {self._odd}{too}"]


class _Watch:
    """Observations of the machine from before the first run until after the last."""

    def __init__(self, ready: _Ready, request: RunRequest) -> None:
        # The cache-line latency is meaningful only with two ranks on two cores, and worth its time only for comparisons.
        two = min(request.ranks, len(mpi_job.cores())) >= 2 and request.repetitions > 1 and ready.built.family in FAMILIES
        self._family = ready.built.family if two else ""
        self.machine = machine_load.machine()
        self._lines, self._probes, self._queue = self._line(), machine_load.probe(), [self.machine.load]
        self._before = machine_load.CpuTimes.now()

    def _line(self) -> list[float]:
        try:
            return [core_distance.line_ns(self._family)] if self._family else []
        except BackendError:
            return []

    def between(self) -> None:
        """Between two runs: sample the demand of other processes for cores."""
        self._queue.append(machine_load.waiting())

    def noise(self, done: Execution, runs: Sequence[_Once]) -> Noise:
        """The noise over the completed runs."""
        stolen = machine_load.elsewhere(self._before, machine_load.CpuTimes.now())
        self._probes += machine_load.probe()
        self._lines += self._line()
        waiting = sum(self._queue) / len(self._queue)
        ranks = [p for once in runs for p in once.profiles if len(p.usage) == 4]
        seconds = sum(p.time for p in ranks) * PS
        switches = sum(p.usage[3] for p in ranks) / seconds if seconds > 0 else 0.0
        noise = stats.judge_noise(done.samples_s, self._probes, stolen, waiting, switches, self._lines)
        if done.ranks > len(mpi_job.cores()):  # the demand for cores comes from the ranks themselves
            return replace(noise, loaded=noise.loaded and waiting >= stats.BUSY_WAITING)
        return noise


def execute(store: Store, request: RunRequest) -> Execution:
    """Measure: see `retrompi.measure.launch.run`."""
    if request.repetitions < 1 or request.warmup < 0:
        raise UsageError("a measurement needs at least one repetition, and warm-up runs cannot be fewer than none", code="out-of-range")
    ready = prepare(request)
    done = Execution("native", ready.built.path.name, list(request.arguments), request.ranks, mpi=TITLES[ready.built.family])
    limit = request.wait_quiet_s
    rested = limit <= 0 or machine_load.wait_until_quiet(limit, lambda text: request.report(0, 1, text))
    watch, gate = _Watch(ready, request), _Gate(request)
    done.machine = watch.machine
    runs = _runs(ready, request, done, watch, gate)
    for once in runs:
        done.samples_s.append(profile.elapsed_seconds(once.profiles))
        times, done.parts = profile.sections(once.profiles)
        for label, samples in times.items():
            done.sections.setdefault(label, []).extend(samples)
    done.noise = watch.noise(done, runs)
    done.notes = [*_note_placement(done, runs), *_noisy(done.noise), *gate.notes()]
    if not rested:
        done.notes.append(f"the machine did not come to rest within {request.wait_quiet_s:g} s")
    more = {"repetitions": request.repetitions, "warmup": request.warmup}
    return executions.save(store, executions.measured_spec(done, ready.built.digest), done, more)


def _runs(ready: _Ready, request: RunRequest, done: Execution, watch: _Watch, gate: _Gate) -> list[_Once]:
    """The repetitions that count. Sets outcome, output and calls in ``done``; a failed run is the last one."""
    first = int(request.profile) + request.warmup  # of the runs that count
    total = first + request.repetitions
    runs: list[_Once] = []
    at = 0
    while at < total:
        profiled = request.profile and at == 0
        counts = profiled or at >= first
        if counts:
            gate.enter()
        else:
            gate.forget()
        once = _once(ready, request, calls=profiled)
        done.wall_s += once.ended.wall_s
        if counts and not gate.leave(once):
            continue
        done.outcome, done.detail = _judge(once, request, ready.built)
        done.exit_code = once.ended.code
        if at == 0 or not done.completed:
            done.output, done.errors = once.ended.output, once.ended.errors
        request.report(at + 1, total, _run_name(at, request))
        if once.profiles:
            done.mpi = profile.library_name(once.profiles[0].library)
        if profiled:
            done.calls, done.profile_s = profile.calls(once.profiles), profile.elapsed_seconds(once.profiles) if once.profiles else None
        if not done.completed:
            done.detail += f" ({_run_name(at, request)})" if at else ""
            return runs
        if at >= first:
            runs.append(once)
        watch.between()
        at += 1
    return runs


def _note_placement(done: Execution, runs: Sequence[_Once]) -> list[str]:
    """Notes on the ranks' placement, which becomes the execution's mode."""
    allowed = len(mpi_job.cores())
    pinned = bool(runs) and _is_pinned(runs[-1].profiles, done.ranks)
    done.mode = "pinned" if pinned else "oversubscribed" if done.ranks > allowed else "free" if runs else ""
    if done.ranks > allowed:
        return [f"oversubscribed: {done.ranks} ranks on {allowed} cores take turns; these times compare with no model's"]
    if runs and not pinned:
        return ["the launcher did not pin the ranks: they may move between cores"]
    if runs and done.ranks > mpi_job.whole_cores(mpi_job.cores()):
        return ["some ranks were two threads of one core, which they shared"]
    return []


def _noisy(noise: Noise) -> list[str]:
    if noise.loaded:
        return [f"this machine is busy ({noise.why}): times are upper limits"]
    return [f"the times scatter: {noise.why}"] if noise.why else []


def _run_name(at: int, request: RunRequest) -> str:
    if request.profile:
        if at == 0:
            return "profile"
        at -= 1
    return f"warm-up {at + 1}" if at < request.warmup else f"repetition {at - request.warmup + 1}"
