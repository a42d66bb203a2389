"""Levels of fidelity: the same model as a mechanism, as a curve sampled from it, and as the four parameters of LogGP.

``mechanism`` simulates processes, channels and the operating system. ``curve`` samples the mechanism once per pair kind (the kinds
of host of two ranks, and whether they share one) and keeps for every size the sender's work, the transit time, the receiver's work, and
how long a message occupies its channel and its hosts' ports; of the processes in between only contention remains. ``loggp``
fits L, o, g, G to that curve, separately below and above the eager limit of the model's protocol (LogGPS).

MPI's semantics are the same at every level: matching, order, rendezvous, progress inside calls, collectives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import UsageError
from retrompi.base.units import PS
from retrompi.sim.sampling import NotSampled, Sample, SamplePoint
from retrompi.spec.declare.fields import to_engine
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.hosts import kinds
from retrompi.spec.media import BLOCK, NO_LIMIT, SampledCurve
from retrompi.spec.platform import Placement
from retrompi.spec.question import FIDELITIES

if TYPE_CHECKING:
    from retrompi.spec.platform import Platform

__all__ = ["RUNGS", "LogGP", "Pair", "apply_curves", "asks_from", "classes_of", "fit", "host_kind", "lower_fidelity", "pairs_of"]

RUNGS = FIDELITIES

Row = dict[str, Any]


# -- pair kinds -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """A pair kind: the classes of ranks it joins, and the hosts (indices in the platform) and cores at which it is sampled."""

    classes: tuple[tuple[int, int], ...]
    hosts: Placement

    @property
    def same(self) -> bool:
        """Whether both ranks are on one host."""
        return self.hosts[0] == self.hosts[1]


def host_kind(platform: Platform, rank: tuple[int, int]) -> Any:
    """A key that is equal for ranks with equivalent hosts: the host without its name; `_relation` compares cores."""
    return replace(platform.hosts[rank[0]], name="", os="")


def _site(platform: Platform, host: int) -> int:
    """The site of a host on a wan, where ranks at one site and at different sites are different pair kinds; else 0."""
    return platform.link.shape[host] if platform.link.of_kind.sited else 0


def _relation(platform: Platform, a: tuple[int, int], b: tuple[int, int]) -> Any:
    """Whether two pinned ranks of one host share (a second-level cache, a bus); () if they are not pinned."""
    host = platform.hosts[a[0]]
    return tuple(a[1] // int(n) == b[1] // int(n) for n in (host.l2_shared_by, host.package_cores)) if min(a[1], b[1]) >= 0 else ()


def classes_of(placement: Placement, platform: Platform) -> list[int]:
    """A class number for every rank: equal for ranks on equivalent hosts and, if pinned, on cores with the same number."""
    known: dict[Any, int] = {}
    prototypes, kind_of = kinds(platform.hosts)
    values = [replace(h, name="", os="") for h in prototypes]
    of: dict[tuple[int, int, int], int] = {}  # (kind, core, site)
    out = []
    for host, core in _spots(placement):
        key = (kind_of[host], core, _site(platform, host))
        if key not in of:
            of[key] = known.setdefault((values[key[0]], core, key[2]), len(known))
        out.append(of[key])
    return out


def _spots(placement: Placement) -> list[tuple[int, int]]:
    """(host, core) of every rank; core -1 if the scheduler chooses."""
    return list(zip(placement, placement.cores or [-1] * len(placement), strict=True))


def pairs_of(classes: Sequence[int], placement: Placement, platform: Platform) -> list[Pair]:
    """Every pair kind of a placement once, at the hosts of the first ranks of that kind."""
    ranks: dict[tuple[int, int], int] = {}  # (host, core) -> how many ranks
    seen: dict[int, dict[tuple[int, int], None]] = {}  # class -> where
    for cls, spot in zip(classes, _spots(placement), strict=True):
        ranks[spot] = ranks.get(spot, 0) + 1
        seen.setdefault(cls, {})[spot] = None
    spots = {cls: list(where) for cls, where in seen.items()}
    found: dict[Any, tuple[Placement, list[tuple[int, int]]]] = {}

    def add(a: int, b: int, x: tuple[int, int], y: tuple[int, int]) -> None:
        same = x[0] == y[0]
        apart = _site(platform, x[0]) != _site(platform, y[0])
        key = (same, host_kind(platform, x), host_kind(platform, y), _relation(platform, x, y) if same else apart)
        pinned = (x[1], y[1]) if placement.cores else ()
        found.setdefault(key, (Placement((x[0], y[0]), pinned), []))[1].append((a, b))

    for a, mine in spots.items():
        crowded = next((x for x in mine if ranks[x] > 1), None)
        if crowded is not None:
            add(a, a, crowded, crowded)
        if len(mine) > 1:
            add(a, a, mine[0], mine[1])
        for b, theirs in spots.items():
            if b <= a:
                continue
            hosts = {x[0]: x for x in mine}
            together = next((y for y in theirs if y[0] in hosts), None)
            if together is not None:
                add(a, b, hosts[together[0]], together)
            apart = next(((x, y) for x in mine[:2] for y in theirs[:2] if x[0] != y[0]), None)
            if apart is not None:
                add(a, b, *apart)
    return [Pair(tuple(joined), where) for where, joined in found.values()]


# -- LogGP ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LogGP:
    """L, o, g in seconds and G in seconds per byte, for messages of ``low`` <= bytes < ``high``."""

    L: float
    o: float
    g: float
    G: float
    low: float = 0.0
    high: float = NO_LIMIT

    def time(self, size: int) -> float:
        """One-way time of a message of ``size`` bytes, seconds."""
        return self.L + 2 * self.o + self.G * size

    def points(self) -> Iterator[SamplePoint]:
        """Two points that define the straight line of these parameters."""
        low = int(self.low)
        for size in (low, low + (1 << 20)):
            gap, o = _ps(self.g + self.G * size), _ps(self.o)
            yield SamplePoint(size, o, _ps(self.L + self.G * size), o, gap, gap, 0)


TCP_IP = 40
"""Bytes of TCP and IP headers in a frame."""


def _ps(seconds: float) -> int:
    return round(seconds / PS)


def asks_from(protocol: Sequence[tuple[float, float, str]]) -> float:
    """The smallest message size (B) that is not sent eagerly; infinity if there is none."""
    return min((low for low, _, kind in protocol if kind != "eager"), default=float("inf"))


def _straight(sizes: Sequence[int], values: Sequence[float]) -> tuple[float, float]:
    """(a, b) >= 0 of the line a + b size that minimizes the sum of squared relative errors."""
    used = [(s, v) for s, v in zip(sizes, values, strict=True) if v > 0]
    if not used:
        return 0.0, 0.0
    # Minimise sum((a/v + b s/v - 1)^2): the normal equations of two columns, 1/v and s/v.
    aa = sum(1 / v**2 for _, v in used)
    ab = sum(s / v**2 for s, v in used)
    bb = sum(s * s / v**2 for s, v in used)
    ya, yb = sum(1 / v for _, v in used), sum(s / v for s, v in used)
    det = aa * bb - ab * ab
    if det > 1e-12 * aa * bb:
        a, b = (ya * bb - yb * ab) / det, (aa * yb - ab * ya) / det
        if a >= 0 and b >= 0:
            return a, b
        if b < 0:
            return ya / aa, 0.0
        return 0.0, yb / bb
    return ya / aa, 0.0


def fit(points: Sequence[SamplePoint], asks_from: float = float("inf")) -> list[LogGP]:
    """L, o, g, G of a curve by least squares in relative error over its sizes; two sets if some messages are not eager.

    G and L + 2o are fitted to the one-way times, o to the overheads of both ends, g to the gaps given G.
    """
    out = []
    for low, high in ((0.0, asks_from), (asks_from, float("inf"))):
        part = [p for p in points if low <= p.size < high]
        if not part:
            continue
        start, rate = _straight([p.size for p in part], [p.time for p in part])
        overheads = [x for p in part for x in (p.send, p.recv)]
        o = min(_constant(overheads), start / 2)
        gaps = [(p.size, p.gap) for p in part if p.gap > 0]
        weight = sum(1 / g**2 for _, g in gaps)
        gap = sum((g - rate * s) / g**2 for s, g in gaps) / weight if weight else 0.0
        gap = min(max(0.0, gap), start)
        out.append(LogGP((start - 2 * o) * PS, o * PS, gap * PS, rate * PS, low, min(high, NO_LIMIT)))
    return out


def _constant(values: Sequence[int]) -> float:
    """The constant that minimizes the sum of squared relative errors."""
    used = [v for v in values if v > 0]
    return sum(1 / v for v in used) / sum(1 / v**2 for v in used) if used else 0.0


def _lines(points: Sequence[SamplePoint], asks_from: float) -> list[SamplePoint]:
    """The points of a fitted curve: a straight line for each set of parameters."""
    out: list[SamplePoint] = []
    for part in fit(points, asks_from):
        begin, later = part.points()
        if out:  # the line before ends one byte below
            low, high = out[-2], out[-1]
            x = (begin.size - 1 - low.size) / (high.size - low.size)
            last = [round(u + x * (v - u)) for u, v in zip(_numbers(low), _numbers(high), strict=True)]
            out = [low, SamplePoint(*last)] if last[0] > low.size else [low]
        out += [begin, later]
    return out


def _numbers(p: SamplePoint) -> tuple[int, ...]:
    return (p.size, p.send, p.transit, p.recv, p.gap, p.port, p.both)


# -- the engine's rows -----------------------------------------------------------------------------------------------------


def _wire(platform: Platform, p: SamplePoint, answer: SamplePoint) -> int:
    """How long (ps) a message occupies a medium such as a hub, which carries one frame at a time; 0 on any other link.

    Limited to the time until the reply of a PingPong is sent, since the sampled times include the wire.
    """
    link = platform.link
    if not link.of_kind.shared:
        return 0
    frames = p.size / (link.mtu - TCP_IP) + 1
    return min(_ps((p.size + frames * link.frame_overhead) / link.bandwidth), p.transit + p.recv + answer.send)


_MOST = 2**62
"""The engine keeps sizes and times in 64 bits."""


def _countable(rows: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """A curve's rows by rising size up to the first that cannot be counted: from half of the way there the engine extrapolates, and a
    message long enough to leave the range ends the run. Raises NotSampled if no row can be counted."""
    out: list[tuple[int, ...]] = []
    for row in rows:
        if max(row) > _MOST:
            if not out:
                told = f"a message takes {max(row[1:]) * PS:.4g} s, which cannot be counted: 53 days is the most"
                raise NotSampled(Outcome.OVERFLOW, told)
            part = (_MOST - max(out[-1])) / (max(row) - max(out[-1])) / 2
            between = tuple(u + int((v - u) * part) for u, v in zip(out[-1], row, strict=True))
            return [*out, between] if between[0] > out[-1][0] else out
        out.append(row)
    return out


PROTOCOLS = ("protocol_same", "protocol_remote")


def lower_fidelity(
    compiled: Row, fidelity: str, platform: Platform, placement: Placement, sample_of: Callable[[Pair], Sample]
) -> tuple[Row, list[str]]:
    """(the compiled configuration with the mechanism replaced by the curves of ``sample_of``, notes on what could not be sampled).

    Hops, proxies, wait policies and the costs of calls are removed (the overheads include them); protocols, the placement of ranks,
    processors and rates of computation are kept. Raises UsageError if a process to be killed is not a rank: no others remain.
    """
    for name, _ in compiled["kills"]:
        if not name.startswith("rank "):
            raise UsageError(
                f"at fidelity {fidelity} there is no '{name}' to end, only ranks; leave out --fidelity", code="unknown-process"
            )
    return apply_curves(compiled, fidelity, platform, placement, sample_of)


def apply_curves(
    compiled: Row, fidelity: str, platform: Platform, placement: Placement, sample_of: Callable[[Pair], Sample]
) -> tuple[Row, list[str]]:
    """`lower_fidelity` without killed processes; a model defined by curves also compiles with it."""
    classes = classes_of(placement, platform)
    count = max(classes, default=0) + 1
    of = {same: [[-1] * count for _ in range(count)] for same in (True, False)}
    tables: dict[bool, list[Any]] = {True: [], False: []}
    notes: list[str] = []
    connect = {True: 0, False: 0}
    for pair in pairs_of(classes, placement, platform):
        sample = sample_of(pair)
        connect[pair.same] = max(connect[pair.same], sample.connect)
        asks = asks_from(compiled["protocol_same" if pair.same else "protocol_remote"])
        for points, joined in ((sample.back, [(b, a) for a, b in pair.classes]), (sample.there, pair.classes)):
            table = points if fidelity == "curve" else _lines(points, asks)
            for x, y in joined:
                of[pair.same][x][y] = len(tables[pair.same])
            answers = sample.there if points is sample.back else sample.back
            busy = [0] * len(table)
            if fidelity == "curve" and not pair.same:
                busy = [_wire(platform, p, a) for p, a in zip(points, answers, strict=True)]
            numbers = _countable([(*_numbers(p), wire) for p, wire in zip(table, busy, strict=True)])
            tables[pair.same].append((numbers, sample.limit, sample.reason))
        notes += [n for n in sample.notes if n not in notes]

    def hops(same: bool) -> list[Row]:
        if not tables[same]:
            return []
        curve = {"classes": classes, "of": of[same], "tables": tables[same], "ports": "host" if fidelity == "curve" else "rank"}
        return [SampledCurve(("rank", "rank"), packet=NO_LIMIT, header=0, curve=curve, connect=connect[same] * PS).to_engine()]

    lower = {
        "hosts": {**compiled["hosts"], "kinds": [{**h, "dispatch": 0.0} for h in compiled["hosts"]["kinds"]]},
        "same": hops(True),
        "remote": hops(False),
        "send_cpu": 0.0,
        "recv_cpu": 0.0,
        "recv_wait": to_engine(BLOCK),
        "send_wait": to_engine(BLOCK),
        "idle": {},
        "forward_cost": {},
        "same_bulk": [],
        "call_lock": 0.0,
        "lock_system": 0.0,
        "direct_call": 0.0,
        "staging_same": (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        "staging_remote": (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        "convert_byte": 0.0,
        "convert_buffer": 0.0,
        "convert_call": 0.0,
        # Direct copies become rendezvous: their cost is in the curve.
        **{k: [(low, high, "eager" if kind == "eager" else "rendezvous") for low, high, kind in compiled[k]] for k in PROTOCOLS},
    }
    return compiled | lower, notes
