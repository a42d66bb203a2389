"""Figures, tables and pages.

    written = write(study, "out")            # out/<paper>.html and CSV files
    atlas = write_atlas(studies, "out", "...")  # a page for each paper and out/index.html

All content is computed by pure functions (`exhibits`, `figures.anatomy_bars`, `overlay.marks`) before it is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.papers.statements.exhibits import CurveFigure, MeasuredFigure

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from retrompi.measure.stored_curves import StoredCurve
    from retrompi.papers.reproduce.network_agreement import NetworkAgreement
    from retrompi.papers.reproduce.reproduction import Reproduction
    from retrompi.papers.statements.exhibits import FigurePlan
    from retrompi.render.atlas.front import AtlasProvenance
    from retrompi.render.figures.overlay import StatementMark

__all__ = ["Atlas", "WrittenPage", "csv_tables", "study_figures", "with_measured", "write", "write_atlas"]


@dataclass(frozen=True)
class WrittenPage:
    """The files written: the page, the CSV files, the images, and one line on images that could not be made."""

    page: Path
    tables: tuple[Path, ...]
    images: tuple[Path, ...]
    missing: str = ""


@dataclass(frozen=True)
class Atlas:
    """The files written: the front page, its CSV files, and the pages of the studies."""

    page: Path
    tables: tuple[Path, ...]
    studies: tuple[WrittenPage, ...]

    @property
    def missing(self) -> str:
        """One line on images that could not be made; "" if there are none."""
        return next((s.missing for s in self.studies if s.missing), "")


def _marks(study: Reproduction) -> list[StatementMark]:
    from retrompi.render.figures.overlay import marks

    last = max((int(p["size_B"]) for p in study.points), default=4 << 20)
    return marks(study.claims, study.verdicts, last=last)


def _plans(study: Reproduction) -> tuple[FigurePlan, ...]:
    """The study's figures; if its file has none, its measured curves, and time and bandwidth of every simulated mode."""
    from retrompi.papers.statements.curves import of

    if study.paper.figure_plans:
        return study.paper.figure_plans
    modes = dict.fromkeys(str(p["mode"]) for p in study.points)
    curves = [c.name for c in of(study.paper) if not c.blind]
    measured = (MeasuredFigure("curves", "Measured curves (points) and simulated ones (lines)", tuple(curves)),) if curves else ()
    return measured + tuple(
        CurveFigure(f"mode{i}-{what}", f"{mode}: {what}", what, (("*", mode),))
        for i, mode in enumerate(modes, 1)
        for what in ("time", "bandwidth")
    )


def _figure(study: Reproduction, plan: FigurePlan, found: Sequence[StatementMark]) -> go.Figure:
    from retrompi.measure.stored_curves import curves_for
    from retrompi.papers.statements.exhibits import ScatterFigure
    from retrompi.render.figures import stored_curves
    from retrompi.render.figures.exhibits import fact_series, with_bands
    from retrompi.render.figures.figures import curve_figure
    from retrompi.render.figures.measured_figures import measured_figure, measured_rows
    from retrompi.render.figures.numbers import fact_figure, scatter_figure
    from retrompi.render.figures.overlay import place_marks
    from retrompi.render.figures.tables import scatter_pairs

    if isinstance(plan, CurveFigure):
        points = with_bands(study.points, study.bands)
        asked = (study.spec.level, study.spec.draws) if study.spec is not None else (0.0, 0)
        drawn = curve_figure(points, plan, [*found, *place_marks(study.claims, plan, study.verdicts)], *asked)
        stored_curves.add(drawn, curves_for(study.measured, plan.name), plan.what)
        return drawn
    if isinstance(plan, ScatterFigure):
        return scatter_figure(scatter_pairs(study, plan.claims), plan)
    if isinstance(plan, MeasuredFigure):
        return measured_figure(plan, *measured_rows(study, plan), study)
    return fact_figure(fact_series(study.facts, plan), plan)


def study_figures(study: Reproduction) -> dict[str, go.Figure]:
    """Name -> figure: those of the study's file, the scatter plot of each table that has one, the anatomy per mode."""
    from retrompi.render.atlas.ladder import ladder_figures
    from retrompi.render.atlas.predicted import blind_figures
    from retrompi.render.figures.figures import anatomy_figure, stage_order
    from retrompi.render.figures.tables import scatter_of, scatter_pairs

    found = _marks(study)
    beside = [b for b in (scatter_of(study, t) for t in study.paper.table_plans) if b is not None and scatter_pairs(study, b.claims)]
    out = {p.name: _figure(study, p, found) for p in (*_plans(study), *beside)}
    out |= blind_figures(study.paper.key)
    out |= ladder_figures(study.facts)
    order = stage_order(study.anatomy)
    for i, mode in enumerate(dict.fromkeys(str(a["mode"]) for a in study.anatomy), 1):
        mine = [a for a in study.anatomy if a["mode"] == mode]
        name = mode if mode.isalnum() else f"mode{i}"
        out[f"anatomy-{name}"] = anatomy_figure(mine, f"One message, {_memory(mode)}: share of time by stage", order)
    return out


def _memory(mode: str) -> str:
    return f"{mode} memory" if mode in ("shared", "distributed") else mode


def _figure_rows(study: Reproduction, plan: FigurePlan) -> list[dict[str, Any]]:
    from retrompi.papers.statements.exhibits import ScatterFigure
    from retrompi.render.figures.exhibits import curves, fact_series
    from retrompi.render.figures.measured_figures import measured_rows
    from retrompi.render.figures.tables import scatter_pairs

    if isinstance(plan, ScatterFigure):
        return [p.row() for p in scatter_pairs(study, plan.claims)]
    if isinstance(plan, CurveFigure):
        names = ("size_B", "time_us" if plan.what == "time" else "bandwidth_MBps")
        drawn = [((c.model, c.mode), c) for c in curves(study.points, plan)]
        return [{"model": k[0], "mode": k[1], names[0]: x, names[1]: y} for k, c in drawn for x, y in zip(c.x, c.y, strict=True)]
    if isinstance(plan, MeasuredFigure):
        return measured_rows(study, plan)[0]
    return [{"series": c.legend, plan.x: x, "value": y} for c in fact_series(study.facts, plan) for x, y in zip(c.x, c.y, strict=True)]


def csv_tables(study: Reproduction) -> dict[str, list[dict[str, Any]]]:
    """Name -> flat rows: points, published marks, verdicts, anatomy, start-up, and every figure and table of the page."""
    from retrompi.measure.stored_curves import rows_of
    from retrompi.render.atlas.ladder import ladder_points
    from retrompi.render.atlas.paper_page import anatomy_table
    from retrompi.render.atlas.predicted import blind_rows
    from retrompi.render.figures.tables import flat_table

    startup = [
        {"model": model, **{k: v for k, v in facts.items() if not isinstance(v, (list, dict))}}
        for model, facts in study.facts.get("startup", {}).items()
        if isinstance(facts, Mapping)
    ]
    blind = blind_rows(study.paper.key)
    return {
        "points": study.points,
        "published": [m.row() for m in _marks(study)],
        "verdicts": [
            {**v.row(), "residual": v.residual, "published": v.published, "reading": v.reading, "source": v.source} for v in study.verdicts
        ],
        "anatomy": anatomy_table(study.anatomy),
        "startup": startup,
        **({"measured": [row for m in study.measured for row in rows_of(m)]} if study.measured else {}),
        **({"predictions": blind} if blind else {}),
        **({"fidelity": ladder_points(study.facts)} if study.facts.get("fidelity") else {}),
        **{f"figure-{p.name}": _figure_rows(study, p) for p in _plans(study)},
        **{f"table-{t.name}": flat_table(study, t) for t in study.paper.table_plans},
    }


def _home(study: Reproduction, model: str) -> str:
    """The platform on which a model's card shows it: the one its points are from, else the study's first."""
    return next((str(p["platform"]) for p in study.points if p["model"] == model), study.paper.platform)


def with_measured(studies: Sequence[Reproduction], found: Sequence[StoredCurve]) -> list[Reproduction]:
    """The studies with measured curves added to their figures of curves. Raises UsageError for a figure that none of them has."""
    names = {p.name for s in studies for p in _plans(s) if isinstance(p, CurveFigure)}
    for m in found:
        if m.figure and m.figure not in names:
            raise UsageError(f"no figure of curves '{m.figure}'{nearest(m.figure, names)}", code="unknown-name")
        if not names:
            raise UsageError("no figure of this paper shows curves, so a measured one cannot be added", code="unknown-name")
    return [replace(s, measured=tuple(found)) for s in studies]


def write(study: Reproduction, folder: str | Path, *, images: Sequence[str] = (), footer: str | None = None, home: str = "") -> WrittenPage:
    """Write ``<folder>/<paper>.html`` and its CSV files, and with ``images`` ("png", "svg") one file per figure.

    ``home`` is the front page to link to. Raises InputError when the folder cannot be written, UsageError for an unknown
    image format. A missing browser is not an error: it is reported in one line (``missing``).
    """
    from retrompi.render.atlas.paper_page import page
    from retrompi.render.atlas.shipped_agreement import with_kept
    from retrompi.render.cards.cards import model_card, platform_rows
    from retrompi.render.document import export
    from retrompi.store import code_version

    paper, study = study.paper, with_kept(study)
    target = Path(folder)
    drawn = study_figures(study)
    text = page(
        study,
        drawn,
        [model_card(m, _home(study, m)) for m in paper.models],
        {name: platform_rows(name) for name in paper.platforms},
        footer=f"retrompi {code_version()}" if footer is None else footer,
        home=home,
    )
    try:
        target.mkdir(parents=True, exist_ok=True)
        html = target / f"{paper.key}.html"
        html.write_text(text, encoding="utf-8")
        tables = tuple(export.write_csv(target / f"{paper.key}-{name}.csv", rows) for name, rows in csv_tables(study).items())
    except OSError as error:
        raise InputError(f"cannot write the report: {error.strerror}", target, code="unwritable-file") from error
    pictures: list[Path] = []
    missing = ""
    if images:
        pictures, missing = export.images({f"{paper.key}-{n}": f for n, f in drawn.items()}, target, images)
    return WrittenPage(html, tables, tuple(pictures), missing)


def write_atlas(studies: Sequence[Reproduction], folder: str | Path, made: AtlasProvenance, *, images: Sequence[str] = (),
                beside: NetworkAgreement | None = None) -> Atlas:
    """Write the page of every study and ``<folder>/index.html`` with the verdict matrix; raises as `write`.

    ``made`` describes how the runs were produced: see `front.provenance_of`; ``beside``: the verdicts under another network beside the
    native ones.
    """
    from retrompi.papers.fit import lmbench
    from retrompi.render.atlas import blind_page, front, machines_page
    from retrompi.render.atlas.shipped_agreement import with_kept
    from retrompi.render.document import export

    target = Path(folder)
    pages = tuple(write(study, target, images=images, home="index.html") for study in studies)
    numbers = lmbench.table()
    scores = front.scorecard([with_kept(study) for study in studies], numbers, beside)
    try:
        (target / f"{machines_page.PAGE}.html").write_text(machines_page.machines_page(numbers, scores.transfer()), encoding="utf-8")
        (target / f"{blind_page.PAGE}.html").write_text(blind_page.blind_page(scores.replayed), encoding="utf-8")
        html = target / "index.html"
        html.write_text(front.front_page(scores, made), encoding="utf-8")
        tables = tuple(export.write_csv(target / f"atlas-{name}.csv", rows) for name, rows in scores.tables().items())
    except OSError as error:
        raise InputError(f"cannot write the report: {error.strerror}", target, code="unwritable-file") from error
    return Atlas(html, tables, pages)
