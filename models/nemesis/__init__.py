"""MPICH2's Nemesis channel as of 2010, on Unix and on Windows: lock-free queues of cells between the processes of a node, a copy
buffer or the receiver's own copy for long messages, TCP between nodes. Cache effects are determined by the platform [KB-20]."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from retrompi.spec.calibrated_range import Range
from retrompi.spec.channels import Cost, Library, Path, direct, eager, rendezvous
from retrompi.spec.collectives import Choice, Making
from retrompi.spec.host import REFERENCE_CALL
from retrompi.spec.layout import Layout
from retrompi.spec.media import NO_LIMIT, Ring, Stream, WaitPolicy
from retrompi.spec.model import Param, RuntimeModel, StartStep
from retrompi.spec.needs import Needs
from retrompi.spec.platform import Platform
from retrompi.spec.technology import IP
from retrompi.spec.values import Values

PROGRESS = ("poll", "select", "iocp")
LOCKS = ("pthread", "critical_section", "mutex")


_COLL = "code:MPICH2 1.3a2, src/mpi/coll"
_EMPTY = f"{_COLL}: count == 0"


def _mpich2() -> tuple[Choice, ...]:
    """MPICH2's choices by size, number of ranks and nodes, as of May 2010 (thresholds: src/include/mpiimpl.h). The rationale is in Thakur,
    Rabenseifner, Gropp 2005. The last row of an operation is the default."""
    without_data = ("bcast", "reduce", "allreduce", "scan", "exscan", "gather", "scatter", "allgather", "allgatherv", "alltoall", "reducescatter")
    return (
        *(Choice(operation, "nothing", high="1 B", source=_EMPTY) for operation in without_data),
        Choice("barrier", "nodes", nodes=True, source=f"{_COLL}/barrier.c, USE_SMP_COLLECTIVES (configure's default)"),
        Choice("barrier", "dissemination", source=f"{_COLL}/barrier.c"),
        Choice("bcast", "nodes", high="12288 B", nodes=True, source=f"{_COLL}/bcast.c, MPIR_SMP_Bcast; MPIR_BCAST_SHORT_MSG"),
        Choice("bcast", "nodes", ranks=(1, 7), nodes=True, source=f"{_COLL}/bcast.c, MPIR_SMP_Bcast; MPIR_BCAST_MIN_PROCS"),
        Choice("bcast", "nodes_scatter", high="512 KiB", count="power", nodes=True, source=f"{_COLL}/bcast.c, MPIR_SMP_Bcast; MPIR_BCAST_LONG_MSG"),
        Choice("bcast", "binomial", high="12288 B", source=f"{_COLL}/bcast.c; MPIR_BCAST_SHORT_MSG"),
        Choice("bcast", "binomial", ranks=(1, 7), source=f"{_COLL}/bcast.c; MPIR_BCAST_MIN_PROCS"),
        Choice("bcast", "scatter_doubling", high="512 KiB", count="power", source=f"{_COLL}/bcast.c; MPIR_BCAST_LONG_MSG"),
        Choice("bcast", "scatter_ring", source=f"{_COLL}/bcast.c"),
        Choice("reduce", "nodes", nodes=True, source=f"{_COLL}/reduce.c, USE_SMP_COLLECTIVES"),
        Choice("reduce", "binomial", high="2049 B", source=f"{_COLL}/reduce.c; MPIR_REDUCE_SHORT_MSG"),
        Choice("reduce", "rabenseifner", source=f"{_COLL}/reduce.c, of as many elements as ranks at least, which sizes alone do not tell"),
        Choice("allreduce", "nodes", nodes=True, source=f"{_COLL}/allreduce.c, USE_SMP_COLLECTIVES"),
        Choice("allreduce", "doubling", high="2049 B", source=f"{_COLL}/allreduce.c; MPIR_ALLREDUCE_SHORT_MSG"),
        Choice("allreduce", "rabenseifner", source=f"{_COLL}/allreduce.c, of as many elements as ranks at least, which sizes alone do not tell"),
        Choice("scan", "doubling", source=f"{_COLL}/scan.c (without its form for nodes of consecutive ranks)"),
        Choice("exscan", "doubling", source=f"{_COLL}/exscan.c"),
        Choice("reducescatter", "halving", high="512 KiB", source=f"{_COLL}/red_scat.c; MPIR_REDSCAT_COMMUTATIVE_LONG_MSG"),
        Choice("reducescatter", "pairwise", source=f"{_COLL}/red_scat.c"),
        Choice("reducescatterblock", "reduce_scatter", source=f"{_COLL}/red_scat_block.c"),
        Choice("gather", "binomial", source=f"{_COLL}/gather.c"),
        Choice("gatherv", "posted", source=f"{_COLL}/gatherv.c"),
        Choice("scatter", "binomial", source=f"{_COLL}/scatter.c"),
        Choice("scatterv", "posted", source=f"{_COLL}/scatterv.c"),
        Choice("allgather", "doubling", high="512 KiB", count="power", source=f"{_COLL}/allgather.c; MPIR_ALLGATHER_LONG_MSG"),
        Choice("allgather", "bruck", high="80 KiB", source=f"{_COLL}/allgather.c; MPIR_ALLGATHER_SHORT_MSG"),
        Choice("allgather", "ring", source=f"{_COLL}/allgather.c"),
        Choice("allgatherv", "doubling", high="512 KiB", count="power", source=f"{_COLL}/allgatherv.c; MPIR_ALLGATHER_LONG_MSG"),
        Choice("allgatherv", "bruck", high="80 KiB", source=f"{_COLL}/allgatherv.c; MPIR_ALLGATHER_SHORT_MSG"),
        Choice("allgatherv", "ring_pipelined", source=f"{_COLL}/allgatherv.c; MPIR_ALLGATHERV_PIPELINE_MSGSIZE"),
        Choice("alltoall", "bruck", high="257 B", ranks=(8, None), source=f"{_COLL}/alltoall.c; MPIR_ALLTOALL_SHORT_MSG"),
        Choice("alltoall", "throttled_4", high="32769 B", source=f"{_COLL}/alltoall.c; MPIR_ALLTOALL_MEDIUM_MSG, MPIR_ALLTOALL_THROTTLE"),
        Choice("alltoall", "pairwise", source=f"{_COLL}/alltoall.c"),
        Choice("alltoallv", "throttled_4", source=f"{_COLL}/alltoallv.c; MPIR_ALLTOALL_THROTTLE"),
        Choice("alltoallw", "throttled_4", source=f"{_COLL}/alltoallw.c; MPIR_ALLTOALL_THROTTLE"),
    )


class Nemesis(RuntimeModel):
    name = "nemesis"
    title = "MPICH2 Nemesis on Unix"
    version = "1.3 alpha"
    years = "2009-2010"
    summary = "lock-free queues of 64 KiB cells and a pipelined copy buffer in a node; polled TCP between nodes"
    needs = Needs(networks=IP, systems=("unix",), source="paper:KB-01: the Unix side of the paper")
    measured_by = "nemesis"
    collectives = _mpich2()
    communicators = Making(256, True, "code:MPICH2 1.3a2, src/mpi/comm/commutil.c (MPIR_MAX_CONTEXT_MASK) and comm_split.c")
    calibrated = Range(
        sizes=("0 B", "4 MiB"), ranks=(2, 2), platforms=("abe", "abe-windows"),
        source="paper:KB-01 to KB-20: OSU benchmarks of two processes; 4 MiB is the OSU suite's largest message",
    )  # fmt: skip

    library = Param("60 ns", "s", "library instructions of a send or a receive", source="fit:fit.toml", on="abe:n1", cost="work", low="20 ns", high="120 ns")
    cell = Param("64 KiB", "B", "size of a cell of the queues", source="code:E-NEM-01")
    cells = Param(64, "count", "cells of a process; the free queue is first in, first out, so all cells are cycled through", source="code:E-NEM-01")
    cell_header = Param("80 B", "B", "size of cell and packet header", source="assumed: a cache line and a bit; E-NEM-02 leaves 0-536 B", low="0 B", high="536 B")
    poll_cost = Param("30 ns", "s", "one poll of the receive queue", source="assumed: the low end of 30-100 ns (mechanisms.md)", on="abe:n1", cost="work", low="30 ns", high="100 ns")
    queue_lines = Param(1, "count", "cache lines of the receiver touched by enqueueing a cell: the tail of the queue", source="assumed: the queue's layout", low=1, high=3)
    cell_lines = Param(2, "count", "cache lines of the sender touched by dequeueing a cell: its link and its header", source="assumed: the queue's layout", low=1, high=3)
    buffers = Param(8, "count", "number of buffers in the copy buffer of a pair", source="code:E-NEM-03")
    chunk = Param("32 KiB", "B", "size of the chunks in which long messages are copied", source="code:E-NEM-04")
    short_chunk = Param("16 KiB", "B", "chunk size for messages up to chunk_switch", source="code:E-NEM-04")
    chunk_switch = Param("128 KiB", "B", "longest message that is copied in short chunks", source="code:E-NEM-04")
    thread_level = Param("single", "choice", "thread support provided by MPI_Init_thread", source="paper:KB-16", choices=("single", "multiple"))
    lock_kind = Param("pthread", "choice", "type of the global lock taken by each call", source="paper:KB-19", choices=LOCKS)
    pthread = Param("85 ns", "s", "time to acquire and release a pthread mutex", source="assumed: middle of 50-120 ns (mechanisms.md)", on="abe:n1", cost="work", low="50 ns", high="120 ns")
    critical_section = Param("50 ns", "s", "time to acquire and release a critical section", source="doc:E-NT-11", on="abe:n1", cost="work")
    mutex = Param("1 us", "s", "time to acquire and release a Windows mutex", source="doc:E-NT-11", on="abe:n1", cost="os")
    progress = Param("poll", "choice", "how progress is made on the network", source="paper:KB-18", choices=PROGRESS)
    look = Param("300 ns", "s", "poll() or select() in addition to a bare system call", source="assumed: two null system calls", on="abe:n1", cost="os", low="100 ns", high="1 us")
    descriptor = Param("60 ns", "s", "additional time per connection that is polled", source="assumed: a few cache lines of the kernel", on="abe:n1", cost="os", low="20 ns", high="200 ns")
    tcp_skip = Param(128, "count", "polls of shared memory per poll of the completion port", source="code:E-NEM-06", low=128, high=2048)
    socket_call = Param("1 us", "s", "a socket call in addition to a bare system call", source="assumed: of its time", on="abe:n1", cost="work", low="0.5 us", high="3 us")
    socket_buffer = Param("128 KiB", "B", "size of the send and receive buffer of a socket", source="code:E-NEM-07")
    header = Param("40 B", "B", "size of the packet header on a socket", source="assumed: CH3's", low="32 B", high="64 B")
    first_read = Param("1 KiB", "B", "size of the buffer into which the beginning of a message is read; the rest is read into the receive buffer", source="code:MPICH2 of 2010, newtcp_module_impl.h")
    eager = Param("128 KiB", "B", "longest message sent between nodes without a handshake", source="code:E-NEM-08")
    connect = Param("200 us", "s", "time to open a connection, at its first message", source="assumed: three segments and the answer of the peer's progress", on="abe:n1", cost="os", low="50 us", high="5 ms")

    def queues(self, p: Values) -> Ring:
        """The hop between two processes of a node: cells of the sender's free queue."""
        return Ring(
            ("rank", "rank"), packet=p.cell - p.cell_header, header=p.cell_header, slots=p.cells, slots_of_sender=True, cores=True,
            lines_in=p.queue_lines, lines_out=p.cell_lines, space_wait=self.polling(p, 0.0),
        )  # fmt: skip

    def copy_buffer(self, p: Values) -> list[Ring]:
        """The hop of the data of long messages, if it differs."""
        return [
            Ring(
                ("rank", "rank"), packet=p.chunk, header=0, short_packet=p.short_chunk, short_until=p.chunk_switch, slots=p.buffers,
                one_message=True, cores=True, lines_in=1, lines_out=1, space_wait=self.polling(p, 0.0),
            )
        ]  # fmt: skip

    def lock(self, p: Values) -> Cost:
        """The cost of the global lock per call; a Windows mutex is an object of the kernel's."""
        if p.thread_level == "single":
            return Cost()
        if p.lock_kind == "mutex":
            return Cost(os=p.mutex)
        return Cost(p.pthread if p.lock_kind == "pthread" else p.critical_section)

    def polling(self, p: Values, network: float, every: float = 1) -> WaitPolicy:
        """Waiting is polling; ``network`` (s) is spent on the network in each poll, or in one of ``every`` polls."""
        polled, looked = (network, 0.0) if every == 1 else (0.0, network)
        return WaitPolicy("spin", poll_cost=p.poll_cost, poll_call=polled, look_every=every, look_cost=looked)

    def calls(self, p: Values, layout: Layout) -> Library:
        waits = self.polls(p, layout)
        return Library(p.library, p.library, waits, waits, call_lock=self.lock(p))

    def polls(self, p: Values, layout: Layout) -> WaitPolicy:
        """Waiting by the progress engine: polls of shared memory, and of the network where ranks are on several hosts."""
        lock, every, network = self.lock(p), 1.0, 0.0
        if layout.several_hosts:
            if p.progress == "iocp":
                network, every = REFERENCE_CALL, p.tcp_skip
            else:
                network = REFERENCE_CALL + p.look + p.descriptor * sum(h != layout.placement[0] for h in layout.placement)
        waits = self.polling(p, network, every)
        # In multi-threaded mode each poll releases the lock and yields the processor [E-NEM-05].
        if lock == Cost():
            return waits
        return replace(waits, poll_cost=waits.poll_cost + lock.work, poll_call=waits.poll_call + lock.os + REFERENCE_CALL)

    def probing(self, p: Values, layout: Layout) -> Cost:
        """A test or probe costs one poll."""
        waits = self.polls(p, layout)
        return Cost(waits.poll_cost, waits.poll_call)

    def within_host(self, p: Values, layout: Layout) -> Path:
        protocol = self.protocol(p, p.cell - p.cell_header + 1)
        bulk = self.copy_buffer(p) if any(kind == "rendezvous" for _, _, kind in protocol) else []
        return Path([self.queues(p)], protocol, bulk, direct_call=self.direct_call(p))

    def between_hosts(self, p: Values, layout: Layout) -> Path:
        socket = Stream(
            ("rank", "rank"), packet=NO_LIMIT, header=p.header, call=p.socket_call, connect=p.connect,
            sndbuf=p.socket_buffer, rcvbuf=p.socket_buffer, io="async" if p.progress == "iocp" else "nonblocking", first_read=p.first_read,
        )  # fmt: skip
        return Path([socket], [eager(0, p.eager + 1), rendezvous(p.eager + 1)])

    def protocol(self, p: Values, queued_below: float) -> list[tuple[float, float, str]]:
        """The protocol by size within a node; ``queued_below`` is the smallest size (B) that does not fit into a cell."""
        return [eager(0, queued_below), rendezvous(queued_below)]

    def direct_call(self, p: Values) -> float:
        """The system's part of a direct copy (s); none here."""
        return 0.0

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """A process manager on each node, started once; mpiexec asks them for the ranks."""
        machines = sorted(set(placement))
        steps = [StartStep(f"smpd on {platform.hosts[m].name}", daemons=1, note=self.daemon_note) for m in machines]
        steps.append(StartStep("mpiexec", manual=1, note="connects to one smpd; the others are reached in a tree"))
        return steps + [StartStep(f"rank {r}", note=f"on {platform.hosts[h].name}") for r, h in enumerate(placement)], ""

    daemon_note = "a daemon that is started once on each node"


class Windows(Nemesis):
    name = "nemesis:windows"
    title = "MPICH2 Nemesis on Windows"
    summary = "lock-free queues of 64 KiB cells, direct copies by the receiver from 16 KiB; completion ports between nodes"
    needs = Needs(networks=IP, systems=("win32",), source="paper:KB-01: the Windows side of the paper")
    variant_note = "Windows: the receiver copies long messages directly from the sender's memory; the system transfers network data and reports their completion; critical sections."

    library = Param("75 ns", "s", "library instructions of a send or a receive", source="fit:fit.toml", on="abe-windows:n1", cost="work", low="20 ns", high="120 ns")
    direct_from = Param("16 KiB", "B", "shortest message that the receiver copies directly", source="paper:KB-06")
    direct_overhead = Param("1.5 us", "s", "time to access another process's memory, in addition to a bare system call", source="assumed: middle of 0.5-3 us (mechanisms.md)", on="abe-windows:n1", cost="os", low="0.5 us", high="3 us")
    lock_kind = Param("critical_section", "choice", "type of the global lock taken by each call", source="paper:KB-17", choices=LOCKS)
    progress = Param("iocp", "choice", "how progress is made on the network", source="paper:KB-14", choices=PROGRESS)

    first_read = Param("2 KiB", "B", "size of the buffer into which the beginning of a message is read; the rest is read into the receive buffer", source="code:MPICH2 of 2010, wintcp_impl.h")

    daemon_note = "a service, installed once on each node"

    def protocol(self, p: Values, queued_below: float) -> list[tuple[float, float, str]]:
        queued = min(queued_below, p.direct_from)
        between = [rendezvous(queued, p.direct_from)] if p.direct_from > queued else []
        return [eager(0, queued), *between, direct(p.direct_from)]

    def direct_call(self, p: Values) -> float:
        return float(p.direct_overhead)


class WindowsQueues(Windows):
    name = "nemesis:windows-queues"
    title = "MPICH2 Nemesis on Windows without direct copies"
    summary = "lock-free queues of 64 KiB cells and the pipelined copy buffer for all messages within a node; completion ports between nodes"
    variant_note = "Windows with the shared-memory queues only; the paper compares direct copies with it."

    direct_from = Param("1 GiB", "B", "shortest message that the receiver copies directly: none", source="paper:KB-03")
