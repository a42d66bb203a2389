"""What became of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Result"]


@dataclass
class Result:
    """What became of a run. Times in simulated seconds (``_ps`` in picoseconds), sizes in bytes."""

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
    per_rank: list[dict[str, Any]]
    marks: list[dict[str, Any]]
    anatomy: list[dict[str, Any]] = field(default_factory=list)
    anatomy_ps: int = 0
    waits: list[dict[str, Any]] = field(default_factory=list)
    startup: list[dict[str, Any]] = field(default_factory=list)
    cautions: list[str] = field(default_factory=list)
    delivered: int = 0
    delivered_bytes: int = 0
    own_bytes: int = 0
    done: dict[str, int] = field(default_factory=dict)
    frames: int = 0
    retransmissions: int = 0
    duplicates: int = 0
    events: int = 0
    section: dict[str, Any] | None = None
    diagnosis: dict[str, Any] = field(default_factory=dict)
    """Of a run that did not complete: ``summary``, ``told`` and tables (docs of `retrompi.sim.diagnosis`)."""
    timeline: Any = None
    """The `retrompi.sim.timeline.Timeline` that was asked for."""
    message_path: Any = None
    """The `retrompi.sim.message_path.MessagePath` between the directions that were asked for."""
    profile: dict[str, Any] = field(default_factory=dict)
    """If asked for: ``calls`` (action, bytes, section of MPI_Pcontrol or -1, count, ps) summed over the ranks, ``finalized_ps`` by rank
    (-1: never)."""
    used: list[str] = field(default_factory=list)
    """The parameters of the model and numbers of the platform that the run used, as ``--set`` takes them."""
    collectives: list[dict[str, Any]] = field(default_factory=list)
    """Which algorithms ran: operation, algorithm, calls (of all members)."""
    lost: int = 0
    """Frames that something that was down has taken."""
    failed: str = ""
    """What was down and took frames: ``link server down from 1 s on (3 frames lost)``."""
    traffic: list[dict[str, Any]] = field(default_factory=list)
    """What became of the traffic beside the job: `retrompi.spec.cross_traffic.told`."""
    jobs: list[dict[str, Any]] = field(default_factory=list)
    """What became of the further jobs, as `retrompi.spec.cojobs.told`; all else is of the first."""
