"""WMPI: MPICH on p4, ported to Win32 at Coimbra. Local tasks share p4's memory pool; between machines a message goes
task -> local daemon (TCP) -> remote daemon (UDP with acknowledgement and retry) -> task (TCP)  [BF-CFG-11]."""

from __future__ import annotations

from typing import Any

from retrompi import rows
from retrompi.platform import Platform
from retrompi.runtime import Param, RuntimeModel, Values


class Wmpi(RuntimeModel):
    name = "wmpi"
    title = "WMPI"
    version = "1.0 to 1.1"
    years = "1996-1998"
    summary = "p4 shared-memory pool on one machine; TCP to UDP daemons between machines"

    packet = Param("128 KiB", "B", "largest packet", source="paper:BF-SM-05")
    header = Param("40 B", "B", "packet header", source="assumed: p4 and ADI headers", low="16 B", high="128 B")
    pool = Param("1 MiB", "B", "global shared memory of a machine", source="paper:BF-FUN-06", low="1 MiB", high="16 MiB")
    prefix = Param("32 B", "B", "the allocator's header before every buffer of the pool", source="assumed: p4's message block links", low="8 B", high="64 B")
    copies = Param(2, "count", "copies of a message in shared memory: into the pool and out of it", source="code:E-P4-08")
    library = Param("50 us", "s", "library work of a send or of a receive", source="fit:fit.toml", low="5 us", high="90 us")
    event = Param("30 us", "s", "signalling the receiver", source="assumed: a kernel object, range of E-REC-15", low="10 us", high="30 us")
    pool_wait = Param("spin", "choice", "how a sender waits for a free buffer", source="code:E-P4-07", choices=("spin", "spin_yield", "block"))
    poll_cost = Param("2 us", "s", "one look at the queue and the pool's lock", source="assumed: a lock and a few memory accesses", low="0.5 us", high="20 us")
    socket_call = Param("100 us", "s", "library and WinSock work of one socket call", source="fit:fit.toml", low="50 us", high="675 us")
    daemon = Param("100 us", "s", "routing a packet in a daemon", source="assumed: about a loopback UDP exchange (E-LM-06)", low="20 us", high="400 us")
    network_packet = Param("4 KiB", "B", "largest datagram between daemons", source="code:E-P4-06", low="1 KiB", high="16 KiB")
    udp_window = Param(4, "count", "datagrams a daemon may have unacknowledged", source="assumed: a small window", low=1, high=16)
    udp_timeout = Param("500 ms", "s", "time to the first retry", source="assumed: half a second", low="50 ms", high="2 s")
    udp_retries = Param(10, "count", "retries before a daemon gives up", source="assumed: ten", low=3, high=30)
    loss = Param(0, "probability", "datagrams lost", source="assumed: a dedicated cable loses none", low=0, high=1)
    duplicate = Param(0, "probability", "datagrams delivered twice", source="assumed: a dedicated cable doubles none", low=0, high=1)
    reorder = Param(0, "probability", "datagrams delayed past their successors", source="assumed: one path, one order", low=0, high=1)
    reorder_delay = Param("20 ms", "s", "delay of a datagram that is overtaken", source="assumed: a few datagrams long", low="1 ms", high="1 s")
    unexpected = Param("0 B", "B", "library memory for unexpected messages; 0: the machine's", source="assumed: p4 allocates as it needs")

    def shared(self, p: Values) -> list[dict[str, Any]]:
        """The hop between two tasks of one machine: p4's pool."""
        return [
            rows.pool(
                ("rank", "rank"), packet=p.packet, header=p.header, pool=p.pool, prefix=p.prefix, copies_in=p.copies / 2, copies_out=p.copies / 2,
                event=p.event, hold_unexpected=1, progress=0, ws_packet=2,
                space_wait=rows.wait(p.pool_wait, polls=50, poll_cost=p.poll_cost),
            )
        ]  # fmt: skip

    def network(self, p: Values) -> list[dict[str, Any]]:
        """The three hops between tasks of two machines."""
        tcp = {"packet": p.network_packet, "header": p.header, "call": p.socket_call}
        return [
            rows.stream(("rank", "daemon@src"), **tcp),
            rows.datagram(
                ("daemon@src", "daemon@dst"), **tcp, timeout=p.udp_timeout, retries=p.udp_retries, window=p.udp_window,
                loss=p.loss, duplicate=p.duplicate, reorder=p.reorder, reorder_delay=p.reorder_delay,
            ),
            rows.stream(("daemon@dst", "rank"), **tcp),
        ]  # fmt: skip

    def compile(self, p: Values, platform: Platform, placement: list[int]) -> dict[str, Any]:
        return rows.compiled(
            platform, placement, same=self.shared(p), remote=self.network(p), protocol_same=[rows.eager()], protocol_remote=[rows.eager()],
            send_cpu=p.library, recv_cpu=p.library, test_cpu=p.poll_cost, recv_wait=rows.BLOCK, send_wait=rows.BLOCK,
            idle={"daemon": rows.BLOCK}, forward_cost={"daemon": p.daemon}, unexpected_limit=p.unexpected,
        )  # fmt: skip
