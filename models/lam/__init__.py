"""LAM/MPI 6.5 and 7.1, as the source of 7.1.4 has it: client to client over TCP (rpi tcp), through its daemons (rpi lamd), or between
processes of one machine through shared memory guarded by semaphores (rpi sysv) or spin locks (rpi usysv).

A blocking call with nothing else outstanding takes a short way through the library: the socket blocks, envelope and data leave in one writev,
and the envelope is read before the data. Unless all machines are known to have one byte order, little-endian ones pack each message into a
buffer in big-endian order and unpack it: `mpirun -O` of LAM 6 says that they have, LAM 7 finds out.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from retrompi.models._mpich1 import Mpich1
from retrompi.spec.calibrated_range import Range
from retrompi.spec.channels import Cost, Library, Path, eager, rendezvous
from retrompi.spec.collectives import Choice
from retrompi.spec.layout import Layout
from retrompi.spec.media import BLOCK, Datagram, Medium, Ring, Stream, WaitPolicy
from retrompi.spec.model import Param, StartStep
from retrompi.spec.needs import Needs
from retrompi.spec.platform import Platform
from retrompi.spec.sockets import kernel_buffer
from retrompi.spec.technology import IP
from retrompi.spec.values import Values

_COLL = "code:LAM 7.1.4, share/ssi/coll/lam_basic/src"
_UP_TO_4 = f"{_COLL}, LAM_COLLMAXLIN"
COLLECTIVES = (
    Choice("barrier", "tree", f"{_COLL}; up to four processes it is linear there"),
    Choice("bcast", "linear", _UP_TO_4, ranks=(1, 4)),
    Choice("bcast", "binomial", _COLL),
    Choice("reduce", "linear", _UP_TO_4, ranks=(1, 4)),
    Choice("reduce", "binomial", _COLL),
    Choice("allreduce", "reduce_bcast", _COLL),
    Choice("scan", "linear", _COLL),
    Choice("exscan", "linear", _COLL),
    Choice("reducescatter", "reduce_scatterv", _COLL),
    Choice("reducescatterblock", "reduce_scatterv", "assumed: as reduce_scatter; LAM has no such operation"),
    Choice("gather", "linear", _COLL),
    Choice("gatherv", "linear", _COLL),
    Choice("scatter", "linear", _COLL),
    Choice("scatterv", "linear", _COLL),
    Choice("allgather", "gather_bcast", _COLL),
    Choice("allgatherv", "gather_bcast", _COLL),
    Choice("alltoall", "posted", _COLL),
    Choice("alltoallv", "posted", _COLL),
    Choice("alltoallw", "posted", _COLL),
)


class Lam(Mpich1):
    name = "lam"
    title = "LAM/MPI"
    version = "6.5 and 7.1"
    years = "2000-2007"
    summary = "blocking TCP from process to process, long messages ask first; or packets of 8 KiB through its daemons (mode lamd)"
    needs = Needs(networks=IP, systems=("unix",), source="doc:TC02-002: measured under Linux")
    collectives = COLLECTIVES
    calibrated = Range(
        sizes=("8 B", "8 MiB"), ranks=(2, 2), platforms=("p4-1800*2@ge-ga620", "p4-1800*2@ge-trendnet", "alpha-ds20*2@ge-syskonnect-jumbo", "xeon-2000*2@ip-gm-pci64c"),
        source="doc:TC02-002: the machines are fitted to raw TCP, LAM to nothing",
    )  # fmt: skip

    mode = Param("c2c", "choice", "how messages travel between machines: from process to process (-c2c, rpi tcp) or through the daemons (-lamd)", source="code:LAM 7.1.4, share/ssi/rpi/tcp and share/ssi/rpi/lamd", choices=("c2c", "lamd"))
    homogeneous = Param("auto", "choice", "whether all machines are taken to have one byte order: yes (mpirun -O of LAM 6), no (LAM 6 without it), or found out (LAM 7)", source="code:LAM 7.1.4, share/mpi/lamapps.c: lam_homog", choices=("auto", "yes", "no"))
    short = Param("65536 B", "B", "longest message sent without asking first, over TCP", source="code:LAM 7.1.4, share/ssi/rpi/tcp/configure.stub: TCPSHORT_DEFAULT (the guide, SRC-011, has 65535)", low="1 KiB", high="1 MiB")
    sockbuf = Param("65560 B", "B", "socket buffers, where the system's are smaller: the longest short message and its envelope", source="code:LAM 7.1.4, share/ssi/rpi/tcp/src/ssi_rpi_tcp.c: tcp_sockbuf", low="8 KiB", high="1 MiB")
    envelope = Param("24 B", "B", "envelope of a message: length, tag, flags, rank, context, sequence number", source="code:LAM 7.1.4, share/include/lam-ssi-rpi.h: lam_ssi_rpi_envl")
    packet = Param("8 KiB", "B", "largest packet through the daemons; a longer message waits for an answer to its first packet", source="code:LAM 7.1.4, share/include/net.h: MAXNMSGLEN", low="1 KiB", high="64 KiB")
    frame_header = Param("60 B", "B", "header of a packet between daemons", source="code:LAM 7.1.4, share/include/dl_inet.h: dlframe")
    request = Param("100 B", "B", "a process's request to its daemon with the header of a packet", source="assumed: code:LAM 7.1.4, share/include/net.h and kio.h: nmsg and kreq, each about 50 B")
    unix_buffer = Param("16 KiB", "B", "what the Unix-domain socket between a process and its daemon holds", source="assumed: code:LAM 7.1.4, share/kreq/clientio.c asks for a packet and its header each way", low="8 KiB", high="64 KiB")
    udp_window = Param(3, "count", "packets to another daemon that may be unacknowledged", source="code:LAM 7.1.4, share/include/dl_inet.h: DOMAXPENDING", low=1, high=8)
    udp_timeout = Param("500 ms", "s", "time until a packet is sent again", source="code:LAM 7.1.4, configure.in: TO_DLO_ACK", cost="time", low="50 ms", high="2 s")
    udp_retries = Param(300, "count", "retries before a daemon gives up", source="code:LAM 7.1.4, share/include/dl_inet.h: DOMAXRESEND")
    loss = Param(0, "probability", "probability that a packet between daemons is lost", source="assumed: a network of its own loses none", low=0, high=1)
    length = Param(1, "1", "library work of a message relative to MPICH 1's: blocking calls skip requests and queues", source="assumed: from the length of the code, a factor of three both ways", low=0.33, high=3)
    daemon_length = Param(1, "1", "work of a daemon for a packet, relative to MPICH 1's of a message: router, buffers and link are processes of its own kernel", source="assumed: from the length of the code, a factor of three both ways", low=0.33, high=3)
    socket_call = Param("0.2 us", "s", "library work of a socket call", source="assumed: a few hundred cycles", on="p4-1800:n1", cost="work", low="0.05 us", high="1 us")
    look = Param("1 us", "s", "looking for a message in vain: a select", source="assumed: two null system calls", on="p4-1800:n1", cost="os", low="0.3 us", high="4 us")

    def calls(self, p: Values, layout: Layout) -> Library:
        work = p.length * p.library / 2  # `library` is both ends'
        return Library(work, work, *self.waits(p))

    def waits(self, p: Values) -> tuple[WaitPolicy, WaitPolicy]:
        """How a receive and a send wait: in a blocking read or write."""
        return BLOCK, BLOCK

    def copies(self, p: Values, layout: Layout) -> int:
        """Copies of a message into (and out of) a buffer in big-endian order: on little-endian machines, unless all are known to be alike."""
        orders = {host.byte_order for host in layout.hosts}
        alike = p.homogeneous == "yes" or (p.homogeneous == "auto" and len(orders) == 1)
        return int("little" in orders and not alike)

    def path(self, p: Values, layout: Layout, hops: Sequence[Medium], longest: float, bulk: tuple[Medium, ...] = ()) -> Path:
        """``hops`` between packing and unpacking; messages of more than ``longest`` bytes ask first, over TCP with an envelope alone."""
        copies = self.copies(p, layout)
        lamd = any("lamd" in role for hop in hops for role in hop.between)
        return Path(
            hops, [eager(0, longest + 1), rendezvous(longest + 1)], bulk, idle={"lamd": BLOCK} if lamd else {},
            forward_cost={"lamd": p.daemon_length * p.library} if lamd else {}, pack=copies, unpack=copies,
            ask=longest if lamd or bulk else 0,
        )  # fmt: skip

    def tcp(self, p: Values, layout: Layout) -> Stream:
        """LAM asks how large a buffer is and sets it only if it is smaller (code: LAM 7, socket.c: sfh_sock_set_buf_size): a send buffer of Linux
        begins with 16 KiB, its receive buffer is larger than what LAM wants and stays."""
        buffer = kernel_buffer(layout, p.sockbuf)
        return Stream(
            ("rank", "rank"), packet=2.0**40, header=p.envelope, call=p.socket_call, header_read=True, by_segment=True, sndbuf=buffer,
            rcvbuf=buffer if layout.number("window") < p.sockbuf else 0,
        )  # fmt: skip

    def to_daemon(self, p: Values, ends: tuple[str, str]) -> Stream:
        """Between a process and its daemon: a request and its answer for each packet, which the daemon copies once more inside."""
        inward = ends[0] == "rank"
        return Stream(
            ends, packet=p.packet, header=p.request, call=p.socket_call, calls_out=2, calls_in=2, header_read=True, domain="unix", credits=1,
            sndbuf=p.unix_buffer, rcvbuf=p.unix_buffer, copies_out=2 if inward else 1, copies_in=1 if inward else 2,
        )  # fmt: skip

    def through_daemons(self, p: Values, layout: Layout, remote: bool) -> Path:
        link = Datagram(
            ("lamd@src", "lamd@dst"), packet=p.packet, header=p.frame_header, call=p.socket_call, calls_out=1, calls_in=2,
            timeout=p.udp_timeout, retries=p.udp_retries, window=p.udp_window, loss=p.loss,
        ) if remote else None  # fmt: skip
        first, last = self.to_daemon(p, ("rank", "lamd@src")), self.to_daemon(p, ("lamd@dst", "rank"))
        return self.path(p, layout, [first, link, last] if link else [first, last], p.packet)

    def within_host(self, p: Values, layout: Layout) -> Path:
        return self.through_daemons(p, layout, False) if p.mode == "lamd" else self.path(p, layout, [self.tcp(p, layout)], p.short)

    def between_hosts(self, p: Values, layout: Layout) -> Path:
        return self.through_daemons(p, layout, True) if p.mode == "lamd" else self.path(p, layout, [self.tcp(p, layout)], p.short)

    def probing(self, p: Values, layout: Layout) -> Cost:
        return Cost(os=p.look)

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """lamboot starts a daemon on each machine by rsh; mpirun asks the daemons for the processes."""
        machines = list(dict.fromkeys(placement))
        steps = [StartStep("lamboot", manual=1, note="reads the host file; fails if a login script writes to the terminal or a host cannot be reached, and then takes down what has started")]
        steps += [StartStep(f"lamd on {platform.hosts[m].name}", daemons=1, note="started by rsh (hboot), calls back") for m in machines]
        option = {"yes": " -O", "no": "", "auto": ""}[str(p.homogeneous)] + (" -lamd" if p.mode == "lamd" else "")
        steps += [StartStep(f"mpirun{option}", manual=1, note=f"the daemons start {len(placement)} processes")]
        return steps, ""


class Sysv(Lam):
    name = "lam:sysv"
    title = "LAM/MPI, rpi sysv"
    version = "6.5 and 7.1"
    years = "2000-2007"
    summary = "within a machine a postbox of 8 KiB for each pair of processes, guarded by System V semaphores, and a pool for long messages"
    variant_note = "rpi sysv: shared memory within a machine, TCP between machines."

    box = Param("8 KiB", "B", "a postbox: the longest message sent without asking first within a machine", source="code:LAM 7.1.4, config/lam_rpi_sysv_setup.m4: SHMSHORT_DEFAULT (SRC-012)", low="1 KiB", high="64 KiB")
    box_header = Param("64 B", "B", "header of a postbox", source="code:LAM 7.1.4, share/ssi/rpi/sysv/src/rpi_sysv_proc.h: CACHELINESIZE")
    chunk = Param("1 MiB", "B", "most of the pool that a message takes; a longer one passes through it in pieces", source="code:LAM 7.1.4, config/lam_get_shmmax.m4: maxalloc where a segment of 4 MiB is allowed", low="64 KiB", high="16 MiB")
    semaphore = Param("1 us", "s", "an operation on a semaphore", source="assumed: two null system calls", on="p4-1800:n1", cost="os", low="0.3 us", high="4 us")

    def ring(self, p: Values, packet: float) -> Ring:
        """One buffer between two processes: the writer fills it, then the reader empties it. Each locks before and unlocks after."""
        return Ring(
            ("rank", "rank"), packet=packet, header=p.box_header, slots=1, one_message=True, event=2 * p.semaphore, take_call=2 * p.semaphore,
        )  # fmt: skip

    def within_host(self, p: Values, layout: Layout) -> Path:
        return self.path(p, layout, [self.ring(p, p.box)], p.box, (self.ring(p, p.chunk),))


class Usysv(Sysv):
    name = "lam:usysv"
    title = "LAM/MPI, rpi usysv"
    version = "6.5 and 7.1"
    years = "2000-2007"
    summary = "as sysv, with spin locks: a receive polls 10000 times, a send 10 times, before it yields the processor"
    variant_note = "rpi usysv: shared memory with spin locks within a machine, TCP between machines."

    readlockpoll = Param(10000, "count", "polls of a reader before it yields", source="code:LAM 7.1.4, share/ssi/rpi/usysv/src/rpi_usysv_macros.h: READPOLLCOUNT (SRC-014)", low=1, high=1000000)
    writelockpoll = Param(10, "count", "polls of a writer before it yields", source="code:LAM 7.1.4, share/ssi/rpi/usysv/src/rpi_usysv_macros.h: WRITEPOLLCOUNT (SRC-015)", low=1, high=1000000)
    poll_cost = Param("0.01 us", "s", "one poll of a lock", source="assumed: a load from the cache and a loop, twenty cycles", on="p4-1800:n1", cost="work", low="0.003 us", high="0.03 us")

    def waits(self, p: Values) -> tuple[WaitPolicy, WaitPolicy]:
        reader = WaitPolicy("spin_yield", polls=p.readlockpoll, poll_cost=p.poll_cost)
        return reader, reader  # a long send waits for its answer as a reader

    def ring(self, p: Values, packet: float) -> Ring:
        writer = WaitPolicy("spin_yield", polls=p.writelockpoll, poll_cost=p.poll_cost)
        return Ring(("rank", "rank"), packet=packet, header=p.box_header, slots=1, one_message=True, by_event=False, space_wait=writer)
