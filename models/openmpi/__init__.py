"""Open MPI 1.1: its point-to-point layer OB1 over the components for Mellanox's verbs (mvapi), and for shared memory within a machine.

A message that fits into a fragment behind its headers is copied into a registered one, which the card writes into a ring of such fragments in the
receiver's memory; the receiver sees the last byte and copies the data out. A longer one is registered, and its request says where it is: the
receiver registers its own memory, its card reads the data, and a message back says that it has them. Registrations stay (mpi_leave_pinned 1, as it
was run with; without it OB1 sends the first mebibyte in copied fragments and the rest piece by piece, which is not modelled). What is known of its
collectives is the tuned component's choice of 2006, and the basic component's where that has none.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from random import Random

from retrompi.models.vapi import Vapi
from retrompi.spec.calibrated_range import Range
from retrompi.spec.channels import Library, Path, Row, eager, rendezvous, work
from retrompi.spec.collectives import Choice
from retrompi.spec.layout import Layout
from retrompi.spec.media import Dma, Ring, WaitPolicy
from retrompi.spec.model import Param, StartStep
from retrompi.spec.needs import Needs
from retrompi.spec.platform import Platform
from retrompi.spec.values import Values

_OMPI = "code:open-mpi/ompi of 2006, ompi/mca"
_TUNED = f"{_OMPI}/coll/tuned/coll_tuned_decision_fixed.c"
_BASIC = f"{_OMPI}/coll/basic"
COLLECTIVES = (
    Choice("barrier", "doubling", _TUNED),
    Choice("bcast", "posted", _TUNED, ranks=(1, 3)),
    Choice("bcast", "bintree", f"{_TUNED}: unsegmented for any size, as 16384 is assigned to the size and not to the segment", ranks=(4, 4)),
    Choice("bcast", "posted", _TUNED, high="4096 B", ranks=(5, 8)),
    Choice("bcast", "bintree_16k", _TUNED, low="32 KiB", high="512 KiB", ranks=(9, None)),
    Choice("bcast", "pipeline_16k", _TUNED, low="512 KiB", ranks=(5, None)),
    Choice("bcast", "bintree", _TUNED),
    Choice("reduce", "linear_copy", f"{_TUNED}: always, as it returns before the other choices"),
    Choice("allreduce", "reduce_bcast", _TUNED),
    Choice("alltoall", "rotated", _TUNED, ranks=(1, 2)),
    Choice("alltoall", "linear", f"{_TUNED}: 131072 B in all", high="43691 B", ranks=(3, 3)),
    Choice("alltoall", "linear", f"{_TUNED}: 131072 B in all", high="32769 B", ranks=(4, 4)),
    Choice("alltoall", "linear", f"{_TUNED}: 131072 B in all, here of 5 to 11 ranks by the mean of 8", high="16385 B", ranks=(5, 11)),
    Choice("alltoall", "bruck", f"{_TUNED}: 768 B in all, here of 16 ranks", high="49 B", ranks=(12, None)),
    Choice("alltoall", "linear", f"{_TUNED}: 131072 B in all, here of 32 ranks", high="4097 B", ranks=(12, None)),
    Choice("alltoall", "rotated", _TUNED),
    Choice("alltoallv", "linear", f"{_BASIC}/coll_basic_alltoallv.c"),
    Choice("alltoallw", "linear", f"{_BASIC}/coll_basic_alltoallw.c"),
    Choice("gather", "linear", f"{_BASIC}/coll_basic_gather.c"),
    Choice("gatherv", "linear", f"{_BASIC}/coll_basic_gatherv.c"),
    Choice("scatter", "linear", f"{_BASIC}/coll_basic_scatter.c"),
    Choice("scatterv", "linear", f"{_BASIC}/coll_basic_scatterv.c"),
    Choice("allgather", "gather_bcast", f"{_BASIC}/coll_basic_allgather.c"),
    Choice("allgatherv", "gather_bcast", f"{_BASIC}/coll_basic_allgatherv.c"),
    Choice("reducescatter", "reduce_scatterv", f"{_BASIC}/coll_basic_reduce_scatter.c"),
    Choice("reducescatterblock", "reduce_scatterv", "assumed: as reduce_scatter; Open MPI 1.1 has no such operation"),
    Choice("scan", "linear", f"{_BASIC}/coll_basic_scan.c"),
    Choice("exscan", "linear", f"{_BASIC}/coll_basic_exscan.c"),
)
_MVAPI = f"{_OMPI}/btl/mvapi"
_HDR = f"{_OMPI}/pml/ob1/pml_ob1_hdr.h"
_SM = f"{_OMPI}/btl/sm/btl_sm_component.c"
NEAR = 32 * 1024
"""Bytes of operands up to which a sum finds them in the cache: what is longer has been written to memory by the card."""
PAGE = 4096
IN_MEMORY = 2.0**40
"""Bytes that no cache holds: what a card writes to memory is in none (assumed: a bus master's write takes the line from the caches)."""


class OpenMpi(Vapi):
    name = "openmpi"
    title = "Open MPI over VAPI"
    version = "1.1 alpha 2"
    years = "2006-2007"
    summary = "copies through fragments that the card writes up to 32 KiB, then the receiver's card reads the user's memory"
    needs = Needs(networks=("infiniband",), systems=("linux",), source="assumed: the interface of a Mellanox InfiniBand card; measured under Linux")
    collectives = COLLECTIVES
    calibrated = Range(
        sizes=("1 B", "4 MiB"), ranks=(2, 2), platforms=("poweredge-2650*2@infiniband-topspin",), source="doc:curves_pmb.csv: PingPong, which is fitted",
    )  # fmt: skip

    library = Param("2 us", "s", "Open MPI's own work on a message above the verbs: request, header, matching, progress; a send and its receive together", source="fit:fit.toml", on="poweredge-2650:n1", cost="work", low="0.5 us", high="8 us")
    fragment = Param("32 KiB", "B", "largest fragment that is sent before its receiver has matched it, with headers", source=f"{_MVAPI}/btl_mvapi_component.c of 15 April 2006: eager_limit; 12 KiB a few days later", low="4 KiB", high="64 KiB")
    headers = Param("64 B", "B", "what a fragment leaves for OB1's header: that of the largest one", source=f"{_HDR}: mca_pml_ob1_hdr_t on a 32-bit machine; pml_ob1_sendreq.h")
    envelope = Param("30 B", "B", "before and behind the data: OB1's header of a match 16, the component's 6, its footer 8", source=f"{_HDR}; {_MVAPI}/btl_mvapi_frag.h")
    ring = Param(16, "count", "fragments of a sender in a receiver's memory", source=f"{_MVAPI}/btl_mvapi_component.c: eager_rdma_num", low=1, high=64)
    inline = Param("64 B", "B", "largest fragment that the processor writes to the card with its descriptor", source="assumed: what the card says of a queue pair (btl_mvapi_endpoint.c: max_inline_data_sq); the open PingPong has its step between fragments of 62 and 94 B", low="62 B", high="92 B")
    doorbell_rate = Param("500 MB/s", "B/s", "rate of that", source="assumed: 8 B a write over a bus of 64 bits at 133 MHz, half of its rate", cost="device", low="100 MB/s", high="1000 MB/s")
    fetch = Param("1 us", "s", "until the card has read the first bytes of what the processor has not written to it", source="fit:fit.toml", cost="device", low="0.3 us", high="2.5 us")
    answer = Param("10 us", "s", "until a card that is asked to read has the first byte, and whatever else a message that asks takes beside the mechanisms", source="fit:fit.toml", cost="device", low="1 us", high="40 us")
    completion = Param("0.5 us", "s", "taking a completion from the card's queue and giving the fragment back, at each end", source="assumed: as MVAPICH's", on="xeon-2000:n1", cost="work", low="0.1 us", high="1.5 us")
    leave_pinned = Param("yes", "choice", "whether registered memory stays registered (mpi_leave_pinned 1); no: it is registered for each message, as where neighbouring blocks share a page and each takes the other's registration away", source=f"{_OMPI}/pml/ob1/pml_ob1_rdma.c; rcache/rb/rcache_rb.c", choices=("yes", "no"))
    pin = Param("15 us", "s", "a call that registers memory, and the one that gives it back", source="assumed: two system calls that write the card's tables; such calls of VAPI were said to take 8 us and more", on="xeon-2000:n1", cost="os", low="6 us", high="60 us")
    pin_page = Param("0.9 us", "s", "additional time per page, both ways", source="assumed: a lock and a table entry over the bus; a microsecond was said of VAPI", on="xeon-2000:n1", cost="os", low="0.3 us", high="1.8 us")
    trim = Param("128 KiB", "B", "temporary buffer from which on the heap gives its pages back when it is freed, and their registration with them", source="code:open-mpi/ompi of 2006, opal/mca/memory/ptmalloc2/malloc.c: DEFAULT_TRIM_THRESHOLD", low="64 KiB", high="4 MiB")
    fresh_page = Param("2.5 us", "s", "a page of such a buffer: its fault, clearing it, registering it and giving it back", source="assumed: a fault of a microsecond, 4 KiB at the rate of memory, and pin_page", on="poweredge-2650:n1", cost="work", low="1 us", high="5 us")
    add_near = Param("0.8 ns/B", "s/B", "adding floats, a byte of operands in the cache", source="assumed: eight cycles for four bytes, a load, an addition and a store of x87 code", on="poweredge-2650:n1", cost="work", low="0.4 ns/B", high="1.5 ns/B")
    add_far = Param("1.5 ns/B", "s/B", "adding floats, a byte of longer operands", source="assumed: two reads and a write of memory, half more than a copy at the range of copy_mem", on="poweredge-2650:n1", cost="work", low="0.8 ns/B", high="3 ns/B")
    sm_eager = Param("1 KiB", "B", "largest fragment within a machine that is sent before its receiver has matched it", source=f"{_SM}: eager_limit", low="256 B", high="64 KiB")
    sm_fragment = Param("8 KiB", "B", "largest fragment within a machine", source=f"{_SM}: max_frag_size", low="1 KiB", high="64 KiB")
    sm_queue = Param(128, "count", "fragments that a queue within a machine holds", source=f"{_SM}: size_of_cb_queue", low=8, high=1024)

    def waits(self, p: Values) -> WaitPolicy:
        """It looks at the rings of its peers and at two completion queues, again and again."""
        return WaitPolicy("spin", poll_cost=p.poll_cost)

    def calls(self, p: Values, layout: Layout) -> Library:
        half = p.library / 2
        return Library(half, half, self.waits(p), self.waits(p))

    def within_host(self, p: Values, layout: Layout) -> Path:
        hop = Ring(("rank", "rank"), packet=p.sm_fragment, header=p.envelope, slots=p.sm_queue, space_wait=self.waits(p))
        longest = max(1.0, p.sm_eager - p.headers + 1)
        return Path([hop], [eager(0, longest), rendezvous(longest)])

    def between_hosts(self, p: Values, layout: Layout) -> Path:
        cost = p.overhead + p.completion
        hops = [
            replace(
                hop, send_cpu=cost, recv_cpu=cost, message_header=p.envelope, copies_in=1, copies_out=1, slots=p.ring,
                recv_buffers=IN_MEMORY, pio_limit=p.inline + p.header, pio_rate=p.doorbell_rate, fetch=p.fetch, interleaved=True, reads=True, answer=p.answer,
                pin=p.pin, pin_page=p.pin_page, pin_cache=p.leave_pinned == "yes",
            )
            for hop in Vapi.between_hosts(self, p, layout).hops if isinstance(hop, Dma)
        ]  # fmt: skip
        longest = max(1.0, p.fragment - p.headers + 1)
        return Path(hops, [eager(0, longest), rendezvous(longest)])

    def compile(self, p: Values, layout: Layout, parts: Collection[str]) -> Row:
        """With what combining the operands of a reduction takes, and filling a temporary buffer whose pages are fresh."""
        base = super().compile(p, layout, parts)
        near, far = (round(rate * NEAR * 1e12) for rate in (p.add_near, p.add_far))
        page = p.fresh_page * 1e12 / PAGE
        buffer = [(0, 0), (int(p.trim) - 1, 0), *((size, round(size * page)) for size in (int(p.trim), 2 * int(p.trim)))]
        base["work"] = work(call={}, buffers=(buffer, buffer), combine=[(0, 0), (NEAR, near), (2 * NEAR, 2 * far), (4 * NEAR, 4 * far)])
        return base

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """mpirun starts a daemon on each machine by rsh, and the daemons start the processes; queue pairs are made when first used."""
        machines = list(dict.fromkeys(placement))
        steps = [StartStep("mpirun -np N", manual=1, note="reads the file of machines")]
        steps += [StartStep(f"orted on {platform.hosts[m].name}", daemons=1, note="started by rsh") for m in machines]
        return [*steps, StartStep("processes", note=f"{len(placement)} of them, which exchange addresses")], ""
