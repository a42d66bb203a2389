"""The searches behind answers, on functions whose answers are known in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from retrompi.base.errors import RetrompiError, UsageError
from retrompi.spec.declare.number import Number
from retrompi.studies.define import axes
from retrompi.studies.define.keys import with_range
from retrompi.studies.search import tornado
from retrompi.studies.search.breakeven import BreakEven, Rules, break_even
from retrompi.studies.search.reading import NoNumber, Reading
from retrompi.studies.search.tolerance import SearchRange, Tolerance, tolerance

F = Callable[[float], float | None]


class Counted:
    """A function as a simulation: equal points are one run, known ones are found."""

    def __init__(self, function: F, first_id: int = 1) -> None:
        self.function, self.known, self.first = function, {}, first_id

    def __call__(self, x: float) -> Reading:
        found = x in self.known
        run = self.known.setdefault(x, self.first + len(self.known))
        value = self.function(x)
        return Reading(value, run, "completed" if value is not None else "deadlock", "" if value is not None else "all wait", found)


def crossed(a: F, b: F, low: float, high: float, scale: Number, **options: object) -> BreakEven:
    left, right = Counted(a), Counted(b, 10_000)
    return break_even(lambda xs: [(left(x), right(x)) for x in xs], replace(scale, low=low, high=high), Rules(**options))  # type: ignore[arg-type]


LINE = Number("x", "1", digits=6)
LOG = Number("platform.link.bandwidth", "B/s", log=True, spelling="Mbps", digits=6)
WHOLE = Number("ranks", "count", whole=True)


# -- the scale -------------------------------------------------------------------------------------------------------


def test_a_scale_writes_what_it_simulates() -> None:
    scale = with_range(Number("platform.link.bandwidth", "B/s"), ["1Mbps", "1Gbps"])
    assert (scale.log, scale.spelling, scale.low, scale.high) == (True, "Mbps", 125e3, 125e6)
    assert scale.text(1.25e6) == "10Mbps"
    assert scale.snap(1234567.891) == pytest.approx(1234567.891, rel=1e-5)
    assert scale.text(scale.snap(1234567.891)) == scale.text(1234567.891)
    assert [scale.text(x) for x in scale.spread(4)] == ["1Mbps", "10Mbps", "100Mbps", "1Gbps"]


def test_whole_numbers_stay_whole() -> None:
    scale = with_range(Number("ranks", "count", whole=True), ["2", "9"])
    assert not scale.log
    assert scale.spread(20) == [2, 3, 4, 5, 6, 7, 8, 9]
    assert scale.middle(2, 3) is None
    assert scale.middle(2, 4) == 3
    sizes = with_range(Number("trace.size", "B", whole=True), ["1B", "4MiB"])
    assert all(x == int(x) for x in sizes.spread(7))
    assert sizes.text(1500) == "1500B"


@pytest.mark.parametrize(
    ("texts", "number", "log", "says"),
    [
        (["1ms", "1s"], Number("key", "B/s"), None, "bad-unit | '1ms' | 'ms'"),
        (["1.5", "2"], Number("key", "count", whole=True), None, "bad-value | '1.5'"),
        (["0", "2"], Number("key", "1"), True, "out-of-range | '0'"),
    ],
)
def test_a_wrong_scale_is_one_line(texts: Sequence[str], number: Number, log: bool | None, says: str) -> None:
    with refused(UsageError, says):
        with_range(number, texts, log=log)


# -- break-even ------------------------------------------------------------------------------------------------------


def test_one_crossing_is_an_interval_around_it() -> None:
    # Start-up and rate: A starts faster, B carries faster; equal at 2 MB/s.
    found = crossed(lambda x: 1.0, lambda x: 0.5 + 1e6 / x, 1e5, 1e8, LOG)
    (crossing,) = found.crossings
    assert crossing.low.x < 2e6 < crossing.high.x
    assert (crossing.high.x - crossing.low.x) / crossing.high.x <= 0.01
    assert (crossing.before, crossing.after, crossing.overtakes) == ("a", "b", True)
    assert crossing.estimate == pytest.approx(2e6, rel=1e-3)
    assert crossing.low.a.run_id != crossing.low.b.run_id
    assert found.counts == (2 * len(found.points), 2 * len(found.points))
    assert len(found.points) < 25


def test_every_crossing_is_found_with_its_direction() -> None:
    found = crossed(lambda x: 2.0 + math.cos(x), lambda x: 2.0, 0.1, 9.0, LINE)
    assert [(c.before, c.after) for c in found.crossings] == [("b", "a"), ("a", "b"), ("b", "a")]
    for crossing, root in zip(found.crossings, (0.5, 1.5, 2.5), strict=True):
        assert crossing.low.x <= root * math.pi <= crossing.high.x
        assert crossing.estimate == pytest.approx(root * math.pi, rel=1e-3)


def test_two_crossings_between_two_points_of_the_scan_are_found_where_the_curves_come_near() -> None:
    # The scan of 0, 1, ... 8 sees nothing below 1.25.
    found = crossed(lambda x: 1.0 + (x - 4.5) ** 2, lambda x: 1.1, 0.0, 8.0, LINE)
    assert [(c.before, c.after) for c in found.crossings] == [("b", "a"), ("a", "b")]
    near = math.sqrt(0.1)
    assert found.crossings[0].estimate == pytest.approx(4.5 - near, rel=0.01)
    assert found.crossings[1].estimate == pytest.approx(4.5 + near, rel=0.01)


def test_no_crossing_says_who_is_ahead_at_both_ends() -> None:
    found = crossed(lambda x: x, lambda x: 2 * x, 1.0, 100.0, Number("x", "1", log=True, digits=6))
    assert found.crossings == []
    assert set(found.states) == {"a"}
    low, high = found.ends
    assert (low.x, high.x) == (1.0, 100.0)
    assert low.lead(False) == high.lead(False) == pytest.approx(math.log(2))
    assert crossed(lambda x: x, lambda x: 2 * x, 1.0, 100.0, LINE, more_is_better=True).states[0] == "b"


def test_ties_are_states_of_their_own() -> None:
    found = crossed(lambda x: max(x, 3.0), lambda x: 3.0, 0.0, 8.0, LINE)
    (crossing,) = found.crossings
    assert (crossing.before, crossing.after) == ("tie", "b")
    assert crossing.low.x <= 3.0 < crossing.high.x
    assert set(crossed(lambda x: 1.0, lambda x: 1.0, 0.0, 1.0, LINE).states) == {"tie"}
    near = crossed(lambda x: 1.0 + x / 100, lambda x: 1.0, 0.0, 1.0, LINE, tie=0.05)
    assert near.crossings == []


def test_a_side_that_does_not_complete_is_a_change_and_no_overtaking() -> None:
    found = crossed(lambda x: None if x > 5 else 1.0, lambda x: 2.0, 1.0, 9.0, LINE)
    (crossing,) = found.crossings
    assert (crossing.before, crossing.after, crossing.overtakes, crossing.estimate) == ("a", "only b", False, None)
    assert crossing.low.x <= 5 < crossing.high.x
    assert crossing.high.a.outcome_text() == "deadlock: all wait"
    assert set(crossed(lambda x: None, lambda x: None, 1.0, 9.0, LINE).states) == {"neither"}


def test_whole_numbers_end_as_neighbours() -> None:
    found = crossed(lambda n: 10.0 + n, lambda n: 2.0 * n, 2, 40, WHOLE)
    pairs = [(c.low.x, c.high.x) for c in found.crossings]
    assert pairs == [(9, 10), (10, 11)]  # at 10 they are equal
    assert [c.low.text for c in found.crossings] == ["9", "10"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.05, 7.9), min_size=0, max_size=3, unique=True))
def test_what_the_grid_sees_the_search_sees(roots: list[float]) -> None:
    """A polynomial through chosen roots, each apart from the next by more than a step of the scan."""
    roots = sorted(roots)
    if any(b - a < 0.6 for a, b in pairwise(roots)):
        return

    def f(x: float) -> float:
        return 100.0 + math.prod(x - r for r in roots)

    found = crossed(f, lambda x: 100.0, 0.0, 8.0, LINE, scan=17)
    grid = [8.0 * i / 4000 for i in range(4001)]
    signs = [(x, f(x) > 100.0) for x in grid if f(x) != 100.0]
    brute = [(a, b) for (a, s), (b, t) in pairwise(signs) if s != t]
    overtaking = [c for c in found.crossings if "tie" not in (c.before, c.after)]
    if len(overtaking) == len(found.crossings):
        assert len(brute) == len(overtaking)
        for crossing, (a, b) in zip(overtaking, brute, strict=True):
            assert crossing.low.x <= b
            assert crossing.high.x >= a


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"low": 2.0, "high": 1.0}, "bad-range"),
        ({"scan": 1}, "bad-range"),
        ({"tolerance": 0.0}, "out-of-range"),
        ({"tie": 1.0}, "out-of-range"),
    ],
)
def test_a_wrong_search_is_one_line(options: dict[str, float], says: str) -> None:
    given = {"low": 1.0, "high": 2.0, **options}
    with refused(UsageError, says):
        crossed(lambda x: x, lambda x: x, scale=LINE, **given)  # type: ignore[arg-type]


# -- tolerance -------------------------------------------------------------------------------------------------------

LATENCY = Number("platform.link.latency", "s", spelling="us", digits=9)


def tolerated(f: F, way: SearchRange, **options: object) -> Tolerance:
    run = Counted(f)
    return tolerance(lambda xs: [run(x) for x in xs], way, run(way.base), **options)  # type: ignore[arg-type]


def added(base: float = 10e-6, limit: float = 10e-3) -> SearchRange:
    return SearchRange(LATENCY, base, base / 8, limit)


def test_a_linear_response_is_answered_by_its_slope() -> None:
    # A job of 1 s whose critical path has 2000 latencies.
    found = tolerated(lambda x: 1.0 + 2000 * (x - 10e-6), added(), slower=(0.01, 0.05))
    assert found.slope == pytest.approx(2000, rel=1e-6)
    assert found.elasticity == pytest.approx(2000 * 10e-6, rel=1e-6)
    assert found.monotonic
    for answer, share in zip(found.answers, (0.01, 0.05), strict=True):
        assert answer.status == "reached"
        exact = 10e-6 + share / 2000
        assert answer.low.x <= exact <= answer.high.x
        assert answer.high.amount - answer.low.amount <= 0.0101 * answer.high.amount
        assert answer.estimate == pytest.approx(exact, rel=1e-5)
        assert answer.by_slope == pytest.approx(exact, rel=1e-6)
        assert answer.low.worse <= share + 1e-9 < answer.high.worse


def test_slack_hides_a_latency_until_it_is_used_up() -> None:
    found = tolerated(lambda x: max(1.0, 0.9 + 2000 * x), added(), slower=(0.05,))
    assert found.slope == 0.0
    (answer,) = found.answers
    assert answer.by_slope is None
    assert answer.low.x <= 75e-6 <= answer.high.x


def test_never_within_the_limit_is_an_answer() -> None:
    found = tolerated(lambda x: 1.0 + x, added(), slower=(0.05,))
    (answer,) = found.answers
    assert (answer.status, answer.high) == ("never", None)
    assert answer.low.x == pytest.approx(10e-6 + 10e-3)
    assert answer.low.worse == pytest.approx(10e-3, rel=1e-2)


def test_a_run_that_stops_completing_is_an_answer() -> None:
    found = tolerated(lambda x: None if x > 1e-3 else 1.0, added(), slower=(0.05,))
    (answer,) = found.answers
    assert answer.status == "ends"
    assert answer.low.x <= 1e-3 < answer.high.x
    assert answer.high.reading.outcome_text() == "deadlock: all wait"


def test_a_response_that_comes_back_is_said() -> None:
    def f(x: float) -> float:
        return 1.2 if 50e-6 < x < 300e-6 else 1.0

    found = tolerated(f, added(), slower=(0.05,))
    (answer,) = found.answers
    assert answer.low.x <= 50e-6 < answer.high.x
    assert not found.monotonic
    assert answer.back
    assert answer.back[0].x >= 300e-6


def test_a_bandwidth_goes_down_by_factors() -> None:
    way = SearchRange(LOG, 12.5e6, 2.0, 1024.0, by_factor=True, down=True)
    found = tolerated(lambda x: 1.0 + 1e6 / x, way, slower=(0.05, 0.5))
    start = 1.0 + 1e6 / 12.5e6
    for answer in found.answers:
        exact = 1e6 / (start * (1 + answer.slower) - 1.0)
        assert answer.high.x <= exact <= answer.low.x
        assert answer.estimate == pytest.approx(exact, rel=1e-2)
    assert found.slope < 0
    assert found.elasticity == pytest.approx(-0.08 / 1.08, rel=0.02)


def test_a_bandwidth_metric_gets_worse_by_falling() -> None:
    found = tolerated(lambda x: 1.0 / (1.0 + 2000 * (x - 10e-6)), added(), slower=(0.25,), more_is_better=True)
    assert found.answers[0].estimate == pytest.approx(10e-6 + 0.25 / 2000, rel=1e-2)


def test_whole_numbers_end_as_neighbours_along_a_tolerance() -> None:
    found = tolerated(lambda n: 100.0 + n * n, SearchRange(WHOLE, 4, 2.0, 64.0, by_factor=True), slower=(0.5, 1.0))
    for answer in found.answers:
        exact = math.sqrt((1 + answer.slower) * 116.0 - 100.0)
        assert (answer.low.x, answer.high.x) == (math.floor(exact), math.floor(exact) + 1)
    more = tolerated(lambda n: 100.0 + n, SearchRange(WHOLE, 4, 1.0, 64.0), slower=(0.5,))
    assert (more.answers[0].low.x, more.answers[0].high.x) == (56, 57)


def test_a_step_at_the_base_itself_ends() -> None:
    found = tolerated(lambda x: 1.0 if x <= 10e-6 else 2.0, added(), slower=(0.05,))
    (answer,) = found.answers
    assert answer.low.amount == 0
    assert answer.high.amount <= 0.01 * 10e-6 / 8


@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 3.0), st.floats(1e-6, 5e-3))
def test_a_tolerance_agrees_with_a_fine_grid(share: float, knee: float) -> None:
    def f(x: float) -> float:
        return 1.0 + max(0.0, x - knee) * 300 + 40 * x

    found = tolerated(f, added(), slower=(share,))
    start = f(10e-6)
    grid = [10e-6 + 10e-3 * i / 20_000 for i in range(20_001)]
    first = next((x for x in grid if f(x) > start * (1 + share)), None)
    (answer,) = found.answers
    if first is None:
        assert answer.status == "never"
    else:
        step = 10e-3 / 20_000
        assert answer.low.x - step <= first <= answer.high.x + step


@pytest.mark.parametrize(
    ("f", "options", "says"),
    [
        (lambda x: None, {}, "no-number"),
        (lambda x: 0.0, {}, "bad-range"),
        (lambda x: 1.0, {"slower": ()}, "out-of-range"),
        (lambda x: 1.0, {"width": 2.0}, "out-of-range"),
    ],
)
def test_a_tolerance_that_cannot_be_is_one_line(f: F, options: dict[str, object], says: str) -> None:
    with refused(RetrompiError, says):
        tolerated(f, added(), **options)


# -- tornado ---------------------------------------------------------------------------------------------------------


def factors(**texts: str) -> list[axes.Axis]:
    return [axes.parse(key, text, continuous=True) for key, text in texts.items()]


def evaluated(f: Callable[[Mapping[str, float]], float | None], base: Mapping[str, float]) -> tornado.Evaluate:
    known: dict[tuple[float, ...], int] = {}

    def evaluate(points: Sequence[Mapping[str, str]]) -> list[Reading]:
        out = []
        for p in points:
            at = {**base, **{k: float(v) for k, v in p.items()}}
            run = known.setdefault(tuple(at.values()), len(known))
            value = f(at)
            out.append(Reading(value, run, "completed" if value is not None else "aborted", "" if value is not None else "pool empty"))
        return out

    return evaluate


def test_one_at_a_time_sorts_by_swing() -> None:
    base = {"x": 0.0, "y": 0.0, "z": 0.0}
    found = tornado.one_at_a_time(evaluated(lambda p: p["x"] - 5 * p["y"] + 0 * p["z"], base), factors(x="-1..3", y="-1..1", z="0..1"))
    assert [(b.factor.key, b.swing) for b in found.bars] == [("y", 10.0), ("x", 4.0), ("z", 0.0)]
    assert [r.value for r in found.bars[1].readings] == [-1.0, 3.0]
    assert found.base.value == 0.0
    assert found.counts == (6, 6)  # z=0 is the base


def test_one_at_a_time_says_what_did_not_complete() -> None:
    found = tornado.one_at_a_time(
        evaluated(lambda p: None if p["y"] > 0.5 or p["x"] > 0 else 1.0 + p["y"], {"x": 0.0, "y": 0.0}), factors(x="1,2", y="-1,1")
    )
    assert [(b.factor.key, b.swing) for b in found.bars] == [("y", 1.0), ("x", None)]
    assert [(t, r.outcome_text()) for t, r in found.bars[0].ended] == [("1", "aborted: pool empty")]
    with refused(NoNumber, "no-number"):
        tornado.one_at_a_time(evaluated(lambda p: None, {"x": 0.0}), factors(x="1,2"))
    with refused(UsageError, "nothing-varies"):
        tornado.one_at_a_time(evaluated(lambda p: 1.0, {}), [])


def ishigami(p: Mapping[str, float]) -> float:
    """Ishigami and Homma's function with a = 7, b = 0.1, the usual test of sensitivity indices."""
    return math.sin(p["x"]) + 7 * math.sin(p["y"]) ** 2 + 0.1 * p["z"] ** 4 * math.sin(p["x"])


def exact_ishigami(a: float = 7.0, b: float = 0.1) -> dict[str, float]:
    """Its indices in closed form."""
    pi4 = math.pi**4
    v1, v2, v13 = 0.5 * (1 + b * pi4 / 5) ** 2, a * a / 8, b * b * pi4 * pi4 * (1 / 18 - 1 / 50)
    v = v1 + v2 + v13
    return {"Sx": v1 / v, "Sy": v2 / v, "Sz": 0.0, "Tx": (v1 + v13) / v, "Ty": v2 / v, "Tz": v13 / v, "Sxz": v13 / v, "variance": v}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_sobol_indices_of_ishigamis_function(seed: int) -> None:
    pytest.importorskip("SALib", reason="SALib (the extra 'sensitivity') is not installed")
    pi = f"{math.pi:.15g}"
    varied = factors(**dict.fromkeys("xyz", f"-{pi}..{pi}"))
    found = tornado.sobol(evaluated(ishigami, {}), varied, samples=1024, seed=seed, second=True)
    exact = exact_ishigami()
    for i in found.indices:
        # Of a 95 % interval one in twenty misses, so twice its half width.
        assert abs(i.first - exact[f"S{i.factor.key}"]) <= 2 * i.first_conf
        assert abs(i.total - exact[f"T{i.factor.key}"]) <= 2 * i.total_conf
        assert i.first_conf < 0.12
        assert i.total_conf < 0.12
    assert [i.factor.key for i in found.indices] == ["x", "y", "z"]
    assert {(s.a, s.b) for s in found.seconds} == {("x", "y"), ("x", "z"), ("y", "z")}
    assert (found.seconds[0].a, found.seconds[0].b) == ("x", "z")
    for s in found.seconds:
        assert abs(s.index - (exact["Sxz"] if (s.a, s.b) == ("x", "z") else 0.0)) <= 2 * s.conf
    assert found.values["deviation"] ** 2 == pytest.approx(exact["variance"], rel=0.05)
    assert found.dropped == 0


def test_sobol_indices_of_a_sum_are_its_terms_variances() -> None:
    pytest.importorskip("SALib", reason="SALib (the extra 'sensitivity') is not installed")
    # Uniform on 0..1: variance w^2 / 12. Uniform on the list 0, 6: variance 9. On whole numbers 1..4: 1.25. Log-uniform: by its moments.
    varied = [
        *factors(x="0..1", y="0..1", d="0,6"),
        *(replace(axis, span=axis.span.in_whole_numbers()) for axis in factors(n="1..4") if axis.span is not None),
        *factors(g="1..100:log"),
    ]
    low, high = 1.0, 100.0
    mean = (high - low) / math.log(high / low)
    of_log = (high**2 - low**2) / (2 * math.log(high / low)) - mean**2
    parts = {"x": 100 / 12, "y": 25 / 12, "d": 9.0, "n": 4 * 1.25, "g": of_log / 64}
    whole = sum(parts.values())

    def f(p: Mapping[str, float]) -> float:
        assert p["n"] == int(p["n"])
        return 10 * p["x"] + 5 * p["y"] + p["d"] + 2 * p["n"] + p["g"] / 8

    found = tornado.sobol(evaluated(f, {}), varied, samples=1024, seed=5)
    for i in found.indices:
        exact = parts[i.factor.key] / whole
        assert abs(i.first - exact) <= 2 * i.first_conf
        assert abs(i.total - exact) <= 2 * i.total_conf
    assert sum(i.first for i in found.indices) == pytest.approx(1.0, abs=0.05)
    again = tornado.sobol(evaluated(f, {}), varied, samples=1024, seed=5)
    assert again.indices == found.indices


def test_runs_without_a_number_refuse_sobol_indices_or_leave_whole_blocks_out() -> None:
    pytest.importorskip("SALib", reason="SALib (the extra 'sensitivity') is not installed")
    varied = factors(x="0..1", y="0..1")

    def f(p: Mapping[str, float]) -> float | None:
        return None if p["x"] > 0.99 else p["x"]

    with refused(RetrompiError, "no-number") as caught:
        tornado.sobol(evaluated(f, {}), varied, samples=128)
    assert caught.value.exit_code == 1
    found = tornado.sobol(evaluated(f, {}), varied, samples=128, incomplete="drop")
    assert 0 < found.dropped < 10
    assert found.ended
    assert found.indices[0].factor.key == "x"
    assert found.indices[0].total == pytest.approx(1.0, abs=0.2)
    assert found.indices[1].total == pytest.approx(0.0, abs=1e-9)
    with refused(RetrompiError, "no-number"):
        tornado.sobol(evaluated(lambda p: None, {}), varied, samples=16, incomplete="drop")
    with refused(RetrompiError, "no-number"):
        tornado.sobol(evaluated(lambda p: 7.0, {}), varied, samples=16)


@pytest.mark.parametrize(
    ("texts", "samples", "says"),
    [
        ({"x": "0..1"}, 64, "bad-usage"),
        ({"x": "0..1", "y": "0..1"}, 100, "bad-syntax | 128"),
        ({"x": "0..1", "y": "3"}, 64, "nothing-varies"),
    ],
)
def test_a_sobol_analysis_that_cannot_be_is_one_line(texts: dict[str, str], samples: int, says: str) -> None:
    with refused(UsageError, says):
        tornado.saltelli(factors(**texts), samples, 1, False)
