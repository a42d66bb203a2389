"""``retrompi pingpong``: one curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from retrompi.base.units import format_bytes, format_time, parse_sizes
from retrompi.cli.bundle import option, options
from retrompi.cli.draws import drawing, interval_column, note_draws, note_worth
from retrompi.cli.options import (
    NetworkOptions,
    Overlaid,
    RunInputs,
    RunOutput,
    Uncertain,
    output_option,
    placement_words,
    sizes_option,
    warm_up_option,
)
from retrompi.cli.output import Column, Output, note, note_run, note_warnings, print_table, say, write_drawn

if TYPE_CHECKING:
    from retrompi.api.runs import Curve
    from retrompi.measure.stored_curves import StoredCurve
    from retrompi.traces.generate import Generator

COLUMNS = (
    Column("size_B", "size", lambda v: format_bytes(v), right=True),
    Column("time_us", "one-way time", lambda v: format_time(v * 1e-6), right=True),  # `curve_columns` says what else it may be
    Column("bandwidth_MBps", "MB/s", lambda v: f"{v:.4g}", right=True),
    Column("repetitions", "repetitions", right=True),
)
DRAWN = {"time_us": ("s", 1e-6), "bandwidth_MBps": ("B/s", 1e6)}
"""Column with an interval -> its base unit, and what its values are times to be in it."""
BESIDE = (
    Column("size_B", "size", lambda v: format_bytes(v), right=True),
    Column("simulated", "simulated", lambda v: format_time(v), right=True),
    Column("measured", "measured", lambda v: format_time(v), right=True),
    Column("difference", "simulated / measured - 1", lambda v: f"{v:+.1%}", right=True),
)


def curve_columns(made: Generator | None) -> tuple[list[Column], str]:
    """The columns of a benchmark's curve, and what its time and its rate are if it is no PingPong (a broadcast has no one-way time)."""
    if made is None or made.one_way:
        return list(COLUMNS), ""
    columns = [replace(c, title="time") if c.key == "time_us" else c for c in COLUMNS]
    return columns, f"time: of one repetition; MB/s: {made.rule}"


def emit_curve(
    rows: Sequence[Mapping[str, Any]], warnings: Sequence[Mapping[str, Any]], output: Output, level: float | None = None,
    made: Generator | None = None,
) -> None:
    """A curve, with its intervals at ``level``; in JSON every point has the ``warnings`` of the run. ``made``: what it is a curve of."""
    told = [{**row, "warnings": list(warnings)} for row in rows]
    columns, meaning = curve_columns(made)
    keys = [c.key for c in COLUMNS]
    if level is not None:
        told = [{**row, **{f"{k}_interval": (row[f"{k}_low"], row[f"{k}_high"]) for k in DRAWN}} for row in told]
        of_time, of_rate = (interval_column(k, level, unit, scale) for k, (unit, scale) in DRAWN.items())
        size, time, rate, repetitions = COLUMNS
        columns = [size, time, of_time, rate, of_rate, repetitions]
        keys = [size.key, *(k + end for k in DRAWN for end in ("", "_low", "_high")), repetitions.key, "completed"]
    output.emit(told, columns, keys=[*keys, "warnings"] if output.as_json else keys)
    if meaning and output.text:
        say(meaning)


@dataclass(frozen=True)
class PingpongOptions(Uncertain, Overlaid, NetworkOptions, RunInputs):
    """Options of ``retrompi pingpong``."""

    sizes: str | None = sizes_option(", e.g. 0,1,1024 or 1KiB,4KiB..4MiB:x2 (default: powers of two up to 4 MiB).")
    reps: int | None = option("Repetitions at each size (default: as in the papers).", type=click.IntRange(1))
    warm_up: int = warm_up_option()
    out: Path | None = output_option("the curve, as a page, a figure or numbers", "html", "svg", "png", "csv", "json")


@click.command()
@options(given=PingpongOptions, output=RunOutput)
def command(given: PingpongOptions, output: RunOutput) -> None:
    """Simulate a PingPong curve: one-way time and bandwidth against message size.

    \b
    Examples:
      retrompi pingpong --model wmpi --mode shared
      retrompi pingpong -m mpibip -p myrinet-piii --mode distributed --sizes 1KiB..1MiB:x2
      retrompi pingpong -m wmpi --set wmpi.packet=256KiB --csv
      retrompi pingpong -m wmpi --mode shared --sizes 0,1KiB,64KiB --uncertainty 90%
    """
    from retrompi.api.asking import Where
    from retrompi.api.runs import curve_of
    from retrompi.sim.cautions import mark
    from retrompi.sim.resolved import Resolved
    from retrompi.sim.result import network_lines
    from retrompi.spec.question import pingpong

    spec = given.spec()
    asked = Resolved.of(given.question(pingpong(reps=given.reps)))  # rejects unknown names before a store is created
    overlaid = given.curves(output)
    wanted = None if given.sizes is None else parse_sizes(given.sizes)
    if wanted is None and overlaid and given.out is None:  # a table can compare equal sizes only
        wanted = sorted({int(p["size_B"]) for m in overlaid for p in m.points})
    store_ = output.open()
    question = asked.with_fields(workload=pingpong(wanted, given.reps, given.warm_up))
    curve = curve_of(question, Where(store_, output.fresh))
    if curve.ended is not None:
        warned = note_warnings(curve.warnings)
        if curve.rows:
            emit_curve(curve.rows, warned, output)
        raise curve.ended
    found = curve.found
    for line in network_lines(curve.row["facts"]) if given.traffic or given.failures else []:
        note(line)
    if spec is not None:
        with drawing() as report:
            curve = curve.uncertainty(spec.level, spec.draws, report)
    warnings = curve.warnings
    warned = note_warnings(warnings)
    if output.text:
        say(f"{given.model}, {placement_words(asked)} on {given.platform} (run {found.run_id}){mark(warnings)}")
    rows = curve.rows
    emit_curve(rows, warned, output, None if spec is None else spec.level)
    if curve.drawn is not None:
        note_draws([curve.drawn])
        note_worth(curve.drawn, [f"time@{rows[i]['size_B']}B" for i in (0, -1)])
    if overlaid and output.text:
        _beside(found.rows, overlaid)
    if given.out is not None:
        _write(given.out, curve, overlaid, {"model": given.model, "platform": given.platform, "mode": asked.mode, "run_id": found.run_id})
    note_run(found.run_id, found.found)


def _write(out: Path, curve: Curve, overlaid: Sequence[Any], about: Mapping[str, Any]) -> None:
    """The curve as a page, a figure or a table."""
    from retrompi.render.pages import curve_page

    drawn = curve.simulated
    made = [out]
    if out.suffix.lower() == ".html":
        curve_page.write(out, drawn, overlaid)
    else:
        keys = [c.key for c in COLUMNS] + [f"{k}_{end}" for k in DRAWN for end in ("low", "high") if curve.drawn is not None]
        points = [{k: row.get(k) for k in keys} for row in curve.rows]
        made = write_drawn(out, lambda: curve_page.figures(drawn, overlaid), points, {**about, "points": points})
    click.echo(f"written: {', '.join(map(str, made))}", err=True)


def _beside(rows: Sequence[Mapping[str, Any]], measured: Sequence[StoredCurve]) -> None:
    """Simulated and measured times at their common sizes."""
    simulated = {int(r["size_B"]): float(r["time_us"]) for r in rows}
    for curve in measured:
        both = [
            {"size_B": p["size_B"], "simulated": simulated[p["size_B"]] * 1e-6, "measured": p["time_us"] * 1e-6,
             "difference": simulated[p["size_B"]] / p["time_us"] - 1}
            for p in curve.points if p["size_B"] in simulated
        ]
        say(f"\n{curve.legend}" + (f" ({curve.about})" if curve.about else ""))
        print_table(both, BESIDE, empty="no size of it was simulated")
