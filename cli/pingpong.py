"""``retrompi pingpong``: one curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from retrompi.base.units import format_bytes, format_time, parse_sizes
from retrompi.cli.options import (
    csv_option,
    debug_option,
    failures_option,
    fidelity_option,
    fresh_option,
    json_option,
    measured_curves,
    measured_option,
    mode_option,
    model_option,
    open_for,
    platform_option,
    seed_option,
    set_option,
    store_option,
    traffic_option,
    warn,
)
from retrompi.cli.output import Column, emit, note

if TYPE_CHECKING:
    from retrompi.render.measured import Measured

COLUMNS = (
    Column("size_B", "size", lambda v: format_bytes(v), right=True),
    Column("time_us", "one-way time", lambda v: format_time(v * 1e-6), right=True),
    Column("bandwidth_MBps", "MB/s", lambda v: f"{v:.4g}", right=True),
    Column("repetitions", "repetitions", right=True),
)
BESIDE = (
    Column("size_B", "size", lambda v: format_bytes(v), right=True),
    Column("simulated", "simulated", lambda v: format_time(v), right=True),
    Column("measured", "measured", lambda v: format_time(v), right=True),
    Column("difference", "simulated / measured - 1", lambda v: f"{v:+.1%}", right=True),
)


def emit_curve(rows: Sequence[Mapping[str, Any]], warnings: Sequence[str], as_json: bool, as_csv: bool) -> None:
    """A curve; in JSON every point has the ``warnings`` of the run."""
    told = [{**row, "warnings": list(warnings)} for row in rows]
    keys = [c.key for c in COLUMNS]
    emit(told, COLUMNS, as_json=as_json, as_csv=as_csv, keys=[*keys, "warnings"] if as_json else keys)


@click.command()
@model_option
@platform_option
@mode_option("shared")
@click.option("--sizes", metavar="LIST", help="Sizes, e.g. 0,1KiB,4KiB..4MiB:x2 (default: powers of two to 4 MiB).")
@click.option("--reps", type=click.IntRange(1), help="Repetitions at every size (default: as in the papers).")
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="PAGE.html", help="Write a page with the curve.")
@traffic_option
@failures_option
@measured_option
@set_option
@fidelity_option
@seed_option
@fresh_option
@json_option
@csv_option
@store_option
@debug_option
@click.pass_context
def command(
    ctx: click.Context,
    model: str,
    platform: str,
    mode: str,
    sizes: str | None,
    reps: int | None,
    out: Path | None,
    traffic: tuple[str, ...],
    failures: tuple[str, ...],
    measured: tuple[str, ...],
    sets: tuple[str, ...],
    fidelity: str,
    seed: int,
    fresh: bool,
    as_json: bool,
    as_csv: bool,
    store: str | None,
) -> None:
    """Simulate a PingPong curve: one-way time and bandwidth against message size."""
    from retrompi.sim.resolved import Resolved
    from retrompi.spec import cross_traffic as network
    from retrompi.spec.calibrated_range import outside
    from retrompi.spec.question import Beside, Question, pingpong
    from retrompi.store.lookup import answer

    question = Question(model, platform, pingpong(reps=reps), mode, sets, seed, fidelity, Beside(traffic, failures))
    asked = Resolved.of(question)  # wrong names first, before any store is made
    overlaid = measured_curves(ctx, store, measured)
    wanted = None if sizes is None else parse_sizes(sizes)
    if wanted is None and overlaid and out is None:  # without a page only equal sizes can stand beside each other
        wanted = sorted({int(p["size_B"]) for m in overlaid for p in m.points})
    store_ = open_for(ctx, store)
    found = answer(store_, asked.changed(workload=pingpong(wanted, reps)), fresh=fresh)
    for line in network.lines(store_.run(found.run_id)["facts"]) if traffic or failures else []:
        note(line)
    beyond = outside(asked.model, asked.platform, sizes=[r["size_B"] for r in found.rows], ranks=2, sets=sets)
    emit_curve(found.rows, warn(beyond, model), as_json, as_csv)
    if overlaid and not as_json and not as_csv:
        _beside(found.rows, overlaid)
    if out is not None:
        from retrompi.render import pingpong as page

        page.write(out, page.Simulated(model, platform, mode, tuple(found.rows), found.run_id), overlaid)
        click.echo(f"page: {out}", err=True)
    note(f"run {found.run_id}" + (" (found in the store; --fresh simulates again)" if found.found else ""))


def _beside(rows: Sequence[Mapping[str, Any]], measured: Sequence[Measured]) -> None:
    """Simulated beside measured times at the sizes that both have."""
    simulated = {int(r["size_B"]): float(r["time_us"]) for r in rows}
    for curve in measured:
        both = [
            {"size_B": p["size_B"], "simulated": simulated[p["size_B"]] * 1e-6, "measured": p["time_us"] * 1e-6,
             "difference": simulated[p["size_B"]] / p["time_us"] - 1}
            for p in curve.points if p["size_B"] in simulated
        ]  # fmt: skip
        click.echo(f"\n{curve.legend}" + (f" ({curve.about})" if curve.about else ""))
        emit(both, BESIDE, as_json=False, as_csv=False, empty="no size of it was simulated")
