"""The placement of the ranks of a job, which decides which paths a runtime needs between them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from retrompi.spec.host import Host
from retrompi.spec.hosts import Grown, Hosts, kinds
from retrompi.spec.platform import Placement, Platform

__all__ = ["Layout"]


class Layout:
    """The hosts of a platform and which of them each rank runs on; ``placement[r]`` is the index in ``platform.hosts`` of rank r."""

    def __init__(self, platform: Platform, placement: Sequence[int]) -> None:
        self.platform = platform
        self.placement = placement if isinstance(placement, Placement) else Placement(placement)
        self.read: set[str] = set()
        """Paths (``server.syscall``) of host values that a model has read while compiling."""
        self.fixed: set[str] = set()
        """Keys of a host that the model replaces by its own values."""

    @cached_property
    def used(self) -> tuple[int, ...]:
        """The hosts that run a rank, as indices in ``platform.hosts``, in order."""
        return tuple(sorted(set(self.placement)))

    @cached_property
    def places(self) -> list[int]:
        """Of every rank, the place of its host in `used`."""
        of = {host: place for place, host in enumerate(self.used)}
        return [of[host] for host in self.placement]

    @cached_property
    def hosts(self) -> Hosts:
        """The hosts that run a rank."""
        every = self.platform.hosts
        return every.select(self.used) if isinstance(every, Grown) else [every[i] for i in self.used]

    @property
    def kinds(self) -> list[Host]:
        """The hosts that run a rank, those of one kind once."""
        return kinds(self.hosts)[0]

    def runs(self, name: str) -> bool:
        """Whether a rank runs on the host of that name."""
        if isinstance(self.hosts, Grown):
            return self.hosts.number(name) in self.hosts.which
        return any(h.name == name for h in self.hosts)

    def number(self, key: str) -> float:
        """A value of rank 0's host (base unit), for a model whose costs depend on it; it is recorded as used by the run."""
        host = self.platform.hosts[self.placement[0]]
        self.read.add(f"{host.name}.{key}")
        return float(getattr(host, key))

    @property
    def several_hosts(self) -> bool:
        """Whether messages may go between hosts."""
        return len(self.used) > 1

    @property
    def shares_host(self) -> bool:
        """Whether two ranks run on one host."""
        return len(self.used) < len(self.placement)

    @cached_property
    def mixed_byte_order(self) -> bool:
        """Whether the hosts that run ranks differ in byte order."""
        return len({h.byte_order for h in self.kinds}) > 1

    def __repr__(self) -> str:
        return f"Layout({self.platform.name}, {list(self.placement)})"
