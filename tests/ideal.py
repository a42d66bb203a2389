"""Networks without any detail, on which the closed forms of collective algorithms hold exactly.

A message of n bytes takes alpha + n beta. On the *single port* network this is the sender's time: it sends one message after the other,
and receives meanwhile (Hockney's model with full bandwidth in both directions). On the *open* network the sender is free at once and any
number of messages travel side by side (what SimGrid has on links that nobody shares).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from retrompi import _engine, traces
from retrompi.reference.compare import UNOBSERVED
from retrompi.spec import registry
from retrompi.spec.channels import Library, Path, Row
from retrompi.spec.declare.fields import to_engine
from retrompi.spec.hosts import rows_of
from retrompi.spec.layout import Layout
from retrompi.spec.media import BLOCK, NO_LIMIT, SampledCurve
from retrompi.spec.model import RuntimeModel
from retrompi.spec.platform import Platform
from retrompi.spec.values import Values

ALPHA, BETA = 10_000_000, 10_000
"""Picoseconds, and picoseconds a byte: 10 us and 100 MB/s."""
FAR = 1 << 40
"""Bytes of the longest message."""


def cost(size: int) -> int:
    """Picoseconds of a message."""
    return ALPHA + size * BETA


@cache
def _platform() -> Platform:
    """Any: the rows have its keys, not its numbers."""
    return registry.platform("nt-pair")


class _Ideal(RuntimeModel):
    """Costs nothing but what its curve says."""

    def __init__(self, hop: SampledCurve) -> None:
        self.hop = hop

    def calls(self, p: Values, layout: Layout) -> Library:
        return Library(0, 0, BLOCK, BLOCK)

    def within_host(self, p: Values, layout: Layout) -> Path:
        return Path([self.hop])

    between_hosts = within_host


@cache
def _host(number: int) -> Row:
    h = to_engine(_platform().hosts[0])
    fast = dict.fromkeys(("copy_l1", "copy_l2", "copy_mem", "nic_rate", "bus_rate", "fsb_rate", "flops"), 1e18)
    still = dict.fromkeys(("dispatch", "syscall", "tcp_segment", "tcp_byte", "interrupt", "loopback_segment", "nic_latency", "wait_charge",
                           "line_shared", "line_bus", "delayed_ack", "quantum_at_tick", "quantum_carry", "boost"), 0.0)
    many = {"cores": 64, "mem_streams": 64.0, "quantum": 1e3, "tick": 1e-12}
    return h | fast | still | many | {"name": f"h{number}", "clock": 150e6, "work": 1.0, "byte_order": "little"}


def compiled(
    ranks: int, *, open_network: bool = False, envelope: int = 0, algorithms: Mapping[str, str] | None = None, hosts: Sequence[int] = ()
) -> Row:
    """The engine's rows; ``hosts`` places the ranks (else each has its own), ``algorithms`` chooses by operation, a message is ``envelope``
    bytes longer on the network."""
    where = list(hosts) or list(range(ranks))
    ends = [(0, cost(envelope)), (FAR, cost(FAR + envelope))]
    busy, flight = (0, 1) if open_network else (1, 0)
    points = [(size, t * busy, t * flight, 0, 0, 0, 0, 0) for size, t in ends]
    tables = {"classes": [0] * ranks, "of": [[0]], "ports": "rank", "tables": [(points, None, "")]}
    hop = SampledCurve(("rank", "rank"), packet=NO_LIMIT, header=0, curve=tables)
    made = _Ideal(hop).compile(Values("ideal", {}, {}), Layout(_platform(), [0] * ranks), {"calls", "within_host", "between_hosts"})
    chosen = [(op, name, 0.0, None, 1, None, "any", "both", False) for op, name in (algorithms or {}).items()]
    return made | UNOBSERVED | {
        "hosts": rows_of([_host(i) for i in range(max(where) + 1)]), "positions": list(range(max(where) + 1)), "placement": where,
        "remote": [hop.to_engine()],
        "collectives": chosen, "kernels": [], "seed": 1, "limit_s": 0.0, "compute_scale": 1.0, "memory_share": 0.0,
    }


def run(ranks: Sequence[str], **options: Any) -> dict[str, Any]:
    """What the engine makes of a job, one text a rank with ``;`` between lines; it must complete."""
    texts = []
    for rank, text in enumerate(ranks):
        lines = ["init", *(line.strip() for line in text.split(";") if line.strip()), "finalize"]
        said = "".join(f"{line}\n" if line.startswith("#") else f"{rank} {line}\n" for line in lines)
        texts.append((said.encode(), f"rank-{rank}.txt", rank))
    return replay(traces.Trace.parse(texts), **options)


def replay(trace: Any, **options: Any) -> dict[str, Any]:
    """What the engine makes of a trace; it must complete.

    In this process: only a network of wires is SimGrid's, which allows one simulation in the life of a process.
    """
    got = _engine.simulate(compiled(trace.ranks, **options), trace)
    assert got["outcome"] == "completed", (got["outcome"], got["detail"], got["waits"])
    assert got["delivered"] == got["messages"]
    return got
