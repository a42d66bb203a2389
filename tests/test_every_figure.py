"""Every figure of the package, each drawn once with few numbers: axes have titles and numbers where there are points, stages stand in the
order of the message's path, and what a line or a mark means is in the legend."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import isfinite, log10
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest
from test_compare import MODEL, NATIVE, SEEN, SMPI

import retrompi
from retrompi.labs import lab as _lab
from retrompi.labs import report as lab_report
from retrompi.labs.bench import Bench
from retrompi.labs.student import draw
from retrompi.measure import compare
from retrompi.measure.compare import suite
from retrompi.papers.predict import predictions, scores
from retrompi.papers.statements import claims
from retrompi.papers.statements.exhibits import FactFigure, MeasuredFigure, ScatterFigure
from retrompi.render.atlas import blind_page, front, glance, predicted
from retrompi.render.figures import exhibits, figures, measured_figures, numbers, sweep_figures
from retrompi.render.pages import compare_page, path_page, runtimes_page, suite_page
from retrompi.render.timeline import timeline_page
from retrompi.sim import simulate, stages
from retrompi.sim.observe import Observe
from retrompi.sim.timeline import TimelineRequest
from retrompi.spec import registry
from retrompi.spec.question import Question, Replay
from retrompi.store import open_store
from retrompi.studies.compare.compare_runtimes import RuntimeRow
from retrompi.studio.anatomy import anatomy_job, scene
from retrompi.studio.cards import memory_levels
from retrompi.studio.curves import drawing
from retrompi.studio.labs import lab_commands
from retrompi.studio.pages import anatomy, start
from retrompi.studio.requests import shipped_figures
from retrompi.traces import generate

ROOT = Path(retrompi.__file__).parent
NAMED = ("category", "bar")
LEAST_TICKS = 2


def made_in_source() -> set[str]:
    """``package.module.function`` of every function that makes a figure."""
    out = set()
    for file in ROOT.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        if "go.Figure(" not in text and "make_subplots(" not in text:
            continue
        module = ".".join(("retrompi", *file.relative_to(ROOT).with_suffix("").parts))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and any(_makes(call) for call in ast.walk(node)):
                out.add(f"{module}.{node.name}")
    return out


def _makes(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("go.Figure", "make_subplots")


class Gallery:
    """Figures by the function that made them."""

    def __init__(self) -> None:
        self.of: dict[str, list[go.Figure]] = {}

    def caught(self, monkeypatch: pytest.MonkeyPatch) -> None:
        gallery, original = self.of, go.Figure

        def keeping(make: Callable[..., go.Figure]) -> Callable[..., go.Figure]:
            def made(*given: Any, **more: Any) -> go.Figure:
                figure, frame = make(*given, **more), sys._getframe(1)
                gallery.setdefault(f"{frame.f_globals['__name__']}.{frame.f_code.co_name}", []).append(figure)
                return figure

            return made

        monkeypatch.setattr(go, "Figure", keeping(original))
        monkeypatch.setattr(compare_page, "make_subplots", keeping(compare_page.make_subplots))


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gallery]:
    folder = tmp_path_factory.mktemp("figures")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RETROMPI_STORE", str(folder / "runs.db"))
        made = Gallery()
        made.caught(patched)
        for draw_ in (of_runs, of_studies, of_papers, of_programs, of_the_studio, of_labs):
            draw_(folder)
        yield made


def of_runs(folder: Path) -> None:
    retrompi.pingpong("wmpi", mode="shared", sizes=["0 B", "64 KiB", "512 KiB"]).plot()
    told = retrompi.message("wmpi", mode="distributed", size="1 KiB")
    told.plot()
    figures.anatomy_figure([{"model": "wmpi", "size_B": 1024, "stages": told.rows}])
    trace = generate.pingpong([65536], 3)
    question = Question("wmpi", "nt-pair", Replay(trace), "distributed")
    path = simulate.run(question, Observe(critical_path=True)).critical_path
    assert path is not None
    path_page.figures([("one", path), ("two", path)])
    seen = simulate.run(question, Observe(timeline=TimelineRequest())).timeline
    assert seen is not None
    for what in ("messages", "bytes"):
        timeline_page.matrix_figure(seen, what)
    times = [("wmpi", "nt-pair", 0.001), ("hpvm", "nt-pair", 0.1), ("wmpi", "nt-cluster", 0.01)]
    runtimes_page.figures([RuntimeRow(m, p, "completed", "", t, False) for m, p, t in times], "times")


def of_studies(folder: Path) -> None:
    few: dict[str, str | float] = {"trace.sizes": "1KiB,4KiB", "trace.reps": 2}
    over = {"wmpi.packet": ["32 KiB", "64 KiB", "128 KiB"], "platform.host.quantum": ["60 ms", "120 ms"], "model": ["wmpi"]}
    found = retrompi.sweep("bf-wmpi-shared", over, set=few)
    for metric in (None, "time@4KiB"):
        view = found.view(metric)
        for plan in sweep_figures.choose(view):
            sweep_figures.draw(view, plan)
        for kind in ("lines", "speedup", "heat", "bars", "scatter", "parallel"):
            sweep_figures.draw(view, sweep_figures.FigurePlan(kind, "wmpi.packet", ("platform.host.quantum",)))
    retrompi.optimise("bf-wmpi-shared", {"wmpi.event": "1us..100us"}, metric="time@4KiB", set=few, trials=2).plot()


def of_papers(folder: Path) -> None:
    pair = exhibits.NumberPair("A", "", 2.0, 3.0, 2.0, 2.0, "s", "validate", "fail")
    pairs = [pair, replace(pair, claim="B", published=40.0, simulated=41.0, verdict="pass")]
    for show in ("simulated", "deviation"):
        numbers.scatter_figure(pairs, ScatterFigure("x", "X", ("*",), show=show))
    curve = exhibits.FigureCurve("", "", "chain", (10.0, 100.0, 1000.0), (1.0, 1.2, 9.0))
    numbers.fact_figure([curve], FactFigure("x", "X", "", "", (), "ranks", "time, s"))
    papers = dict.fromkeys(told["paper"] for told in predictions.shipped_predictions().values())
    predicted.blind_figures(next(iter(papers)))
    for score in [s for s in scores.scores() if s.opened][:2]:
        blind_page.figure(score)
    glance.figure(claims.load(), front.scorecard([]).verdicts, scores.scores())
    points = [{"curve": "a", "size_B": size, "simulated_us": 30 + size / 9, "published_us": 31 + size / 9, "error": 0.01}
              for size in (0, 64, 4096)]
    for what in ("time", "bandwidth"):
        measured_figures.measured_figure(MeasuredFigure("x", "X", ("*",), what), points, {"a": "A machine"})


def of_programs(folder: Path) -> None:
    c = compare.build([NATIVE, MODEL, SMPI], SEEN)
    compare_page.figures(c)
    few = compare.build([replace(e, sections={k: e.sections[k] for k in ("1", "64")}) for e in (NATIVE, MODEL)], SEEN)
    compare_page.figures(few)
    judged = suite.CaseResult(suite.Case("a", "a.c", (), "collective"), c, None)
    suite_page.figure([judged], 0.1, "model", "native")


def of_the_studio(folder: Path) -> None:
    memory_levels.figure(registry.platform("nt-pair"))
    memory_levels.figure(registry.platform("cray-t3e"))
    story = shipped_figures.answer("/")
    assert story is not None
    start._partial_figure(story)  # its axes; the page draws it
    for page in ("/curves", "/whatif"):
        told = shipped_figures.answer(page)
        for series in ("time", "bandwidth"):
            for y in ("log", "linear"):
                (drawing.curves_figure if page == "/curves" else drawing.what_if_figure)(told, series, y)
    messages = [{"model": model, "platform": "nt-pair", "mode": "distributed", "size": "1KiB", "set": ""} for model in ("wmpi", "winmpich")]
    anatomy.figure(anatomy_job.travel(lambda *_: None, messages, "there"))


def of_labs(folder: Path) -> None:
    for sizes in (["0 B", "1 KiB", "1 MiB"], ["6 KiB", "8 KiB", "14 KiB"]):
        rows = retrompi.pingpong("wmpi", mode="shared", sizes=sizes).rows
        for series in ("time", "bandwidth"):
            lab_commands._curve_figure(rows, series)
    lab = _lab.lab("1")
    lab_report._curves(lab, draw(lab, "Ann"), Bench(open_store(folder / "runs.db"), folder))


def axes_of(figure: go.Figure) -> dict[str, list[Any]]:
    """``xaxis``, ``yaxis2``, … -> the coordinates of the points on it."""
    out: dict[str, list[Any]] = {}
    for trace in figure.data:
        if not hasattr(trace, "xaxis"):  # parallel coordinates have axes of their own
            continue
        for way in ("x", "y"):
            name = f"{way}axis{(getattr(trace, f'{way}axis', None) or way)[1:]}"
            values = [v for v in (getattr(trace, way) if getattr(trace, way) is not None else ()) if v is not None]
            out.setdefault(name, []).extend(values)
    return {name: values for name, values in out.items() if values}


def faults(figure: go.Figure) -> list[str]:
    """What is missing on the axes of a figure."""
    out = []
    for name, values in axes_of(figure).items():
        axis = figure.layout[name]
        words = axis.type == "category" or any(isinstance(v, str) for v in values)
        # Names of bars and of rows say themselves what they are, and of two figures above each other the lower has the title of both.
        if not (axis.title.text or words or figure.layout["xaxis2"].title.text):
            out.append(f"{name} has no title")
        if words or axis.tickvals is None:
            continue
        known = [float(v) for v in values if isfinite(float(v)) and (axis.type != "log" or float(v) > 0)]
        ends = axis.range or ([log10(min(known)), log10(max(known))] if axis.type == "log" else [min(known), max(known)])
        low, high = [10.0**e for e in ends] if axis.type == "log" else ends
        ticks = [text for at, text in zip(axis.tickvals, axis.ticktext, strict=True) if low * (1 - 1e-9) <= at <= high * (1 + 1e-9)]
        if sum(bool(t) for t in ticks) < LEAST_TICKS and high > low:
            out.append(f"{name} has {len(ticks)} numbers between {low:g} and {high:g}")
    return out


def test_every_function_that_makes_a_figure_is_here(gallery: Gallery) -> None:
    again = {"retrompi.studio.labs.lab_page.form_result"}  # what a job has made
    assert made_in_source() - again - set(gallery.of) == set()


def test_axes_have_titles_and_numbers(gallery: Gallery) -> None:
    found = {name: told for name, all_ in gallery.of.items() if (told := [f for figure in all_ for f in faults(figure)])}
    assert found == {}


def untold(figure: go.Figure) -> list[str]:
    """Lines and points of a figure of several of which the legend says nothing."""
    lines = [t for t in figure.data if t.type == "scatter"]
    legend = [t for t in lines if t.showlegend is not False and t.name and figure.layout.showlegend is not False]
    groups, words = {t.legendgroup for t in legend} - {None}, " ".join(t.name for t in legend)
    published = "published" in words
    told = [t in legend or t.legendgroup in groups or (published and t.hoverinfo == "text") or t.meta == "interval" for t in lines]
    out = [str(t.hovertemplate or t.name) for t, known in zip(lines, told, strict=True) if not known and len(lines) > 1]
    bands = [t for t in lines if t.meta == "interval"]
    return out + ["intervals"] * (bool(bands) and not any(word in words for word in ("interval", "draws", "repetitions")))


def test_what_a_line_or_a_mark_means_is_in_the_legend(gallery: Gallery) -> None:
    assert {name: told for name, all_ in gallery.of.items() if (told := [u for figure in all_ for u in untold(figure)])} == {}
    knees = [f for f in gallery.of["retrompi.render.figures.figures.curve_figure"] if any(s.line.dash == "dash" for s in f.layout.shapes)]
    assert knees
    assert all("published: here the curve changes" in {t.name for t in f.data} for f in knees)


def test_stages_stand_in_the_order_of_the_path(gallery: Gallery) -> None:
    assert [s for s in stages.ORDER if s in scene.STAGES] == list(scene.STAGES)
    for name in ("retrompi.render.figures.figures.anatomy_figure", "retrompi.studio.pages.anatomy.figure"):
        for figure in gallery.of[name]:
            told = [t.name for t in figure.data if t.name in stages.ORDER]
            assert len(told) > 3
            assert told == sorted(told, key=stages.place_of), name
    (sums,) = gallery.of["retrompi.render.pages.path_page._sums"]
    told = list(sums.data[0].y)
    assert told == sorted(told, key=stages.place_of)


def test_rows_of_a_message_lead_from_the_sender_to_the_receiver() -> None:
    between = ["rank 0", "daemon on server", "wire", "daemon on workstation", "rank 1"]
    for mode, whose in (("shared", ["rank 0", "rank 1"]), ("distributed", between)):
        rows = retrompi.message("wmpi", mode=mode, size="64 KiB").rows
        met = list(dict.fromkeys(r["process"] for r in rows))
        assert [p for p in met if p in whose] == whose
        for process in met:
            mine = [r["stage"] for r in rows if r["process"] == process]
            assert mine == sorted(mine, key=stages.place_of)
