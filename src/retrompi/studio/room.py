"""What the pages of a studio share."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.sim.worker import processors

if TYPE_CHECKING:
    from retrompi.store.database import Store
    from retrompi.studio.jobs import Jobs

__all__ = ["Limits", "Room"]


@dataclass(frozen=True)
class Limits:
    """What anybody may ask of a studio. Bytes, seconds, counts."""

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


@dataclass
class Room:
    """``store`` is a path, a URL or None for the user's own (see `retrompi.store.open_store`)."""

    jobs: Jobs
    store: str | None = None
    limits: Limits = field(default_factory=Limits)
    uploads: Any = None
    """`retrompi.studio.uploads` sets it."""
    extra: dict[str, Any] = field(default_factory=dict)
    """What a page keeps between its callbacks, by the page's name."""
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="retrompi-studio-")))
    """The studio's own folder, gone with it."""

    @property
    def places(self) -> tuple[str | None, str]:
        """(the user's store, the studio's own, which ends with it), for the functions of `retrompi.studio.runs`."""
        return self.store, str(self.folder / "runs.db")

    def close(self) -> None:
        """Ends the jobs and takes the studio's own folder away."""
        self.jobs.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def open_store(self, *, write: bool = False) -> Store:
        """The store, opened for one use. Raises StoreError."""
        from retrompi.store import open_store

        return open_store(self.store, write=write)
