"""``retrompi replicate``: a disk copied to many machines."""

from __future__ import annotations

from dataclasses import dataclass

import click

from retrompi.base.units import parse
from retrompi.cli.bundle import option, options
from retrompi.cli.options import StoreOutput
from retrompi.cli.output import Column, as_text, time_column
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


@dataclass(frozen=True)
class ReplicateOptions:
    """Options of ``retrompi replicate``."""

    machines: str = option("How many machines are copied to.", default="7", metavar="N[,N...]")
    network: str = option("Over which TCP is simulated.", type=click.Choice(list(NETWORKS)), default="myrinet")
    fan_out: int = option("Machines that each forwards to.", "--tree", type=click.IntRange(1), default=1)
    disk: str | None = option("Rate of every disk, e.g. 40MB/s (default: as fitted).", metavar="RATE")
    rate: str | None = option("Rate of the network instead of the simulated one, e.g. 10MB/s.", metavar="RATE")
    platform: str = option("Machines, of which three are simulated.", "-p", "--platform", default="myrinet-piii", metavar="NAME|FILE")


@click.command()
@options(given=ReplicateOptions, output=StoreOutput)
def command(given: ReplicateOptions, output: StoreOutput) -> None:
    """Simulate copying the disk of the study to many machines, chunk by chunk, beside the closed form.

    Every machine receives, writes and forwards. The network's rate is that of TCP through a machine that does so, from a
    simulation of three. Beyond a limit of machines only the closed form answers.
    """
    from retrompi.base.errors import UsageError
    from retrompi.papers import replication as study
    from retrompi.papers.disk_replication import replicate

    try:
        counts = [int(n) for n in given.machines.split(",")]
    except ValueError:
        raise UsageError(f"'{given.machines}' is not a list of numbers of machines; example: 7,100,1000", code="bad-syntax") from None
    if given.rate is None:
        through = float(study.rates(output.open(), given.network, given.platform)[1]["relay"])
    else:
        through = parse(given.rate, "B/s")
    one = study.copy(study.fitted_disk() if given.disk is None else parse(given.disk, "B/s"), through)
    rows = [replicate(one, n, given.fan_out) for n in counts]
    output.emit(rows, COLUMNS, keys=list(rows[0]))
