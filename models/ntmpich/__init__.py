"""NT-MPICH of RWTH Aachen (MP-MPICH): MPICH's ADI-2 on two devices of its own, ch_ntshmem on a machine and ch_wsock2 between machines.

On a machine each ordered pair of processes has one packet, whose flag the receiver polls. Up to 8704 B a message is copied into shared memory
and out of it; a longer one sends its address, and the receiver reads the sender's memory with ReadProcessMemory, one copy. With as many
processors as processes they poll without a break; with fewer, a process that has looked 80 times in vain sleeps on an event. Between
machines overlapped socket calls carry header and data together (mpid/ch_ntshmem: shpackets.h, shmeminit.c, lfshmempriv.c,
shmemlargeeager.c, mpiddev.h; mpid/ch_wsock2: wsockinit.c, wsockpriv.cpp, TCPCommunicator.cpp; MP-MPICH as of 2006).
"""

from __future__ import annotations

from random import Random

from retrompi.models._mpich1 import Mpich1
from retrompi.spec.calibrated_range import Range
from retrompi.spec.channels import Cost, Library, Path, direct, eager, rendezvous
from retrompi.spec.layout import Layout
from retrompi.spec.media import Ring, Stream, WaitPolicy
from retrompi.spec.model import Param, StartStep
from retrompi.spec.needs import Needs
from retrompi.spec.platform import Platform
from retrompi.spec.technology import IP
from retrompi.spec.values import Values


class NtMpich(Mpich1):
    name = "ntmpich"
    title = "NT-MPICH"
    version = "MP-MPICH, on MPICH 1.2"
    years = "1999-2006"
    summary = "polled packets and copies of whole messages in shared memory, the receiver's own copy for long ones, overlapped sockets"
    needs = Needs(networks=IP, systems=("win32",), source="assumed: as its devices, which are of Win32", mixed=True)
    calibrated = Range(sizes=("0 B", "4 MiB"), ranks=(2, 2), platforms=("nt-pair",), source="assumed: its devices are fitted to nothing; the machine is, to other runtimes, and MPICH's library on another one (GL94-003)")

    short = Param("1024 B", "B", "what a packet of a pair holds", source="code:MP-MPICH 2006, mpid/ch_ntshmem/shpackets.h: MPID_PKT_MAX_DATA_SIZE (SRC-029)")
    long = Param("8704 B", "B", "longest message that is copied through shared memory; above, the receiver reads the sender's", source="code:MP-MPICH 2006, mpid/ch_ntshmem/shpackets.h: MPID_LONG_LEN (SRC-030)")
    header = Param("128 B", "B", "packet without data", source="code:MP-MPICH 2006, mpid/ch_ntshmem/shpackets.h: MPID_PKT_PAD")
    poll_cost = Param("1 us", "s", "one look at the flags of all senders", source="assumed: a few cache misses", on="nt-pair:server", cost="work", low="0.2 us", high="5 us")
    polls = Param(80, "count", "looks before a process gives up the processor, where there are fewer processors than processes", source="code:MP-MPICH 2006, mpid/ch_ntshmem/mpiddev.h: IDLE")
    event = Param("15 us", "s", "waking a process that sleeps", source="doc:E-REC-15", on="nt-pair:server", cost="os", low="10 us", high="30 us")
    read_memory = Param("20 us", "s", "ReadProcessMemory beside a bare call and the copy", source="assumed: attaching to a process and mapping its pages", on="nt-pair:server", cost="os", low="5 us", high="100 us")
    wait = Param("as processors", "choice", "how a process waits on a machine: it polls, sleeps, or as there are processors", source="code:MP-MPICH 2006, mpid/ch_wsock2/wsockinit.c: mixed", choices=("as processors", "poll", "sleep"))
    ask = Param("128000 B", "B", "size from which a message between machines asks first", source="code:MP-MPICH 2006, mpid/ch_wsock2/wsockinit.c: long_len, in use until December 2005")
    net_short = Param("16384 B", "B", "longest message between machines that passes through a packet of MPICH at either end", source="code:MP-MPICH 2006, mpid/ch_wsock2/packets.h: MPID_PKT_MAX_DATA_SIZE (SRC-028)")
    net_header = Param("24 B", "B", "header of a message between machines: type, tag, size and MPICH's envelope", source="code:MP-MPICH 2006, mpid/ch_wsock2/wsockpriv.h, packets.h: three words each")
    sockbuf = Param("16384 B", "B", "socket buffers", source="code:MP-MPICH 2006, mpid/ch_wsock2/TCPCommunicator.cpp: SetSocketOptions")
    socket_call = Param("90 us", "s", "library and WinSock work of one socket call", source="assumed: as WMPI's, 0.2 ms at 75 MHz (mechanisms.md)", on="nt-pair:server", cost="work", low="20 us", high="675 us")
    connect = Param("20 ms", "s", "time to open a connection, at its first message", source="assumed: as WMPI's", on="nt-pair:server", cost="os", low="5 ms", high="100 ms")

    def sleeps(self, p: Values, layout: Layout) -> bool:
        """Whether processes sleep on events."""
        if p.wait != "as processors":
            return bool(p.wait == "sleep")
        here = list(layout.placement).count(layout.placement[0])
        return here > layout.number("cores") if layout.shares_host else True

    def waits(self, p: Values, layout: Layout) -> WaitPolicy:
        if self.sleeps(p, layout):
            return WaitPolicy("spin_yield", polls=p.polls, poll_cost=p.poll_cost)
        return WaitPolicy("spin", poll_cost=p.poll_cost)

    def calls(self, p: Values, layout: Layout) -> Library:
        return self.both_ends(p, self.waits(p, layout), self.waits(p, layout))

    def within_host(self, p: Values, layout: Layout) -> Path:
        sleeps = self.sleeps(p, layout)
        ring = Ring(
            ("rank", "rank"), packet=max(1, p.long), short_packet=p.short, short_until=p.short, header=p.header, slots=max(1, len(layout.placement) - 1),
            ws_packet=1, event=p.event if sleeps else 0.0, space_wait=self.waits(p, layout),
        )  # fmt: skip
        return Path([ring], [eager(0, p.long + 1), direct(p.long + 1)], direct_call=p.read_memory)

    def between_hosts(self, p: Values, layout: Layout) -> Path:
        tcp = Stream(
            ("rank", "rank"), packet=2.0**40, header=0, message_header=p.net_header, call=p.socket_call, connect=p.connect, io="async",
            first_read=max(1, p.net_header), sndbuf=p.sockbuf, rcvbuf=p.sockbuf,
        )  # fmt: skip
        return Path([tcp], [eager(0, p.ask), rendezvous(p.ask)], short_copies=1, short_until=p.net_short)

    def probing(self, p: Values, layout: Layout) -> Cost | float:
        return float(p.poll_cost)

    def joins(self, platform: Platform, placement: list[int]) -> str:
        """Its devices are Win32's."""
        odd = next((h for h in (platform.hosts[i] for i in placement) if h.family != "win32"), None)
        return "" if odd is None else f"{odd.name} runs {odd.os}; NT-MPICH exists for Win32 only"

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """RexecShell, a window, asks the service of each machine for the processes; the first on a machine creates the others' memory."""
        steps = [StartStep("RexecShell", manual=1, windows=1, note="machines, program, account and password")]
        steps += [StartStep(f"service on {platform.hosts[m].name}", daemons=1, note="logs the user in") for m in sorted(set(placement))]
        return steps + [StartStep(f"rank {r}", note=f"on {platform.hosts[h].name}") for r, h in enumerate(placement)], ""
