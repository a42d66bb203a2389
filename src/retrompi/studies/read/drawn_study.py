"""Intervals of a study with draws: the metric of every draw with the model's discrepancy, and the interval over the draws of each point."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from retrompi.base.errors import RetrompiError
from retrompi.sim.resolved import Resolved
from retrompi.spec.declare.outcome import Outcome
from retrompi.studies.draws.uncertainty import Interval, Spec, interval, log_computation, log_discrepancy, log_job, with_discrepancy
from retrompi.studies.execute import design
from retrompi.studies.execute.design import DRAW
from retrompi.studies.read.view import View, view

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from retrompi.store.database import Details

__all__ = ["with_intervals"]

Row = Mapping[str, Any]


@dataclass(frozen=True)
class _Discrepancy:
    """That of the draws of one point: ``job`` and ``computation`` [draws] and, for ``sizes``, ``curve`` [draws, sizes]; logarithms of
    factors on times."""

    job: NDArray[np.float64]
    computation: NDArray[np.float64]
    curve: NDArray[np.float64]
    sizes: Mapping[int, int]

    def of(self, draw: int, run: Row, points: Sequence[Row], ranks: Sequence[Row]) -> tuple[Row, Sequence[Row], Sequence[Row]]:
        """A run of the draw (counted from 0) with it."""
        at = lambda size: float(self.curve[draw, self.sizes[size]])  # noqa: E731
        return with_discrepancy(run, points, ranks, at=at, job=float(self.job[draw]), computation=float(self.computation[draw]))


def with_intervals(v: View, draws: Sequence[Row], drawn: Mapping[int, Details], level: float) -> View:
    """The view ``v`` of the runs with nominal values, with the intervals at ``level`` over the stored ``draws`` of each point: rows of the
    store, whose runs are in ``drawn`` by id."""
    study = design.from_definition(v.definition)
    known = _discrepancies(study, drawn)
    by_draw: dict[int, list[Row]] = {}
    for row in draws:
        by_draw.setdefault(int(row[DRAW]), []).append(row)
    values: dict[int, list[float | None]] = {row["position"]: [] for row in v.rows}
    there: dict[int, list[int]] = {row["position"]: [] for row in v.rows}  # the draws that have been run, if not all of them
    curves: dict[int, dict[int, NDArray[np.float64]]] = {}
    for number, rows in by_draw.items():
        one: list[Row] = []
        runs: dict[int, Row] = {}
        points: dict[int, Sequence[Row]] = {}
        ranks: dict[int, Sequence[Row]] = {}
        for row in rows:
            first = row["position"] - number
            found = drawn.get(row["run_id"]) if row["run_id"] is not None else None
            one.append({**row, "position": first, "run_id": None if found is None else first})
            if found is None:
                continue
            # Points that share a run may differ in their model, and so in the discrepancy: runs are told apart by the point.
            runs[first], points[first], ranks[first] = known[first].of(number - 1, found.run, found.points, found.ranks)
            if found.run["outcome"] == Outcome.COMPLETED:
                for p in points[first]:
                    column = curves.setdefault(first, {}).setdefault(int(p["size_B"]), np.full(study.draws, math.nan))
                    column[number - 1] = float(p["time_us"])
        for row in view(v.definition, one, v.metric, runs, points, ranks).rows:
            values[row["position"]].append(row["value"])
            there[row["position"]].append(number - 1)
    rows_ = tuple({**row, **_ends(interval(values[row["position"]], level))} for row in v.rows)
    place = {row["run_id"]: row["position"] for row in v.rows if row["run_id"] is not None}
    told: dict[int, list[Row]] = {}
    for run_id, curve in v.curves.items():
        mine, done = curves.get(place[run_id], {}), there[place[run_id]]
        told[run_id] = [_of_point(p, mine[size][done] if (size := int(p["size_B"])) in mine else None, level) for p in curve]
    return replace(v, rows=rows_, curves=told, level=level, draws=study.draws)


def _discrepancies(study: design.Study, drawn: Mapping[int, Details]) -> dict[int, _Discrepancy]:
    """Position of a point's run with nominal values -> its discrepancy; none for a point without a run."""
    spec = Spec(draws=study.draws)
    sizes = sorted({int(p["size_B"]) for d in drawn.values() for p in d.points})
    columns = {size: i for i, size in enumerate(sizes)}
    found = {}
    for point in design.each(replace(study, draws=0)):
        try:
            asked = Resolved.of(point.scenario.question())
            both = log_job(asked, spec), log_computation(asked, spec)
            found[point.position * (1 + study.draws)] = _Discrepancy(*both, log_discrepancy(asked, sizes, spec), columns)
        except RetrompiError:
            continue
    return found


def _ends(told: Interval) -> dict[str, float | None]:
    known = math.isfinite(told.low)
    return {"low": told.low if known else None, "high": told.high if known else None, "completed": told.completed}


def _of_point(point: Row, times: NDArray[np.float64] | None, level: float) -> dict[str, Any]:
    """A point of a curve with the intervals of its time and its bandwidth over ``times`` [draws] in us."""
    if times is None:
        return dict(point)
    time, rate = interval(times, level), interval(point["size_B"] / times, level)
    both = {"time_us_low": time.low, "time_us_high": time.high, "bandwidth_MBps_low": rate.low, "bandwidth_MBps_high": rate.high}
    return {**point, **both, "completed": time.completed}
