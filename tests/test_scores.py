"""The opened half of the blind test: scores computed from the files of the repository are those that came with the opened curves."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from random import Random
from statistics import median

import pytest

from retrompi.papers.predict import predictions, scores
from retrompi.papers.statements.curve_points import CurvePoint


def _kept(name: str) -> list[dict[str, str]]:
    with (scores.folder() / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_nine_open_curves_have_the_scores_that_came_with_them() -> None:
    given = {r["curve"]: r for r in _kept("scores.csv")}
    found = scores.scores()
    assert [s.curve for s in found] == list(given)
    assert sum(s.opened for s in found) == 9
    for s in found:
        row, half = given[s.curve], 0.00051  # what is printed has one decimal of a percent
        assert s.points == int(row["points"])
        assert s.median_error == pytest.approx(float(row["median_error_pct"]) / 100, abs=half), s.curve
        assert s.raw_error == pytest.approx(float(row["median_error_of_the_raw_layer_pct"]) / 100, abs=half), s.curve
        assert s.bias == pytest.approx(float(row["bias_pct"]) / 100, abs=half), s.curve
        assert s.inside == pytest.approx(float(row["inside_90_pct"]) / 100, abs=0.0051), s.curve
        assert s.width == pytest.approx(float(row["interval_high_over_low"]), abs=0.0051), s.curve
        if s.opened:
            assert s.worst_size == int(row["worst_at_B"])
            assert s.worst == pytest.approx(float(row["worst_pct"]) / 100, abs=half)


def test_closed_curves_have_scores_and_no_points() -> None:
    opened = {r["id"] for r in _kept("curves.csv")}
    for s in scores.scores():
        assert s.opened == (s.curve in opened) == bool(s.compared) == (s.interval_score is not None)


def test_every_opened_curve_and_number_names_a_prediction() -> None:
    shipped = predictions.shipped_predictions()
    assert {r["prediction"] for r in _kept("curves.csv")} <= set(shipped)
    known = {c.id: c for c in scores.numbers()}
    assert list(known) == [r["id"] for r in _kept("numbers.csv")]
    assert [c.id for c in scores.numbers() if c.inside is None] == ["E-MJ-03", "E-MJ-07", "E-MJ-10"]
    outside = {c.id for c in scores.numbers() if c.inside is False}
    assert {"TC02-016", "TC02-017", "TC02-033", "E-MJ-01", "E-MJ-05"} <= outside  # those that the opened data's README lists


def test_a_score_is_of_the_prediction_and_not_of_the_curve() -> None:
    """A prediction of its own points is right everywhere; one that is too slow by a factor is wrong by it and pays for it."""
    random = Random(seed := datetime.now(UTC).toordinal())
    name = "turner-chen-2002/trendnet-lam"
    told = predictions.shipped_predictions()[name]
    rows = random.sample(told["value"][1:-1], 12)
    own = [CurvePoint(v["size_B"], v["nominal_s"], 0.01) for v in sorted(rows, key=lambda v: v["size_B"])]
    exact = scores.score_of("own", name, told, own)
    assert (exact.median_error, exact.bias) == (pytest.approx(0, abs=1e-12), pytest.approx(0, abs=1e-12)), seed
    factor = random.uniform(3, 5)  # above every interval of the curve
    slow = scores.score_of("slow", name, told, [CurvePoint(p.size, p.time / factor, 0.01) for p in own])
    assert slow.median_error == pytest.approx(factor - 1)
    assert slow.inside == 0
    lengths = [math.log(p.high / p.low) for p in slow.compared]
    away = [math.log(p.low / p.published) for p in slow.compared]
    assert slow.interval_score == pytest.approx(sum(n + 20 * a for n, a in zip(lengths, away, strict=True)) / 12)
    coarse = [CurvePoint(p.size, p.time, 0.06) for p in own] + [CurvePoint(2 * 8388608, 1.0, 0.0)]  # neither of these can judge
    assert scores.score_points(told, coarse) == ()


def test_groups_sum_to_the_whole() -> None:
    found = scores.scores()
    for by in ("runtime", "machine"):
        parts = scores.groups(found, by)
        assert sum(g.points for g in parts) == sum(s.points for s in found)
        assert sum(g.curves for g in parts) == len(found)


def test_misses_name_predictions_that_exist() -> None:
    shipped, known = predictions.shipped_predictions(), {c.id for c in scores.numbers()}
    for miss in scores.misses():
        assert miss.state in ("adopted", "explained", "open")
        assert miss.text
        assert set(miss.predictions) <= set(shipped)
        assert set(miss.numbers) <= known


def test_the_readme_has_the_widths_and_the_coverage_before_and_after() -> None:
    told = (predictions.folder() / "README.md").read_text(encoding="utf-8")
    every = scores.again()
    opened, closed = ([a for a in every if a.first.opened is known] for known in (True, False))
    for title, mine in (("nine open", opened), ("nine closed", closed), ("all 18", every)):
        first, newest = (f"{median(widths):.3f}" for widths in ([a.first.width for a in mine], [a.width for a in mine]))
        assert f"| {title} | first | {first} | {_inside([a.first for a in mine])} |" in told
        later = [a.later for a in mine if a.later is not None and a.later.interval_score is not None]
        known = f"{_inside(later)} | {median(s.interval_score or 0 for s in later):.2f} |" if len(later) == len(mine) else ""
        assert f"| | newest | {newest} | {known}" in told


def _inside(found: Sequence[scores.Score]) -> str:
    return f"{100 * sum(s.inside * s.points for s in found) / sum(s.points for s in found):.1f} %"
