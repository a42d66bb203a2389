"""``retrompi startup``: what a person does to start a job, and how often it fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from retrompi.base.units import format_time
from retrompi.cli.options import csv_option, debug_option, json_option, mode_option, model_option, platform_option, seed_option, set_option
from retrompi.cli.output import Column, emit, print_json

COLUMNS = (
    Column("step", "step"),
    Column("manual", "by hand", right=True),
    Column("windows", "windows", right=True),
    Column("daemons", "daemons", right=True),
    Column("seconds", "takes", lambda v: format_time(v) if v else "", right=True),
    Column("note", "note"),
)


@click.command()
@model_option
@platform_option
@mode_option("distributed")
@click.option("--np", "ranks", type=click.IntRange(1), help="Ranks of the job (default: one for each host).")
@click.option("--starts", type=click.IntRange(1), default=100, show_default=True, help="How often the start is tried.")
@set_option
@seed_option
@json_option
@csv_option
@debug_option
@click.pass_context
def command(
    ctx: click.Context,
    model: str,
    platform: str,
    mode: str,
    ranks: int | None,
    starts: int,
    sets: tuple[str, ...],
    seed: int,
    as_json: bool,
    as_csv: bool,
) -> None:
    """Show how a job is started: manual steps, windows, daemons, and how often the start fails.

    The times of the steps are those of the first start; the failures are counted over all of them. Exit code 1 when the
    runtime cannot join the hosts in one job.
    """
    from retrompi.sim import simulate
    from retrompi.sim.resolved import Resolved
    from retrompi.spec import registry
    from retrompi.spec.question import Question, Starts

    if not ranks:
        ranks = len(registry.platform(platform).hosts)
    asked = Resolved.of(Question(model, platform, Starts(ranks, starts), mode, sets, seed))
    told, apart = simulate.startup(asked), asked.apart
    if as_json and not as_csv:
        print_json({**told, "refused": apart})
    else:
        emit(told["steps"], COLUMNS, as_json=as_json, as_csv=as_csv, empty="nothing has to be done")
        if not as_csv:
            click.echo("\n" + summary(told))
    if apart:
        click.echo(f"outcome failed-start: {apart}", err=True)
        ctx.exit(1)


def summary(told: Mapping[str, Any]) -> str:
    """One line for the counts of a start-up, as `retrompi.sim.simulate.startup` gives them."""
    return (
        f"{told['ranks']} ranks on {told['hosts']} hosts: {told['manual_steps_per_job']} steps by hand, {told['windows']} windows, "
        f"{told['daemons']} daemons; {told['failures']} of {told['attempts']} starts fail"
    )
