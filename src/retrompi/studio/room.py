"""Resources shared by the pages of a studio."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.base.scratch import folder as temporary
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
    _open: ExitStack = field(default_factory=ExitStack, repr=False)
    folder: Path = field(init=False)
    """The studio's temporary folder, removed with it."""

    def __post_init__(self) -> None:
        self.folder = self._open.enter_context(temporary("studio"))

    @property
    def places(self) -> tuple[str | None, str]:
        """(the user's store, the studio's temporary one), for the functions of `retrompi.studio.runs`."""
        return self.store, str(self.folder / "runs.db")

    def close(self) -> None:
        """Ends the jobs and removes the studio's temporary folder."""
        self.jobs.close()
        self._open.close()

    def open_store(self, *, write: bool = False) -> Store:
        """The store, opened for one use. Raises StoreError."""
        from retrompi.store import open_store

        return open_store(self.store, write=write)
