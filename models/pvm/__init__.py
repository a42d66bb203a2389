"""PVM 3.4, as its source has it: a task packs a message into fragments, hands them to the daemon (pvmd) of its machine or, on request, to a
TCP connection of its own, and the receiver unpacks them.

A program's sends and receives are pvm_initsend, pvm_pkbyte, pvm_send and pvm_recv, pvm_upkbyte: a message is packed completely before its
first fragment leaves, and unpacked when its last has arrived. By the daemons a fragment passes a Unix-domain socket, pvmd's UDP with one
datagram outstanding (stop and wait), and another Unix-domain socket. Sockets do not block; every read and write follows a select.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from retrompi.models._mpich1 import Mpich1
from retrompi.spec.calibrated_range import Range
from retrompi.spec.channels import Cost, Library, Path
from retrompi.spec.collectives import MPICH1, Choice
from retrompi.spec.layout import Layout
from retrompi.spec.media import BLOCK, Datagram, Stream
from retrompi.spec.model import Param, StartStep
from retrompi.spec.needs import Needs
from retrompi.spec.platform import Platform
from retrompi.spec.sockets import kernel_buffer
from retrompi.spec.technology import IP
from retrompi.spec.values import Values

_NO_CALL = "assumed: PVM has no such call; a program makes it of others as MPICH 1 does"
_OWN = {
    "barrier": ("tree", "assumed: for code:PVM 3.4, pvm3/pvmgs/pvmgsu_core.c, where all ask the group server and wait for its answer"),
    "bcast": ("linear", "code:PVM 3.4, pvm3/pvmgs/pvmgsu_core.c: pvm_bcast is pvm_mcast to every member"),
    "reduce": ("linear", "assumed: members of a host are not combined first, as code:PVM 3.4, pvm3/pvmgs/pvmgsu_aux.c does"),
    "gather": ("linear", "code:PVM 3.4, pvm3/pvmgs/pvmgsu_aux.c"),
    "scatter": ("linear", "code:PVM 3.4, pvm3/pvmgs/pvmgsu_aux.c"),
}
COLLECTIVES = tuple(Choice(c.operation, *_OWN[c.operation]) if c.operation in _OWN else Choice(c.operation, c.algorithm, _NO_CALL) for c in MPICH1)


class Pvm(Mpich1):
    name = "pvm"
    title = "PVM"
    version = "3.4"
    years = "1993-2003"
    summary = "messages are packed into fragments that pass through daemons (UDP, one datagram outstanding) or a task's own TCP connections"
    needs = Needs(networks=IP, systems=("unix",), source="doc:TC02-002: measured under Linux")
    collectives = COLLECTIVES
    calibrated = Range(
        sizes=("8 B", "8 MiB"), ranks=(2, 2), platforms=("p4-1800*2@ge-ga620", "p4-1800*2@ge-trendnet", "alpha-ds20*2@ge-syskonnect-jumbo"),
        source="doc:TC02-002: the machines are fitted to raw TCP, PVM to nothing",
    )  # fmt: skip

    route = Param("daemon", "choice", "how messages travel: through the daemons, or directly (PvmRouteDirect)", source="code:PVM 3.4, pvm3/src/lpvm.c: pvmrouteopt, PvmAllowDirect", choices=("daemon", "direct"))
    encoding = Param("default", "choice", "what pvm_initsend is given: PvmDataDefault (XDR), PvmDataRaw, PvmDataInPlace (nothing is packed)", source="code:PVM 3.4, pvm3/src/lpvmpack.c: pvm_mkbuf", choices=("default", "raw", "inplace"))
    data = Param("bytes", "choice", "what the program packs: bytes, or words (int, float, double), which PvmDataDefault converts one by one", source="code:NetPIPE, pvm.c: pvm_pkbyte", choices=("bytes", "words"))
    local = Param("unix", "choice", "sockets between a task and its daemon, by PVM's configuration for the system: Linux and SunOS have Unix-domain sockets", source="code:PVM 3.4, pvm3/conf: -DNOUNIXDOM of LINUXALPHA, SUNMP, SGIMP, RS6KMP and others means TCP", choices=("unix", "tcp"))
    fragment = Param("4080 B", "B", "length of a fragment with room for its headers", source="code:PVM 3.4, pvm3/src/global.h: UDPMAXLEN (SRC-021)", low="1 KiB", high="64 KiB")
    fragment_header = Param("16 B", "B", "header of a fragment, between tasks and daemons and between daemons", source="code:PVM 3.4, pvm3/include/pvmproto.h: TDFRAGHDR, DDFRAGHDR")
    message_header = Param("32 B", "B", "header of a message, in its first fragment", source="code:PVM 3.4, pvm3/src/global.h: MSGHDRLEN")
    direct_buffer = Param("32 KiB", "B", "socket buffers of a direct route", source="code:PVM 3.4, pvm3/src/lpvm.c: TTSOCKBUF (SRC-022)", low="4 KiB", high="512 KiB")
    unix_buffer = Param("64 KiB", "B", "what a Unix-domain socket holds", source="code:Linux 2.4, net/core/sock.c: sysctl_wmem_default", low="4 KiB", high="128 KiB")
    udp_window = Param(1, "count", "datagrams to a daemon that may be unacknowledged", source="code:PVM 3.4, pvm3/src/pvmd.c: nopax", low=1, high=16)
    udp_timeout = Param("2 s", "s", "time until the first retry: twice the estimated round trip, which begins with 1 s; the source adapts it, this model does not", source="code:PVM 3.4, pvm3/src/host.c: hd_rtt; pvmd.c: pk_rta", cost="time", low="2 ms", high="18 s")
    udp_retries = Param(10, "count", "retries after which a daemon gives up a host", source="code:PVM 3.4, pvm3/include/pvmproto.h: DDMINRETRIES")
    loss = Param(0, "probability", "probability that a datagram is lost", source="assumed: a network of its own loses none", low=0, high=1)
    length = Param(2, "1", "library work of a message relative to MPICH 1's: fragments, buffers and routes are looked up in lists", source="assumed: from the length of the code, a factor of three both ways", low=0.67, high=6)
    fragment_length = Param(0.25, "1", "library work of a fragment at either end, relative to MPICH 1's of a message", source="assumed: from the length of the code, a factor of three both ways", low=0.08, high=0.75)
    daemon_length = Param(0.5, "1", "work of a daemon for a fragment, relative to MPICH 1's of a message", source="assumed: from the length of the code, a factor of three both ways", low=0.17, high=1.5)
    xdr_byte = Param("60 ns/B", "s/B", "time to convert a byte of words by XDR, at each end", source="assumed: as in WMPI: a call for each word of 4 B, nine cycles a byte", on="nt-pair:server", cost="work", low="20 ns/B", high="200 ns/B")
    socket_call = Param("0.2 us", "s", "library work of a socket call", source="assumed: a few hundred cycles; the sets of descriptors are copied", on="p4-1800:n1", cost="work", low="0.05 us", high="1 us")
    connect = Param("3 ms", "s", "opening a direct route: a request and its answer through the daemons", source="assumed: two messages by the default route and a connection", on="p4-1800:n1", cost="os", low="0.5 ms", high="20 ms")
    look = Param("1.5 us", "s", "looking for a message in vain (pvm_nrecv, pvm_probe): a select and two readings of the clock", source="assumed: three null system calls", on="p4-1800:n1", cost="os", low="0.5 us", high="5 us")

    def calls(self, p: Values, layout: Layout) -> Library:
        work = p.length * p.library / 2  # `library` is both ends'
        return Library(work, work, BLOCK, BLOCK)

    def payload(self, p: Values) -> float:
        """Bytes of a message in a fragment: pmsg_extend leaves room for the headers of fragment and message. In place, all of them."""
        return 2.0**40 if p.encoding == "inplace" else max(1.0, p.fragment - p.fragment_header - p.message_header)

    def path(self, p: Values, hops: Sequence[Stream | Datagram], idle: bool) -> Path:
        """``hops`` between packing and unpacking; ``idle``: with daemons."""
        words = p.encoding == "default" and p.data == "words"
        return Path(
            hops, idle={"pvmd": BLOCK} if idle else {}, forward_cost={"pvmd": p.daemon_length * p.library} if idle else {},
            pack=0 if words or p.encoding == "inplace" else 1, unpack=0 if words else 1, pack_byte=p.xdr_byte if words else 0,
        )  # fmt: skip

    def socket(self, p: Values, ends: tuple[str, str], *, local: bool, buffer: float, calls_in: float) -> Stream:
        """A connection between two tasks, or a task and its daemon. A task reads at most once after each select."""
        unix = local and p.local == "unix"
        # Data in place are written after their header, from where they are.
        return Stream(
            ends, packet=self.payload(p), header=p.fragment_header, message_header=p.message_header, call=p.socket_call, calls_out=2, calls_in=calls_in,
            header_read=True, header_write=p.encoding == "inplace", domain="unix" if unix else "inet", by_segment=not unix,
            sndbuf=buffer / 2 if unix else buffer, rcvbuf=buffer / 2 if unix else buffer,
            send_cpu=p.fragment_length * p.library if ends[0] == "rank" else 0, recv_cpu=p.fragment_length * p.library if ends[1] == "rank" else 0,
            connect=p.connect if ends == ("rank", "rank") else 0,
        )  # fmt: skip

    def to_daemon(self, p: Values) -> Stream:
        """The daemon reads header and body of a fragment after one select."""
        return self.socket(p, ("rank", "pvmd@src"), local=True, buffer=self.task_buffer(p), calls_in=1.5)

    def from_daemon(self, p: Values) -> Stream:
        return self.socket(p, ("pvmd@dst", "rank"), local=True, buffer=self.task_buffer(p), calls_in=2)

    def task_buffer(self, p: Values) -> float:
        """Of a connection between task and daemon (B); PVM leaves TCP's to the system."""
        return float(p.unix_buffer) if p.local == "unix" else 0.0

    def within_host(self, p: Values, layout: Layout) -> Path:
        """Two tasks of one machine: through its daemon, or a socket between them."""
        if p.route == "daemon":
            return self.path(p, [self.to_daemon(p), self.from_daemon(p)], True)
        buffer = self.task_buffer(p) or kernel_buffer(layout, p.direct_buffer)
        return self.path(p, [self.socket(p, ("rank", "rank"), local=True, buffer=buffer, calls_in=2)], False)

    def between_hosts(self, p: Values, layout: Layout) -> Path:
        """Task, daemon, daemon, task; or one TCP connection."""
        if p.route == "direct":
            buffer = kernel_buffer(layout, p.direct_buffer)
            return self.path(p, [self.socket(p, ("rank", "rank"), local=False, buffer=buffer, calls_in=2)], False)
        # Around each of its calls a daemon selects and reads the clock for its retries.
        datagrams = Datagram(
            ("pvmd@src", "pvmd@dst"), packet=max(1.0, p.fragment - p.fragment_header - p.message_header), header=p.fragment_header,
            message_header=p.message_header, call=p.socket_call, calls_out=2, calls_in=3, timeout=p.udp_timeout, retries=p.udp_retries,
            window=p.udp_window, loss=p.loss,
        )  # fmt: skip
        return self.path(p, [self.to_daemon(p), datagrams, self.from_daemon(p)], True)

    def probing(self, p: Values, layout: Layout) -> Cost:
        return Cost(os=p.look)

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """The console starts the first daemon, which starts the others by rsh; spawned tasks connect to their machine's daemon."""
        machines = list(dict.fromkeys(placement))
        steps = [StartStep("pvm", manual=1, windows=1, daemons=1, note=f"console and first pvmd, on {platform.hosts[machines[0]].name}; refuses to start beside a socket file left by a crash")]
        steps += [
            StartStep(f"add {platform.hosts[m].name}", daemons=1, note="rsh starts a pvmd; five hosts at a time, each given up after 60 s") for m in machines[1:]
        ]
        steps += [StartStep("task 0", manual=1, note="started by hand; pvm_mytid connects it to the daemon")]
        steps += [StartStep(f"task {r}", note=f"spawned by the pvmd of {platform.hosts[h].name}") for r, h in enumerate(placement) if r]
        return steps, ""
