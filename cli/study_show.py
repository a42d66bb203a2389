"""``retrompi study show`` and ``retrompi study figure``: a study's numbers as tables, pages and figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from retrompi.base.errors import UsageError
from retrompi.cli.options import csv_option, debug_option, json_option, open_for, store_option, warn
from retrompi.cli.output import Column, note, one_format, print_csv, print_json, print_table

if TYPE_CHECKING:
    from retrompi.studies.table import Table
    from retrompi.studies.view import View

__all__ = ["axes_options", "figure", "show"]

_MOST_FAILURES = 8


def axes_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """``--metric``, ``--x``, ``--by`` and ``--panel``."""
    for option in (
        click.option("--panel", multiple=True, metavar="AXIS", help="An axis with a figure (and a table) for each of its values."),
        click.option("--by", multiple=True, metavar="AXIS", help="An axis whose values are lines of one figure; several may be given."),
        click.option("--x", metavar="AXIS", help="The axis to draw along (and across tables); 'size' is the message size of curves."),
        click.option("--metric", metavar="M",
                     help="The number to show: time, time@1MiB, bandwidth@64KiB, peak, section, mpi, speedup, ..."),
    ):  # fmt: skip
        function = option(function)
    return function


def _table(t: Table) -> None:
    from retrompi.studies.table import WIDTH

    titles = list(t.heads)
    widths = [max(len(h), *(len(left[i]) for left, _ in t.rows)) for i, h in enumerate(titles)] if t.rows else []
    numbers = [max(len(c), *(len(right[i]) for _, right in t.rows)) for i, c in enumerate(t.columns)] if t.rows else []
    if sum(widths) + sum(numbers) + 2 * (len(widths) + len(numbers)) > WIDTH:
        titles = [h.rpartition(".")[2] if len({x.rpartition(".")[2] for x in t.heads}) == len(t.heads) else h for h in t.heads]
    told = ", ".join(x for x in (t.title, f"{t.across} across" if t.across else "") if x)
    if told:
        click.echo(f"\n{told}")
    names = [Column(str(i), title) for i, title in enumerate(titles)]
    columns = [*names, *(Column(str(len(names) + i), title, right=True) for i, title in enumerate(t.columns))]
    print_table([{str(i): x for i, x in enumerate((*left, *right))} for left, right in t.rows], columns)


def _told(v: View, study: dict[str, Any]) -> None:
    """The head of the terminal's answer, and after it which points have no result."""
    title = v.definition.get("title")
    click.echo(f"study {study['id']}, {study['name']}" + (f": {title}" if title else ""))
    click.echo(f"{v.metric.name}: {v.metric.label}")


def _failed(v: View) -> None:
    from retrompi.studies.view import failures

    found = failures(v)
    if not found:
        return
    click.echo(f"\n{len(found)} of {len(v.rows)} points did not complete:")
    for f in found[:_MOST_FAILURES]:
        where = " ".join(f"{k}={x}" for k, x in f.values.items())
        click.echo(f"  {f.position}  {where}  {f.outcome}: {' '.join(f.reason.split())}"[:400])
    if len(found) > _MOST_FAILURES:
        click.echo(f"  and {len(found) - _MOST_FAILURES} more; --json has them all")


@click.command()
@click.argument("study", metavar="STUDY")
@click.option("-o", "--output", metavar="PAGE.html", help="Write a page with figures, tables, definition and provenance.")
@axes_options
@json_option
@csv_option
@store_option
@debug_option
@click.pass_context
def show(
    ctx: click.Context,
    study: str,
    output: str | None,
    metric: str | None,
    x: str | None,
    by: tuple[str, ...],
    panel: tuple[str, ...],
    as_json: bool,
    as_csv: bool,
    store: str | None,
) -> None:
    """Show a study's numbers as tables, or as a page with figures.

    STUDY is a number, a name or the beginning of a hash (see 'retrompi study list').
    """
    from retrompi.studies import stored
    from retrompi.studies.about import about
    from retrompi.studies.table import tables
    from retrompi.studies.view import without_effect

    one_format(as_json, as_csv)
    if output is not None and Path(output).suffix.lower() not in (".html", ".htm"):
        raise UsageError(
            f"-o {output}: a page ends in .html; 'retrompi study export' writes numbers, 'retrompi study figure' one figure",
            code="unknown-format",
        )
    found = stored.read(open_for(ctx, store, write=False), study)
    v = found.view(metric)
    for k in (*by, *panel, *([x] if x not in (None, "size") else [])):
        v.axis(str(k))
    told = about(found.definition, found.runs, found.curves)
    if output is not None:
        from retrompi.render import study as page
        from retrompi.render.sweep_figures import choose

        page.write(Path(output), v, told, plans=choose(v, x, by, panel), panel=panel)
        note(f"page written to {output}")
    if as_json or as_csv:
        unit = v.metric.unit
        rows = [{"position": r["position"], **r["values"], v.metric.name: r["value"], "unit": unit, "outcome": r["outcome"],
                 "reason": r["reason"], "run_id": r["run_id"]} for r in v.rows]  # fmt: skip
        print_json(rows) if as_json else print_csv(rows, list(rows[0]))
        return
    if output is None:
        _told(v, dict(found.study))
        for t in tables(v, panel, x if x != "size" else None):
            _table(t)
        if idle := without_effect(v):
            click.echo(f"\nwithout effect on {v.metric.name}: {', '.join(idle)}")
        _failed(v)
    for model, lines in told.warnings.items():
        warn(lines, model)


@click.command()
@click.argument("study", metavar="STUDY")
@click.option("-o", "--output", required=True, metavar="FILE", help="Where to: .html, .png or .svg; several panels are several images.")
@click.option("--kind", metavar="KIND", help="curves, lines, speedup, efficiency, heat, bars, scatter or parallel.")
@axes_options
@json_option
@csv_option
@store_option
@debug_option
@click.pass_context
def figure(
    ctx: click.Context,
    study: str,
    output: str,
    kind: str | None,
    metric: str | None,
    x: str | None,
    by: tuple[str, ...],
    panel: tuple[str, ...],
    as_json: bool,
    as_csv: bool,
    store: str | None,
) -> None:
    """Draw one figure of a study from its runs in the store.

    STUDY is a number, a name or the beginning of a hash. A PNG or SVG needs a Chromium or Chrome.
    """
    from retrompi.cli.study_files import written
    from retrompi.render.sweep_figures import choose, plan_of
    from retrompi.studies import stored

    one_format(as_json, as_csv)
    target = Path(output)
    ending = target.suffix.removeprefix(".").lower()
    if ending not in ("html", "png", "svg"):
        raise UsageError(f"-o {output}: a figure ends in .html, .png or .svg", code="unknown-format")
    found = stored.read(open_for(ctx, store, write=False), study)
    v = found.view(metric)
    plans = [plan_of(kind, v, x, by, panel)] if kind else choose(v, x, by, panel)[:1]
    if not plans:
        raise UsageError(
            "this study varies nothing and has no curve: there is nothing to draw; 'retrompi study show' has its number", code="no-figure"
        )
    written(_drawn(v, plans[0], target, ending, dict(found.study)), as_json, as_csv)


def _drawn(v: View, plan: Any, target: Path, ending: str, study: dict[str, Any]) -> list[Path]:
    from retrompi.render import study as page
    from retrompi.render.export import images
    from retrompi.render.sweep_figures import draw

    drawn = draw(v, plan)
    if ending == "html":
        page.write_figures(target, drawn, str(v.definition.get("title") or study["name"]), f"study {study['id']}, {v.metric.label}")
        return [target]
    # One panel has the name that was asked for, several have a number each.
    names = {target.stem if len(drawn) == 1 else f"{target.stem}-{i}": f for i, f in enumerate(drawn.values(), 1)}
    paths, missing = images(names, target.parent, (ending,))
    if missing:
        raise UsageError(missing)
    return paths
