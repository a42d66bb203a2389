"""A study's results, as rows from the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from retrompi.store.database import Store

__all__ = ["axes_of", "rows"]

BESIDE = ("position", "outcome", "reason", "run_id", "time_s", "ranks", "messages", "wall_s", "identity")
"""Keys of a row beside the axes."""


def axes_of(definition: Mapping[str, Any]) -> list[str]:
    """The varying keys of a study's definition, in order."""
    return [*definition.get("vary", {}), *(key for together in definition.get("zip", ()) for key in together),
            *(["draw"] if definition.get("draws") else [])]


def rows(store: Store, study: int | str) -> list[dict[str, Any]]:
    """One row for each point looked up, simulated or rejected, by position: position, a text for every axis (``-``: does not
    apply to the point), outcome (``error``: no run), reason, run_id, time_s (simulated), ranks, messages, wall_s, identity."""
    which = store.study(study)
    keys = axes_of(which["definition"])
    out = []
    for row in store.study_points(which["id"]):
        values = row.pop("axes")
        out.append({"position": row["position"], **{k: values.get(k, "") for k in keys}, **{k: row[k] for k in BESIDE[1:]}})
    return out
