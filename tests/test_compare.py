"""Comparing a program's runs on several backends: pure functions on made-up executions, and real small comparisons."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import agrees, refused

from retrompi import render
from retrompi.base.errors import UsageError
from retrompi.measure import compare, curves, launch, stored_curves
from retrompi.measure.compare import comparison, errors, suite
from retrompi.measure.curves import imported
from retrompi.measure.launch import CallProfile, Execution, NativeMachine, Noise, backend_native, executions
from retrompi.measure.launch.stats import quantile
from retrompi.papers.reproduce import reproduction
from retrompi.papers.statements.paper import find_paper
from retrompi.render.document import plotted
from retrompi.render.pages import compare_page, curve_page
from retrompi.store import open_store
from retrompi.store.database import Store

TIMES = st.floats(1e-9, 1e3)
SAMPLES = st.lists(TIMES, min_size=1, max_size=40)
SIZES = (1, 64, 4096, 65536, 1 << 20)
NATIVE = Execution(
    "native", "pingpong.c", ["--max", "1MiB"], 2, mpi="MPICH 4.0.2", machine=NativeMachine("here", "a processor", 2),
    samples_s=[1.0, 1.02, 1.1], parts={str(n): 200 for n in SIZES},
    sections={str(n): [1e-6 + n * 1e-9, 1.01e-6 + n * 1e-9, 1.2e-6 + n * 1e-9] for n in SIZES},
    calls=[CallProfile(c, n, str(n), 200, 0.1, 200 * n) for n in SIZES for c in ("MPI_Send", "MPI_Recv")],
    noise=Noise(0.02, 0.01, 0.0, 0.1, 3.0, loaded=False), run_id=1,
)
MODEL = replace(
    NATIVE, backend="model", mpi="", machine=None, model="mpich", platform="this-machine", mode="shared", fidelity="curve", samples_s=[1.2],
    sections={str(n): [1.1e-6 + n * 0.9e-9] for n in SIZES}, noise=None, run_id=3,
    calls=[CallProfile(c, n, str(n), 200, 0.09 if c == "MPI_Send" else 0.12, 200 * n) for n in SIZES for c in ("MPI_Send", "MPI_Recv")],
)
SMPI = replace(
    MODEL, backend="smpi", mpi="SMPI 3.32", samples_s=[1.19], sections={k: [v[0] * 1.01] for k, v in MODEL.sections.items()}, run_id=2
)
SEEN = compare.Seen("mpich", True, frozenset((1, 4096, 1 << 20)), {"cpu": "a processor", "cores": 2})


# --- numbers ---


@given(TIMES, TIMES)
def test_a_relative_error_gives_the_value_back(value: float, reference: float) -> None:
    error = errors.relative(value, reference)
    assert error is not None
    assert reference * (1 + error) == pytest.approx(value)
    assert (error > 0) == (value > reference) or value == pytest.approx(reference, rel=1e-15)


@pytest.mark.parametrize(
    ("value", "reference"), [(None, 1.0), (1.0, None), (1.0, 0.0), (1.0, -1.0), (float("inf"), 1.0), (1.0, float("nan"))]
)
def test_without_a_reference_there_is_no_error(value: float | None, reference: float | None) -> None:
    assert errors.relative(value, reference) is None


@given(SAMPLES, st.floats(0, 1))
def test_quantiles_lie_among_the_values(values: list[float], q: float) -> None:
    assert min(values) <= quantile(values, q) <= max(values)
    found = errors.rank_quantile(values, q)
    assert found in values
    assert sum(v <= found for v in values) >= q * len(values) - 1e-6
    assert quantile(values, 0) == min(values)
    assert quantile(values, 1) == max(values)


@given(SAMPLES, st.floats(0, 1), st.floats(0, 1))
def test_quantiles_grow(values: list[float], a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert quantile(values, low) <= quantile(values, high)
    assert errors.rank_quantile(values, low) <= errors.rank_quantile(values, high)


def test_the_95th_percentile_of_few_is_their_largest() -> None:
    assert errors.rank_quantile(list(range(19)), 0.95) == 18
    assert errors.rank_quantile(list(range(20)), 0.95) == 18
    assert errors.rank_quantile(list(range(100)), 0.95) == 94


@given(SAMPLES)
def test_a_band_holds_its_median(samples: list[float]) -> None:
    held = compare.band(samples)
    assert held is not None
    assert held.least <= held.low <= held.median <= held.high <= held.most
    assert held.holds(held.median) == (held.n > 1)
    assert not held.holds(held.most * 2)


def test_no_samples_no_band() -> None:
    assert compare.band([]) is None
    assert compare.band([float("nan")]) is None


@given(st.lists(st.floats(-0.99, 50), min_size=1, max_size=60))
def test_a_distribution_is_ordered_and_signed(values: list[float]) -> None:
    found = compare.distribution((str(i), v) for i, v in enumerate(values))
    assert found is not None
    assert found.n == len(values)
    assert 0 <= found.median <= abs(found.worst) + 1e-12
    assert found.median <= found.p95 + 1e-12
    assert found.p95 <= abs(found.worst)
    assert values[int(found.where)] == found.worst
    assert min(values) <= found.bias <= max(values)
    mirrored = compare.distribution((str(i), -v) for i, v in enumerate(values))
    assert mirrored is not None
    assert (mirrored.median, mirrored.p95, mirrored.bias) == pytest.approx((found.median, found.p95, -found.bias))


def test_unknown_errors_are_no_errors() -> None:
    assert compare.distribution([("a", None)]) is None
    found = compare.distribution([("a", None), ("b", 0.1)])
    assert found is not None
    assert (found.n, found.where) == (1, "b")


# --- alignment ---


LABELS = st.lists(st.sampled_from(["1", "8", "9", "64", "512", "4096"]), unique=True)
CALLS = st.tuples(
    st.sampled_from(["MPI_Send", "MPI_Recv", "MPI_Bcast"]), st.sampled_from([0, 8, 64]), st.sampled_from(["", "8", "64"]),
    st.integers(1, 9), st.floats(0, 10),
)


@given(LABELS, LABELS)
def test_every_section_is_one_row_whoever_has_it(a: list[str], b: list[str]) -> None:
    here, model = replace(NATIVE, sections={k: [1.0, 2.0] for k in a}), replace(MODEL, sections={k: [1.5] for k in b})
    rows = comparison.sections_of({"native": here, "model": model})
    assert [r.label for r in rows] == sorted({*a, *b}, key=int)
    for r in rows:
        assert ("native" in r.times, "model" in r.times) == (r.label in a, r.label in b)
        assert (r.error("model", "native") is not None) == (r.label in a and r.label in b)


@given(st.lists(CALLS, max_size=20))
def test_no_call_and_no_second_is_lost(given_calls: list[tuple[str, int, str, int, float]]) -> None:
    calls = [CallProfile(name, size, section, n, s, n * size) for name, size, section, n, s in given_calls]
    rows = comparison.calls_of({"native": replace(NATIVE, calls=calls), "model": replace(MODEL, calls=[])})
    assert sum(r.counts.get("native", 0) for r in rows) == sum(c.count for c in calls)
    assert sum(r.seconds.get("native", 0.0) for r in rows) == pytest.approx(sum(c.seconds for c in calls))
    assert len({(r.call, r.size_B) for r in rows}) == len(rows)


def test_the_difference_is_split_without_a_rest() -> None:
    c = compare.build([NATIVE, MODEL, SMPI], SEEN)
    assert [(s.backend, s.reference) for s in c.splits] == [("model", "native"), ("smpi", "native"), ("model", "smpi")]
    for s in c.splits:
        assert s.computation + s.communication == pytest.approx(s.total)
    first = c.splits[0]
    assert first.communication == pytest.approx(5 * (0.02 - 0.01))
    assert dict(first.calls) == pytest.approx({"MPI_Recv": 0.1, "MPI_Send": -0.05})
    assert first.calls[0][0] == "MPI_Recv"


# --- what a fit saw ---


def test_only_single_messages_of_a_fitted_size_were_seen_by_the_fit() -> None:
    c = compare.build([NATIVE, MODEL], SEEN)
    assert {r.label: r.use for r in c.sections} == {"1": "fit", "64": "held out", "4096": "fit", "65536": "held out", "1048576": "fit"}
    assert [r.label for r in c.judged_rows()] == ["64", "65536"]
    halo = [replace(call, call="MPI_Isend") for call in NATIVE.calls]
    other = compare.build([replace(NATIVE, calls=halo), replace(MODEL, calls=halo)], SEEN)
    assert {r.use for r in other.sections} == {"held out"}


def test_nothing_is_marked_for_a_model_that_no_curve_was_fitted_to() -> None:
    c = compare.build([MODEL, SMPI])
    assert {r.use for r in c.sections} == {""}
    assert c.judged_rows() == c.sections
    assert compare.seen_by("wmpi") == compare.Seen("wmpi")


def test_a_section_is_a_size_only_where_a_call_says_so() -> None:
    calls = [CallProfile("MPI_Sendrecv", 3200, "50", 9, 0.1, 9), CallProfile("MPI_Wait", 0, "0", 9, 0.1, 0)]
    sweeps = replace(NATIVE, sections={"0": [1.0], "50": [1.0]}, calls=calls)
    rows = comparison.sections_of({"native": sweeps, "model": replace(MODEL, sections={}, calls=[])})
    assert [(r.label, r.size_B) for r in rows] == [("0", None), ("50", None)]
    empty = replace(sweeps, calls=[*sweeps.calls, CallProfile("MPI_Send", 50, "50", 9, 0.1, 450)])
    assert [r.size_B for r in comparison.sections_of({"native": empty})] == [0, 50]
    assert [r.size_B for r in comparison.sections_of({"native": replace(sweeps, calls=[])})] == [0, 50]


# --- bounds and warnings ---


def test_bounds_as_they_are_written() -> None:
    assert compare.parse_within("10%") == {"median": 0.1}
    assert compare.parse_within("median=5 %, p95=15%,whole=2.5%") == {"median": 0.05, "p95": 0.15, "whole": 0.025}


@pytest.mark.parametrize(
    ("text", "told"), [("10", "bad-syntax"), ("p99=1%", "unknown-name | 'p99'"), ("median=", "bad-syntax"), ("-1%", "bad-syntax")]
)
def test_a_wrong_bound_is_named(text: str, told: str) -> None:
    with refused(UsageError, told):
        compare.parse_within(text)


def test_a_bound_is_judged_on_what_was_held_out() -> None:
    good = replace(MODEL, sections={**MODEL.sections, "1": [5e-6]})  # a size that the fit saw
    c = compare.build([NATIVE, good], SEEN)
    assert compare.judge(c, {"median": 0.2, "worst": 0.2}).passed
    assert not compare.judge(compare.build([NATIVE, good]), {"worst": 0.2}).passed
    verdict = compare.judge(c, {"median": 0.001})
    assert not verdict.passed
    assert verdict.line.startswith("not within the bound: model against native: median")
    assert not compare.judge(compare.build([NATIVE, replace(good, outcome="deadlock")], SEEN), {"median": 9.0}).passed
    nothing = [replace(e, sections={"7": [1.0] if e.backend == "native" else []}, samples_s=[]) for e in (NATIVE, MODEL)]
    assert not compare.judge(compare.build(nothing), {"median": 9.0}).passed


def test_without_a_native_run_smpi_is_the_reference() -> None:
    c = compare.build([SMPI, MODEL])
    assert c.pairs == (("model", "smpi"),)
    verdict = compare.judge(c, {"median": 0.03, "worst": 0.03, "whole": 0.03})
    assert verdict.passed
    assert verdict.found["model", "smpi", "worst"] == pytest.approx(1 - 1 / 1.01)


@pytest.mark.parametrize(
    ("changes", "seen", "told"),
    [
        ({"notes": ["oversubscribed: 4 ranks on 2 cores"]}, SEEN, "oversubscribed: 4 ranks on 2 cores"),
        ({"samples_s": [1.0]}, SEEN, "no noise band"),
        ({"machine": NativeMachine("here", "another processor", 2)}, SEEN, "fitted elsewhere (cpu a processor is not another processor)"),
        ({}, compare.Seen("wmpi"), "wmpi was not fitted to this machine"),
        ({"outcome": "killed", "detail": "signal 9"}, SEEN, "native did not complete (killed: signal 9)"),
        ({"sections": {"1": [1.0]}}, SEEN, "native has no section 64, 4096, 65536 …"),
    ],
)
def test_what_makes_no_sense_is_said(changes: dict[str, Any], seen: compare.Seen, told: str) -> None:
    c = compare.build([replace(NATIVE, **changes), MODEL], seen)
    assert any(told in w for w in c.warnings), c.warnings
    assert not compare.build([NATIVE, MODEL], SEEN).warnings


@pytest.mark.parametrize("given_runs", [[], [NATIVE], [NATIVE, NATIVE], [NATIVE, replace(MODEL, ranks=3)]])
def test_runs_that_cannot_be_compared_are_refused(given_runs: list[Execution]) -> None:
    with pytest.raises(UsageError):
        compare.build(given_runs)


@pytest.mark.parametrize(
    ("backends", "model", "told"),
    [(["native"], "wmpi", "missing-option"),
     (["native", "smpy"], "wmpi", "unknown-name | 'smpi'"),
     (["native", "model"], None, "missing-option | --model")],
)
def test_backends_that_make_no_comparison(backends: list[str], model: str | None, told: str) -> None:
    with refused(UsageError, told):
        compare.choose_backends(backends, model)


# --- the page ---


def test_the_figure_shows_every_time_and_every_error() -> None:
    c = compare.build([NATIVE, MODEL, SMPI], SEEN)
    figure = compare_page.figures(c)["curves"]
    curves = {t.legendgroup: t for t in figure.data if t.legendgroup and t.mode == "lines+markers" and t.yaxis in (None, "y")}
    assert set(curves) == {"native", "smpi", "model"}
    assert list(curves["model"].y) == pytest.approx([1e6 * MODEL.sections[str(n)][0] for n in SIZES])
    assert list(curves["model"].marker.symbol) == ["square", "square-open", "square", "square-open", "square"]
    below = [t for t in figure.data if t.yaxis == "y2" and t.name]
    assert [t.name for t in below] == ["error of model against native", "error of SMPI against native", "error of model against SMPI"]
    assert list(below[2].y) == pytest.approx([100 * (1 / 1.01 - 1)] * len(SIZES))


@given(st.lists(st.floats(-0.9, 9), min_size=1, max_size=30))
def test_the_distribution_climbs_to_all(values: list[float]) -> None:
    x, y = compare_page.steps(values)
    assert x == sorted(x)
    assert y[-1] == pytest.approx(100)
    assert len(x) == len(y) == len(values)


def test_few_sections_stand_by_their_names() -> None:
    few = [replace(e, sections={k: e.sections[k] for k in ("1", "64")}) for e in (NATIVE, MODEL)]
    c = compare.build(few, SEEN)
    assert compare_page.places(c.rows) == ["section 1", "section 64"]
    none = compare.build([replace(e, sections={}) for e in (NATIVE, MODEL)], SEEN)
    assert compare_page.places(none.rows) == ["whole program"]
    assert "whole program" in compare_page.page(none)


def test_the_page_says_what_was_compared_and_escapes_it() -> None:
    evil = [replace(e, program="<b>.c", notes=["<i>"]) for e in (NATIVE, MODEL)]
    c = compare.build(evil, SEEN)
    text = compare_page.page(c, compare.judge(c, {"median": 0.5}), {"model": "abcdef0123456789"})
    assert "<b>.c" not in text
    assert "<i>" not in text
    assert "abcdef012345" in text
    assert "MPICH 4.0.2" in text
    assert "held out" in text
    assert "http" not in text.replace(plotted.packed_plotly(), "").replace('"http://www.w3.org/2000/svg"', "")


# --- measured curves on the pages ---


@pytest.fixture
def kept(tmp_path: Path) -> Store:
    return open_store(tmp_path / "runs.db")


def native_run(store: Store, **changes: Any) -> int:
    done = replace(NATIVE, run_id=None, **changes)
    found = executions.save(store, executions.measured_spec(done, "digest"), done).run_id
    assert found is not None
    return found


def test_a_native_run_is_a_measured_curve_with_its_noise(kept: Store) -> None:
    run = native_run(kept)
    found = stored_curves.from_store(kept, str(run))
    assert [p["size_B"] for p in found.points] == list(SIZES)
    assert [p["time_us"] for p in found.points] == pytest.approx([1e6 * NATIVE.sections[str(n)][1] for n in SIZES])
    low, high = found.bands[64]
    assert 1e6 * min(NATIVE.sections["64"]) <= low < high <= 1e6 * max(NATIVE.sections["64"])
    assert found.legend == "pingpong.c --max 1MiB, measured here"
    assert "MPICH 4.0.2" in found.about
    assert stored_curves.from_store(kept, f"{run}@shared-time").figure == "shared-time"


def test_a_label_that_nobody_chose_names_the_file_in_a_legend(kept: Store) -> None:
    folder = Path(__file__).parent / "data" / "measured"
    series = curves.read(folder / "osu74-latency.txt")
    kept_as, _ = imported.save(kept, series)
    assert stored_curves.from_store(kept, str(kept_as)).legend == "pingpong, osu74-latency.txt, measured"
    chosen, _ = imported.save(kept, series, label="the machine of the second floor, after its new processors")
    assert stored_curves.from_store(kept, str(chosen)).legend == "the machine of the second floor, after …, measured"


def test_warnings_of_one_kind_are_said_once() -> None:
    built = comparison.build([NATIVE, MODEL], SEEN)

    def case(name: str, *warnings: str) -> suite.CaseResult:
        return suite.CaseResult(suite.Case(name, "a.c", (), "collective"), replace(built, warnings=warnings), None)

    busy = "this machine is busy ({} other processes wanted a core): times are upper limits"
    one, two, three = case("one", busy.format(1), "not pinned"), case("two", busy.format(2)), case("three", "not pinned")
    assert suite.warnings_of([one, two]) == ["this machine is busy: times are upper limits", "one: not pinned"]
    assert suite.warnings_of([one, two, three]) == ["one, two: this machine is busy: times are upper limits", "one, three: not pinned"]
    assert suite.warnings_of([two]) == [busy.format(2)]


def test_what_is_no_curve_is_named(kept: Store) -> None:
    bare = native_run(kept, sections={})
    for name, told in (("99", "unknown-run | 99"), ("osu", "unknown-name | 'osu'"), (str(bare), f"bad-usage | {bare}")):
        with refused(UsageError, told):
            stored_curves.from_store(kept, name)


def test_measured_curves_stand_beside_simulated_and_published_ones(kept: Store) -> None:
    found = stored_curves.from_store(kept, str(native_run(kept)))
    rows = tuple({"size_B": n, "time_us": 200.0 + n, "bandwidth_MBps": n / (200.0 + n), "repetitions": 3} for n in SIZES)
    curve = curve_page.Simulated("wmpi", "nt-pair", "shared", rows, 7)
    for what, column in (("time", "time_us"), ("bandwidth", "bandwidth_MBps")):
        figure = curve_page.figures(curve, [found])[what]
        (drawn_here,) = [t for t in figure.data if t.name == found.legend]
        assert list(drawn_here.y) == [p[column] for p in found.points]
        assert any(t.name == "WMPI" for t in figure.data)
        assert any(t.marker.symbol == "star" for t in figure.data)  # a published number of Baker and Fox
        alone = curve_page.figures(curve)[what]
        assert len(alone.data) == len(figure.data) - 1
    assert not curve_page.published_marks(replace(curve, platform="abe"))
    assert "MPICH 4.0.2" in curve_page.page(curve, [found])


def test_a_study_shows_measured_curves_only_when_asked(kept: Store) -> None:
    plan = find_paper("baker-fox")
    place = {"model": "wmpi", "platform": "nt-pair", "mode": "shared", "repetitions": 1, "run_id": 1}
    points = [{**place, "size_B": n, "time_us": 9.0, "bandwidth_MBps": n / 9} for n in SIZES]
    bare = reproduction.Reproduction(plan, (), points)
    found = stored_curves.from_store(kept, f"{native_run(kept)}@shared-time")
    (shown,) = render.with_measured([bare], [found])
    before, after = render.study_figures(bare), render.study_figures(shown)
    assert {n for n in after if len(after[n].data) > len(before[n].data)} == {"shared-time"}
    assert "measured" not in render.csv_tables(bare)
    assert len(render.csv_tables(shown)["measured"]) == len(SIZES)
    with refused(UsageError, "unknown-name | 'shared-tyme' | 'shared-time'"):
        render.with_measured([bare], [replace(found, figure="shared-tyme")])


# --- the command ---


def test_runs_of_the_store_are_compared_again(kept: Store, tmp_path: Path, retrompi: Any) -> None:
    one = native_run(kept)
    other = replace(MODEL, run_id=None)
    spec = replace(executions.measured_spec(other, "digest"), model="wmpi", platform="nt-pair")
    two = executions.save(kept, spec, other).run_id
    page = tmp_path / "page.html"
    done = retrompi("--store", kept.label, "compare", "--runs", f"{two},{one}", "-o", str(page), "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert [e["backend"] for e in told["executions"]] == ["native", "model"]
    assert len(told["sections"]) == len(SIZES)
    assert "wmpi was not fitted to this machine" in done.err
    assert "MPICH 4.0.2" in page.read_text()
    judged = retrompi("--store", kept.label, "compare", "--runs", f"{two},{one}", "--within", "median=0.1%")
    assert judged.code == 1
    assert "not within the bound" in judged.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "missing-option"),
        (("--runs", "1,x"), "bad-syntax"),
        (("a.c", "--suite"), "missing-option"),
        (("a.c",), "missing-option | --model"),
        (("a.c", "-m", "wmpi", "--backends", "model"), "missing-option"),
        (("a.c", "-m", "wmpi", "--within", "3"), "bad-syntax"),
    ],
)
def test_wrong_usage_is_one_line(words: tuple[str, ...], told: str, tmp_path: Path, retrompi: Any) -> None:
    done = retrompi("--store", str(tmp_path / "x.db"), "compare", *words)
    assert done.code == 2
    agrees(done, told)
    assert done.err.count("\n") == 1
    assert not (tmp_path / "x.db").exists()


# --- real programs ---

EXAMPLES = Path(__file__).parents[1] / "examples"
needs_mpich = pytest.mark.skipif(None in map(shutil.which, ("mpicc.mpich", "mpiexec.mpich")), reason="MPICH is not installed")


@needs_mpich
def test_a_real_program_is_compared_with_a_model(retrompi: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    given_sizes = ("--sizes", "8,4096")
    done = retrompi(
        "--store", str(tmp_path / "x.db"), "compare", str(EXAMPLES / "collectives.c"), "-n", "2", "-m", "nemesis", "-p", "abe",
        "--mode", "shared", "--mpi", "mpich", "--backends", "native,model", "-r", "2", "--json", "-o", str(page),
        "--", "--operation", "bcast", "--scale", "0.01", *given_sizes,
    )
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert [(r["section"], r["size_B"], r["parts"]) for r in told["sections"]] == [("8", 8, 10), ("4096", 4096, 10)]
    for row in told["sections"]:
        assert row["native_s"] > 0
        assert row["repetitions"] == 2
        assert row["model_to_native"] == pytest.approx(row["model_s"] / row["native_s"] - 1)
    counts = {(r["call"], r["size_B"]): (r["native_count"], r["model_count"]) for r in told["calls"]}
    assert counts["MPI_Bcast", 8] == counts["MPI_Bcast", 4096] == (2 * (10 + 3 + 1), 2 * (10 + 3 + 1))
    assert "nemesis was not fitted to this machine" in done.err
    assert "MPICH" in page.read_text()


@pytest.mark.skipif(None in map(shutil.which, ("smpicc", "smpirun")), reason="SimGrid's SMPI is not installed")
@pytest.mark.parametrize(("model", "platform", "operation"), [("wmpi", "nt-cluster", "allreduce"), ("nemesis", "abe", "alltoall")])
def test_smpi_and_the_replay_of_its_own_trace_agree(model: str, platform: str, operation: str, retrompi: Any, tmp_path: Path) -> None:
    done = retrompi(
        "--store", str(tmp_path / "x.db"), "compare", str(EXAMPLES / "collectives.c"), "-n", "4", "-m", model, "-p", platform,
        "--backends", "smpi,model", "--within", "worst=3%,whole=3%", "--json",
        "--", "--operation", operation, "--scale", "0.003", "--sizes", "8,1000,20000",
    )
    assert done.code == 0, done.out + done.err
    told = json.loads(done.out)
    assert [e["fidelity"] for e in told["executions"]] == ["curve", "curve"]
    assert told["executions"][1]["trace"] == told["executions"][0]["trace"]
    assert len(told["sections"]) == 3
    assert all(r["model_to_smpi"] is not None for r in told["sections"])


@needs_mpich
def test_a_run_in_another_state_of_the_machine_is_repeated_and_counted(kept: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend_native, "_WAIT_S", 0.0)
    # Before and after: the profile (after a wait), a repetition, the other one, which is done again.
    told = iter(["far apart", "", "", "", "far apart", "", ""])
    program, words = str(EXAMPLES / "collectives.c"), ["--operation", "barrier", "--scale", "0.01"]
    done = launch.run(kept, "native", program, words, 2, mpi="mpich", repetitions=2, warmup=0, odd_state=lambda: next(told))
    assert len(done.samples_s) == 2
    assert next(told, "all asked") == "all asked"
    assert any(n.startswith("1 runs were repeated and 0 s waited: far apart") and "too" not in n for n in done.notes), done.notes
    never = launch.run(kept, "native", program, words, 2, mpi="mpich", repetitions=1, warmup=0, odd_state=lambda: "far apart")
    assert len(never.samples_s) == 1
    assert any("runs that count were of that state too" in n for n in never.notes)


@needs_mpich
def test_the_suite_is_one_table(retrompi: Any, tmp_path: Path) -> None:
    page = tmp_path / "suite.html"
    done = retrompi(
        "--store", str(tmp_path / "x.db"), "compare", "--suite", "--only", "barrier", "--only", "sort", "-m", "nemesis", "-p", "abe",
        "--mode", "shared", "--mpi", "mpich", "--backends", "native,model", "-r", "2", "--json", "-o", str(page), "--within", "0.0001%",
    )
    assert done.code == 1, done.err  # a model of another machine
    told = json.loads(done.out)
    assert [r["program"] for r in told["programs"]] == ["barrier", "sort"]
    assert [r["n"] for r in told["programs"]] == [1, 4]
    assert [g["group"] for g in told["groups"]] == ["collective", "application"]
    assert not any(r["passed"] for r in told["programs"])
    assert "sort" in page.read_text()


def test_a_case_that_the_suite_has_not_is_named(retrompi: Any) -> None:
    done = retrompi("compare", "--suite", "--only", "allredcue", "-m", "nemesis")
    assert done.code == 2
    agrees(done, "unknown-name | 'allreduce'")
    assert {c.source for c in suite.CASES} <= {p.name for p in EXAMPLES.iterdir()}
