"""What is shown of a study: points are computed, then drawn; here the points are tested. All numbers are made up for the tests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages import Page
from refusals import refused

from retrompi.base.errors import UsageError
from retrompi.render.document import export
from retrompi.render.figures.sweep_figures import KINDS, choose, draw, label_of, plan_of
from retrompi.render.pages import study_page
from retrompi.studies.archive.provenance import about, sources
from retrompi.studies.define import metrics
from retrompi.studies.define.axes import ABSENT
from retrompi.studies.read.table import WIDTH, tables
from retrompi.studies.read.view import SeriesLine, View, axis_of, failures, grid, lines, speedups, view, without_effect

RUN = {
    "platform": "nt-pair", "overrides": {}, "model_hash": "a" * 64, "platform_hash": "b" * 64, "code_version": "0.1+1",
    "fidelity": "mechanism", "network": "simgrid", "simgrid_version": "3.36",
}
SIZES = (0, *(1 << k for k in range(12)))


def made(
    vary: Mapping[str, Sequence[str]],
    time_s: Callable[[dict[str, str]], float],
    *,
    metric: str = "time",
    zipped: Sequence[Mapping[str, Sequence[str]]] = (),
    curve: Callable[[dict[str, str], int], float] | None = None,
    broken: Sequence[int] = (),
    points: Sequence[Mapping[str, str]] | None = None,
    **definition: Any,
) -> tuple[View, dict[int, dict[str, Any]], dict[int, list[dict[str, Any]]]]:
    """A view of a study whose runs take ``time_s``; points in ``broken`` ended in a deadlock."""
    groups = [[dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)] for table in zipped]
    plain = [[{k: v} for v in values] for k, values in vary.items()]
    every = points if points is not None else [{k: v for part in parts for k, v in part.items()} for parts in product(*plain, *groups)]
    rows, runs, curves = [], {}, {}
    for i, values in enumerate(every):
        outcome, reason = ("deadlock", "rank 0 waits for rank 1") if i in broken else ("completed", "")
        rows.append({"position": i, **values, "outcome": outcome, "reason": reason, "run_id": i + 1})
        runs[i + 1] = {**RUN, "id": i + 1, "outcome": outcome, "time_s": time_s(dict(values)), "ranks": int(values.get("trace.ranks", 2)),
                       "model": values.get("model", "wmpi")}
        if curve is not None and i not in broken:
            times = {s: curve(dict(values), s) for s in SIZES}
            curves[i + 1] = [{"size_B": s, "time_us": t, "bandwidth_MBps": s / t} for s, t in times.items()]
    told = {"name": "made-up", "title": "Made up <for> tests", "vary": dict(vary), "zip": list(zipped), "set": {}, **definition}
    return view(told, rows, metrics.parse(metric), runs, curves, {}), runs, curves


def linear(values: dict[str, str]) -> float:
    return 1.0 + float(values.get("trace.ranks", 1))


MODELS, RANKS = ("wmpi", "winmpich", "hpvm"), ("1", "2", "4")
RANKED = {"model": MODELS, "trace.ranks": RANKS}
WIRES = ("10Mbps", "100Mbps", "1Gbps")


# -- axes ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "unit", "numbers"),
    [
        (("4", "8", "16"), "1", [4, 8, 16]),
        (("1MiB", "64KiB"), "B", [1 << 20, 64 << 10]),
        (("0", "4KiB"), "B", [0, 4096]),
        (("10Mbps", "-", "1Gbps"), "B/s", [1.25e6, 1.25e8]),
        (("nt-cluster*8", "nt-cluster*16"), "1", [8, 16]),
        (("nt-cluster*8", "cray-t3e*8"), "", []),
        (("1us", "1MiB"), "", []),
        (("wmpi", "8"), "", []),
        (("-",), "", []),
    ],
)
def test_an_axis_is_of_numbers_where_all_its_values_are_of_one_unit(values: tuple[str, ...], unit: str, numbers: list[float]) -> None:
    axis = axis_of("key", values)
    assert (axis.unit, list(axis.numbers.values())) == (unit, numbers)


@given(st.lists(st.integers(1, 1 << 40), min_size=2, unique=True))
def test_sizes_stand_in_order_whatever_order_they_came_in(sizes: list[int]) -> None:
    v, *_ = made({"key": [f"{s}B" for s in sizes]}, lambda p: float(p["key"][:-1]))
    (line,) = lines(v, "key", [])
    assert list(line.x) == list(line.y) == sorted(sizes)


def test_of_zipped_keys_those_are_axes_that_tell_the_points_apart() -> None:
    v, *_ = made(
        {"mode": ("shared", "distributed")}, linear,
        zipped=[{"model": ("wmpi", "wmpi", "craympt"), "platform": ("nt-cluster", "nt-cluster", "cray-t3e"), "x.y": ("1", "2", "1")}],
    )
    assert {a.key: a.keys for a in v.axes} == {"model": ("model", "platform"), "x.y": ("x.y",), "mode": ("mode",)}
    assert v.axis("platform").key == "model"
    with refused(UsageError, "unknown-name | 'modell' | 'model'"):
        v.axis("modell")


def test_captures_of_one_program_are_told_apart_by_their_ranks() -> None:
    rows = [{"position": i, "trace.file": f"lu-A-{n}.tar.zst", "trace.section": s, "outcome": "completed", "run_id": i}
            for i, (n, s) in enumerate(((8, "1-9"), (4, "1-8"), (16, "1-9")))]
    runs = {i: {**RUN, "id": i, "outcome": "completed", "time_s": 100.0 / n, "ranks": n, "model": "wmpi"} for i, n in enumerate((8, 4, 16))}
    d = {"vary": {}, "zip": [{"trace.file": [], "trace.section": []}]}
    v = view(d, rows, metrics.parse("time"), runs, {}, {})
    assert [a.key for a in v.axes] == ["ranks"]
    assert lines(v, "ranks", [])[0].x == (4, 8, 16)
    assert [p.kind for p in choose(v)] == ["lines", "speedup", "efficiency"]


# -- points --------------------------------------------------------------------------------------------------------------


def test_lines_leave_out_what_did_not_complete_and_failures_say_why() -> None:
    v, *_ = made(RANKED, linear, broken=(4,))
    found = {one.label: (one.x, one.y) for one in lines(v, "trace.ranks", ["model"])}
    assert found[("wmpi",)] == ((1, 2, 4), (2, 3, 5))
    assert found[("winmpich",)] == ((1, 4), (2, 5))
    (failure,) = failures(v)
    assert (failure.position, failure.values, failure.outcome) == (4, {"model": "winmpich", "trace.ranks": "2"}, "deadlock")


def test_a_point_that_the_axis_does_not_concern_is_a_flat_line() -> None:
    points = [{"model": "hpvm", "wmpi.packet": ABSENT}, *({"model": "wmpi", "wmpi.packet": p} for p in ("1KiB", "2KiB"))]
    vary = {"model": ("wmpi", "hpvm"), "wmpi.packet": ("1KiB", "2KiB")}
    v, *_ = made(vary, lambda p: 7.0 if p["model"] == "hpvm" else 1.0, points=points)
    found = {one.label: one for one in lines(v, "wmpi.packet", ["model"])}
    assert found[("hpvm",)].flat == 7.0
    assert found[("wmpi",)].flat is None
    drawn = draw(v, plan_of("lines", v))["lines"]
    flat = next(t for t in drawn.data if t.name == "HPVM")
    assert (list(flat.x), list(flat.y)) == ([1024, 2048], [7, 7])


def test_curves_are_lines_along_the_message_size() -> None:
    v, *_ = made({"model": MODELS}, linear, metric="peak", curve=lambda p, s: 100.0 + s)
    (line, *_) = lines(v, "size", ["model"])
    assert line.x == tuple(map(float, SIZES))
    assert line.y[-1] == pytest.approx(2048 / 2148 * 1e6)
    v, *_ = made({"model": MODELS}, linear, metric="latency", curve=lambda p, s: 100.0 + s)
    assert lines(v, "size", ["model"])[0].y[0] == pytest.approx(100e-6)


def test_a_grid_has_a_cell_for_each_pair_and_says_how_a_run_ended() -> None:
    vary = {"a.b": ("1KiB", "2KiB", "4KiB"), "c.d": ("1us", "2us", "4us")}
    v, *_ = made(vary, lambda p: float(p["a.b"][0]) * float(p["c.d"][0]), broken=(1,))
    xs, ys, cells = grid(v, "a.b", "c.d")
    assert (xs, ys) == (["1KiB", "2KiB", "4KiB"], ["1us", "2us", "4us"])
    assert [[c.value for c in line if c] for line in cells] == [[1, 2, 4], [None, 4, 8], [4, 8, 16]]
    assert cells[1][0] is not None
    assert cells[1][0].outcome == "deadlock"


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=6))
def test_the_speed_up_of_the_smallest_count_is_one_and_efficiency_is_per_processor(times: list[float]) -> None:
    counts = tuple(2.0 ** (k + 2) for k in range(len(times)))
    found = speedups(SeriesLine(("x",), counts, tuple(times)))
    assert found[0] == (4.0, 1.0, 1.0)
    assert all(e == pytest.approx(s * 4 / n) and s == pytest.approx(times[0] / t) for (n, s, e), t in zip(found, times, strict=True))


def test_the_metric_speedup_is_over_the_smallest_count_of_the_same_series() -> None:
    v, *_ = made(RANKED, lambda p: (10 if p["model"] == "hpvm" else 1) * 12 / float(p["trace.ranks"]), metric="speedup")
    assert [r["value"] for r in v.rows] == [1, 2, 4] * 3


# -- tables --------------------------------------------------------------------------------------------------------------


def test_a_table_has_counts_across_and_failures_in_their_place() -> None:
    v, *_ = made(RANKED, linear, broken=(4,))
    (t,) = tables(v)
    assert (t.heads, t.across, t.columns) == (("model",), "trace.ranks", RANKS)
    assert t.rows[1] == (("winmpich",), ("2 s", "deadlock", "5 s"))
    assert t.dicts()[0] == {"model": "wmpi", "1": "2 s", "2": "3 s", "4": "5 s"}


def test_an_axis_that_changes_nothing_is_named() -> None:
    vary = {"model": ("wmpi", "hpvm"), "wmpi.packet": ("1KiB", "2KiB")}
    points = [{"model": "wmpi", "wmpi.packet": p} for p in vary["wmpi.packet"]] + [{"model": "hpvm"}]
    slow = {"wmpi": 2.0, "hpvm": 1.0}
    v, *_ = made(vary, lambda values: slow[values["model"]], points=points)
    assert without_effect(v) == ["wmpi.packet"]  # a model's only point is compared with no other model's parameter
    ended, *_ = made(vary, lambda values: slow[values["model"]], points=points, broken=(1,))
    assert without_effect(ended) == []
    nothing, *_ = made(vary, lambda values: 1.0, points=points, broken=(0, 1, 2))
    assert without_effect(nothing) == []
    drawn, *_ = made({"seed": ("1", "2")}, lambda values: 1.0, sampling="lhs")
    assert without_effect(drawn) == []
    assert without_effect(made(RANKED, linear)[0]) == ["model"]


def test_a_table_is_made_for_each_panel() -> None:
    v, *_ = made({**RANKED, "mode": ("shared", "distributed")}, linear)
    assert [t.title for t in tables(v, ["mode"])] == ["mode shared", "mode distributed"]
    assert all("mode" not in t.heads for t in tables(v, ["mode"]))


@given(st.integers(1, 30), st.integers(1, 12))
def test_a_table_of_short_keys_fits_a_terminal(values: int, models: int) -> None:
    v, *_ = made({"a.b": [f"{i}KiB" for i in range(1, values + 1)], "m": [f"name{i}" for i in range(models)]}, lambda p: 0.001)
    for t in tables(v):
        widths = [max(len(x) for x in column) + 2 for column in zip((*t.heads, *t.columns), *((*a, *b) for a, b in t.rows), strict=True)]
        assert sum(widths) <= WIDTH


# -- which figures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vary", "how", "kinds"),
    [
        (RANKED, {}, ["lines", "speedup", "efficiency"]),
        ({"model": MODELS, "platform.link.bandwidth": WIRES}, {}, ["lines"]),
        ({"wmpi.packet": ("1KiB", "2KiB", "4KiB"), "platform.link.bandwidth": WIRES}, {}, ["heat", "lines"]),
        ({"model": MODELS}, {}, ["bars"]),
        ({"model": MODELS}, {"curve": lambda p, s: 1.0 + s}, ["curves", "bars"]),
        ({"wmpi.packet": "1KiB..4KiB", "wmpi.library": "1us..9us"}, {"sampling": "lhs", "points": [
            {"wmpi.packet": f"{k}KiB", "wmpi.library": f"{k % 3 + 1}us"} for k in range(1, 9)]}, ["scatter", "scatter", "parallel"]),
        ({}, {}, []),
    ],
)
def test_the_axes_call_for_their_figures(vary: Any, how: dict[str, Any], kinds: list[str]) -> None:
    v, *_ = made(vary, linear, **how)
    assert [p.kind for p in choose(v)] == kinds


def test_many_lines_are_spread_over_panels_that_look_alike() -> None:
    v, *_ = made({"model": MODELS, "platform.link.kind": ("cable", "hub", "switch"), "platform.link.bandwidth": WIRES}, linear,
                 curve=lambda p, s: 10.0 + s)
    plan = plan_of("curves", v)
    assert (len(plan.by), len(plan.panel)) == (2, 1)
    drawn = draw(v, plan)
    assert len(drawn) == 3
    looks = [[(t.name, t.line.color, t.line.dash) for t in f.data] for f in drawn.values()]
    assert looks[0] == looks[1] == looks[2]
    assert len({(c, d) for _, c, d in looks[0]}) == len(looks[0]) == 9
    assert len({tuple(f.layout.yaxis.range) for f in drawn.values() if f.layout.yaxis.range}) <= 1


def test_axes_may_be_said() -> None:
    v, *_ = made({**RANKED, "mode": ("shared", "distributed")}, linear)
    plan = plan_of("lines", v, "trace.ranks", by=["mode"], panel=["model"])
    assert (plan.x, plan.by, plan.panel) == ("trace.ranks", ("mode",), ("model",))
    assert [f.layout.title.text for f in draw(v, plan).values()] == [f"Time of the job along number of ranks: {m}" for m in
                                                                     ("WMPI", "WinMPICH", "HPVM")]


@pytest.mark.parametrize(
    ("kind", "vary", "x", "message"),
    [
        ("pie", RANKED, None, "unknown-name | 'pie'"),
        ("curves", RANKED, None, "no-figure"),
        ("speedup", {"model": MODELS}, None, "no-figure"),
        ("lines", {"model": MODELS}, None, "no-figure"),
        ("lines", RANKED, "model", "no-figure"),
        ("heat", {"model": MODELS}, None, "no-figure"),
    ],
)
def test_a_figure_that_cannot_be_is_refused_in_one_line(kind: str, vary: Any, x: str | None, message: str) -> None:
    v, *_ = made(vary, linear)
    with refused(UsageError, message) as error:
        plan_of(kind, v, x)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_figure_is_drawn_and_is_json(kind: str) -> None:
    v, *_ = made({**RANKED, "wmpi.packet": ("1KiB", "2KiB", "4KiB")}, linear, curve=lambda p, s: 5.0 + s, broken=(3,))
    for figure in draw(v, plan_of(kind, v)).values():
        assert json.loads(figure.to_json())["data"]
        assert figure.layout.title.text


def test_a_heat_map_has_numbers_in_its_fields_and_no_colour_for_a_failure() -> None:
    v, *_ = made({"a.b": ("1KiB", "2KiB"), "c.d": ("1us", "2us")}, lambda p: 0.5, broken=(0,))
    (figure,) = draw(v, plan_of("heat", v)).values()
    heat = figure.data[0]
    assert sum(z is None for line in heat.z for z in line) == 1
    assert {t for line in heat.text for t in line} == {"500 ms", "deadlock"}
    assert [a.text for a in figure.layout.annotations] == ["deadlock"]


def test_a_legend_names_plain_numbers_and_answers() -> None:
    assert label_of(("model", "winmpich.proxy", "mode"), ("winmpich", "yes", "shared")) == "WinMPICH, proxy yes, shared"
    assert label_of(("x.packet",), (ABSENT,)) == "all"
    assert label_of(("x.packet",), ("4KiB",)) == "packet 4 KiB"
    assert label_of(("wmpi.poll_cost", "platform.host.quantum"), ("2us", "0.5ms")) == "poll cost 2 µs, quantum 0.5 ms"
    assert label_of(("mode", "x.grid", "x.wait"), ("shared", "2x2", "spin")) == "shared, grid 2x2, spin"


# -- pages ---------------------------------------------------------------------------------------------------------------


def test_a_page_is_whole_by_itself_and_says_what_it_is_of() -> None:
    v, runs, curves = made({**RANKED, "mode": ("shared", "distributed")}, linear, broken=(4,), metric="time")
    page = study_page.page(v, about(v.definition, runs, curves))
    loads = Page(page)
    assert loads.fetched == []
    assert all(link.startswith("#") and link[1:] in loads.ids for link in loads.links)
    assert len(loads.ids) == len(set(loads.ids))
    for text in ("Made up &lt;for&gt; tests", "rank 0 waits for rank 1", "0.1+1", "aaaaaaaaaaaa", "4 ranks (calibrated for 2)"):
        assert text in page
    assert "Made up <for> tests" not in re.sub(r"<script>.*?</script>", "", page, flags=re.S)


def test_a_page_of_very_many_panels_stays_a_page() -> None:
    v, *_ = made({"a.b": [f"{i}KiB" for i in range(1, 6)], "c.d": [str(i) for i in range(4)], "e.f": [f"n{i}" for i in range(20)]}, linear)
    page = study_page.page(v, about(v.definition, {}, {}))
    assert page.count('class="figure') < 60
    assert "more panels" in page


def test_warnings_name_what_lies_outside_of_the_calibration() -> None:
    _, runs, curves = made({"model": ("wmpi",), "trace.ranks": ("2", "4", "8")}, linear)
    assert about({}, runs, curves).warnings == {"wmpi": ("8 ranks (calibrated for 2)",)}


def test_sources_are_those_of_the_declarations() -> None:
    keys = ["wmpi.packet", "platform.link.bandwidth", "hpvm.packet", "nobody.knows"]
    found = {s["key"]: s for s in sources(keys, [{**RUN, "model": "wmpi"}])}
    assert found["wmpi.packet"]["value"] == "128 KiB"
    assert found["wmpi.packet"]["source"].startswith("paper:")
    assert found["platform.link.bandwidth"]["source"] == "paper:BF-DM-16"
    assert set(found) == {"wmpi.packet", "platform.link.bandwidth"}


@pytest.mark.skipif(export.browser() is None, reason="no Chromium or Chrome")
def test_a_page_draws_in_a_browser(tmp_path: Path) -> None:
    v, runs, curves = made(RANKED, linear)
    study_page.write(tmp_path / "page.html", v, about(v.definition, runs, curves))
    assert export.screenshot(tmp_path / "page.html", tmp_path / "page.png", width=900, height=900)
    assert (tmp_path / "page.png").stat().st_size > 20_000


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "curves"])
def test_a_study_in_which_nothing_completed_still_draws(kind: str) -> None:
    v, runs, curves = made({**RANKED, "wmpi.packet": ("1KiB", "2KiB", "4KiB")}, linear, broken=range(27))
    for figure in draw(v, plan_of(kind, v)).values():
        assert json.loads(figure.to_json())["layout"]
    page = study_page.page(v, about(v.definition, runs, curves))
    assert "27 not" in page
    assert {x for t in tables(v) for _, right in t.rows for x in right} == {"deadlock"}


def test_a_study_of_one_point_has_a_page() -> None:
    v, runs, curves = made({}, linear)
    page = study_page.page(v, about(v.definition, runs, curves))
    assert "2 s" in page


@pytest.mark.skipif(export.browser() is None, reason="no Chromium or Chrome")
def test_a_figure_is_an_image(tmp_path: Path) -> None:
    v, *_ = made(RANKED, linear)
    paths, missing = export.images(draw(v, plan_of("heat", v)), tmp_path, ("png",))
    assert missing == ""
    assert [p.name for p in paths] == ["heat.png"]
    assert paths[0].read_bytes()[:4] == b"\x89PNG"
