"""The atlas: what the studies' files ask for is shown, the matrix counts every claim once, and all studies share one pool.

The studies here are made up, but for one small real one.
"""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from pages import Page
from refusals import agrees, refused

from retrompi import render
from retrompi.base.errors import InputError, RetrompiError
from retrompi.papers.experiments import Done, Job
from retrompi.papers.judging import verdicts
from retrompi.papers.predict import scores
from retrompi.papers.reproduce import reproduction
from retrompi.papers.reproduce.reproduction import Reproduction
from retrompi.papers.statements import claims, paper, systems
from retrompi.papers.statements.exhibits import ClaimTable, CurveFigure, FactFigure, FactTable, ScatterFigure, read_figures, read_tables
from retrompi.papers.statements.paper import Paper, all_papers, find_paper, kinds_of_experiment
from retrompi.render.atlas import front, glance
from retrompi.render.cards import cards
from retrompi.render.figures import exhibits, numbers, overlay, tables
from retrompi.render.figures import figures as drawing
from retrompi.store import open_store

SIZES = (0, 1, 1024, 65536)


def points(model: str, mode: str, start: float, platform: str = "nt-pair") -> list[dict[str, Any]]:
    return [
        {
            "model": model,
            "platform": platform,
            "mode": mode,
            "size_B": s,
            "time_us": start + s / 100,
            "bandwidth_MBps": s / (start + s / 100),
            "run_id": 1,
        }
        for s in SIZES
    ]


def made_up(plan: Paper, facts: dict[str, Any] | None = None, curves: list[dict[str, Any]] | None = None) -> Reproduction:
    found = tuple(claims.by_paper(plan.key))
    given = facts or {}
    return Reproduction(plan, found, curves or [], given, [], verdicts.judge(found, curves or [], given), (1, 2, 5), 1)


BARE = Paper("baker-fox", "A <title>", "Some & others", ("wmpi",), ("nt-pair",), ())


# --- the studies' files ---


@for_each(
    "entry, says",
    [
        ({"name": "a", "title": "t", "what": "time"}, "bad-value"),
        ({"name": "a", "title": "t", "what": "tyme", "curves": [["*", "shared"]]}, "bad-input"),
        ({"name": "a", "title": "t", "curves": [["*", "shared"]]}, "bad-input | 'what'"),
        ({"name": "A b", "title": "t", "what": "time", "curves": []}, "bad-name | lower-case"),
        ({"name": "a", "titel": "t", "what": "time", "curves": []}, "unknown-key | 'titel' | 'title'"),
    ],
)
def test_a_wrong_figure_is_one_line(entry: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as error:
        read_figures([entry], Path("x.toml"))
    agrees(error.value, says)
    assert "[[figure]] 1" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"name": "a", "title": "t"}, "bad-input | 'claims' | 'cells'"),
        ({"name": "a", "title": "t", "claims": ["*"], "cells": "x"}, "bad-input | 'claims' | 'cells'"),
        ({"name": "a", "title": "t", "cells": "(?P<row>x)"}, "bad-value"),
        ({"name": "a", "title": "t", "cells": "("}, "bad-value"),
    ],
)
def test_a_wrong_table_is_one_line(entry: dict[str, Any], says: str) -> None:
    with refused(InputError, says):
        read_tables([entry], Path("x.toml"))


def test_names_are_unique() -> None:
    entry = {"name": "a", "title": "t", "facts": "x"}
    with refused(InputError, "duplicate-name | 'a'"):
        read_tables([entry, entry], Path("x.toml"))


@for_each("key", list(all_papers()))
def test_every_study_asks_for_what_exists(key: str) -> None:
    """A pattern that no claim matches, or a mechanism that no claim is about, is a mistake in the file."""
    plan = find_paper(key)
    ids = [c.id for c in claims.by_paper(key)]
    for table in plan.table_plans:
        if isinstance(table, ClaimTable):
            for pattern in table.claims:
                assert any(fnmatchcase(i, pattern) for i in ids), (table.name, pattern)
            assert not table.cells or any(re.fullmatch(table.cells, i) for i in ids), table.name
            assert all(any(fnmatchcase(i, p) for i in ids) for p in table.groups.values()), table.name
    for figure in plan.figure_plans:
        if isinstance(figure, CurveFigure):
            assert {a[0] for a in figure.at} <= set(ids), figure.name
        if isinstance(figure, ScatterFigure):
            assert all(any(fnmatchcase(i, p) for i in ids) for p in (*figure.claims, *figure.groups.values())), figure.name
    assert plan.figure_plans or plan.table_plans or plan.curves
    assert {w for why in plan.why for w in why.claims} <= set(ids)


@for_each("key", list(all_papers()))
def test_every_claim_with_a_number_stands_in_a_table_or_on_a_figure(key: str) -> None:
    plan = find_paper(key)
    found = claims.by_paper(key)
    shown = {c.id for c in found for t in plan.table_plans if isinstance(t, ClaimTable) for p in t.claims if fnmatchcase(c.id, p)}
    shown |= {c.id for c in found for t in plan.table_plans if isinstance(t, ClaimTable) and t.cells and re.fullmatch(t.cells, c.id)}
    shown |= {m.claim for m in overlay.marks(found)}
    shown |= {a[0] for f in plan.figure_plans if isinstance(f, CurveFigure) for a in f.at}
    assert [c.id for c in found if c.kind == "quant" and c.use in front.JUDGED and c.id not in shown] == []


# --- what tables and figures show ---


def test_curves_follow_the_figures_order_and_patterns() -> None:
    rows = points("wmpi", "shared", 5) + points("nemesis", "split cache, bandwidth", 1) + points("nemesis:windows", "shared cache", 2)
    plan = CurveFigure("x", "X", "bandwidth", (("nemesis*", "*"), ("wmpi", "shared", "the old one")))
    found = exhibits.curves(rows, plan)
    assert [(c.model, c.mode, c.legend) for c in found] == [
        ("nemesis", "split cache, bandwidth", ""),
        ("nemesis:windows", "shared cache", ""),
        ("wmpi", "shared", "the old one"),
    ]
    assert all(c.x[0] == 1 for c in found)
    figure = drawing.curve_figure(rows, plan)
    assert [t.name for t in figure.data] == ["Nemesis, split cache, bandwidth", "Nemesis (windows), shared cache", "the old one"]
    lacking = replace(plan, curves=(("wmpi", "shared"), ("hpvm", "shared")))
    assert exhibits.missing_curves(rows, lacking) == ["hpvm shared"]


def test_curves_of_one_figure_differ_in_more_than_colour() -> None:
    for keys in (
        [("nemesis", f"mode {i}") for i in range(6)],
        [(m, mode) for m in ("nemesis", "nemesis:windows", "nemesis:select") for mode in ("shared cache", "split cache")],
        [(m, "shared") for m in ("wmpi", "winmpich", "hpvm", "wmpi:rival")],
    ):
        shown = drawing.looks(keys)
        assert len({(v.symbol, v.dash) for v in shown.values()}) == len(keys)
        assert len(set(shown.values())) == len(keys)


def test_knee_marks_stand_on_their_curve_only() -> None:
    check = {"kind": "knee", "models": ["nemesis"], "mode": "shared cache", "feature": "drop"}
    knee = overlay._of_check(claims.find("KB-03"), check, {}, 4 << 20)
    low, high = claims.find("KB-03").low, claims.find("KB-03").high
    assert knee == [("bandwidth", "knee", low, high, None, None, None)]
    mark = overlay.StatementMark("KB-03", ("nemesis",), "shared cache", *knee[0], "text", "validate", "pass")
    plan = CurveFigure("x", "X", "bandwidth", (("*", "*"),))
    mine = exhibits.curves(points("nemesis", "shared cache", 1), plan)
    other = exhibits.curves(points("nemesis", "split cache", 1), plan)
    assert drawing.marks_of(plan, mine, [mark]) == [mark]
    assert drawing.marks_of(plan, other, [mark]) == []
    assert drawing.marks_of(replace(plan, published=False), mine, [mark]) == []
    assert drawing.marks_of(replace(plan, what="time"), mine, [mark]) == []


def test_a_figure_places_numbers_itself() -> None:
    plan = CurveFigure(
        "x", "X", "time", (("*", "*"),), at=(("KB-01", "nemesis", "shared cache", "0 B"), ("KB-03", "nemesis", "shared cache", "0 B"))
    )
    (mark,) = overlay.place_marks(claims.by_paper("krishna-2010"), plan)  # the other one is no time
    low = claims.find("KB-01").low
    assert low is not None
    assert (mark.x0, mark.low, mark.shape) == (0, pytest.approx(low * 1e-3), "point")
    with refused(InputError, "bad-input | 'at'"):
        read_figures([{"name": "x", "title": "X", "what": "time", "curves": [], "at": [["KB-01", "nemesis"]]}], Path("x.toml"))


@pytest.fixture
def rinf(monkeypatch: pytest.MonkeyPatch) -> Reproduction:
    """A study with a grid of minima and maxima, and a checked fact."""
    checks = {
        "BF-R-01S": ({"kind": "extremes", "path": "rinf.server.dyads"},),
        "BF-R-01W": ({"kind": "extremes", "path": "rinf.workstation.dyads"},),
        "BF-FUN-11": ({"kind": "fact", "path": "rate"},),
    }
    for module in (verdicts, exhibits, overlay):
        monkeypatch.setattr(module, "checks", lambda: checks)
    server = claims.find("BF-R-01S")
    assert server.low is not None
    assert server.high is not None
    facts = {"rinf": {"server": {"dyads": {"min": server.low * 1e6, "max": server.high * 1.1e6}}}, "rate": 0.335}
    plan = ClaimTable(
        "rinf1",
        "Rinf1",
        cells=r"BF-R-(?P<row>\d+)(?P<column>[SW])",
        names={"W": "Workstation", "S": "Server"},
        row_name="system",
        scatter="numbers",
        groups={"Server": "BF-R-*S"},
    )
    listed = ClaimTable("functions", "Functions", ("BF-FUN-11", "BF-SM-10"))
    return made_up(replace(BARE, table_plans=(plan, listed)), facts)


def test_a_grid_has_the_papers_rows_and_columns(rinf: Reproduction) -> None:
    plan = rinf.paper.table_plans[0]
    assert isinstance(plan, ClaimTable)
    found = exhibits.grid(rinf, plan)
    assert found.columns == ("Workstation", "Server")  # as the file names them
    assert found.rows[0] == "Contiguous dyads"
    assert len(found.rows) == 18  # the loops and their mean
    cell = found.cells["Contiguous dyads", "Server"]
    assert [p.part for p in cell.pairs] == ["min", "max"]
    assert [p.deviation for p in cell.pairs] == [pytest.approx(0), pytest.approx(0.1)]
    assert found.cells["Contiguous dyads", "Workstation"].pairs == ()
    html = tables.table_html(rinf, plan)
    assert "+10.0 %" in html
    assert "not simulated" in html
    flat = tables.flat_table(rinf, plan)
    assert {r["claim"] for r in flat} == {c.claim.id for c in found.cells.values()}
    assert [r["deviation_percent"] for r in flat if r["claim"] == "BF-R-01S"] == [pytest.approx(0), pytest.approx(10)]


def test_a_table_of_claims_compares_numbers_and_keeps_words(rinf: Reproduction) -> None:
    plan = rinf.paper.table_plans[1]
    by_id = {r["id"]: r for r in tables.flat_table(rinf, plan)}
    assert by_id["BF-FUN-11"]["simulated"] == 0.335
    assert by_id["BF-FUN-11"]["verdict"] == "pass"
    assert by_id["BF-SM-10"]["deviation_percent"] is None
    assert by_id["BF-SM-10"]["verdict"] == "unjudged"


def test_a_scatter_draws_each_pair_once(rinf: Reproduction) -> None:
    drawn = render.study_figures(rinf)
    assert set(drawn) == {"rinf1-scatter"}
    figure = drawn["rinf1-scatter"]
    assert list(figure.data[1].x) == list(figure.data[1].y)  # the line on which both are equal
    held = [t for t in figure.data if t.mode == "markers"]
    claim = claims.find("BF-R-01S")
    assert [(list(t.x), list(t.y)) for t in held] == [
        ([claim.low, claim.high], [pytest.approx(claim.low), pytest.approx(claim.high * 1.1)])
    ]
    assert held[0].name == "Server, fitted"
    assert figure.layout.xaxis.range == figure.layout.yaxis.range


def test_what_a_log_axis_cannot_show_is_left_out() -> None:
    plan = ScatterFigure("x", "X", ("*",))
    zero = exhibits.NumberPair("A", "", 0.0, 1.0, 0.0, 0.0, "s", "validate", "fail")
    assert [t.mode for t in numbers.scatter_figure([zero], plan).data] == ["lines", "lines"]
    linear = numbers.scatter_figure([zero], replace(plan, scale="linear"))
    assert [t.name for t in linear.data] == ["within 15%", "equal", "held out", "claim fails"]
    assert linear.data[-1].text == ("A",)
    assert len(numbers.scatter_figure([zero], replace(plan, scale="linear", show="deviation")).data) == 2
    assert zero.deviation is None


def test_deviations_and_failures_are_drawn() -> None:
    pair = exhibits.NumberPair("A", "max", 2.0, 3.0, 2.0, 2.0, "s", "validate", "fail")
    figure = numbers.scatter_figure(
        [pair, replace(pair, claim="B", use="calibrate", verdict="pass")], ScatterFigure("x", "X", ("*",), show="deviation")
    )
    by_name = {t.name: t for t in figure.data}
    assert list(by_name["held out"].y) == [pytest.approx(50)]
    assert list(by_name["equal"].y) == [0, 0]
    assert list(by_name["claim fails"].text) == ["A max"]
    many = numbers.scatter_figure([replace(pair, claim=str(i)) for i in range(9)], ScatterFigure("x", "X", ("*",)))
    assert many.data[-1].mode == "markers"  # so many labels would cover each other


def test_several_units_meet_on_one_axis() -> None:
    pair = exhibits.NumberPair("A", "", 1.5, 1.6, 1.5, 1.5, "GByte/s", "validate", "pass")
    both = numbers.one_unit([pair, replace(pair, unit="MByte/s")])
    assert [(p.unit, p.published) for p in both] == [("MByte/s", 1500), ("MByte/s", 1.5)]
    assert numbers.one_unit([pair, pair]) == [pair, pair]


@for_each(
    "facts, columns, wanted",
    [
        ({"a": {"x": 1, "in": {"y": 2}}, "b": {"x": 3}}, (), [{"who": "a", "x": 1, "in.y": 2}, {"who": "b", "x": 3}]),
        ({"a": {"x": 1, "z": 9}}, (("x", "the x"),), [{"who": "a", "x": 1}]),
        ([{"x": 1}, {"x": 2}], (), [{"x": 1}, {"x": 2}]),
        ({"speed": 3.0, "name": "n"}, (), [{"who": "speed", "value": 3.0}, {"who": "name", "value": "n"}]),
        (None, (), []),
        (3.0, (), []),
    ],
)
def test_facts_of_any_shape_become_rows(facts: Any, columns: Any, wanted: Any) -> None:
    table = FactTable("x", "X", "some.facts", ("who",), columns)
    assert exhibits.fact_rows({"some": {"facts": facts}}, table) == wanted


def test_nested_facts_are_opened_as_deep_as_there_are_keys() -> None:
    facts = {
        "suite": {
            "wmpi": {"default": {"shared": {"failed": 3}, "distributed": {"failed": 4}}},
            "hpvm": {"default": {"shared": {"failed": 9}}},
        }
    }
    rows = exhibits.fact_rows(facts, FactTable("x", "X", "suite", ("runtime", "pool", "mode"), (("failed", "failed"),)))
    assert rows == [
        {"runtime": "wmpi", "pool": "default", "mode": "shared", "failed": 3},
        {"runtime": "wmpi", "pool": "default", "mode": "distributed", "failed": 4},
        {"runtime": "hpvm", "pool": "default", "mode": "shared", "failed": 9},
    ]
    listed = {"hpvm": {"rows": [{"bytes": 1}, {"bytes": 2}]}}
    assert exhibits.fact_rows({"b": listed}, FactTable("x", "X", "b", ("runtime", "what"))) == [
        {"runtime": "hpvm", "what": "rows", "bytes": 1},
        {"runtime": "hpvm", "what": "rows", "bytes": 2},
    ]


def test_a_table_of_facts_is_formatted() -> None:
    plan = FactTable(
        "x", "X", "f", ("runtime",), (("share", "share that <fails>", "%"), ("took", "took", "s"), ("ok", "ok"), ("why", "why"))
    )
    html = tables.table_html(made_up(BARE, {"f": {"wmpi": {"share": 0.125, "took": 0.002, "ok": True, "why": ["a<b", 2]}}}), plan)
    assert "WMPI" in html
    assert "12.5 %" in html
    assert "2 ms" in html
    assert "yes" in html
    assert "a&lt;b; 2" in html
    assert "share that &lt;fails&gt;" in html
    assert "Nothing was simulated" in tables.table_html(made_up(BARE), plan)


def test_a_figure_of_facts_has_a_series_for_each_column_and_key() -> None:
    plan = FactFigure("x", "X", "scale", "machines", (("chain", "chain"), ("tree", "tree")), "machines", "times a local copy")
    rows = [{"machines": 100, "chain": 1.2, "tree": 1.1}, {"machines": 10, "chain": 1.0, "tree": None}]
    found = exhibits.fact_series({"scale": rows}, plan)
    assert [(c.legend, c.x, c.y) for c in found] == [("chain", (10, 100), (1.0, 1.2)), ("tree", (100,), (1.1,))]
    both = exhibits.fact_series({"scale": {"myrinet": rows, "ethernet": rows}}, plan)
    assert [c.legend for c in both] == ["myrinet, chain", "myrinet, tree", "ethernet, chain", "ethernet, tree"]
    assert len(numbers.fact_figure(both, plan).data) == 4
    assert [(c.x, c.y) for c in exhibits.fact_series({"scale": {"1": 1.0, "16": 0.5}}, plan)] == [((1, 16), (1.0, 0.5))]
    by_key = exhibits.fact_series({"scale": {"100": rows[0], "1000": rows[1]}}, plan)
    assert [(c.x, c.y) for c in by_key] == [((10, 100), (1.0, 1.2)), ((100,), (1.1,))]  # the row's own number comes first
    assert exhibits.fact_series({}, plan) == []


def test_a_study_without_figures_shows_every_mode() -> None:
    drawn = render.study_figures(made_up(BARE, {}, points("wmpi", "a", 1) + points("wmpi", "b", 1)))
    assert [f.layout.title.text for f in drawn.values()] == ["a: time", "a: bandwidth", "b: time", "b: bandwidth"]


# --- the systems and the matrix ---


def test_every_claim_has_one_system_of_one_paper() -> None:
    papers: dict[str, set[str]] = {}
    for claim in claims.load():
        papers.setdefault(systems.system_of(claim), set()).add(claims.paper_key(claim.paper))
    assert set(papers) == set(systems.systems())
    assert all(len(p) == 1 for p in papers.values()), papers  # a cell leads to one page


@for_each(
    "claim, system",
    [
        ("BF-SM-01", "WMPI"),
        ("BF-SM-21", "several NT runtimes"),
        ("BF-FUN-10", "several NT runtimes"),
        ("BF-FUN-07", "HPVM"),
        ("BF-R-01S", "NT machines"),
        ("BF-DM-16", "NT machines"),
        ("KB-16", "Nemesis"),
        ("HW-05", "Cray MPT"),
        ("LW-02", "MPI-BIP"),
        ("LW-R-08", "replication"),
    ],
)
def test_systems_are_what_the_claims_are_about(claim: str, system: str) -> None:
    assert systems.system_of(claims.find(claim)) == system


def test_a_claim_without_a_group_is_about_its_system() -> None:
    assert systems.system_of(replace(claims.find("BF-SM-01"), system="LAM", group="")) == "LAM"
    assert systems.system_of(replace(claims.find("KB-16"), system="WMPI", group="", paper="elsewhere")) == "WMPI"


def test_the_matrix_counts_every_claim_once(rinf: Reproduction) -> None:
    score = front.scorecard([rinf])
    matrix = score.matrix()
    assert sum(sum(n.values()) for n in matrix.values()) == len(claims.load())
    by_use = Counter(c.use for c in claims.load())
    for use, count in by_use.items():
        assert sum(sum(n.values()) for (_, _, u), n in matrix.items() if u == use) == count
    assert matrix["WinMPICH", "quant", "calibrate"]["pass"] == 1
    assert {c.use for c, _ in score.shown_only()} == {"context", "exclude"}
    assert {c.use for c, _ in score.defects()} == set(front.JUDGED)
    assert len(score.defects()) + len(score.shown_only()) + sum(v.verdict != "unjudged" for v in score.verdicts) == len(score.claims)


CARD = cards.Card("wmpi", "WMPI", "1", "1998", "", (), (), ())
MADE = front.AtlasProvenance((("made", "2026-01-01"), ("machine", "a <machine>")))


@pytest.fixture
def no_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "model_card", lambda model, platform: CARD)


@pytest.mark.usefixtures("no_cards")
def test_every_link_of_the_atlas_leads_somewhere(rinf: Reproduction, tmp_path: Path) -> None:
    atlas = render.write_atlas([rinf], tmp_path, MADE)
    pages = {p.name: Page(p.read_text(encoding="utf-8")) for p in tmp_path.glob("*.html")}
    assert set(pages) == {"machines.html", "blind.html", *(p.page.name for p in (atlas, *atlas.studies))}
    assert set(pages) == {"index.html", "baker-fox.html", "machines.html", "blind.html"}
    for name, page in pages.items():
        assert page.fetched == []
        assert len(page.ids) == len(set(page.ids))
        for link in (to for to in page.links if to != "None"):  # anchors may be places only
            target, _, place = link.partition("#")
            assert (target or name) in pages, link
            assert not place or place in pages[target or name].ids, link
    cells = [link for link in pages["index.html"].links if "#cell-" in link]
    mine = {(systems.system_of(c), c.kind, c.use) for c in rinf.claims if c.use in front.JUDGED}
    assert len(cells) == len(mine)
    assert "index.html" in pages["baker-fox.html"].links


LADDER = {
    "fidelity": {
        "wmpi": {
            "nt-pair shared": {
                "curve_off": 0.012,
                "loggp_off": 0.25,
                "spread": {"median": 1.01, "max": 1.3},
                "rows": [{"size_B": s, "mechanism_us": 1.0 + s, "curve_us": 1.1 + s, "loggp_us": 2.0 + s, "spread": 2.0} for s in (0, 64)],
            }
        }
    }
}


@pytest.mark.usefixtures("no_cards")
def test_the_ladder_is_drawn_and_told(tmp_path: Path) -> None:
    ladder = made_up(BARE, LADDER)
    (figure,) = render.study_figures(ladder).values()
    assert [t.name for t in figure.data] == ["WMPI, mechanism", "WMPI, curve", "WMPI, loggp"]
    assert len({(t.line.dash, t.marker.symbol) for t in figure.data}) == 3
    text = render.write(ladder, tmp_path).page.read_text(encoding="utf-8")
    assert "1.2 %" in text
    assert "25 %" in text
    assert 'id="fidelity"' in text
    assert (tmp_path / "baker-fox-fidelity.csv").read_text(encoding="utf-8").count("\n") == 7


@pytest.mark.usefixtures("no_cards")
def test_the_front_page_shows_failures_defects_and_how_it_was_made(rinf: Reproduction, tmp_path: Path) -> None:
    bad = [replace(v, verdict="fail") if v.id == "BF-FUN-11" else v for v in rinf.verdicts]
    failing = replace(rinf, verdicts=bad, facts={**rinf.facts, **LADDER})
    atlas = render.write_atlas([failing], tmp_path, MADE)
    text = atlas.page.read_text(encoding="utf-8")
    assert "What fails: 1" in text
    assert '<a class="id" href="baker-fox.html#BF-FUN-11">' in text
    assert "claims that must be judged are not" in text
    assert "krishna-2010: not reproduced" in text
    assert "a &lt;machine&gt;" in text
    assert "The fidelity ladder" in text
    assert text.index('id="figure-glance"') < text.index("<h2"), "the page opens with its figure"
    assert "baker-fox and baker-fox-long" in text
    with (tmp_path / "atlas-matrix.csv").open(newline="", encoding="utf-8") as handle:
        assert sum(int(r["pass"]) + int(r["fail"]) + int(r["unjudged"]) for r in csv.DictReader(handle)) == len(claims.load())
    names = {p.name for p in tmp_path.iterdir()}
    assert {"atlas-verdicts.csv", "atlas-fidelity.csv", "baker-fox-table-rinf1.csv"} <= names


def test_without_defects_the_page_says_so(rinf: Reproduction) -> None:
    score = front.scorecard([rinf])
    every = [replace(v, verdict="pass") if v.use in front.JUDGED else v for v in score.verdicts]
    text = front.front_page(replace(score, verdicts=tuple(every)), MADE)
    assert "Every claim that can be judged has been judged." in text
    assert 'class="defect"' not in text
    assert "<p>None.</p>" in text


def test_the_figure_at_a_glance_has_what_is_held_out_and_what_was_blind() -> None:
    held = next(c for c in claims.load() if c.use == "validate")
    made = verdicts.Verdict("A", "s", "validate", "pass", 3.0, 1.0, 4.0, "ms", "")
    changes: list[dict[str, Any]] = [{}, {"verdict": "fail", "observed": 8.0}, {"use": "calibrate"}, {"high": None}, {"observed": "words"},
                                     {"verdict": "unjudged"}, {"low": -1.0}]
    rows = [replace(made, **change) for change in changes]
    assert [glance.ratio(v) for v in rows] == [1.5, 4.0, 1.5, None, None, 1.5, None]
    score = next(s for s in scores.scores())
    passed, failed, blind = glance.figure([held] * len(rows), rows, [score]).data
    assert (list(passed.x), list(failed.x), list(blind.x)) == ([1.5], [4.0], [1 + score.bias])
    assert set(passed.y) == {claims.paper_key(held.paper)}
    assert list(blind.y) == [f"blind: {score.runtime}"]
    drawn = glance.figure(claims.load(), front.scorecard([]).verdicts, scores.scores())
    assert len(drawn.data[2].x) == len(scores.scores())


# --- one pool for all studies ---


class Shelf:
    """Stands for a store."""

    def __init__(self) -> None:
        self.kept: list[str] = []

    def add_verdicts(self, paper: str, rows: Any, run_ids: Any = ()) -> int:
        self.kept.append(paper)
        return 1


@pytest.fixture
def two_studies(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[str, int], Done]], None]:
    """Two studies of three jobs each; the function says what a job (study, number) does."""
    plans = {p: Paper(p, p, "", (), ("nt-pair",), ("made-up",)) for p in ("baker-fox", "krishna-2010")}
    monkeypatch.setattr(reproduction, "find_paper", lambda name: plans[name])

    def use(work: Callable[[str, int], Done]) -> None:
        def jobs(kind: str, plan: Paper, store: Any, fresh: bool) -> list[Job]:
            return [Job(f"job {i}", lambda i=i: work(plan.key, i), float(i)) for i in (1, 2, 3)]

        monkeypatch.setattr(reproduction, "jobs", jobs)

    return use


def test_jobs_of_all_studies_run_together(two_studies: Any) -> None:
    together = threading.Barrier(2, timeout=20)
    begun: list[tuple[str, int]] = []

    def work(paper: str, i: int) -> Done:
        begun.append((paper, i))
        if i == 3:
            together.wait()  # passes only when the longest of both studies run at the same time
        return Done(f"got.{i}", {"of": paper}, (10 * i + len(paper),), 1)

    two_studies(work)
    seen: list[tuple[int, int, str]] = []
    shelf: Any = Shelf()
    found = reproduction.run_papers(["baker-fox", "krishna-2010"], shelf, progress=lambda *a: seen.append(a), workers=2)
    assert {i for _, i in begun[:2]} == {3}  # the longest first, of whichever study
    assert [s.paper.key for s in found] == ["baker-fox", "krishna-2010"] == shelf.kept
    for s in found:
        assert s.facts["got"] == {str(i): {"of": s.paper.key} for i in (1, 2, 3)}
        assert s.runs == tuple(10 * i + len(s.paper.key) for i in (1, 2, 3))
        assert s.simulated == 3
    assert seen[-1][:2] == (12000, 12000)
    assert {what for _, _, what in seen} == {f"{p}: job {i}" for p in ("baker-fox", "krishna-2010") for i in (1, 2, 3)}


def test_one_worker_gives_the_same(two_studies: Any) -> None:
    two_studies(lambda paper, i: Done("points", points(paper, f"m{i}", i), (i,), 0))
    one, two = (reproduction.run_papers(["krishna-2010"], Shelf(), workers=n) for n in (1, 3))  # type: ignore[arg-type]
    assert one == two


def test_after_a_failure_nothing_new_begins(two_studies: Any) -> None:
    begun: list[int] = []

    def work(paper: str, i: int) -> Done:
        begun.append(i)
        if i == 3:
            time.sleep(0.05)
            raise RetrompiError("the engine stopped")
        return Done(f"got.{i}", {})

    two_studies(work)
    shelf = Shelf()
    with pytest.raises(RetrompiError, match="the engine stopped"):
        reproduction.run_papers(["baker-fox", "krishna-2010"], shelf, workers=1)  # type: ignore[arg-type]
    assert len(begun) < 6
    assert shelf.kept == []


# --- the command ---


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one study there is, at two sizes and with few starts."""
    plan = find_paper("baker-fox")
    options = {
        "pingpong": {"modes": ["shared"], "sizes": "0,1KiB"},
        "startup": {**plan.options("startup"), "starts": 20},
        "anatomy": {"messages": plan.options("anatomy")["messages"][:1]},
    }
    one = replace(plan, experiments=("pingpong", "startup", "anatomy"), tables=options)
    monkeypatch.setattr(paper, "all_papers", lambda: {"baker-fox": one})


@pytest.mark.usefixtures("small")
def test_reproduce_all_for_real_and_again_from_the_store(retrompi: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from retrompi import papers as validate

    monkeypatch.setattr(validate, "all_papers", paper.all_papers, raising=False)
    arguments = ("reproduce", "all", "--out", str(tmp_path / "out"), "--store", str(tmp_path / "runs.db"), "--jobs", "2")
    first = retrompi(*arguments)
    assert (first.code, first.err) == (0, "")  # silent in a pipe
    assert re.search(r"^baker-fox +\d+ of \d+ \(", first.out, re.M)
    assert re.search(r"^krishna-2010 +- +- +17", first.out, re.M)
    assert re.search(r"^all ", first.out, re.M)
    runs = 3 + 3 + 1
    assert f"{runs} runs: {runs} simulated, 0 found in the store" in first.out
    assert first.out.endswith(f"report: {tmp_path / 'out' / 'index.html'}\n")
    page = (tmp_path / "out" / "baker-fox.html").read_bytes()
    again = retrompi(*arguments, "--json")
    rows = json.loads(again.out)
    assert [r["id"] for r in rows] == [c.id for c in claims.load()]
    assert (tmp_path / "out" / "baker-fox.html").read_bytes() == page
    assert f"{runs} found in the store" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert len(open_store(tmp_path / "runs.db").runs()) == runs
    table = list(csv.DictReader(retrompi(*arguments, "--csv").out.splitlines()))
    assert [r["verdict"] for r in table] == [r["verdict"] for r in rows]


def test_jobs_are_passed_on_and_checked(retrompi: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from retrompi import papers as validate

    asked: list[Any] = []

    def run_papers(names: Any, store: Any, fresh: bool, progress: Any, *, workers: int, fidelity: str) -> list[Reproduction]:
        asked.append((tuple(names), workers))
        return [made_up(find_paper(n)) for n in names]

    monkeypatch.setattr(validate, "run_papers", run_papers, raising=False)
    assert retrompi("validate", "--paper", "baker-fox", "--jobs", "7").code == 0
    assert retrompi("validate").code == 0
    assert asked == [(("baker-fox",), 7), (tuple(all_papers()), reproduction.WORKERS)]
    for command in (("validate",), ("reproduce", "all"), ("reproduce", "baker-fox")):
        refused = retrompi(*command, "--jobs", "0")
        assert refused.code == 2
        assert "--jobs" in refused.err


INTERRUPTED = """
import sys
from dataclasses import replace
from retrompi import papers as validate
from retrompi.cli.main import run
from retrompi.papers.statements import paper

plan = paper.find_paper("baker-fox")
many = ",".join(f"{n}B" for n in range(0, 60000, 50))  # a minute or so of work
tables = {"pingpong": {"modes": ["distributed"], "sizes": many}, "startup": {**plan.options("startup"), "starts": 5}}
one = replace(plan, models=("hpvm",), experiments=("pingpong", "startup"), tables=tables)
paper.all_papers = validate.all_papers = lambda: {"baker-fox": one}
sys.exit(run(sys.argv[1:]))
"""


def test_an_interrupt_leaves_what_was_simulated(tmp_path: Path) -> None:
    place = tmp_path / "runs.db"
    arguments = ["reproduce", "all", "--jobs", "2", "--out", str(tmp_path / "out"), "--store", str(place)]
    open_store(place)
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        deadline = time.monotonic() + 300
        while not open_store(place).runs() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does it: to every process of the group
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
    assert (process.returncode, out, err.strip()) == (130, "", "error: interrupted")
    assert [r["kind"] for r in open_store(place).runs()] == ["startup"]
    assert not (tmp_path / "out").exists()


# --- the promise ---


@for_each("paper", claims.papers())
def test_every_claim_that_can_be_judged_has_a_check(paper: str) -> None:
    """Only definitions, what a paper contradicts itself in, and what docs/second-atlas.md decided not to judge, may stay unjudged."""
    checks = claims.checks()
    missing = [c.id for c in claims.by_paper(paper) if c.use in front.JUDGED and all(k["kind"] == "none" for k in checks.get(c.id, ()))]
    decided = ["TC02-011", *(f"MT94-{n:03}" for n in range(19, 43))]
    assert [i for i in missing if i not in decided] == []
    assert all(k.get("why") for i in missing for k in checks[i])


def test_every_paper_of_the_reference_has_a_study() -> None:
    assert list(all_papers()) == claims.papers()


@for_each("key", list(all_papers()))
def test_every_experiment_of_a_study_exists(key: str) -> None:
    paper = find_paper(key)
    assert set(paper.experiments) <= set(kinds_of_experiment(paper.folder))
