"""The real machine: ranks pinned, the program warmed up and repeated, its times without a profile, the profile in a run of its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from retrompi.backends import BackendError, Execution, Noise, Request, job, machine, profile, stats, stored
from retrompi.backends.build import TITLES, Built, build, find_mpiexec
from retrompi.errors import UsageError
from retrompi.record import RecordError
from retrompi.record.library import Compiler, find_compiler, library
from retrompi.record.run import Launcher, with_environment
from retrompi.record.state import read_states

if TYPE_CHECKING:
    from retrompi.store.database import Store

__all__ = ["command_line", "execute"]


@dataclass(frozen=True)
class _Ready:
    """What every run of a program needs."""

    built: Built
    launcher: Launcher
    compiler: Compiler
    words: list[str]


@dataclass(frozen=True)
class _Once:
    """One run: how it ended and what its ranks left."""

    ended: job.Ended
    profiles: list[profile.RankProfile]
    inside: str
    """Where ranks were that did not finish, in words."""


def command_line(launcher: Launcher, ranks: int, program: Sequence[str], cores: int) -> list[str]:
    """The launcher's words for ``ranks`` on ``cores`` cores: bound to a core each where they fit, else left to the system."""
    fits = ranks <= cores
    words = [launcher.path]
    if launcher.kind == "openmpi":
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            words.append("--allow-run-as-root")
        # Slots are what a host file says, or the cores it counts itself; how many ranks there may be is for the user to say.
        words.append("--oversubscribe")
        words += ["--bind-to", "core", "--map-by", "core"] if fits else ["--bind-to", "none"]
    elif launcher.kind == "hydra":
        words += ["-bind-to", "core", "-map-by", "core"] if fits else ["-bind-to", "none"]
    return [*words, "-n", str(ranks), *program]


def prepare(request: Request) -> _Ready:
    """Build the program and find what starts it. Raises UsageError or BackendError."""
    built = build(request.program, request.mpi)
    if built.family == "smpi":
        raise BackendError(f"{built.path.name} was built by smpicc and runs on SMPI alone: use --backend smpi, or give its source")
    launcher = find_mpiexec(built.family)
    try:
        compiler = find_compiler(built.family, launcher.path)
    except RecordError as error:
        raise BackendError(str(error).replace(", or name the mpicc with --mpicc", "")) from error
    words = command_line(launcher, request.ranks, [*built.command, *request.arguments], len(job.cores()))
    return _Ready(built, launcher, compiler, words)


def _once(ready: _Ready, timeout_s: float | None, *, calls: bool = False) -> _Once:
    """Run the program with the timer before it, or the recorder in its place, which sees all ``calls``."""
    try:
        shim = library(ready.compiler, timer=not calls)
    except RecordError as error:
        raise BackendError(str(error)) from error
    with tempfile.TemporaryDirectory(prefix="retrompi-") as name:
        before = os.environ.get("LD_PRELOAD")
        variables = {"RETROMPI_PROFILE_DIR": name, "LD_PRELOAD": str(shim) + (f":{before}" if before else "")}
        if calls:
            variables |= {"RETROMPI_RECORD_DIR": name, "RETROMPI_RECORD_LINES": "0", "RETROMPI_RECORD_CLOCK": "wall"}
        words, environment = with_environment(ready.launcher, ready.words, variables)
        ended = job.run(words, environment, timeout_s)
        states = read_states(Path(name)) if calls else {}
        stuck = [f"rank {s.rank} {s.ended()}" for s in states.values() if s.inside]
        return _Once(ended, profile.read(Path(name)), ", ".join(stuck[:4]))


def _judge(once: _Once, request: Request, built: Built) -> tuple[str, str]:
    """(outcome, detail) of a run. Raises BackendError when the program is none of MPI."""
    outcome, detail = job.ending(once.ended, any(p.how == "aborted" for p in once.profiles))
    if outcome == "timeout":
        return outcome, f"not finished after {request.timeout_s:g} s" + (f": {once.inside}" if once.inside else "")
    if outcome != "completed":
        return outcome, detail
    if not once.profiles:
        raise BackendError(f"{built.path.name} ended well and no rank came through MPI_Init: is it an MPI program, linked dynamically?")
    if len(once.profiles) != once.profiles[0].ranks or once.profiles[0].ranks != request.ranks:
        return "failed", f"{len(once.profiles)} of {request.ranks} ranks reached MPI_Finalize"
    return "completed", ""


def _pinned(profiles: Sequence[profile.RankProfile], ranks: int) -> bool:
    """Whether every rank had a core of its own."""
    return len({p.cores for p in profiles if len(p.cores) == 1}) == ranks


def execute(store: Store, request: Request) -> Execution:
    """Measure: see `retrompi.backends.run`."""
    if request.repetitions < 1 or request.warmup < 0:
        raise UsageError("a measurement needs at least one repetition, and warm-up runs cannot be fewer than none")
    ready = prepare(request)
    allowed = len(job.cores())
    done = Execution("native", ready.built.path.name, list(request.arguments), request.ranks, mpi=TITLES[ready.built.family])
    rested = machine.wait_until_quiet(request.wait_quiet_s, lambda text: request.report(0, 1, text)) if request.wait_quiet_s > 0 else True
    done.machine = machine.machine()
    total = int(request.profile) + request.warmup + request.repetitions
    runs: list[_Once] = []
    probes = machine.probe()
    queue = [done.machine.load]
    before = machine.Counters.now()
    for at in range(total):
        once = _once(ready, request.timeout_s, calls=request.profile and at == 0)
        done.wall_s += once.ended.wall_s
        done.outcome, done.detail = _judge(once, request, ready.built)
        done.exit_code, done.output = once.ended.code, once.ended.output if at == 0 or not done.completed else done.output
        request.report(at + 1, total, _named(at, request))
        if once.profiles:
            done.mpi = profile.library_name(once.profiles[0].library)
        if request.profile and at == 0:
            done.calls, done.profile_s = profile.calls(once.profiles), profile.elapsed(once.profiles) if once.profiles else None
        if not done.completed:
            done.detail += f" ({_named(at, request)})" if at else ""
            break
        if at >= total - request.repetitions:
            runs.append(once)
        queue.append(machine.waiting())
    after = machine.Counters.now()
    probes += machine.probe()
    for once in runs:
        done.samples_s.append(profile.elapsed(once.profiles))
        times, done.parts = profile.sections(once.profiles)
        for label, samples in times.items():
            done.sections.setdefault(label, []).extend(samples)
    done.noise = _noise(runs, done, probes, machine.elsewhere(before, after), sum(queue) / len(queue))
    pinned = bool(runs) and _pinned(runs[-1].profiles, request.ranks)
    done.mode = "pinned" if pinned else "oversubscribed" if request.ranks > allowed else "free" if runs else ""
    if request.ranks > allowed:
        done.notes.append(f"oversubscribed: {request.ranks} ranks on {allowed} cores take turns; these times compare with no model's")
    elif runs and not pinned:
        done.notes.append("the launcher did not pin the ranks: they may move between cores")
    if done.noise.loaded:
        done.notes.append(f"this machine is busy ({done.noise.why}): times are upper limits")
    elif done.noise.why:
        done.notes.append(f"the times scatter: {done.noise.why}")
    if not rested:
        done.notes.append(f"the machine did not come to rest within {request.wait_quiet_s:g} s")
    return stored.save(
        store, stored.measured_spec(done, ready.built.digest), done, {"repetitions": request.repetitions, "warmup": request.warmup}
    )


def _named(at: int, request: Request) -> str:
    if request.profile:
        if at == 0:
            return "profile"
        at -= 1
    return f"warm-up {at + 1}" if at < request.warmup else f"repetition {at - request.warmup + 1}"


def _noise(runs: Sequence[_Once], done: Execution, probes: list[float], stolen: float, waiting: float) -> Noise:
    ranks = [p for once in runs for p in once.profiles if len(p.usage) == 4]
    seconds = sum(p.time for p in ranks) * profile.PS
    switches = sum(p.usage[3] for p in ranks) / seconds if seconds > 0 else 0.0
    noise = stats.judged(done.samples_s, probes, stolen, waiting, switches)
    if done.ranks > len(job.cores()):  # the ranks themselves are what wants the cores
        return replace(noise, loaded=noise.loaded and waiting >= stats.BUSY_WAITING)
    return noise
