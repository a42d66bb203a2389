"""Limits of a studio."""

from __future__ import annotations

from dataclasses import dataclass, field

from retrompi.sim.processes import processors

__all__ = ["Limits"]


@dataclass(frozen=True)
class Limits:
    """The limits of a studio: bytes, seconds, counts."""

    upload_B: int = 8 << 20
    """Of one uploaded file."""
    body_B: int = 12 << 20
    """Of one request: an upload is sent as text, a third longer than it is."""
    job_s: float = 600.0
    """After so long a job is ended."""
    job_B: int = 2 << 30
    """Memory that a job may take."""
    result_B: int = 32 << 20
    """What a job may answer, as JSON."""
    jobs_a_session: int = 16
    """Waiting or running."""
    jobs: int = 400
    """Waiting or running, of all sessions."""
    kept: int = 24
    """Finished jobs that a session's pages can still ask for."""
    kept_B: int = 512 << 20
    """Of all their answers together."""
    sessions: int = 500
    """With jobs that are kept; the ones asked for least lately are forgotten first."""
    running: int = field(default_factory=lambda: max(4, processors() + 2))
    """Jobs at a time. More than there are processors: a long one must not keep a short one waiting."""
    running_a_session: int = 2
