"""MPI-F: IBM Research's MPI for the SP1, a prototype based on MPICH that drives the switch's adapter from user space itself.

Its source is not public. What is known: it was derived from MPICH and optimised for the SP (doc: netlib.org/utk/mpi-review, IBM), and had the
packet layer of EUIH below it. The processor moves packets from and into user memory, so there is no copy when the receive is posted; a
message beyond the eager limit asks first.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from retrompi.models.euih import Euih
from retrompi.spec.calibrated_range import Range
from retrompi.spec.channels import Library, Path, eager, rendezvous
from retrompi.spec.layout import Layout
from retrompi.spec.media import Dma
from retrompi.spec.model import Param, StartStep
from retrompi.spec.platform import Platform
from retrompi.spec.values import Values


class Mpif(Euih):
    name = "mpif"
    title = "IBM MPI-F on the SP1"
    version = "prototype of 1994"
    years = "1994-1995"
    summary = "packets between user memories by the processor, no copy when the receive is posted; long messages ask first"
    calibrated = Range(
        sizes=("0 B", "1048333 B"), ranks=(2, 2), platforms=("ibm-sp1*2@sp1-switch",),
        source="doc:GL94-001: the layer below, EUIH; nothing of MPI-F itself",
    )  # fmt: skip

    library = Param("5 us", "s", "work of the library on a message, a send and its receive together", source="assumed: derived from MPICH; half to one and a half of its path", on="ibm-sp1:n1", cost="work", low="1.7 us", high="15 us")
    envelope = Param("20 B", "B", "what is sent before the data: context, rank, tag, length", source="assumed: as MPICH's, from which it was derived", low="12 B", high="40 B")
    eager = Param("4 KiB", "B", "longest message that is sent without asking", source="assumed: MP_EAGER_LIMIT of its successor, IBM Parallel Environment, for up to 16 tasks", low="1 KiB", high="64 KiB")

    def calls(self, p: Values, layout: Layout) -> Library:
        return Library(p.library / 2, p.library / 2, self.waits(p), self.waits(p))

    def between_hosts(self, p: Values, layout: Layout) -> Path:
        below = Euih.between_hosts(self, p, layout)
        hops = [replace(hop, message_header=p.envelope) for hop in below.hops if isinstance(hop, Dma)]
        return Path(hops, [eager(0, p.eager + 1), rendezvous(p.eager + 1)])

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """poe starts one process on each node that the resource manager gives; the adapter serves one process a node."""
        twice = next((h for h in placement if placement.count(h) > 1), None)
        steps = [StartStep("poe", manual=1, note="the resource manager gives nodes of the partition")]
        steps += [StartStep(f"rank {r}", note=f"on {platform.hosts[h].name}") for r, h in enumerate(placement)]
        reason = f"two processes on {platform.hosts[twice].name}: the adapter serves one process in user space" if twice is not None else ""
        return steps, reason
