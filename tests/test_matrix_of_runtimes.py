"""One program on runtimes, machines and networks: which pairs there are, the page, why the first is first, what cannot run and why."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import STRICT, Outcome
from refusals import refused

from retrompi.base.errors import UsageError
from retrompi.render.pages import runtimes_page
from retrompi.sim.cautions import Caution
from retrompi.spec import registry
from retrompi.spec.conditions.bounds import Bounds
from retrompi.store import open_store
from retrompi.studies.compare.compare_runtimes import EVENTS, Candidates, RuntimeRow, platforms_of, program, rows, runtimes
from retrompi.studies.compare.matrix_summary import caution_lines, count_outcomes, first_beyond_range, sides, without_platform, without_time
from retrompi.studies.define.case import PointJob
from retrompi.studies.execute.bounded_executor import Bounded
from retrompi.studies.execute.run import Here

PROGRAM = ("compare", "ring", "-n", "2", "size=1KiB", "reps=2")
THREE = ("--models", "wmpi,pvm,craympt", "--platforms", "nt-pair,linux-p6-200,cray-t3e", "--networks", "switch-100,switch-10")


def test_names_and_networks_make_platforms() -> None:
    assert runtimes(["wmpi", "pvm"]) == ("wmpi", "pvm")
    assert set(runtimes(["all"])) == set(registry.models())
    assert platforms_of(["nt-pair", "linux-p6-200", "nt4-p6-200-dual"], ["switch-100"], 5) == (
        "nt-pair", "linux-p6-200*5@switch-100", "nt4-p6-200-dual*3@switch-100")
    assert set(platforms_of(["all"], [], 2)) == set(registry.platforms())
    assert platforms_of(["nt-pair", "own"], [], 8, ["wmpi", "cheui", "elan", "tcgmsg"]) == (
        "nt-pair", "ibm-sp1*8@sp1-switch", "alpha-es40-667*2@qsnet-elan3",  # four processors a host
        "p4-1800*2@ge-ga620", "p4-1800*2@ge-trendnet", "alpha-ds20*2@ge-syskonnect-jumbo")  # cables: no more than two hosts
    everywhere = platforms_of(["all", "own"], [], 8, registry.models())
    assert len(everywhere) >= 15
    with refused(UsageError, "unused-option | --networks"):
        platforms_of(["nt-pair"], ["switch-100"], 2)
    with refused(UsageError, "unknown-network"):
        platforms_of(["linux-p6-200"], ["switch-99"], 2)
    assert __name__ in STRICT  # the pairs that cannot have been are refused here


@pytest.fixture
def answer(retrompi: Callable[..., Outcome], tmp_path: Path) -> tuple[Outcome, dict[str, object]]:
    page = tmp_path / "matrix.html"
    done = retrompi(*PROGRAM, *THREE, "--json", "-o", str(page))
    return done, {**json.loads(done.out), "page": page.read_text()}


def test_every_pair_has_a_time_or_a_reason_and_the_page_has_both(answer: tuple[Outcome, dict[str, object]]) -> None:
    done, told = answer
    rows = told["rows"]
    assert done.code == 1
    assert isinstance(rows, list)
    assert len(rows) == 3 * 4
    timed = {(r["model"], r["platform"]) for r in rows if r["time_s"] is not None}
    assert timed == {("wmpi", "nt-pair"), ("craympt", "cray-t3e"), *(("pvm", f"linux-p6-200*2@switch-{n}") for n in (10, 100))}
    assert all(r["reason"] for r in rows if r["time_s"] is None)
    page = str(told["page"])
    for r in rows:
        assert r["platform"] in page
    assert "What has no time, and why" in page
    assert "needs the torus of a Cray T3E" in page
    assert "Why the first is first" in page


def test_the_causes_are_of_the_first_and_another_runtime(answer: tuple[Outcome, dict[str, object]]) -> None:
    causes = answer[1]["causes"]
    assert isinstance(causes, list)
    assert 2 <= len(causes) <= 6
    assert causes[0].startswith("craympt on cray-t3e is the fastest; ")
    assert all(" against " in c for c in causes[1:])


def test_a_figure_and_numbers_are_written_by_their_endings(retrompi: Callable[..., Outcome], tmp_path: Path) -> None:
    words = (*PROGRAM, "--models", "wmpi,hpvm", "--platforms", "nt-cluster")
    assert retrompi(*words, "-o", str(tmp_path / "m.csv")).code == 0
    assert (tmp_path / "m.csv").read_text().startswith("model,platform,outcome")


def test_a_matrix_without_any_time_is_a_page_too() -> None:
    page = runtimes_page.page([RuntimeRow("wmpi", "nt-pair", "error", "a <reason>", None, False)], "nothing", [], [], "")
    assert "No pair completed." in page
    assert "a &lt;reason&gt;" in page
    assert runtimes_page.grid([RuntimeRow("wmpi", "nt-pair", "error", "", None, False)]) == (["wmpi"], ["nt-pair"], [[None]])


def test_networks_and_platforms_need_models(retrompi: Callable[..., Outcome]) -> None:
    assert retrompi("compare", "ring", "--networks", "switch-100").code == 2


def _row(model: str, platform: str, time_s: float | None, outcome: str = "completed", reason: str = "") -> RuntimeRow:
    return RuntimeRow(model, platform, outcome, reason, None, False, time_s, None if time_s is None else time_s / 0.5)


MANY = [
    _row("hpvm", "a", 0.5), _row("wmpi", "b", 1.0), _row("hpvm", "b", 2.0),
    _row("wmpi", "a", None, "aborted", "the pool of 8 B on host n1 is exhausted: no buffer for a packet\n  the pool holds"),
    _row("pvm", "a", None, "error", "pvm needs Unix, but 'a' runs Windows; it can run on c"),
    _row("lam", "b", None, "error", "lam needs Unix, but 'b' runs VMS; it can run on c"),
]


def test_the_sides_of_a_matrix_have_their_best_and_their_worst_pair() -> None:
    told = [(s.name, s.pairs, s.timed, s.fastest and s.fastest.platform, s.slowest and s.slowest.time_s) for s in sides(MANY, "model")]
    assert told == [("hpvm", 2, 2, "a", 2.0), ("wmpi", 2, 1, "b", 1.0), ("pvm", 1, 0, None, None), ("lam", 1, 0, None, None)]
    assert [(s.name, s.timed) for s in sides(MANY, "platform")] == [("a", 1), ("b", 2)]


def test_pairs_without_a_time_are_grouped_by_what_their_reason_says_first() -> None:
    assert [w.line for w in without_time(MANY)] == [
        "1 aborted: the pool of 8 B on host n1 is exhausted: wmpi on a",
        "2 cannot run: needs Unix: pvm, lam on 2 platforms",
    ]
    assert without_platform(MANY) == ["pvm", "lam"]
    assert count_outcomes(MANY) == {"completed": 3, "cannot run": 2, "aborted": 1}
    many = [_row(f"m{i}", "a", None, "error", f"m{i} needs Unix, but it is not") for i in range(7)]
    assert [w.line for w in without_time(many)] == ["7 cannot run: needs Unix: m0, m1, m2, m3 and 3 more on a"]


def test_cautions_of_many_pairs_are_counted_by_code() -> None:
    told = [Caution("outside-calibration", "far outside: x", "hpvm on a, wmpi on b"),
            Caution("outside-calibration", "far outside: y", "hpvm on b"),
            Caution("outside-calibration", "4 ranks", "hpvm on a", minor=True), Caution("not-simulated", "a thing")]
    assert caution_lines(told, 6) == [
        "3 of 6 pairs: the question lies outside the calibrated range of the model, by far (hpvm, wmpi)",
        "1 of 6 pairs: 4 ranks (hpvm)",
        "6 of 6 pairs: a thing",
    ]


PLATFORMS = "nt-pair,cray-t3e,myrinet-piii"
FULL = ("compare", "ring", "--models", "all", "--platforms", PLATFORMS, "-n", "2", "-j", "1")


def test_many_pairs_are_a_summary_and_full_has_every_pair(retrompi: Callable[..., Outcome]) -> None:
    words = (*FULL, "--", "size=1KiB", "reps=2")
    brief = retrompi(*words)
    lines = brief.out.splitlines()
    pairs = len(registry.models()) * 3
    assert f"{pairs} pairs, " in lines[0]
    assert len(lines) + len(brief.err.splitlines()) <= 70, "\n".join(lines)
    assert "needs Myrinet and Linux: " in brief.out
    assert brief.err.count("caution: ") <= 6
    full = retrompi(*FULL, "--full", "--", "size=1KiB", "reps=2")
    assert sum(line.startswith("craympt ") for line in full.out.splitlines()) >= 3
    assert brief.code == full.code == 1


HALO = ("compare", "halo2d", "--models", "wmpi:absorbed,hpvm", "-p", "nt-pair", "--mode", "shared", "-j", "1", "--event-limit", "500")


def test_a_pair_that_reaches_a_bound_is_stopped_and_said(retrompi: Callable[..., Outcome]) -> None:
    program = ("rows=1", "columns=5", "size=64KiB", "reps=1")
    done = retrompi(*HALO, "--", *program)
    assert done.code == 1
    assert "hpvm: limit: the bound of 500 events is reached" in " ".join(done.out.split())
    assert "stopped at 500 events (--event-limit): hpvm on nt-pair" in " ".join(done.out.split())
    rows = json.loads(retrompi(*HALO, "--json", "--", *program).out)["rows"]
    assert sorted((r["model"], r["outcome"]) for r in rows) == [("hpvm", "limit"), ("wmpi:absorbed", "completed")]


def test_a_pair_that_was_stopped_is_found_again_within_the_same_bound(retrompi: Callable[..., Outcome], tmp_path: Path) -> None:
    def simulated(*more: str) -> list[bool]:
        words = (*HALO, "--json", "--store", str(tmp_path / "runs.db"), *more, "--", "rows=1", "columns=5", "size=64KiB", "reps=1")
        return [r["found"] for r in sorted(json.loads(retrompi(*words).out)["rows"], key=lambda r: str(r["model"]))]

    assert simulated() == [False, False]
    assert simulated() == [True, True]
    assert simulated("--fresh") == [False, False]
    assert simulated("--event-limit", "501") == [False, True]  # a stopped run answers no other bound; one that completed answers all


def test_a_fiction_is_named_wherever_it_stands(retrompi: Callable[..., Outcome], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = ("compare", "ring", "--models", "lam,gm", "--platforms", "abe,nt-pair", "--what-if-hardware", "-o", str(page), "-n", "2")
    done = retrompi(*words, "--", "size=1KiB", "reps=2")
    lines = [line.split() for line in done.out.splitlines() if line.startswith(("lam ", "gm "))]
    assert sorted((line[0], line[1], line[-1] == "fiction") for line in lines if line[1] in ("abe", "nt-pair")) == [
        ("gm", "abe", True), ("gm", "nt-pair", True), ("lam", "abe", False), ("lam", "nt-pair", True)]
    assert "gm on abe (a fiction)" in done.out or "; gm (a fiction) takes " in done.out
    shown = page.read_text()
    assert "* a fiction: " in shown
    assert "GM (a fiction)" in shown
    rows = json.loads(retrompi(*words, "--json", "--", "size=1KiB", "reps=2").out)["rows"]
    assert {(r["model"], r["platform"]): bool(r["fiction"]) for r in rows} == {
        ("gm", "abe"): True, ("gm", "nt-pair"): True, ("lam", "abe"): False, ("lam", "nt-pair"): True}


def test_what_the_first_is_not_calibrated_for_is_said() -> None:
    told = [Caution("outside-calibration", "8 ranks (calibrated for 2)", "hpvm on a, wmpi on b", minor=True, mark="8 ranks"),
            Caution("outside-calibration", "hpvm.library overridden, which was fitted (a what-if)", "hpvm on a", minor=True),
            Caution("outside-calibration", "far outside the calibrated range of hpvm: platform a (calibrated on b)", "hpvm on a"),
            Caution("outside-calibration", "messages of 1 MiB", "wmpi on b", minor=True, mark="messages of 1 MiB")]
    assert first_beyond_range(MANY, told) == "the model of hpvm is not calibrated for all of this: 8 ranks, platform a"
    assert first_beyond_range(MANY, told[1:2]) == first_beyond_range(MANY, []) == first_beyond_range(MANY[3:], told) == ""


def test_the_page_of_many_pairs_is_a_summary_that_opens() -> None:
    many = [_row(f"m{i}", p, 1.0 + i) for i in range(14) for p in "ab"] + [
        _row("pvm", p, None, "error", f"pvm needs Unix, but '{p}' runs Windows; it can run on c") for p in "ab"]
    told = [Caution("outside-calibration", "8 ranks (calibrated for 2)", "m0 on a", minor=True)]
    shown = runtimes_page.page(many, "many", [], told, "", ["m0 is faster than m1"])
    for folded in ("All 28 pairs with a time, in order", "Each of the 2 pairs, and where else it can run", "All 1 lines"):
        assert f"<summary>{folded}</summary>" in shown
    assert "outside the calibrated range: 8 ranks" in shown
    figure = runtimes_page.figures(many, "")["matrix"]
    assert "pvm" not in " ".join(figure.data[0].x).lower(), "a runtime without a time has no column"
    assert figure.layout.meta["least"][0] > 14 * 60, "an exported figure has room for a time in each cell"
    assert f"#figure-matrix {{ height: {figure.layout.height}px }}" in shown
    some = runtimes_page.figures([_row("a", "x", 1.0), _row("b", "y", 2.0), _row("a", "y", None, "deadlock", "no process: all wait")], "")
    assert some["matrix"].data[0].customdata[1][0] == "deadlock: no process"


def test_every_pair_has_a_bound_that_grows_with_the_program() -> None:
    small, large = (Candidates(program("ring", ["size=8", f"reps={n}"], "wmpi", "nt-pair", None, 2), ["wmpi"]) for n in (1, 1000))
    assert EVENTS < (small.bounds_of_each.events or 0) < (large.bounds_of_each.events or 0)
    assert replace(small, bounds=Bounds(wall_s=1.0)).bounds_of_each == Bounds(wall_s=1.0)
    asked = PointJob(0, small.each()[0][2], Bounds(events=5))
    assert next(iter(Bounded(Here(), Bounds(wall_s=60.0)).evaluate([asked])))[1].outcome == "limit"  # the tighter of the two


def test_what_is_simulated_is_said_before_it_has_an_answer(tmp_path: Path) -> None:
    candidates = Candidates(program("ring", ["size=8", "reps=1"], "wmpi", "nt-pair", None, 2), ["wmpi", "hpvm"], ["nt-pair", "nt-cluster"])
    told: list[tuple[int, int, str]] = []
    rows(open_store(tmp_path / "s.db"), candidates, report=lambda *words: told.append(words))
    assert told == [(0, 4, "wmpi on nt-pair"), (1, 4, "hpvm on nt-pair"), (2, 4, "wmpi on nt-cluster"), (3, 4, "hpvm on nt-cluster"),
                    (4, 4, "")]


def test_the_first_pair_may_be_one_that_cannot_run(retrompi: Callable[..., Outcome]) -> None:
    done = retrompi("compare", "ring", "--models", "craympt,wmpi", "--platforms", "nt-pair,cray-t3e", "-j", "1", "--json", "--", "size=8")
    assert {(r["model"], r["platform"]) for r in json.loads(done.out)["rows"] if r["time_s"] is not None} == {
        ("craympt", "cray-t3e"), ("wmpi", "nt-pair")}
