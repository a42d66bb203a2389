"""Information that a conversion could not carry over, counted by call and reason, with the first places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["PLACES", "Effect", "Loss", "Losses"]

Effect = Literal["lost", "approximated"]
PLACES = 5
"""Places kept of each loss; all are counted."""


@dataclass
class Loss:
    """One kind of loss: the ``call``, ``what`` about it, whether it is ``lost`` or ``approximated``, the count, and the first places."""

    call: str
    what: str
    effect: Effect
    count: int = 0
    places: list[str] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        """The loss as a row of a table."""
        return {"call": self.call, "effect": self.effect, "count": self.count, "what": self.what, "places": list(self.places)}


class Losses:
    """The loss report of one conversion."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, Effect], Loss] = {}
        self.without_effect: dict[str, int] = {}
        """Calls that a replay does not need (MPI_Comm_rank, MPI_Type_commit, …): left out, but not a loss."""

    def add(self, call: str, what: str, place: str | Sequence[str], effect: Effect = "lost", count: int = 1) -> None:
        """Count ``call`` as lost (or approximated) because of ``what``, at ``place`` (``file:line``, ``file, byte N``) or several."""
        loss = self._found.setdefault((call, what, effect), Loss(call, what, effect))
        loss.count += count
        loss.places += [place] if isinstance(place, str) else place
        del loss.places[PLACES:]

    def no_use(self, call: str) -> None:
        """Count a call that a replay does not need."""
        self.without_effect[call] = self.without_effect.get(call, 0) + 1

    def __iter__(self) -> Iterator[Loss]:
        return iter(sorted(self._found.values(), key=lambda x: (x.effect != "lost", -x.count, x.call, x.what)))

    def __len__(self) -> int:
        return len(self._found)

    @property
    def total(self) -> int:
        """How many calls are lost or approximated in all."""
        return sum(x.count for x in self._found.values())

    def rows(self) -> list[dict[str, Any]]:
        """The report as rows: call, effect, count, what, places."""
        return [x.row() for x in self]
