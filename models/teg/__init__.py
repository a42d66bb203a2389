"""Open MPI's TEG point-to-point layer over its TCP component (PTL), as its first public source of 2004 has it: a first fragment of up to
64 KiB, which waits for its match where more is to follow, and the rest in one fragment; progress by polling the event library, or by a thread
of the library that sleeps in poll, reads what has come and wakes the one that waits.

Processes of one machine use TCP too: the shared-memory component is another.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from retrompi.models._tcp_mpi import TcpMpi
from retrompi.spec.calibrated_range import Range
from retrompi.spec.channels import Path
from retrompi.spec.layout import Layout
from retrompi.spec.media import BLOCK, Stream, WaitPolicy
from retrompi.spec.model import Param, StartStep
from retrompi.spec.needs import Needs
from retrompi.spec.platform import Platform
from retrompi.spec.technology import IP
from retrompi.spec.values import Values

_PTL = "code:open-mpi/ompi of 2004, src/mca/ptl/tcp/src"


class Teg(TcpMpi):
    name = "teg"
    title = "Open MPI TEG over TCP"
    version = "before 1.0"
    years = "2004"
    summary = "a first fragment of 64 KiB, the rest in one piece after its match; progress by polling or by a thread"
    needs = Needs(networks=IP, systems=("unix",), source="doc:TG04F-015: measured under Linux")
    calibrated = Range(
        sizes=("8 B", "8 MiB"), ranks=(2, 2), platforms=("xeon-2000*2@ip-gm-pci64c",),
        source="doc:TG04F-015: the machine is fitted to raw TCP, TEG to nothing",
    )  # fmt: skip

    eager = Param("64 KiB", "B", "first fragment; a longer message waits for its match before the rest is sent", source=f"{_PTL}/ptl_tcp_module.c: first_frag_size", low="1 KiB", high="1 MiB")
    fragment = Param("1024 GiB", "B", "largest further fragment: unlimited", source=f"{_PTL}/ptl_tcp_module.c: max_frag_size -1", low="64 KiB")
    header = Param("64 B", "B", "header of a fragment: the union of all headers is sent", source=f"assumed: {_PTL}/ptl_tcp_sendfrag.c sends sizeof(mca_ptl_base_header_t), about 64 B", low="48 B", high="96 B")
    sockbuf = Param("0 B", "B", "socket buffers; 0: the system's", source=f"{_PTL}/ptl_tcp_module.c asks for none; ptl_tcp_component.c, later, for 128 KiB", low="0 B", high="1 MiB")
    length = Param(1.5, "1", "library work of a message relative to MPICH 1's: components, requests and fragments of their own", source="assumed: from the length of the code, a factor of three both ways", low=0.5, high=4.5)
    progress = Param("poll", "choice", "who looks for messages: the process that waits, or a thread of the library", source="code:open-mpi/ompi of 2004, src/event/event.c: a thread runs the loop where threads are compiled in, else whoever waits", choices=("poll", "thread"))
    handoff = Param("3.5 us", "s", "from the thread, which has read a message, to the process that waits for it: locks, a condition variable and a switch", source="assumed: four null system calls and a switch; code:open-mpi/ompi of 2004, src/mca/pml/teg/src/pml_teg_irecv.c and pml_teg_recvreq.c", on="p4-1800:n1", cost="os", low="1 us", high="12 us")

    calls_in = 2.0  # poll and recv of the common part of a header, recv of its rest, recv of the data

    def waits(self, p: Values) -> WaitPolicy:
        return BLOCK if p.progress == "thread" else super().waits(p)

    def connection(self, p: Values, layout: Layout) -> Path:
        """The thread sleeps and reads as the process would, into the user's memory; then it hands over, of which either end is charged half."""
        path = super().connection(p, layout)
        if p.progress == "poll":
            return path
        return replace(path, hops=[replace(hop, message_call=p.handoff / 2) for hop in path.hops if isinstance(hop, Stream)])

    def startup(self, p: Values, platform: Platform, placement: list[int], draw: Random) -> tuple[list[StartStep], str]:
        """mpirun of the run-time environment that preceded Open MPI's own."""
        steps = [StartStep("mpirun", manual=1, note="starts the processes by rsh")]
        return steps + [StartStep(f"rank {r}", note=f"on {platform.hosts[h].name}") for r, h in enumerate(placement)], ""

