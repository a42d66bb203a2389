"""MPICH 1.2.3: ch_p4 over TCP, and its two devices for the memory of one machine, ch_shmem and ch_lfshmem.

ch_p4 sends a short message in one packet, a longer one as two messages of p4 (packet, then data), and from 128000 B on it asks first. p4's
sockets do not block: a call that cannot go on waits in select. p4 receives every message into a buffer that it allocates, out of which the
channel copies it to the user; a short message passes through a packet at either end as well. Nothing moves between two calls of MPI.
"""

from __future__ import annotations

import math
from random import Random
from typing import ClassVar

from retrompi.models._mpich1 import Mpich1
from retrompi.spec.calibrated_range import Range
from retrompi.spec.channels import Cost, Library, Path, eager, rendezvous
from retrompi.spec.host import REFERENCE_CALL
from retrompi.spec.layout import Layout
from retrompi.spec.media import BLOCK, NO_LIMIT, Ring, Stream, WaitPolicy
from retrompi.spec.model import Param, StartStep
from retrompi.spec.needs import Needs
from retrompi.spec.platform import Platform
from retrompi.spec.sockets import kernel_buffer
from retrompi.spec.technology import IP
from retrompi.spec.values import Values

_MACHINES = ("p4-1800*2@ge-ga620", "p4-1800*2@ge-trendnet", "alpha-ds20*2@ge-syskonnect-jumbo")


class Mpich(Mpich1):
    name = "mpich"
    title = "MPICH ch_p4"
    version = "1.2.3"
    years = "1994-2005"
    summary = "short, eager and rendezvous messages over p4's TCP connections; every message is received into p4's memory and copied from there"
    needs = Needs(networks=IP, systems=("unix",), source="doc:TC02-002: measured under Linux")
    calibrated: ClassVar[Range | None] = Range(
        sizes=("8 B", "8 MiB"), ranks=(2, 2), platforms=_MACHINES,
        source="doc:TC02-002: the machines are fitted to raw TCP; MPICH's own cost to GL94-003, on the SP1",
    )  # fmt: skip

    sockbuf = Param("16 KiB", "B", "socket buffers that p4 asks for (P4_SOCKBUFSIZE)", source="code:MPICH 1.2.3, mpid/ch_p4/p4/lib/p4_sock_util.h: SOCK_BUFF_SIZE (SRC-004)", low="4 KiB", high="1 MiB")
    short = Param("16 KiB", "B", "longest message that is sent within a packet", source="code:MPICH 1.2.3, mpid/ch2/packets.h: MPID_PKT_MAX_DATA_SIZE of a heterogeneous device (SRC-002)", low="64 B", high="64 KiB")
    long = Param("128000 B", "B", "shortest message that uses rendezvous", source="code:MPICH 1.2.3, mpid/ch2/chinit.c: long_len (SRC-001)", low="1 KiB", high="16 MiB")
    header = Param("72 B", "B", "headers of a message: p4's (8 words) and MPICH's packet (10 words)", source="code:MPICH 1.2.3, mpid/ch_p4/p4/lib/p4_defs.h: p4_net_msg_hdr; mpid/ch2/packets.h: MPID_PKT_SHORT_T")
    reads = Param(2, "count", "system calls of a read: itself, and the select before it", source="code:MPICH 1.2.3, mpid/ch_p4/p4/lib/p4_sock_sr.c: socket_recv; p4_sock_util.c: net_recv", low=1, high=3)
    socket_call = Param("0.3 us", "s", "library work of a socket call", source="assumed: a few hundred cycles; the sets of descriptors are filled for every process", on="p4-1800:n1", cost="work", low="0.1 us", high="2 us")
    probe = Param("1 us", "s", "a look for messages that finds none: a select that does not wait", source="assumed: two null system calls", on="p4-1800:n1", cost="os", low="0.5 us", high="5 us")
    connect = Param("3 ms", "s", "opening a connection, at its first message: the other end's listener is asked, which interrupts its process", source="assumed: two connections and a signal", on="p4-1800:n1", cost="os", low="0.5 ms", high="50 ms")
    rsh = Param("0.5 s", "s", "starting a process on another machine by rsh", source="assumed: a connection, a login and a shell", cost="time", low="0.1 s", high="5 s")

    def calls(self, p: Values, layout: Layout) -> Library:
        return self.both_ends(p, BLOCK, BLOCK)

    def socket(self, p: Values, layout: Layout) -> Path:
        """A connection of p4 between two processes, on one machine as between two."""
        buffer = kernel_buffer(layout, p.sockbuf)
        stream = Stream(
            ("rank", "rank"), packet=NO_LIMIT, header=p.header, call=p.socket_call, calls_in=p.reads, connect=p.connect, by_segment=True,
            header_read=True, header_write=True, header_write_above=p.short, sndbuf=buffer, rcvbuf=buffer,
        )  # fmt: skip
        # A short message is copied into a packet and out of one; p4's own copy, into and out of its buffer, is every message's.
        return Path([stream], [eager(0, p.long), rendezvous(p.long)], unpack=1, short_copies=1, short_until=p.short)

    def within_host(self, p: Values, layout: Layout) -> Path:
        return self.socket(p, layout)

    def between_hosts(self, p: Values, layout: Layout) -> Path:
        return self.socket(p, layout)

    def probing(self, p: Values, layout: Layout) -> Cost:
        return Cost(os=p.probe)

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """mpirun writes a process group file; its first process starts the others by rsh, one after the other, each with a listener."""
        steps = [StartStep("mpirun", manual=1, note="writes p4's process group file from the list of machines")]
        for r, h in enumerate(placement):
            where = platform.hosts[h].name
            if r == 0:
                steps.append(StartStep("rank 0", note=f"on {where}, with a listener for connections"))
            else:
                steps.append(StartStep(f"rank {r}", seconds=p.rsh, note=f"by rsh on {where}, with a listener for connections"))
        return steps, ""


class Shmem(Mpich):
    name = "mpich:shmem"
    title = "MPICH ch_shmem"
    summary = "packets of 1 KiB in shared memory, handed over in locked queues; longer messages in a piece of shared memory, whole"
    needs = Needs(systems=("unix",), source="assumed: shared memory of System V; no network is used")
    variant_note = "One machine: processes share memory instead of sockets. Queues are guarded by locks; who waits looks, and yields the processor."
    calibrated = Range(
        sizes=("0 B", "0 B"), ranks=(2, 2), platforms=("ibm-sp1*2@sp1-switch",),
        source="doc:GL94-003: MPICH's own cost is fitted there; nothing to the memory of a machine",
    )  # fmt: skip

    header = Param("32 B", "B", "header of a packet", source="code:MPICH 1.2.3, mpid/ch_shmem/shpackets.h: MPID_PKT_SHORT_T, eight words")
    packets = Param(128, "count", "packets of all processes together, divided among them", source="code:MPICH 1.2.3, mpid/ch_shmem/shdef.h: MPID_SHMEM_MAX_PKTS, 4 x 32", low=4, high=1024)
    memory = Param("4 MiB", "B", "shared memory of a job (MPI_GLOBMEMSIZE)", source="code:MPICH 1.2.3, mpid/ch_shmem/shdef.h: MPID_MAX_SHMEM", low="256 KiB", high="64 MiB")
    lock = Param("semop", "choice", "what guards a queue: a System V semaphore (a call to take it, another to give it back) or a word in memory", source="code:MPICH 1.2.3, mpid/ch_shmem/p2p_locks.h: semop unless the system has its own", choices=("semop", "spin"))
    spins = Param(10, "count", "looks at the queue before the processor is yielded; each waits twice as long as the one before", source="code:MPICH 1.2.3, mpid/ch_shmem/shmempriv.c: BACKOFF_LMT 1024", low=1, high=1000)
    look = Param("0.2 us", "s", "one look at the queue", source="assumed: the mean of a wait that doubles up to 1024 rounds is short against a call", on="p4-1800:n1", cost="work", low="0.05 us", high="2 us")
    fork = Param("2 ms", "s", "forking a process", source="assumed: a copy of its tables", on="p4-1800:n1", cost="os", low="0.5 ms", high="20 ms")

    def spin(self, p: Values) -> WaitPolicy:
        """Looks, yielding the processor after some."""
        return WaitPolicy("spin_yield", polls=p.spins, poll_cost=p.look)

    def calls(self, p: Values, layout: Layout) -> Library:
        return self.both_ends(p, self.spin(p), self.spin(p))

    def locks(self, p: Values) -> float:
        """System calls (s on the reference host) of a packet's locks: it is taken from a list and put into a queue, and at the receiver back
        again. Each lock is taken and given."""
        return 4 * 2 * REFERENCE_CALL if p.lock == "semop" else 0.0

    def queue(self, p: Values, layout: Layout) -> Ring:
        """The packets of short and eager messages: each process has its share of them. A message of more than 1 KiB (SRC-008) takes a piece of
        shared memory beside its packet and is copied as often; allocating the piece is part of the library's work."""
        return Ring(
            ("rank", "rank"), packet=p.long, header=p.header, slots=max(1, int(p.packets // len(layout.placement))), slots_of_sender=True,
            event=self.locks(p), by_event=False, space_wait=self.spin(p), ws_packet=1,
        )  # fmt: skip

    def pieces(self, p: Values) -> Ring:
        """A rendezvous message is copied into shared memory as a whole, or in the largest piece that can be had, and then out of it."""
        largest = 2.0 ** int(math.log2(max(p.memory / 2, p.long)))
        return Ring(
            ("rank", "rank"), packet=largest, header=p.header, slots=1, one_message=True, until_taken=True, by_event=False,
            space_wait=self.spin(p), ws_packet=1,
        )  # fmt: skip

    def within_host(self, p: Values, layout: Layout) -> Path:
        return Path([self.queue(p, layout)], [eager(0, p.long), rendezvous(p.long)], bulk=[self.pieces(p)])

    def probing(self, p: Values, layout: Layout) -> Cost:
        return Cost(work=p.look)

    def joins(self, platform: Platform, placement: list[int]) -> str:
        return "" if len(set(placement)) == 1 else f"{self.title} joins processes that share the memory of one machine"

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """The first process makes the shared memory and forks the others."""
        steps = [StartStep("mpirun", manual=1, note="starts the program once, with the number of processes"), StartStep("rank 0", note="makes the shared memory")]
        return steps + [StartStep(f"rank {r}", seconds=p.fork, note="forked by rank 0") for r in range(1, len(placement))], ""


class LockFree(Shmem):
    name = "mpich:lfshmem"
    title = "MPICH ch_lfshmem"
    summary = "a packet of 1 KiB for each pair of processes, guarded by a word that the sender sets and the receiver clears"
    variant_note = "No locks: each sender has one packet at each receiver, so that a second message waits until the first has been taken."

    def queue(self, p: Values, layout: Layout) -> Ring:
        return Ring(
            ("rank", "rank"), packet=p.long, header=p.header, slots=1, one_message=True, by_event=False, space_wait=self.spin(p), ws_packet=1
        )  # fmt: skip
