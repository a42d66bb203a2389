"""``retrompi replicate``: a disk copied to many machines."""

from __future__ import annotations

import click

from retrompi.base.units import parse
from retrompi.cli.options import csv_option, debug_option, json_option, open_for, store_option
from retrompi.cli.output import Column, as_text, emit, time_column
from retrompi.papers.disk_replication import NETWORKS

COLUMNS = (
    Column("machines", "machines", right=True),
    Column("fan_out", "fan-out", right=True),
    Column("levels", "levels", right=True),
    time_column("simulated_s", "simulated"),
    time_column("closed_form_s", "closed form"),
    Column("relative", "local copy = 1", as_text, right=True),
    Column("disk", "disk, B/s", as_text, right=True),
    Column("network", "network, B/s", as_text, right=True),
)


@click.command()
@click.option("--machines", "machines", default="7", show_default=True, metavar="N[,N...]", help="How many machines are copied to.")
@click.option("--network", type=click.Choice(list(NETWORKS)), default="myrinet", show_default=True, help="Over which TCP is simulated.")
@click.option("--tree", "fan_out", type=click.IntRange(1), default=1, show_default=True, help="Machines that each forwards to.")
@click.option("--disk", metavar="RATE", help="Rate of every disk, e.g. 40MB/s (default: as fitted).")
@click.option("--rate", metavar="RATE", help="Rate of the network instead of the simulated one, e.g. 10MB/s.")
@click.option(
    "-p", "--platform", default="myrinet-piii", show_default=True, metavar="NAME|FILE", help="Machines, of which three are simulated."
)
@json_option
@csv_option
@store_option
@debug_option
@click.pass_context
def command(
    ctx: click.Context,
    machines: str,
    network: str,
    fan_out: int,
    disk: str | None,
    rate: str | None,
    platform: str,
    as_json: bool,
    as_csv: bool,
    store: str | None,
) -> None:
    """Simulate copying the disk of the study to many machines, chunk by chunk, beside the closed form.

    Every machine receives, writes and forwards. The network's rate is that of TCP through a machine that does so, from a
    simulation of three. Beyond a limit of machines only the closed form answers.
    """
    from retrompi.base.errors import UsageError
    from retrompi.papers import replication as study
    from retrompi.papers.disk_replication import replicate

    try:
        counts = [int(n) for n in machines.split(",")]
    except ValueError:
        raise UsageError(f"'{machines}' is not a list of numbers of machines; example: 7,100,1000", code="bad-syntax") from None
    through = float(study.rates(open_for(ctx, store), network, platform)[1]["relay"]) if rate is None else parse(rate, "B/s")
    one = study.copy(study.fitted_disk() if disk is None else parse(disk, "B/s"), through)
    rows = [replicate(one, n, fan_out) for n in counts]
    emit(rows, COLUMNS, as_json=as_json, as_csv=as_csv, keys=list(rows[0]))
