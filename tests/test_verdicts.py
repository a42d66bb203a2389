"""Every evaluator is shown to pass and to fail. The curves here are made up for the tests, never published ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

from retrompi.base.errors import InputError
from retrompi.papers.judging import verdicts
from retrompi.papers.statements import claims, metrics
from retrompi.papers.statements.claims import Claim, SizeRange
from retrompi.papers.statements.metrics import curves
from retrompi.spec.declare.curve import TimeCurve

SIZES = (0, *(1 << k for k in range(23)))
MIB = 1 << 20


def rows(model: str, mode: str, time_us: Callable[[int], float], sizes: tuple[int, ...] = SIZES) -> list[dict[str, Any]]:
    """Test points of a made-up runtime: one-way time as a function of size."""
    return [{"model": model, "mode": mode, "size_B": s, "time_us": time_us(s)} for s in sizes]


def line(start_us: float, rate_mb: float) -> Callable[[int], float]:
    return lambda s: start_us + s / rate_mb


def verdict(claim_id: str, points: list[dict[str, Any]], facts: Mapping[str, Any] | None = None) -> verdicts.Verdict:
    (found,) = verdicts.judge([claims.find(claim_id)], points, facts or {})
    return found


def wmpi_like(s: int) -> float:
    return 175 + s / 84 if s <= 262144 else 165_000 - s / 200


def winmpich_like(s: int) -> float:
    return 300 + s / 28.5 if s <= 65536 else s / 22


def hpvm_like(s: int) -> float:
    return 123_000 - 500 * min(s, 65536) / 65536 if s <= 65536 else 122_500 * s / 65536


SHARED = rows("wmpi", "shared", wmpi_like) + rows("winmpich", "shared", winmpich_like) + rows("hpvm", "shared", hpvm_like)
FLAT = [p for m in ("wmpi", "winmpich", "hpvm") for p in rows(m, "shared", lambda s: 1e6)]
DISTRIBUTED = (
    rows("wmpi", "distributed", lambda s: 3400 - (s == 1) + s / 2.9)
    + rows("hpvm", "distributed", lambda s: (5700 if s <= 4096 else 3500) - (s == 1) + s / 2.99)
    + rows("winmpich", "distributed", lambda s: 9900 + s / 0.1)
)
TWISTED = (
    rows("wmpi", "distributed", lambda s: 30_000 + s / 0.5)
    + rows("hpvm", "distributed", lambda s: 10_000 + s / 9.0)
    + rows("winmpich", "distributed", lambda s: 1000 + (s / 5.0 if s < 1024 else s / 0.05))
)


@for_each(
    "claim_id",
    [
        "BF-SM-01", "BF-SM-02", "BF-SM-03", "BF-SM-04", "BF-SM-06", "BF-SM-07", "BF-SM-08a", "BF-SM-08b", "BF-SM-09", "BF-SM-10",
        "BF-SM-11", "BF-SM-12a", "BF-SM-12b", "BF-SM-13a", "BF-SM-13b", "BF-SM-15", "BF-SM-16", "BF-SM-17", "BF-SM-18",
        "BF-SM-19", "BF-SM-21",
    ],
)
def test_shared_claims_pass_and_fail(claim_id: str) -> None:
    assert verdict(claim_id, SHARED).verdict == "pass", verdict(claim_id, SHARED)
    failed = verdict(claim_id, FLAT)
    assert failed.verdict == "fail"
    assert failed.observed is not None


@for_each(
    "claim_id",
    [
        "BF-DM-01", "BF-DM-02", "BF-DM-03", "BF-DM-04", "BF-DM-05", "BF-DM-06", "BF-DM-07", "BF-DM-08", "BF-DM-10", "BF-DM-11",
        "BF-DM-12", "BF-DM-13", "BF-DM-14", "BF-DM-15", "BF-DM-16", "BF-DM-17", "BF-DM-18", "BF-DM-19",
    ],
)
def test_distributed_claims_pass_and_fail(claim_id: str) -> None:
    good, bad = DISTRIBUTED + SHARED, TWISTED + FLAT
    assert verdict(claim_id, good).verdict == "pass", verdict(claim_id, good)
    assert verdict(claim_id, bad).verdict == "fail"


def test_almost_matches_cannot_hold_with_a_factor_of_two() -> None:
    assert verdict("BF-SM-14", SHARED).verdict == "fail"
    assert verdict("BF-SM-14", FLAT).verdict == "pass"
    assert "Contradicts" in verdict("BF-SM-14", SHARED).row()["note"]


FACTS: dict[str, Any] = {
    "machines": 2,
    "processes": 2,
    "parameters": {"wmpi": {"packet": 131072.0}},
    "pool": {"wmpi": {"needed_B": 12e6}},
    "suite": {"wmpi": {"default": {"shared": {"failed": 3}}, "raised_15": {"shared": {"failed": 0}}}},
    "killed": {"winmpich": {"outcome": "deadlock", "messages_to_owner": 0}},
    "startup": {
        "winmpich": {"failure_rate": 0.334, "windows": 4},
        "hpvm": {"daemons": 3, "manual_steps_per_job": 5},
    },
}
WRONG: dict[str, Any] = {
    "machines": 2,
    "processes": 2,
    "parameters": {"wmpi": {"packet": 65536.0}},
    "pool": {"wmpi": {"needed_B": 1e6}},
    "suite": {"wmpi": {"default": {"shared": {"failed": 0}}, "raised_15": {"shared": {"failed": 0}}}},
    "killed": {"winmpich": {"outcome": "aborted", "messages_to_owner": 1}},
    "startup": {"winmpich": {"failure_rate": 0.0, "windows": 2}, "hpvm": {"daemons": 1, "manual_steps_per_job": 0}},
}


@for_each("claim_id", ["BF-SM-05", "BF-FUN-06", "BF-FUN-11", "BF-FUN-13", "BF-FUN-16", "BF-FUN-17", "BF-FUN-19"])
def test_facts_pass_fail_and_stay_open(claim_id: str) -> None:
    assert verdict(claim_id, DISTRIBUTED, FACTS).verdict == "pass"
    assert verdict(claim_id, DISTRIBUTED, WRONG).verdict == "fail"
    nothing = verdict(claim_id, [], {})
    assert nothing.verdict == "unjudged"
    assert "no " in nothing.note or "not simulated" in nothing.note


def test_every_checked_claim_is_covered_above() -> None:
    """A new check of curves without a pass and a fail here is refused; tests/test_fact_checks.py makes up facts for all the others."""
    here = "".join(Path(__file__).read_text(encoding="utf-8").split())
    for claim_id, entries in claims.checks().items():
        if not claim_id.startswith(("BF-SM-", "BF-DM-")):
            continue
        if any(e["kind"] != "none" for e in entries) and claims.find(claim_id).use != "exclude":
            assert f'"{claim_id}"' in here, claim_id


def test_excluded_rows_show_a_number_but_no_judgement() -> None:
    v = verdict("BF-DM-09", DISTRIBUTED)
    assert v.verdict == "unjudged"
    assert isinstance(v.observed, float)
    assert "excluded" in v.note
    assert "THREE values" in v.row()["note"]


def test_without_points_everything_is_unjudged_and_says_why() -> None:
    found = verdicts.judge(claims.load(), [], {})
    assert len(found) == len(claims.load())
    assert {v.verdict for v in found} == {"unjudged"}
    assert all(v.note for v in found)


def test_row_is_the_promised_json() -> None:
    row = verdict("BF-SM-01", SHARED).row()
    assert list(row) == ["id", "system", "use", "verdict", "observed", "low", "high", "unit", "note"]
    assert row["observed"] == pytest.approx(175)
    assert row["unit"] == "microseconds"
    assert (row["low"], row["high"]) == (165, 185)


def test_contradictions_travel_with_every_verdict() -> None:
    for c, v in zip(claims.load(), verdicts.judge(claims.load(), SHARED + DISTRIBUTED, FACTS), strict=True):
        assert v.contradiction == c.note
        assert c.note in v.row()["note"]


def test_residual_is_the_distance_outside() -> None:
    assert verdict("BF-SM-01", SHARED).residual == 0.0
    off = verdict("BF-SM-01", rows("wmpi", "shared", line(200, 84)))
    assert off.residual == pytest.approx(15)
    assert verdict("BF-SM-01", rows("wmpi", "shared", line(150, 84))).residual == pytest.approx(-15)


def test_a_variant_can_stand_in() -> None:
    points = rows("wmpi:rival", "shared", line(175, 84))
    claim = claims.find("BF-SM-01")
    assert verdicts.judge([claim], points, {})[0].verdict == "unjudged"
    assert verdicts.judge([claim], points, {}, stand_in={"wmpi": "wmpi:rival"})[0].verdict == "pass"
    facts = {"startup": {"winmpich:x": {"failure_rate": 0.33}}}
    assert verdicts.judge([claims.find("BF-FUN-11")], [], facts, stand_in={"winmpich": "winmpich:x"})[0].verdict == "pass"


def test_missing_sizes_leave_a_claim_open() -> None:
    few = rows("wmpi", "shared", line(175, 84), sizes=(1, 4096))
    assert verdict("BF-SM-01", few).verdict == "unjudged"
    assert verdict("BF-SM-12a", few).verdict == "unjudged"
    assert verdict("BF-SM-04", few).verdict == "unjudged"


def test_measure_gives_the_fit_numbers_and_bounds() -> None:
    (found,) = verdicts.measure(claims.find("BF-SM-01"), SHARED)
    assert found.observed == pytest.approx(175)
    assert (found.low, found.high) == (165, 185)
    ready = curves(SHARED)
    assert verdicts.measure(claims.find("BF-SM-01"), ready) == [found]


def test_summary_counts_fit_and_held_out_apart() -> None:
    found = verdicts.judge(claims.by_paper("baker-fox"), SHARED + DISTRIBUTED, FACTS)
    parts = {s.use: s for s in verdicts.summary(found)}
    assert parts["calibrate"].failed == 0
    assert parts["calibrate"].passed > 10
    assert parts["validate"].failed == 1  # BF-SM-14, which contradicts its own paper
    assert str(parts["validate"]).startswith("held out: ")


def test_stated_counts_come_from_the_words() -> None:
    assert verdicts.stated_count(claims.find("BF-FUN-16"), "GRM") == 1
    assert verdicts.stated_count(claims.find("BF-FUN-17"), "per MPI process") == 1
    with pytest.raises(ValueError, match="not in"):
        verdicts.stated_count(claims.find("BF-FUN-17"), "per rank")


def test_a_check_that_cannot_be_judged_is_named_with_its_claim() -> None:
    data = verdicts.Data(curves(SHARED), {})
    claim = claims.find("BF-SM-01")
    for check in (
        {"kind": "range", "models": ["wmpi"], "mode": "shared", "metric": "speed"},
        {"kind": "trend", "models": ["wmpi"], "mode": "shared", "shape": "wavy"},
        {"kind": "order", "models": ["wmpi"], "mode": "shared", "relation": "wmpi ? hpvm", "by": "time"},
        {"kind": "range", "models": ["wmpi"], "mode": "shared", "metric": "startup", "unit": "furlong"},
    ):
        with pytest.raises(InputError, match=r"BF-SM-01.* no (metric|shape|relation|conversion)"):
            verdicts.evaluate(claim, check, data)
    with pytest.raises(InputError, match="its check needs 'mode'"):
        verdicts.evaluate(claim, {"kind": "range", "models": ["wmpi"], "metric": "startup"}, data)


# --- invariants ---

times = st.lists(st.floats(1.0, 1e7), min_size=len(SIZES), max_size=len(SIZES))


@given(times, st.floats(0.01, 100))
def test_shapes_do_not_depend_on_the_clock(values: list[float], factor: float) -> None:
    """Knees, orders and trends are the same when every time is multiplied."""
    a = TimeCurve(SIZES, tuple(values))
    b = TimeCurve(SIZES, tuple(v * factor for v in values))
    assert a.within(SizeRange(1, None)).number("peak_size") == b.within(SizeRange(1, None)).number("peak_size") or _tie(a)
    assert metrics.mean_growth(a.times) == pytest.approx(metrics.mean_growth(b.times))
    assert metrics.median_ratio(a, b) == pytest.approx(1 / factor)


def _tie(curve: TimeCurve) -> bool:
    ranked = sorted(curve.rates, reverse=True)
    return ranked[0] == pytest.approx(ranked[1])


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e6))
def test_residual_is_zero_exactly_inside(observed: float, a: float, b: float) -> None:
    low, high = sorted((a, b))
    r = verdicts.residual(observed, low, high)
    assert (r == 0) == (low <= observed <= high)
    back = observed - r
    assert low <= back <= high or back == pytest.approx(low, abs=1e-6) or back == pytest.approx(high, abs=1e-6)


@given(st.permutations(SHARED + DISTRIBUTED))
def test_verdicts_do_not_depend_on_the_order_of_points(points: list[dict[str, Any]]) -> None:
    wanted = verdicts.judge(claims.by_paper("baker-fox"), SHARED + DISTRIBUTED, FACTS)
    assert verdicts.judge(claims.by_paper("baker-fox"), points, FACTS) == wanted


@given(st.floats(100, 300))
def test_range_verdict_agrees_with_its_bounds(start: float) -> None:
    claim: Claim = claims.find("BF-SM-01")
    v = verdict("BF-SM-01", rows("wmpi", "shared", line(start, 84)))
    assert claim.low is not None
    assert claim.high is not None
    assert isinstance(v.observed, float)
    assert v.verdict == ("pass" if claim.low <= v.observed <= claim.high else "fail")


def test_curve_refuses_nonsense() -> None:
    for sizes, values in (((0, 1), (1.0,)), ((1, 1), (1.0, 1.0)), ((0, 1), (1.0, -1.0)), ((0, 1), (1.0, float("nan")))):
        with pytest.raises(ValueError, match=r"sizes|times"):
            TimeCurve(sizes, values)
