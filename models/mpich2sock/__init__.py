"""MPICH2 of 2004 on its sock channel (ch3:sock): TCP sockets that do not block, watched by poll; a packet's header and its data leave in one
writev and are read one after the other; long messages ask first. Processes of one machine use TCP too.
"""

from __future__ import annotations

from random import Random

from retrompi.models._tcp_mpi import TcpMpi
from retrompi.models.nemesis import Nemesis
from retrompi.spec.calibrated_range import Range
from retrompi.spec.collectives import Choice, Making
from retrompi.spec.model import Param, StartStep
from retrompi.spec.needs import Needs
from retrompi.spec.platform import Platform
from retrompi.spec.technology import IP
from retrompi.spec.values import Values

_OLDER = "assumed: as MPICH2 1.3a2 without its forms for ranks that share a host"
COLLECTIVES = tuple(
    Choice(c.operation, c.algorithm, _OLDER, low=f"{c.low} B", high=None if c.high is None else f"{c.high} B", ranks=c.ranks, count=c.count)
    for c in Nemesis.collectives
    if not c.nodes
)


class Mpich2Sock(TcpMpi):
    name = "mpich2sock"
    title = "MPICH2 ch3:sock"
    version = "0.97 and 1.0"
    years = "2004-2007"
    summary = "TCP watched by poll, rendezvous above 256 KiB"
    needs = Needs(networks=IP, systems=("unix",), source="doc:TG04F-015: measured under Linux; the port to Windows is not this model")
    collectives = COLLECTIVES
    communicators = Making(4, True, "assumed: as MPICH2 1.3a2, with a mask of one word")
    calibrated = Range(
        sizes=("8 B", "8 MiB"), ranks=(2, 2), platforms=("xeon-2000*2@ip-gm-pci64c",),
        source="doc:TG04F-015: the machine is fitted to raw TCP, MPICH2 to nothing",
    )  # fmt: skip

    eager = Param("256 KiB", "B", "longest message sent without asking first", source="code:MPICH2 1.0.6, src/mpid/ch3/channels/sock/include/mpidi_ch3_post.h: MPIDI_CH3_EAGER_MAX_MSG_SIZE (0.97 is not at hand)", low="64 KiB", high="256 KiB")
    fragment = Param("1024 GiB", "B", "largest piece of a message: all of it", source="code:MPICH2 1.0.6, src/mpid/ch3/channels/sock/src/ch3_progress.c", low="64 KiB")
    header = Param("40 B", "B", "packet header", source="assumed: code:MPICH2 1.0.6, src/mpid/ch3/include/mpidpkt.h: MPIDI_CH3_Pkt_t, 32 to 48 B", low="32 B", high="48 B")
    sockbuf = Param("0 B", "B", "socket buffers (MPICH_SOCKET_BUFFER_SIZE); 0: the system's", source="code:MPICH2 1.0.6, src/mpid/common/sock/poll/socki_util.i", low="0 B", high="1 MiB")
    length = Param(1, "1", "library work of a message relative to MPICH 1's", source="assumed: from the length of the code, a factor of three both ways", low=0.33, high=3)

    polls = False
    asks_with_data = False
    calls_in = 2.0  # poll and readv

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """A ring of mpd daemons, then mpiexec."""
        machines = list(dict.fromkeys(placement))
        steps = [StartStep("mpdboot", manual=1, note="fails without a file .mpd.conf that only its owner can read")]
        steps += [StartStep(f"mpd on {platform.hosts[m].name}", daemons=1, note="started by ssh or rsh; the daemons form a ring") for m in machines]
        return [*steps, StartStep("mpiexec", manual=1, note=f"the daemons start {len(placement)} processes")], ""
