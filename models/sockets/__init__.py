"""No MPI at all: a program that writes to and reads from TCP sockets itself, such as a tool that copies disks between machines."""

from __future__ import annotations

from random import Random
from typing import Any

from retrompi.spec import channels as rows
from retrompi.spec.calibrated_range import Range
from retrompi.spec.model import Param, RuntimeModel, StartStep, Values
from retrompi.spec.platform import Platform


class Sockets(RuntimeModel):
    name = "sockets"
    title = "TCP sockets, no library"
    version = "BSD sockets, WinSock 1.1 and 2"
    years = "1983-"
    summary = "a program's own connections: every message is passed directly to the system's TCP"
    calibrated = Range(sizes=("1000 kB", "1000 kB"), ranks=(2, 2), platforms=("myrinet-piii",), source="paper:LW-R-05: chunks of the replication tool")

    header = Param("8 B", "B", "header that the program sends before a block: its number and length", source="assumed: two words", low="0 B", high="64 B")
    call = Param("5 us", "s", "work of one socket call in addition to the bare system call", source="assumed: E-NT-10's kernel path at several hundred MHz", low="1 us", high="20 us")
    connect = Param("1 ms", "s", "time to open a connection, at its first use", source="assumed: a few exchanges of segments", low="0.2 ms", high="20 ms")
    receive = Param("block", "choice", "how a read waits", source="assumed: blocking sockets", choices=("block", "spin"))
    poll_cost = Param("5 us", "s", "one poll of an idle socket, if the read spins", source="assumed: a system call", low="1 us", high="20 us")

    def compile(self, p: Values, platform: Platform, placement: list[int]) -> dict[str, Any]:
        wait = rows.wait(p.receive, poll_cost=p.poll_cost)
        hop = rows.stream(
            ("rank", "rank"), packet=2.0**40, header=p.header, call=p.call, connect=p.connect, ws_packet=0, ws_fixed=2.0**30, space_wait=wait
        )
        return rows.compiled(
            platform, placement, same=[hop], remote=[hop], protocol_same=[rows.eager()], protocol_remote=[rows.eager()],
            send_cpu=0, recv_cpu=0, test_cpu=p.poll_cost, recv_wait=wait, send_wait=wait,
        )  # fmt: skip

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """Nothing starts such a program for the user."""
        return [StartStep(f"process {r}", manual=1, note=f"on {platform.hosts[h].name}") for r, h in enumerate(placement)], ""
