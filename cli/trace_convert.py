"""``retrompi trace convert``: converts traces of other tools to plain TI or GOAL, with a report of what is lost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click

from retrompi import convert
from retrompi.base.errors import UsageError
from retrompi.base.units import parse
from retrompi.cli.bundle import option, options
from retrompi.cli.options import UndefinedSource, new_path, progress
from retrompi.cli.output import Column, Output, print_csv, print_json, print_table, say

__all__ = ["command"]

LOSSES = (
    Column("call", "call"),
    Column("effect", "is"),
    Column("count", "times", right=True),
    Column("first", "first at"),
    Column("what", "what"),
)

# A format added by another package declares whether it can be read, written or both.
_READ = click.Choice([name for name in convert.names() if name != "smpi"])
_WRITTEN = click.Choice(["ti", "smpi", "goal", *(name for name in convert.names() if name not in convert.BUILT_IN)])


@dataclass(frozen=True)
class TraceConvertOptions(UndefinedSource):
    """Options of ``retrompi trace_convert``."""

    source: str | None = option("Format of IN (default: detected from the content).", "--from", type=_READ)
    target: str | None = option(
        "Format of OUT: TI, the subset of TI that SMPI replays, or GOAL (default: goal if OUT ends in .goal, else ti).", "--to",
        type=_WRITTEN)
    rate: str = option("Rate of computation: converts recorded times to it, and back.", metavar="RATE", default="1 Gflop/s")
    clock: Literal["cpu", "wall"] | None = option("Clock of computation: which of a DUMPI's two (default: CPU time if recorded).")
    shortest: str = option("Drop bursts of computation shorter than this.", metavar="TIME", default="0 s")
    approximate: bool = option("Spread the bytes of MPI_Alltoallv evenly over the peers; OTF2 does not store its counts.")
    strict: bool = option("Exit code 1 if anything is lost or approximated.")


@click.command("convert")
@click.argument("trace", metavar="IN")
@click.argument("out", type=click.Path(path_type=Path))
@options(given=TraceConvertOptions, output=Output)
@click.pass_context
def command(ctx: click.Context, trace: str, out: Path, given: TraceConvertOptions, output: Output) -> None:
    """Convert a trace between formats and report what is lost.

    IN is an OTF2 anchor file or folder, a DUMPI meta file, .bin file or folder, a GOAL schedule, or a TI trace. OUT is a folder, or
    one file if it ends in .ti, .gz or .zst. The report of losses is a table on stderr, or goes to stdout with --json or --csv.

    \b
    Examples:
      retrompi trace convert examples/traces/jacobi-4.tar.zst jacobi.goal
      retrompi trace convert run.otf2 plain --rate 2.4Gflop/s --strict
    """
    new_path(out)
    flops = parse(given.rate, "flop/s")
    if flops <= 0:
        raise UsageError(f"--rate {given.rate} must be above zero", code="out-of-range")
    target = given.target or ("goal" if out.suffix == ".goal" else "ti")
    with progress("reading") as report:
        how = convert.FormatOptions(
            rate=flops, clock=given.clock, shortest=parse(given.shortest, "s"), approximate=given.approximate,
            undefined_source=given.undefined_source, progress=lambda done, total: report(done, total, ""),
        )
        made = convert.load(trace, given.source, how)
    convert.save(made, out, target, how)
    rows: list[dict[str, Any]] = [{**row, "first": row["places"][0] if row["places"] else ""} for row in made.losses.rows()]
    if output.as_csv:
        print_csv(rows, [c.key for c in LOSSES])
    elif output.as_json:
        print_json({
            "out": str(out), "from": made.format, "to": target, "ranks": made.trace.ranks, "actions": made.trace.actions,
            "lost": made.losses.total, "losses": made.losses.rows(), "without_effect": made.losses.without_effect,
        })
    else:
        say(f"{out}: {made.trace.ranks} ranks, {made.trace.actions} actions from {made.format} to {target}")
        if rows:
            print_table(rows, LOSSES, err=True)
    if given.strict and made.losses.total:
        ctx.exit(1)
