"""Limits of a studio."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from retrompi.sim.processes import processors
from retrompi.spec.conditions.bounds import Bounds

__all__ = ["Limits"]


def _memory_B() -> int:
    """Bytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@dataclass(frozen=True)
class Limits:
    """The limits of a studio: bytes, seconds, counts."""

    upload_B: int = 8 << 20
    """Size of one uploaded file."""
    body_B: int = 12 << 20
    """Size of one request: an upload is sent as text, a third larger than the file."""
    job_s: float = 600.0
    """Duration after which a job is ended."""
    job_B: int = 2 << 30
    """Memory of a job."""
    bounds: Bounds = field(default_factory=lambda: Bounds(events=3_000_000_000, wall_s=480.0, memory_B=1 << 30))
    """Of each simulation: it ends with outcome ``limit`` and what it has computed before the job itself is ended."""
    result_B: int = 32 << 20
    """Size of a job's result, as JSON."""
    jobs_a_session: int = 16
    """Waiting or running jobs of a session."""
    jobs: int = 400
    """Waiting or running jobs of all sessions."""
    kept: int = 24
    """Finished jobs whose results a session's pages can still read."""
    kept_B: int = 512 << 20
    """Size of all their results together."""
    sessions: int = 500
    """Sessions with kept jobs; the least recently active ones are forgotten first."""
    running: int = field(default_factory=lambda: max(4, processors() + 2))
    """New jobs that run at once, in their first half second (see `retrompi.studio.jobs.fair_turns`)."""
    long: int = field(default_factory=lambda: max(2, processors()))
    """Long jobs that run at once; the others of them are paused."""
    begun: int = 24
    """Jobs with a process, paused ones included."""
    running_a_session: int = 4
    """Those of one session: a short one beside long ones in other tabs."""
    memory_B: int = field(default_factory=lambda: _memory_B() // 2)
    """Memory of all jobs together; beyond it the largest job of the session with most of it is ended."""
