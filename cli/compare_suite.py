"""``retrompi compare --suite``: the table of held-out programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from retrompi.base.errors import UsageError
from retrompi.cli.options import progress
from retrompi.cli.output import Column, print_csv, print_json, print_table, say, write_drawn

if TYPE_CHECKING:
    from retrompi.cli.compare_options import CompareOptions
    from retrompi.cli.options import RunOutput
    from retrompi.measure.compare.suite import CaseResult


def _percent(value: Any) -> str:
    return "" if value is None else f"{100 * value:.2f} %"


def _signed_percent(value: Any) -> str:
    return "" if value is None else f"{100 * value:+.2f} %"


_SPREAD = (
    Column("n", "n", right=True),
    Column("median", "median", _percent, right=True),
    Column("p95", "95th", _percent, right=True),
    Column("worst", "worst", _signed_percent, right=True),
    Column("where", "at", right=True),
    Column("bias", "bias", _signed_percent, right=True),
)
COLUMNS = (
    Column("program", "program"),
    Column("pair", "pair"),
    *_SPREAD,
    Column("whole", "whole", _signed_percent, right=True),
    Column("noise", "noise", lambda v: "" if v is None else f"±{100 * v:.1f} %", right=True),
    Column("inside", "in it", lambda v: "" if v is None else f"{v:.0%}", right=True),
    Column("most_from", "most from"),
    Column("passed", "within"),
)


def run_suite(ctx: click.Context, given: CompareOptions, bounds: Mapping[str, float], how: Mapping[str, Any], output: RunOutput) -> None:
    """Run, print and judge the suite; exit code 1 when something did not complete or a bound was not met."""
    from retrompi.measure import compare
    from retrompi.measure.compare import suite

    if given.out is not None and given.out.suffix.lower() in (".svg", ".png"):
        raise UsageError(f"-o {given.out}: a suite is written as .html, .csv or .json", code="unknown-format")
    wanted = suite.cases(given.only)
    compare.choose_backends(given.backends or compare.BACKENDS, given.model)
    kept = output.open()
    with progress("suite") as report:
        done = suite.run(kept, given.ranks, bounds, wanted, how, report)
    rows = [{**r, "pair": f"{r['backend']} / {r['reference']}"} for j in done for r in suite.row_of(j)]
    groups = suite.totals(done)
    for told in suite.warnings_of(done):
        click.echo(f"warning: {told}", err=True)
    if output.as_json:
        print_json({"programs": rows, "groups": groups})
    elif output.as_csv:
        print_csv(rows, list(rows[0]))
    else:
        shown = [c for c in COLUMNS if any(r.get(c.key) is not None for r in rows)]
        print_table(rows, shown)
        say()
        pairs = [{**g, "pair": f"{g['backend']} / {g['reference']}"} for g in groups]
        print_table(pairs, (Column("group", "all held-out rows of"), Column("pair", "pair"), *_SPREAD))
    if given.out is not None:
        from retrompi.render.pages import suite_page

        if given.out.suffix.lower() == ".html":
            suite_page.write(given.out, done, bounds)
        else:
            write_drawn(given.out, dict, rows, {"programs": rows, "groups": groups})
        click.echo(f"written: {given.out}", err=not output.text)
    if not _good(done):
        ctx.exit(1)


def _good(done: Sequence[CaseResult]) -> bool:
    return all(j.comparison.completed and (j.verdict is None or j.verdict.passed) for j in done)
