"""A run's result: every number of it declared once, with its unit, what it means and where a stored run has it.

A declaration is a dataclass (`Counters`, `Totals`, `Ending`) or the type of a row (`RankRow`, `TrafficRow`, `WaitRow`); each field is
one line. Made from it: the engine's struct with what goes through its fields (`retrompi.spec.compiled.cpp`), `retrompi.sim.result.Result`,
the columns and facts of a stored run, metrics (`retrompi.studies.define.metrics`), the differences between two runs, exported columns, and
the tables of commands and pages. docs/add-a-metric.md adds one.

Imports only `retrompi.base` and `retrompi.spec`, since the build of the engine runs it before the package is installed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, TypedDict, get_type_hints, is_typeddict

from retrompi.base.translate import lazy
from retrompi.spec.declare.outcome import Outcome

__all__ = ["CollectiveRow", "Counters", "Ending", "MarkRow", "OutputField", "PointRow", "RankRow", "SectionRow", "StageRow", "StartsRow",
           "StepRow", "Totals", "TrafficRow", "WaitRow", "counter", "duration", "metrics", "number", "outputs", "part", "stored_fields",
           "word"]


@dataclass(frozen=True, slots=True)
class OutputField:
    """The declaration of one field of a result.

    ``kind`` is counter (a whole number), time (simulated seconds), number (any other), word (text) or part (rows and other structures).
    ``title`` is what tables and axes call it, marked for translation; ``help`` says what it is where the title does not. ``cpp`` is the
    type of the engine's member, "" for none. ``column``: a stored run has a column for it, otherwise it is among its facts. ``trouble``:
    it counts what goes wrong or waits, and so what may explain a long time. ``effort``: it says what simulating took, and is no result.
    ``largest``: of a rank's time, the title of the run's number that is the largest of all ranks. ``grows``: of a rank's number, it grows
    while the job runs, in the engine's ``RankCounters``.
    """

    name: str
    kind: str
    unit: str
    title: str
    help: str = ""
    cpp: str = ""
    column: bool = False
    trouble: bool = False
    effort: bool = False
    largest: str = ""
    grows: bool = False

    @property
    def meaning(self) -> str:
        """The help text, or the title without one."""
        return self.help or self.title

    @property
    def is_number(self) -> bool:
        """Whether it is one number."""
        return self.kind in ("counter", "time", "number")

    @property
    def path(self) -> str:
        """Its place in the row of a stored run: ``messages``, ``facts.frames``."""
        return self.name if self.column else f"facts.{self.name}"

    @property
    def member(self) -> str:
        """The name of the engine's member: a time has its unit in its type there."""
        return self.name.removesuffix("_s") if self.cpp == "Ps" else self.name

    @property
    def key(self) -> str:
        """The name under which the engine's answer has it: times are whole picoseconds there."""
        return f"{self.member}_ps" if self.cpp == "Ps" else self.name


def _output(kind: str, unit: str, title: str, default: Any, more: Mapping[str, Any]) -> Any:
    given = {"default_factory": default} if callable(default) else {} if default is dataclasses.MISSING else {"default": default}
    return dataclasses.field(**given, metadata={"output": {"kind": kind, "unit": unit, "title": title, **more}})


def counter(title: str, unit: str = "count", *, default: Any = 0, **more: Any) -> Any:
    """A whole number. ``more`` are `OutputField`'s ``help``, ``cpp``, ``column``, ``trouble`` and ``effort``."""
    return _output("counter", unit, title, default, {"cpp": "int64_t", **more})


def duration(title: str, *, default: Any = 0.0, **more: Any) -> Any:
    """A time in simulated seconds; the engine has it in picoseconds. ``more`` as for `counter`."""
    return _output("time", "s", title, default, {"cpp": "Ps", **more})


def number(title: str, unit: str, *, default: Any = 0.0, **more: Any) -> Any:
    """Any other number. ``more`` as for `counter`."""
    return _output("number", unit, title, default, {"cpp": "double", **more})


def word(title: str, *, default: Any = "", **more: Any) -> Any:
    """A text. ``more`` as for `counter`."""
    return _output("word", "", title, default, {"cpp": "std::string", **more})


def part(title: str, *, default: Any = None, **more: Any) -> Any:
    """Rows or another structure, which is nobody's one number. ``more`` as for `counter`."""
    return _output("part", "", title, default, more)


@cache
def outputs(cls: type) -> Mapping[str, OutputField]:
    """Name -> `OutputField` of every declared field of a dataclass or a row's type, in order."""
    if is_typeddict(cls):
        stated = {name: getattr(hint, "__metadata__", ())[:1] for name, hint in get_type_hints(cls, include_extras=True).items()}
        fields = {name: of[0].metadata for name, of in stated.items() if of}
    else:
        fields = {f.name: f.metadata for f in dataclasses.fields(cls)}
    return {name: OutputField(name=name, **metadata["output"]) for name, metadata in fields.items() if "output" in metadata}


@dataclass(kw_only=True)
class Ending:
    """How and when a job ended, and its size."""

    outcome: Outcome = word("outcome", default=Outcome.COMPLETED, help="how the job ended", column=True, cpp="")
    detail: str = word("detail", help="why it did not complete", column=True, cpp="")
    time_s: float = duration("time", help="simulated time of the job", column=True, cpp="")
    ranks: int = counter("ranks", column=True, cpp="")
    actions: int = counter("actions", help="actions of the trace: MPI calls, computation", column=True, cpp="")


@dataclass(kw_only=True)
class Counters:
    """Counters of a job."""

    messages: int = counter(lazy("messages"), help="messages sent", column=True)
    bytes: int = counter(lazy("bytes of the messages"), "B", help="bytes of the messages sent, without headers", column=True)
    packets: int = counter(lazy("packets"), help="packets of the library", column=True)
    frames: int = counter(lazy("frames on the wire"), help="frames and bursts of the job on the wire")
    delivered: int = counter(lazy("messages received"))
    delivered_bytes: int = counter(lazy("bytes of the messages received"), "B")
    retransmissions: int = counter(lazy("packets sent again"), trouble=True)
    duplicates: int = counter(lazy("duplicates received"), help="packets received a second time", trouble=True)
    lost: int = counter(
        lazy("frames lost"), help="frames lost to failures, to full buffers of switches and to repeated collisions", trouble=True)
    own_bytes: int = counter(lazy("bytes of the program's own messages"), "B", help="bytes of point-to-point messages, without collectives")


@dataclass(kw_only=True)
class Totals:
    """Counters of a whole simulation: all jobs and cross traffic."""

    contended: int = counter(
        lazy("frames that waited"), help="frames and bursts that found a link of their way taken (docs/networks.md)", trouble=True,
        cpp="uint64_t")
    events: int = counter("events", help="events simulated", cpp="uint64_t", effort=True)
    events_left_out: int = counter(
        "events left out", help="events of periods that only repeated and were not simulated", cpp="uint64_t", effort=True)


class StepRow(TypedDict):
    """A step of a job's start."""

    step: str
    manual: int
    windows: int
    daemons: int
    seconds: float
    note: str


class RankRow(TypedDict):
    """Results of one rank."""

    rank: int
    host: Annotated[str, word(lazy("host"), cpp="size_t")]
    time_s: Annotated[float, duration(lazy("time"), help="when it ended")]
    mpi_s: Annotated[float, duration(lazy("in MPI"), help="time in MPI calls", grows=True,
                                    largest=lazy("time in MPI, largest of the ranks"))]
    compute_s: Annotated[float, duration(lazy("computing"), help="time computing", grows=True,
                                        largest=lazy("time computing, largest of the ranks"))]
    cpu_s: Annotated[float, duration(lazy("on CPU"), help="processor time")]
    sent: Annotated[int, counter(lazy("sent"), help="messages sent", grows=True)]
    received: Annotated[int, counter(lazy("received"), help="messages received", grows=True)]
    bytes_sent: Annotated[int, counter(lazy("bytes sent"), "B", grows=True)]
    bytes_received: Annotated[int, counter(lazy("bytes received"), "B", grows=True)]


class WaitRow(TypedDict):
    """A rank that had not finished when its job ended, in the call at ``file:line``."""

    rank: Annotated[int, counter("rank", cpp="int32_t")]
    line: Annotated[int, counter("line", cpp="uint32_t")]
    file: Annotated[str, word("file")]
    action: Annotated[str, word("action")]
    on: Annotated[str, word("waits for")]


class TrafficRow(TypedDict):
    """Result of a flow of cross traffic: ``traffic`` is its text."""

    traffic: str
    frames: Annotated[int, counter("frames offered")]
    arrived: Annotated[int, counter("frames that arrived")]
    bytes: Annotated[int, counter("bytes that arrived", "B")]
    dropped: Annotated[int, counter("frames dropped at a full queue of the card")]
    lost: Annotated[int, counter("frames lost")]


class PointRow(TypedDict):
    """One point of a curve."""

    size_B: Annotated[int, counter("message size", "B", cpp="")]
    time_us: Annotated[float, number("one-way time", "us", cpp="")]
    bandwidth_MBps: Annotated[float, number("bandwidth, 10^6 B/s", "MB/s", cpp="")]
    repetitions: Annotated[int, counter("repetitions", cpp="")]


class MarkRow(TypedDict):
    """When a rank passed a mark of its trace."""

    rank: int
    label: str
    time_s: float
    time_ps: int


class CollectiveRow(TypedDict):
    """An algorithm of a collective that was used; the calls are summed over all members."""

    operation: str
    algorithm: str
    calls: int


class SectionRow(TypedDict):
    """The section of the program that was timed."""

    section: str
    begin_s: float
    end_s: float
    seconds: Annotated[float, duration(lazy("time of the section"))]


class StartsRow(TypedDict):
    """Several starts of a job; the steps and their totals are those of the first one."""

    attempts: int
    failures: int
    failure_rate: Annotated[float, number(lazy("share of starts that fail"), "probability")]
    windows: int
    daemons: int
    manual_steps_per_job: int
    seconds: Annotated[float, duration(lazy("time to start the job"))]
    steps: list[StepRow]
    hosts: int
    ranks: int


class StageRow(TypedDict):
    """One stage of a message's time at one process; the ``ps`` sum to the message's time."""

    stage: str
    process: str
    seconds: float
    ps: int


def metrics() -> dict[str, OutputField]:
    """The counters that are metrics, compared and exported: all but those of the effort."""
    return {name: o for cls in (Counters, Totals) for name, o in outputs(cls).items() if not o.effort}


def stored_fields(cls: type) -> tuple[str, ...]:
    """The fields that have a column in the store, in order."""
    return tuple(name for name, o in outputs(cls).items() if o.column)
