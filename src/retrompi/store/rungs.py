"""A question at every rung of the fidelity ladder, and the spread of the results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from retrompi.sim.fidelity import RUNGS
from retrompi.sim.resolved import Resolved
from retrompi.store.lookup import answer

if TYPE_CHECKING:
    from retrompi.spec.question import Question
    from retrompi.store.database import Store

__all__ = ["spread", "spread_of_trace"]


def _spread(times: Mapping[str, float]) -> dict[str, float]:
    low, high = min(times.values()), max(times.values())
    return {"spread": high / low if low > 0 else 1.0}


def spread(store: Store, question: Question | Resolved, *, fresh: bool = False) -> list[dict[str, Any]]:
    """A PingPong at all rungs: rows size_B, mechanism_us, curve_us, loggp_us (one way), spread (largest over smallest), run_ids
    (one for each rung)."""
    asked = Resolved.of(question)
    found = {rung: answer(store, asked.with_fields(fidelity=rung), fresh=fresh) for rung in RUNGS}
    out = []
    for group in zip(*(f.rows for f in found.values()), strict=True):
        us = {rung: float(row["time_us"]) for rung, row in zip(RUNGS, group, strict=True)}
        row = {"size_B": group[0]["size_B"], **{f"{rung}_us": t for rung, t in us.items()}, **_spread(us)}
        out.append(row | {"run_ids": [f.run_id for f in found.values()]})
    return out


def spread_of_trace(store: Store, question: Question | Resolved, *, fresh: bool = False) -> dict[str, Any]:
    """A trace at all rungs: mechanism_s, curve_s, loggp_s (simulated seconds), spread, outcome_RUNG and run_ids."""
    asked = Resolved.of(question)
    found = {rung: answer(store, asked.with_fields(fidelity=rung), fresh=fresh) for rung in RUNGS}
    runs = {rung: store.run(f.run_id) for rung, f in found.items()}
    times = {rung: float(run["time_s"]) for rung, run in runs.items()}
    row = {f"{rung}_s": t for rung, t in times.items()} | _spread(times)
    return row | {f"outcome_{r}": run["outcome"] for r, run in runs.items()} | {"run_ids": [f.run_id for f in found.values()]}
