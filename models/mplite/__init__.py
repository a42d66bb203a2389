"""MP_Lite 2: a light message-passing library, here its version for TCP that is driven by SIGIO.

A send writes what fits into the socket's buffer; whenever the system has data or room it interrupts the process by a signal, whose handler
writes and reads on, straight from and into the users' buffers, whatever the process does. Socket buffers are raised as far as the system lets.
"""

from __future__ import annotations

from random import Random

from retrompi.models._mpich1 import Mpich1
from retrompi.spec.calibrated_range import Range
from retrompi.spec.channels import Library, Path
from retrompi.spec.layout import Layout
from retrompi.spec.media import NO_LIMIT, Stream, WaitPolicy
from retrompi.spec.model import Param, StartStep
from retrompi.spec.needs import Needs
from retrompi.spec.platform import Platform
from retrompi.spec.sockets import kernel_buffer
from retrompi.spec.technology import IP
from retrompi.spec.values import Values


class MpLite(Mpich1):
    name = "mplite"
    title = "MP_Lite"
    version = "2.3, TCP by SIGIO"
    years = "1998-2004"
    summary = "a signal handler moves data between large socket buffers and the users' memory"
    needs = Needs(networks=IP, systems=("unix",), source="doc:TC02-002: measured under Linux")
    calibrated = Range(
        sizes=("8 B", "8 MiB"), ranks=(2, 2), platforms=("p4-1800*2@ge-ga620", "p4-1800*2@ge-trendnet", "alpha-ds20*2@ge-syskonnect-jumbo"),
        source="doc:TC02-002: the machines are fitted to raw TCP, MP_Lite to nothing",
    )  # fmt: skip

    sockbuf = Param("512 KiB", "B", "socket buffers: as large as the system allows", source="code:MP_Lite, tcp.c: the maximum it tells an administrator to set", low="32 KiB", high="4 MiB")
    header = Param("24 B", "B", "header of a message: length, source, tag, an address, destination", source="code:MP_Lite, globals.h: MP_msg_header")
    length = Param(0.33, "1", "library work of a message relative to MPICH 1's: no communicators, one queue for each process", source="assumed: from the length of the code, a factor of three both ways", low=0.11, high=1)
    block = Param("1 us", "s", "holding signals back and letting them pass again, a call each (sigprocmask)", source="code:MP_Lite, tcp.c: Block_Signals; assumed: two null system calls", on="p4-1800:n1", cost="os", low="0.4 us", high="4 us")
    signal = Param("3 us", "s", "delivering a signal and returning from its handler", source="assumed: six null system calls, as lmbench's signal latencies of 1996 are", on="p4-1800:n1", cost="os", low="1 us", high="10 us")
    reads = Param(3, "count", "system calls of the handler for data: header, data, and a read that finds no more", source="code:MP_Lite, tcp.c: do_recv, read_msg", low=1, high=6)
    writes = Param(2, "count", "system calls of a write: one, and one that finds no room", source="code:MP_Lite, tcp.c: do_send, write_msg", low=1, high=4)
    socket_call = Param("0.2 us", "s", "library work of a socket call", source="assumed: a few hundred cycles", on="p4-1800:n1", cost="work", low="0.05 us", high="1 us")
    look = Param("0.02 us", "s", "one look at what is left of a message", source="assumed: a load and a branch", on="p4-1800:n1", cost="work", low="0.005 us", high="0.2 us")
    rsh = Param("0.5 s", "s", "starting a process on another machine by ssh or rsh", source="assumed: a connection, a login and a shell", cost="time", low="0.1 s", high="5 s")

    def spin(self, p: Values) -> WaitPolicy:
        """A loop that looks at a counter, which the handler changes."""
        return WaitPolicy("spin", poll_cost=p.look)

    def calls(self, p: Values, layout: Layout) -> Library:
        work = p.length * p.library / 2
        return Library(work, work, self.spin(p), self.spin(p))

    def socket(self, p: Values, layout: Layout) -> Path:
        """A connection between two processes, on one machine as between two."""
        buffer = kernel_buffer(layout, p.sockbuf)
        return Path([
            Stream(
                ("rank", "rank"), packet=NO_LIMIT, header=p.header, call=p.socket_call, message_call=p.block, io="signal", signal=p.signal,
                calls_in=p.reads, calls_out=p.writes, sndbuf=buffer, rcvbuf=buffer, space_wait=self.spin(p),
            )
        ])  # fmt: skip

    def within_host(self, p: Values, layout: Layout) -> Path:
        return self.socket(p, layout)

    def between_hosts(self, p: Values, layout: Layout) -> Path:
        return self.socket(p, layout)

    def probing(self, p: Values, layout: Layout) -> float:
        return float(p.look)

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """mprun writes a file of machines and starts a process on each; then every process connects to every other, in order."""
        steps = [StartStep("mprun", manual=1, note="writes .mplite.config: number of processes, program, machines")]
        return steps + [StartStep(f"rank {r}", seconds=p.rsh, note=f"by ssh on {platform.hosts[h].name}") for r, h in enumerate(placement)], ""
