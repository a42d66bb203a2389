"""No MPI: a program that uses TCP sockets directly, such as a tool that copies disks between machines."""

from __future__ import annotations

from retrompi.models._bare import Bare
from retrompi.spec.calibrated_range import Range
from retrompi.spec.channels import Cost, Path, wait_by
from retrompi.spec.layout import Layout
from retrompi.spec.media import Ring, Stream, WaitPolicy
from retrompi.spec.model import Param
from retrompi.spec.needs import Needs
from retrompi.spec.platform import Platform
from retrompi.spec.technology import IP
from retrompi.spec.values import Values


class Sockets(Bare):
    name = "sockets"
    title = "TCP sockets, no library"
    version = "BSD sockets, WinSock 1.1 and 2"
    years = "1983-"
    summary = "a program's own connections: every message is passed directly to the system's TCP"
    needs = Needs(networks=IP, source="assumed: every system of the library has TCP sockets, where its network carries IP")
    calibrated = Range(sizes=("1000 kB", "1000 kB"), ranks=(2, 2), platforms=("myrinet-piii",), source="paper:LW-R-05: chunks of the replication tool")

    header = Param("8 B", "B", "header that the program sends before a block: its number and length", source="assumed: two words", low="0 B", high="64 B")
    call = Param("5 us", "s", "work of one socket call in addition to the bare system call", source="assumed: E-NT-10's kernel path at several hundred MHz", on="myrinet-piii:n1", cost="work", low="1 us", high="20 us")
    connect = Param("1 ms", "s", "time to open a connection, at its first use", source="assumed: a few exchanges of segments", on="myrinet-piii:n1", cost="os", low="0.2 ms", high="20 ms")
    receive = Param("block", "choice", "how a read waits", source="assumed: blocking sockets", choices=("block", "spin"))
    poll_cost = Param("5 us", "s", "one poll of an idle socket, if the read spins", source="assumed: a system call", on="myrinet-piii:n1", cost="os", low="1 us", high="20 us")

    def waits(self, p: Values) -> WaitPolicy:
        """How a read waits for data, and a write for buffer space."""
        return wait_by(p.receive, lambda: 1, lambda: Cost(os=p.poll_cost))

    def connection(self, p: Values) -> Path:
        return Path([
            Stream(("rank", "rank"), packet=2.0**40, header=p.header, call=p.call, connect=p.connect, space_wait=self.waits(p))
        ])  # fmt: skip

    def within_host(self, p: Values, layout: Layout) -> Path:
        return self.connection(p)

    def between_hosts(self, p: Values, layout: Layout) -> Path:
        return self.connection(p)

    def probing(self, p: Values, layout: Layout) -> Cost:
        return Cost(os=p.poll_cost)


class Netpipe(Sockets):
    name = "sockets:netpipe"
    title = "TCP sockets, a program that measures them"
    version = "NetPIPE 2 and 3, ttcp"
    years = "1984-"
    summary = "the same buffer is sent again and again, so that it stays in the caches while it fits; no header"
    variant_note = "What raw TCP is published with: buffers are reused, nothing but the data is sent, the system sends each segment as it is copied."
    calibrated = Range(
        sizes=("8 B", "8 MiB"), ranks=(2, 2), platforms=("p4-1800*2@ge-ga620", "p4-1800*2@ge-trendnet", "p4-1800*2@ip-gm-pci64a", "alpha-ds20*2@ge-syskonnect-jumbo", "xeon-2000*2@ip-gm-pci64c"),
        source="doc:TC02-002: curves_turner2002_layers.csv and curves_teg2004_layers.csv",
    )  # fmt: skip

    header = Param("0 B", "B", "header that the program sends before a block", source="code:NetPIPE's TCP module sends the buffer alone", low="0 B", high="64 B")
    call = Param("0.2 us", "s", "work of one socket call in addition to the bare system call", source="assumed: a few hundred cycles of the program's loop", on="p4-1800:n1", cost="work", low="0.05 us", high="5 us")

    def connection(self, p: Values) -> Path:
        return Path([
            Stream(("rank", "rank"), packet=2.0**40, header=p.header, call=p.call, connect=p.connect, by_segment=True, space_wait=self.waits(p))
        ])  # fmt: skip


class Pipe(Sockets):
    name = "sockets:pipe"
    title = "a pipe between two processes"
    version = "Unix"
    years = "1973-"
    summary = "the system copies what is written into the pipe's buffer, and out of it for the reader"
    needs = Needs(systems=("unix",), source="doc:LM96-054: pipes of Unix; no network is used")
    variant_note = "A pipe instead of TCP, on one host: what lmbench's context switch, pipe latency and pipe bandwidth measure."
    calibrated = Range(sizes=("1 B", "64 KiB"), ranks=(2, 2), platforms=("linux-i686", "sun-ultra1", "ibm-power2", "ibm-43p"), source="doc:LM96-054: pipe latencies of four systems")

    buffer = Param("4 KiB", "B", "what the pipe holds", source="code:Linux 1.3 and 2.0, fs/pipe.c: one page", low="4 KiB", high="64 KiB")
    operation = Param("9 us", "s", "a write and the read of it, for the system", source="fit:fit.toml", on="nt-pair:server", cost="os", low="4 us", high="24 us")

    def within_host(self, p: Values, layout: Layout) -> Path:
        return Path([
            Ring(("rank", "rank"), packet=p.buffer, header=0, slots=1, event=p.operation, space_wait=self.waits(p))
        ])  # fmt: skip

    def joins(self, platform: Platform, placement: list[int]) -> str:
        return "" if len(set(placement)) == 1 else "a pipe joins processes of one machine"
