"""MVAPICH 0.8: MPICH 1.2's device for InfiniBand, from MVICH, over VAPI. Nothing of the operating system is in the path of a message.

A message that fits into a buffer (vbuf) behind its envelope is copied into a registered one, sent, received into one of the receiver's and
copied out. A longer one asks first: both ends register the user's memory (and remember it), the sender's card writes the data straight into
it, and a message behind them says that they are there. 0.8's own source is not public where this project may look; how messages go is
MVAPICH 1.2's, whose files still have MVICH's protocol (mpid/ch_gen2: viapacket.h, viaparam.c, viasend.c, vbuf.h, ibverbs_const.h).
Processes of one machine use the card.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from retrompi.models._mpich1 import Mpich1
from retrompi.models.vapi import Vapi
from retrompi.spec.calibrated_range import Range
from retrompi.spec.channels import Library, Path, eager, rendezvous
from retrompi.spec.layout import Layout
from retrompi.spec.media import Dma
from retrompi.spec.model import Param, StartStep
from retrompi.spec.needs import Needs
from retrompi.spec.platform import Platform
from retrompi.spec.values import Values


class Mvapich(Mpich1, Vapi):
    name = "mvapich"
    title = "MVAPICH over VAPI"
    version = "0.8, by the source of 1.2"
    years = "2002-2004"
    summary = "copies through registered buffers up to 12 KiB, then the card writes between registered user memories"
    needs = Needs(networks=("infiniband",), systems=("linux",), source="assumed: the interface of a Mellanox InfiniBand card; measured under Linux")
    calibrated = Range(
        sizes=("64 B", "8 MiB"), ranks=(2, 2), platforms=("pc-2003*2@infiniband-2003",), source="doc:curves_turner2003_layers.csv: the layer below, raw VAPI; nothing of MVAPICH itself",
    )  # fmt: skip

    envelope = Param("36 B", "B", "what is sent before the data of an eager message, or to ask", source="code:MVAPICH 1.2, viapacket.h: viadev_packet_eager_start")
    vbuf = Param("12 KiB", "B", "a registered buffer: from its size on, less the envelope, a message asks first", source="assumed: MVAPICH 1.2's for such cards (viaparam.c: MLX_PCI_X_GEN); 0.8's is not known", low="2 KiB", high="16 KiB")
    put = Param("4 MiB", "B", "largest write by the card", source="code:MVAPICH 1.2, ibverbs_const.h: VIADEV_MAX_RDMA_SIZE", low="64 KiB", high="16 MiB")
    done = Param("46 B", "B", "message that tells the receiver of written data, with the packet's headers", source="code:MVAPICH 1.2, viapacket.h: viadev_packet_rput_finish, 20 B")
    prepost = Param(64, "count", "buffers of a connection that receive in turn", source="code:MVAPICH 1.2, ibverbs_const.h: VIADEV_PREPOST_DEPTH", low=8, high=256)
    completion = Param("0.5 us", "s", "taking a completion from the card's queue and giving the buffer back, at each end", source="assumed: the raw program looks at the last byte instead; two calls of VAPI, a few hundred instructions each", on="xeon-2000:n1", cost="work", low="0.1 us", high="2 us")
    cache = Param("yes", "choice", "whether registered memory stays registered", source="code:MVAPICH 1.2, viaparam.c: viadev_use_dreg_cache", choices=("yes", "no"))
    pin = Param("20 us", "s", "a call that registers memory", source="assumed: a system call that writes the card's tables", on="xeon-2000:n1", cost="os", low="5 us", high="100 us")
    pin_page = Param("0.5 us", "s", "additional time per page registered", source="assumed: a lock and a table entry over the bus", on="xeon-2000:n1", cost="os", low="0.1 us", high="2 us")

    def calls(self, p: Values, layout: Layout) -> Library:
        return self.both_ends(p, self.waits(p), self.waits(p))

    def protocol(self, p: Values) -> list[tuple[float, float, str]]:
        longest = max(1.0, p.vbuf - p.envelope)
        return [eager(0, longest), rendezvous(longest)]

    def within_host(self, p: Values, layout: Layout) -> Path:
        return Path(Vapi.within_host(self, p, layout).hops, self.protocol(p))

    def between_hosts(self, p: Values, layout: Layout) -> Path:
        work = p.overhead + p.completion
        hops = [
            replace(
                hop, packet=max(1, p.put), send_cpu=work, recv_cpu=work, message_header=p.envelope, copies_in=1, copies_out=1,
                recv_buffers=p.prepost * p.vbuf, told_by=p.done, pin=p.pin, pin_page=p.pin_page, pin_cache=p.cache == "yes",
            )
            for hop in Vapi.between_hosts(self, p, layout).hops if isinstance(hop, Dma)
        ]  # fmt: skip
        return Path(hops, self.protocol(p))

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """mpirun_rsh logs in to each machine; the processes tell it their queue pairs, and it tells all others."""
        steps = [StartStep("mpirun_rsh -np N", manual=1, note="reads the file of machines; waits for the processes on a socket")]
        steps += [StartStep(f"rank {r}", note=f"by rsh on {platform.hosts[h].name}; opens the card") for r, h in enumerate(placement)]
        return [*steps, StartStep("exchange of queue pairs", note="each process gets those of all others")], ""
