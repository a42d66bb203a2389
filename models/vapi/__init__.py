"""Raw VAPI on InfiniBand: Mellanox's verbs interface of 2002-05; the card moves messages between the memories of two processes.

Buffers are registered before the measurement. A message is cut into packets of the path's MTU, which cross memory bus, link and memory bus one after
the other; the receiver looks at the last byte of its buffer (code: NetPIPE 3, ibvapi.c).
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


class Vapi(Bare):
    name = "vapi"
    title = "VAPI on InfiniBand, no MPI"
    version = "InfiniHost, 2003"
    years = "2002-2006"
    summary = "messages from memory to memory by the card; the layer below MVAPICH"
    needs = Needs(networks=("infiniband",), systems=("linux",), source="assumed: the interface of a Mellanox InfiniBand card; measured under Linux")
    calibrated = Range(
        sizes=("64 B", "8 MiB"), ranks=(2, 2), platforms=("pc-2003*2@infiniband-2003",), source="doc:curves_turner2003_layers.csv, raw VAPI",
    )  # fmt: skip

    overhead = Param("0.5 us", "s", "library work of a message at each end: a descriptor, a doorbell, a completion", source="assumed: a few hundred instructions and a write over the bus", on="xeon-2000:n1", cost="work", low="0.2 us", high="2 us")
    header = Param("26 B", "B", "headers and checksums of a packet", source="doc:InfiniBand Architecture 1.0: local route 8, base transport 12, checksums 4 and 2")
    piece = Param("1 KiB", "B", "largest packet of a message", source="code:NetPIPE 3, ibvapi.c: MTU1024", low="256 B", high="2 KiB")
    poll_cost = Param("0.2 us", "s", "one look for a message", source="assumed: a cache miss", on="xeon-2000:n1", cost="work", low="0.05 us", high="1 us")

    def waits(self, p: Values) -> WaitPolicy:
        """How a process waits for a message."""
        return WaitPolicy("spin", poll_cost=p.poll_cost)

    def within_host(self, p: Values, layout: Layout) -> Path:
        """The card loops packets back."""
        return Path([Ring(("rank", "rank"), packet=p.piece, header=p.header, slots=16, send_cpu=p.overhead, recv_cpu=p.overhead, space_wait=self.waits(p))])  # fmt: skip

    def between_hosts(self, p: Values, layout: Layout) -> Path:
        return Path([
            Dma(("rank", "rank"), packet=2.0**40, header=p.header, send_cpu=p.overhead, recv_cpu=p.overhead, copies_in=0, copies_out=0,
                piece=p.piece, space_wait=self.waits(p))
        ])  # fmt: skip

    def probing(self, p: Values, layout: Layout) -> float:
        return float(p.poll_cost)
