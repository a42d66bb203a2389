"""LA-MPI 1.4 and 1.5 over its TCP path: a first fragment of up to 64 KiB, acknowledged when it is matched, then fragments of 1 MiB where
there is one network card; the library asks select for ready sockets whenever it runs.

The acknowledgement leaves when the first fragment's header is matched; here, when all of it has been read. Processes of one machine use TCP
too: the path through shared memory is another.
"""

from __future__ import annotations

from random import Random

from retrompi.models._tcp_mpi import TcpMpi
from retrompi.spec.calibrated_range import Range
from retrompi.spec.model import Param, StartStep
from retrompi.spec.needs import Needs
from retrompi.spec.platform import Platform
from retrompi.spec.technology import IP
from retrompi.spec.values import Values

_TCP = "code:LA-MPI of May 2004, src/path/tcp"


class LaMpi(TcpMpi):
    name = "lampi"
    title = "LA-MPI over TCP"
    version = "1.5"
    years = "2003-2005"
    summary = "a first fragment of 64 KiB, acknowledged at its match, then fragments of 1 MiB; progress by polling"
    needs = Needs(networks=IP, systems=("unix",), source="doc:TG04F-015: measured under Linux")
    calibrated = Range(
        sizes=("8 B", "8 MiB"), ranks=(2, 2), platforms=("xeon-2000*2@ip-gm-pci64c",),
        source="doc:TG04F-015: the machine is fitted to raw TCP, LA-MPI to nothing",
    )  # fmt: skip

    eager = Param("64 KiB", "B", "first fragment; a longer message waits for its match before the rest is sent", source=f"{_TCP}/tcppath.cc: DefaultEagerSendSize", low="1 KiB", high="1 MiB")
    fragment = Param("1 MiB", "B", "largest further fragment: 1 MiB with one card, 128 KiB with several", source=f"{_TCP}/tcppath.cc: initClient", low="64 KiB", high="16 MiB")
    header = Param("64 B", "B", "header of a fragment", source=f"{_TCP}/tcphdr.h: tcp_msg_header")
    sockbuf = Param("0 B", "B", "socket buffers; 0: the system's", source=f"{_TCP}/tcppeer.cc: setSocketOptions asks for none", low="0 B", high="1 MiB")
    length = Param(2, "1", "library work of a message relative to MPICH 1's: descriptors of messages and fragments, locks, several paths", source="assumed: from the length of the code, a factor of three both ways", low=0.67, high=6)

    calls_in = 1.5  # select, recv of the header, recv of the data

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """mpirun starts a process on each machine by rsh, which forks the ranks of that machine and stays as their daemon."""
        machines = list(dict.fromkeys(placement))
        steps = [StartStep("mpirun", manual=1, note="starts one process a machine by rsh, or by the batch system")]
        steps += [StartStep(f"daemon on {platform.hosts[m].name}", daemons=1, note="forks the ranks of its machine") for m in machines]
        return steps, ""
