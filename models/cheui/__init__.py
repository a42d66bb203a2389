"""MPICH's device ch_eui on the IBM SP1: MPICH 1.0.5 over EUIH, the user-space interface to the switch.

A message up to 1 KiB is copied into a packet behind its envelope, sent blocking, received into a packet and copied out. A longer one sends its
envelope alone and then its data, from user memory to user memory, without asking first. Before each blocking send the device looks for
incoming messages, because EUIH has little room for them (mpid/ch_eui: dmeui.h, packets.h, euisend.c, euirecv.c).
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from retrompi.models._mpich1 import Mpich1
from retrompi.models.euih import Euih
from retrompi.spec.calibrated_range import Range
from retrompi.spec.channels import Library, Path
from retrompi.spec.layout import Layout
from retrompi.spec.media import Dma
from retrompi.spec.model import Param, StartStep
from retrompi.spec.platform import Platform
from retrompi.spec.values import Values


class Cheui(Mpich1, Euih):
    name = "cheui"
    title = "MPICH ch_eui on the SP1"
    version = "MPICH 1.0.5"
    years = "1993-1995"
    summary = "one packet with its envelope up to 1 KiB, envelope and data apart above; the processor moves both over EUIH"
    calibrated = Range(sizes=("0 B", "1048333 B"), ranks=(2, 2), platforms=("ibm-sp1*2@sp1-switch",), source="doc:GL94-003: latency above EUIH's; EUIH itself from 0 B to 1 MB")

    envelope = Param("20 B", "B", "what is sent before the data: mode, context, rank, tag, length", source="code:MPICH 1.0.5, mpid/ch_eui/packets.h: MPID_PKT_BASIC, five words")
    short = Param("1 KiB", "B", "longest message in one packet with its envelope; it is copied at both ends", source="code:MPICH 1.0.5, mpid/ch_eui/packets.h: MPID_PKT_MAX_DATA_SIZE, homogeneous")
    check = Param("1", "count", "looks for incoming messages before a blocking send", source="code:MPICH 1.0.5, mpid/ch_eui/dmeui.h: MPID_TINY_BUFFERS", low=0, high=4)

    def calls(self, p: Values, layout: Layout) -> Library:
        library = self.both_ends(p, self.waits(p), self.waits(p))
        return replace(library, send_cpu=library.send_cpu + p.check * p.poll_cost)

    def between_hosts(self, p: Values, layout: Layout) -> Path:
        below = Euih.between_hosts(self, p, layout)
        return Path([
            replace(hop, copies_in=1, copies_out=1, message_header=p.envelope, alone=p.short) for hop in below.hops if isinstance(hop, Dma)
        ])  # fmt: skip

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """mpirun asks the resource manager for nodes and starts one process on each with poe; EUIH serves one process a node."""
        twice = next((h for h in placement if placement.count(h) > 1), None)
        steps = [
            StartStep("mpirun -np N", manual=1, note="MPICH's script; sets EUIH's options for poe"),
            StartStep("poe", note="the resource manager gives nodes of the partition, one process each"),
        ]
        steps += [StartStep(f"rank {r}", note=f"on {platform.hosts[h].name}") for r, h in enumerate(placement)]
        reason = f"two processes on {platform.hosts[twice].name}: EUIH gives a node's adapter to one process" if twice is not None else ""
        return steps, reason
