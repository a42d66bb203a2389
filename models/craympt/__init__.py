"""Cray's Message Passing Toolkit 1.1 on J90 and T3E: MPI, PVM and SHMEM, three libraries of one runtime [HW-01].

J90: the tasks are threads of one process, so a transfer is a vector copy. MPI passes a message through one shared buffer, PVM packs
it, passes it through a shared pool under its lock and unpacks it, SHMEM copies directly from memory to memory.
T3E: the initiating processor puts and gets remote memory through E-registers. MPI and PVM copy a message into a mailbox, put it and copy
it out.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from retrompi.spec.calibrated_range import Range
from retrompi.spec.channels import Library, Path
from retrompi.spec.collectives import MPICH1, Choice
from retrompi.spec.host import Host
from retrompi.spec.hosts import Hosts, mapped
from retrompi.spec.layout import Layout
from retrompi.spec.media import Broadcast, Dma, Medium, OneSided, Ring, Stream, WaitPolicy
from retrompi.spec.model import Param, RuntimeModel, StartStep
from retrompi.spec.needs import Needs
from retrompi.spec.platform import Platform
from retrompi.spec.values import Values

_LIKE = "assumed: as MPICH 1, on which Cray's MPI was built; MPT's own collectives are not published"
COLLECTIVES = (
    *(Choice(c.operation, c.algorithm, source=_LIKE) for c in MPICH1 if c.operation != "bcast"),
    Choice("bcast", "binomial", source="assumed: on a J90; elsewhere as `broadcast` of the model says (a put tree, a shared buffer)"),
)
"""Of all three libraries."""


class CrayMpt(RuntimeModel):
    name = "craympt"
    title = "Cray MPT: MPI"
    version = "1.1.0.0"
    years = "1996-1998"
    summary = "shared buffers between the tasks of a J90, E-register puts between the processing elements of a T3E"
    needs = Needs(networks=("t3e",), systems=("unicos",), source="paper:HW-T1-MPI: the toolkit of the Cray T3E and J90")
    measured_by = "craympt"
    puts_in_collectives = True  # a broadcast on a T3E is a tree of puts
    collectives = COLLECTIVES
    calibrated = Range(
        sizes=("1 MiB", "4 MiB"), ranks=(2, 8), platforms=("cray-j90", "cray-t3e"),
        source="assumed: only largest rates are published (HW-T1-MPI to HW-T6-SHMEM, 2 and 8 processes), so long messages, as the scenarios send",
    )  # fmt: skip

    transport = Param("shared", "choice", "how ranks on one machine communicate: through shared memory or TCP sockets [HW-08]", source="paper:HW-08", choices=("shared", "tcp"))
    vector_share = Param(0.88, "1", "fraction of the memory's copy rate that a vector copy on a J90 reaches", source="fit:fit.toml", low=0.8, high=1)
    pe_share = Param(0.5, "1", "fraction of the memory's copy rate that a local copy on a T3E reaches", source="fit:fit.toml", low=0.3, high=1)
    put_rate = Param("360 MB/s", "B/s", "rate of an E-register put", source="fit:fit.toml", cost="device", low="300 MB/s", high="480 MB/s")
    get_rate = Param("330 MB/s", "B/s", "rate of an E-register get", source="fit:fit.toml", cost="device", low="300 MB/s", high="480 MB/s")
    mpi_copies = Param(1.6, "1", "copies of an MPI message through the buffer shared by two tasks of a J90", source="fit:fit.toml", low=1, high=2)
    pvm_pack = Param(1, "count", "copies for packing and for unpacking a PVM message, in addition to the two through the shared pool", source="assumed: pack and unpack, four copies in all (note of HW-T1-PVM: about 3.2 to 4)", low=0, high=1)
    pvm_fragment = Param("4 KiB", "B", "size of a fragment of a PVM message on a T3E", source="assumed: PVM's default", low="1 KiB", high="16 KiB")
    pvm_fragment_cost = Param("3 us", "s", "library work per fragment", source="fit:fit.toml", on="cray-t3e:pe0", cost="work", low="0.5 us", high="15 us")
    library = Param("7 us", "s", "library work of an MPI send or receive", source="doc:E-REC-13", on="cray-t3e:pe0", cost="work", low="5 us", high="9 us")
    pvm_library = Param("12 us", "s", "library work of a PVM send or receive", source="assumed: above MPI's by its message buffers", on="cray-t3e:pe0", cost="work", low="7 us", high="30 us")
    shmem_library = Param("0.5 us", "s", "library work of a SHMEM call", source="doc:E-T3E-01", on="cray-t3e:pe0", cost="work", low="0.3 us", high="2 us")
    shmem_latency = Param("1 us", "s", "time to set up the E-registers until the first word is sent", source="doc:E-T3E-01", cost="device", low="0.5 us", high="2 us")
    header = Param("64 B", "B", "size of a message envelope", source="assumed: one cache line", low="32 B", high="128 B")
    mailboxes = Param(2, "count", "messages that a sender on the T3E may have unread at a receiver", source="assumed: double buffering", low=1, high=16)
    largest = Param("64 MiB", "B", "longest message that is sent without segmentation", source="assumed: messages are not segmented")
    poll_cost = Param("0.3 us", "s", "one poll for messages", source="assumed: a few remote-memory accesses", on="cray-t3e:pe0", cost="work", low="0.1 us", high="2 us")
    socket_call = Param("60 us", "s", "work of one socket call, if transport is tcp or the machines are connected by a network", source="assumed: a slow scalar unit (HW-04)", on="cray-j90:j90", cost="work", low="20 us", high="200 us")

    def shared(self, p: Values) -> Medium:
        """Two tasks of one J90: one buffer per receiver; the sender fills it and waits until the receiver has emptied it."""
        half = p.mpi_copies / 2
        return Ring(("rank", "rank"), packet=p.largest, header=p.header, slots=1, until_taken=True, copies_in=half, copies_out=half, space_wait=self.spin(p))

    def put(self, p: Values, rate: float) -> Dma:
        """Two processing elements of a T3E: a mailbox message, copied in, put and copied out."""
        return Dma(
            ("rank", "rank"), packet=p.largest, header=p.header, piece=64, slots=p.mailboxes, cpu_driven=True, rate=rate, space_wait=self.spin(p)
        )

    def network(self, p: Values, platform: Platform) -> Medium:
        return self.put(p, p.put_rate) if platform.link.kind == "torus" else self.sockets(p)

    def sockets(self, p: Values) -> Medium:
        return Stream(("rank", "rank"), packet=p.largest, header=p.header, call=p.socket_call)

    def spin(self, p: Values) -> WaitPolicy:
        return WaitPolicy("spin", poll_cost=p.poll_cost)

    def work(self, p: Values) -> float:
        """Library work of a call (s)."""
        return float(p.library)

    def broadcast(self, torus: bool) -> Broadcast:
        """A tree of messages on a J90; on a T3E one copy into a library buffer and a tree of puts between such buffers. The copy out
        of it overlaps the next broadcast and is charged to the leaf."""
        return Broadcast("put_tree", copies_root=1, copies_leaf=1) if torus else Broadcast()

    def calls(self, p: Values, layout: Layout) -> Library:
        across = layout.platform.link.kind == "torus" and layout.several_hosts
        return Library(self.work(p), self.work(p), self.spin(p), self.spin(p), broadcast=self.broadcast(across))

    def within_host(self, p: Values, layout: Layout) -> Path:
        return Path([self.shared(p) if p.transport == "shared" else self.sockets(p)])

    def between_hosts(self, p: Values, layout: Layout) -> Path:
        return Path([self.network(p, layout.platform)])

    def probing(self, p: Values, layout: Layout) -> float:
        return float(p.poll_cost)

    def one_sided(self, p: Values, layout: Layout) -> tuple[OneSided | None, OneSided | None]:
        torus = layout.platform.link.kind == "torus"
        rma = OneSided(put_rate=p.put_rate, get_rate=p.get_rate, cpu=p.shmem_library, latency=p.shmem_latency, piece=64)
        return rma, rma if torus else None

    def hosts(self, p: Values, layout: Layout) -> Hosts:
        share = p.pe_share if layout.platform.link.kind == "torus" else p.vector_share
        # A copy reads and writes every byte: its memory traffic is twice its rate; puts and gets in both directions are included.

        def shared(h: Host) -> Host:
            bus = min(h.bus_rate, 2 * (h.copy_mem * share))
            return replace(h, copy_l1=h.copy_l1 * share, copy_l2=h.copy_l2 * share, copy_mem=h.copy_mem * share, bus_rate=bus)

        return mapped(super().hosts(p, layout), shared)

    def cautions(self, p: Values, platform: Platform, placement: list[int]) -> list[str]:
        """Non-deterministic failures of MPI programs on the J90, none on the T3E; no rate is published [HW-02]."""
        if platform.link.kind != "torus" and len(set(placement)) < len(placement):
            return ["runs of MPI programs failed now and then on the J90; no rate is published, so none is simulated (HW-02)"]
        return []

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """One command starts all tasks of a J90 or all processing elements of a T3E."""
        return [StartStep("mpprun or a.out -np", manual=1, note=f"{len(placement)} tasks at once")], ""


class CrayPvm(CrayMpt):
    name = "craympt:pvm"
    title = "Cray MPT: PVM"
    version = "1.1.0.0"
    years = "1996-1998"
    summary = "messages are packed, passed through a pool protected by one lock (J90) or put in fragments (T3E), and unpacked"
    variant_note = "PVM, the second library of the toolkit: pack and unpack, a shared pool protected by one lock, fragments."

    def shared(self, p: Values) -> Medium:
        return Ring(
            ("rank", "rank"), packet=p.largest, header=p.header, slots=1, until_taken=True, copies_in=1, copies_out=1, lock=True,
            pack=p.pvm_pack, unpack=p.pvm_pack, space_wait=self.spin(p),
        )  # fmt: skip

    def put(self, p: Values, rate: float) -> Dma:
        """In fragments, each with library work."""
        return replace(super().put(p, rate), fragment=p.pvm_fragment, fragment_cpu=p.pvm_fragment_cost)

    def work(self, p: Values) -> float:
        return float(p.pvm_library)

    def broadcast(self, torus: bool) -> Broadcast:
        """On a J90 all receivers unpack from the one packed buffer; on a T3E data pass through a tree of puts in fragments."""
        return Broadcast("put_tree", copies_root=1, copies_leaf=1) if torus else Broadcast("by_reference", copies_root=1, copies_leaf=1)

    def one_sided(self, p: Values, layout: Layout) -> tuple[OneSided | None, OneSided | None]:
        same, remote = super().one_sided(p, layout)
        if remote is None:
            return same, None
        return same, replace(remote, fragment=p.pvm_fragment, fragment_cpu=p.pvm_fragment_cost)  # what the tree of a broadcast uses

    def cautions(self, p: Values, platform: Platform, placement: list[int]) -> list[str]:
        return []


class CrayShmem(CrayMpt):
    name = "craympt:shmem"
    title = "Cray MPT: SHMEM"
    version = "1.1.0.0"
    years = "1996-1998"
    summary = "one-sided put and get: a vector copy (J90) or E-registers (T3E), nothing else"
    variant_note = "SHMEM, the third library of the toolkit: put and get; a barrier and flags are short messages."

    def work(self, p: Values) -> float:
        return float(p.shmem_library)

    def broadcast(self, torus: bool) -> Broadcast:
        return Broadcast("put_tree")

    def cautions(self, p: Values, platform: Platform, placement: list[int]) -> list[str]:
        return []
