"""What a study came to, as rows out of the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from retrompi.store.database import Store

__all__ = ["axes_of", "rows"]

BESIDE = ("position", "outcome", "reason", "run_id", "time_s", "ranks", "messages", "wall_s", "identity")
"""Keys of a row beside the axes."""


def axes_of(definition: Mapping[str, Any]) -> list[str]:
    """The keys that vary, in their order, of a study's definition."""
    return [*definition.get("vary", {}), *(key for together in definition.get("zip", ()) for key in together)]


def rows(store: Store, study: int | str) -> list[dict[str, Any]]:
    """One row a point that has been looked up, simulated or refused, by position: position, a text for every axis (``-``: does not
    concern the point), outcome (``error``: it is no run), reason, run_id, time_s (simulated), ranks, messages, wall_s, identity."""
    which = store.study(study)
    keys = axes_of(which["definition"])
    out = []
    for row in store.study_points(which["id"]):
        values = row.pop("axes")
        out.append({"position": row["position"], **{k: values.get(k, "") for k in keys}, **{k: row[k] for k in BESIDE[1:]}})
    return out
