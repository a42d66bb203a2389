"""Checks of kind ``curve``: every metric on curves whose numbers can be computed by hand, and what cannot be judged."""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest
from cases import for_each
from refusals import refused

from retrompi.base.errors import InputError
from retrompi.papers.judging import curve_checks
from retrompi.papers.judging.evaluators import evaluate
from retrompi.papers.judging.findings import Data, Finding
from retrompi.papers.statements.claims import Claim
from retrompi.papers.statements.curves import GRID

SWITCH = 128000


def claim(low: float, high: float, unit: str, observable: str = "x", use: str = "validate") -> Claim:
    return Claim("X-01", "s", "p", "", observable, f"{low}", unit, low, high, "quant", "p", "", "", "", use)


def below(size: int) -> float:
    """The layer below: 100 us and 50 MB/s."""
    return 100e-6 + size / 50e6


def above(size: int) -> float:
    """12 us later, a copy at 200 MB/s, and a handshake of 1 ms from `SWITCH` on."""
    return below(size) + 12e-6 + size / 200e6 + (1e-3 if size >= SWITCH else 0)


def found(given: Claim, **check: Any) -> Finding:
    check = {"kind": "curve", "curve": "above", **check}
    layers = {"above": "below", "below": ""}
    asked = curve_checks.sizes_asked([given], {given.id: (check,)}, layers)
    laws = {"above": above, "below": below}
    told = {name: curve_checks.facts_of(GRID, {s: law(s) for s in {*GRID, *asked[name]}}) for name, law in laws.items()}
    return evaluate(given, check, Data({}, {"curves": told, "layers_below": layers}))


TOP = 8 << 20
LEAST = TOP / above(TOP) / 1.25


@for_each(
    "check, unit, wanted",
    [
        ({"metric": "bandwidth_max"}, "Mbps", TOP / above(TOP) * 8e-6),
        ({"metric": "bandwidth_max", "curve": "below"}, "MB/s", TOP / below(TOP) * 1e-6),
        ({"metric": "latency"}, "us", 112.2),
        ({"metric": "latency", "size": "0"}, "us", 112),
        ({"metric": "time_at", "size": "1000"}, "us", 112 + 25),
        ({"metric": "bandwidth_at", "size": "1000"}, "kB/s", 1000 / 137e-6 * 1e-3),
        ({"metric": "fit_startup", "sizes": "0..1KiB:+32"}, "us", 112),
        ({"metric": "fit_rate", "sizes": "0..1KiB:+32"}, "MB/s", 40),
        ({"metric": "dip"}, "KiB", 128),
        ({"metric": "dip_depth"}, "%", 100 * (1 - 131072 / above(131072) / (98304 / above(98304)))),
        ({"metric": "knee"}, "B", SWITCH),
        ({"metric": "latency", "against": "below", "op": "difference", "size": "0"}, "us", 12),
        ({"metric": "latency", "against": "below", "op": "ratio", "size": "0"}, "x", 1.12),
        ({"metric": "fit_rate", "against": "below", "op": "deficit", "sizes": "0,512,1024"}, "MB/s", 10),
        ({"metric": "fit_rate", "against": "below", "op": "loss", "sizes": "0,512,1024"}, "%", 20),
        ({"metric": "fit_rate", "against": "below", "op": "extra_rate", "sizes": "0,512,1024"}, "MB/s", 200),
        ({"metric": "bandwidth", "against": "below", "op": "loss", "sizes": "8MiB.."}, "%", 100 * (1 - below(TOP) / above(TOP))),
        ({"metric": "time", "against": "below", "op": "difference", "sizes": "1..1"}, "us", 12.005),
    ],
)
def test_every_metric_is_what_is_computed_by_hand(check: dict[str, Any], unit: str, wanted: float) -> None:
    got = found(claim(wanted * 0.999, wanted * 1.001, unit), **check)
    assert got.ok, got
    assert got.observed == pytest.approx(wanted, rel=1e-3)
    assert got.unit == unit
    if check["metric"] not in ("knee",):
        assert found(claim(wanted * 1.3, wanted * 1.4, unit), **check).ok is False


def test_a_plateau_is_the_median_from_where_it_is_reached() -> None:
    got = found(claim(30, 40, "MB/s"), metric="plateau")
    start = next(s for s in GRID if all(t / above(t) >= LEAST for t in GRID if t >= s))
    assert got.observed == pytest.approx(median(s / above(s) for s in GRID if s >= start) * 1e-6)


def test_a_knee_elsewhere_or_none_fails_and_a_size_is_of_the_row() -> None:
    assert found(claim(SWITCH, SWITCH, "B"), metric="knee").ok
    assert found(claim(96000, 96000, "B"), metric="knee").ok is False
    assert found(claim(SWITCH, SWITCH, "B"), metric="knee", curve="below").observed == "no step"
    assert found(claim(125, 125, "KiB"), metric="knee").ok  # 128000 B
    assert found(claim(112.7, 112.9, "us", "time@32B"), metric="time_at").observed == pytest.approx(112.8)


def test_a_number_printed_without_a_tolerance_is_met_within_fifteen_percent_or_five_if_seen() -> None:
    held, seen = (claim(100, 100, "us", use=use) for use in ("validate", "calibrate"))
    check = {"metric": "latency", "size": "0", "near": True}  # 112 us
    assert found(held, **check).ok
    assert found(seen, **check).ok is False
    assert (found(held, **check).low, found(held, **check).high) == (85, 115)


@for_each(
    "check, wanted",
    [
        ({"metric": "speed"}, "bad-value | X-01 | 'speed' | bandwidth_max"),
        ({}, "bad-value | X-01 | metric"),
        ({"metric": "latency", "curve": "abov"}, "unknown-name | 'abov' | above"),
        ({"metric": "latency", "against": "below", "op": "difference", "curve": "below"}, "unknown-name | 'below' | layer_below"),
        ({"metric": "latency", "against": "below"}, "bad-value | X-01 | op"),
        ({"metric": "latency", "op": "ratio"}, "bad-value | X-01 | against"),
        ({"metric": "latency", "op": "rato", "against": "below"}, "bad-value | 'rato' | ratio"),
        ({"metric": "time_at"}, "bad-value | X-01 | size"),
        ({"metric": "time_at", "size": "1 furlong"}, "bad-value | X-01 | furlong"),
        ({"metric": "time_at", "size": ["1", "2"]}, "bad-value | X-01 | one size"),
        ({"metric": "fit_rate"}, "bad-value | X-01 | sizes"),
        ({"metric": "fit_rate", "sizes": "1"}, "bad-value | X-01 | two sizes"),
        ({"metric": "bandwidth_max", "sizes": "big"}, "bad-value | X-01 | big"),
        ({"metric": "time"}, "bad-value | X-01 | against"),
        ({"metric": "knee", "against": "below", "op": "ratio"}, "bad-value | X-01 | knee"),
        ({"metric": "latency", "unit": "furlong"}, "bad-value | X-01 | furlong"),
        ({"metric": "latency", "against": "below", "op": "extra_rate"}, "bad-value | X-01 | fit_rate"),
    ],
)
def test_what_cannot_be_judged_is_one_line_that_names_the_claim(check: dict[str, Any], wanted: str) -> None:
    with refused(InputError, wanted):
        found(claim(1, 2, "us"), **check)


def test_a_curve_that_was_not_simulated_leaves_a_claim_unjudged() -> None:
    got = evaluate(claim(1, 2, "us"), {"kind": "curve", "curve": "above", "metric": "latency"}, Data({}, {"curves": {}}))
    assert (got.ok, "above" in got.note) == (None, True)
