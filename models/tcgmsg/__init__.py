"""TCGMSG 4.04 as of 2000, the message-passing layer of Global Arrays 3.1: a send and a receive that wait, and nothing between.

Between machines a message is a header and its data, written to a blocking socket in packets as long as its buffer, and read straight into the
user's memory. Processes of one machine share a buffer for each sender, through which a message goes packet by packet, each announced by a
semaphore.
"""

from __future__ import annotations

from random import Random

from retrompi.models._mpich1 import Mpich1
from retrompi.spec.calibrated_range import Range
from retrompi.spec.channels import Cost, Library, Path
from retrompi.spec.host import REFERENCE_CALL
from retrompi.spec.layout import Layout
from retrompi.spec.media import BLOCK, Ring, Stream
from retrompi.spec.model import Param, StartStep
from retrompi.spec.needs import Needs
from retrompi.spec.platform import Platform
from retrompi.spec.sockets import kernel_buffer
from retrompi.spec.technology import IP
from retrompi.spec.values import Values


class Tcgmsg(Mpich1):
    name = "tcgmsg"
    title = "TCGMSG"
    version = "4.04, as of 2000"
    years = "1990-2005"
    summary = "header and data are written to a blocking socket in packets of its buffer's size, and read into the user's memory"
    needs = Needs(networks=IP, systems=("unix",), source="doc:TC02-002: measured under Linux")
    calibrated = Range(
        sizes=("8 B", "8 MiB"), ranks=(2, 2), platforms=("p4-1800*2@ge-ga620", "p4-1800*2@ge-trendnet", "alpha-ds20*2@ge-syskonnect-jumbo"),
        source="doc:TC02-002: the machines are fitted to raw TCP, TCGMSG to nothing",
    )  # fmt: skip

    sockbuf = Param("32 KiB", "B", "socket buffers that it asks for, and its packets (SR_SOCK_BUF_SIZE, PACKET_SIZE)", source="code:TCGMSG 4.04, ipcv4.0/sndrcvP.h (SRC-025, SRC-026)", low="4 KiB", high="1 MiB")
    header = Param("20 B", "B", "header of a message: five words", source="code:TCGMSG 4.04, ipcv4.0/sndrcvP.h: MessageHeader")
    nodelay = Param("on", "choice", "whether a short segment leaves at once (TCP_NODELAY); version 4.04 of 1994 does not set it on Linux", source="code:TCGMSG of GA (September 2000), ipcv4.0/sockets.c: TcpNoDelay", choices=("on", "off"))
    shared_buffer = Param("64 KiB", "B", "buffer of a sender in shared memory", source="code:TCGMSG 4.04, ipcv4.0/sndrcvP.h: SHMEM_BUF_SIZE (SRC-027); 128 KiB from August 2000 on", low="4 KiB", high="512 KiB")
    length = Param(0.25, "1", "library work of a message relative to MPICH 1's: no queues, no matching but a comparison", source="assumed: from the length of the code, a factor of three both ways", low=0.08, high=0.75)
    socket_call = Param("0.2 us", "s", "library work of a socket call", source="assumed: a few hundred cycles", on="p4-1800:n1", cost="work", low="0.05 us", high="1 us")
    probe = Param("1 us", "s", "a look at a socket that finds nothing (PollSocket)", source="assumed: two null system calls", on="p4-1800:n1", cost="os", low="0.5 us", high="5 us")
    rsh = Param("0.5 s", "s", "starting a process on another machine by rsh", source="assumed: a connection, a login and a shell", cost="time", low="0.1 s", high="5 s")

    def calls(self, p: Values, layout: Layout) -> Library:
        work = p.length * p.library / 2
        return Library(work, work, BLOCK, BLOCK)

    def within_host(self, p: Values, layout: Layout) -> Path:
        """One buffer for each sender: filled, announced, emptied, and filled again; two operations on semaphores at either end."""
        buffer = Ring(
            ("rank", "rank"), packet=p.shared_buffer, header=p.header, slots=1, slots_of_sender=True, event=4 * REFERENCE_CALL,
        )  # fmt: skip
        return Path([buffer])

    def between_hosts(self, p: Values, layout: Layout) -> Path:
        buffer = kernel_buffer(layout, p.sockbuf)
        return Path([
            Stream(
                ("rank", "rank"), packet=p.sockbuf, header=0, message_header=p.header, call=p.socket_call, by_segment=True, header_read=True,
                header_write=True, nagle=p.nodelay == "off", sndbuf=buffer, rcvbuf=buffer,
            )
        ])  # fmt: skip

    def probing(self, p: Values, layout: Layout) -> Cost:
        return Cost(os=p.probe)

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """parallel reads a file of processes, starts one on each machine by rsh, which forks those beside it; then all connect to all."""
        machines = sorted(set(placement))
        steps = [StartStep("parallel", manual=1, note="reads PROGRAM.p: user, machine, number of processes, program, directory")]
        steps += [StartStep(f"cluster on {platform.hosts[m].name}", seconds=p.rsh, note="by rsh; forks its other processes") for m in machines]
        return steps + [StartStep(f"rank {r}", note=f"on {platform.hosts[h].name}") for r, h in enumerate(placement)], ""
