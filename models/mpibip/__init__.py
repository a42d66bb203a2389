"""MPI-BIP: MPICH's ADI on BIP (Basic Interface for Parallelism) over Myrinet, under Linux and Windows 2000.

A short message is written to the card by the processor and copied out of a receive buffer; a long one is pinned at both ends and moved
by the card directly between the users' buffers. Pinning is the only system call on the path [LW-06].
"""

from __future__ import annotations

from random import Random

from retrompi.spec.calibrated_range import Range
from retrompi.spec.channels import Library, Path, eager, rendezvous
from retrompi.spec.layout import Layout
from retrompi.spec.media import Dma, Ring, WaitPolicy
from retrompi.spec.model import Param, RuntimeModel, StartStep
from retrompi.spec.needs import Needs
from retrompi.spec.platform import Platform
from retrompi.spec.values import Values


class MpiBip(RuntimeModel):
    name = "mpibip"
    title = "MPI-BIP under Linux"
    version = "MPICH 1.1 on BIP 0.99"
    years = "1999-2001"
    summary = "programmed I/O for short messages, zero-copy DMA with pinning for long ones"
    needs = Needs(networks=("myrinet",), systems=("linux",), source="paper:LW-01: BIP is firmware of a Myrinet card, under Linux")
    calibrated = Range(
        sizes=("0 B", "128 MiB"), ranks=(1, 16), platforms=("myrinet-piii",),
        source="paper:LW-NAS-ISA-L01-T to LW-NAS-ISB-L16-T: NAS IS and LU; the keys of IS class B are 128 MiB",
    )  # fmt: skip

    library = Param("1.5 us", "s", "MPICH's ADI and matching, per call", source="assumed: half of the 2-4 us of mechanisms.md", on="myrinet-piii:n1", cost="work", low="1 us", high="2 us")
    overhead = Param("1 us", "s", "BIP's own work per packet, at each end", source="assumed: low end of 1-3 us (E-BIP-01: 4.3 us in all on older hosts)", on="myrinet-piii:n1", cost="work", low="0.5 us", high="3 us")
    header = Param("16 B", "B", "size of a message envelope", source="assumed: four words", low="8 B", high="40 B")
    short = Param("1 KiB", "B", "longest message that is sent eagerly, without pinning", source="assumed: between the packet sizes of E-BIP-04", low="256 B", high="4 KiB")
    slots = Param(32, "count", "short messages that a sender may have unread at a receiver", source="assumed: credits", low=8, high=128)
    pio_rate = Param("80 MB/s", "B/s", "rate at which the processor writes to the card", source="assumed: write-combined stores over PCI", cost="device", low="40 MB/s", high="250 MB/s")
    piece_min = Param("256 B", "B", "smallest segment of a long message", source="doc:E-BIP-04")
    piece = Param("4 KiB", "B", "largest segment of a long message", source="doc:E-BIP-04")
    pieces = Param(8, "count", "segments a long message is split into, within those sizes", source="assumed: BIP adapts the size of its packets to the message (E-BIP-04)", low=4, high=32)
    pin = Param("6 us", "s", "time of a call that pins a buffer", source="assumed: low end of 5-50 us", on="myrinet-piii:n1", cost="os", low="5 us", high="50 us")
    pin_page = Param("0.2 us", "s", "additional time per pinned page", source="assumed: a table entry and a lock", on="myrinet-piii:n1", cost="os", low="0.05 us", high="1 us")
    page = Param("4 KiB", "B", "page size", source="assumed: x86")
    poll_cost = Param("0.3 us", "s", "one poll of the card's queue in memory", source="assumed: a cache miss", on="myrinet-piii:n1", cost="work", low="0.1 us", high="1 us")
    node_packet = Param("8 KiB", "B", "size of a packet between two processes on a node", source="assumed: MPICH's shared-memory device", low="4 KiB", high="64 KiB")
    node_slots = Param(16, "count", "number of such packets that a receiver can buffer", source="assumed: MPICH's shared-memory device", low=4, high=64)

    def wire(self, p: Values) -> Dma:
        """From rank to rank over the card."""
        return Dma(
            ("rank", "rank"), packet=2.0**40, header=p.header, send_cpu=p.overhead, recv_cpu=p.overhead, copies_in=0, slots=p.slots,
            pio_limit=p.short + p.header, pio_rate=p.pio_rate, piece_min=p.piece_min, piece=p.piece, pieces=p.pieces,
            pin=p.pin, pin_page=p.pin_page, page=p.page, space_wait=self.spin(p),
        )  # fmt: skip

    def node(self, p: Values) -> Ring:
        """From rank to rank through the memory of a node."""
        return Ring(("rank", "rank"), packet=p.node_packet, header=p.header, slots=p.node_slots, ws_packet=1, space_wait=self.spin(p))

    def spin(self, p: Values) -> WaitPolicy:
        return WaitPolicy("spin", poll_cost=p.poll_cost)

    def calls(self, p: Values, layout: Layout) -> Library:
        return Library(p.library, p.library, self.spin(p), self.spin(p))

    def within_host(self, p: Values, layout: Layout) -> Path:
        return Path([self.node(p)])

    def between_hosts(self, p: Values, layout: Layout) -> Path:
        asks = p.short + 1
        return Path([self.wire(p)], [eager(0, asks), rendezvous(asks)])

    def probing(self, p: Values, layout: Layout) -> float:
        return float(p.poll_cost)

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """bipload starts the processes on all nodes from one of them."""
        steps = [StartStep("bipload", manual=1, note="names the nodes and the program")]
        return steps + [StartStep(f"rank {r}", note=f"on {platform.hosts[h].name}") for r, h in enumerate(placement)], ""


class MpiBipWindows(MpiBip):
    name = "mpibip:windows"
    title = "MPI-BIP under Windows 2000"
    version = "MPICH 1.1 on BIP 0.99, cygwin, modified GM driver"
    years = "2000-2001"
    summary = "the same library on a cygwin layer; pinning through a modified driver"
    needs = Needs(networks=("myrinet",), systems=("windows 2000",), source="paper:LW-04: the port to Windows 2000")
    variant_note = "Windows 2000: a slower library (cygwin) and more expensive calls of the kernel module for pinning (LW-04); another compiler (LW-05)."

    library = Param("1.7 us", "s", "MPICH's ADI and matching, per call", source="assumed: Linux's x 1.1 for the cygwin layer of LW-04", on="myrinet-piii:n1", cost="work", low="1 us", high="2.5 us")
    pin = Param("12 us", "s", "time of a call that pins a buffer", source="assumed: Linux's x 2, within x 1.2 to 3 of mechanisms.md", on="myrinet-piii:n1", cost="os", low="6 us", high="50 us")
    pin_page = Param("0.4 us", "s", "additional time per pinned page", source="assumed: Linux's x 2", on="myrinet-piii:n1", cost="os", low="0.05 us", high="1 us")


class Bip(MpiBip):
    name = "mpibip:bip"
    title = "BIP under Linux"
    version = "BIP 0.99"
    years = "1999-2001"
    summary = "the interface below MPI-BIP, without matching"
    variant_note = "BIP itself: no ADI, no matching; what the paper's Figure 2 shows beside MPI-BIP."

    library = Param("0.1 us", "s", "the benchmark's own call", source="assumed: a function call", on="myrinet-piii:n1", cost="work", low="0.05 us", high="0.5 us")


class BipWindows(MpiBipWindows):
    name = "mpibip:bip-windows"
    title = "BIP under Windows 2000"
    version = "BIP 0.99, modified GM driver"
    years = "2000-2001"
    summary = "the interface below MPI-BIP, without matching"
    variant_note = "BIP itself under Windows 2000."

    library = Param("0.15 us", "s", "the benchmark's own call", source="assumed: a function call through cygwin", on="myrinet-piii:n1", cost="work", low="0.05 us", high="0.5 us")
