"""The network that connects the hosts of a platform, one declaration per value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from retrompi.spec.declare.fields import ITSELF, Use, choice, quantity, stating_what_follows, whole, word
from retrompi.spec.machine import topology

__all__ = ["Link"]


@stating_what_follows
@dataclass(frozen=True, slots=True)
class Link:
    """The network between the hosts. A cable and a switch carry both directions at once, a hub one frame at a time.

    A torus joins neighbours in each dimension of its ``shape``; hosts are placed in file order, the first dimension fastest. A
    fat tree and the sites of a ``wan`` have a ``shape`` as well (`topology`). With ``rails`` links of the same kind, a host has a card on
    each; ``rail_policy`` says whether a pair of hosts uses one of them or stripes messages over all (docs/networks.md).
    """

    kind: str = choice("topology", tuple(topology.KINDS), used_by=Use.WIRE)
    shape: tuple[int, ...] = word("its dimensions, switches or sites", cpp="std::vector<unsigned long>", used_by=Use.WIRE)
    bandwidth: float = quantity("B/s", "signalling rate", above=0, plain="1 GB/s", used_by=Use.WIRE, follows=ITSELF)
    latency: float = quantity(
        "s", "propagation and forwarding time of one frame", plain="0 us", used_by=Use.WIRE, cpp="double",
        follows=ITSELF,
    )
    frame_overhead: float = quantity(
        "B", "headers, preamble and gap around the payload of one frame", plain="0 B", used_by=Use.WIRE,
        follows=ITSELF,
    )
    mtu: float = quantity("B", "largest IP datagram in one frame", above=0, low=68, plain="1500 B", used_by=Use.FRAGMENTS, follows=ITSELF)
    rails: float = whole(
        "cards of a host, and planes of the link", low=1, high=64, default=1.0, cpp="size_t", used_by=Use.WIRE,
        follows=ITSELF,
    )
    wan_bandwidth: float = quantity(
        "B/s", "rate of the line between two sites, each way", above=0, default=0.0, used_by=Use.SITES,
        follows=ITSELF,
    )
    wan_latency: float = quantity(
        "s", "latency of the line between two sites", default=0.0, used_by=Use.SITES, cpp="double",
        follows=ITSELF,
    )
    file: tuple[str, ...] = word("a SimGrid platform file, and the names of its hosts", cpp="std::vector<std::string>", default=(),
                                 used_by=Use.WIRE)
    buffer: float = quantity(
        "B", "what may wait in front of an output port of a switch, in a pausing-switch of the frames from each card; 0: no bound",
        default=0.0, used_by=Use.WIRE, cpp="double", follows=ITSELF,
    )
    rail_policy: str = choice("what several rails carry", topology.POLICIES, enum="RailPolicy", default="pair", used_by=Use.WIRE)
    access: str = choice("how the stations of a hub share it", topology.ACCESS, enum="Access", default="fifo", used_by=Use.WIRE)

    @property
    def of_kind(self) -> topology.LinkKind:
        """What its kind is."""
        return topology.of(self.kind)

    @property
    def words(self) -> dict[str, str]:
        """The choices of `topology.WORDS`."""
        return {"rail_policy": self.rail_policy, "access": self.access}

    def with_words(self, words: Mapping[str, str]) -> Link:
        """A copy with these choices."""
        return replace(self, rail_policy=words["rail_policy"], access=words["access"])
