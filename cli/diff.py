"""``retrompi diff``: comparison of two stored runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from retrompi.base.units import format_bytes
from retrompi.cli.bundle import options
from retrompi.cli.options import StoreOutput
from retrompi.cli.output import Column, print_csv, print_json, print_table, say

if TYPE_CHECKING:
    from retrompi.studies.compare.run_differences import Differences

KEYS = ("part", "what", "a", "b", "difference", "ratio", "unit", "source_a", "source_b")
MOST_RANKS = 12
TITLES = {"input": "what went in", "parameter": "parameters", "platform": "platform", "override": "overrides", "result": "what came out",
          "point": "at each size", "rank": "ranks", "stage": "where the time of a message went"}


@click.command()
@click.argument("first", type=click.IntRange(1), metavar="A")
@click.argument("second", type=click.IntRange(1), metavar="B")
@options(output=StoreOutput)
@click.pass_context
def command(ctx: click.Context, first: int, second: int, output: StoreOutput) -> None:
    """Compare two stored runs: parameters and results that differ.

    A and B are numbers from 'retrompi runs list'. Parameters are shown with their sources, then the results. Times are compared as
    stored, to the picosecond; the ratio is B over A. Exit code 1 means that the results differ.

    \b
    Examples:
      retrompi diff 12 13
      retrompi diff 12 13 --csv
    """
    from retrompi.studies.compare import run_differences

    found = run_differences.diff(output.open(write=False), first, second)
    if output.as_json:
        print_json([{k: row[k] for k in KEYS} for row in found.rows])
    elif output.as_csv:
        print_csv(found.rows, KEYS)
    elif not found.rows:
        say("no difference")
    else:
        _print(found, first, second)
    for line in found.unknown:
        click.echo(f"warning: {line}: it cannot be compared", err=True)
    if found.results:
        ctx.exit(1)


def _print(found: Differences, first: int, second: int) -> None:
    from retrompi.studies.compare.run_differences import PARTS, show

    def side(name: str) -> Any:
        return lambda row: show(row, name)

    for part in PARTS:
        rows = [r for r in found.rows if r["part"] == part]
        if not rows:
            continue
        say(f"\n{TITLES[part]}" if part != found.rows[0]["part"] else TITLES[part])
        shown = [{**r, "a": side("a")(r), "b": side("b")(r), "difference": side("difference")(r)} for r in _few(part, rows)]
        columns = [Column("what", "what"), Column("a", f"run {first}", right=True), Column("b", f"run {second}", right=True)]
        if any(r["ratio"] is not None for r in rows):
            columns += [Column("difference", "difference", right=True), Column("ratio", "ratio", _ratio, right=True)]
        print_table(shown, columns)
        if len(shown) < len(rows):
            say(f"… and {len(rows) - len(shown)} more rows of ranks (--json has all)")
        for r in rows:
            told = [f"{n}: {s}" for n, s in ((f"run {first}", r["source_a"]), (f"run {second}", r["source_b"])) if s]
            if told:
                say(f"  {r['what']}: {'; '.join(dict.fromkeys(told))}")
    for model, count in found.only.items():
        say(f"{count} parameters belong to {model} only")
    if found.parts_at is not None:
        say(f"the curves differ from {format_bytes(found.parts_at)}")


def _ratio(value: Any) -> str:
    return "" if value is None else f"{value:.4g}"


def _few(part: str, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows to show: with very many ranks, those that differ most; all other rows unchanged."""
    if part != "rank" or len(rows) <= MOST_RANKS:
        return list(rows)
    most = sorted(range(len(rows)), key=lambda i: -abs((rows[i]["ratio"] or 1.0) - 1.0))[:MOST_RANKS]
    return [rows[i] for i in sorted(most)]
