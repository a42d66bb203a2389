"""The third verdict: shares of draws, stated ranges, intervals, and that pass and fail are what they were."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from refusals import agrees

from retrompi.papers import markdown
from retrompi.papers.judging.findings import Data
from retrompi.papers.judging.verdicts import judge, summary
from retrompi.papers.reproduce import agreement, coverage
from retrompi.papers.reproduce.agreement import FEW, CheckReading, agreement_of, judge_draws, readings, stated_range, word_of
from retrompi.papers.reproduce.reproduction import Reproduction, run_paper
from retrompi.papers.statements.claims import Claim, checks, find, load
from retrompi.papers.statements.draw import Draw, apply_draw, overrides
from retrompi.papers.statements.paper import all_papers, find_paper
from retrompi.sim.simulate import SimulationEnded
from retrompi.spec.declare.curve import TimeCurve
from retrompi.spec.question import Question, Starts, pingpong
from retrompi.store import open_store
from retrompi.studies.draws.uncertainty import Spec

SPEC = Spec(0.90, 4)
SMALL = "mpptest-1994"
"""A paper of one curve and 18 claims."""


def _claim(**changes: Any) -> Claim:
    return replace(find("BF-SM-09"), **{"low": 3.0, "high": 3.0, "value": "3.0", **changes})


@for_each(
    "share, word", [(1.0, "agrees"), (0.5, "agrees"), (0.49, "cannot tell"), (0.06, "cannot tell"), (0.05, "disagrees"),
                        (0.0, "disagrees")],
)
def test_the_share_of_draws_is_the_verdict(share: float, word: str) -> None:
    assert word_of(share) == word


@for_each(
    "value, number, half", [("9.47", 9.47, 0.005), ("120", 120.0, 0.5), ("1,597", 1597.0, 0.5), ("about 3.4 s at 4", 3.4, 0.05),
                                  ("none of these", 2.5, 0.05), ("5 to 5.0", 5.0, 0.5)]
)
def test_a_printed_number_states_its_digits(value: str, number: float, half: float) -> None:
    assert stated_range(_claim(value=value), number) == pytest.approx((number - half, number + half))


def _reading(value: float | None) -> CheckReading:
    return CheckReading("", value, 2.0, 3.0)


def test_a_claim_is_inside_if_what_is_stated_overlaps_the_interval_of_each_number() -> None:
    near = [_reading(v) for v in (2.9, 3.1, 3.2, 3.3)]
    far = [_reading(v) for v in (3.1, 3.2, 3.3, 3.4)]
    words = ["pass", "fail", "fail", "fail"]
    one = agreement_of(words, {"0 ": near}, "", SPEC)
    assert one is not None
    assert (one.word, one.share, one.draws, one.inside, one.stated_low, one.stated_high) == ("cannot tell", 0.25, 4, True, 2.0, 3.0)
    assert one.low is not None
    assert one.median is not None
    assert one.high is not None
    assert 2.9 <= one.low <= one.median <= one.high <= 3.3
    both = agreement_of(words, {"0 ": near, "1 ": far}, "1 ", SPEC)
    assert both is not None
    assert (both.inside, both.median) == (False, pytest.approx(3.25))


def test_a_draw_that_does_not_complete_does_not_pass_and_has_no_number() -> None:
    found = agreement_of(["unjudged", "pass"], {"0 ": [_reading(None), _reading(2.5)]}, "", SPEC)
    assert found is not None
    assert (found.share, found.draws, found.median, found.inside) == (0.5, 2, 2.5, True)
    assert agreement_of([], {}, "", SPEC) is None
    never = agreement_of(["unjudged", "unjudged"], {}, "", SPEC)
    assert never is not None
    assert (never.word, never.share) == ("disagrees", 0.0)
    nothing = agreement_of(["fail", "unjudged"], {"0 ": [_reading(None)] * 2}, "", SPEC)
    assert nothing is not None
    assert (nothing.low, nothing.inside) == (None, False)


def test_a_statement_without_a_number_has_a_share_alone() -> None:
    found = agreement_of(["pass"] * 3 + ["fail"], {}, "", SPEC)
    assert found is not None
    assert (found.word, found.share, found.low, found.inside) == ("agrees", 0.75, None, None)


def test_readings_of_the_kinds_of_check() -> None:
    curve = TimeCurve((0, 1024, 2048), (1e-4, 2e-4, 3e-4))
    data = Data({("wmpi", "shared"): curve, ("hpvm", "shared"): curve}, {"nas": {"t": 10.5}, "loop": {"min": 2e6, "max": 5e6}})
    startup = {"kind": "range", "metric": "startup", "models": ["wmpi", "hpvm"], "mode": "shared"}
    each = readings(_claim(unit="us", low=90.0, high=110.0), startup, data)
    assert each == [CheckReading("wmpi", pytest.approx(100), 90.0, 110.0), CheckReading("hpvm", pytest.approx(100), 90.0, 110.0)]
    (near,) = readings(_claim(unit="s", low=10.0, high=10.0, value="10.0"), {"kind": "near", "path": "nas.t"}, data)
    assert (near.value, near.low, near.high) == (10.5, 9.95, 10.05)
    ends = readings(_claim(unit="MByte/s", low=2.0, high=4.0, value="2 to 4"), {"kind": "extremes", "path": "loop"}, data)
    assert [(r.name, r.value, r.low, r.high) for r in ends] == [("min", 1.0, 0.75, 1.25), ("max", 1.25, 0.875, 1.125)]
    assert readings(_claim(), {"kind": "order", "relation": "wmpi > hpvm", "by": "time", "mode": "shared"}, data) == []
    (missing,) = readings(_claim(unit="s"), {"kind": "near", "path": "nas.missing"}, data)
    assert missing.value is None


def test_every_check_of_a_judged_number_has_readings() -> None:
    """What is printed as a number counts for the coverage: only orders, trends, outcomes and bends have none."""
    kinds = {c["kind"] for entries in checks().values() for c in entries}
    assert kinds - agreement._NUMBERS == {"extremes", "trend", "order", "compare", "none"}


def test_a_draw_changes_what_a_question_does_not_set() -> None:
    question = Question("wmpi", "nt-pair", Starts(2), overrides={"wmpi.poll_cost": "3us"})
    assert apply_draw(None, question) is question
    one, two = (apply_draw(Draw(n, SPEC), question) for n in (0, 1))
    assert one.sets["wmpi.poll_cost"] == two.sets["wmpi.poll_cost"] == "3us"
    assert one.sets != two.sets
    assert overrides(Draw(0, SPEC), question) == [f"{k}={v}" for k, v in one.sets.items()]
    assert apply_draw(Draw(0, SPEC), question) == one


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Reproduction, Reproduction]:
    store = open_store(tmp_path_factory.mktemp("agreement") / "runs.db")
    nominal = run_paper(SMALL, store, keep=False)
    (found,) = agreement.with_agreement([nominal], store, SPEC)
    return store, nominal, found


def test_pass_and_fail_are_what_they_were(small: tuple[Any, Reproduction, Reproduction]) -> None:
    _, nominal, found = small
    assert [replace(v, agreement=None) for v in found.verdicts] == nominal.verdicts
    told = [v.agreement for v in found.verdicts if v.verdict in ("pass", "fail")]
    assert all(a is not None and a.draws == SPEC.draws for a in told)
    assert all(v.agreement is None for v in found.verdicts if v.verdict == "unjudged")
    held = next(s for s in summary(found.verdicts) if s.use == "validate")
    assert sum(held.agreement.values()) == held.judged
    assert 0 <= held.inside <= held.numbers <= held.judged


def test_the_draws_are_found_again(small: tuple[Any, Reproduction, Reproduction], monkeypatch: pytest.MonkeyPatch) -> None:
    from retrompi.sim import simulate

    store, nominal, found = small

    def never(*_: Any) -> None:
        raise AssertionError("simulated again")

    monkeypatch.setattr(simulate, "run", never)
    seen: list[tuple[int, int]] = []
    (again,) = agreement.with_agreement([nominal], store, SPEC, lambda done, total, what: seen.append((done, total)))
    assert again.verdicts == found.verdicts
    assert seen[-1][0] == seen[-1][1]


def test_curves_have_bands(small: tuple[Any, Reproduction, Reproduction]) -> None:
    (rows,) = small[2].bands.values()
    assert list(small[2].bands) == [("curve", "mpptest")]
    assert all(low <= middle <= high for _, low, middle, high in rows)


def test_slow_experiments_have_few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim on slow facts is judged by the draws that have them, any other by all."""
    paper = find_paper("krishna-2010")
    claims = [find("KB-01"), find("BF-FUN-04")]
    monkeypatch.setattr(agreement, "by_paper", lambda key: claims)
    monkeypatch.setattr(agreement.curves, "of", lambda plan: ())
    data: tuple[Sequence[Mapping[str, Any]], Mapping[str, Any]] = [], {"zero_byte": {"nemesis": 240e-9}}
    mode = {x: {"failed": 1, "programs": 87} for x in ("shared", "distributed")}
    settings = dict.fromkeys(("default", "raised_10", "raised_15"), mode)
    suite = {"suite": dict.fromkeys(("wmpi", "winmpich", "hpvm"), settings)}
    full = data[0], {**data[1], **suite}
    study = Reproduction(paper, tuple(claims), facts=full[1], verdicts=judge(claims, *full))
    draws = [agreement.StudyDraw(*(full if n < FEW else data), slow=n < FEW) for n in range(FEW + 5)]
    quick, slow = judge_draws(study, draws, Spec(0.9, FEW + 5))
    assert quick.agreement is not None
    assert quick.agreement.draws == FEW + 5
    assert slow.agreement is not None
    assert slow.agreement.draws == FEW


def test_a_run_that_does_not_complete_is_no_error_of_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    def ends() -> Any:
        raise SimulationEnded("it hangs")

    assert agreement._job_result(find_paper(SMALL), agreement.Job("a job", ends)).where == ""


# --- the shipped file ----------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not coverage.file_of().is_file(), reason="not made yet")
def test_the_shipped_rows_are_of_the_claims_and_their_verdicts() -> None:
    rows = coverage.shipped_rows()
    known = {c.id: c for c in load()}
    mine = [r for r in rows if ":" not in r["id"]]
    assert {r["paper"] for r in rows} <= set(all_papers())
    assert all(known[r["id"]].use == r["use"] for r in mine)
    assert all(r["agreement"] == word_of(float(r["share"])) for r in rows)
    five = [r for r in mine if r["paper"] in coverage.first_papers()]
    held, fitted = ([r["verdict"] for r in five if r["use"] == use] for use in ("validate", "calibrate"))
    assert (held.count("pass"), len(held)) == (107, 150)
    assert (fitted.count("pass"), len(fitted)) == (53, 55)


@pytest.mark.skipif(not coverage.file_of().is_file(), reason="not made yet")
def test_the_tables_of_the_page_are_what_the_file_says() -> None:
    page = Path(__file__).parents[1] / "docs" / "uncertainty" / "statements.md"
    text = page.read_text(encoding="utf-8")
    for name, made in (("coverage", coverage.coverage_table), ("outside", coverage.outside_table)):
        assert made(coverage.shipped_rows(), markdown.table) in text, f"python -m retrompi.papers.markdown {page}: {name}"


# --- the command ---------------------------------------------------------------------------------------------------------------------


def test_the_command(retrompi: Callable[..., Any]) -> None:
    given = ("validate", "--paper", SMALL)
    plain = json.loads(retrompi(*given, "--json").out)
    rows = json.loads(retrompi(*given, "--uncertainty", "90%", "--draws", "2", "--json").out)
    assert [{k: r[k] for k in plain[0]} for r in rows] == plain
    assert {r["agreement"] for r in rows} <= {"agrees", "cannot tell", "disagrees", None}
    assert all((r["agreement"] is None) == (r["verdict"] == "unjudged") for r in rows)
    table = retrompi(*given, "--uncertainty", "90%", "--draws", "2").out
    assert "third verdict" in table
    assert "inside the interval" in table
    agrees(retrompi("validate", "-m", "wmpi", "--uncertainty", "90%"), "conflicting-options | --model")
    agrees(retrompi(*given, "--write"), "unused-option | --uncertainty")


def test_a_draw_has_the_repetitions_of_a_calibration() -> None:
    """The nominal curve of a draw's repetitions is that of the paper's, so that draws are of what is judged."""
    from retrompi.papers.experiments.pingpong import _repetitions
    from retrompi.sim import simulate

    sizes = [0, 64, 4096, 65536]
    few, many = (simulate.benchmark(Question("wmpi", "nt-pair", pingpong(sizes, reps), "shared")) for reps in (_repetitions, None))
    assert [r["time_us"] for r in few] == pytest.approx([r["time_us"] for r in many], rel=0.02)
