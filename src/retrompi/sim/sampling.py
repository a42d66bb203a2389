"""Measurements of single messages between two ranks at ``mechanism`` fidelity, from which a curve is made.

Four small traces per pair of ranks, each run once at ``mechanism`` fidelity:

- *PingPong* with a mark around every call: the one-way time T, and the time inside a send whose receive is posted;
- *late receives* of messages that arrived long before (or wait for space at the receiver): the receiver's own work;
- a *stream* in one direction, with every receive posted: the time per message of a channel and, from as many pairs of ranks as the
  processors can run, of a host's port;
- the same *in both directions* at once: the time per message of a port that serves both directions.

Times are integers in picoseconds on the hosts themselves, sizes bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import RetrompiError
from retrompi.spec.declare.outcome import Outcome
from retrompi.traces.generate import DEFAULT_SIZES

if TYPE_CHECKING:
    from retrompi._engine import Trace
    from retrompi.sim.result import Result

__all__ = ["NotSampled", "Sample", "SamplePoint", "measure", "sizes_for"]

KIB = 1024
STREAM_SIZES = (0, KIB, 8 * KIB, 64 * KIB, 256 * KIB)
"""Sizes (B) of streams and late receives; interpolated linearly, extrapolated at the last rate."""
LATE_LIMIT = 2 * 1024 * KIB
SHORT, LONG = 4, 12
"""Numbers of messages of the two streams; their difference is in steady state."""
MOST_PAIRS = 2
LATE_S = 0.05
"""Delay of a late receive in seconds, in addition to three round trips."""


@dataclass(frozen=True, slots=True)
class SamplePoint:
    """A message of ``size`` bytes in one direction; times in picoseconds. `retrompi.sim.fidelity` explains their use at ``curve``."""

    size: int
    send: int
    transit: int
    recv: int
    gap: int
    port: int
    both: int

    @property
    def time(self) -> int:
        """One-way time: half the round trip of a PingPong between two equal hosts."""
        return self.send + self.transit + self.recv


@dataclass(frozen=True, slots=True)
class Sample:
    """Two ranks: the points in both directions, the extra cost of a first message (ps), and notes on failed measurements."""

    there: tuple[SamplePoint, ...]
    back: tuple[SamplePoint, ...]
    connect: int
    limit: int | None = None
    """The smallest size at which the mechanism did not complete, and how it ended; None: all completed."""
    reason: str = ""
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """As JSON values, for the store."""
        return asdict(self)

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Sample:
        """The inverse of `as_dict`."""
        there, back = (tuple(SamplePoint(**p) for p in facts[k]) for k in ("there", "back"))
        return cls(there, back, facts["connect"], facts["limit"], facts["reason"], tuple(facts["notes"]))


class NotSampled(RetrompiError):
    """Not even the smallest PingPong completed; ``outcome`` and ``detail`` say how it ended."""

    code = "not-sampled"

    def __init__(self, outcome: Outcome, detail: str) -> None:
        super().__init__(f"no curve can be sampled: {outcome}: {detail}")
        self.outcome, self.detail = outcome, detail

    def __reduce__(self) -> tuple[type[NotSampled], tuple[str, str]]:  # pickled between workers
        return type(self), (self.outcome, self.detail)


def sizes_for(hops: Iterable[dict[str, Any]], protocol: Sequence[tuple[float, float, str]]) -> tuple[int, ...]:
    """The sizes (B) at which a curve is sampled: those of the papers, and both sides of every bound in the channel specifications.

    Bounds, where a curve may have a step, are the largest packet of a hop and the limits of the protocol's ranges.
    """
    top = DEFAULT_SIZES[-1]
    bounds = {int(h["packet"]) + 1 for h in hops} | {int(low) for low, _, _ in protocol}
    return tuple(sorted({*DEFAULT_SIZES, *(s for b in bounds if 1 < b <= top for s in (b - 1, b))}))


def _repetitions(size: int) -> int:
    return 12 if size <= 64 * KIB else 4


def _trace(name: str, ranks: Sequence[list[str]]) -> Trace:
    from retrompi._engine import Trace

    lines = (["init", *said, "finalize"] for said in ranks)
    texts = ("\n".join(x if x.startswith("#") else f"{r} {x}" for x in said) + "\n" for r, said in enumerate(lines))
    return Trace.parse([(text.encode(), f"sample of {name}, rank {r}", r) for r, text in enumerate(texts)])


def _marks(result: Result, rank: int) -> list[tuple[str, int]]:
    return [(str(m["label"]), int(m["time_ps"])) for m in result.marks if m["rank"] == rank]


# -- PingPong ----------------------------------------------------------------------------------------------------------------


def _pingpong_trace(sizes: Sequence[int]) -> Trace:
    ping = ["# mark first", "send 1 0 0 6", "recv 1 0 0 6", "# mark second", *["send 1 0 0 6", "recv 1 0 0 6"] * 3]
    pong = ["recv 0 0 0 6", "send 0 0 0 6"] * 4
    for s in sizes:
        n = _repetitions(s)
        ping += [f"# mark {s}", *[f"send 1 0 {s} 6", "# mark sent", f"recv 1 0 {s} 6", "# mark back"] * n]
        pong += [f"# mark {s}", *[f"recv 0 0 {s} 6", "# mark got", f"send 0 0 {s} 6", "# mark sent"] * n]
    return _trace("a PingPong", [[*ping, "# mark end"], pong])


def _pingpong(result: Result) -> tuple[dict[int, tuple[int, int, int]], int]:
    """Size -> (round trip, time in the first rank's send, in the second's), means; and the first round trip."""
    round_trips: dict[int, list[int]] = {}
    sends: tuple[dict[int, list[int]], dict[int, list[int]]] = ({}, {})
    first = 0
    for rank in (0, 1):
        size, begun = -1, 0
        for (label, t), (after, u) in pairwise(_marks(result, rank)):
            if label == "first" and after == "second":
                first = u - t
            if label.isdigit():
                size, begun = int(label), t
            if after == "sent" and size >= 0:
                sends[rank].setdefault(size, []).append(u - t)
            if rank == 0 and after == "back":
                round_trips.setdefault(size, []).append(u - begun)
                begun = u
    whole = [s for s, r in round_trips.items() if len(r) == _repetitions(s)]
    return {s: (_mean(round_trips[s]), _mean(sends[0][s]), _mean(sends[1][s])) for s in whole}, first


def _mean(values: Sequence[int]) -> int:
    return round(sum(values) / len(values))


# -- late receives -----------------------------------------------------------------------------------------------------------


def _late_trace(sizes: Sequence[int], late: Callable[[int], float]) -> Trace:
    ranks: list[list[str]] = [[], []]
    for me in (1, 0):  # who receives
        you = 1 - me
        for s in sizes:
            # The receiver signals before it sleeps, so that the message arrives during its sleep.
            ranks[you] += [f"recv {me} 1 0 6", f"send {me} 0 {s} 6", f"recv {me} 1 0 6"]
            asleep = [f"send {you} 1 0 6", f"sleep {late(s)!r}"]
            ranks[me] += [*asleep, f"# mark {s}", f"recv {you} 0 {s} 6", "# mark got", f"send {you} 1 0 6"]
    return _trace("late receives", ranks)


def _late(result: Result, rank: int) -> dict[int, int]:
    return {int(a): u - t for (a, t), (b, u) in pairwise(_marks(result, rank)) if a.isdigit() and b == "got"}


# -- streams -----------------------------------------------------------------------------------------------------------------


def _stream_trace(sizes: Sequence[int], pairs: int, both: bool) -> Trace:
    ranks: list[list[str]] = [[] for _ in range(2 * pairs)]
    for s in sizes:
        for n in (SHORT, LONG):
            for me, lines in enumerate(ranks):
                other = me + pairs if me < pairs else me - pairs
                sends, receives = both or me < pairs, both or me >= pairs
                # The barriers ensure that receives are posted before any send, and that a stream is timed until it is received.
                lines += [f"irecv {other} 0 {s} 6"] * (n if receives else 0)
                lines += ["barrier", f"# mark {s} {n}"]
                lines += [f"isend {other} 0 {s} 6"] * (n if sends else 0)
                lines += [f"waitall {n * (sends + receives)}", "barrier", "# mark end"]
    return _trace("streams", ranks)


def _stream(result: Result) -> dict[int, int]:
    """Size -> time (ps) per further message of a stream, the streams of all pairs running concurrently."""
    took: dict[tuple[int, int], int] = {}
    for (label, t), (after, u) in pairwise(_marks(result, 0)):
        if after == "end" and label != "end":
            size, n = label.split()
            took[int(size), int(n)] = u - t
    return {s: max(0, round((took[s, LONG] - took[s, SHORT]) / (LONG - SHORT))) for s, n in took if n == LONG}


# -- together ----------------------------------------------------------------------------------------------------------------


def _around(bound: float) -> tuple[int, ...]:
    """Both sides of the eager limit, and twice that size for the rate above it."""
    return () if bound == float("inf") else (int(bound) - 1, int(bound), 2 * int(bound))


def _line(known: dict[int, int], size: int) -> int:
    """Piecewise linear interpolation of ``known``, extrapolated at the last rate; 0 if it is empty."""
    if not known:
        return 0
    sizes = sorted(known)
    if len(sizes) == 1 or size <= sizes[0]:
        return known[sizes[0]]
    above = next((i for i, s in enumerate(sizes) if s >= size), len(sizes) - 1)
    a, b = sizes[above - 1], sizes[above]
    return max(0, round(known[a] + (known[b] - known[a]) * (size - a) / (b - a)))


def _fits(total: int, sends: tuple[int, int], receives: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """The four overheads of a round trip, reduced to fit into it: those of the receivers first, which may overlap the senders'."""

    def cut(a: int, b: int, most: int) -> tuple[int, int]:
        return (a, b) if a + b <= most else (a * most // (a + b), b * most // (a + b))

    sends = cut(*sends, total)
    return sends, cut(*receives, total - sum(sends))


Run = Callable[["Trace", Sequence[int]], "Result"]
"""Runs a trace at ``mechanism`` fidelity: (trace, which of the two hosts each rank is on)."""


def measure(run: Run, sizes: Sequence[int], *, pairs: int, eager_below: float, connects: bool, alike: bool) -> Sample:
    """Samples two ranks. ``run(trace, sides)`` simulates with rank r on the side ``sides[r]`` (0 or 1).

    ``pairs`` ranks a side stream at once; messages of ``eager_below`` bytes or more wait for their receiver and are not sampled
    with late receives; ``connects``: the first message costs more; ``alike``: both sides are the same kind of host, so that both
    directions share one curve. Raises `NotSampled` if not even the smallest PingPong completes.
    """
    notes: list[str] = []
    result = run(_pingpong_trace(sizes), (0, 1))
    pings, first = _pingpong(result)
    if not pings:
        raise NotSampled(result.outcome, result.detail)
    limit = next((s for s in sizes if s not in pings), None)
    reason = "" if limit is None else f"{result.outcome}: {result.detail}"
    grid = sorted(s for s in {*STREAM_SIZES, *_around(eager_below)} if s <= max(pings))

    def late(size: int) -> float:
        return round(LATE_S + 3e-12 * pings[size][0], 6)

    def try_run(trace: Trace, sides: Sequence[int], what: str) -> Result | None:
        result = run(trace, sides)
        if result.outcome == Outcome.COMPLETED:
            return result
        # Only the cause: the rest refers to messages of the sampling, not of the user's run.
        notes.append(f"{what} not sampled: {result.outcome}: {result.detail.partition(': ')[0]}")
        return None

    eager = [s for s in (*grid, LATE_LIMIT) if s < eager_below and s in pings]
    got = try_run(_late_trace(eager, late), (0, 1), "late receives") if eager else None
    receives = (_late(got, 0), _late(got, 1)) if got else ({}, {})
    single = try_run(_stream_trace(grid, 1, False), (0, 1), "a stream")
    gaps = _stream(single) if single else {}
    many = try_run(_stream_trace(grid, pairs, False), (0,) * pairs + (1,) * pairs, "streams of several pairs") if pairs > 1 else None
    ports = {s: t // pairs for s, t in _stream(many).items()} if many else gaps
    crossed = try_run(_stream_trace(grid, pairs, True), (0,) * pairs + (1,) * pairs, "streams both ways")
    boths = {s: t // (2 * pairs) for s, t in _stream(crossed).items()} if crossed else {}

    there, back = [], []
    for s, (total, *sent) in sorted(pings.items()):
        sends, recvs = _fits(total, (sent[0], sent[1]), (_line(receives[0], s), _line(receives[1], s)))
        if alike:
            sends, recvs = (sum(sends) // 2,) * 2, (sum(recvs) // 2,) * 2
        rest = total - sum(sends) - sum(recvs)
        # A stream cannot be slower than successive round trips; a longer time is a stall.
        gap = min(_line(gaps, s), total // 2)
        port = min(_line(ports, s), gap)
        # The port must be free again when the reply of a PingPong is sent.
        both = min(_line(boths, s), port, rest // 2 + recvs[1] + sends[1], rest // 2 + recvs[0] + sends[0])
        there.append(SamplePoint(s, sends[0], rest // 2, recvs[1], gap, port, both))
        back.append(SamplePoint(s, sends[1], rest - rest // 2, recvs[0], gap, port, both))
    connect = max(0, first - pings[min(pings)][0]) if connects else 0
    return Sample(tuple(there), tuple(there if alike else back), connect, limit, reason, tuple(notes))
