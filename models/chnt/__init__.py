"""MPICH.NT: Argonne's ch_nt of MPICH 1.2.5, shared memory and TCP in one device (nt_ipvishm), each received by a thread of its own.

On a machine a message is copied into the receiver's queue in shared memory and an event wakes the receiver's thread, which copies it into a
buffer of the process and wakes the process with a second event. From 15 KiB on the thread reads the sender's memory itself, while the
sender waits. Up to 3000 B envelope and data are one packet; up to 20 KiB (100 KiB over TCP) the envelope goes before the data; longer
messages ask first. Between machines the data are written in pieces of 8 KiB, and a thread with a completion port reads tag, length and data
(mpid/ch_nt: nt_ipvishm/chinit.c, chconfig.h; nt_common/nt_smp.cpp, ShmemLockedQueue.cpp, MessageQueue.cpp, nt_tcp_send_blocking.cpp).
"""

from __future__ import annotations

from random import Random

from retrompi.models._mpich1 import Mpich1
from retrompi.spec.calibrated_range import Range
from retrompi.spec.channels import Cost, Library, Path, eager, rendezvous
from retrompi.spec.layout import Layout
from retrompi.spec.media import BLOCK, Ring, Stream
from retrompi.spec.model import Param, StartStep
from retrompi.spec.needs import Needs
from retrompi.spec.platform import Platform
from retrompi.spec.technology import IP
from retrompi.spec.values import Values


class ChNt(Mpich1):
    name = "chnt"
    title = "MPICH.NT, ch_nt"
    version = "1.2.5"
    years = "2000-2005"
    summary = "a receiving thread for shared memory and one for TCP; two events a message, the receiver reads long ones out of the sender"
    needs = Needs(networks=IP, systems=("win32",), source="assumed: as its device, which is of Win32", mixed=True)
    calibrated = Range(sizes=("0 B", "4 MiB"), ranks=(2, 2), platforms=("nt-pair",), source="assumed: its device is fitted to nothing; the machine is, to other runtimes, and MPICH's library on another one (GL94-003)")

    short = Param("3000 B", "B", "longest message in one packet with its envelope", source="code:MPICH 1.2.7p1, mpid/ch_nt/nt_ipvishm/chconfig.h: MPID_PKT_MAX_DATA_SIZE (SRC-009)")
    long_shm = Param("20480 B", "B", "longest message on a machine that does not ask first (MPICH_SHMLONGVLONGTHRESH)", source="code:MPICH 1.2.7p1, mpid/ch_nt/nt_ipvishm/chinit.c (SRC-010)", low="0 B", high="1 GiB")
    long_tcp = Param("102400 B", "B", "longest message between machines that does not ask first (MPICH_TCPLONGVLONGTHRESH)", source="code:MPICH 1.2.7p1, mpid/ch_nt/nt_ipvishm/chinit.c: 1024*100", low="0 B", high="1 GiB")
    queue = Param("1 MiB", "B", "queue of a process in shared memory (MPICH_SHMQSIZE)", source="code:MPICH 1.2.7p1, mpid/ch_nt/nt_common/nt_smp.cpp: g_ShmemQSize (SRC-048)", low="32 KiB", high="64 MiB")
    envelope = Param("40 B", "B", "packet without data, and its entry in the queue", source="assumed: MPICH's envelope of 28 B and four words of the queue")
    event = Param("15 us", "s", "signalling a thread through a kernel event", source="doc:E-REC-15", on="nt-pair:server", cost="os", low="10 us", high="30 us")
    thread_work = Param("3 us", "s", "a thread's work of taking a message and finding its buffer", source="assumed: locks and a list of messages", on="nt-pair:server", cost="work", low="1 us", high="20 us")
    read_memory = Param("20 us", "s", "ReadProcessMemory beside a bare call and the copy", source="assumed: attaching to a process and mapping its pages", on="nt-pair:server", cost="os", low="5 us", high="100 us")
    piece = Param("8 KiB", "B", "largest write to a socket", source="code:MPICH 1.2.7p1, mpid/ch_nt/nt_common/nt_tcp_send_blocking.cpp: g_nStreamSize")
    net_header = Param("36 B", "B", "tag and length of a message between machines, and MPICH's envelope", source="code:MPICH 1.2.7p1, mpid/ch_nt/nt_common/nt_tcp_send_blocking.cpp, mpid/ch2/packets.h")
    sockbuf = Param("32 KiB", "B", "socket buffers", source="code:MPICH 1.2.7p1, mpid/ch_nt/nt_common/nt_tcp_sockets.cpp")
    reads = Param(2, "count", "reads before that of the data: tag, length", source="code:MPICH 1.2.7p1, mpid/ch_nt/nt_ipvishm/nt_ipvishm_comport.cpp", low=0, high=2)
    read_call = Param("15 us", "s", "a read and its notice from a completion port", source="assumed: as an event", on="nt-pair:server", cost="os", low="10 us", high="60 us")
    socket_call = Param("90 us", "s", "library and WinSock work of one socket call", source="assumed: as WMPI's, 0.2 ms at 75 MHz (mechanisms.md)", on="nt-pair:server", cost="work", low="20 us", high="675 us")
    connect = Param("20 ms", "s", "time to open a connection, at its first message", source="assumed: as WMPI's", on="nt-pair:server", cost="os", low="5 ms", high="100 ms")

    def calls(self, p: Values, layout: Layout) -> Library:
        return self.both_ends(p, BLOCK, BLOCK)

    def handed_over(self, p: Values, thread: str, copies: int) -> Ring:
        """From a thread to its process: a buffer of the process and an event; ``copies``: of the data out of that buffer."""
        return Ring((f"{thread}@dst", "rank"), packet=WHOLE, header=0, slots=MANY, ws_packet=1, copies_in=0, copies_out=copies, event=p.event)

    def within_host(self, p: Values, layout: Layout) -> Path:
        longest = p.long_shm + p.envelope
        into = Ring(("rank", "memory@dst"), packet=max(1, p.long_shm), header=p.envelope, slots=max(1, int(p.queue / max(1, longest))), ws_packet=1, event=p.event, alone=p.short)
        out_of = Ring(("rank", "reader@dst"), packet=WHOLE, header=0, slots=1, copies_in=0, copies_out=1, until_taken=True, event=p.event + p.read_memory)
        return Path(
            [into, self.handed_over(p, "memory", 1)], [eager(0, p.long_shm + 1), rendezvous(p.long_shm + 1)],
            bulk=[out_of, self.handed_over(p, "reader", 0)], idle={"memory": BLOCK, "reader": BLOCK},
            forward_cost={"memory": p.thread_work, "reader": p.thread_work},
        )  # fmt: skip

    def between_hosts(self, p: Values, layout: Layout) -> Path:
        tcp = Stream(
            ("rank", "port@dst"), packet=max(1, p.piece), header=0, message_header=p.net_header, call=p.socket_call, message_call=p.reads * p.read_call / 2,
            connect=p.connect, sndbuf=p.sockbuf, rcvbuf=p.sockbuf,
        )  # fmt: skip
        return Path(
            [tcp, self.handed_over(p, "port", 1)], [eager(0, p.long_tcp + 1), rendezvous(p.long_tcp + 1)], idle={"port": BLOCK},
            forward_cost={"port": p.thread_work},
        )  # fmt: skip

    def probing(self, p: Values, layout: Layout) -> Cost | float:
        """MPI_Test and MPI_Probe give up the processor (Sleep(0)) when there is nothing."""
        return Cost(work=p.thread_work)

    def joins(self, platform: Platform, placement: list[int]) -> str:
        """Its device is Win32's."""
        odd = next((h for h in (platform.hosts[i] for i in placement) if h.family != "win32"), None)
        return "" if odd is None else f"{odd.name} runs {odd.os}; ch_nt exists for Win32 only"

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """mpirun asks the MPD service of each machine for the processes; the root tells the others where it listens, through a file."""
        steps = [StartStep("mpirun -np N", manual=1, note="asks for account and password once (mpiregister)")]
        steps += [StartStep(f"mpd on {platform.hosts[m].name}", daemons=1, note="a service; starts the processes as the user") for m in sorted(set(placement))]
        return steps + [StartStep(f"rank {r}", note=f"on {platform.hosts[h].name}") for r, h in enumerate(placement)], ""


WHOLE = 2.0**40
MANY = 2**20
"""Messages that a thread may have received before the process asks: its list grows as it needs."""
