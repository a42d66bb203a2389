"""Open MPI 1.0 and 1.1 of the winter of 2005/06: its point-to-point layer OB1 over TCP, and over shared memory within a machine.

A process looks at all of its sockets whenever it waits, and reads and writes what is possible. A message that fits into a first fragment is
sent at once. Of a longer one the request goes alone: TCP has a "put" that registers no memory, so the receiver asks for all of it, and it
comes as one fragment. Within a machine the first fragment goes with the request, and the rest follows in pieces. The first read of a
fragment from a socket takes up to 30 KiB into a buffer of the connection (not in 1.0), and what is there is copied once more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from retrompi.models._tcp_mpi import TcpMpi
from retrompi.models.openmpi import COLLECTIVES as TUNED
from retrompi.models.openmpi import OpenMpi
from retrompi.spec.calibrated_range import Range
from retrompi.spec.channels import Cost, Library, Path, eager, rendezvous
from retrompi.spec.collectives import Choice
from retrompi.spec.layout import Layout
from retrompi.spec.media import Ring, Stream, WaitPolicy
from retrompi.spec.model import Param, StartStep
from retrompi.spec.needs import Needs
from retrompi.spec.platform import Platform
from retrompi.spec.technology import IP
from retrompi.spec.values import Values

_OMPI = "code:open-mpi/ompi of January 2006, ompi/mca"
_TCP = f"{_OMPI}/btl/tcp/btl_tcp_component.c"
_SM = f"{_OMPI}/btl/sm/btl_sm_component.c"
_OB1 = f"{_OMPI}/pml/ob1"
_ALLTOALL = f"{_OMPI}/coll/tuned/coll_tuned_decision_fixed.c"
_REDUCE = (
    Choice("reduce", "linear_copy", _ALLTOALL, high="4097 B"),
    Choice("reduce", "linear_copy", "assumed: its chains and pipeline of longer operands are not modelled"),
)
LARGEST_HEADER = 72
"""Bytes of OB1's largest header (that of a get), for which a first fragment has room whatever it carries (pml_ob1_hdr.h, on 64 bits)."""
BRUCK, LINEAR = 768, 128 * 1024
"""Bytes that a process sends in all, up to which an all-to-all is Bruck's (of 12 processes and more), or posts everything at once."""


def _alltoall() -> Iterator[Choice]:
    """The tuned component decides by the bytes of all blocks, a row of a table by those of one: the rows of a range of sizes hold exactly at
    its middle, a power of two."""
    yield Choice("alltoall", "rotated", _ALLTOALL, ranks=(1, 2))
    ranges = [(3, 3, 3), (4, 5, 4), (6, 11, 8), *((3 * n // 4, 3 * n // 2 - 1, n) for n in (16, 32, 64, 128, 256, 512))]
    for least, most, n in ranges:
        ranks = (least, most)
        if n >= 12:
            yield Choice("alltoall", "bruck", f"{_ALLTOALL}: {BRUCK} B in all, here of {n}", high=f"{BRUCK // n + 1} B", ranks=ranks)
        yield Choice("alltoall", "linear", f"{_ALLTOALL}: {LINEAR} B in all, here of {n}", high=f"{LINEAR // n + 1} B", ranks=ranks)
    yield Choice("alltoall", "rotated", _ALLTOALL)


class OmpiTcp(TcpMpi):
    name = "ompitcp"
    title = "Open MPI over TCP"
    version = "1.0 and 1.1 alpha 1"
    years = "2005-2006"
    summary = "looks at all sockets whenever it waits; up to 64 KiB at once, longer ones when the receiver asks for them; shared memory within a machine"
    needs = Needs(networks=IP, systems=("unix",), source="assumed: sockets that do not block, and poll")
    collectives = (*(row for row in TUNED if row.operation not in ("alltoall", "reduce")), *_REDUCE, *_alltoall())
    calibrated = Range(sizes=("0 B", "4 MiB"), ranks=(2, 128), platforms=("opteron-2200*32@gigabit-paused",), source="assumed: nothing is fitted; the library is MPICH 1's by its length")

    eager = Param("64 KiB", "B", "first fragment, with room for OB1's largest header; a longer message waits for its match", source=f"{_TCP}: eager_limit; pml_ob1_sendreq.h", low="1 KiB", high="1 MiB")
    fragment = Param("2147483647 B", "B", "largest fragment of a message that its receiver has asked for", source=f"{_TCP}: max_rdma_size; {_OB1}/pml_ob1_sendreq.c: start_rdma, as the flags have PUT and no pool of memory", low="128 KiB")
    header = Param("32 B", "B", "headers of a fragment: TCP's 16 and OB1's 14 to 32", source=f"{_OMPI}/btl/tcp/btl_tcp_hdr.h; pml/ob1/pml_ob1_hdr.h: a match with its padding 16", low="28 B", high="64 B")
    sockbuf = Param("128 KiB", "B", "socket buffers", source=f"{_TCP}: sndbuf, rcvbuf", low="8 KiB", high="1 MiB")
    cache = Param("30 KiB", "B", "buffer of a connection, into which a fragment's first read goes", source=f"{_TCP}: endpoint_cache", low="1 KiB", high="64 KiB")
    length = Param(1.5, "1", "library work of a message relative to MPICH 1's: components, requests and fragments of their own", source="assumed: from the length of the code, a factor of three both ways", low=0.5, high=4.5)
    look_socket = Param("0.15 us", "s", "what a look at the sockets takes for each of them: libevent's list, poll and the protocol's answer", source="assumed: some hundred cycles; code:open-mpi/ompi of January 2006, opal/event/event.c: poll", on="opteron-2200:n1", cost="os", low="0.05 us", high="0.4 us")
    sockets = Param(0, "count", "sockets that a process has open; 0: one to each process on another machine, which connect when first used", source="assumed: as an all-to-all leaves them")
    sm_eager = Param("1 KiB", "B", "largest fragment within a machine that is sent before its receiver has matched it", source=f"{_SM}: eager_limit", low="256 B", high="64 KiB")
    sm_fragment = Param("8 KiB", "B", "largest fragment within a machine", source=f"{_SM}: max_frag_size", low="1 KiB", high="64 KiB")
    sm_queue = Param(128, "count", "fragments that a queue within a machine holds", source=f"{_SM}: size_of_cb_queue", low=8, high=1024)

    asks_with_data = False

    def open_sockets(self, p: Values, layout: Layout) -> float:
        """Of the process that has most."""
        others = len(layout.placement) - min(Counter(layout.placement).values())
        return p.sockets or float(others)

    def look_time(self, p: Values, layout: Layout) -> float:
        """A call that polls all sockets."""
        n = self.open_sockets(p, layout)
        return float(p.look + p.look_socket * n if n else p.look)

    def looks(self, p: Values, layout: Layout) -> WaitPolicy:
        """Every call of the progress engine polls all sockets, as TCP counts as a user of the event library."""
        return WaitPolicy("spin", poll_call=self.look_time(p, layout))

    def calls(self, p: Values, layout: Layout) -> Library:
        work = p.length * p.library / 2
        return Library(work, work, self.looks(p, layout), self.looks(p, layout))

    def connection(self, p: Values, layout: Layout) -> Path:
        path = super().connection(p, layout)
        hops = [
            replace(hop, io="nonblocking", first_read=p.cache, header_read=False, by_segment=False, space_wait=self.looks(p, layout))
            for hop in path.hops if isinstance(hop, Stream)
        ]  # fmt: skip
        longest = max(1.0, p.eager - LARGEST_HEADER + 1)
        return replace(path, hops=hops, protocol=[eager(0, longest), rendezvous(longest)])

    def within_host(self, p: Values, layout: Layout) -> Path:
        hop = Ring(("rank", "rank"), packet=p.sm_fragment, header=p.header, slots=p.sm_queue, space_wait=self.looks(p, layout))
        longest = max(1.0, p.sm_eager - LARGEST_HEADER + 1)
        return Path([hop], [eager(0, longest), rendezvous(longest)], ask=longest - 1)

    def probing(self, p: Values, layout: Layout) -> Cost:
        return Cost(os=self.look_time(p, layout))

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """As over any network; processes connect when first used."""
        return OpenMpi().startup(p, platform, placement, draw)
