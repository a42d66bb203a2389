"""The description of a run: one frozen, hashable value passed from a command, a study, a lab or a page to store and engine.

    Question("wmpi", "nt-pair", Benchmark("pingpong", {"sizes": [0, 1024]}), "shared", ["wmpi.pool=10MiB"])

Equivalent questions are equal and have the same hash, however their overrides and sizes were written. Models and platforms are given by
name; `retrompi.sim.resolved.Resolved` looks each up once. What is observed of a run (`retrompi.sim.observe.Observe`) and where it
is stored (`retrompi.store`) do not change its times and are not part of a question.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from retrompi.base.errors import UsageError, nearest
from retrompi.spec import needs, network_model
from retrompi.spec.bounds import Bounds
from retrompi.spec.cojobs import JobSpec
from retrompi.spec.overrides import parse_sets
from retrompi.spec.platform import Placement
from retrompi.spec.timed_section import Program

if TYPE_CHECKING:
    from retrompi._engine import Trace

__all__ = ["WILDCARDS", "Asked", "Benchmark", "Beside", "Bounds", "Experiment", "Message", "Question", "Replay", "Starts",
           "Workload", "canonical_hash", "canonical_parts", "hash_of_parts", "pingpong"]  # fmt: skip

WILDCARDS = ("recorded", "free")
"""What a receive from any source matches: the recorded match (if the trace contains it), or the first message to arrive."""

Overrides = Mapping[str, str] | Sequence[str] | tuple[tuple[str, str], ...]


def canonical_hash(value: Any) -> str:
    """SHA-256 of ``value`` as canonical JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def canonical_parts(value: Mapping[str, Any]) -> dict[str, str]:
    """The canonical JSON of every value of a mapping, for `hash_of_parts`: of values that differ in one key the others are written once."""
    return {key: json.dumps(part, sort_keys=True, default=str) for key, part in value.items()}


def hash_of_parts(parts: Mapping[str, str]) -> str:
    """`canonical_hash` of the mapping of which these are the `canonical_parts`; its keys are identifiers."""
    text = ", ".join([f'"{key}": {parts[key]}' for key in sorted(parts)])
    return hashlib.sha256(f"{{{text}}}".encode()).hexdigest()


def _frozen(value: Any) -> Any:
    return tuple(_frozen(v) for v in value) if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class Benchmark:
    """A generated program and the keyword arguments of its generator (`retrompi.traces.generate.GENERATORS`); None is a default."""

    generator: str
    args: Mapping[str, Any] | tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        pairs = self.args.items() if isinstance(self.args, Mapping) else self.args
        object.__setattr__(self, "args", tuple(sorted((k, _frozen(v)) for k, v in pairs if v is not None)))

    @property
    def kind(self) -> str:
        """The kind of the run in the store."""
        return self.generator if self.generator in ("pingpong", "rinf1") else "benchmark"

    @property
    def label(self) -> str:
        """Its name for the user."""
        return self.generator

    @property
    def arguments(self) -> dict[str, Any]:
        """``args`` as keyword arguments."""
        return dict(self.args)

    def facts(self) -> dict[str, Any]:
        """The facts that determine the program; its code is hashed separately."""
        return {"generator": self.generator, "args": self.arguments}


def pingpong(sizes: Sequence[int] | None = None, reps: Any = None, warm_up: int = 0) -> Benchmark:
    """The PingPong benchmark: ``sizes`` in bytes, ``reps`` a number or a function of the size; None: as in the papers.

    ``warm_up`` exchanges before each size are not timed; the papers had none.
    """
    return Benchmark("pingpong", {"sizes": sizes, "reps": reps, "warm_up": warm_up})


@dataclass(frozen=True, eq=False)
class Replay:
    """The replay of a trace, with a label and the facts about its program that the trace lacks. Traces are compared by content."""

    trace: Trace
    label: str = ""
    program: Program = field(default_factory=Program)
    kind: ClassVar[str] = "replay"

    def facts(self) -> dict[str, Any]:
        """What determines the program."""
        return {"trace": self.trace.sha256, **self.program.row()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Replay) and self.facts() == other.facts()

    def __hash__(self) -> int:
        return hash(self.trace.sha256)


@dataclass(frozen=True)
class Message:
    """One message of ``size`` bytes of a PingPong in its steady state, whose time is broken down by stage."""

    size: int
    kind: ClassVar[str] = "explain"
    label: ClassVar[str] = "one message"

    def facts(self) -> dict[str, Any]:
        """What determines the program."""
        return {"generator": "explain", "size": self.size}


@dataclass(frozen=True)
class Starts:
    """Only starting a job of ``ranks`` ranks, ``starts`` times, with consecutive seeds from that of the question."""

    ranks: int
    starts: int = 1
    kind: ClassVar[str] = "startup"
    label: ClassVar[str] = "start-up"

    def facts(self) -> dict[str, Any]:
        """What determines the program."""
        return {"ranks": self.ranks, "starts": self.starts}


@dataclass(frozen=True)
class Experiment:
    """A result computed from several runs and stored as one: its ``kind`` in the store, a label, and the JSON text that determines it."""

    kind: str
    label: str
    made: str

    @classmethod
    def of(cls, kind: str, label: str, made: Any) -> Experiment:
        """An experiment determined by the value ``made``, which must be serializable as JSON."""
        return cls(kind, label, json.dumps(made, sort_keys=True, default=str))

    def facts(self) -> dict[str, Any]:
        """What determines the program."""
        return {"experiment": self.kind, "made": json.loads(self.made)}


Workload = Benchmark | Replay | Message | Starts | Experiment


@dataclass(frozen=True)
class Beside:
    """What happens beside the program: cross ``traffic`` and ``failures`` as of `retrompi.spec.cross_traffic`, further ``jobs`` on the
    same platform, and ``kills``: processes killed at a time, ``"proxy on server@0.5s"``, ``"rank 3@2s"``, ``"rank 0 of job 2@1s"``."""

    traffic: Sequence[str] = ()
    failures: Sequence[str] = ()
    jobs: Sequence[JobSpec] = ()
    kills: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("traffic", "failures", "jobs", "kills"):
            object.__setattr__(self, name, tuple(getattr(self, name)))


@dataclass(frozen=True)
class Asked:
    """The scenario file a question comes from: its name and the hash of the contents that determine a run."""

    scenario: str = ""
    hash: str = ""


@dataclass(frozen=True)
class Question:
    """The complete description of a run.

    ``model`` and ``platform`` are names or paths. ``placement`` is ``shared`` (all ranks on the first host), ``distributed`` (one on each
    host in turn), a placement's name, hosts by name (``server,workstation``) or the host index of every rank; ``cores`` pins them.
    ``overrides`` are ``--set`` pairs as a mapping, ``KEY=VALUE`` texts or pairs; the last of equal keys is used. ``fidelity`` is a level of
    `retrompi.sim.fidelity`. ``start_up`` also simulates the start of the job, which may fail at random with ``seed``; ``limit_s`` ends the
    run after that many simulated seconds. ``order``: calls (rank, line of the trace) that begin in this order, each when all
    that went before has come to rest. ``compute_kernel`` runs compute amounts at the rate of a loop of `retrompi.spec.kernels`
    (``daxpy``, ``daxpy:1000``). ``idle_overrides`` accepts overrides that the run does not use, and changes no result. ``bounds`` end the
    simulation itself; they change no result either, and questions that differ in them only are equal. ``network`` is what carries the
    frames, one of `retrompi.spec.network_model.NAMES`. ``what_if_hardware`` accepts a platform on which the model
    cannot have run (`needs`).
    Raises UsageError for an unknown network or wildcard rule; names are checked when the question is resolved.
    """

    model: str
    platform: str
    workload: Workload
    placement: str | Sequence[int] = "distributed"
    overrides: Overrides = ()
    seed: int = 1
    fidelity: str = "mechanism"
    beside: Beside = field(default_factory=Beside)
    network: str = field(default_factory=network_model.chosen)
    wildcards: str = "recorded"
    order: Sequence[tuple[int, int]] = ()
    start_up: bool = False
    limit_s: float | None = None
    compute_kernel: str = ""
    idle_overrides: bool = False
    cores: Sequence[int] = ()
    asked: Asked = field(default_factory=Asked)
    bounds: Bounds = field(default_factory=Bounds, compare=False)
    what_if_hardware: bool = field(default_factory=needs.asked, compare=False)

    def __post_init__(self) -> None:
        given = self.overrides
        if not isinstance(given, Mapping) and any(isinstance(item, tuple) for item in given):
            given = dict(given)  # type: ignore[arg-type]
        cores = tuple(self.cores) or tuple(getattr(self.placement, "cores", ()))
        object.__setattr__(self, "overrides", tuple(parse_sets(given).items()))  # type: ignore[arg-type]
        object.__setattr__(self, "cores", cores)
        object.__setattr__(self, "order", tuple((int(rank), int(line)) for rank, line in self.order))
        if not isinstance(self.placement, str):
            object.__setattr__(self, "placement", tuple(int(i) for i in self.placement))
        network_model.parse(self.network)
        if self.wildcards not in WILDCARDS:
            raise UsageError(f"wildcards cannot be '{self.wildcards}'{nearest(self.wildcards, WILDCARDS)}", code="unknown-name")

    @property
    def sets(self) -> dict[str, str]:
        """The overrides as a mapping."""
        return dict(self.overrides)  # type: ignore[arg-type]

    @property
    def where(self) -> str:
        """The placement as text."""
        return self.placement if isinstance(self.placement, str) else ",".join(map(str, self.placement))

    @property
    def place(self) -> str | Placement:
        """The placement as `retrompi.sim.resolved.place` takes it."""
        return self.placement if isinstance(self.placement, str) else Placement(self.placement, self.cores)

    @property
    def title(self) -> str:
        """``wmpi on nt-pair, shared``."""
        return f"{self.model} on {self.platform}, {self.where}"

    def with_(self, **changes: Any) -> Question:
        """A copy with some fields changed."""
        return replace(self, **changes)
