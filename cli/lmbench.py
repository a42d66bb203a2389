"""``retrompi lmbench``: lmbench's numbers of simulated hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from retrompi.base.errors import UsageError
from retrompi.cli.bundle import option, options
from retrompi.cli.options import complete_platform
from retrompi.cli.output import Column, Output, say


def _number(v: float) -> str:
    return f"{v:.3g}" if v < 1000 else f"{v:.0f}"


NUMBERS = (Column("title", "lmbench"), Column("value", "simulated", _number, right=True), Column("unit", "unit"))
TABLE = (
    Column("system", "system"),
    Column("title", "lmbench"),
    Column("simulated", "simulated", _number, right=True),
    Column("published", "published", _number, right=True),
    Column("unit", "unit"),
    Column("error", "error", lambda v: f"{v:+.0%}", right=True),
    Column("use", "use"),
)
KEYS = ("system", "network", "platform", "role", "observable", "id", "simulated", "published", "unit", "error", "use", "near",
        "listed")


@dataclass(frozen=True)
class LmbenchOptions:
    """Options of ``retrompi lmbench``."""

    platform: str = option(
        "Platform: a name, a host of the library, hosts and network ('sun-ultra1*2@hub-100'), or a TOML file of your own. Without it, the "
        "systems that lmbench measured in 1996.",
        "-p", "--platform", default="", metavar="NAME|FILE", shell_complete=complete_platform)
    fit: bool = option("Fit the parameters: take the hosts' values from their input rows, and fit what a pipe costs.", "--fit")

    def __post_init__(self) -> None:
        if self.fit and self.platform:
            raise UsageError("--fit is for the systems that lmbench measured; leave --platform out", code="conflicting-options")


@click.command()
@options(given=LmbenchOptions, output=Output)
def command(given: LmbenchOptions, output: Output) -> None:
    """Run lmbench's programs on a simulated host: calls, context switches, pipes, TCP, copies.

    Latencies are round trips of a word, as lmbench counts them; 1 MB is 2^20 B, as it was until 1996. Without a platform the numbers
    stand beside those that lmbench published in 1996: 'input' if a value of the simulated host is taken from the number, 'fitted' if a
    constant of all hosts was fitted to it among others, otherwise 'predicted'.

    \b
    Examples:
      retrompi lmbench -p linux-i686
      retrompi lmbench -p 'sun-ultra1*2@hub-100' --json
      retrompi lmbench --csv
    """
    from retrompi.papers.fit import lmbench

    if given.fit:
        for file in lmbench.write(lmbench.fit()):
            click.echo(f"written: {file.name}", err=True)
    if given.platform:
        output.emit(lmbench.measure(given.platform), NUMBERS, keys=("observable", "value", "unit"))
        return
    rows = lmbench.table()
    output.emit([{**r, "system": _where(r)} for r in rows] if output.text else rows, TABLE, keys=KEYS)
    if not output.text:
        return
    told = lmbench.summary(rows)
    for name, n in told["observables"].items():
        say(f"{lmbench.OBSERVABLES[name].rpartition(', ')[0]}: {n['near']} of {n['of']} predictions within {lmbench.NEAR:.0%}")
    say(
        f"calls, switches, pipes, TCP and copies all within {lmbench.NEAR:.0%}: {len(told['listed_near'])} of {told['systems']} systems "
        f"({', '.join(told['listed_near']) or 'none'}), {len(told['listed_near_unused'])} of them used by no fit"
    )
    say(f"UDP and 32K as well: {len(told['all_near'])} ({', '.join(told['all_near']) or 'none'})")


def _where(row: Mapping[str, Any]) -> str:
    return str(row["system"] if row["network"] == "loopback" else f"{row['system']} ({row['network'].partition(',')[0]})")
