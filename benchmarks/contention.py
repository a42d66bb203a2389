"""How messages that a card moves as a whole share a network: as frames of a FIFO, in packets, or fluidly (docs/networks.md, "Bursts").

    python benchmarks/contention.py [PACKET]

For each case the completion time of every message under four laws: the whole message a frame of the queueing wire; packets of PACKET
bytes, handed to the card one after another; the fluid law; and where all share one port, packets of which the port takes one from each
input in turn, as with flow control on every link. The columns are the largest relative differences between two of them.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence

from retrompi import _engine
from retrompi.spec.declare.fields import to_engine
from retrompi.spec.machine.link import Link

RATE, LATENCY = 250e6, 0.5e-6  # Myrinet 2000
PACKET = int(sys.argv[1]) if __name__ == "__main__" and sys.argv[1:] else 4096  # B; GM's and BIP's largest
KIB, MIB = 1 << 10, 1 << 20
Message = tuple[int, int, int, int]  # start in ps, from, to, bytes
Case = tuple[str, list[int], int, list[Message]]

TREE = [4, 4, 1, 2, 1, 1]
PERMUTATION = list(enumerate(random.Random(1).sample(range(16), 16)))
CASES: dict[str, Case] = {
    "two long messages into one port": ("switch", [], 3, [(0, 0, 2, MIB), (0, 1, 2, MIB)]),
    "a short one beside a long one": ("switch", [], 3, [(0, 0, 2, MIB), (100_000_000, 1, 2, 4 * KIB)]),
    "16 KiB beside 1 MiB": ("switch", [], 3, [(0, 0, 2, MIB), (100_000_000, 1, 2, 16 * KIB)]),
    "incast of 8": ("switch", [], 9, [(0, n, 8, 64 * KIB) for n in range(8)]),
    "incast, growing": ("switch", [], 9, [(0, n, 8, 16 * KIB * (n + 1)) for n in range(8)]),
    "chain of ports": ("switch", [], 5, [(0, 0, 1, MIB), (0, 1, 2, MIB), (0, 2, 1, MIB), (0, 3, 2, MIB)]),
    "tapered tree, shift by 4": ("fat-tree", TREE, 16, [(0, n, (n + 4) % 16, 256 * KIB) for n in range(16)]),
    "tapered tree, permutation": ("fat-tree", TREE, 16, [(0, a, b, 256 * KIB) for a, b in PERMUTATION if a != b]),
    "ring, two over one link": ("torus", [5], 5, [(0, 0, 2, 256 * KIB), (0, 1, 2, 256 * KIB)]),
    "ring, everyone two further": ("torus", [5], 5, [(0, n, (n + 2) % 5, 256 * KIB) for n in range(5)]),
}


def carried(wire: str, case: Case, flows: Sequence[Message]) -> list[int]:
    """When each of ``flows`` arrives (ps) on the network of a case."""
    kind, shape, hosts, _ = case
    link = Link(kind, tuple(shape), RATE, LATENCY, frame_overhead=0.0, mtu=1500.0)
    return list(_engine.carry(wire, to_engine(link), list(range(hosts)), list(flows)))


def in_packets(case: Case) -> list[int]:
    """When the last packet of each message arrives (ps); a hub takes one from each station in turn."""
    packets = [(at, a, b, min(PACKET, size - sent), n) for n, (at, a, b, size) in enumerate(case[3]) for sent in range(0, size, PACKET)]
    packets.sort(key=lambda p: p[0])
    last = [0] * len(case[3])
    for (*_, n), t in zip(packets, carried("native", case, [p[:4] for p in packets]), strict=True):
        last[n] = max(last[n], t)
    return last


def off(case: Case, got: Sequence[int], reference: Sequence[int]) -> float:
    """The largest relative difference between the times that messages take."""
    starts = [at for at, *_ in case[3]]
    return max(abs((t - at) / (r - at) - 1) for t, r, at in zip(got, reference, starts, strict=True))


def one_port(case: Case) -> Case | None:
    """The case on a hub, whose stations take turns packet by packet, if all messages go to one host of a switch."""
    kind, _, hosts, messages = case
    return ("hub", [], hosts, messages) if kind == "switch" and len({b for _, _, b, _ in messages}) == 1 else None


def main() -> int:
    """Prints the table."""
    print(f"{'case':32} {'messages/packets':>16} {'fluid/packets':>14} {'fluid/turns':>12}")
    for name, case in CASES.items():
        packets, messages, fluid = in_packets(case), carried("native", case, case[3]), carried("fluid", case, case[3])
        port = one_port(case)
        turns = f"{off(port, carried('fluid', port, case[3]), in_packets(port)):12.1%}" if port else f"{'':>12}"
        print(f"{name:32} {off(case, messages, packets):16.1%} {off(case, fluid, packets):14.1%} {turns}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
