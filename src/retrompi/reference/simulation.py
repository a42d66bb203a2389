"""One simulation by the specification: hosts, processes and channels put together, run, and summed up.

Two ranks of one host exchange packets over the hops of ``same``, two of different hosts over those of ``remote``; the data of a
rendezvous within a host go over ``same_bulk`` where there is such a path. A hop joins processes by their roles: the ranks themselves, or
a proxy or daemon on the host of the sender (``NAME@src``) or of the receiver (``NAME@dst``). A hop that is the same on two paths is one
channel.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from retrompi.reference.channel import Channel, Forwarder, Process, SimulatedJob
from retrompi.reference.collectives import Choices, Communicator, is_collective
from retrompi.reference.curve import CurveTable, Port, SampledCurve
from retrompi.reference.datagram import Datagram
from retrompi.reference.dma import Dma
from retrompi.reference.fluid import Fluid
from retrompi.reference.host import Host
from retrompi.reference.loop import Abort, EventLoop
from retrompi.reference.mpi import COVERED, Rank, TracedCall
from retrompi.reference.network import Cards, CollidingHub, Hub, Nothing, PausingSwitch, Queues, Wire
from retrompi.reference.one_sided import is_one_sided
from retrompi.reference.shared_memory import Pool, Ring, SharedChannel
from retrompi.reference.stream import STYLES, Stream
from retrompi.reference.traffic import CrossTraffic, TrafficSource
from retrompi.reference.values import (
    PS,
    NotCovered,
    Values,
    hop_values,
    host_values,
    link_values,
    one_sided_values,
    picoseconds,
    policy_values,
)

__all__ = ["BESIDE", "calls_of", "refuse", "simulate"]

BESIDE = {"jobs": "further jobs"}
"""What may happen beside a program that has no rules here."""


class Random:
    """SplitMix64 (Steele, Lea, Flood 2014)."""

    MASK = (1 << 64) - 1

    def __init__(self, seed: int) -> None:
        self.state = seed & self.MASK

    def next(self) -> int:
        """64 random bits."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & self.MASK
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & self.MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & self.MASK
        return z ^ z >> 31

    def uniform(self) -> float:
        """From 0 to 1, without 1."""
        return (self.next() >> 11) * 2.0**-53


def calls_of(trace: Any) -> list[list[TracedCall]]:
    """The calls of each rank of a parsed trace. Raises NotCovered for one that the specification does not have."""
    ranks = []
    for rank in range(trace.ranks):
        calls = [TracedCall(*row) for row in trace.rank_actions(rank, extension=True)]
        for call in calls:
            if (
                call.name not in COVERED
                and not is_collective(call.name)
                and not is_one_sided(call.name)
                and not call.name.startswith("mark ")
            ):
                raise NotCovered(f"{trace.files[rank]}:{call.line}: the call {call.name}")
            if call.name == "kernel":
                call.more["kernel"] = trace.labels[call.tag]
        ranks.append(calls)
    return ranks


def _communicators(trace: Any, calls: list[list[TracedCall]]) -> dict[int, Communicator]:
    """Every communicator that the calls make, by its number, and MPI_COMM_WORLD, which is 0."""
    made = {call.more["new"] for rank in calls for call in rank if "new" in call.more} - {-1}
    found = {0: Communicator(0, range(trace.ranks))}
    for number in made:
        c = trace.communicator(number)
        found[number] = Communicator(number, c["group"], c["remote"], c["sources"], c["destinations"])
    return found


def _staging(row: Any) -> Values:
    """Copies of a whole message in the library's own memory, at the sender before its first packet and at the receiver after its last
    one."""
    pack, unpack, byte, more, until, ask = row

    def pack_cost(size: int) -> float:
        return float(pack + (more if size <= int(until) else 0))

    def unpack_cost(size: int) -> float:
        return float(unpack + (more if size <= int(until) else 0))

    return SimpleNamespace(
        byte=byte * PS, ask=int(ask), packed=pack_cost, unpacked=unpack_cost,
        packs=lambda size: pack_cost(size) > 0 or byte > 0, unpacks=lambda size: unpack_cost(size) > 0 or byte > 0,
    )


def _rank_values(rows: Mapping[str, Any]) -> Values:
    """What a runtime does in its calls, times in picoseconds on the reference host."""

    def protocol(key: str) -> list[tuple[int, int, str]]:
        return [(int(low), int(high) if high < 9e18 else 2**63 - 1, kind) for low, high, kind in rows[key]]

    return SimpleNamespace(
        same=protocol("protocol_same"), remote=protocol("protocol_remote"),
        staging_same=_staging(rows["staging_same"]), staging_remote=_staging(rows["staging_remote"]),
        send_cpu=picoseconds(rows["send_cpu"]), recv_cpu=picoseconds(rows["recv_cpu"]),
        test=(picoseconds(rows["test_cpu"]), picoseconds(rows["test_system"])),
        lock=(picoseconds(rows["call_lock"]), picoseconds(rows["lock_system"])),
        convert_byte=rows["convert_byte"] * PS, convert_buffer=int(rows["convert_buffer"] + 0.5),
        convert_call=picoseconds(rows["convert_call"]), direct_call=picoseconds(rows["direct_call"]),
        recv_wait=policy_values(rows["recv_wait"]), send_wait=policy_values(rows["send_wait"]),
        kernels={(name, length): seconds for name, length, seconds in reversed(rows.get("kernels", []))},
        one_sided_same=one_sided_values(rows["one_sided_same"]), one_sided_remote=one_sided_values(rows["one_sided_remote"]),
        unexpected_limit=int(rows["unexpected_limit"] + 0.5), compute_scale=rows["compute_scale"], memory_share=rows["memory_share"],
        free_wildcards=rows.get("wildcards") == "free",
    )


def refuse(rows: Mapping[str, Any]) -> None:
    """Raises NotCovered for what the specification has no rule for."""
    for key, what in (*BESIDE.items(), ("order", "an order of calls")):
        if rows.get(key):
            raise NotCovered(what)
    wire = rows.get("wire", "native")
    if wire not in ("native", "fluid") and len(set(rows["placement"])) > 1:
        raise NotCovered(f"the network '{wire}'")


class _Ways(dict[int, Any]):
    """The first hops of a rank towards each other rank; they are made when the first of the two needs the other one, in both directions."""

    def __init__(self, connect: Any, rank: Rank) -> None:
        super().__init__()
        self._connect, self._rank = connect, rank

    def __missing__(self, other: int) -> Any:
        self._connect(self._rank, other)
        return self.get(other)


class Simulation:
    """All of one run."""

    def __init__(self, rows: Mapping[str, Any], calls: list[list[TracedCall]], communicators: Mapping[int, Communicator]) -> None:
        refuse(rows)
        self.loop = EventLoop()
        if rows["limit_s"] > 0:
            self.loop.limit = picoseconds(rows["limit_s"])
        self.seed = rows["seed"]
        kinds = [host_values(kind) for kind in rows["hosts"]["kinds"]]
        # Clocks are not synchronised: the first host's starts with the run, every other one's anywhere within a tick.
        phases = Random(self.seed ^ 0x7469636B)
        self.hosts: list[Host] = []
        for name, kind in zip(rows["hosts"]["names"], rows["hosts"]["kind_of"], strict=True):
            phase = int(phases.uniform() * kinds[kind].tick) if self.hosts else 0
            self.hosts.append(Host(self.loop, kinds[kind], name, phase))
        self.job = SimulatedJob(self.loop, self.hosts, Random(self.seed))
        self.same, self.remote, self.same_bulk = ([hop_values(h) for h in rows[key]] for key in ("same", "remote", "same_bulk"))
        self.traffic: list[TrafficSource] = []
        self.wire = self._network(rows)
        self.placement = rows["placement"]
        self._processes(rows, calls, communicators)
        self.channels: dict[tuple[int, Process, Process], Channel] = {}
        self.pools: dict[Host, Pool] = {}
        self.rings: dict[Any, Ring] = {}
        self.ports: dict[Any, Port] = {}
        self.kills = [(name, picoseconds(seconds)) for name, seconds in rows["kills"]]

    def _network(self, rows: Mapping[str, Any]) -> Wire:
        puts, traffic = bool(rows["one_sided_remote"]), rows.get("traffic", [])
        link = link_values(rows["link"])
        places = list(rows["positions"])
        if (len(self.hosts) < 2 or (all(h.medium == "curve" for h in self.remote) and not puts)) and not traffic:
            return Nothing(self.loop, link, places)
        cards = [place for place in places for _ in range(link.rails)]
        wire: Wire
        # What a card moves as a whole are packets that interleave with those of others.
        if rows.get("wire") == "fluid" or puts or any(h.medium == "dma" for h in self.remote):
            wire = Fluid(self.loop, link, cards)
        elif link.kind == "pausing-switch":
            wire = PausingSwitch(self.loop, link, cards)
        elif link.kind != "hub":
            wire = Queues(self.loop, link, cards)
        elif link.access == "fifo":
            wire = Hub(self.loop, link, cards)
        else:
            wire = CollidingHub(self.loop, link, cards, Random(self.seed ^ 0x636F6C6C696465))
        wire.fail(rows.get("failures", []))
        self.job.net = Cards(self.job, wire, link, places)
        self.traffic = CrossTraffic(self.job, traffic, link, places, lambda number: Random(self.seed ^ number)).sources
        return wire

    def _processes(self, rows: Mapping[str, Any], calls: list[list[TracedCall]], communicators: Mapping[int, Communicator]) -> None:
        """Proxies and daemons on each host that has ranks, then the ranks. A host's ranks get its cores in turn."""
        roles = {end.partition("@")[0] for h in (*self.same, *self.remote, *self.same_bulk) for end in h.between} - {"rank"}
        self.forwarders: dict[tuple[str, int], Forwarder] = {}
        for role in sorted(roles):
            for h in sorted(set(self.placement)):
                name = f"{role} on {self.hosts[h].name}"
                idle, cost = policy_values(rows["idle"][role]), picoseconds(rows["forward_cost"][role])
                self.forwarders[role, h] = Forwarder(self.job, self.hosts[h], name, idle, cost)
        spec, choices = _rank_values(rows), Choices(rows)
        placed: dict[int, int] = {}
        for number, h in enumerate(self.placement):
            rank = Rank(self.job, self.hosts[h], number, spec, calls[number], choices, communicators)
            nth = placed.get(h, 0)
            placed[h] = nth + 1
            rank.core = rows["cores"][number] if rows["cores"] else nth % self.hosts[h].spec.cores
            if rows["cores"]:
                rank.thread.pinned = rank.core
            rank.out = _Ways(self._connect, rank)
            rank.bulk = _Ways(self._connect, rank) if self.same_bulk else _Ways(lambda *_: None, rank)
            self.job.ranks.append(rank)

    def _connect(self, a: Rank, other: int) -> None:
        b = self.job.ranks[other]
        if a is b:
            return
        for x, y in ((a, b), (b, a)):
            same = x.host is y.host
            x.out[y.number] = self._path(x, y, self.same if same else self.remote)
            if self.same_bulk:
                x.bulk[y.number] = self._path(x, y, self.same_bulk) if same else None

    def _path(self, a: Rank, b: Rank, hops: list[Values]) -> Channel | None:
        """Makes the channels of a path, and says its first."""
        first: Channel | None = None
        for hop in hops:
            source, target = self._end(hop.between[0], a, b, a), self._end(hop.between[1], a, b, b)
            channel = self._channel(hop, source, target)
            if first is None:
                first = channel
            elif isinstance(source, Forwarder):
                source.next[b.number] = channel
        return first

    def _end(self, role: str, a: Rank, b: Rank, rank: Rank) -> Process:
        if role == "rank":
            return rank
        name, _, side = role.partition("@")
        return self.forwarders[name, self.placement[b.number if side == "dst" else a.number]]

    def _channel(self, hop: Values, source: Process, target: Process) -> Channel:
        hop = next((known for known in self.same if known == hop), hop)
        key = id(hop), source, target
        if key not in self.channels:
            self.channels[key] = self._make(hop, source, target)
            back = self.channels.get((id(hop), target, source))
            self._join(self.channels[key], source, target)
            if isinstance(back, SampledCurve) and isinstance(mine := self.channels[key], SampledCurve):
                mine.reverse, back.reverse = back, mine
        return self.channels[key]

    def _join(self, channel: Channel, source: Process, target: Process) -> None:
        """The streams between two processes are the two directions of one connection."""
        if isinstance(channel, Stream):
            for (_, a, b), other in self.channels.items():
                if a is target and b is source and isinstance(other, Stream):
                    channel.join(other)

    def _make(self, hop: Values, source: Process, target: Process) -> Channel:
        match hop.medium:
            case "pool":
                pool = self.pools.setdefault(source.host, Pool(hop.pool, hop.prefix, list(hop.classes)))
                return SharedChannel(self.job, hop, source, target, pool)
            case "ring":
                # A message that must be alone is alone in the ring of its pair; a proxy's slots are apart from those of the ranks.
                own = id(hop) if hop.one_message or hop.slots_of_sender else None
                key = own, source if hop.slots_of_sender else target, source if hop.one_message else None, hop.between[0]
                return SharedChannel(self.job, hop, source, target, self.rings.setdefault(key, Ring(hop.slots)))
            case "stream":
                return STYLES[hop.io](self.job, hop, source, target)
            case "dma":
                return Dma(self.job, hop, source, target)
            case "datagram":
                return Datagram(self.job, hop, source, target)
            case "curve" if isinstance(source, Rank) and isinstance(target, Rank):
                curve, a, b = hop.curve, source.number, target.number
                table = curve["of"][curve["classes"][a]][curve["classes"][b]]
                by_rank = curve["ports"] == "rank"
                ends = (a, b) if by_rank else (self.placement[a], self.placement[b])
                ports = [self.ports.setdefault((id(hop), end), Port()) for end in (*ends, "wire")]
                return SampledCurve(self.job, hop, source, target, CurveTable(*curve["tables"][table]), (ports[0], ports[1], ports[2]))
        raise NotCovered(f"the medium '{hop.medium}' here")

    def run(self) -> dict[str, Any]:
        """Runs it, and says what the engine says of a run."""
        for forwarder in self.forwarders.values():
            self._start(forwarder, forwarder.main())
        for rank in self.job.ranks:
            self._start(rank, rank.main())
        for name, at in self.kills:
            self.loop.schedule(at, self._kill, name)
        detail = ""
        try:
            stuck = self.loop.run(self.wire, lambda: any(host.could_act() for host in self.hosts))
            outcome = "completed" if self.loop.stopped else "deadlock" if stuck else "timeout"
        except Abort as abort:
            outcome, detail = "aborted", str(abort)
        return self._result(outcome, detail)

    def _kill(self, name: str) -> None:
        for process in (*self.forwarders.values(), *self.job.ranks):
            if process.thread.name == name:
                process.thread.kill()

    @staticmethod
    def _start(process: Process, main: Any) -> None:
        process.host.start(process.thread, main)

    def _result(self, outcome: str, detail: str) -> dict[str, Any]:
        ranks, now = self.job.ranks, self.loop.now
        open_ranks = [rank for rank in ranks if rank.now_at and not rank.finished and not rank.thread.dead]
        per_rank = []
        for rank in ranks:
            # A call that has not returned counts as far as it has come.
            open_ = now - rank.call_began if rank in open_ranks else 0
            computes = bool(open_ and rank.now_at.computes)
            per_rank.append({
                "host": self.placement[rank.number], "time_ps": rank.end if rank.finished else now,
                "mpi_ps": rank.count.mpi + (0 if computes else open_), "compute_ps": rank.count.compute + (open_ if computes else 0),
                "cpu_ps": rank.thread.processor_time(), "sent": rank.count.sent, "received": rank.count.received,
                "bytes_sent": rank.count.bytes_sent, "bytes_received": rank.count.bytes_received,
            })
        return {
            "outcome": outcome, "detail": detail, "time_ps": max((row["time_ps"] for row in per_rank), default=0), "per_rank": per_rank,
            "marks": self.job.marks, "contended": self.wire.contended, **vars(self.job.count),
            "calls": [(rank.number, line, begin, end) for rank in ranks for line, begin, end in rank.returned],
            "messages_of": [(m.src, m.dst, m.tag, m.size, m.line, m.receive_line, m.sent, m.received) for m in self.job.messages],
            "waits": [(rank.number, rank.now_at.line) for rank in open_ranks if outcome != "completed"],
            "traffic": [source.count for source in self.traffic],
        }


def simulate(rows: Mapping[str, Any], trace: Any) -> dict[str, Any]:
    """Simulates a compiled question (`retrompi.sim.simulate.engine_rows`) by the specification.

    Raises NotCovered, one line that says what, for what it has no rule for.
    """
    calls = calls_of(trace)
    return Simulation(rows, calls, _communicators(trace, calls)).run()
