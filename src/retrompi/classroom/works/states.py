"""The state of a work as a JSON column has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retrompi.labs.student import Sealed, State

__all__ = ["state_of", "told_state"]


def told_state(state: State) -> dict[str, Any]:
    """A state for its column."""
    told = {k: getattr(state, k) for k in ("student", "lab", "version", "seed", "token", "checks", "seal")}
    sealed = {k: {"text": s.text, "check": s.check, "late": s.late} for k, s in state.sealed.items()}
    return {**told, "sealed": sealed, "hints": dict(state.hints)}


def state_of(row: Mapping[str, Any]) -> State:
    """The state in a column."""
    sealed = {k: Sealed(v["text"], v["check"], v["late"]) for k, v in row["sealed"].items()}
    return State(**{**row, "sealed": sealed})
