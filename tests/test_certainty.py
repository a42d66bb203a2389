"""Words about certainty: shares of draws, break-even and tolerance over draws, the value of information; cases known in closed form."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from cases import for_each
from conftest import Outcome
from refusals import agrees, refused

from retrompi.spec.declare.number import Number
from retrompi.spec.question import Question, pingpong
from retrompi.store import open_store
from retrompi.studies.define import metrics
from retrompi.studies.draws.uncertainty import Spec, ensemble
from retrompi.studies.search.breakeven import BreakEven, break_even
from retrompi.studies.search.certainty import Ahead, ahead, distances, merge_crossings, together
from retrompi.studies.search.information import FEWEST, information
from retrompi.studies.search.reading import NoNumber, Reading
from retrompi.studies.search.tolerance import SearchRange, Tolerance, tolerance
from retrompi.studies.search.worth import deciding, worth_lines

Run = Callable[..., Outcome]
AT_64K = metrics.parse("time@64KiB")
NAMES = ("wmpi", "hpvm")


# --- which side is ahead -------------------------------------------------------------------------------------------------------


def test_every_draw_is_counted_once() -> None:
    told = ahead([1.0, 3.0, 2.0, None, 1.0, None], [2.0, 1.0, 2.0, 1.0, None, None], more_is_better=False)
    assert told == Ahead(a=1, b=1, equal=1, only_a=1, only_b=1, neither=1)
    assert told.draws == 6
    assert ahead([1.0], [2.0], more_is_better=True) == Ahead(0, 1, 0, 0, 0, 0)


@for_each(
    "counts, level, says",
    [
        (Ahead(97, 3, 0, 0, 0, 0), 0.9, "wmpi is faster than hpvm at 64 KiB: in 97 of 100 draws"),
        (Ahead(3, 97, 0, 0, 0, 0), 0.9, "hpvm is faster than wmpi at 64 KiB: in 97 of 100 draws"),
        (Ahead(95, 5, 0, 0, 0, 0), 0.9, "wmpi is faster than hpvm at 64 KiB: in 95 of 100 draws"),
        (Ahead(94, 6, 0, 0, 0, 0), 0.9, "whether wmpi or hpvm is faster at 64 KiB is not determined: wmpi in 94, hpvm in 6 of 100 draws"),
        (Ahead(97, 3, 0, 0, 0, 0), 0.99, "whether wmpi or hpvm is faster at 64 KiB is not determined: wmpi in 97, hpvm in 3 of 100 draws"),
        (Ahead(90, 1, 0, 8, 0, 1), 0.9,
         "wmpi is faster than hpvm at 64 KiB: in 90 of 100 draws; in 8 only wmpi completes; in 1 neither completes"),
    ],
)
def test_a_statement_says_its_draws_or_that_it_is_not_determined(counts: Ahead, level: float, says: str) -> None:
    assert counts.sentence(NAMES, AT_64K, level) == says


def test_a_metric_is_said_in_its_words() -> None:
    said = Ahead(10, 0, 0, 0, 0, 0)
    assert said.sentence(NAMES, metrics.parse("time"), 0.9).startswith("wmpi is faster than hpvm: in 10 of 10")
    assert said.sentence(NAMES, metrics.parse("latency"), 0.9).startswith("wmpi is faster than hpvm at the smallest size:")
    assert said.sentence(NAMES, metrics.parse("peak"), 0.9).startswith("wmpi is faster than hpvm at its best size:")
    assert said.sentence(NAMES, metrics.parse("packets"), 0.9).startswith("wmpi has fewer packets than hpvm:")
    assert said.sentence(NAMES, metrics.parse("mpi"), 0.9).startswith("wmpi has the smaller time in MPI than hpvm:")


# --- searches, once a draw -----------------------------------------------------------------------------------------------------


def crossing_at(x: float):
    """A search whose sides are equal at ``x``: A costs as much as the value, B always ``x``."""
    def search(ask) -> BreakEven:
        return break_even(ask, Number("x", "1", 1.0, 100.0, log=True, digits=6))

    return search, lambda value: (Reading(value), Reading(x))


def test_searches_run_together_find_what_each_finds_alone() -> None:
    places = [2.0, 11.0, 37.0, 500.0]
    batches: list[int] = []

    def evaluate(asked: Sequence[tuple[int, float]]):
        batches.append(len({i for i, _ in asked}))
        return [crossing_at(places[i])[1](value) for i, value in asked]

    found = together([crossing_at(x)[0] for x in places], evaluate)
    for x, one in zip(places, found, strict=True):
        alone = crossing_at(x)[0](lambda values, x=x: [crossing_at(x)[1](v) for v in values])
        assert one == alone
    assert batches[0] == len(places)  # as one batch
    told = merge_crossings(found, Spec(0.9, 4))
    assert [(c.before, c.after, c.draws) for c in told.changes] == [("a", "b", 3)]
    assert (told.without, told.several) == ({"a": 1}, 0)
    assert told.changes[0].value.median == pytest.approx(11.0, rel=0.02)
    assert (told.changes[0].value.low, told.changes[0].value.high) == (pytest.approx(2.9, rel=0.02), pytest.approx(34.4, rel=0.02))
    assert [a.a for a in told.ahead.values()][:: len(told.ahead) - 1] == [4, 1]  # at the ends of the range


def test_a_search_without_a_number_counts_and_an_error_stops_all() -> None:
    def none(ask):
        raise NoNumber("the base has no number")

    found = together([none, crossing_at(5.0)[0]], lambda asked: [crossing_at(5.0)[1](v) for _, v in asked])
    told = merge_crossings(found, Spec(0.9, 2))
    assert ([c.draws for c in told.changes], told.without) == ([1], {"neither": 1})

    def wrong(ask):
        ask([1])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        together([wrong, crossing_at(5.0)[0]], lambda asked: [crossing_at(5.0)[1](v) for _, v in asked])


def test_an_error_of_the_evaluation_ends_every_search() -> None:
    def evaluate(asked):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        together([crossing_at(x)[0] for x in (2.0, 5.0)], evaluate)


def test_a_tolerance_over_draws_counts_those_that_never_get_there() -> None:
    slopes = [1.0, 2.0, 4.0, 1e-9]
    way = SearchRange(Number("x", "1", digits=6), 1.0, 1.0, 1000.0)

    def search(slope: float):
        def one(ask) -> Tolerance:
            (base,) = ask([1.0])
            return tolerance(ask, way, base, slower=(0.5,))

        return one

    found = together([search(s) for s in slopes], lambda asked: [Reading(100.0 + slopes[i] * (x - 1)) for i, x in asked])
    (told,) = distances(found, [0.5], 0.9)
    assert (told.reached, told.never, told.ends, told.none, told.draws) == (3, 1, 0, 0, 4)
    assert told.value is not None
    assert told.value.median == pytest.approx(1 + 25, rel=0.02)
    assert told.row()["draws"] == 4


# --- the value of information --------------------------------------------------------------------------------------------------


def sample(rng: np.random.Generator, n: int, k: int) -> dict[str, np.ndarray]:
    return {f"p{i}": rng.random(n) for i in range(k)}


def test_shares_of_a_sum_are_those_of_the_theory() -> None:
    """Of 2a + b + c/2 and noise, uniform in all: the shares are the squares of the weights."""
    shares = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = sample(rng, 200, 8)
        y = 2 * x["p0"] + x["p1"] + 0.5 * x["p2"] + 0.3 * rng.normal(size=200) / np.sqrt(12)
        items = {i.name: i for i in information(y, x).items}
        shares.append([(items[f"p{i}"].share, items[f"p{i}"].error) for i in range(3)])
    told = np.array(shares)
    true = np.array([4, 1, 0.25]) / 5.34
    assert told[:, :, 0].mean(axis=0) == pytest.approx(true, abs=0.03)
    covered = np.abs(told[:, :, 0] - true) < 2 * told[:, :, 1]
    assert covered.mean() > 0.85


def test_ishigami_by_regression() -> None:
    """First-order indices of Ishigami's function (a = 7, b = 0.1): 0.314, 0.442, 0; the second oscillates, so it comes out smaller."""
    rng = np.random.default_rng(1)
    u = {k: rng.random(2000) for k in "abc"}
    a, b, c = (2 * np.pi * u[k] - np.pi for k in "abc")
    items = {i.name: i for i in information(np.sin(a) + 7 * np.sin(b) ** 2 + 0.1 * c**4 * np.sin(a), u).items}
    assert items["a"].share == pytest.approx(0.314, abs=0.03)
    assert 0.25 < items["b"].share < 0.46
    assert items["c"].share < 0.02
    assert not items["c"].resolved


def test_what_tells_nothing_is_not_resolved() -> None:
    """Of 30 parameters without effect, one is called resolved in at most a twentieth of the ensembles."""
    wrong = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        told = information(rng.lognormal(size=100), sample(rng, 100, 30))
        wrong += bool(told.resolved or told.steps)
    assert wrong <= 8


def test_an_order_that_the_draws_cannot_tell_is_not_told() -> None:
    """Of two parameters that matter alike, one is put first in a tenth of the ensembles."""
    told = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        x = sample(rng, 100, 6)
        found = information(x["p0"] + x["p1"] + 0.05 * x["p2"], x)
        assert {i.name for i in found.resolved} == {"p0", "p1"}
        assert 0 < found.below < 0.5
        told.append([i.ranks for i in found.resolved] != [(1, 2), (1, 2)])
    assert sum(told) <= 8
    clear = information(2 * x["p0"] + 1.2 * x["p1"] + 0.4 * x["p2"], x)
    assert [(i.name, i.ranks) for i in clear.resolved] == [("p0", (1, 1)), ("p1", (2, 2))]
    assert [s.name for s in clear.steps] == ["p0", "p1", "p2"]  # once the others are known, the third shows
    assert [s.share for s in clear.steps] == pytest.approx([0.71, 0.97, 1.0], abs=0.08)


def test_what_parameters_share_counts_for_both() -> None:
    """Two parameters of which the data determine the sum: knowing either tells the other."""
    rng = np.random.default_rng(4)
    a = rng.random(300)
    b = 1 - a + 0.02 * rng.normal(size=300)
    items = {i.name: i for i in information(3 * a + rng.random(300), {"a": a, "b": b}).items}
    assert items["a"].share == pytest.approx(0.9, abs=0.05)
    assert items["b"].share == pytest.approx(items["a"].share, abs=0.05)
    assert len(information(3 * a + rng.random(300), {"a": a, "b": b}).steps) == 1  # the second adds nothing to the first


def test_a_measurement_of_the_number_itself_tells_it_all() -> None:
    rng = np.random.default_rng(5)
    y = np.log(rng.lognormal(size=100))
    (item,) = information(y, {"itself": y}).items
    assert item.share > 0.999
    (noisy,) = information(y, {"noisy": y + rng.normal(size=100)}).items
    assert noisy.share == pytest.approx(0.5, abs=0.15)


def test_too_few_draws_and_a_number_that_does_not_vary_are_refused() -> None:
    with refused(NoNumber, f"no-number | {FEWEST}"):
        information([1.0, 2.0], {"a": [0.1, 0.2]})
    with refused(NoNumber, "no-number | 25"):
        information([3.0] * 25, {"a": list(range(25))})


def test_a_parameter_that_is_the_same_in_all_draws_tells_nothing() -> None:
    rng = np.random.default_rng(6)
    told = information(rng.random(50), {"constant": np.ones(50), "whole": rng.integers(0, 2, 50)})
    assert told.resolved == ()
    assert {i.name: i.share for i in told.items}["constant"] == 0


# --- commands ------------------------------------------------------------------------------------------------------------------

PINGPONG = """title = "t"
summary = "s"
reproduces = "what-if: a test"
name = "pp"
model = "wmpi"
platform = "nt-pair"
mode = "distributed"
[trace]
generator = "pingpong"
warm_up = 0
sizes = "0,64KiB"
reps = 5
"""
SURE = ("--uncertainty", "90%", "--draws")


@pytest.fixture
def small(tmp_path: Path, store_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A PingPong of two sizes, five repetitions each."""
    monkeypatch.setenv("RETROMPI_STORE", str(store_path))
    (tmp_path / "s.toml").write_text(PINGPONG)
    return str(tmp_path / "s.toml")


def test_runtimes_are_compared_draw_by_draw(retrompi: Run, small: str) -> None:
    asked = ("compare", small, "--models", "winmpich,wmpi,hpvm", "--metric", "time@64KiB", "--jobs", "1", *SURE, "10")
    told = retrompi(*asked, "--json")
    assert told.code == 0, told.err
    found = json.loads(told.out)
    assert (found["level"], found["draws"]) == (0.9, 10)
    for row in found["rows"]:
        assert row["time_s_low"] <= row["time_s_high"]
        assert row["time@64KiB_low"] <= row["time@64KiB_high"]
        assert row["completed"] == 1
    pairs = {frozenset((s["a"], s["b"])): s for s in found["statements"]}
    assert len(pairs) == 3
    sure = pairs[frozenset(("winmpich", "wmpi"))]
    assert sure["text"] == "wmpi is faster than winmpich at 64 KiB: in 10 of 10 draws"
    assert (sure["decided"], sure["a"], sure["a_ahead"]) == ("a", "wmpi", 10)
    for s in pairs.values():
        assert s["a_ahead"] + s["b_ahead"] + s["equal"] + s["only_a"] + s["only_b"] + s["neither"] == 10
    text = retrompi(*asked)
    assert "is faster than winmpich at 64 KiB: in 10 of 10 draws" in text.out
    assert "90 % interval" in text.out
    assert "10 draws" in text.err
    csv = retrompi(*asked, "--csv").out.splitlines()
    assert "time_s_low" in csv[0].split(",")


def test_what_would_decide_an_order_is_what_the_sides_do_not_share(store_path: Path) -> None:
    """Of two runs of which one sets a parameter that the other draws, the discrepancy and the machine drop out."""
    asked = Question("wmpi", "nt-pair", pingpong([0], 5), "shared")
    pair = ensemble(open_store(store_path), [asked, asked.with_(overrides={"wmpi.library": "80us"})], Spec(draws=60))
    (line,) = deciding(*pair, metrics.parse("time@0B"))
    assert "variance of the ratio: wmpi.library" in line
    assert "discrepancy" not in line
    (alone,) = worth_lines(pair[1], metrics.parse("time@0B"))
    assert "discrepancy" in alone
    assert deciding(*(ensemble(open_store(store_path), [asked], Spec(draws=5)) * 2), metrics.parse("time@0B")) == []


def test_a_change_that_both_sides_share_is_surer_than_its_parts(retrompi: Run, small: str) -> None:
    """Twice the latency of the wire is slower in every draw, though the intervals of both overlap."""
    told = retrompi("break-even", small, "--along", "platform.link.latency=1us..10ms", "--a", "wmpi.udp_timeout=200ms", "--b",
                    "platform.host.syscall=1ms", "--metric", "latency", "--scan", "3", "--jobs", "1", *SURE, "4", "--json")
    assert told.code == 0, told.err
    found = json.loads(told.out)
    assert found["draws"] == 4
    assert found["without"] == {"a": 4}
    assert [a["a_ahead"] for a in found["ahead"]] == [4] * len(found["ahead"])


def test_a_break_even_is_a_range_over_draws(retrompi: Run, small: str) -> None:
    asked = ("break-even", small, "--along", "platform.link.bandwidth=1Mbps..100Mbps", "--a", "model=wmpi", "--b", "model=hpvm",
             "--metric", "time@64KiB", "--scan", "3", "--tolerance", "20%", "--jobs", "1", *SURE, "4")
    told = retrompi(*asked, "--json")
    assert told.code == 0, told.err
    found = json.loads(told.out)
    assert {c["key"] for c in found["points"]} == {"platform.link.bandwidth"}
    crossing = {(c["before"], c["after"]): c["draws"] for c in found["changes"]}
    assert sum(found["without"].values()) <= 4
    assert max(crossing.values(), default=0) + sum(found["without"].values()) <= 4
    assert all(c["estimate_low"] <= c["estimate_median"] <= c["estimate_high"] for c in found["changes"])
    assert all(a["draws"] == 4 for a in found["ahead"])
    text = retrompi(*asked).out
    assert f"in {sum(found['without'].values())} of 4 draws no crossing" in text


def test_a_tolerance_has_an_interval(retrompi: Run, small: str) -> None:
    asked = ("tolerance", small, "--change", "platform.link.bandwidth", "--metric", "time@64KiB", "--tolerance", "10%", "--jobs", "1",
             *SURE, "4")
    told = retrompi(*asked, "--json")
    assert told.code == 0, told.err
    (certain,) = json.loads(told.out)["certain"]
    assert (certain["draws"], certain["reached"]) == (4, 4)
    assert 0 < certain["estimate_low"] <= certain["estimate_median"] <= certain["estimate_high"] < 12.5e6
    assert "5 %: in 4 of 4 draws at" in retrompi(*asked).out


def test_what_would_make_a_number_more_certain(retrompi: Run, small: str) -> None:
    asked = ("tornado", small, "--metric", "latency", "--measure", "time@64KiB", "--measure", "bf-wmpi-shared:time@1KiB", *SURE, "40")
    told = retrompi(*asked, "--json")
    assert told.code == 0, told.err
    found = json.loads(told.out)
    assert found["low"] < found["median"] < found["high"]
    parameters = [r for r in found["rows"] if r["kind"] == "parameter"]
    assert "discrepancy" in {r["name"] for r in parameters}
    assert any(r["resolved"] for r in parameters)
    assert all(0 <= r["share"] <= 1 for r in found["rows"])
    assert {r["name"] for r in found["rows"] if r["kind"] == "measurement"} == {"time@64KiB", "bf-wmpi-shared:time@1KiB"}
    text = retrompi(*asked).out
    assert "by how much its variance would fall, if known" in text
    assert "not resolved" in text


def test_a_curve_says_what_would_make_it_more_certain(retrompi: Run, small: str) -> None:
    told = retrompi("pingpong", "-m", "wmpi", "--mode", "shared", "--sizes", "0,64KiB", "--reps", "5", *SURE, "60")
    assert told.code == 0, told.err
    lines = [line for line in told.err.splitlines() if "what would make" in line]
    assert lines
    assert all("time@" in line and "%" in line for line in lines)


@for_each(
    "arguments, says",
    [
        (("tornado", "SMALL", "--uncertainty", "90%", "--method", "sobol"), "conflicting-options | --uncertainty | --method"),
        (("tornado", "SMALL", "--uncertainty", "90%", "--sample-seed", "2"), "conflicting-options | --sample-seed"),
        (("tornado", "SMALL", "--measure", "time"), "unused-option | --measure | --uncertainty"),
        (("tornado", "SMALL", "--uncertainty", "90%", "--measure", "time@3B"), "no-metric | time@3B"),
        (("tornado", "SMALL", "--uncertainty", "90%", "--measure", "nothing:time"), "unknown-scenario | nothing"),
        (("tornado", "SMALL", "--uncertainty", "90%", "--draws", "5"), "no-number | 5 of 5 | 20"),
        (("tolerance", "SMALL", "--change", "platform.link.bandwidth", "--uncertainty", "1%", "--draws", "1"), "BadParameter | --draws"),
        (("break-even", "SMALL", "--along", "platform.link.latency=1us..1ms", "--a", "model=hpvm", "--uncertainty", "2"),
         "out-of-range | 2"),
        (("compare", "SMALL", "--uncertainty", "90%"), "unused-option | --uncertainty | --models"),
        (("compare", "SMALL", "--models", "wmpi,hpvm", "--draws", "5"), "unused-option | --draws"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(retrompi: Run, small: str, arguments: Sequence[str], says: str) -> None:
    told = retrompi(*(small if a == "SMALL" else a for a in arguments))
    assert told.code in (1, 2)
    agrees(told, says)
