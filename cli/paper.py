"""``retrompi paper``: what belongs to one paper alone."""

from __future__ import annotations

import click

from retrompi.cli import nas, replicate, rinf1
from retrompi.cli.bundle import debug_option


@click.group()
@debug_option
def command() -> None:
    """Reproduce what one paper alone is about: the NAS benchmarks, Rinf1 loops, copying disks.

    'retrompi reproduce' replays and judges whole papers.

    \b
    Examples:
      retrompi paper nas
      retrompi paper rinf1 --platform nt-pair
      retrompi paper replicate --machines 7,100
    """


command.add_command(nas.command, "nas")
command.add_command(rinf1.command, "rinf1")
command.add_command(replicate.command, "replicate")
