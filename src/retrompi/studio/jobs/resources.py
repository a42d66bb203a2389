"""Resources shared by the pages of a studio."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.base.scratch import folder as temporary
from retrompi.studio.jobs.limits import Limits
from retrompi.studio.jobs.queue import Jobs

if TYPE_CHECKING:
    from retrompi.store.database import Store

__all__ = ["Resources", "SessionMember"]


@dataclass(frozen=True)
class SessionMember:
    """Whose browser asks, where the studio is served to a class: ``student`` is the id that draws a student's numbers."""

    id: int
    name: str
    student: str
    role: str
    """``student``, ``assistant`` or ``teacher``."""
    language: str | None = None

    @property
    def teaches(self) -> bool:
        """Whether it may see the class."""
        return self.role in ("teacher", "assistant")


def _nobody(session: str) -> None:
    """A studio of one's own has no members, and no shelf beside the folders."""


def _nothing(session: str) -> Sequence[tuple[str, str]]:
    return ()


@dataclass
class Resources:
    """``store`` is a path, a URL or None for the user's default store (see `retrompi.store.open_store`)."""

    jobs: Jobs
    store: str | None = None
    limits: Limits = field(default_factory=Limits)
    uploads: Any = None
    """Set by `retrompi.studio.requests.uploads`."""
    extra: dict[str, Any] = field(default_factory=dict)
    """State that a page keeps between its callbacks, by the page's name."""
    member: Callable[[str], SessionMember | None] = _nobody
    """Session -> whose it is; None in a studio of one's own, where everything is allowed."""
    shelf_of: Callable[[str], Any] = _nobody
    """Session -> where the works on labs are kept; None: in the folders that `retrompi lab start` makes."""
    more: Callable[[str], Sequence[tuple[str, str]]] = _nothing
    """Session -> (title, address) of what the navigation has beside the pages."""
    _open: ExitStack = field(default_factory=ExitStack, repr=False)
    folder: Path = field(init=False)
    """The studio's temporary folder, removed with it."""

    def __post_init__(self) -> None:
        self.folder = self._open.enter_context(temporary("studio"))

    @property
    def places(self) -> tuple[str | None, str]:
        """(the user's store, the studio's temporary one), for the functions of `retrompi.studio.curves.runs`."""
        return self.store, str(self.folder / "runs.db")

    def close(self) -> None:
        """Ends the jobs and removes the studio's temporary folder."""
        self.jobs.close()
        self._open.close()

    def open_store(self, *, write: bool = False) -> Store:
        """The store, opened for one use. Raises StoreError."""
        from retrompi.store import open_store

        return open_store(self.store, write=write)
