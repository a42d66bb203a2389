"""How a run ends: the words of the store, of JSON and of the engine, declared once.

A member is its word (a `str`), so that stored rows and files compare with it. The engine's enumeration of the same name is made from this
one (`retrompi.spec.compiled.cpp`); pages show ``_(outcome)``, its word in the reader's language.
"""

from __future__ import annotations

from enum import StrEnum

from retrompi.base.translate import lazy

__all__ = ["Outcome"]


class Outcome(StrEnum):
    """How a run ended: its word, what that means, the exit code of a command about it, and whether another machine ends it alike."""

    meaning: str
    exit_code: int
    """0: as it should; 1: a negative outcome (`retrompi.base.errors`)."""
    repeatable: bool
    """Whether the simulated program and runtime alone decide it, so that a scenario can expect it: no bound and no real machine does."""

    COMPLETED = lazy("completed"), "every rank has finished", 0, True
    DEADLOCK = lazy("deadlock"), "no process can go on", 1, True
    ABORTED = lazy("aborted"), "a rank, the runtime or the program ended the job", 1, True
    FAILED_START = lazy("failed-start"), "the runtime could not start the job", 1, True
    TIMEOUT = lazy("timeout"), "not finished after the longest simulated time", 1, True
    OVERFLOW = lazy("overflow"), "a time or an amount passed what 64 bits can count", 1, True
    LIMIT = lazy("limit"), "a bound on events, wall time or memory ended the simulation", 1, False
    ENDED = lazy("ended"), "a background job, ended with the first one", 0, False
    FAILED = lazy("failed"), "a program on a real machine or on SMPI ended with an error", 1, False
    KILLED = lazy("killed"), "a program on a real machine was ended by a signal", 1, False

    def __new__(cls, word: str, meaning: str = "", exit_code: int = 1, repeatable: bool = False) -> Outcome:
        self = str.__new__(cls, word)
        self._value_, self.meaning, self.exit_code, self.repeatable = word, meaning, exit_code, repeatable
        return self

    __repr__ = str.__repr__  # in rows and tables it is shown as the word that it is
