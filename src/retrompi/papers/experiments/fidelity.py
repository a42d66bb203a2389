"""The fidelity ladder of a study's models: the spread of their rungs, as facts ``fidelity.MODEL.PLATFORM MODE``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from retrompi.base import units
from retrompi.papers.experiments import Done, Job
from retrompi.spec.question import Question, pingpong
from retrompi.store.rungs import spread

if TYPE_CHECKING:
    from retrompi.papers.statements.paper import Paper
    from retrompi.store.database import Store

JUDGED = False
SIZES = "0,64B..4MiB:x4"
REPETITIONS = 20


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Summary of rows of `retrompi.store.rungs.spread`: maximum relative error of curve and loggp, the spreads, and the rows."""

    def distance(rung: str) -> float:
        return max(abs(float(r[f"{rung}_us"]) / float(r["mechanism_us"]) - 1) for r in rows)

    spreads = [float(r["spread"]) for r in rows]
    return {
        "curve_off": distance("curve"),
        "loggp_off": distance("loggp"),
        "spread": {"median": median(spreads), "max": max(spreads)},
        "rows": [{k: v for k, v in r.items() if k != "run_ids"} for r in rows],
    }


def jobs(plan: Paper, store: Store, fresh: bool) -> list[Job]:
    """Options: ``modes``, and if wanted ``places`` (platforms; default: the study's first), ``models``, ``sizes``, ``reps``."""
    options = plan.options("fidelity")
    sizes = units.parse_sizes(options.get("sizes", SIZES))
    reps = int(options.get("reps", REPETITIONS))

    def one(model: str, platform: str, mode: str) -> Done:
        newest = store.runs(limit=1)
        before = newest[0]["id"] if newest else 0
        rows = spread(store, Question(model, platform, pingpong(sizes, reps), mode), fresh=fresh)
        ids = tuple(rows[0]["run_ids"])
        return Done("fidelity", {model: {f"{platform} {mode}": summary(rows)}}, ids, sum(i > before for i in ids))

    return [
        Job(f"{model} {platform} {mode} rungs", partial(one, model, platform, mode), 1.0 if mode == "shared" else 2.0)
        for model in options.get("models", plan.models)
        for platform in options.get("places", plan.platforms[:1])
        for mode in options.get("modes", ())
    ]
