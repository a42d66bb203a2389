"""MPICH-GM: Myricom's device ch_gm of MPICH 1.2 over GM. Nothing of the operating system is in the path of a message.

Up to 16 KiB a message is copied behind its envelope into a registered buffer, sent, received into one of the receiver's buffers and copied
out. A longer one asks first: both ends register the user's memory (and remember it), the card of the sender puts the data straight into it, a
mebibyte at most at a time, and a message behind them says that they are there. On a host messages go through shared memory
(MPICH-GM 1.2.4..8b as shipped with MPICH 1.2.5.3, mpid/ch_gm: gmpi.h, gmpi_chshort.c, gmpi_chnrndv.c, gmpi_priv.c, gmpi_regcache.c, gmpi_smp*.c).
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from retrompi.models._mpich1 import Mpich1
from retrompi.models.gm import Gm
from retrompi.spec.calibrated_range import Range
from retrompi.spec.channels import Library, Path, eager, rendezvous
from retrompi.spec.layout import Layout
from retrompi.spec.media import BLOCK, Dma, Ring, WaitPolicy
from retrompi.spec.model import Param, StartStep
from retrompi.spec.needs import Needs
from retrompi.spec.platform import Platform
from retrompi.spec.values import Values


class MpichGm(Mpich1, Gm):
    name = "mpichgm"
    title = "MPICH-GM"
    version = "1.2.4..8b on GM 1.5"
    years = "2000-2005"
    summary = "copies through registered buffers up to 16 KiB, then directed sends between registered user memories"
    needs = Needs(networks=("myrinet",), systems=("linux",), source="doc:TC02-035: GM is the driver and the firmware of a Myrinet card; measured under Linux, drivers of other systems are not this model")
    calibrated = Range(
        sizes=("64 B", "8 MiB"), ranks=(2, 2), platforms=("p4-1800*2@myrinet-pci64a",), source="doc:TC02-035: the layer below, raw GM; nothing of MPICH-GM itself",
    )  # fmt: skip

    envelope = Param("24 B", "B", "what is sent before the data of an eager message, or to ask", source="code:MPICH-GM 1.2.4..8b, packets.h: MPID_PKT_SHORT_T of a 32-bit machine")
    eager = Param("16288 B", "B", "size from which a message asks first (mpirun.ch_gm --gm-eager)", source="code:MPICH-GM 1.2.4..8b, gmpi.h: GMPI_EAGER_SIZE_DEFAULT", low="128 B", high="1 MiB")
    put = Param("1 MiB", "B", "largest directed send", source="code:MPICH-GM 1.2.4..8b, gmpi.h: GMPI_MAX_PUT_LENGTH")
    done = Param("48 B", "B", "message that tells the receiver of a directed send, GM's header included", source="code:MPICH-GM 1.2.4..8b, packets.h: MPID_PKT_DONE_T, 24 B")
    tokens = Param(1000, "count", "receive buffers of an eager message's size that GM fills in turn", source="code:MPICH-GM 1.2.4..8b, gmpi.h: GMPI_MAX_RECV_TOKENS", low=16, high=1000)
    receive = Param("polling", "choice", "how a receive waits: it polls the card's queue, or sleeps until the card interrupts (mpirun.ch_gm --gm-recv)", source="code:MPICH-GM 1.2.4..8b, mpirun.ch_gm.pl: $recv_mode", choices=("polling", "blocking"))
    cache = Param("yes", "choice", "whether registered memory stays registered", source="code:MPICH-GM 1.2.4..8b, gmpi.h: GMPI_ENABLE_REG_CACHE", choices=("yes", "no"))
    pin = Param("6 us", "s", "a call that registers memory", source="assumed: as MPI-BIP's, low end of 5-50 us", on="myrinet-piii:n1", cost="os", low="5 us", high="50 us")
    pin_page = Param("0.2 us", "s", "additional time per page registered", source="assumed: as MPI-BIP's, a table entry and a lock", on="myrinet-piii:n1", cost="os", low="0.05 us", high="1 us")
    queue = Param("1 MiB", "B", "shared memory of a process for messages from others of its host", source="code:MPICH-GM 1.2.4..8b, gmpi_smpi.h: SMPI_LENGTH_QUEUE")
    node_header = Param("64 B", "B", "header and padding of a message in shared memory", source="code:MPICH-GM 1.2.4..8b, gmpi_smpi.h: SMPI_CACHE_LINE_SIZE")
    node_work = Param("0.3 us", "s", "linking or taking a message in shared memory", source="assumed: barriers and a few cache misses", on="xeon-2000:n1", cost="work", low="0.1 us", high="1 us")

    def waits(self, p: Values) -> WaitPolicy:
        """How a receive waits for a message."""
        return BLOCK if p.receive == "blocking" else Gm.waits(self, p)

    def calls(self, p: Values, layout: Layout) -> Library:
        return self.both_ends(p, self.waits(p), self.waits(p))

    def protocol(self, p: Values) -> list[tuple[float, float, str]]:
        return [eager(0, p.eager), rendezvous(p.eager)]

    def within_host(self, p: Values, layout: Layout) -> Path:
        """Shared memory; a process that sleeps for the card cannot look there, so that GM's loopback is used (CHANGES, 1.2.4..8b)."""
        if p.receive == "blocking":
            return Path(Gm.within_host(self, p, layout).hops, self.protocol(p))
        slots = max(2, int(p.queue / max(2, len(layout.placement)) / max(1, p.eager + p.node_header)))
        ring = Ring(
            ("rank", "rank"), packet=max(1, p.eager), header=p.node_header, slots=slots, send_cpu=p.node_work, recv_cpu=p.node_work, space_wait=self.waits(p),
        )  # fmt: skip
        return Path([ring], self.protocol(p))

    def between_hosts(self, p: Values, layout: Layout) -> Path:
        below = Gm.between_hosts(self, p, layout)
        hops = [
            replace(
                hop, packet=max(1, p.put), message_header=p.envelope, copies_in=1, copies_out=1, recv_buffers=p.tokens * (p.eager + p.envelope), told_by=p.done,
                pin=p.pin, pin_page=p.pin_page, pin_cache=p.cache == "yes", sleeps=p.receive == "blocking", space_wait=self.waits(p),
            )
            for hop in below.hops if isinstance(hop, Dma)
        ]  # fmt: skip
        return Path(hops, self.protocol(p))

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """mpirun.ch_gm logs in to each machine of its file; the processes open a GM port each and tell it where, and it tells all others."""
        steps = [StartStep("mpirun.ch_gm -np N", manual=1, note="reads the file of machines; waits for the processes on a socket")]
        steps += [StartStep(f"rank {r}", note=f"by rsh on {platform.hosts[h].name}; opens a GM port") for r, h in enumerate(placement)]
        crowded = next((h for h in placement if placement.count(h) > PORTS), None)
        reason = f"no GM port is free for a process on {platform.hosts[crowded].name}: a card has {PORTS} for users" if crowded is not None else ""
        return [*steps, StartStep("exchange of ports", note="each process gets the list of all")], reason


PORTS = 5
"""GM 1.x: a card has eight ports, of which the driver, the mapper and IP take three."""
