"""No MPI: a program that uses TCP sockets directly, such as a tool that copies disks between machines."""

from __future__ import annotations

from random import Random

from retrompi.spec.calibrated_range import Range
from retrompi.spec.channels import Cost, Library, Path, wait_by
from retrompi.spec.layout import Layout
from retrompi.spec.media import Stream, WaitPolicy
from retrompi.spec.model import Param, RuntimeModel, StartStep
from retrompi.spec.platform import Platform
from retrompi.spec.values import Values


class Sockets(RuntimeModel):
    name = "sockets"
    title = "TCP sockets, no library"
    version = "BSD sockets, WinSock 1.1 and 2"
    years = "1983-"
    summary = "a program's own connections: every message is passed directly to the system's TCP"
    calibrated = Range(sizes=("1000 kB", "1000 kB"), ranks=(2, 2), platforms=("myrinet-piii",), source="paper:LW-R-05: chunks of the replication tool")

    header = Param("8 B", "B", "header that the program sends before a block: its number and length", source="assumed: two words", low="0 B", high="64 B")
    call = Param("5 us", "s", "work of one socket call in addition to the bare system call", source="assumed: E-NT-10's kernel path at several hundred MHz", on="myrinet-piii:n1", cost="work", low="1 us", high="20 us")
    connect = Param("1 ms", "s", "time to open a connection, at its first use", source="assumed: a few exchanges of segments", on="myrinet-piii:n1", cost="os", low="0.2 ms", high="20 ms")
    receive = Param("block", "choice", "how a read waits", source="assumed: blocking sockets", choices=("block", "spin"))
    poll_cost = Param("5 us", "s", "one poll of an idle socket, if the read spins", source="assumed: a system call", on="myrinet-piii:n1", cost="os", low="1 us", high="20 us")

    def waits(self, p: Values) -> WaitPolicy:
        """How a read waits for data, and a write for buffer space."""
        return wait_by(p.receive, lambda: 1, lambda: Cost(os=p.poll_cost))

    def calls(self, p: Values, layout: Layout) -> Library:
        return Library(0, 0, self.waits(p), self.waits(p))

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

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """The user starts such a program manually."""
        return [StartStep(f"process {r}", manual=1, note=f"on {platform.hosts[h].name}") for r, h in enumerate(placement)], ""
