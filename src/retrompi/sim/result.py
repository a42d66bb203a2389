"""The result of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from retrompi.sim.cautions import Caution

__all__ = ["Result"]


@dataclass
class Result:
    """The result of a run. Times in simulated seconds (``_ps`` in picoseconds), sizes in bytes."""

    outcome: str
    detail: str
    time_s: float
    time_ps: int
    ranks: int
    actions: int
    messages: int
    bytes: int
    packets: int
    wall_s: float
    per_rank: Sequence[dict[str, Any]]
    marks: list[dict[str, Any]]
    anatomy: list[dict[str, Any]] = field(default_factory=list)
    anatomy_ps: int = 0
    waits: list[dict[str, Any]] = field(default_factory=list)
    startup: list[dict[str, Any]] = field(default_factory=list)
    cautions: list[Caution] = field(default_factory=list)
    delivered: int = 0
    delivered_bytes: int = 0
    own_bytes: int = 0
    done: dict[str, int] = field(default_factory=dict)
    frames: int = 0
    contended: int = 0
    """Frames and bursts, of all jobs and of cross traffic, that found a link of their way taken (`docs/networks.md`)."""
    retransmissions: int = 0
    duplicates: int = 0
    events: int = 0
    """Events simulated."""
    events_left_out: int = 0
    """Events of periods that only repeated and were not simulated (`retrompi.sim.repetitions`)."""
    section: dict[str, Any] | None = None
    diagnosis: dict[str, Any] = field(default_factory=dict)
    """For a run that did not complete: ``summary``, ``told`` and tables (described in `retrompi.sim.diagnosis`)."""
    timeline: Any = None
    """The `retrompi.sim.timeline.Timeline`, if requested."""
    message_path: Any = None
    """The `retrompi.sim.message_path.MessagePath` of the requested directions."""
    critical_path: Any = None
    """The `retrompi.sim.critical_path.CriticalPath`, if requested, of a run that completed."""
    profile: dict[str, Any] = field(default_factory=dict)
    """If requested: ``calls`` (action, bytes, section of MPI_Pcontrol or -1, count, ps) summed over the ranks, ``finalized_ps`` by rank
    (-1: never)."""
    used: list[str] = field(default_factory=list)
    """The parameters of the model and values of the platform that the run used, in the form of ``--set``."""
    collectives: list[dict[str, Any]] = field(default_factory=list)
    """The collective algorithms used: operation, algorithm, calls (summed over all members)."""
    lost: int = 0
    """Number of frames lost to failures, to full buffers of switches and to repeated collisions."""
    failed: str = ""
    """The failures that lost frames: ``link server down from 1 s on (3 frames lost)``."""
    traffic: list[dict[str, Any]] = field(default_factory=list)
    """The results of cross traffic, as returned by `retrompi.spec.cross_traffic.told`."""
    jobs: list[dict[str, Any]] = field(default_factory=list)
    """The results of further jobs, as returned by `retrompi.spec.cojobs.told`; all other fields are of the first job."""
