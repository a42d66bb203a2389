"""WinMPICH: MPICH for Win32 from Mississippi State. On one machine packets go through a region of shared memory; between
machines a proxy process per host carries them: rank -> shared memory -> proxy -> TCP -> proxy -> shared memory -> rank
[BF-CFG-09, BF-CFG-10]. The proxy waits on its sockets with a time-out and polls shared memory when it expires."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from retrompi.spec.calibrated_range import Range
from retrompi.spec.channels import Library, Path
from retrompi.spec.layout import Layout
from retrompi.spec.media import BLOCK, Ring, Stream, WaitPolicy
from retrompi.spec.model import Param, RuntimeModel, StartStep
from retrompi.spec.needs import Needs
from retrompi.spec.platform import Platform
from retrompi.spec.technology import IP
from retrompi.spec.values import Values


class WinMpich(RuntimeModel):
    name = "winmpich"
    title = "WinMPICH"
    version = "0.92 beta"
    years = "1996-1998"
    summary = "shared-memory packets signalled by events; a proxy process per host between machines"
    needs = Needs(networks=IP, systems=("win32",), source="paper:BF-FUN-15: events, shared regions and proxies of Win32", mixed=True)
    calibrated = Range(sizes=("0 B", "4 MiB"), ranks=(2, 2), platforms=("nt-pair",), source="paper:BF-SM-04, BF-DM-01: PingPong of two processes")

    packet = Param("4 KiB", "B", "size of a packet in shared memory between ranks", source="assumed: one page; the fit's claims do not determine it", low="512 B", high="16 KiB")
    header = Param("32 B", "B", "packet header", source="assumed: the ADI's packet head", low="16 B", high="64 B")
    slots = Param(8, "count", "packets that a process's shared region holds", source="assumed: a small ring", low=2, high=64)
    copies = Param(2, "count", "copies of a message: into the region and out of it (segmented, reassembled)", source="paper:BF-CFG-10")
    live = Param(2, "count", "user memory in use around a copy, in multiples of the message size", source="assumed: the buffers of both ranks; the region is small and counted by itself", low=2, high=4)
    library = Param("80 us", "s", "library work of a send or a receive", source="fit:fit.toml", on="nt-pair:server", cost="work", low="10 us", high="150 us")
    event = Param("30 us", "s", "signalling and reassembly of a packet through an event", source="fit:fit.toml", on="nt-pair:server", cost="os", low="30 us", high="100 us")
    proxy_packet = Param("1024 B", "B", "size of a packet between a rank and its proxy, headers included", source="code:E-P4-02", low="512 B", high="16 KiB")
    proxy_slots = Param(1, "count", "packets that the region between a rank and its proxy holds", source="assumed: one message slot per process", low=1, high=4)
    proxy_timeout = Param("3 ms", "s", "time-out of the proxy's select()", source="fit:fit.toml", cost="time", low="1 ms", high="20 ms")
    proxy_drains = Param("no", "choice", "whether a proxy that waits for buffer space accepts incoming packets meanwhile", source="assumed: one thread that routes packet after packet", choices=("no", "yes"))
    send_drains = Param("yes", "choice", "whether a rank that waits for buffer space accepts incoming packets meanwhile", source="assumed: as MPICH's shared-memory device does", choices=("no", "yes"))
    proxy_cost = Param("100 us", "s", "routing a packet by its destination field", source="assumed: a few system calls", on="nt-pair:server", cost="work", low="20 us", high="400 us")
    proxy_wait = Param("poll", "choice", "how the proxy waits for shared memory", source="assumed: polls when its select() times out", choices=("poll", "event"))
    socket_call = Param("200 us", "s", "library and WinSock work of one socket call", source="assumed: range of the other NT runtimes", on="nt-pair:server", cost="work", low="50 us", high="675 us")
    proxy = Param("yes", "choice", "whether messages between machines pass through a proxy; no: ranks own the sockets", source="paper:BF-CFG-09", choices=("yes", "no"))
    region_jitter = Param("1 s", "s", "spread of the times at which processes and proxies start", source="assumed: programs started by hand on loaded machines", cost="time")
    region_gap = Param("394 ms", "s", "time between the start of a proxy and the attachment of its rank", source="fit:fit.toml", cost="time", low="0 ms", high="1 s")

    def shared(self, p: Values, between: tuple[str, str], by_event: bool) -> Ring:
        """A hop through shared memory: between ranks, or between a rank and its proxy."""
        ranks = between == ("rank", "rank")
        return Ring(
            between, packet=p.packet if ranks else p.proxy_packet - p.header, header=p.header,
            slots=p.slots if ranks else p.proxy_slots, copies_in=p.copies / 2, copies_out=p.copies / 2,
            ws_message=p.live, event=p.event, by_event=by_event,
            progress=(p.send_drains if between[0] == "rank" else p.proxy_drains) == "yes",
        )  # fmt: skip

    def calls(self, p: Values, layout: Layout) -> Library:
        return Library(p.library, p.library, BLOCK, BLOCK)

    def within_host(self, p: Values, layout: Layout) -> Path:
        return Path([self.shared(p, ("rank", "rank"), True)])

    def between_hosts(self, p: Values, layout: Layout) -> Path:
        """With the proxies, or by sockets of the ranks themselves."""
        tcp = {"packet": p.proxy_packet - p.header, "header": p.header, "call": p.socket_call}
        if p.proxy == "no":
            return Path([Stream(("rank", "rank"), progress=p.send_drains == "yes", **tcp)])
        idle = WaitPolicy("poll", period=p.proxy_timeout) if p.proxy_wait == "poll" else BLOCK
        hops = [
            self.shared(p, ("rank", "proxy@src"), p.proxy_wait == "event"),
            Stream(("proxy@src", "proxy@dst"), progress=p.proxy_drains == "yes", **tcp),
            self.shared(p, ("proxy@dst", "rank"), True),
        ]
        return Path(hops, idle={"proxy": idle}, forward_cost={"proxy": p.proxy_cost})

    def probing(self, p: Values, layout: Layout) -> float:
        return float(p.event)

    def joins(self, platform: Platform, placement: list[int]) -> str:
        """Events, shared regions and proxies are Win32's [BF-FUN-15]."""
        odd = next((h for h in (platform.hosts[i] for i in placement) if h.family != "win32"), None)
        return "" if odd is None else f"{odd.name} runs {odd.os}; WinMPICH exists for Win32 only"

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """MPIrun asks the MPIserve of each machine for the ranks; between machines a proxy on each creates the region they attach to.

        There is no synchronization: a rank that attaches before its proxy has created the region aborts the start [BF-FUN-12].
        """
        machines = sorted(set(placement))
        steps = [StartStep("MPIrun", manual=1, note="on one machine")]
        reason = ""
        for m in machines if len(machines) > 1 else []:
            name = platform.hosts[m].name
            ready = p.region_jitter * draw.random()
            attach = p.region_gap + p.region_jitter * draw.random()
            steps.append(StartStep(f"proxy on {name}", windows=1, daemons=1, seconds=ready, note="MPIserve starts it; makes the shared region"))
            if attach < ready and not reason:
                reason = f"a rank on {name} attached {ready - attach:.3f} s before the proxy had made its shared region"
        steps += [StartStep(f"rank {r}", windows=1, note=f"on {platform.hosts[h].name}") for r, h in enumerate(placement)]
        return steps, reason


class DeafSend(WinMpich):
    name = "winmpich:deaf-send"
    title = "WinMPICH whose sends accept no packets while they wait for buffer space"
    version = "0.92 beta"
    years = "1996-1998"
    summary = "rival: a rank and its proxy wait for each other when both have packets for the other"
    variant_note = "Rival: progress is one-directional, so that ranks on different machines hang if they send while packets arrive for them."

    send_drains = Param("no", "choice", "whether a rank that waits for buffer space accepts incoming packets meanwhile", source="assumed: rival hypothesis of mechanisms.md", choices=("no", "yes"))


class TickFreeProxy(WinMpich):
    name = "winmpich:delayed-ack"
    title = "WinMPICH with an event-driven proxy and 16 KiB segments delayed by the delayed acknowledgement"
    version = "0.92 beta"
    years = "1996-1998"
    summary = "rival to the polling proxy: large packets, a small send buffer, Nagle's algorithm and the delayed acknowledgement"
    variant_note = "Rival: the 80 KB/s are due to 16 KiB segments held by a 200 ms delayed acknowledgement, not to a proxy that polls once per clock tick."

    proxy_wait = Param("event", "choice", "how the proxy waits for shared memory", source="assumed: rival hypothesis of mechanisms.md", choices=("poll", "event"))
    proxy_packet = Param("16 KiB", "B", "size of a packet between a rank and its proxy, headers included", source="code:E-P4-02", low="512 B", high="16 KiB")

    def between_hosts(self, p: Values, layout: Layout) -> Path:
        path = super().between_hosts(p, layout)
        return replace(path, hops=[replace(hop, nagle=True) if isinstance(hop, Stream) else hop for hop in path.hops])
