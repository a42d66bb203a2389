"""``retrompi paper replicate``: copying a disk to many machines."""

from __future__ import annotations

from dataclasses import dataclass

import click

from retrompi.base.units import parse
from retrompi.cli.bundle import option, options
from retrompi.cli.options import StoreOutput
from retrompi.cli.output import Column, as_text, time_column

from ..experiments import _replication_task as task
from ..experiments._disk_replication import NETWORKS, replicate

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
DISK = (
    Column("disk", "disk, B/s", as_text, right=True),
    Column("low", "low", as_text, right=True),
    Column("high", "high", as_text, right=True),
    Column("time_s", "time, s", as_text, right=True),
    Column("published_s", "published, s", as_text, right=True),
    Column("claims", "claims"),
)


@dataclass(frozen=True)
class ReplicateOptions:
    """Options of ``retrompi paper replicate``."""

    machines: str = option("Number of machines that receive a copy; several separated by commas.", default="7", metavar="N[,N...]")
    interconnect: str = option("Interconnect between the machines.", type=click.Choice(list(NETWORKS)), default="myrinet")
    fan_out: int = option("Number of machines to which each machine forwards.", "--tree", type=click.IntRange(1), default=1)
    disk: str | None = option("Rate of each disk, e.g. 40MB/s (default: as fitted).", metavar="RATE")
    rate: str | None = option("Rate of the link, e.g. 10MB/s (default: simulated).", "--link-rate", metavar="RATE")
    platform: str = option(
        "Platform: three machines of it are simulated.", "-p", "--platform", default="myrinet-piii", metavar="NAME|FILE")
    fitting: bool = option("Fit the parameters: of the disks, to the published time on one interconnect, and write the fit.", "--fit")
    dry_run: bool = option("Do nothing: with --fit, print the fit without writing it.")


@click.command()
@options(given=ReplicateOptions, output=StoreOutput)
def command(given: ReplicateOptions, output: StoreOutput) -> None:
    """Simulate copying a disk to many machines, and compare with the closed form.

    Every machine receives chunks, writes them and forwards them. The network rate is that of TCP through such a machine, taken from
    a simulation of three machines. Beyond a limit on the number of machines only the closed form is given.

    \b
    Examples:
      retrompi paper replicate --machines 7,100,1000
      retrompi paper replicate --interconnect fast-ethernet --tree 2
      retrompi paper replicate --fit --dry-run
    """
    from retrompi.base.errors import UsageError

    if given.fitting:
        output.emit([task.calibrate(output.open(), given.platform, write=not given.dry_run)], DISK)
        return
    try:
        counts = [int(n) for n in given.machines.split(",")]
    except ValueError:
        raise UsageError(f"'{given.machines}' is not a list of numbers of machines; example: 7,100,1000", code="bad-syntax") from None
    if given.rate is None:
        through = float(task.rates(output.open(), given.interconnect, given.platform)[1]["relay"])
    else:
        through = parse(given.rate, "B/s")
    one = task.copy(task.fitted_disk() if given.disk is None else parse(given.disk, "B/s"), through)
    rows = [replicate(one, n, given.fan_out) for n in counts]
    output.emit(rows, COLUMNS, keys=list(rows[0]))
