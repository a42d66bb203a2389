"""Figures and pages of a replayed study.

    written = write(study, "out")            # out/<paper>.html and CSV files
    written = write(study, "out", images=("png", "svg"))

Points are computed by pure functions (`figures.series`, `figures.anatomy_bars`, `overlay.marks`) and then drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.errors import InputError

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from retrompi.validate.study import Study

__all__ = ["Written", "csv_tables", "study_figures", "write"]

_TITLES = {
    ("shared", "time"): "Shared memory, one processor: one-way time",
    ("shared", "bandwidth"): "Shared memory, one processor: bandwidth",
    ("distributed", "time"): "Distributed memory, two machines: one-way time",
    ("distributed", "bandwidth"): "Distributed memory, two machines: bandwidth",
}


@dataclass(frozen=True)
class Written:
    """What was written: the page, the CSV files, the images, and one line on images that could not be made."""

    page: Path
    tables: tuple[Path, ...]
    images: tuple[Path, ...]
    missing: str = ""


def study_figures(study: Study) -> dict[str, go.Figure]:
    """Name -> figure: time and bandwidth per mode, and the anatomy per mode."""
    from retrompi.report.figures import anatomy_figure, curve_figure, stage_order
    from retrompi.report.overlay import marks

    found = marks(study.claims, study.verdicts, last=max(study.setup.sizes, default=4 << 20))
    out = {
        f"{mode}-{what}": curve_figure(study.points, mode, what, found, _TITLES.get((mode, what), f"{mode}: {what}"))
        for mode in study.setup.modes
        for what in ("time", "bandwidth")
    }
    order = stage_order(study.anatomy)
    for mode in study.setup.modes:
        mine = [a for a in study.anatomy if a["mode"] == mode]
        if mine:
            out[f"anatomy-{mode}"] = anatomy_figure(mine, f"One message, {mode} memory: share of time by stage", order)
    return out


def csv_tables(study: Study) -> dict[str, list[dict[str, Any]]]:
    """Name -> flat rows: points, published marks, verdicts, anatomy, start-up."""
    from retrompi.report.overlay import marks
    from retrompi.report.page import anatomy_table

    startup = [
        {"model": model, **{k: v for k, v in facts.items() if not isinstance(v, (list, dict))}}
        for model, facts in study.facts.get("startup", {}).items()
    ]
    return {
        "points": study.points,
        "published": [m.row() for m in marks(study.claims, study.verdicts, last=max(study.setup.sizes, default=4 << 20))],
        "verdicts": [
            {**v.row(), "residual": v.residual, "published": v.published, "reading": v.reading, "source": v.source} for v in study.verdicts
        ],
        "anatomy": anatomy_table(study.anatomy),
        "startup": startup,
    }


def write(study: Study, folder: str | Path, *, images: Sequence[str] = (), footer: str | None = None) -> Written:
    """Write ``<folder>/<paper>.html`` and its CSV files, and with ``images`` ("png", "svg") one file per figure.

    Raises InputError when the folder cannot be written, UsageError on an unknown image format. A missing browser is no
    error: it is told in one line (``missing``).
    """
    from retrompi.report import export
    from retrompi.report.cards import model_card, platform_rows
    from retrompi.report.page import page
    from retrompi.store import code_version

    setup = study.setup
    target = Path(folder)
    drawn = study_figures(study)
    text = page(
        study,
        drawn,
        [model_card(m, setup.platform) for m in setup.models],
        platform_rows(setup.platform),
        footer=f"retrompi {code_version()}" if footer is None else footer,
    )
    try:
        target.mkdir(parents=True, exist_ok=True)
        html = target / f"{setup.paper}.html"
        html.write_text(text, encoding="utf-8")
        tables = tuple(export.write_csv(target / f"{setup.paper}-{name}.csv", rows) for name, rows in csv_tables(study).items())
    except OSError as error:
        raise InputError(f"cannot write the report: {error.strerror}", target) from error
    pictures: list[Path] = []
    missing = ""
    if images:
        pictures, missing = export.images({f"{setup.paper}-{n}": f for n, f in drawn.items()}, target, images)
    return Written(html, tables, tuple(pictures), missing)
