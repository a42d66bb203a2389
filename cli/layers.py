"""``retrompi layers``: the layers below MPI beside their published curves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from retrompi.base.errors import UsageError
from retrompi.base.units import format_bytes
from retrompi.cli.bundle import option, options
from retrompi.cli.options import Drawn, output_option, progress
from retrompi.cli.output import Column, Output, say, write_drawn


def _share(v: float) -> str:
    return f"{v:.1%}"


CURVES = (
    Column("group", "group"),
    Column("title", "curve"),
    Column("points", "points", right=True),
    Column("median", "median error", _share, right=True),
    Column("largest", "largest", _share, right=True),
    Column("largest_at_B", "at", format_bytes, right=True),
)
KEYS = ("group", "curve", "title", "model", "platform", "points", "median", "largest", "largest_at_B", "latency_us",
        "published_latency_us", "missing")  # fmt: skip
POINTS = (
    Column("group", "group"),
    Column("curve", "curve"),
    Column("size_B", "size", format_bytes, right=True),
    Column("simulated_us", "simulated, us", lambda v: f"{v:.4g}", right=True),
    Column("published_us", "published, us", lambda v: f"{v:.4g}", right=True),
    Column("grid", "grid", _share, right=True),
    Column("judges", "judges"),
)
VALUES = (
    Column("parameter", "parameter"),
    Column("value", "value", right=True),
    Column("low", "low", right=True),
    Column("high", "high", right=True),
    Column("note", "note"),
)


@dataclass(frozen=True)
class LayersOptions(Drawn):
    """Options of ``retrompi layers``."""

    every_point: bool = option("Show every point of the curves.", "--every-point")
    fit: bool = option("Fit the machines: hosts and networks of GROUP to its curves; their fit files are written.", "--fit")
    dry_run: bool = option("Do nothing: print the fit without writing it.", "--dry-run")
    out: Path | None = output_option("every point of the curves, as a figure or numbers", "svg", "png", "csv", "json")

    def __post_init__(self) -> None:
        if self.every_point and self.fit:
            raise UsageError("--every-point shows curves and --fit fits to them; give one", code="conflicting-options")
        if self.out is not None and self.fit:
            raise UsageError("--output is for curves, not for a fit", code="conflicting-options")
        if self.dry_run and not self.fit:
            raise UsageError("--dry-run belongs to --fit", code="unused-option")


@click.command()
@click.argument("group", required=False)
@options(given=LayersOptions, output=Output)
def command(group: str | None, given: LayersOptions, output: Output) -> None:
    """Show raw TCP, GM and EUIH beside their published curves, or fit hosts and networks to them.

    GROUP is a file of validate/layers: curves measured on the same machines; without it, all of them. The error of a point is simulated /
    published - 1; only points that the drawing resolves to 5 % judge. A fit sees these curves alone, nothing that a message-passing
    library reached.

    \b
    Examples:
      retrompi layers
      retrompi layers sp1 --every-point --csv
      retrompi layers turner2002-pc -o curves.svg
      retrompi layers sp1 --fit --dry-run
    """
    from retrompi.papers import layers

    if group is not None:
        layers.group(group)  # names the nearest of an unknown one
    wanted = layers.names() if group is None else [group]
    if given.fit:
        if group is None:
            raise UsageError(f"--fit needs a GROUP: {', '.join(wanted)}", code="missing-key")
        with progress(f"fit {group}") as report:
            found = layers.fit(group, seed=given.seed, progress=report)
        output.emit(found.values, VALUES)
        if not given.dry_run:
            for file in found.write():
                say(f"written: {file.name}") if output.text else None
        return
    if given.out is not None:
        _write(given.out, wanted)
    rows: list[dict[str, Any]] = [r for name in wanted for r in (layers.curve_rows(name) if given.every_point else layers.judge(name))]
    output.emit(rows, POINTS if given.every_point else CURVES, keys=[c.key for c in POINTS] if given.every_point else KEYS)
    if output.text and not given.every_point:
        for r in rows:
            if r["missing"]:
                say(f"{r['title']}: not simulated: {r['missing']}")


def _write(out: Path, wanted: list[str]) -> None:
    from retrompi.papers import layers
    from retrompi.render.layer_figures import bandwidth

    points = [r for name in wanted for r in layers.curve_rows(name)]
    titles = {c.name: c.title for name in wanted for c in layers.group(name).curves}
    made = write_drawn(out, lambda: {"bandwidth": bandwidth(points, titles)}, points, points)
    click.echo(f"written: {', '.join(map(str, made))}", err=True)
