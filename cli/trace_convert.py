"""``retrompi trace convert``: traces of other tools in, plain TI and GOAL out, with a report of what is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from retrompi.base.errors import UsageError
from retrompi.base.units import parse
from retrompi.cli.options import csv_option, debug_option, json_option, progress
from retrompi.cli.output import Column, one_format, print_csv, print_json, print_table

__all__ = ["command"]

LOSSES = (
    Column("call", "call"),
    Column("effect", "is"),
    Column("count", "times", right=True),
    Column("first", "first at"),
    Column("what", "what"),
)


@click.command("convert")
@click.argument("trace", metavar="IN")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--from", "source", type=click.Choice(["otf2", "dumpi", "goal", "ti"]), help="What IN is (default: by its content).")
@click.option("--to", "target", type=click.Choice(["ti", "smpi", "goal"]), help="What OUT is: our TI, the part of it that SMPI replays, or "
              "GOAL (default: goal when OUT ends in .goal, else ti).")  # fmt: skip
@click.option("--rate", metavar="RATE", default="1 Gflop/s", show_default=True, help="Turns recorded times into computation, and back.")
@click.option("--clock", type=click.Choice(["cpu", "wall"]), help="The clock of DUMPI that counts (default: the CPU's where recorded).")
@click.option("--shortest", metavar="TIME", default="0 s", show_default=True, help="Computation shorter than this in one piece is dropped.")
@click.option("--approximate", is_flag=True, help="Spread the bytes of an MPI_Alltoallv, of which OTF2 keeps no counts, over the peers.")
@click.option("--undefined-source", type=click.Choice(["refuse", "any", "null"]), default="refuse", help="What a receive from -333 is.")
@click.option("--strict", is_flag=True, help="Exit with 1 when anything is lost or approximated.")
@json_option
@csv_option
@debug_option
@click.pass_context
def command(
    ctx: click.Context,
    trace: str,
    out: Path,
    source: Literal["otf2", "dumpi", "goal", "ti"] | None,
    target: str | None,
    rate: str,
    clock: Literal["cpu", "wall"] | None,
    shortest: str,
    approximate: bool,
    undefined_source: Literal["refuse", "any", "null"],
    strict: bool,
    as_json: bool,
    as_csv: bool,
) -> None:
    """Convert a trace of OTF2 (anchor file or folder), DUMPI (meta file, .bin file or folder), GOAL or TI, and say what is lost.

    OUT is a folder, or one file when it ends in .ti, .gz or .zst. The report of losses goes to stderr as a table, or with --json or --csv
    to stdout.
    """
    from retrompi.traces import convert

    one_format(as_json, as_csv)
    if out.exists():
        raise UsageError(f"{out} exists; choose another name", code="exists-already")
    flops = parse(rate, "flop/s")
    if flops <= 0:
        raise UsageError(f"--rate {rate} must be above zero", code="out-of-range")
    target = target or ("goal" if out.suffix == ".goal" else "ti")
    with progress("reading") as report:
        made = convert.load(
            trace, source, rate=flops, clock=clock, shortest=parse(shortest, "s"), approximate=approximate,
            undefined_source=undefined_source, progress=lambda done, total: report(done, total, ""),
        )  # fmt: skip
    convert.save(made, out, target, rate=flops)
    rows: list[dict[str, Any]] = [{**row, "first": row["places"][0] if row["places"] else ""} for row in made.losses.rows()]
    if as_csv:
        print_csv(rows, [c.key for c in LOSSES])
    elif as_json:
        print_json({
            "out": str(out), "from": made.format, "to": target, "ranks": made.trace.ranks, "actions": made.trace.actions,
            "lost": made.losses.total, "losses": made.losses.rows(), "without_effect": made.losses.without_effect,
        })  # fmt: skip
    else:
        click.echo(f"{out}: {made.trace.ranks} ranks, {made.trace.actions} actions from {made.format} to {target}")
        if rows:
            print_table(rows, LOSSES, err=True)
    if strict and made.losses.total:
        ctx.exit(1)
