"""EUIH on the IBM SP1: a user-space interface to the switch, whose packets the processor itself moves to and from the adapter.

The steps of its published curve, at 228, 460, 684 and 916 B, show what a packet carries. No interrupt, no system call.
"""

from __future__ import annotations

from retrompi.models._bare import Bare
from retrompi.spec.calibrated_range import Range
from retrompi.spec.channels import Path
from retrompi.spec.layout import Layout
from retrompi.spec.media import Dma, Ring, WaitPolicy
from retrompi.spec.model import Param
from retrompi.spec.needs import Needs
from retrompi.spec.values import Values


class Euih(Bare):
    name = "euih"
    title = "EUIH on the SP1's switch, no MPI"
    version = "IBM, 1993-94"
    years = "1993-1995"
    summary = "programmed I/O over the switch from user space; the layer below MPICH's ch_eui"
    needs = Needs(networks=("sp-switch",), systems=("aix",), source="doc:GL94-001: the switch of an SP1, from user space under AIX")
    calibrated = Range(
        sizes=("0 B", "1048333 B"), ranks=(2, 2), platforms=("ibm-sp1*2@sp1-switch",), source="doc:GL94-001: curves_sp1_layers.csv",
    )  # fmt: skip

    overhead = Param("8 us", "s", "library work of the sender per message", source="fit:fit.toml", on="ibm-sp1:n1", cost="work", low="1 us", high="20 us")
    packet_work = Param("4 us", "s", "library work per packet, at each end", source="fit:fit.toml", on="ibm-sp1:n1", cost="work", low="0.5 us", high="25 us")
    header = Param("16 B", "B", "header of a packet", source="assumed: four words", low="4 B", high="32 B")
    packet = Param("228 B", "B", "what a packet of the switch carries", source="assumed: steps of curves_sp1_layers.csv at 228, 460, 684 and 916 B", low="220 B", high="236 B")
    rate = Param("12 MB/s", "B/s", "rate at which the processor writes to the adapter", source="fit:fit.toml", cost="device", low="6 MB/s", high="30 MB/s")
    poll_cost = Param("1 us", "s", "one poll of the adapter", source="assumed: a read over Micro Channel", on="ibm-sp1:n1", cost="work", low="0.5 us", high="3 us")

    def waits(self, p: Values) -> WaitPolicy:
        """How a process waits for a message."""
        return WaitPolicy("spin", poll_cost=p.poll_cost)

    def within_host(self, p: Values, layout: Layout) -> Path:
        return Path([Ring(("rank", "rank"), packet=p.packet, header=p.header, slots=16, send_cpu=p.packet_work, recv_cpu=p.packet_work, space_wait=self.waits(p))])  # fmt: skip

    def between_hosts(self, p: Values, layout: Layout) -> Path:
        return Path([
            Dma(("rank", "rank"), packet=p.packet, header=p.header, message_cpu=p.overhead, send_cpu=p.packet_work, recv_cpu=p.packet_work,
                copies_in=0, copies_out=0, piece=p.packet + p.header, cpu_driven=True, rate=p.rate, space_wait=self.waits(p))
        ])  # fmt: skip

    def probing(self, p: Values, layout: Layout) -> float:
        return float(p.poll_cost)
