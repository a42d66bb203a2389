"""``retrompi paper nas``: Table 1 of lefevre-westrelin, simulated and published."""

from __future__ import annotations

import click

from retrompi.cli.bundle import options
from retrompi.cli.options import RunOutput, progress
from retrompi.cli.output import Column, as_text, say, time_column


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:+.1%}"


COLUMNS = (
    Column("program", "program"),
    Column("system", "system"),
    Column("processes", "processes", right=True),
    Column("use", "use"),
    Column("published_s", "published, s", as_text, right=True),
    Column("time_s", "simulated, s", as_text, right=True),
    Column("error", "off", _percent, right=True),
    Column("published_speedup", "speed-up", as_text, right=True),
    Column("speedup", "simulated", lambda v: "" if v is None else f"{v:.2f}", right=True),
    time_column("replay_s", "replayed in"),
)


@click.command()
@options(output=RunOutput)
def command(output: RunOutput) -> None:
    """Replay the NAS benchmarks IS and LU on MPI-BIP and compare with the published times.

    The traces are captured class A and B runs. Times on 1 and 4 processes were fitted ('retrompi calibrate mpibip --nas'); those on
    8 and 16, and the speed-ups, are predictions. docs/nas.md explains how the share of memory accesses was counted.

    \b
    Examples:
      retrompi paper nas
      retrompi paper nas --csv
    """
    from retrompi.papers import nas, reproduction

    with progress("NAS") as report:
        facts = reproduction.facts_of_experiment(nas.PAPER, "nas", output.open(), output.fresh, report)
    rows = nas.table(facts["nas"])
    output.emit(rows, COLUMNS)
    if output.text:
        told = nas.summary(rows)
        say(f"\nheld out: {told['cells']} times, median error {told['median']:.1%}, largest {told['largest']:.1%}")
