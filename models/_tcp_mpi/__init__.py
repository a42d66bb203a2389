"""What MPI libraries of 2004 over TCP share: sockets that do not block, a header read by itself, and long messages of which a first part goes
with the request for permission to send the rest. Not a model: its name is no runtime's.
"""

from __future__ import annotations

from retrompi.models._mpich1 import Mpich1
from retrompi.spec.channels import Cost, Library, Path, eager, rendezvous
from retrompi.spec.layout import Layout
from retrompi.spec.media import BLOCK, Stream, WaitPolicy
from retrompi.spec.model import Param
from retrompi.spec.sockets import kernel_buffer
from retrompi.spec.values import Values


class TcpMpi(Mpich1):
    """Base of models that declare `eager`, `header`, `fragment`, `sockbuf` and `length`. The cost of `length` 1 is MPICH 1's."""

    eager: Param
    header: Param
    fragment: Param
    sockbuf: Param
    length: Param

    socket_call = Param("0.2 us", "s", "library work of a socket call", source="assumed: a few hundred cycles", on="p4-1800:n1", cost="work", low="0.05 us", high="1 us")
    look = Param("1 us", "s", "asking the system which sockets are ready (poll, select)", source="assumed: two null system calls", on="p4-1800:n1", cost="os", low="0.3 us", high="4 us")

    polls = True
    """Whether a library that waits asks the system again and again; else it sleeps in the call."""
    asks_with_data = True
    """Whether the request for permission carries the first `eager` bytes."""
    calls_in = 2.0
    """System calls of a read, with those that find out that there is something to read."""

    def waits(self, p: Values) -> WaitPolicy:
        return WaitPolicy("spin", poll_call=p.look) if self.polls else BLOCK

    def calls(self, p: Values, layout: Layout) -> Library:
        work = p.length * p.library / 2  # `library` is both ends'
        return Library(work, work, self.waits(p), self.waits(p))

    def connection(self, p: Values, layout: Layout) -> Path:
        """One TCP connection between two processes, on one machine as well."""
        buffer = kernel_buffer(layout, p.sockbuf) if p.sockbuf > 0 else 0.0
        tcp = Stream(
            ("rank", "rank"), packet=p.fragment, header=p.header, call=p.socket_call, calls_in=self.calls_in, header_read=True,
            by_segment=True, sndbuf=buffer, rcvbuf=buffer, space_wait=self.waits(p),
        )  # fmt: skip
        return Path([tcp], [eager(0, p.eager + 1), rendezvous(p.eager + 1)], ask=p.eager if self.asks_with_data else 0)

    def within_host(self, p: Values, layout: Layout) -> Path:
        return self.connection(p, layout)

    def between_hosts(self, p: Values, layout: Layout) -> Path:
        return self.connection(p, layout)

    def probing(self, p: Values, layout: Layout) -> Cost:
        return Cost(os=p.look)
