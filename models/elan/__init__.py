"""Compaq MPI on the AlphaServer SC: MPICH over the tagged ports (tports) of Quadrics' Elan 3. The card matches, not the library.

A send writes an envelope into a queue of the receiver's card, whose own processor looks for the receive that it belongs to. A message that
fits into a packet of that queue goes with it and is copied out; the data of a longer one go from memory to memory, without a copy and
without either processor, as the card has its own translation of addresses and nothing is registered. Up to LIBELAN_TPORT_BIGMSG (4 MB)
they leave at once, and where no receive waits they stay in the library's memory until one comes; a longer message waits for its receive.
Processes of one node go through shared memory, in pieces. MPI's collectives are those of MPICH 1: libelan has broadcasts and barriers by
the network itself, and no source says whether Compaq MPI of 2000 called them.

Neither Compaq's library nor libelan of that time is public where this project may look: the layers are told by a user guide (E-QSN-03),
the calls by programs on libelan (GASNet, Charm++), and what neither says is assumed. Not simulated: the copy out of the library's memory of
a message that came before its receive, and the extra trip over the network by which a receiver's card fetches data.
"""

from __future__ import annotations

from random import Random

from retrompi.models._mpich1 import Mpich1
from retrompi.spec.calibrated_range import Range
from retrompi.spec.channels import Library, Path, eager, rendezvous
from retrompi.spec.layout import Layout
from retrompi.spec.media import Dma, Ring, WaitPolicy
from retrompi.spec.model import Param, StartStep
from retrompi.spec.needs import Needs
from retrompi.spec.platform import Platform
from retrompi.spec.values import Values

_SC = "alpha-es40-667*2@qsnet-elan3"


class Elan(Mpich1):
    name = "elan"
    title = "Compaq MPI on Elan 3"
    version = "AlphaServer SC, 2000"
    years = "1999-2003"
    summary = "tagged ports matched by the card's processor; data from memory to memory without a copy; shared memory within a node"
    needs = Needs(networks=("qsnet",), systems=("tru64",), source="doc:E-QSN-03: the library of the AlphaServer SC, linked with -lmpi -lelan")
    calibrated = Range(sizes=("0 B", "8 B"), ranks=(2, 2), platforms=(_SC,), source="doc:E-QSN-02: the latency of a short message, in the card's time; nothing else was compared")

    overhead = Param("0.4 us", "s", "libelan's work of a message at each end: a descriptor, a command to the card over the bus, an event in memory", source="assumed: two hundred instructions and an uncached write", on=f"{_SC}:n1", cost="work", low="0.2 us", high="1 us")
    poll_cost = Param("0.15 us", "s", "one look for an event in memory (ELAN_POLL_EVENT)", source="assumed: a cache miss", on=f"{_SC}:n1", cost="work", low="0.05 us", high="0.5 us")
    envelope = Param("32 B", "B", "tag, sender, length and address that go before the data", source="assumed: four words of 64 bits", low="16 B", high="64 B")
    header = Param("16 B", "B", "what a transfer has besides the envelope", source="assumed: a route and an event", low="8 B", high="32 B")
    packet = Param("320 B", "B", "slot of the card's queue; what fits into it goes with its envelope and is copied", source="code:GASNet 1, elan-conduit/gasnet_core_internal.h: GASNETC_ELAN_MAX_QUEUEMSG", low="128 B", high="320 B")
    slots = Param(128, "count", "slots of a port for messages that its process has not asked for (LIBELAN_TPORT_NSLOTS)", source="assumed: Charm++ on libelan asks for as many as processes and at most 256", low=32, high=256)
    big = Param("4 MiB", "B", "size above which a message waits for its receive (LIBELAN_TPORT_BIGMSG)", source="doc:E-QSN-03", low="32 KiB", high="16 MiB")
    fragment = Param("16 KiB", "B", "piece of a message in shared memory (shm_fragsize of elan_tportInit)", source="assumed: two pages of 8 KiB", low="2 KiB", high="64 KiB")
    depth = Param(8, "count", "pieces that a pair of processes has in shared memory (shm_fifodepth of elan_tportInit)", source="assumed: a small ring", low=2, high=64)
    node_work = Param("0.4 us", "s", "linking or taking a piece in shared memory", source="assumed: a lock and a few cache misses", on=f"{_SC}:n1", cost="work", low="0.2 us", high="1.5 us")

    def waits(self, p: Values) -> WaitPolicy:
        """How a process waits for the card's event: it looks at a word in its memory."""
        return WaitPolicy("spin", poll_cost=p.poll_cost)

    def calls(self, p: Values, layout: Layout) -> Library:
        return self.both_ends(p, self.waits(p), self.waits(p))

    def protocol(self, p: Values) -> list[tuple[float, float, str]]:
        return [eager(0, p.big + 1), rendezvous(p.big + 1)]

    def within_host(self, p: Values, layout: Layout) -> Path:
        ring = Ring(
            ("rank", "rank"), packet=max(1, p.fragment), header=p.envelope, slots=max(2, int(p.depth)), send_cpu=p.node_work, recv_cpu=p.node_work,
            space_wait=self.waits(p),
        )  # fmt: skip
        return Path([ring], self.protocol(p))

    def between_hosts(self, p: Values, layout: Layout) -> Path:
        port = Dma(
            ("rank", "rank"), packet=2.0**40, header=p.header, send_cpu=p.overhead, recv_cpu=p.overhead, copies_in=1, copies_out=1, piece=p.packet,
            message_header=p.envelope, alone=max(1.0, p.packet - p.envelope), recv_buffers=p.slots * p.packet, space_wait=self.waits(p),
        )  # fmt: skip
        return Path([port], self.protocol(p))

    def probing(self, p: Values, layout: Layout) -> float:
        return float(p.poll_cost)

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """prun asks the resource manager (RMS), whose daemon on each node starts the processes of that node."""
        nodes = list(dict.fromkeys(placement))
        steps = [StartStep("prun -n N", manual=1, note="the resource manager gives nodes of the partition and a capability of the network")]
        steps += [StartStep(f"rmsd on {platform.hosts[h].name}", daemons=1, note="starts the processes of its node") for h in nodes]
        return [*steps, StartStep("exchange of ports", note="each process opens its tagged port")], ""
