"""An interval is drawn in one way: the points of bands, the words beside them, and where figures and pages show them."""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from studio_app import PATIENCE_S, UPDATE, app, client, ended, resources, words

from retrompi.base.units import format_span
from retrompi.papers import find_paper
from retrompi.papers.judging.verdicts import Agreement, Verdict
from retrompi.papers.reproduce import coverage
from retrompi.papers.reproduce.reproduction import Reproduction
from retrompi.papers.statements.exhibits import CurveFigure
from retrompi.render.atlas.paper_page import _verdict_row
from retrompi.render.atlas.shipped_agreement import with_kept
from retrompi.render.cards import determined
from retrompi.render.figures import bands
from retrompi.render.figures.exhibits import with_bands
from retrompi.render.figures.figures import curve_figure
from retrompi.render.figures.sweep_figures import draw, plan_of
from retrompi.render.pages import curve_page, message_page
from retrompi.render.pages.study_page import _incomplete
from retrompi.studies.define import metrics
from retrompi.studies.draws import posteriors
from retrompi.studies.read.view import SIZE, View, ViewAxis, lines
from retrompi.studio.curves import drawing, intervals
from retrompi.studio.jobs.resources import Resources

__all__ = ["app", "client", "resources"]  # fixtures

NAN = math.nan


# --- the points ----------------------------------------------------------------------------------------------------------------


def test_a_band_goes_there_and_back() -> None:
    assert bands.pieces([1, 2, 4], [1.0, 2.0, 3.0], [2.0, 3.0, 4.0]) == [([1, 2, 4, 4, 2, 1], [1.0, 2.0, 3.0, 4.0, 3.0, 2.0])]


def test_a_band_is_interrupted_where_an_interval_is_unknown() -> None:
    found = bands.pieces([1, 2, 3, 4], [1.0, NAN, 3.0, 3.0], [2.0, 2.0, 4.0, math.inf])
    assert found == [([1, 1], [1.0, 2.0]), ([3, 3], [3.0, 4.0])]
    drawn = bands.area([1, 2, 3, 4], [1.0, NAN, 3.0, 3.0], [2.0, 2.0, 4.0, math.inf], "#0072B2")
    assert list(drawn.x) == [1, 1, None, 3, 3]
    assert drawn.line.width > 0, "the interval of a single place is a line"
    assert drawn.showlegend is False


def test_a_logarithmic_axis_has_no_place_for_zero() -> None:
    assert bands.pieces([1, 2], [0.0, 0.5], [2.0, 3.0], log=True) == [([1, 2, 2, 1], [0.5, 0.5, 3.0, 2.0])]
    assert bands.pieces([1], [-1.0], [0.0], log=True) == []
    assert bands.pieces([1], [-1.0], [0.0]) == [([1, 1], [-1.0, 0.0])]


def test_a_single_interval_reaches_from_its_low_to_its_high_end() -> None:
    drawn = bands.whiskers(["a"], [(1.0, 5.0)], across=True)
    assert (list(drawn.x), list(drawn.y), list(drawn.error_x.array)) == ([3.0], ["a"], [2.0])
    assert list(bands.whiskers(["a"], [(1.0, 5.0)]).error_y.array) == [2.0]


@pytest.mark.parametrize(
    ("completed", "words"),
    [
        ([1.0, 1.0], "90 % interval of 100 draws"),
        ([1.0, 0.71, NAN], "90 % interval of the draws that<br>complete (at least 71 of 100 draws)"),
        ([], "90 % interval of 100 draws"),
    ],
)
def test_the_draws_that_do_not_complete_are_said(completed: list[float], words: str) -> None:
    assert bands.band_text(0.9, 100, completed) == words


def test_a_range_as_text_has_its_unit_once() -> None:
    assert format_span(1.0812e-3, 3.93e-3, "s") == "1.08 .. 3.93 ms"
    assert format_span(9.5e-4, 3.93e-3, "s") == "950 us .. 3.93 ms"
    assert format_span(65536, 65536, "B") == "64 KiB"
    assert format_span(0.25, 0.5, "1") == "0.25 .. 0.5"
    assert format_span(0, 1e7, "B/s") == "0 .. 10 MB/s"
    assert format_span(18363, 58868, "B") == "17.9 .. 57.5 KiB"
    assert format_span(8, 58, "B") == "8 .. 58 B"


# --- curves --------------------------------------------------------------------------------------------------------------------


def _rows(**of_last: Any) -> list[dict[str, Any]]:
    rows = []
    for size, us in ((0, 100.0), (1024, 200.0), (4096, 400.0)):
        rate = size / us
        rows.append({"size_B": size, "time_us": us, "time_us_low": 0.9 * us, "time_us_high": 1.2 * us, "bandwidth_MBps": rate,
                     "bandwidth_MBps_low": rate / 1.2, "bandwidth_MBps_high": rate / 0.9, "repetitions": 10, "completed": 1.0})
    rows[-1] |= of_last
    return rows


def _curve(rows: list[dict[str, Any]], **of: Any) -> curve_page.Simulated:
    return curve_page.Simulated("wmpi", "nt-pair", "shared", tuple(rows), 1, **of)


def test_a_curve_with_intervals_has_a_band_in_its_colour() -> None:
    figures = curve_page.figures(_curve(_rows(), level=0.9, draws=100))
    for figure, sizes in ((figures["time"], 3), (figures["bandwidth"], 2)):  # 0 B has no bandwidth
        line = next(t for t in figure.data if t.mode == "lines+markers")
        band = next(t for t in figure.data if t.fill == "toself" and t.legendgroup == line.legendgroup)
        assert len(band.x) == 2 * sizes
        assert band.fillcolor == bands.faint(line.line.color, 0.24)
        assert all(low < y < high for low, y, high in zip(band.y[:sizes], line.y, band.y[:sizes - 1 : -1], strict=True))
        assert [t.name for t in figure.data if t.name and "interval" in t.name] == ["90 % interval of 100 draws"]
    told = next(t for t in figures["time"].data if t.mode == "lines+markers").customdata
    assert next(said for _, said in told) == "<br>90 %: 90 .. 120 µs, all 100 draws"


def test_a_curve_without_intervals_is_what_it_was() -> None:
    plain = [{k: v for k, v in r.items() if not k.endswith(("_low", "_high")) and k != "completed"} for r in _rows()]
    figure = curve_page.figures(_curve(plain))["time"]
    assert not [t for t in figure.data if t.fill == "toself" and "WMPI" in str(t.legendgroup)]
    assert "interval" not in json.dumps([t.name for t in figure.data])
    head, rows = curve_page.points(_curve(plain))
    assert (len(head), len(rows[0])) == (4, 4)


def test_a_size_that_no_draw_reaches_has_no_interval() -> None:
    gone = {"time_us_low": None, "time_us_high": None, "bandwidth_MBps_low": None, "bandwidth_MBps_high": None, "completed": 0.0}
    curve = _curve(_rows(**gone), level=0.9, draws=100)
    band = next(t for t in curve_page.figures(curve)["time"].data if t.fill == "toself" and t.legendgroup == "wmpi shared")
    assert len(band.x) == 4
    head, rows = curve_page.points(curve)
    assert len(head) == len(rows[-1]) == 7
    assert (rows[0][2], rows[0][-1]) == ("90 .. 120 us", "all 100 draws")
    assert (rows[-1][2], rows[-1][-1]) == ("", "0 of 100 draws")
    assert rows[0][4] == "", "0 B has no bandwidth"


def test_the_page_of_a_curve_says_what_its_band_is() -> None:
    html = curve_page.page(_curve(_rows(completed=0.5), level=0.8, draws=20))
    assert "80 % interval" in html
    assert "10 of 20 draws" in html
    assert bands.NOTE.partition("'")[0] in html
    assert bands.NOTE.partition("'")[0] not in curve_page.page(_curve(_rows()))


def test_the_axis_has_space_for_the_band() -> None:
    rows = [{**r, "model": "wmpi", "mode": "shared"} for r in _rows(time_us_high=1e6)]
    plan = CurveFigure("t", "t", "time", (("wmpi", "shared"),))
    plain = [{k: v for k, v in r.items() if "_low" not in k and "_high" not in k} for r in rows]
    ticks = [len([t for t in curve_figure(some, plan).layout.yaxis.tickvals if t <= 1e6]) for some in (plain, rows)]
    assert ticks[0] >= ticks[1], "a narrow axis has more ticks"


# --- posteriors ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def posterior(tmp_path: Path) -> posteriors.PosteriorFile:
    """A posterior of three parameters: one that the data determine, one that they narrow, one that they do not see."""
    u = np.linspace(0.0005, 0.9995, 1000)
    columns = {"discrepancy": 0.1 * u, "wmpi.library": 1e-5 * 10 ** (0.5 + 0.1 * (u - 0.5)), "a.rate": 1e6 * (4 + 4 * u), "b.count": 10 * u}
    about = {"of": "wmpi", "group": "g", "members": ["wmpi", "hpvm"], "seed": 1, "date": "2026-11-22", "claims": ["A", "B"],
             "curves": ["c"],
             "priors": {"wmpi.library": [1e-5, 1e-4, True, "s"], "a.rate": [0, 1e7, False, "B/s"], "b.count": [0, 10, False, "1"]},
             "seen": {"wmpi.library": 0.01, "a.rate": 0.5}, "fitted": ["wmpi.library"], "converged": True,
             "diagnostics": {"r_hat": 1.01, "ess": 812.0}}
    file = tmp_path / "posterior.npz"
    posteriors.write(file, columns, about)
    return posteriors.read(file)


def test_the_card_of_a_posterior_says_what_is_determined(posterior: posteriors.PosteriorFile) -> None:
    told = determined.card(posterior)
    assert json.loads(json.dumps(told)) == told
    rows = {r["path"]: r for r in told["parameters"]}
    assert [r["path"] for r in told["parameters"]] == ["wmpi.library", "a.rate", "b.count"], "the best determined first"
    assert [r["data"] for r in told["parameters"]] == ["determined", "partly", "not determined"]
    assert rows["wmpi.library"]["places"] == pytest.approx([0.455, 0.5, 0.545], abs=0.001), "on the prior's logarithmic scale"
    assert rows["a.rate"]["places"] == pytest.approx([0.42, 0.6, 0.78], abs=0.001)
    assert determined.texts(rows["a.rate"]) == ("a.rate", "0 .. 10 MB/s", "4.2 .. 7.8 MB/s", "6 MB/s", "50 %", "partly")
    line = determined.facts(told)
    for part in ("jointly with hpvm", "1,000 draws", "2 statements and 1 curve", "R-hat 1.010", "sample size 812", "determine 1 of 3"):
        assert part in line
    assert "not converged" in determined.facts({**told, "converged": False})


def test_every_card_of_a_model_shows_its_posterior(
    posterior: posteriors.PosteriorFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    from retrompi.manual import models as manual
    from retrompi.render.atlas.paper_page import _card
    from retrompi.render.cards.cards import model_card
    from retrompi.render.cards.dossier import model_dossier
    from retrompi.studio.cards import card_parts

    assert determined.section(None) == ""
    assert determined.of_folder(posterior.file.parent) == [determined.card(posterior)]
    monkeypatch.setattr(determined, "of_model", lambda cls: determined.card(posterior))
    assert model_dossier("wmpi")["posterior"]["of"] == "wmpi"
    page = _card(model_card("wmpi", "nt-pair"), {})
    assert page.count('class="prior"') == 3
    assert "not determined" in page
    assert words(card_parts.posterior(determined.card(posterior))).count("determined") == 2
    assert card_parts.posterior(None) == []
    assert "| `a.rate` |" in "\n".join(manual._posterior(determined.card(posterior))).replace("  ", " ")


# --- the studio ----------------------------------------------------------------------------------------------------------------

ASKED = ("wmpi", "nt-pair", "shared", ["wmpi.pool=4MiB"])


def _answer(sets: list[str]) -> dict[str, Any]:
    run = {"model": "wmpi", "platform": "nt-pair", "mode": "shared", "sets": [], "outcome": "completed", "detail": "", "cautions": [],
           "run": None, "rows": [{k: v for k, v in r.items() if "_low" not in k and "_high" not in k} for r in _rows()]}
    return {"base": run, "changed": {**run, "sets": sets} if sets else None, "outside": [], "marks": []}


def _told(sets: list[str]) -> dict[str, Any]:
    side = {"points": _rows(), "metrics": {"latency": [9e-5, 1e-4, 1.2e-4], "peak": None, "n_half": None}, "ended": {}}
    ratio = {str(r["size_B"]): {"ends": [0.5, 0.6, 0.8], "ahead": 0.97} for r in _rows()} if sets else {}
    return {"asked": ["wmpi", "nt-pair", "shared", sets], "level": 0.9, "draws": 100, "base": side,
            "changed": {**side, "ended": {"aborted": 3}} if sets else None, "ratio": ratio}


@pytest.mark.parametrize("series", ["time", "bandwidth"])
@pytest.mark.parametrize("sets", [[], ["wmpi.pool=4MiB"]])
def test_a_what_if_has_a_band_for_each_curve(series: str, sets: list[str]) -> None:
    answer = intervals.beside(_answer(sets), _told(sets))
    figure = drawing.what_if_figure(answer, series)
    assert sum(t.fill == "toself" for t in figure.data) == 1 + bool(sets)
    plain = drawing.what_if_figure(intervals.beside(_answer(sets), None), series)
    assert not any(t.fill == "toself" for t in plain.data)


def test_intervals_of_another_question_are_not_drawn() -> None:
    assert intervals.beside(_answer(["wmpi.pool=4MiB"]), _told([]))["intervals"] is None
    assert intervals.beside(_answer([]), _told(["wmpi.pool=4MiB"]))["intervals"] is None


def test_the_studio_says_the_draws_that_did_not_complete() -> None:
    assert intervals.ended_line(_told([])) == ""
    assert intervals.ended_line(_told(["a"])) == "changed: 3 of 100 draws did not complete (3 aborted). The intervals are of the others."


def test_the_draws_of_a_what_if_are_a_job_that_is_found_again(resources: Resources) -> None:
    first = ended(resources.jobs, resources.jobs.submit("a", "draws", intervals.what_if, resources.places, *ASKED, 6, [0, 65536]))
    assert first.status == "done", first.error
    told = first.result
    assert told["draws"] == 6
    for side in ("base", "changed"):
        for point in told[side]["points"]:
            assert point["time_us_low"] <= point["time_us_high"]
            assert point["completed"] == 1
    assert told["ratio"]["0"]["ends"] == [1, 1, 1], "the pool is nothing to an empty message, whatever its other parameters are"
    again = ended(resources.jobs, resources.jobs.submit("a", "draws", intervals.what_if, resources.places, *ASKED, 6, [0, 65536]))
    assert again.result == told
    assert again.total == 0, "no draw was simulated"


def test_switching_off_ends_the_job(resources: Resources) -> None:
    job = resources.jobs.submit("b", "draws", intervals.what_if, resources.places, *ASKED, slot="whatif-draws t")
    resources.jobs.leave("b", "whatif-draws other")
    assert not resources.jobs.state(job, "b").ended
    resources.jobs.leave("b", "whatif-draws t")
    assert resources.jobs.state(job, "b").status == "cancelled"


def _post(switch: list[str], by: str) -> dict[str, Any]:
    """What a browser posts of the job of draws when ``by`` has changed."""
    asked = {"model": "wmpi", "platform": "nt-pair", "mode": "shared", "sets": {}}
    outputs = [("whatif-drawn", "data"), *((f"whatif-draws-{i}", p) for i, p in (
        ("job", "data"), ("job-line", "children"), ("progress", "value"), ("progress", "hidden"), ("cancel", "hidden"),
        ("tick", "max_intervals")))]
    given = [("whatif-question", "data", asked), ("whatif-interval", "value", switch), ("whatif-draws-tick", "n_intervals", 1),
             ("whatif-draws-cancel", "n_clicks", 0)]
    states = [("studio-tab", "data", "a-tab"), ("studio-letters", "data", 16)]
    return {
        "output": f"..{'...'.join(f'{i}.{p}' for i, p in outputs)}..",
        "outputs": [{"id": i, "property": p} for i, p in outputs],
        "inputs": [{"id": i, "property": p, "value": v} for i, p, v in given],
        "state": [{"id": i, "property": p, "value": v} for i, p, v in states],
        "changedPropIds": [by],
    }


def test_the_switch_begins_and_cancels_the_draws(client: Any, resources: Resources) -> None:
    on = client.post(UPDATE, json=_post(["90%"], "whatif-interval.value")).json["response"]
    job = on["whatif-draws-job"]["data"]
    assert job
    off = client.post(UPDATE, json=_post([], "whatif-interval.value")).json["response"]
    assert off["whatif-draws-job"]["data"] is None
    until = time.monotonic() + PATIENCE_S
    while any(j.id == job for j in resources.jobs._open.values()) and time.monotonic() < until:
        time.sleep(0.02)
    assert all(j.id != job for j in resources.jobs._open.values())
    wrong = client.post(UPDATE, json=_post(["91%"], "whatif-interval.value"))
    assert wrong.status_code != 200 or "whatif-draws-job" not in (wrong.json or {}).get("response", {})


def test_a_page_is_written(tmp_path: Path) -> None:
    curve_page.write(tmp_path / "p.html", _curve(_rows(), level=0.9, draws=100))
    assert "90 % interval of 100 draws" in (tmp_path / "p.html").read_text()


# --- studies and papers --------------------------------------------------------------------------------------------------------


def _study(**more: Any) -> View:
    axis = ViewAxis("k", ("1", "2"), "1", {"1": 1.0, "2": 2.0}, ("k",))
    rows = [
        {"position": 3 * i, "values": {"k": k}, "value": 0.1 * (i + 1), "low": 0.09 * (i + 1), "high": 0.2 * (i + 1), "completed": share,
         "outcome": "completed", "reason": "", "run_id": i + 1} for i, (k, share) in enumerate((("1", 1.0), ("2", 0.5)))
    ]
    curves = {1: [{**r} for r in _rows()]}
    return View({"vary": {"k": "1,2"}}, (axis,), tuple(rows), metrics.parse("time"), curves, 0.9, 2, **more)


def test_the_line_of_a_study_with_draws_has_its_intervals() -> None:
    (line,) = lines(_study(), "k", ())
    assert (line.low, line.high, line.completed) == ((0.09, 0.18), (0.2, 0.4), (1.0, 0.5))
    (along,) = lines(_study(), SIZE, ())
    assert along.low == pytest.approx([9e-5, 18e-5, 36e-5])
    (plain,) = lines(replace(_study(), draws=0), "k", ())
    assert plain.low == ()


@pytest.mark.parametrize(("kind", "x"), [("lines", "k"), ("bars", None), ("curves", None)])
def test_a_figure_of_a_study_with_draws_shows_them(kind: str, x: str | None) -> None:
    v = _study()
    for figure in draw(v, plan_of(kind, v, x)).values():
        drawn = [t for t in figure.data if t.type == "scatter" and (t.fill == "toself" or t.error_x.array is not None)]
        assert drawn
        assert any("90 % interval" in str(t.name) for t in figure.data)
    for figure in draw(replace(v, draws=0), plan_of(kind, v, x)).values():
        assert not [t for t in figure.data if t.type == "scatter" and (t.fill == "toself" or t.error_x.array is not None)]


def test_the_page_of_a_study_names_the_points_whose_draws_did_not_complete() -> None:
    html = _incomplete(_study())
    assert "1 of 2 draws" in html
    assert html.count("<tr>") == 2
    assert _incomplete(replace(_study(), draws=0)) == ""


def test_the_points_of_a_paper_have_the_intervals_of_its_draws() -> None:
    points = [{"model": "m", "mode": "shared", "size_B": size, "time_us": 100.0, "bandwidth_MBps": size / 100} for size in (0, 1000, 2000)]
    found = with_bands(points, {("m", "shared"): [(0, 90.0, 100.0, 125.0), (1000, 90.0, 100.0, 125.0), (2000, NAN, NAN, NAN)]})
    keys = ("time_us_low", "bandwidth_MBps_low", "bandwidth_MBps_high")
    assert [found[1][k] for k in keys] == pytest.approx([90.0, 8.0, 11.111], rel=1e-3)
    assert "time_us_low" not in found[2]
    assert with_bands(points, {}) == points


def test_the_third_verdict_stands_below_that_of_pass_and_fail() -> None:
    told = Verdict(id="A", system="s", use="validate", verdict="fail", observed=3.0, low=1.0, high=2.0, unit="ms", note="")
    assert "agrees" not in _verdict_row(told)
    row = _verdict_row(replace(told, agreement=Agreement("cannot tell", 0.4, 100, 1.5, 3.0, 4.0)))
    assert "? cannot tell, 40%" in row
    assert "40 of 100 draws pass" in row
    assert "1.5 – 4" in row


def test_the_bars_of_a_message_have_an_interval_for_each_stage_and_the_total() -> None:
    rows = ({"stage": "copy", "process": "rank 0", "seconds": 1e-4, "seconds_low": 5e-5, "seconds_high": 2e-4},
            {"stage": "wire", "process": "", "seconds": 0.0, "seconds_low": None, "seconds_high": None})
    total = {"stage": "total", "process": "", "seconds": 1e-4, "seconds_low": 6e-5, "seconds_high": 3e-4}
    told = message_page.Stages("t", rows, total, 1, 0.9, 20)
    bars, whiskers, key = message_page.figures(told)["stages"].data
    assert list(bars.x) == pytest.approx([100.0, 100.0, 0.0])
    assert list(whiskers.x) == pytest.approx([180.0, 125.0])
    assert key.name == "90 % interval of 20 draws"
    assert "50 .. 200 us" in message_page.page(told)
    alone, *each = ({k: r[k] for k in ("stage", "process", "seconds")} for r in (total, *rows))
    plain = message_page.Stages("t", tuple(each), alone, 1)
    assert "interval" not in message_page.page(plain).partition("<header>")[2].partition("<script>")[0]


def test_stages_too_small_for_a_bar_are_one_bar_and_all_stand_in_the_table() -> None:
    rows = tuple({"stage": f"stage {i}", "process": "", "seconds": s} for i, s in enumerate([60e-6, 39e-6, 0.4e-6, 0.3e-6, 0.3e-6]))
    total = {"stage": "total", "process": "", "seconds": 100e-6}
    (bars,) = message_page.figures(message_page.Stages("t", rows, total, 1))["stages"].data
    assert list(bars.x) == pytest.approx([100.0, 60.0, 39.0, 1.0])
    assert "3 stages below 1% each" in bars.y[-1]
    assert "stage 4" in message_page.page(message_page.Stages("t", rows, total, 1))
    wide = ({**rows[2], "seconds_low": 0.0, "seconds_high": 5e-6}, *rows[3:])
    assert len(message_page.fold_stages(message_page.Stages("t", wide, total, 1, 0.9, 20))) == 2, "a stage that may be large keeps its bar"


def test_kept_third_verdicts_are_of_the_same_result(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told = Verdict(id="A", system="s", use="validate", verdict="fail", observed=3.0, low=1.0, high=2.0, unit="ms", note="")
    file = tmp_path / "agreement.csv"
    known = {"paper": "baker-fox", "id": "A", "verdict": "fail", "agreement": "cannot tell", "share": "0.4", "draws": "100",
             "observed": "3", "observed_low": "1.5", "observed_high": "4", "inside": "yes"}
    row = dict.fromkeys(coverage.COLUMNS, "") | known
    file.write_text(",".join(row) + "\n" + ",".join(row.values()) + "\n", encoding="utf-8")
    monkeypatch.setattr(coverage, "file_of", lambda: file)
    study = Reproduction(find_paper("baker-fox"), (), verdicts=[told])
    (found,) = with_kept(study).verdicts
    assert found.agreement == Agreement("cannot tell", 0.4, 100, 1.5, None, 4.0, None, None, True)
    for other in (replace(told, observed=3.1), replace(told, verdict="pass"), replace(told, id="B")):
        assert with_kept(replace(study, verdicts=[other])).verdicts[0].agreement is None
    assert with_kept(replace(study, verdicts=[found])).verdicts == [found]
