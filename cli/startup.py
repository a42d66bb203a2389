"""``retrompi startup``: manual steps of starting a job, and its failure rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from retrompi.base.units import format_time
from retrompi.cli.bundle import option, options
from retrompi.cli.options import Fictions, OfModel, Seeded, mode_option, ranks_option
from retrompi.cli.output import Column, Output, note_warnings, print_json, say

COLUMNS = (
    Column("step", "step"),
    Column("manual", "by hand", right=True),
    Column("windows", "windows", right=True),
    Column("daemons", "daemons", right=True),
    Column("seconds", "takes", lambda v: format_time(v) if v else "", right=True),
    Column("note", "note"),
)


@dataclass(frozen=True)
class StartupOptions(Fictions, Seeded, OfModel):
    """Options of ``retrompi startup``."""

    mode: str = mode_option("distributed")
    ranks: int | None = ranks_option(" (default: one per host)")
    starts: int = option("Number of starts to simulate.", type=click.IntRange(1), default=100)


@click.command()
@options(given=StartupOptions, output=Output)
@click.pass_context
def command(ctx: click.Context, given: StartupOptions, output: Output) -> None:
    """Show how a job is started: manual steps, windows, daemons, and how often it fails.

    The step times are those of the first start; failures are counted over all starts. Exit code 1 means that the runtime cannot
    join the hosts in one job.

    \b
    Examples:
      retrompi startup --model wmpi --platform nt-cluster
      retrompi startup -m winmpich -p nt-cluster --starts 1000 --json
    """
    from retrompi.sim import simulate
    from retrompi.sim.cautions import mark, of_question
    from retrompi.sim.resolved import Resolved
    from retrompi.spec import registry
    from retrompi.spec.question import Starts

    ranks = given.ranks or len(registry.platform(given.platform).hosts)
    asked = Resolved.of(given.question(Starts(ranks, given.starts)))
    told, apart, warnings = simulate.startup(asked), asked.apart, of_question(asked)
    warned = note_warnings(warnings)
    if output.as_json:
        print_json({**told, "refused": apart, "warnings": warned})
    else:
        output.emit(told["steps"], COLUMNS, empty="nothing has to be done")
        if not output.as_csv:
            say("\n" + summary(told) + mark(warnings))
    if apart:
        click.echo(f"outcome failed-start: {apart}", err=True)
        ctx.exit(1)


def summary(told: Mapping[str, Any]) -> str:
    """One line for the counts of a start-up, as `retrompi.sim.simulate.startup` gives them."""
    return (
        f"{told['ranks']} ranks on {told['hosts']} hosts: {told['manual_steps_per_job']} steps by hand, {told['windows']} windows, "
        f"{told['daemons']} daemons; {told['failures']} of {told['attempts']} starts fail"
    )
