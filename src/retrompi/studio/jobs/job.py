"""A job of the studio as its pages see it, and as `retrompi.studio.jobs.queue` keeps it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Protocol

from retrompi.base import translate
from retrompi.studio.jobs.fair_turns import JobShare

__all__ = ["ENDED", "Allowance", "JobState", "Report", "StudioJob", "Then"]

Report = Callable[..., None]
"""``report(done, total, what="")``: reports progress."""

ENDED = ("done", "failed", "cancelled")
"""The last statuses of a job."""


class Allowance(Protocol):
    """What sessions may use and have used, where that is limited."""

    def ask(self, session: str) -> None:
        """Raises UsageError if the session may begin no more jobs now."""

    def pay(self, session: str, cpu_s: float) -> None:
        """Notes the processor seconds of a job that has ended. Must not wait: the jobs are locked."""


@dataclass(frozen=True)
class JobState:
    """``status`` is queued, running, keeping (its result is being recorded), done, failed or cancelled; ``error`` is one line, ``result``
    that of a finished job."""

    id: str
    title: str
    status: str
    done: int = 0
    total: int = 0
    what: str = ""
    result: Any = None
    error: str = ""
    ahead: int = 0
    """For a waiting job: the number of jobs that begin before it."""
    running: int = 0
    """For a waiting or paused job: the number of begun jobs, of all sessions."""
    own: bool = False
    """Whether it waits for jobs of its own session."""
    paused: bool = False
    """Whether it is a running job that has to wait for its next turn."""
    seconds: float = 0.0
    """Its running time, without pauses."""

    @property
    def ended(self) -> bool:
        """Whether the state is final."""
        return self.status in ENDED


Then = Callable[[JobState], None]
"""What the studio does when a job has ended, in a thread of its own, with the language of who asked."""


@dataclass
class StudioJob:
    """A job with its process."""

    id: str
    session: str
    title: str
    slot: str
    work: tuple[Any, ...]
    seconds: float
    memory_B: int
    share: JobShare
    question: str = ""
    language: str = field(default_factory=translate.language)
    status: str = "queued"
    told: tuple[int, int, str] = (0, 0, "")
    result: Any = None
    error: str = ""
    took: float = 0.0
    cpu_s: float = 0.0
    size_B: int = 0
    process: Any = None
    now: Any = None
    """Not 0 while its process is within a simulation, see `retrompi.studio.jobs.child_process.Simulating`."""
    low: bool = False
    line: Connection | None = None
    parts: list[bytes] = field(default_factory=list)
    also: dict[str, str] = field(default_factory=dict)
    """Slots that took it over after its start, and its key there."""
    payer: str = ""
    then: Then | None = None
    stays: bool = False

    def asks(self, slot: str) -> str | None:
        """The question that identifies it in a slot; None for a slot that is not its own."""
        return self.question if self.slot == slot else self.also.get(slot)
