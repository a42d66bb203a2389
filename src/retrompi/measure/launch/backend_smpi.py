"""The ``smpi`` backend: SimGrid's SMPI online at a runtime's costs.

The program runs unmodified, its computation is measured, its messages are simulated.

`retrompi.measure.smpi` exports the model's ``curve`` rung and has the plug-in that reads it; see docs/smpi.md. The recorder is loaded
before the plug-in, so that every run leaves its trace: replayed at ``curve``, it takes the same time (measurements in docs/smpi.md).
"""

from __future__ import annotations

import hashlib
import json
import re
import resource
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from retrompi import traces
from retrompi.base.cache import cache_dir
from retrompi.base.errors import UsageError
from retrompi.base.scratch import folder as temporary
from retrompi.base.units import PS
from retrompi.measure.launch import executions, mpi_job, profile
from retrompi.measure.launch.backend_model import home_rate
from retrompi.measure.launch.build import build
from retrompi.measure.launch.execution import KINDS, BackendError, Execution, RunRequest, on_model
from retrompi.measure.record import Clock, RecordError, record
from retrompi.measure.smpi.export import Export, export
from retrompi.measure.smpi.plugin import plugin
from retrompi.sim.cautions import calibration, of_question
from retrompi.sim.computation import scale_of
from retrompi.sim.resolved import Resolved
from retrompi.sim.sampling import NotSampled
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.question import Experiment, Replay
from retrompi.store.identity import specification

if TYPE_CHECKING:
    from retrompi.store.database import Store
    from retrompi.traces import Rate

__all__ = ["Online", "execute", "online"]

FIDELITY = "curve"
_MOST_STACK = 256 << 10  # KiB; all ranks are threads of one process


@dataclass
class Online:
    """The plug-in's report of a run; picoseconds.

    ``begin``, ``reach``, ``end``: rank -> end of MPI_Init, begin and end of MPI_Finalize. ``waits``: (rank, call, what it waits for) of
    a deadlock. ``collectives``: (operation, algorithm, calls of all members).
    """

    begin: dict[int, int] = field(default_factory=dict)
    reach: dict[int, int] = field(default_factory=dict)
    end: dict[int, int] = field(default_factory=dict)
    waits: list[tuple[int, str, str]] = field(default_factory=list)
    collectives: list[tuple[str, str, int]] = field(default_factory=list)
    messages: int = 0
    bytes: int = 0
    outcome: str = ""
    code: int = 0
    reason: str = ""

    @property
    def time_ps(self) -> int:
        """Time until the last rank left MPI_Finalize."""
        return max(self.end.values(), default=0)

    @classmethod
    def read(cls, path: Path) -> Online:
        """Read the plug-in's file; empty when there is none."""
        told = cls()
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return told
        for line in lines:
            word, *rest = line.split(" ")
            if word in ("begin", "reach", "end"):
                getattr(told, word)[int(rest[0])] = int(rest[1])
            elif word == "wait":
                told.waits.append((int(rest[0]), rest[1], " ".join(rest[2:])))
            elif word == "collective":
                told.collectives.append((rest[0], rest[1], int(rest[2])))
            elif word == "messages":
                told.messages, told.bytes = int(rest[0]), int(rest[1])
            elif word == "outcome":
                told.outcome, told.code, told.reason = rest[0], int(rest[1]), " ".join(rest[2:])
        return told


def _silent(done: int, total: int, what: str) -> None:
    """A progress callback that does nothing."""


def online(
    command: Sequence[str],
    ranks: int,
    facts: Export,
    trace: Path,
    work: Path,
    *,
    timeout_s: float | None = None,
    request: RunRequest | None = None,
    profiles: bool = True,
    rate: Rate | None = None,
    report: Callable[[int, int, str], None] = _silent,
) -> tuple[mpi_job.Ended, Online, list[profile.RankProfile]]:
    """Run ``command`` (a binary of SMPI's compilers and its arguments) on ``facts`` and leave its trace in ``trace``.

    ``work`` is an empty folder for temporary files. ``request`` gives the bounds, or ``timeout_s`` the wall time; ``rate``: what a measured
    second counts as (None: this machine's measured rate). Returns how it ended, the plug-in's report and the ranks' profiles. Raises
    BackendError for a missing tool or a program that cannot be recorded.
    """
    try:
        library = plugin(report=report)
        if re.search(r"\s", str(library)):  # smpirun splits its wrapper option at blanks
            library = Path(shutil.copy(library, work))
    except RecordError as error:
        raise BackendError(str(error), code=error.code) from error
    words = command_line(command, ranks, facts, library, work)
    results = work / "results"
    variables = {"RETROMPI_SMPI_EXPORT": str(work / "export"), "RETROMPI_SMPI_RESULTS": str(results)}
    variables["GFORTRAN_UNBUFFERED_PRECONNECTED"] = "y"  # what a rank that is killed had printed is not lost with its buffer
    if profiles:
        variables["RETROMPI_PROFILE_DIR"] = str(work)
    memory = None
    if request is not None:
        timeout_s, memory = request.wall_s, request.bounds.memory_B
        if request.limit_s is not None:
            variables["RETROMPI_SMPI_LIMIT_PS"] = str(round(request.limit_s / PS))
    ends: list[mpi_job.Ended] = []

    def runner(line: list[str], environment: dict[str, str]) -> int:
        ends.append(mpi_job.run(line, {**environment, **variables}, timeout_s, memory_B=memory))
        return ends[0].code

    clock = Clock() if rate is None else Clock(rate=rate.flops, source=rate.source)
    shutil.rmtree(trace, ignore_errors=True)
    shutil.rmtree(trace.with_name(trace.name + ".part"), ignore_errors=True)
    try:
        record(words, trace, use_smpi=True, check=False, runner=runner, beside=[library], clock=clock)
    except RecordError as error:
        if not ends:
            raise BackendError(str(error), code=error.code) from error
        told = Online.read(results)
        if not told.begin and ends[0].code != 0:
            raise BackendError(_last_words(ends[0]) or str(error), code=error.code) from error
    return ends[0], Online.read(results), profile.read(work)


def command_line(command: Sequence[str], ranks: int, facts: Export, library: Path, work: Path) -> list[str]:
    """smpirun's command line; writes the export and the list of hosts into ``work``."""
    smpirun = shutil.which("smpirun")
    if smpirun is None:
        raise BackendError(
            "smpirun was not found: install SimGrid's SMPI (Debian and Ubuntu: apt-get install libsimgrid-dev)", code="missing-tool"
        )
    (work / "export").write_text(facts.text(), encoding="utf-8")
    (work / "hosts").write_text("".join(f"rank{r}\n" for r in range(ranks)), encoding="utf-8")
    settings = [f"--cfg={key}:{value}" for key, value in {**facts.settings(), "contexts/stack-size": str(_stack_kib())}.items()]
    where = ["-quiet", "-np", str(ranks), "-platform", str(library), "-hostfile", str(work / "hosts")]
    return [smpirun, *where, *settings, "--log=root.thresh:critical", *command]


def _stack_kib() -> int:
    """KiB of a rank's stack: what a process has here (ulimit -s), so that a program that runs natively does here."""
    limit = resource.getrlimit(resource.RLIMIT_STACK)[0]
    return _MOST_STACK if limit == resource.RLIM_INFINITY else max(8192, min(limit // 1024, _MOST_STACK))


def _last_words(ended: mpi_job.Ended) -> str:
    lines = [line.strip() for line in ended.errors.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("retrompi smpi:")), lines[-1] if lines else "")


def execute(store: Store, request: RunRequest) -> Execution:
    """Run the program under SMPI at a model's costs: see `retrompi.measure.launch.run`."""
    if request.mpi is not None:
        raise UsageError("--mpi is for the native backend: SMPI is the MPI here")
    asked, done = on_model("smpi", replace(request, given={**request.given, "fidelity": FIDELITY}))
    built = build(request.program, "smpi")
    made = [built.digest, list(request.arguments), request.ranks]
    asked = asked.with_(workload=Experiment.of(KINDS["smpi"], done.program, made))
    spec = specification(asked)
    request.report(0, 2, "the model's curves")
    try:
        facts = export(asked, request.ranks, store)
    except NotSampled as error:
        done.outcome, done.detail = error.outcome, str(error)
        return executions.save(store, spec, done)
    request.report(1, 2, "running under SMPI")
    trace = _place(spec.identity, made)
    with temporary("run") as folder:
        ended, told, profiles = online(
            [*built.command, *request.arguments], request.ranks, facts, trace, Path(folder), request=request,
            profiles=request.profile, rate=home_rate(asked.platform), report=request.report,
        )
    request.report(2, 2, "running under SMPI")
    _tell(done, ended, told, profiles, request)
    done.trace = str(trace) if (trace / "index.txt").is_file() else ""
    done.cautions += facts.cautions
    done.notes += facts.notes
    sizes: list[int] = []
    if done.trace:
        read = traces.read(done.trace, partial=True)
        sizes = [read.info()["largest_B"]]
        replayed = Resolved.of(asked.with_(workload=Replay(read)))
        scale = scale_of(replayed)
        done.notes += [scale.line] if scale and not scale.assumed else []
        done.cautions += [c for c in of_question(replayed) if c.code == "computation-assumed"]
    done.cautions += calibration(asked.model, asked.platform, sizes=sizes, ranks=request.ranks, sets=asked.sets)
    return executions.save(store, spec, done, {"collectives": _collectives(told), "messages": told.messages, "bytes": told.bytes})


def _place(identity: str, made: Sequence[object]) -> Path:
    """The folder in which the trace of such a run is kept until the next one."""
    digest = hashlib.sha256(json.dumps([identity, made]).encode()).hexdigest()[:24]
    folder = cache_dir("online") / digest
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise BackendError(f"{folder} cannot be written: {e.strerror or e}", code="unwritable-file") from e
    return folder / "trace"


def _tell(done: Execution, ended: mpi_job.Ended, told: Online, profiles: list[profile.RankProfile], request: RunRequest) -> None:
    """Enter the outcome and the times of the run into ``done``."""
    done.mpi = profile.library_name(profiles[0].library) if profiles and profiles[0].library else "SMPI"
    done.output, done.wall_s = re.sub(r"Execution failed with code \d+\.\n\Z", "", ended.output), ended.wall_s  # smpirun's last line
    done.exit_code = ended.code
    if ended.timed_out or ended.too_large:
        done.outcome, done.detail = request.stop_outcome(ended.timed_out)
    elif told.outcome == Outcome.TIMEOUT:
        done.outcome, done.detail = Outcome.TIMEOUT, f"not finished after {request.limit_s or 0:g} s of simulated time"
    elif told.outcome and told.outcome != Outcome.COMPLETED:
        waits = "; ".join(f"rank {rank} in {call} waits for {what}" for rank, call, what in told.waits[:4])
        done.outcome, done.detail = Outcome(told.outcome), told.reason + (f": {waits}" if waits else mpi_job.first_error_line(ended))
        done.exit_code = told.code
    else:
        done.outcome, done.detail = mpi_job.ending(ended)
        if lacking := re.search(r"Not yet implemented: P?(MPI_\w+)", ended.errors):
            done.outcome, done.detail = Outcome.FAILED, f"SimGrid's SMPI does not have {lacking[1]}, which the program calls"
        elif mpi_job.told_signal(ended) == signal.SIGSEGV:
            done.detail += f"; {why_killed(Path(request.program))}"
        if done.completed and not told.begin:
            raise BackendError(f"{done.program} ended well and no rank came through MPI_Init: is it an MPI program?", code="wrong-mpi")
        if done.completed and len(told.reach) != request.ranks:
            done.outcome, done.detail = Outcome.FAILED, f"{len(told.reach)} of {request.ranks} ranks reached MPI_Finalize"
    took = max((told.reach[r] - told.begin[r] for r in told.reach), default=0) * PS
    if done.completed:
        done.samples_s = [took]
        done.profile_s = took if profiles else None
    done.sections, done.parts = profile.sections(profiles)
    done.calls = profile.calls(profiles)


def why_killed(program: Path) -> str:
    """Possible reasons for a SIGSEGV of a rank under SMPI. A Fortran program has a further candidate, a defect of SimGrid 3.32 itself."""
    stack = f"a rank's stack has {_stack_kib() / 1024:g} MiB (ulimit -s)"
    if not _is_fortran(program):
        return stack
    return ("SimGrid's SMPI 3.32 ends a Fortran program so when it gets MPI_COMM_NULL (MPI_Comm_create by a rank outside the group, "
            f"MPI_Comm_split with MPI_UNDEFINED): a known defect of its own, see docs/smpi.md; otherwise: {stack}")


def _is_fortran(program: Path) -> bool:
    """Whether a source or a binary is Fortran, by its suffix or by its run-time library."""
    if program.suffix.lower() in (".f", ".for", ".ftn", ".f77", ".f90", ".f95", ".f03", ".f08"):
        return True
    try:
        return b"_gfortran_" in program.read_bytes() or b"libgfortran" in program.read_bytes()
    except OSError:
        return False


def _collectives(told: Online) -> list[Mapping[str, object]]:
    return [{"operation": o, "algorithm": a, "calls": n} for o, a, n in told.collectives]
