"""The timeline of a simulated run: states of every process, MPI calls of the ranks, messages with the processes on their path.

    result = simulate.run(Question("wmpi", "nt-pair", Replay(trace)), Observe(timeline=Request()))
    result.timeline.processes[0].totals["copy"]         # picoseconds
    write(result.timeline, "run.html")                  # .html, .pftrace, .otf2, .paje, .json, .csv

Times are whole picoseconds since the start of the run. Beyond a limit the engine samples (`Timeline.notes` says how); the totals of each
process's states and the traffic between ranks are always those of the whole run.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import UsageError
from retrompi.base.units import PS, format_time

if TYPE_CHECKING:
    from retrompi._engine import Trace

__all__ = ["LIMIT", "PS", "STORED", "Messages", "Process", "Timeline", "TimelineCalls", "TimelineRequest", "Traffic", "call_name"]

LIMIT = 200_000
"""Maximum number of states, of calls and of messages recorded."""
STORED = 4_000
"""The same for a timeline in the store."""
_FIRST_RESOLUTION = 1024


@dataclass(frozen=True)
class TimelineRequest:
    """A request for a timeline: the maximum number of states, of calls and of messages, and the interval in simulated seconds.

    Raises UsageError for an empty one.
    """

    limit: int = LIMIT
    from_s: float = 0.0
    until_s: float = float("inf")

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise UsageError(f"a timeline of {self.limit} records shows nothing; the limit must be at least 1", code="out-of-range")
        if not 0 <= self.from_s < self.until_s:
            raise UsageError(f"a timeline from {self.from_s:g} s to {self.until_s:g} s shows nothing", code="out-of-range")


@dataclass
class Process:
    """A rank, proxy or daemon. State i lasts from ``begin[i]`` to the next one's begin, the last one to ``end``; all in picoseconds.

    ``merged[i]``: one of a stretch of states shorter than the resolution, with its time in the stretch, in no order. ``totals``: state ->
    picoseconds in the whole run.
    """

    name: str
    kind: str
    host: str
    end: int
    begin: Sequence[int]
    state: Sequence[int]
    merged: Sequence[int]
    totals: dict[str, int]

    def states(self) -> Iterator[tuple[int, int, int, int]]:
        """(begin, end, state, merged) in chronological order."""
        n = len(self.begin)
        for i in range(n):
            yield self.begin[i], self.begin[i + 1] if i + 1 < n else self.end, self.state[i], self.merged[i]


@dataclass
class TimelineCalls:
    """Calls of the ranks, by rank and then by time; ``open``: not returned when the run ended."""

    rank: Sequence[int]
    line: Sequence[int]
    op: Sequence[int]
    comm: Sequence[int]
    peer: Sequence[int]
    tag: Sequence[int]
    bytes: Sequence[int]
    begin: Sequence[int]
    end: Sequence[int]
    open: Sequence[int]

    def __len__(self) -> int:
        return len(self.rank)


@dataclass
class Messages:
    """Messages in the order in which they were sent; ``received`` is -1 if the run ended before. ``line``: of the call that sent it,
    ``receive_line``: of the one that posted its receive, 0 if none has got it; empty in a timeline stored before this column.

    ``context``: twice the index of the communicator in `Timeline.comms`, plus one within a collective. Message i has ``hops[i]`` entries
    in ``hop_process`` (index in `Timeline.processes`), ``hop_in`` (first packet arrived) and ``hop_out`` (last packet left, -1: not yet).
    """

    source: Sequence[int]
    destination: Sequence[int]
    tag: Sequence[int]
    context: Sequence[int]
    bytes: Sequence[int]
    line: Sequence[int]
    sent: Sequence[int]
    received: Sequence[int]
    rendezvous: Sequence[int]
    hops: Sequence[int]
    hop_process: Sequence[int]
    hop_in: Sequence[int]
    hop_out: Sequence[int]
    receive_line: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.source)

    def paths(self) -> Iterator[list[tuple[int, int, int]]]:
        """The hops of each message in turn: (process, in, out)."""
        at = 0
        for n in self.hops:
            yield [(self.hop_process[k], self.hop_in[k], self.hop_out[k]) for k in range(at, at + n)]
            at += n


@dataclass(frozen=True)
class Traffic:
    """All traffic of a run from one rank to another: messages of the program, of collectives, and one-sided."""

    source: int
    destination: int
    messages: int
    bytes: int
    collective_messages: int
    collective_bytes: int
    transfers: int
    transferred: int


@dataclass
class Timeline:
    """``files``: the trace file of each rank; ``comms``: (identity, ranks, ranks of the other side) of communicators."""

    states: list[str]
    ops: list[str]
    processes: list[Process]
    calls: TimelineCalls
    messages: Messages
    traffic: list[Traffic]
    files: list[str]
    comms: list[tuple[int, list[int], list[int]]]
    end: int
    resolution: int
    every_call: int
    every_message: int
    states_seen: int
    calls_seen: int
    messages_seen: int
    from_s: float = 0.0
    until_s: float | None = None
    about: dict[str, Any] = field(default_factory=dict)
    """The run: model, platform, mode, trace, outcome, as far as known."""
    marks: list[tuple[str, int]] = field(default_factory=list)
    """Label and time (ps) of each mark that rank 0 passed."""
    program: Trace | None = None
    """The trace that was replayed, for formats that can hold it; not stored."""

    @property
    def ranks(self) -> int:
        return len(self.files)

    @property
    def sampled(self) -> bool:
        """Whether records were omitted or merged."""
        return self.resolution > 0 or self.every_call > 1 or self.every_message > 1

    def process_of(self) -> list[int]:
        """The index in ``processes`` of each rank."""
        places = {p.name: i for i, p in enumerate(self.processes)}
        return [places[f"rank {r}"] for r in range(self.ranks)]

    def notes(self) -> list[str]:
        """How the run was sampled, as sentences; empty if it is complete."""
        out = []
        if self.from_s > 0 or self.until_s is not None:
            until = "the end" if self.until_s is None else format_time(self.until_s)
            out.append(f"Only {format_time(self.from_s)} to {until} of the run; the sums and the matrix count all of it.")
        if self.resolution:
            out.append(
                f"Of consecutive states shorter than {format_time(self.resolution * PS)} the times are kept, not the order: "
                f"{sum(len(p.begin) for p in self.processes)} of {self.states_seen} states."
            )
        if self.every_call > 1:
            out.append(f"Every {_nth(self.every_call)} call of each rank: {len(self.calls)} of {self.calls_seen}.")
        if self.every_message > 1:
            out.append(f"Every {_nth(self.every_message)} message: {len(self.messages)} of {self.messages_seen}.")
        return out

    @staticmethod
    def from_engine(told: Mapping[str, Any], files: Sequence[str], end: int, wanted: TimelineRequest, about: Mapping[str, Any]) -> Timeline:
        """From the record ``told`` returned by the engine; ``end`` in ps."""
        states = list(told["states"])
        processes = []
        for p in told["processes"]:
            totals = {s: t for s, t in zip(states, p["totals"], strict=True) if t}
            columns = (_column("q", p["begin"]), _column("b", p["state"]), _column("b", p["merged"]))
            processes.append(Process(p["name"], p["kind"], p["host"], p["end"], *columns, totals=totals))
        calls = TimelineCalls(**{k: _column(_CALL_TYPES.get(k, "i"), v) for k, v in told["calls"].items()})
        messages = Messages(**{k: _column(_MESSAGE_TYPES.get(k, "i"), v) for k, v in told["messages"].items()})
        return Timeline(
            states, list(told["ops"]), processes, calls, messages, [Traffic(*t) for t in told["traffic"]], list(files),
            [(i, list(g), list(r)) for i, g, r in told["comms"]], end,
            told["resolution"], told["every_call"], told["every_message"],
            told["states_seen"], told["calls_seen"], told["messages_seen"],
            from_s=wanted.from_s, until_s=None if wanted.until_s == float("inf") else wanted.until_s, about=dict(about),
        )

    def row(self) -> dict[str, Any]:
        """As plain JSON values; `from_row` reads them back."""
        out = {k: v for k, v in vars(self).items() if k not in ("processes", "calls", "messages", "traffic", "program")}
        out["comms"], out["marks"] = [list(c) for c in self.comms], [list(m) for m in self.marks]
        out["processes"] = [{k: list(v) if isinstance(v, array) else v for k, v in vars(p).items()} for p in self.processes]
        out["calls"] = {k: list(v) for k, v in vars(self.calls).items()}
        out["messages"] = {k: list(v) for k, v in vars(self.messages).items()}
        out["traffic"] = [list(asdict(t).values()) for t in self.traffic]
        return out

    @staticmethod
    def from_row(row: Mapping[str, Any]) -> Timeline:
        """The inverse of `row`."""
        plain = {k: v for k, v in row.items() if k not in ("processes", "calls", "messages", "traffic", "comms", "marks")}
        return Timeline(
            **plain,
            processes=[Process(**p) for p in row["processes"]],
            calls=TimelineCalls(**row["calls"]),
            messages=Messages(**row["messages"]),
            traffic=[Traffic(*t) for t in row["traffic"]],
            comms=[(c[0], c[1], c[2]) for c in row["comms"]],
            marks=[(label, at) for label, at in row.get("marks", ())],
        )

    def thin_to(self, states: int, calls: int | None = None, messages: int | None = None) -> Timeline:
        """A copy with about that many states, calls and messages at most (each process keeps every state once), as the engine samples."""
        calls, messages = states if calls is None else calls, states if messages is None else messages
        out = Timeline(**vars(self))
        end = max((p.end for p in out.processes), default=0)
        while sum(len(p.begin) for p in out.processes) > states and out.resolution <= end:
            out.resolution = max(_FIRST_RESOLUTION, 2 * out.resolution)
            out.processes = [_coarser(p, out.resolution) for p in out.processes]
        step = _step(len(self.calls), calls)
        if step > 1:
            keep, nth, last = [], 0, -1
            for i, rank in enumerate(self.calls.rank):
                nth = nth + 1 if rank == last else 0
                last = rank
                if nth % step == 0:
                    keep.append(i)
            out.calls = TimelineCalls(**{k: [v[i] for i in keep] for k, v in vars(self.calls).items()})
            out.every_call *= step
        step = _step(len(self.messages), messages)
        if step > 1:
            columns = {k: list(v[::step]) for k, v in vars(self.messages).items() if not k.startswith("hop_")}
            paths = [hop for path in list(self.messages.paths())[::step] for hop in path]
            hops = {k: [h[i] for h in paths] for i, k in enumerate(("hop_process", "hop_in", "hop_out"))}
            out.messages = Messages(**columns, **hops)
            out.every_message *= step
        return out


_CALL_TYPES = {"op": "b", "open": "b", "bytes": "q", "begin": "q", "end": "q"}
_MESSAGE_TYPES = {"rendezvous": "b", "bytes": "q", "sent": "q", "received": "q", "hop_in": "q", "hop_out": "q"}


def call_name(op: str, peer: int, tag: int, size: int) -> str:
    """A call as text: ``recv from 1 tag 5, 1024 B``."""
    if op in ("compute", "sleep", "kernel", "init", "finalize") or peer == -1:
        return op
    lower = op.lower()
    if "send" in lower or lower in ("put", "accumulate"):
        return f"{op} to {peer} tag {tag}, {size} B"
    if lower in ("recv", "irecv", "recvinit", "probe", "iprobe"):
        return f"{op} from {'any source' if peer < 0 else peer} tag {'any' if tag < 0 else tag}, {size} B"
    return f"{op}, {size} B" if size > 0 and not lower.startswith(("wait", "test")) else op


def _nth(n: int) -> str:
    return f"{n}{'th' if 10 <= n % 100 <= 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th')}"


def _step(have: int, most: int) -> int:
    step = 1
    while -(-have // step) > most:
        step *= 2
    return step


def _column(kind: str, data: bytes) -> array[int]:
    out = array(kind)
    out.frombytes(data)
    return out


def _coarser(p: Process, resolution: int) -> Process:
    """The engine's rule: of consecutive states shorter than the resolution each is kept once, with its time in the stretch."""
    begin: list[int] = []
    state: list[int] = []
    merged: list[int] = []
    small: dict[int, int] = {}
    small_begin = at = anew = 0

    def flush() -> None:
        place = small_begin
        several = int(anew or len(small) > 1)
        for s in sorted(small):
            if not (begin and state[-1] == s and merged[-1] == several):
                begin.append(place)
                state.append(s)
                merged.append(several)
            place += small[s]
        small.clear()

    for start, stop, s, m in p.states():
        if begin and not small and state[-1] == s and merged[-1] == m:
            pass
        elif stop - start >= resolution:
            flush()
            begin.append(start)
            state.append(s)
            merged.append(m)
        else:
            if not small:
                small_begin, anew = start, 0
            small[s] = small.get(s, 0) + stop - start
            anew |= m
        at = stop
        if small and at - small_begin >= resolution:
            flush()
    flush()
    return Process(p.name, p.kind, p.host, p.end, begin, state, merged, p.totals)
