"""HPVM 1.0's FM-MPI over WinSock 2: MPICH's ADI on Fast Messages, packets over TCP, also on one machine [BF-CFG-12].
A receive polls FM_extract and never yields the processor [BF-SM-20: not made for processes on one processor]."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

from retrompi.spec.calibrated_range import Range
from retrompi.spec.channels import Cost, Library, Path, wait_by
from retrompi.spec.layout import Layout
from retrompi.spec.media import BLOCK, Stream
from retrompi.spec.model import Param, RuntimeModel, StartStep
from retrompi.spec.needs import Needs
from retrompi.spec.platform import Platform
from retrompi.spec.technology import IP
from retrompi.spec.values import Values


class Hpvm(RuntimeModel):
    name = "hpvm"
    title = "HPVM (FM-MPI over WinSock)"
    version = "1.0"
    years = "1997-1998"
    summary = "Fast Messages packets over WinSock with credits; receives poll without yielding"
    needs = Needs(networks=IP, systems=("win32",), source="paper:BF-FUN-15: Fast Messages over WinSock", mixed=True)
    fits_platform = ("nic_rate",)  # HPVM drives the card directly, so its peak rate is that of the card [BF-DM-16]
    calibrated = Range(sizes=("0 B", "4 MiB"), ranks=(2, 2), platforms=("nt-pair",), source="paper:BF-SM-04, BF-DM-01: PingPong of two processes")

    packet = Param("2 KiB", "B", "payload of an FM packet", source="assumed: FM 2.x packets over WinSock", low="256 B", high="4 KiB")
    header = Param("24 B", "B", "FM packet header", source="assumed: FM 2.x header", low="16 B", high="40 B")
    window = Param("64 KiB", "B", "packet buffer of a receiver, for which FM gives its senders credits; as large as TCP's largest window", source="doc:E-NT-07", low="48 KiB", high="64 KiB")
    sends_extract = Param("yes", "choice", "whether a send that waits for credits extracts incoming packets meanwhile", source="assumed: MPI demands that two ranks may send to each other", choices=("no", "yes"))
    rcvbuf = Param("65535 B", "B", "socket receive buffer", source="doc:E-NT-07")
    receive = Param("spin", "choice", "how a receive waits", source="assumed: FM_extract polls without yielding", choices=("spin", "spin_yield", "block"))
    polls = Param(50, "count", "polls before a yielding receive gives up the processor", source="code:E-P4-07")
    poll_cost = Param("20 us", "s", "one call of FM_extract on an idle socket", source="assumed: a select() of a few system calls", on="nt-pair:server", cost="os", low="5 us", high="100 us")
    library = Param("50 us", "s", "library work of a send or a receive", source="assumed: as the other runtimes', which is 65 to 95 us with their events", on="nt-pair:server", cost="work", low="10 us", high="200 us")
    network_calls = Param("1 ms", "s", "system calls per message between machines, at each end", source="fit:fit.toml", on="nt-pair:server", cost="os", low="50 us", high="2 ms")
    packet_cost = Param("10 us", "s", "library work per FM packet, at each end", source="assumed: below one socket call", on="nt-pair:server", cost="work", low="1 us", high="60 us")
    socket_call = Param("20 us", "s", "WinSock work of one socket call for a packet", source="assumed: below the others', calls are made for each packet", on="nt-pair:server", cost="work", low="5 us", high="100 us")
    connect = Param("20 ms", "s", "time to open a connection, at its first message", source="assumed: as p4 does", on="nt-pair:server", cost="os", low="5 ms", high="100 ms")
    buffer = Param("2 MiB", "B", "fixed buffer for unexpected messages; it cannot be enlarged by the user", source="paper:BF-FUN-09", low="256 KiB", high="8 MiB")
    nagle = Param(0, "count", "1: Nagle's algorithm enabled", source="code:E-P4-11")

    def hop(self, p: Values, message_call: float, senders: int = 1) -> Stream:
        """TCP from rank to rank, on one machine and between two; a receiver's fixed region is divided among its ``senders``."""
        return Stream(
            ("rank", "rank"), packet=p.packet, header=p.header, call=p.socket_call, send_cpu=p.packet_cost, recv_cpu=p.packet_cost, message_call=message_call,
            rcvbuf=p.rcvbuf, connect=p.connect, credits=max(1, math.ceil(p.window / p.packet / senders)), nagle=p.nagle, progress=p.sends_extract == "yes",
        )  # fmt: skip

    def calls(self, p: Values, layout: Layout) -> Library:
        receive = wait_by(p.receive, lambda: p.polls, lambda: Cost(os=p.poll_cost))
        return Library(p.library, p.library, receive, BLOCK, p.buffer)

    def within_host(self, p: Values, layout: Layout) -> Path:
        return Path([self.hop(p, 0.0, self.senders(layout))])

    def between_hosts(self, p: Values, layout: Layout) -> Path:
        return Path([self.hop(p, p.network_calls, self.senders(layout))])

    def senders(self, layout: Layout) -> int:
        """Number of senders among which a receiver's region is divided."""
        return max(1, len(layout.placement) - 1)

    def probing(self, p: Values, layout: Layout) -> Cost:
        return Cost(os=p.poll_cost)

    def joins(self, platform: Platform, placement: list[int]) -> str:
        """FM sends data unconverted, so all machines must have the same byte order [BF-FUN-15]."""
        odd = next((h for h in (platform.hosts[i] for i in placement) if h.byte_order != platform.hosts[placement[0]].byte_order), None)
        if odd is None:
            return ""
        first = platform.hosts[placement[0]]
        return f"{odd.name} is {odd.byte_order} endian and {first.name} {first.byte_order} endian; FM converts no data"

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """A Context Manager on every machine and one Global Resource Manager, all restarted by hand for each job [BF-FUN-16]."""
        machines = sorted(set(placement))
        steps = [StartStep("Global Resource Manager", manual=1, windows=1, daemons=1, note=f"on {platform.hosts[machines[0]].name}")]
        for m in machines:
            name = platform.hosts[m].name
            steps.append(StartStep(f"Context Manager on {name}", manual=1, windows=1, daemons=1))
            steps.append(StartStep(f"program on {name}", manual=1, windows=1))
        return steps, ""


class BlindSend(Hpvm):
    name = "hpvm:blind-send"
    title = "HPVM whose sends do not extract packets while they wait for credits"
    version = "1.0"
    years = "1997-1998"
    summary = "rival: exchanges larger than a sender's share of the packet buffer hang"
    variant_note = "Rival: programs hang because a send without credits does not extract incoming packets; only FM_extract in a receive does."

    sends_extract = Param("no", "choice", "whether a send that waits for credits extracts incoming packets meanwhile", source="assumed: rival; FM leaves it to the program when communication is processed", choices=("no", "yes"))


class DelayedAck(Hpvm):
    name = "hpvm:delayed-ack"
    title = "HPVM with a yielding receive, delayed by the delayed acknowledgement"
    version = "1.0"
    years = "1997-1998"
    summary = "rival to spinning for a quantum: Nagle's algorithm waits for an acknowledgement that the receiver delays"
    variant_note = "Rival: the 121 ms are due to Nagle's algorithm waiting for a 200 ms delayed acknowledgement, not to a quantum spent spinning."

    receive = Param("block", "choice", "how a receive waits", source="assumed: rival hypothesis of mechanisms.md", choices=("spin", "spin_yield", "block"))
    nagle = Param(1, "count", "1: Nagle's algorithm enabled", source="assumed: rival hypothesis of mechanisms.md")
    pieces = Param(2, "count", "socket writes per message: header and data", source="assumed: FM 2.x gathers pieces")

    def hop(self, p: Values, message_call: float, senders: int = 1) -> Stream:
        # The header goes out alone and is acknowledged late; the data wait for that acknowledgement.
        return replace(super().hop(p, message_call, senders), header_write=p.pieces > 1)
