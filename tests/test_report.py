"""The report: points are computed, then drawn; here the points are tested. All curves are made up for the tests."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import Page
from refusals import refused

from retrompi import render
from retrompi.base import units
from retrompi.base.errors import InputError, RetrompiError, UsageError
from retrompi.inference import evidence
from retrompi.papers import markdown
from retrompi.papers.experiments import anatomy, startup
from retrompi.papers.judging import verdicts
from retrompi.papers.reproduce import reproduction
from retrompi.papers.reproduce.reproduction import Reproduction
from retrompi.papers.statements import claims, draw, paper
from retrompi.papers.statements.exhibits import CurveFigure
from retrompi.papers.statements.paper import find_paper
from retrompi.render.atlas import paper_page
from retrompi.render.cards import cards
from retrompi.render.document import export
from retrompi.render.figures import exhibits, figures, overlay
from retrompi.spec import registry
from retrompi.spec.compiled.compile import compile_runtime
from retrompi.spec.layout import Layout
from retrompi.spec.question import Question
from retrompi.spec.registry import resolve
from retrompi.store import lookup, open_store

PLAN = find_paper("baker-fox")
CURVES = replace(PLAN, experiments=("pingpong", "startup", "anatomy"))
STARTS = {"wmpi": (200.0, 90.0), "winmpich": (350.0, 20.0), "hpvm": (120_000.0, 0.5)}
FACTS: dict[str, Any] = {
    "machines": 2,
    "processes": 2,
    "startup": {
        m: {
            "attempts": 2000,
            "failures": 660,
            "failure_rate": 0.33,
            "windows": 4,
            "daemons": 3,
            "manual_steps_per_job": 5,
            "steps": [{"step": "start <the> proxy", "manual": True}],
        }
        for m in PLAN.models
    },
}


def made_up_points() -> list[dict[str, Any]]:
    return [
        {
            "model": m,
            "platform": PLAN.platform,
            "mode": mode,
            "size_B": s,
            "time_us": start + s / rate,
            "bandwidth_MBps": s / (start + s / rate),
            "repetitions": 10,
            "run_id": 1,
        }
        for m, (start, rate) in STARTS.items()
        for mode in PLAN.modes
        for s in PLAN.sizes
    ]


MESSAGES = [(m["model"], m["mode"], int(units.parse(m["size"], "B"))) for m in PLAN.options("anatomy")["messages"]]


def made_up_anatomy() -> list[dict[str, Any]]:
    stages = [
        {"stage": "copy", "process": "rank 0", "seconds": 0.001},
        {"stage": "copy", "process": "rank 1", "seconds": 0.003},
        {"stage": "quantum", "process": "rank 1", "seconds": 0.012},
    ]
    return [{"model": m, "mode": mode, "size_B": s, "total_s": 0.016, "stages": stages, "run_id": 2} for m, mode, s in MESSAGES]


@pytest.fixture
def made_up() -> Reproduction:
    points, found = made_up_points(), claims.by_paper("baker-fox")
    judged = verdicts.judge(found, points, FACTS)
    return Reproduction(PLAN, tuple(found), points, FACTS, made_up_anatomy(), judged, (1, 2), 2)


# --- published marks ---


def test_marks_repeat_the_claims_and_nothing_else() -> None:
    found = overlay.marks(claims.by_paper("baker-fox"))
    assert len(found) > 20
    per_unit = {"microseconds": 1.0, "ms": 1e3, "MByte/s": 1.0, "KByte/s": 1e-3}
    for m in found:
        claim = claims.find(m.claim)
        if m.shape == "knee":
            assert (m.x0, m.x1) == (claim.low, claim.high)
            assert m.y is None
            continue
        assert claim.low is not None
        assert claim.high is not None
        assert m.low == pytest.approx(claim.low * per_unit[claim.unit])
        assert m.high == pytest.approx(claim.high * per_unit[claim.unit])
        if m.y is not None:
            assert any(f"{m.y / per_unit[claim.unit]:g}" in text for text in (claim.value,)), m


def test_a_claim_without_numbers_draws_nothing() -> None:
    bare = [replace(c, low=None, high=None) for c in claims.by_paper("baker-fox")]
    assert overlay.marks(bare) == []


@settings(max_examples=30, deadline=None)
@given(st.floats(1, 1e4), st.floats(1, 1e4))
def test_a_mark_moves_with_its_claim(a: float, b: float) -> None:
    low, high = sorted((a, b))
    (mark,) = overlay.marks([replace(claims.find("BF-SM-01"), low=low, high=high)])
    assert (mark.low, mark.high, mark.x0, mark.series) == (low, high, 0, "time")


def test_known_marks_stand_where_the_text_puts_them() -> None:
    found = {(m.claim, m.series): m for m in overlay.marks(claims.by_paper("baker-fox"))}
    peak = found["BF-SM-06", "bandwidth"]
    assert (peak.shape, peak.x0, peak.low, peak.high, peak.y) == ("point", 262144, 75, 85, 80)
    assert found["BF-DM-07", "bandwidth"].shape == "band"  # the text gives no size for this peak
    assert found["BF-SM-12b", "bandwidth"].x0 == 4 << 20
    ends = overlay.marks([claims.find("BF-SM-16")])
    assert [(m.x0, m.y) for m in ends] == [(0, 124_000), (65536, 121_000)]
    assert found["BF-DM-09", "bandwidth"].use == "exclude"


@for_each(
    "value, number", [("80", 80), ("near 30", 30), ("3.0", 3.0), ("between 3.5 and 6", None), ("peaks at 64K", None), ("many", None)]
)
def test_the_one_number_of_a_statement(value: str, number: float | None) -> None:
    assert overlay.stated_number(replace(claims.find("BF-SM-01"), value=value)) == number


# --- curves ---


SHARED = CurveFigure("shared-time", "title", "time", (("*", "shared"),))


def test_curves_are_the_points() -> None:
    points = made_up_points()
    times = {c.model: c for c in exhibits.curves(points, SHARED)}
    assert set(times) == set(PLAN.models)
    assert times["wmpi"].x == tuple(float(s) for s in PLAN.sizes)
    assert times["wmpi"].y[0] == pytest.approx(200)
    rates = exhibits.curves(points, replace(SHARED, what="bandwidth"))
    assert {c.x[0] for c in rates} == {1}  # 0 B has no bandwidth
    assert exhibits.curves(points, replace(SHARED, curves=(("*", "elsewhere"),))) == []


def test_a_figure_draws_every_point_and_mark() -> None:
    points = made_up_points()
    marks = overlay.marks(claims.by_paper("baker-fox"))
    figure = figures.curve_figure(points, SHARED, marks)
    curves = {t.name: t for t in figure.data if t.mode == "lines+markers"}
    assert set(curves) == {"WMPI", "WinMPICH", "HPVM"}
    assert list(curves["WMPI"].x)[:2] == [figures.ZERO, 1]
    assert tuple(curves["WMPI"].y) == next(c.y for c in exhibits.curves(points, SHARED) if c.model == "wmpi")
    stars = [t for t in figure.data if t.mode == "markers" and t.x[0] is not None]
    wanted = [m for m in marks if (m.mode, m.series, m.shape) == ("shared", "time", "point")]
    assert len(stars) == len(wanted)
    labels = {a.text for a in figure.layout.annotations}
    assert labels == {"WMPI and WinMPICH: 4K", "WMPI: 128K–512K"}
    assert {a.hovertext.partition(":")[0] for a in figure.layout.annotations} == {"BF-SM-03", "BF-SM-04"}
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"


def test_models_keep_their_colour_and_symbol() -> None:
    models = ["hpvm", "wmpi:rival", "wmpi", "mine", "winmpich"]
    looks = [figures.style(m, models) for m in models]
    assert len(set(looks)) == len(models)
    assert figures.style("wmpi", ["wmpi"]) == figures.style("wmpi", models)


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def test_curves_stand_out_from_the_page() -> None:
    for model in PLAN.models:
        contrast = 1.05 / (_luminance(figures.style(model, PLAN.models)[0]) + 0.05)
        assert contrast >= 3, model  # WCAG's minimum for graphics


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(["copy", "tick", "wire", "quantum"]), st.floats(1e-9, 1.0)), min_size=1, max_size=9),
        min_size=1,
        max_size=4,
    )
)
def test_anatomy_bars_fill_the_whole(bars: list[list[tuple[str, float]]]) -> None:
    anatomy = [
        {"model": "wmpi", "mode": "shared", "size_B": i, "stages": [{"stage": s, "process": "p", "seconds": v} for s, v in bar]}
        for i, bar in enumerate(bars)
    ]
    labels, shares, seconds = figures.anatomy_bars(anatomy, figures.stage_order(anatomy))
    for i, (bar, _) in enumerate(zip(bars, labels, strict=True)):
        assert sum(values[i] for values in shares.values()) == pytest.approx(100)
        assert sum(values[i] for values in seconds.values()) == pytest.approx(sum(v for _, v in bar))


def test_small_stages_are_drawn_together_and_colours_hold() -> None:
    def entry(size: int, **stages: float) -> dict[str, Any]:
        listed = [{"stage": k, "process": "p", "seconds": v} for k, v in stages.items()]
        return {"model": "wmpi", "mode": "shared", "size_B": size, "stages": listed}

    both = [entry(0, copy=1.0, tick=3.0, dust=0.001), entry(1, copy=9.0, wire=0.5, dust=0.001)]
    order = figures.stage_order(both)
    assert order == ["copy", "tick", "wire"]
    _, shares, _ = figures.anatomy_bars(both, order)
    assert list(shares) == [*order, figures.OTHER]
    one = {t.name: t.marker.color for t in figures.anatomy_figure(both[:1], order=order).data}
    two = {t.name: t.marker.color for t in figures.anatomy_figure(both[1:], order=order).data}
    assert all(one[s] == two[s] for s in one.keys() & two.keys())


# --- the page ---


CARD = cards.Card(
    "wmpi",
    "WMPI <1>",
    "1.1",
    "1997",
    "a summary",
    ({"name": "packet", "value": "128 KiB", "range": "", "source": "paper:BF-SM-05", "help": "largest packet"},),
    ({"what": "residuals", "name": "BF-SM-01", "text": "0.1"},),
    (("wmpi:rival", "another cause"),),
)


@pytest.fixture
def text(made_up: Reproduction) -> str:
    return paper_page.page(made_up, render.study_figures(made_up), [CARD], footer="v1")


def test_page_is_self_contained(text: str) -> None:
    found = Page(text)
    assert found.fetched == []
    assert len(found.ids) == len(set(found.ids))
    assert all(link.startswith("#") and link[1:] in found.ids for link in found.links)
    assert "Plotly.newPlot" in text
    assert "viewport" in text
    assert "@import" not in text.split("<script>")[0]


def test_page_shows_every_claim_with_its_contradiction(text: str, made_up: Reproduction) -> None:
    from html import escape

    for v in made_up.verdicts:
        assert f'id="{v.id}"' in text
        assert escape(v.contradiction) in text
    assert "Held out: " in text
    assert "Fit: " in text
    assert "Excluded: 1</summary>" in text
    assert "WMPI &lt;1&gt;" in text
    assert "start &lt;the&gt; proxy" in text


def test_page_is_the_same_for_the_same_study(made_up: Reproduction) -> None:
    one, two = (paper_page.page(made_up, render.study_figures(made_up), [CARD]) for _ in range(2))
    assert one == two


def test_why_names_mechanism_shares_and_verdicts(made_up: Reproduction) -> None:
    why = next(w for w in PLAN.why if w.model == "hpvm" and w.mode == "shared")
    html = paper_page.why_paragraph(why, made_up)
    assert why.mechanism in html
    assert "quantum 12 ms (75%)" in html
    assert "copy 4 ms (25%)" in html
    assert all(c in html for c in why.claims)


def test_every_anomaly_points_at_things_that_exist() -> None:
    ids = {c.id for c in claims.by_paper(PLAN.key)}
    for why in PLAN.why:
        assert set(why.claims) <= ids, why.title
        assert why.model in PLAN.models
        assert why.size is None or (why.model, why.mode, why.size) in MESSAGES, why.title
        assert why.size is None or why.size in PLAN.sizes
        # Published numbers come from the claims: prose repeats none.
        assert not any(ch.isdigit() for ch in why.title + why.mechanism + why.text), why.title


def test_setup_of_an_unknown_or_unmodelled_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    with refused(UsageError, "unknown-paper | baker-fox"):
        find_paper("baker")
    assert find_paper("baker-fox-long").key == "baker-fox"
    monkeypatch.setattr(paper, "all_papers", lambda: {"baker-fox": PLAN})
    with refused(UsageError, "unknown-paper"):
        find_paper("hudson-wang")


def test_a_fit_is_spelled_out_on_its_card() -> None:
    told = cards.fit_rows(
        {
            "values": {"library": "50 us"},
            "bounds": {"library": ["5 us", "90 us"]},
            "residuals": {"BF-SM-01": [176.0, 165.0, 185.0, "microseconds", 0.1]},
            "meta": {"seed": 1, "claims": ["a", "b"], "identifiability": {"library": "determined"}},
        }
    )
    assert [(r["what"], r["name"], r["text"]) for r in told] == [
        ("range", "library", "5 us – 90 us"),
        ("residual", "BF-SM-01", "176 microseconds, published 165 – 185: +0.10 half ranges from the middle"),
        ("meta", "seed", "1"),
        ("meta", "claims", "a, b"),
        ("identifiability", "library", "determined"),
    ]


def test_every_model_of_the_study_has_a_card() -> None:
    for name in PLAN.models:
        card = cards.model_card(name, PLAN.platform)
        assert card.name == name
        assert card.rows
        assert all(r["source"] and r["help"] for r in card.rows)
    assert any(r["name"] == "server.quantum" for r in cards.platform_rows(PLAN.platform))


def test_a_card_says_what_the_evidence_says_of_its_variants() -> None:
    rows = {r.variant: r for r in evidence.read_rivals()}
    html = paper_page._card(cards.model_card("wmpi", PLAN.platform), paper_page._evidence())
    compared = [name for name in rows if name.startswith("wmpi:")]
    assert html.count("Evidence of the statements that calibrate") == len(compared) > 0
    for name in compared:
        told = re.search(rf"<b>{name}</b>.*?</li>", html)
        assert told is not None
        assert f"{rows[name].log_evidence:.4g} ±" in told[0]
        assert f"its base {rows['wmpi'].log_evidence:.4g}" in told[0]


# --- files ---


@pytest.fixture
def no_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "model_card", lambda model, platform: replace(CARD, name=model))


@pytest.mark.usefixtures("no_models")
def test_write_makes_the_page_and_the_tables(made_up: Reproduction, tmp_path: Path) -> None:
    written = render.write(made_up, tmp_path / "out", footer="v1")
    assert written.page.name == "baker-fox.html"
    names = {p.name for p in written.tables}
    fixed = {f"baker-fox-{n}.csv" for n in ("points", "published", "verdicts", "anatomy", "startup")}
    shown = {f"baker-fox-figure-{p.name}.csv" for p in PLAN.figure_plans} | {f"baker-fox-table-{t.name}.csv" for t in PLAN.table_plans}
    assert names == fixed | shown
    assert written.images == ()
    assert written.missing == ""
    with (tmp_path / "out" / "baker-fox-points.csv").open(newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    assert [float(r["time_us"]) for r in rows] == [p["time_us"] for p in made_up.points]


@pytest.mark.usefixtures("no_models")
def test_write_where_nothing_can_be_written(made_up: Reproduction, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with refused(InputError, "unwritable-file"):
        render.write(made_up, tmp_path / "file" / "out", footer="v1")


def test_images_without_a_browser_are_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("RETROMPI_BROWSER", raising=False)
    paths, missing = export.images({}, tmp_path, ("png",))
    assert paths == []
    assert "RETROMPI_BROWSER" in missing
    assert "\n" not in missing


def test_images_refuse_an_unknown_format_and_a_broken_browser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with refused(UsageError, "no-image"):
        export.images({}, tmp_path, ("pnj",))
    fake = tmp_path / "browser"
    fake.write_text("#!/bin/sh\necho no display >&2\n")
    fake.chmod(0o755)
    monkeypatch.setenv("RETROMPI_BROWSER", str(fake))
    with refused(RetrompiError, "no-image"):
        export.images({}, tmp_path, ("png",))


@pytest.mark.skipif(export.browser() is None, reason="needs Chromium or Chrome")
def test_images_are_images(made_up: Reproduction, tmp_path: Path) -> None:
    figure = render.study_figures(made_up)["shared-time"]
    paths, missing = export.images({"shared-time": figure}, tmp_path, ("png", "svg"), scale=1)
    assert missing == ""
    assert [p.name for p in paths] == ["shared-time.png", "shared-time.svg"]
    assert paths[0].read_bytes().startswith(b"\x89PNG")
    assert "<svg" in paths[1].read_text(encoding="utf-8")
    assert "WMPI: 128K–512K" in paths[1].read_text(encoding="utf-8")


@pytest.mark.skipif(export.browser() is None, reason="needs Chromium or Chrome")
def test_a_picture_of_a_page(tmp_path: Path) -> None:
    source = tmp_path / "page.html"
    source.write_text("<!doctype html><h1>hello</h1>", encoding="utf-8")
    assert export.screenshot(source, tmp_path / "new" / "page.png", width=320, height=200)
    assert (tmp_path / "new" / "page.png").read_bytes().startswith(b"\x89PNG")


# --- the study, without an engine ---


class Shelf:
    """Stands for a store: counts what is asked of it."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, list[Mapping[str, Any]], tuple[int, ...]]] = []

    def add_verdicts(self, paper: str, rows: list[Mapping[str, Any]], run_ids: tuple[int, ...] = ()) -> int:
        self.kept.append((paper, rows, run_ids))
        return 1


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    asked: list[tuple[Any, ...]] = []
    rows = made_up_points()

    def curve(store: Any, question: Question, *, fresh: bool) -> lookup.Found:
        model, mode = question.model, question.placement
        asked.append(("pingpong", model, question.platform, mode, fresh))
        keys = ("size_B", "time_us", "bandwidth_MBps", "repetitions")
        mine = [{k: r[k] for k in keys} for r in rows if (r["model"], r["mode"]) == (model, mode)]
        return lookup.Found(7, mine, not fresh)

    def explain(store: Any, question: Question, *, fresh: bool) -> lookup.Found:
        asked.append(("explain", question.model, question.placement, question.workload, fresh))
        return lookup.Found(8, [{"stage": "copy", "process": "rank 0", "seconds": 0.5, "ps": None}], not fresh)

    monkeypatch.setattr(draw, "answer", curve)
    monkeypatch.setattr(anatomy, "answer", explain)

    def facts_of(store: Any, spec: Any, work: Any, *, fresh: bool) -> tuple[int, dict[str, Any], bool]:
        return 99, {"startup": FACTS["startup"][spec.model]}, not fresh

    monkeypatch.setattr(startup, "facts_of", facts_of)
    monkeypatch.setattr(reproduction, "find_paper", lambda paper: CURVES)
    monkeypatch.setattr(reproduction, "parameters", lambda plan: {"wmpi": {"packet": 131072.0}})
    return asked


def test_run_paper_asks_for_everything_once_and_keeps_the_verdicts(no_engine: list[tuple[Any, ...]]) -> None:
    shelf, seen = Shelf(), []
    got = reproduction.run_paper("baker-fox-long", shelf, fresh=True, progress=lambda *a: seen.append(a))  # type: ignore[arg-type]
    curves = [a for a in no_engine if a[0] == "pingpong"]
    rival = ("wmpi:whole-lines", PLAN.modes[0])
    assert sorted(a[1:4:2] for a in curves) == sorted([*((m, mode) for m in PLAN.models for mode in PLAN.modes), rival])
    assert len(no_engine) == len(set(no_engine)) == 7 + len(MESSAGES)
    assert got.simulated == 10 + len(MESSAGES)
    assert got.runs == (7, 99, 8)
    assert len(seen) == got.simulated + 2  # and the numbers of machines and processes
    assert [s[0] for s in seen] == sorted(s[0] for s in seen)  # in thousandths of the jobs' weight
    assert seen[-1][0] == seen[-1][1] == {s[1] for s in seen}.pop()
    ((paper, rows, runs),) = shelf.kept
    assert paper == "baker-fox"
    assert [r["id"] for r in rows] == [c.id for c in claims.by_paper("baker-fox")]
    assert runs == got.runs
    assert [p["size_B"] for p in got.points[: len(PLAN.sizes)]] == list(PLAN.sizes)
    assert {v.id: v.verdict for v in got.verdicts}["BF-SM-05"] == "pass"
    assert got.anatomy[0]["total_s"] == 0.5


@pytest.mark.usefixtures("no_engine")
def test_run_paper_again_is_the_same_and_simulates_nothing() -> None:
    one, two = (reproduction.run_paper("baker-fox", Shelf(), keep=False) for _ in range(2))  # type: ignore[arg-type]
    assert one.simulated == 0
    assert one.points == two.points
    assert one.verdicts == two.verdicts


@pytest.mark.usefixtures("no_engine")
def test_run_paper_passes_a_failure_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> lookup.Found:
        raise RetrompiError("the engine stopped")

    monkeypatch.setattr(anatomy, "answer", broken)
    shelf = Shelf()
    with pytest.raises(RetrompiError, match="the engine stopped"):
        reproduction.run_paper("baker-fox", shelf)  # type: ignore[arg-type]
    assert shelf.kept == []


@pytest.mark.usefixtures("no_engine")
def test_judge_all_has_every_row_of_the_reference() -> None:
    got = reproduction.run_paper("baker-fox", Shelf(), keep=False)  # type: ignore[arg-type]
    every = reproduction.judge_all([got])
    assert [v.id for v in every] == [c.id for c in claims.load()]
    assert {v.verdict for v in every if v.id.startswith(("KB-", "LW-", "HW-"))} == {"unjudged"}


def test_a_small_study_for_real_and_again_from_the_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Engine, store and judge together, on two sizes: the second time nothing is simulated and nothing differs."""
    options = {
        "pingpong": {**PLAN.options("pingpong"), "sizes": "0,1KiB"},
        "startup": {**PLAN.options("startup"), "starts": 20},
        "anatomy": {"messages": PLAN.options("anatomy")["messages"][:1]},
    }
    small = replace(CURVES, tables=options)
    monkeypatch.setattr(reproduction, "find_paper", lambda paper: small)
    store = open_store(tmp_path / "runs.db")
    one = reproduction.run_paper("baker-fox", store)
    two = reproduction.run_paper("baker-fox", store)
    assert (one.simulated, two.simulated) == (len(one.runs), 0)
    assert one.points == two.points
    assert one.verdicts == two.verdicts
    assert one.anatomy == two.anatomy
    assert one.facts == two.facts
    assert {p["run_id"] for p in one.points} <= set(one.runs)
    fresh = reproduction.run_paper("baker-fox", store, fresh=True, keep=False)
    assert [p["time_us"] for p in fresh.points] == [p["time_us"] for p in one.points]
    assert [v["verdict"] for v in store.verdicts("baker-fox")] == [v.verdict for v in one.verdicts]
    pages = [render.write(s, tmp_path / name).page.read_bytes() for name, s in (("a", one), ("b", two))]
    assert pages[0] == pages[1]


# --- documents that are generated or promise something ---

ROOT = Path(__file__).resolve().parents[1]


VALIDATION = ["validation.md", *sorted(f"validation/{p.name}" for p in (ROOT / "docs" / "validation").iterdir())]


@for_each("page", VALIDATION)
def test_a_page_of_the_validation_is_up_to_date(page: str, tmp_path: Path) -> None:
    copy = tmp_path / "page.md"
    copy.write_text((ROOT / "docs" / page).read_text(encoding="utf-8"), encoding="utf-8")
    part = "readings" if page == "validation.md" else "checks"
    wanted = markdown.reading_table() if part == "readings" else markdown.check_table(copy)
    assert not markdown.fill(copy, part, wanted), f"run: python -m retrompi.papers.markdown docs/{page}"


def test_the_runtimes_of_the_second_atlas_are_up_to_date(tmp_path: Path) -> None:
    copy = tmp_path / "second-atlas.md"
    copy.write_text((ROOT / "docs" / "second-atlas.md").read_text(encoding="utf-8"), encoding="utf-8")
    assert set(markdown.parts(copy)) == {"runtimes", "evidence", "interventions", "matrix"}
    assert not markdown.fill(copy, "runtimes", markdown.runtime_table()), "run: python -m retrompi.papers.markdown docs/second-atlas.md"


def test_every_row_that_judges_a_runtime_is_counted_once(made_up: Reproduction) -> None:
    table = markdown.evidence_table(made_up.verdicts)
    counts = [int(line.split("|")[3]) for line in table.splitlines()[4:]]
    assert sum(counts) == len(markdown.evidence_rows()) == 61
    assert table.startswith("0 of 0 judged rows hold.")


def test_fill_refuses_a_missing_part(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("nothing", encoding="utf-8")
    with pytest.raises(InputError, match="<!-- x -->"):
        markdown.fill(tmp_path / "a.md", "x", "text")


def test_verdict_table_counts_apart_and_names_reasons(made_up: Reproduction) -> None:
    table = markdown.verdict_table(made_up.verdicts)
    assert table.startswith("- fit: ")
    assert "- held out: " in table
    assert "| BF-DM-09 | exclude | unjudged |" in table
    for v in made_up.verdicts:
        if v.verdict == "unjudged" and v.use in ("calibrate", "validate"):
            assert any(v.id in line and line.endswith(f": {v.note}") for line in table.splitlines()), v.id
    assert all(line.count("|") == 8 for line in table.replace("\\|", "").splitlines() if line.startswith("| "))


def test_readme_begins_with_the_flow_and_its_model_works(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.splitlines()[0] == "`traces → models → platforms → engine → store → validate, report`"
    code = text.split('```python title="mailbox')[1].partition("\n")[2].split("```")[0]
    (tmp_path / "mailbox").mkdir()
    (tmp_path / "mailbox" / "__init__.py").write_text(code, encoding="utf-8")
    model, room = registry.model(str(tmp_path / "mailbox")), registry.platform("nt-pair")
    values, changed = resolve(model, room)
    rows = compile_runtime(model, values, Layout(changed, [0, 1])).rows
    assert [hop["medium"] for hop in rows["remote"]] == ["stream"]
    assert values.unread() == []
