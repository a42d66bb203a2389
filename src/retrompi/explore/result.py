"""The result of a search over all message orders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from retrompi.spec.declare.outcome import Outcome

__all__ = ["Count", "ExecutionEnd", "Explored", "Stuck"]


@dataclass(frozen=True, slots=True)
class Stuck:
    """A rank that waits forever: in which call, for what, and for which ranks."""

    rank: int
    file: str
    line: int
    call: str
    waits_for: str
    ranks: tuple[int, ...]

    def row(self) -> dict[str, Any]:
        """For JSON."""
        return {"rank": self.rank, "file": self.file, "line": self.line, "call": self.call, "waits_for": self.waits_for,
                "ranks": list(self.ranks)}


@dataclass(slots=True)
class ExecutionEnd:
    """One way in which executions end: ``completed``, ``deadlock`` (at these calls) or ``aborted`` (for this reason).

    ``classes`` is how many executions that the program can tell apart end so; ``outcomes`` and ``order`` are those of the shortest one,
    of ``calls`` calls: what each open receive, probe and test does, and (where buffers can overflow) in which order the calls begin.
    """

    outcome: Outcome
    detail: str = ""
    stuck: tuple[Stuck, ...] = ()
    classes: int = 0
    calls: int = 0
    matches: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(rank, line, source, tag)"""
    completions: list[tuple[int, int, bool, list[int]]] = field(default_factory=list)
    """(rank, line, whether it succeeds, requests)"""
    order: list[tuple[int, int]] = field(default_factory=list)
    """(rank, line)"""
    replayed: str = ""
    """How the engine ends when it follows this execution; empty: it has not been asked."""

    @property
    def failed(self) -> bool:
        """Whether the program does not complete."""
        return self.outcome != Outcome.COMPLETED

    def row(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "outcome": self.outcome, "detail": self.detail, "classes": self.classes, "calls": self.calls,
            "stuck": [s.row() for s in self.stuck], "replayed": self.replayed or None,
        }


@dataclass(frozen=True, slots=True)
class Count:
    """A number of orders: exact, or an estimate; as its decimal logarithm, since it may have thousands of digits."""

    log10: float
    exact: bool

    @property
    def value(self) -> float:
        """The number; infinite where it is beyond a float."""
        return round(10**self.log10, 6) if self.log10 < 300 else math.inf

    @property
    def text(self) -> str:
        """``5,040``, ``about 10^14``."""
        if self.log10 < 9:
            return f"{'' if self.exact else 'about '}{self.value:,.0f}"
        return f"{'' if self.exact else 'about '}{10 ** (self.log10 % 1):.1f}e{int(self.log10)}"


@dataclass(slots=True)
class Explored:
    """The result: all ends, and how much was searched.

    ``orders`` executions were followed to an end, ``abandoned`` ones turned out to be no new ones; ``unreduced`` is how many there are
    without reduction. ``limited`` says which limit ended the search; empty: it is complete.
    """

    model: str = ""
    ends: list[ExecutionEnd] = field(default_factory=list)
    orders: int = 0
    abandoned: int = 0
    unreduced: Count | None = None
    open_ended: int = 0
    limited: str = ""
    seconds: float = 0.0
    refused: str = ""
    """Why this runtime cannot run the program at all."""
    interleaved: bool = False
    """Whether a buffer can overflow, so that the order of calls counts."""

    @property
    def classes(self) -> int:
        """Executions that the program can tell apart."""
        return sum(e.classes for e in self.ends)

    @property
    def failing(self) -> Sequence[ExecutionEnd]:
        """The ends other than completion, the one with the shortest counterexample first."""
        return sorted((e for e in self.ends if e.failed), key=lambda e: (e.calls, e.outcome, e.detail))

    @property
    def doubts(self) -> list[str]:
        """Executions that the engine, made to follow them, ends differently: the effect of a simplification of the search."""
        return [f"an order that is to end as {e.outcome} ends as {e.replayed} in the engine" for e in self.ends
                if e.replayed and e.replayed != e.outcome]

    @property
    def verdict(self) -> str:
        """``completes``, ``can deadlock``, ``can abort``, ``always deadlocks``, ...; of an incomplete search that found nothing:
        ``no failure found``."""
        failing = self.failing
        if self.refused:
            return "cannot run it"
        if not failing:
            return "no failure found" if self.limited else "completes"
        kinds = sorted({"deadlock" if e.outcome == Outcome.DEADLOCK else "abort" for e in failing}, reverse=True)
        always = not self.limited and not any(not e.failed for e in self.ends)
        return f"always {kinds[0]}s" if always and len(kinds) == 1 else f"{'always fails' if always else 'can'} " + (
            f"({' or '.join(kinds)})" if always else " or ".join(kinds))

    def row(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "model": self.model, "verdict": self.verdict, "classes": self.classes, "orders": self.orders, "abandoned": self.abandoned,
            "unreduced_log10": None if self.unreduced is None else self.unreduced.log10,
            "unreduced_exact": None if self.unreduced is None else self.unreduced.exact,
            "open_ended": self.open_ended, "interleaved": self.interleaved, "limited": self.limited or None, "wall_s": self.seconds,
            "refused": self.refused or None, "doubts": self.doubts, "ends": [e.row() for e in self.ends],
        }
