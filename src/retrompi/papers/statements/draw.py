"""One draw of a paper's experiments: their runs with drawn parameters, and simulated times with the discrepancy of the draw.

What is drawn, and what the discrepancy is, decides `retrompi.studies.draws.uncertainty`; an experiment asks with ``plan.draw``, which is
None for nominal values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from retrompi.base import paths
from retrompi.sim.resolved import Resolved
from retrompi.spec.question import Benchmark, Experiment, Question, Starts
from retrompi.store.lookup import Found, answer
from retrompi.studies.draws import uncertainty
from retrompi.studies.draws.uncertainty import Spec

if TYPE_CHECKING:
    from retrompi.store.database import Store

__all__ = ["Draw", "answer_drawn", "apply_draw", "factor", "overrides"]


@dataclass(frozen=True)
class Draw:
    """The ``number``, from 0, of a draw of the sample ``spec``."""

    number: int
    spec: Spec


def _plain(question: Question) -> Resolved:
    """The question; in place of an experiment of several runs, of which each may use any call, the start of a job."""
    if isinstance(question.workload, Experiment):
        question = replace(question, workload=Starts(2))
    return _resolve(question, paths.at_hand())


@lru_cache(maxsize=512)
def _resolve(question: Question, at_hand: object) -> Resolved:
    """A question is resolved once for all its draws, as long as the same folders are worked with."""
    return Resolved.of(question)


def apply_draw(draw: Draw | None, question: Question) -> Question:
    """The question with the parameters of the draw; what it overrides itself stays."""
    if draw is None:
        return question
    sets = uncertainty.sets_of(_plain(question), draw.number, draw.spec)
    return replace(question, overrides={**sets, **question.sets}, idle_overrides=True)


def overrides(draw: Draw | None, question: Question) -> list[str]:
    """The overrides of `apply_draw` as texts KEY=VALUE, for an experiment that makes its questions itself."""
    return [f"{k}={v}" for k, v in apply_draw(draw, question).sets.items()]


def factors(draw: Draw, question: Question, sizes: Sequence[int]) -> list[float]:
    """The factors of the draw's discrepancy on one-way times at ``sizes`` (B)."""
    return [math.exp(v) for v in uncertainty.log_discrepancy(_plain(question), sizes, draw.spec)[draw.number]]


def factor(draw: Draw, question: Question) -> float:
    """The one factor of the draw's discrepancy on a program's time outside computation."""
    return math.exp(uncertainty.log_job(_plain(question), draw.spec)[draw.number])


def answer_drawn(draw: Draw | None, store: Store, question: Question, fresh: bool) -> Found:
    """`retrompi.store.lookup.answer` under a draw: the rows of a benchmark have the discrepancy in their times and rates."""
    found = answer(store, apply_draw(draw, question), fresh=fresh)
    if draw is None or not isinstance(question.workload, Benchmark):
        return found
    slower = factors(draw, question, [int(r["size_B"]) for r in found.rows])
    rows = [
        {**r, "time_us": r["time_us"] * f, "bandwidth_MBps": r["bandwidth_MBps"] / f}
        for r, f in zip(found.rows, slower, strict=True)
    ]
    return replace(found, rows=rows)
