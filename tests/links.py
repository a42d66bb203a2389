"""A link alone, as the engine reads it, for tests of the wires."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from retrompi.spec.declare.fields import to_engine
from retrompi.spec.machine.link import Link

__all__ = ["link"]


def link(kind: str, shape: Sequence[int], bandwidth: float, latency: float, **more: Any) -> dict[str, Any]:
    """What `_engine.carry` takes: the declaration's keys, its defaults, and nothing around a frame."""
    return to_engine(Link(kind, tuple(shape), bandwidth, latency, frame_overhead=0.0, mtu=1500.0, **more))
