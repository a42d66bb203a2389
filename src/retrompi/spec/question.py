"""The description of a run: one frozen, hashable value passed from a command, a study, a lab or a page to store and engine.

    Question("wmpi", "nt-pair", Benchmark("pingpong", {"sizes": [0, 1024]}), "shared", ["wmpi.pool=10MiB"])

Equivalent questions are equal and have the same hash, however their overrides and sizes were written. Models and platforms are given by
name; `retrompi.sim.resolved.Resolved` looks each up once. What is observed of a run (`retrompi.sim.observe.Observe`) and where it
is stored (`retrompi.store`) do not change its times and are not part of a question.

Each field is declared once, here: the options of commands, the arguments of the Python interface, the hash of a run's program and the
plain JSON by which the store keeps a question (`Question.row`) are made of these lines.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from retrompi.base.errors import UsageError, nearest
from retrompi.base.units import LARGEST_SEED
from retrompi.spec import needs
from retrompi.spec.conditions import network_model
from retrompi.spec.conditions.bounds import Bounds
from retrompi.spec.conditions.cojobs import JobSpec
from retrompi.spec.conditions.timed_section import Program
from retrompi.spec.declare.fields import Field, choice, fields_of, flag, quantity, structure, texts, whole, word
from retrompi.spec.platform import Placement
from retrompi.spec.runtime.overrides import parse_sets

if TYPE_CHECKING:
    from retrompi._engine import Trace

__all__ = ["FIDELITIES", "FIELDS", "NO_RESULT", "OPTIONS", "WILDCARDS", "Benchmark", "Beside", "Bounds", "Experiment", "Message",
           "Question", "Replay", "ScenarioRef", "Starts", "Workload", "canonical_hash", "canonical_parts", "freeze", "hash_of_parts",
           "pingpong"]

FIDELITIES = ("mechanism", "curve", "loggp")
"""The levels of detail, from the finest to the coarsest (`retrompi.sim.fidelity`)."""

WILDCARDS = ("recorded", "free")
"""What a receive from any source matches: the recorded match (if the trace contains it), or the first message to arrive."""

Overrides = Mapping[str, str] | Sequence[str] | tuple[tuple[str, str], ...]
ReadTrace = Callable[[Mapping[str, Any]], "Trace"]
"""Reads a trace again from what `Replay.row` says of it: ``sha256``, ``label`` and ``source`` (`retrompi.traces.source`)."""


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


def freeze(value: Any) -> Any:
    """The value with tuples for its lists, so that it can be compared and hashed."""
    return tuple(freeze(v) for v in value) if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class Benchmark:
    """A generated program and the keyword arguments of its generator (`retrompi.traces.generate.GENERATORS`); None is a default."""

    generator: str
    args: Mapping[str, Any] | tuple[tuple[str, Any], ...] = ()
    ranks: ClassVar[int | None] = None
    """The job's, where they are known without a trace."""
    program: ClassVar[Program] = Program()

    def __post_init__(self) -> None:
        pairs = self.args.items() if isinstance(self.args, Mapping) else self.args
        object.__setattr__(self, "args", tuple(sorted((k, freeze(v)) for k, v in pairs if v is not None)))

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

    def row(self) -> dict[str, Any]:
        """The program as plain JSON. Repetitions that are a function of the size are written out for every size."""
        args = self.arguments
        if callable(args.get("reps")):
            args["reps"] = {size: args["reps"](size) for size in args.get("sizes") or ()}
        return {"generator": self.generator, **({"args": _plain(args)} if args else {})}

    @classmethod
    def from_row(cls, row: Mapping[str, Any], read: ReadTrace) -> Benchmark:
        """The program of `row`; a table by sizes has whole numbers again."""
        args = {k: {int(n): x for n, x in v.items()} if isinstance(v, Mapping) else v for k, v in row.get("args", {}).items()}
        return cls(row["generator"], args)


def pingpong(sizes: Sequence[int] | None = None, reps: Any = None, warm_up: int = 0) -> Benchmark:
    """The PingPong benchmark: ``sizes`` in bytes, ``reps`` a number or a function of the size; None: as in the papers.

    ``warm_up`` exchanges before each size are not timed; the papers had none.
    """
    return Benchmark("pingpong", {"sizes": sizes, "reps": reps, "warm_up": warm_up})


@dataclass(frozen=True, eq=False)
class Replay:
    """The replay of a trace, with a label and the facts about its program that the trace lacks. Traces are compared by content.

    ``source``: how the trace was read or generated, as plain JSON (`retrompi.traces.source.Source.row`), so that it can be again.
    """

    trace: Trace
    label: str = ""
    program: Program = field(default_factory=Program)
    source: Mapping[str, Any] = field(default_factory=dict)
    kind: ClassVar[str] = "replay"

    @property
    def ranks(self) -> int:
        """The ranks of the trace."""
        return self.trace.ranks

    def facts(self) -> dict[str, Any]:
        """The values that determine the program, for the run's identity."""
        return {"trace": self.trace.sha256, **self.program.row()}

    def row(self) -> dict[str, Any]:
        """The program as plain JSON, with what names its trace in place of it."""
        return {**_trace_row(self), **({"program": self.program.row()} if self.program.row() else {})}

    @classmethod
    def from_row(cls, row: Mapping[str, Any], read: ReadTrace) -> Replay:
        """The program of `row`, its trace read again."""
        return cls(read(row), row.get("label", ""), Program(**row.get("program", {})), row.get("source", {}))

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
    ranks: ClassVar[int] = 2
    program: ClassVar[Program] = Program()

    def facts(self) -> dict[str, Any]:
        """The values that determine the program, for the run's identity."""
        return {"generator": "explain", "size": self.size}

    def row(self) -> dict[str, Any]:
        """The program as plain JSON."""
        return {"size": int(self.size)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any], read: ReadTrace) -> Message:
        """The program of `row`."""
        return cls(row["size"])


@dataclass(frozen=True)
class Starts:
    """Only starting a job of ``ranks`` ranks, ``starts`` times, with consecutive seeds from that of the question."""

    ranks: int
    starts: int = 1
    kind: ClassVar[str] = "startup"
    label: ClassVar[str] = "start-up"
    program: ClassVar[Program] = Program()

    def facts(self) -> dict[str, Any]:
        """The values that determine the program, for the run's identity."""
        return {"ranks": self.ranks, "starts": self.starts}

    def row(self) -> dict[str, Any]:
        """The program as plain JSON."""
        return {"ranks": int(self.ranks), "starts": int(self.starts)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any], read: ReadTrace) -> Starts:
        """The program of `row`."""
        return cls(row["ranks"], row["starts"])


@dataclass(frozen=True)
class Experiment:
    """A result computed from several runs and stored as one: its ``kind`` in the store, a label, and the JSON text that determines it."""

    kind: str
    label: str
    made: str
    ranks: ClassVar[int | None] = None
    program: ClassVar[Program] = Program()

    @classmethod
    def of(cls, kind: str, label: str, made: Any) -> Experiment:
        """An experiment determined by the value ``made``, which must be serializable as JSON."""
        return cls(kind, label, json.dumps(made, sort_keys=True, default=str))

    def facts(self) -> dict[str, Any]:
        """The values that determine the program, for the run's identity."""
        return {"experiment": self.kind, "made": json.loads(self.made)}

    def row(self) -> dict[str, Any]:
        """The program as plain JSON."""
        return {"of": self.kind, "label": self.label, "made": json.loads(self.made)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any], read: ReadTrace) -> Experiment:
        """The program of `row`."""
        return cls.of(row["of"], row["label"], row["made"])


Workload = Benchmark | Replay | Message | Starts | Experiment
WORKLOADS: Mapping[str, type[Any]] = {
    "benchmark": Benchmark, "replay": Replay, "message": Message, "starts": Starts, "experiment": Experiment,
}
"""Name of a kind of workload in `Question.row` -> its class."""


def _trace_row(of: Replay | JobSpec) -> dict[str, Any]:
    """A trace as it is stored in a question: its hash, label and source."""
    return {"sha256": of.trace.sha256, "label": of.label, **({"source": _plain(of.source)} if of.source else {})}


def _plain(value: Any) -> Any:
    """A value as plain JSON: tuples are lists, keys texts, a group of fields those of them that are given."""
    if is_dataclass(value) and not isinstance(value, type):
        return {k: _plain(v) for k, v in asdict(value).items() if v not in (None, "")}
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(v) for v in value]
    return value.item() if hasattr(value, "item") else value


@dataclass(frozen=True)
class Beside:
    """Concurrent load and events of a run: cross ``traffic`` and ``failures`` as of `retrompi.spec.conditions.cross_traffic`, further
    ``jobs`` on the same platform, and ``kills``: processes killed at a time, ``"proxy on server@0.5s"``, ``"rank 3@2s"``, ``"rank 0 of job
    2@1s"``."""

    traffic: Sequence[str] = texts(
        "Cross traffic on the same network, e.g. 'any 2Mbps 1500B poisson' or 'server->workstation 2Mbps 1500B'.",
        option="--traffic", metavar="FROM->TO RATE FRAME [LAW]")
    failures: Sequence[str] = texts(
        "Take a component down for a span of simulated time, e.g. 'link server@1s..2s', 'switch@2s', 'wan@1s..1.5s'.",
        option="--fail", metavar="WHAT@FROM..TO")
    jobs: Sequence[JobSpec] = structure("further jobs on the same platform", default=())
    kills: Sequence[str] = texts(
        "Kill a process at a simulated time, e.g. 'proxy on server@0.5s', 'daemon on n1@1s', 'rank 3@2s'.",
        option="--kill", metavar="PROCESS@TIME", of="trace")

    def __post_init__(self) -> None:
        for name in fields_of(Beside):
            object.__setattr__(self, name, tuple(getattr(self, name)))


@dataclass(frozen=True)
class ScenarioRef:
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
    that went before has come to rest. ``compute_kernel`` runs compute amounts at the rate of a loop of `retrompi.spec.machine.kernels`
    (``daxpy``, ``daxpy:1000``). ``idle_overrides`` accepts overrides that the run does not use, and changes no result. ``bounds`` end the
    simulation itself; they change no result either, and questions that differ in them only are equal. ``network`` is what carries the
    frames, one of `retrompi.spec.conditions.network_model.NAMES`. ``what_if_hardware`` accepts a platform on which the model
    cannot have run (`needs`).
    Raises UsageError for an unknown network or wildcard rule; names are checked when the question is resolved.
    """

    model: str = word(
        "Runtime model: a name (see 'retrompi models list') or the folder of a model of your own.",
        option="-m --model", metavar="NAME|FOLDER")
    platform: str = word(
        "Platform: a name (see 'retrompi platforms list'), hosts and network of the library ('nt4-p6-200*8@switch-100'), or a TOML file "
        "of your own (default: the model's own).", option="-p --platform", metavar="NAME|FILE")
    workload: Workload = structure("the program")
    placement: str | Sequence[int] = structure(
        "Placement of the ranks: natural (default: block on hosts with several processors, else distributed), shared (on the first host), "
        "distributed (one on each host in turn), block or cyclic (by processors; block:N at most N a host), hosts (n1*8,n2*8 or n1,n2), "
        "or a placement of the platform.", default="distributed", key="mode", option="--mode", metavar="MODE")
    overrides: Overrides = structure(
        "Override a parameter: e.g. wmpi.pool=10MiB, platform.host.quantum=20ms; x2 or 50% change the value in force: "
        "platform.link.latency=x0.5.", default=(), key="set", option="--set", metavar="KEY=VALUE")
    seed: int = whole("Seed of the random numbers.", default=1, high=LARGEST_SEED, option="--seed")
    fidelity: str = choice(
        "Level of detail: the full mechanism, a curve sampled from it plus contention, or LogGP fitted to that curve.", FIDELITIES,
        default="mechanism", option="--fidelity")
    beside: Beside = structure("what happens beside the program", default=Beside)
    network: str = word(
        "Network model: native (frames queue at each link; the default), fluid (flows share links), simgrid (SimGrid's links and routes "
        "under plain flows) or simgrid:MODEL (CM02, LV08, SMPI, ...).",
        default=network_model.network_in_use, option="--network", metavar="NAME")
    wildcards: str = choice(
        "Match MPI_ANY_SOURCE receives with the source recorded in the trace, or freely with the first message to arrive.", WILDCARDS,
        default="recorded", option="--wildcards", of="trace")
    order: Sequence[tuple[int, int]] = structure("calls that begin in this order", default=())
    start_up: bool = flag(
        "Simulate the start of the job as well; it may fail.", default=False, key="startup", option="--startup", of="trace")
    limit_s: float | None = quantity(
        "s", "End the job at this simulated time, e.g. 10s (outcome timeout).", default=None, above=0, key="time_limit",
        option="--time-limit", metavar="TIME")
    compute_kernel: str = word(
        "Compute at the rate of a Rinf1 loop, e.g. daxpy or daxpy:1000.", default="", option="--compute-kernel", metavar="KERNEL[:N]",
        of="trace")
    idle_overrides: bool = structure("whether overrides that the run does not use are accepted", default=False)
    cores: Sequence[int] = structure("the core of every rank", default=())
    asked: ScenarioRef = structure("the scenario that it comes from", default=ScenarioRef)
    bounds: Bounds = structure("what its simulation may take", default=Bounds, compare=False)
    what_if_hardware: bool = flag(
        "Accept hardware that a runtime never ran on (MPICH-GM on Ethernet): a fiction, and called one in the answer.",
        default=needs.allows_fiction, compare=False, option="--what-if-hardware")

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
        object.__setattr__(self, "limit_s", self.limit_s or None)
        network_model.parse(self.network)
        for key, f in _CHOICES.items():
            f.check(self.value(key), key)

    @classmethod
    def asking(cls, workload: Workload, given: Mapping[str, Any], **more: Any) -> Question:
        """The question about ``workload`` with what a user has ``given``: key -> value or text, as `OPTIONS` declares them; ``more`` are
        further fields. Raises UsageError for an unknown key and for a value that is not allowed."""
        fields: dict[str, Any] = {}
        beside: dict[str, Any] = {}
        for key, value in given.items():
            if key not in OPTIONS:
                raise UsageError(f"no option '{key}'{nearest(key, OPTIONS)}", code="unknown-name")
            f = OPTIONS[key]
            (beside if f.name in _OF_BESIDE else fields)[f.name] = value if value is None else f.take(value, key)
        return cls(workload=workload, beside=Beside(**beside), **fields, **more)

    def value(self, key: str) -> Any:
        """The value of a field by its key in `FIELDS`."""
        name = FIELDS[key].name
        return getattr(self.beside if name in _OF_BESIDE else self, name)

    def row(self) -> dict[str, Any]:
        """The question as plain JSON, from which `from_row` makes it again: what is not as by default, by the keys of `FIELDS`, and of a
        trace its hash and source."""
        kind = next(name for name, cls in WORKLOADS.items() if isinstance(self.workload, cls))
        out: dict[str, Any] = {"workload": {"kind": kind, **self.workload.row()}}
        for key, f in FIELDS.items():
            value = self.value(key)
            if f.optional and value == f.default:
                continue
            if key == "jobs":
                out[key] = [{**{k: v for k, v in j.facts().items() if k != "trace"}, **_trace_row(j)} for j in value]
            elif (told := _plain(dict(value) if key == "set" else value)) != {}:
                out[key] = told
        return out

    @classmethod
    def from_row(cls, row: Mapping[str, Any], read: ReadTrace) -> Question:
        """The question of `row`, with its traces read by ``read``. Raises UsageError for what is none, and what ``read`` raises."""
        if unknown := [key for key in row if key not in FIELDS and key != "workload"]:
            raise UsageError(f"a question has no '{unknown[0]}'{nearest(unknown[0], FIELDS)}", code="unknown-key")
        try:
            given = {FIELDS[key].name: value for key, value in row.items() if key != "workload"}
            workload = WORKLOADS[row["workload"]["kind"]].from_row(row["workload"], read)
            beside = Beside(**{name: given.pop(name) for name in _OF_BESIDE & given.keys() if name != "jobs"},
                            jobs=[JobSpec.from_row(job, read(job)) for job in given.pop("jobs", ())])
            asked, bounds = ScenarioRef(**given.pop("asked", {})), Bounds(**given.pop("bounds", {}))
            return cls(workload=workload, beside=beside, asked=asked, bounds=bounds, **given)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(f"this is no question: {type(error).__name__}: {error}", code="bad-value") from None

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


FIELDS: Mapping[str, Field] = {
    f.key or f.name: f for cls in (Question, Beside) for f in fields_of(cls).values() if f.name not in ("workload", "beside")
}
"""Key -> every field of a question and of what is beside it, but the program."""
NO_RESULT = frozenset(key for key, f in FIELDS.items() if f.name in {own.name for own in fields(Question) if not own.compare})
"""Keys of the fields that change no result: questions that differ in them only are equal."""
OPTIONS: Mapping[str, Field] = {key: f for key, f in FIELDS.items() if f.option}
"""Key -> the fields that users give: by an option of a command, an argument in Python, or a key of a scenario or a study."""
_OF_BESIDE = frozenset(fields_of(Beside))
_CHOICES = {key: f for key, f in FIELDS.items() if f.kind == "choice"}
