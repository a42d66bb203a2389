"""Raw GM 1.5 on Myrinet: the card moves messages between the memories of two processes; no operating system in the path.

The program's buffers are made known to the card before the measurement. A message is cut into packets of 4 KiB, which cross memory bus,
link and memory bus one after the other; the receiver polls a queue in its memory (code: gm.h of GM 1.x).
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


class Gm(Bare):
    name = "gm"
    title = "GM on Myrinet, no MPI"
    version = "GM 1.5"
    years = "1998-2005"
    summary = "messages from memory to memory by the card; the layer below MPICH-GM and IP over Myrinet"
    needs = Needs(networks=("myrinet",), systems=("linux",), source="doc:TC02-035: GM is the driver and the firmware of a Myrinet card; measured under Linux, drivers of other systems are not this model")
    calibrated = Range(
        sizes=("64 B", "8 MiB"), ranks=(2, 2), platforms=("p4-1800*2@myrinet-pci64a",), source="doc:TC02-035: curves_turner2002_layers.csv, raw GM",
    )  # fmt: skip

    overhead = Param("0.27 us", "s", "GM's library work per message, at each end", source="doc:E-MYR-04: 0.54 us for both ends, on a 2 GHz Xeon", on="xeon-2000:n1", cost="work", low="0.2 us", high="1 us")
    header = Param("24 B", "B", "header of a packet", source="code:gm.h, GM_SIZEOF_PACKET_HEADER")
    piece = Param("4 KiB", "B", "largest packet of a message", source="code:gm.h, GM_MTU")
    poll_cost = Param("0.3 us", "s", "one poll of the card's queue in memory", source="assumed: a cache miss", on="xeon-2000:n1", cost="work", low="0.1 us", high="1 us")
    node_packet = Param("4 KiB", "B", "size of a packet between two processes of one host", source="code:gm.h, GM_MTU; the card loops it back")

    def waits(self, p: Values) -> WaitPolicy:
        """How a process waits for a message."""
        return WaitPolicy("spin", poll_cost=p.poll_cost)

    def within_host(self, p: Values, layout: Layout) -> Path:
        return Path([Ring(("rank", "rank"), packet=p.node_packet, header=p.header, slots=16, send_cpu=p.overhead, recv_cpu=p.overhead, space_wait=self.waits(p))])  # fmt: skip

    def between_hosts(self, p: Values, layout: Layout) -> Path:
        return Path([
            Dma(("rank", "rank"), packet=2.0**40, header=p.header, send_cpu=p.overhead, recv_cpu=p.overhead, copies_in=0, copies_out=0,
                piece=p.piece, space_wait=self.waits(p))
        ])  # fmt: skip

    def probing(self, p: Values, layout: Layout) -> float:
        return float(p.poll_cost)
