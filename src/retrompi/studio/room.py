"""Resources shared by the pages of a studio."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.studio.jobs import Jobs
from retrompi.studio.limits import Limits

if TYPE_CHECKING:
    from retrompi.store.database import Store

__all__ = ["Room"]


@dataclass
class Room:
    """``store`` is a path, a URL or None for the user's default store (see `retrompi.store.open_store`)."""

    jobs: Jobs
    store: str | None = None
    limits: Limits = field(default_factory=Limits)
    uploads: Any = None
    """Set by `retrompi.studio.uploads`."""
    extra: dict[str, Any] = field(default_factory=dict)
    """State that a page keeps between its callbacks, by the page's name."""
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="retrompi-studio-")))
    """The studio's temporary folder, removed with it."""

    @property
    def places(self) -> tuple[str | None, str]:
        """(the user's store, the studio's temporary one), for the functions of `retrompi.studio.runs`."""
        return self.store, str(self.folder / "runs.db")

    def close(self) -> None:
        """Ends the jobs and removes the studio's temporary folder."""
        self.jobs.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def open_store(self, *, write: bool = False) -> Store:
        """The store, opened for one use. Raises StoreError."""
        from retrompi.store import open_store

        return open_store(self.store, write=write)
