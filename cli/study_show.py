"""``retrompi study show`` and ``retrompi study figure``: a study's results as tables, pages and figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from retrompi.base.errors import UsageError
from retrompi.cli.bundle import Option, option, options
from retrompi.cli.options import StoreOutput, ends_in, some_level
from retrompi.cli.output import note, note_warnings, print_csv, print_json, say
from retrompi.cli.study_tables import intervals, print_tables

if TYPE_CHECKING:
    from retrompi.store import Store
    from retrompi.studies.read.view import View

__all__ = ["figure", "show"]

_MOST_FAILURES = 8
MOST_SHOWN = 100_000


@dataclass(frozen=True)
class Axes:
    """Options selecting the metric of a study and the axes to show."""

    metric: str | None = option(
        "Quantity: what is shown, e.g. time, time@1MiB, bandwidth@64KiB, peak, section, mpi, speedup, ...", metavar="METRIC")
    x: str | None = option("Axis along x (and across tables); 'size' is the message size of curves.", metavar="AXIS")
    by: tuple[str, ...] = option("Axis whose values become the lines of one figure (repeatable).", metavar="AXIS")
    panel: tuple[str, ...] = option("Axis with a figure (and a table) for each of its values (repeatable).", metavar="AXIS")
    uncertainty: str | None = option("Uncertainty: the level of the intervals of a study that has draws (default: 90%).", metavar="LEVEL")

    @property
    def level(self) -> float:
        """The level of intervals; UsageError for one that is none."""
        from retrompi.studies.draws.uncertainty import LEVEL

        return LEVEL if self.uncertainty is None else some_level(self.uncertainty)


def _print_head(v: View, study: dict[str, Any], marked: str) -> None:
    """Prints the head of the terminal output, and the points without a result."""
    title = v.definition.get("title")
    say(f"study {study['id']}, {study['name']}" + (f": {title}" if title else "") + marked)
    say(f"{v.metric.name}: {v.metric.label}{intervals(v)}")


def _show_failures(v: View) -> None:
    from retrompi.studies.read.view import failures

    found = failures(v)
    if not found:
        return
    say(f"\n{len(found)} of {len(v.rows)} points did not complete:")
    for f in found[:_MOST_FAILURES]:
        where = " ".join(f"{k}={x}" for k, x in f.values.items())
        say(f"  {f.position}  {where}  {f.outcome}: {' '.join(f.reason.split())}"[:400])
    if len(found) > _MOST_FAILURES:
        say(f"  and {len(found) - _MOST_FAILURES} more; --json has them all")


def _refuse_many(store: Store, study: str) -> None:
    """UsageError for a study with more points than anybody reads in a table or sees in a figure."""
    from retrompi.base.errors import RetrompiError

    try:
        row = store.study(study)
    except RetrompiError:
        return  # whoever reads it says what is wrong
    points = int(row["done"]) // (1 + int(row["definition"].get("draws", 0)))
    if points > MOST_SHOWN:
        raise UsageError(f"study {row['name']} has {points} points, too many to show; 'retrompi study export {row['name']} -o FILE' writes "
                         "them, and the views of the store (docs/schema.md) sum them up", code="too-many")


@click.command()
@click.argument("study", metavar="STUDY")
@click.option("-o", "--output", "file", cls=Option, aliases=("--out",), metavar="FILE", callback=ends_in("html"),
              help="Where to write: a page with figures, tables, definition and provenance (.html).")
@options(axes=Axes, output=StoreOutput)
def show(study: str, file: str | None, axes: Axes, output: StoreOutput) -> None:
    """Show a study's results as tables, or as a page with figures.

    STUDY is a number, a name or the beginning of a hash (see 'retrompi study list').

    \b
    Examples:
      retrompi study show proxy-cost
      retrompi study show proxy-cost --metric bandwidth@64KiB -o page.html
    """
    from retrompi.sim.cautions import mark
    from retrompi.studies.archive.provenance import about
    from retrompi.studies.read import stored_study
    from retrompi.studies.read.cautions import count_cautions
    from retrompi.studies.read.interval_reasons import of_view

    store = output.open(write=False)
    _refuse_many(store, study)
    found = stored_study.read(store, study)
    v = found.view(axes.metric, axes.level)
    for k in (*axes.by, *axes.panel, *([axes.x] if axes.x not in (None, "size") else [])):
        v.axis(str(k))
    told = about(found.definition, found.runs, found.curves)
    if file is not None:
        from retrompi.render.figures.sweep_figures import choose
        from retrompi.render.pages import study_page

        study_page.write(Path(file), v, told, plans=choose(v, axes.x, axes.by, axes.panel), panel=axes.panel)
        note(f"page written to {file}")
    points = len(v.rows) * (1 + v.draws)
    warnings = [*told.cautions, *count_cautions(store.study_cautions(int(found.study["id"])), points, "points"), *of_view(v)]
    warned = note_warnings(warnings)
    if not output.text:
        unit = v.metric.unit
        name = v.metric.name
        rows = [{"position": r["position"], **r["values"], name: r["value"],
                 **({f"{name}_low": r["low"], f"{name}_high": r["high"], "completed": r["completed"]} if v.draws else {}),
                 "unit": unit, "outcome": r["outcome"], "reason": r["reason"], "run_id": r["run_id"]} for r in v.rows]
        print_json([{**r, "warnings": warned} for r in rows]) if output.as_json else print_csv(rows, list(rows[0]))
        return
    if file is None:
        _print_head(v, dict(found.study), mark(warnings))
        print_tables(v, axes.panel, axes.x if axes.x != "size" else None)
        _show_failures(v)


@click.command()
@click.argument("study", metavar="STUDY")
@click.option("-o", "--output", "file", cls=Option, aliases=("--out",), required=True, metavar="FILE",
              callback=ends_in("html", "svg", "png"),
              help="Where to write: .html, .png or .svg; each panel is one image.")
@click.option("--chart", "kind", metavar="KIND",
              help="Kind of figure: curves, lines, speedup, efficiency, heat, bars, scatter or parallel.")
@options(axes=Axes, output=StoreOutput)
def figure(study: str, file: str, kind: str | None, axes: Axes, output: StoreOutput) -> None:
    """Draw one figure of a study from its stored runs.

    STUDY is a number, a name or the beginning of a hash. PNG and SVG need Chromium or Chrome.

    \b
    Examples:
      retrompi study figure proxy-cost -o figure.html
      retrompi study figure proxy-cost --chart heat --metric time@1KiB -o figure.svg
    """
    from retrompi.cli.study_files import report_files
    from retrompi.render.figures.sweep_figures import choose, plan_of
    from retrompi.studies.read import stored_study

    target = Path(file)
    ending = target.suffix.removeprefix(".").lower()
    store = output.open(write=False)
    _refuse_many(store, study)
    found = stored_study.read(store, study)
    v = found.view(axes.metric, axes.level)
    plans = [plan_of(kind, v, axes.x, axes.by, axes.panel)] if kind else choose(v, axes.x, axes.by, axes.panel)[:1]
    if not plans:
        raise UsageError(
            "this study varies nothing and has no curve, so there is nothing to draw; see 'retrompi study show'", code="no-figure"
        )
    report_files(_write_figures(v, plans[0], target, ending, dict(found.study)), output)


def _write_figures(v: View, plan: Any, target: Path, ending: str, study: dict[str, Any]) -> list[Path]:
    from retrompi.render.document.export import images
    from retrompi.render.figures.sweep_figures import draw
    from retrompi.render.pages import study_page

    drawn = draw(v, plan)
    if ending == "html":
        study_page.write_figures(target, drawn, str(v.definition.get("title") or study["name"]), f"study {study['id']}, {v.metric.label}")
        return [target]
    # A single panel gets the requested file name, several are numbered.
    names = {target.stem if len(drawn) == 1 else f"{target.stem}-{i}": f for i, f in enumerate(drawn.values(), 1)}
    paths, missing = images(names, target.parent, (ending,))
    if missing:
        raise UsageError(missing)
    return paths
