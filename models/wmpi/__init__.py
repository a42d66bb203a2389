"""WMPI: MPICH on p4, ported to Win32 at Coimbra. Local tasks share p4's memory pool; between machines a message goes
task -> local daemon (TCP) -> remote daemon (UDP with acknowledgement and retry) -> task (TCP)  [BF-CFG-11]."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from retrompi.spec.calibrated_range import Range
from retrompi.spec.channels import Library, Path, eager, rendezvous, wait_by
from retrompi.spec.hosts import Hosts, mapped
from retrompi.spec.layout import Layout
from retrompi.spec.media import BLOCK, Datagram, Pool, Stream, WaitPolicy
from retrompi.spec.model import Param, RuntimeModel, StartStep
from retrompi.spec.needs import Needs
from retrompi.spec.platform import Platform
from retrompi.spec.technology import IP
from retrompi.spec.values import Values

CLASSES = tuple(64 << 2 * k for k in range(8))
"""Sizes of the pool's buffers, 64 B to 1 MiB [E-P4-03]; a larger request is allocated at its exact size."""


class Wmpi(RuntimeModel):
    name = "wmpi"
    title = "WMPI"
    version = "1.0 to 1.1"
    years = "1996-1998"
    summary = "p4 shared-memory pool on one machine; TCP to UDP daemons between machines"
    needs = Needs(networks=IP, systems=("win32",), source="paper:BF-FUN-15: a library of Win32, with p4's protocol between machines", mixed=True)
    calibrated = Range(sizes=("0 B", "4 MiB"), ranks=(2, 2), platforms=("nt-pair",), source="paper:BF-SM-04, BF-DM-01: PingPong of two processes")

    packet = Param("128 KiB", "B", "largest packet", source="paper:BF-SM-05")
    header = Param("40 B", "B", "packet header", source="assumed: p4 and ADI headers", low="16 B", high="128 B")
    pool = Param("1 MiB", "B", "size of the global shared memory of a machine", source="paper:BF-FUN-06", low="1 MiB", high="16 MiB")
    prefix = Param("32 B", "B", "header that the allocator adds to every buffer of the pool", source="assumed: p4's message block links", low="8 B", high="64 B")
    copies = Param(2, "count", "copies of a message in shared memory: into the pool and out of it", source="code:E-P4-08")
    library = Param("50 us", "s", "library work of a send or a receive", source="fit:fit.toml", on="nt-pair:server", cost="work", low="5 us", high="90 us")
    event = Param("30 us", "s", "signalling the receiver", source="assumed: a kernel object, range of E-REC-15", on="nt-pair:server", cost="os", low="10 us", high="30 us")
    largest_class = Param("1 MiB", "B", "largest buffer class; a message that does not fit into the buffer of a largest packet uses rendezvous", source="code:E-P4-03", low="256 KiB", high="1 MiB")
    answer_wait = Param("spin", "choice", "how a sender waits for the receiver's reply", source="code:E-P4-07", choices=("spin", "spin_yield", "block"))
    receive_wait = Param("block", "choice", "how a receive waits", source="assumed: a kernel event, which the 175 us on one processor demand", choices=("spin", "spin_yield", "block"))
    polls = Param(50, "count", "polls before a yielding process gives up the processor", source="code:E-P4-07")
    exhausted = Param("abort", "choice", "what happens to a message when the pool is exhausted; a rendezvous message always waits", source="code:E-P4-04 (the same allocator: without a buffer alloc_p4_msg ends the job)", choices=("abort", "wait"))
    pool_wait = Param("block", "choice", "how a sender waits for a free buffer", source="assumed: as a receive waits", choices=("spin", "spin_yield", "block"))
    poll_cost = Param("2 us", "s", "one poll of the queue and the pool's lock", source="assumed: a lock and a few memory accesses", on="nt-pair:server", cost="work", low="0.5 us", high="20 us")
    socket_call = Param("90 us", "s", "library and WinSock work of one socket call", source="assumed: 0.2 ms at 75 MHz, the low end of mechanisms.md", on="nt-pair:server", cost="work", low="90 us", high="675 us")
    socket_buffer = Param("16 KiB", "B", "size of the socket buffers that p4 requests", source="code:E-P4-05")
    connect = Param("20 ms", "s", "time to open a connection, at its first message", source="assumed: p4 connects when a message needs it, by a listener process", on="nt-pair:server", cost="os", low="5 ms", high="100 ms")
    daemon = Param("100 us", "s", "time to route a packet in a daemon", source="fit:fit.toml", on="nt-pair:server", cost="work", low="20 us", high="800 us")
    network_packet = Param("32 KiB", "B", "largest datagram between daemons", source="fit:fit.toml", low="16 KiB", high="60 KiB")
    udp_window = Param(4, "count", "unacknowledged datagrams that a daemon may have in flight", source="assumed: a small window", low=1, high=16)
    udp_timeout = Param("500 ms", "s", "time until the first retry", source="assumed: half a second", cost="time", low="50 ms", high="2 s")
    udp_retries = Param(10, "count", "retries before a daemon gives up", source="assumed: ten", low=3, high=30)
    loss = Param(0, "probability", "probability that a datagram is lost", source="assumed: a dedicated cable loses none", low=0, high=1)
    duplicate = Param(0, "probability", "probability that a datagram is delivered twice", source="assumed: a dedicated cable doubles none", low=0, high=1)
    reorder = Param(0, "probability", "probability that a datagram is overtaken by its successors", source="assumed: one path, one order", low=0, high=1)
    reorder_delay = Param("20 ms", "s", "delay of a datagram that is overtaken", source="assumed: a few datagrams long", cost="time", low="1 ms", high="1 s")
    xdr_buffer = Param("4 KiB", "B", "size of the conversion buffer for data between machines of different byte order", source="code:E-P4-06")
    xdr_call = Param("20 us", "s", "time to set up XDR for one such buffer", source="assumed: a few calls for each buffer", on="nt-pair:server", cost="work", low="5 us", high="100 us")
    xdr_byte = Param("60 ns/B", "s/B", "time to convert a byte, at each end", source="assumed: a call for each 4 B word, nine cycles a byte", on="nt-pair:server", cost="work", low="20 ns/B", high="200 ns/B")
    unexpected = Param("0 B", "B", "library memory for unexpected messages; 0: limited only by the machine", source="assumed: p4 allocates as it needs")

    def waits(self, p: Values, kind: str) -> WaitPolicy:
        """A wait policy with p4's poll pattern."""
        return wait_by(kind, lambda: p.polls, lambda: p.poll_cost)

    def longest_unasked(self, p: Values) -> int:
        """The largest eager message in bytes: the capacity of the buffer that a packet of maximum size takes."""
        wanted = p.packet + p.header
        return int(min(next((c for c in CLASSES if c >= wanted), wanted), p.largest_class))

    def calls(self, p: Values, layout: Layout) -> Library:
        return Library(p.library, p.library, self.waits(p, p.receive_wait), self.waits(p, p.answer_wait), p.unexpected)

    def moved(self, p: Values) -> float:
        """Copies of a message within a machine, each in times of the host's copy rate."""
        return float(p.copies)

    def within_host(self, p: Values, layout: Layout) -> Path:
        """p4's pool of buffers between two tasks of one machine."""
        pool = Pool(
            ("rank", "rank"), packet=p.packet, header=p.header, pool=p.pool, classes=CLASSES, prefix=p.prefix, copies_in=self.moved(p) / 2, copies_out=self.moved(p) / 2,
            exhausted_aborts=p.exhausted == "abort", event=p.event, hold_unexpected=True, space_wait=self.waits(p, p.pool_wait),
        )  # fmt: skip
        # E-P4-01 puts the threshold of MPICH's p4 device at 128000 B; WMPI's curve has none there, so the hypothesis is that a
        # message uses rendezvous if it does not fit into a buffer of the pool (mechanisms.md). Its developers attributed the step to
        # the largest packet (BF-SM-05), so the buffer is the one that such a packet takes: 256 KiB for one of 128 KiB.
        asks = self.longest_unasked(p) + 1
        return Path([pool], [eager(0, asks), rendezvous(asks)])

    def between_hosts(self, p: Values, layout: Layout) -> Path:
        """Task, daemon, daemon, task: TCP, UDP and TCP."""
        tcp = {"packet": p.network_packet, "header": p.header, "call": p.socket_call}
        local = {"sndbuf": p.socket_buffer, "rcvbuf": p.socket_buffer, "connect": p.connect}
        hops = [
            Stream(("rank", "daemon@src"), **tcp, **local),
            Datagram(
                ("daemon@src", "daemon@dst"), **tcp, timeout=p.udp_timeout, retries=p.udp_retries, window=p.udp_window,
                loss=p.loss, duplicate=p.duplicate, reorder=p.reorder, reorder_delay=p.reorder_delay if p.reorder > 0 else 0.0,
            ),
            Stream(("daemon@dst", "rank"), **tcp, **local),
        ]  # fmt: skip
        return Path(hops, idle={"daemon": BLOCK}, forward_cost={"daemon": p.daemon})

    def probing(self, p: Values, layout: Layout) -> float:
        return float(p.poll_cost)

    def conversion(self, p: Values) -> tuple[float, float, float]:
        return p.xdr_byte, p.xdr_buffer, p.xdr_call

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """A process group file names the machines; their daemons, started once, start the tasks."""
        machines = sorted(set(placement))
        steps = [StartStep("process group file", manual=1, note="lists machines, programs and directories")]
        steps += [StartStep(f"daemon on {platform.hosts[m].name}", daemons=1, note="runs since the machine was booted") for m in machines]
        steps += [StartStep(f"rank {r}", windows=1 if r == 0 else 0, note=f"on {platform.hosts[h].name}") for r, h in enumerate(placement)]
        steps[-len(placement)] = StartStep("rank 0", manual=1, windows=1, note="started by hand; asks the daemons for the others")
        return steps, ""


class AbsorbedCopies(Wmpi):
    name = "wmpi:absorbed"
    title = "WMPI without a handshake, with copies that overlap with the quantum spent spinning"
    version = "1.0 to 1.1"
    years = "1996-1998"
    summary = "long messages exhaust the pool; receives yield after p4's 50 polls; NT boosts a woken thread and preserves the rest of its quantum"
    variant_note = "Rival: no handshake but an exhausted pool, and the rest of a quantum is preserved across a wait, so that the copies take place within a quantum spent spinning."

    largest_class = Param("1 GiB", "B", "size above which a message uses rendezvous, regardless of its packets: none", source="assumed: rival hypothesis of mechanisms.md")
    exhausted = Param("wait", "choice", "what happens to a message when the pool is exhausted", source="assumed: rival hypothesis of mechanisms.md", choices=("abort", "wait"))
    receive_wait = Param("spin_yield", "choice", "how a receive waits", source="code:E-P4-07", choices=("spin", "spin_yield", "block"))
    poll_cost = Param("0.5 us", "s", "one poll of the queue", source="assumed: a lock and a few memory accesses", on="nt-pair:server", cost="work", low="0.1 us", high="20 us")

    def longest_unasked(self, p: Values) -> int:
        return int(p.largest_class)

    def hosts(self, p: Values, layout: Layout) -> Hosts:
        layout.fixed |= {"boost", "quantum_carry", "quantum_at_tick"}
        return mapped(super().hosts(p, layout), lambda host: replace(host, boost=1.0, quantum_carry=1.0, quantum_at_tick=0.0))


class AdditiveStall(Wmpi):
    name = "wmpi:additive-stall"
    title = "WMPI with a fixed stall instead of a quantum spent spinning"
    version = "1.0 to 1.1"
    years = "1996-1998"
    summary = "the sender of a long message sleeps in a timed wait before it checks for the reply; the copies are added to it"
    variant_note = "Rival: a stall of fixed length (a timed wait) is added to each long message, in addition to the copies."

    stall = Param("130 ms", "s", "time-out of the wait for the answer", source="assumed: T(512K) and T(4M) of mechanisms.md", cost="time", low="100 ms", high="200 ms")

    def calls(self, p: Values, layout: Layout) -> Library:
        return Library(p.library, p.library, self.waits(p, p.receive_wait), WaitPolicy("poll", period=p.stall), p.unexpected)

    def within_host(self, p: Values, layout: Layout) -> Path:
        path = super().within_host(p, layout)
        return Path([replace(hop, by_event=False) for hop in path.hops if isinstance(hop, Pool)], path.protocol)


class WholeLines(Wmpi):
    name = "wmpi:whole-lines"
    title = "WMPI with one copy, by string moves that overwrite whole lines"
    version = "1.0 to 1.1"
    years = "1996-1998"
    summary = "one copy of a message within a machine, by the processor's fast string moves: the line that is overwritten is invalidated and never read"
    variant_note = "Rival: one copy instead of two, and two passes of the memory for it instead of three, since a fast string move does not read the line that it overwrites. It gives the published 80 MB/s; against it are p4's source, which copies twice, and the rest of the conditions (8-byte alignment, 64 iterations, 32-byte lines) under which a P6 does so."

    copies = Param(1, "count", "copies of a message in shared memory: between the two tasks", source="assumed: rival hypothesis; p4's own source has two (E-P4-08)", low=1, high=2)
    passes = Param(2, "count", "passes of a byte through the memory in a copy, of the three in which the line that is overwritten is read first", source="doc:Intel, IA-32 System Programming Guide (253668-032), 8.2.4: fast string operations of P6 processors invalidate the line that they overwrite", low=2, high=3)

    def moved(self, p: Values) -> float:
        """The host's copy rate is that of loops and libraries, which read what they overwrite."""
        return float(p.copies * p.passes / 3)
