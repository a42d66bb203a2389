"""The request for a program's run on a backend and its result: `RunRequest` and `Execution`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from retrompi.base.errors import RetrompiError, UsageError
from retrompi.base.units import format_bytes
from retrompi.sim.cautions import Caution
from retrompi.spec import needs, registry
from retrompi.spec.conditions.bounds import Bounds
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.machine.placements import NATURAL
from retrompi.spec.question import OPTIONS, Experiment, Question, Workload
from retrompi.spec.runtime import possible

__all__ = ["BACKENDS", "KINDS", "BackendError", "CallProfile", "Execution", "NativeMachine", "Noise", "RunRequest", "on_model"]

BACKENDS = ("native", "smpi", "model")
KINDS = {"native": "native", "smpi": "smpi", "model": "program"}
"""Backend -> kind of its runs in the store."""


class BackendError(RetrompiError):
    """A program that cannot be built or started here: a missing tool, a compiler's error, a library that does not fit (exit 2)."""

    code = "cannot-launch"


@dataclass(frozen=True)
class NativeMachine:
    """The machine of a native run. ``load``: other processes that wanted a core when it began."""

    host: str
    cpu: str
    cores: int
    load: float = 0.0


@dataclass(frozen=True)
class CallProfile:
    """One row of the per-call profile, summed over the ranks.

    ``call``: the MPI function (``MPI_Send``); ``size_B``: bytes of its own count, exact (what it sends, or receives where it sends nothing;
    0 for calls without data); ``section``: its label, "" outside of all; ``seconds``: between entering and leaving it; ``bytes``:
    ``size_B`` times ``count``.
    """

    call: str
    size_B: int
    section: str
    count: int
    seconds: float
    bytes: int


@dataclass(frozen=True)
class Noise:
    """The estimated noise of a native measurement; shares are between 0 and 1.

    ``spread``: interquartile range of the repetitions' times over their median; ``probe``: how much longer a fixed piece of work took than
    at its fastest (median over probes on all cores); ``stolen``: share of the cores' time that the hypervisor or other processes took;
    ``waiting``: average number of other processes that wanted a core; ``switches``: involuntary context switches of the ranks per second
    of a rank's time. ``loaded``: the machine was too busy for the times to be trusted, and ``why``.
    """

    spread: float
    probe: float
    stolen: float
    waiting: float
    switches: float
    loaded: bool
    why: str = ""
    line_ns: list[float] = field(default_factory=list)
    """Nanoseconds of a cache-line transfer between the first two cores, before and after the runs (not for a single run): only this reveals
    a hypervisor that moves its virtual processors, and messages through shared memory then take several times as long."""


@dataclass
class Execution:
    """A program's run on one backend.

    ``samples_s``: time of the MPI part (end of MPI_Init to start of MPI_Finalize, the maximum over ranks) of every repetition; one for
    ``smpi`` and ``model``; warm-up runs are excluded. ``sections``: label -> seconds of a part of the section (the maximum over ranks),
    for every repetition and, within it, every occurrence. ``outcome``: completed, failed (an exit code), killed (a signal), timeout,
    limit, deadlock, aborted, failed-start. Names and fidelity are empty where a backend has none.
    """

    backend: str
    program: str
    arguments: list[str]
    ranks: int
    mpi: str = ""
    machine: NativeMachine | None = None
    model: str = ""
    platform: str = ""
    mode: str = ""
    fidelity: str = ""
    outcome: Outcome = Outcome.COMPLETED
    detail: str = ""
    exit_code: int | None = None
    output: str = ""
    errors: str = ""
    """The program's standard error, including the launcher's messages."""
    wall_s: float = 0.0
    samples_s: list[float] = field(default_factory=list)
    sections: dict[str, list[float]] = field(default_factory=dict)
    parts: dict[str, int] = field(default_factory=dict)
    """Parts of a section, as declared by the program at its end (of the last occurrence)."""
    calls: list[CallProfile] = field(default_factory=list)
    profile_s: float | None = None
    """Time of the MPI part (maximum over ranks) of the run profiled in ``calls``: natively a separate run from those in ``samples_s``."""
    noise: Noise | None = None
    notes: list[str] = field(default_factory=list)
    """Notes for the reader of the times: one line each."""
    cautions: list[Caution] = field(default_factory=list)
    """What one should know of a simulated run."""
    trace: str = ""
    """Folder of the trace that was replayed, or recorded during the run; empty when there is none."""
    run_id: int | None = None
    found: bool = False
    """Whether it was taken from the store: a simulation done before, never a measurement."""

    @property
    def completed(self) -> bool:
        return self.outcome == Outcome.COMPLETED

    def row(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)


def _quiet(done: int, total: int, what: str = "") -> None:
    """A progress callback that does nothing."""


def _any_state() -> str:
    """The default state check: accepts every state of the machine."""
    return ""


@dataclass(frozen=True)
class RunRequest:
    """The options of `run`; each backend uses those that apply to it.

    ``mpi``: ``mpich``, ``openmpi`` or None for what the program links or what is installed. ``repetitions`` and ``warmup`` count runs of
    the whole program, natively. ``timeout_s``: wall time of a run natively and under SMPI, where ``bounds`` set none; None: no limit.
    ``bounds``: of the simulation, or of the program's processes (no events).
    ``profile``: whether the per-call profile is wanted (natively one more run). ``report(done, total, what)`` is called to report progress.
    """

    program: str
    arguments: tuple[str, ...] = ()
    ranks: int = 2
    given: Mapping[str, Any] = field(default_factory=dict)
    """Of a simulation, the question's options that were given, by key (`retrompi.spec.question.OPTIONS`): ``model``, ``set``, ..."""
    mpi: str | None = None
    repetitions: int = 10
    warmup: int = 1
    timeout_s: float | None = None
    bounds: Bounds = field(default_factory=Bounds)
    """Of the simulation, on a model."""
    recording_limit_s: float = 600.0
    """Wall time that a program may take while its trace is recorded for a model."""
    profile: bool = True
    wait_quiet_s: float = 0.0
    """How long to wait for a loaded machine to become idle before measuring."""
    odd_state: Callable[[], str] = _any_state
    """Called before and after every native run that counts: returns "", or a description of an unsuitable machine state. Such a run is
    repeated, however long it took."""
    trace: str | None = None
    """Folder of a trace: the model replays this one instead of recording the program's. SMPI leaves its own in `Execution.trace`."""
    fresh: bool = False
    report: Callable[[int, int, str], None] = _quiet

    def question(self, workload: Workload, **more: Any) -> Question:
        """The question about ``workload`` that was asked, with the model's own platform and its natural placement where none is given;
        ``more`` are fields beside what was given."""
        model = self.given["model"]
        usual = {"platform": registry.own_platform(model), "mode": NATURAL}
        return Question.asking(workload, {**usual, **self.given}, **more)

    @property
    def limit_s(self) -> float | None:
        """The simulated time after which the job is ended; None: no limit."""
        limit: float | None = OPTIONS["time_limit"].take(self.given["time_limit"], "time_limit") if "time_limit" in self.given else None
        return limit

    @property
    def wall_s(self) -> float | None:
        """The bound on the wall time of the program's processes."""
        return self.timeout_s if self.bounds.wall_s is None else self.bounds.wall_s

    def stop_outcome(self, timed_out: bool, where: str = "") -> tuple[Outcome, str]:
        """(outcome, detail) of a program that was ended for its wall time (``timed_out``) or else for its memory."""
        inside = f": {where}" if where else ""
        if not timed_out:
            return Outcome.LIMIT, f"its processes needed more memory than {format_bytes(self.bounds.memory_B or 0)}{inside}"
        return Outcome.TIMEOUT if self.bounds.wall_s is None else Outcome.LIMIT, f"not finished after {self.wall_s or 0:g} s{inside}"


def on_model(backend: str, request: RunRequest) -> tuple[Question, Execution]:
    """The question of a run at a model's costs, about the program as it is named, and the execution to be filled in.

    Raises UsageError for an unknown model, platform or mode, and for a model that cannot have run on the platform: before the program
    is compiled.
    """
    if "model" not in request.given:
        raise UsageError("a model is needed: --model NAME (see 'retrompi models list')", code="missing-option")
    name = Path(request.program).name
    asked = request.question(Experiment.of(KINDS[backend], name, [name, list(request.arguments), request.ranks]))
    loaded = registry.platform(asked.platform)
    model = registry.model(asked.model)
    if not needs.allows_fiction():
        possible.check(model, loaded)
    mode = str(asked.placement)
    found = loaded.placement(mode)
    done = Execution(
        backend, name, list(request.arguments), request.ranks, model=model.name, platform=loaded.name,
        mode=found if isinstance(found, str) else mode,
        fidelity=asked.fidelity,
    )
    return asked, done
