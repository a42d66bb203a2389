"""``retrompi paper nas``: Table 1 of the paper, simulated and published, and the fit of its programs."""

from __future__ import annotations

from dataclasses import dataclass

import click

from retrompi.cli.bundle import option, options
from retrompi.cli.options import RunOutput, progress
from retrompi.cli.output import Column, as_text, say, time_column

from ..experiments import _nas as nas


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
FITTED = (
    Column("program", "program"),
    Column("system", "system"),
    Column("compute_s", "computation, s", as_text, right=True),
    Column("gain", "gain", as_text, right=True),
    Column("memory_share", "memory share", as_text, right=True),
    Column("error_1", "off T(1)", as_text, right=True),
    Column("error_4", "off T(4)", as_text, right=True),
    Column("claims", "claims"),
)


@dataclass(frozen=True)
class NasOptions:
    """Options of ``retrompi paper nas``."""

    fitting: bool = option("Fit the parameters: computation and gain, to the times on 1 and 4 processes, and write the fit.", "--fit")
    dry_run: bool = option("Do nothing: with --fit, print the fit without writing it.")


@click.command()
@options(given=NasOptions, output=RunOutput)
def command(given: NasOptions, output: RunOutput) -> None:
    """Replay the NAS benchmarks IS and LU on MPI-BIP and compare with the published times.

    The traces are captured class A and B runs. Times on 1 and 4 processes were fitted (--fit); those on 8 and 16, and the speed-ups,
    are predictions. docs/nas.md explains how the share of memory accesses was counted.

    \b
    Examples:
      retrompi paper nas
      retrompi paper nas --csv
      retrompi paper nas --fit --dry-run
    """
    from retrompi.papers.reproduce import reproduction
    from retrompi.papers.statements.paper import find_paper

    if given.fitting:
        plan = find_paper(nas.PAPER)
        with progress("fit NAS") as report:
            fitted = nas.calibrate(output.open(), plan.options("nas")["systems"], plan.platform, report, write=not given.dry_run)
        output.emit(fitted, FITTED)
        return
    with progress("NAS") as report:
        facts = reproduction.facts_of_experiment(nas.PAPER, "nas", output.open(), output.fresh, report)
    rows = nas.table(facts["nas"])
    output.emit(rows, COLUMNS)
    if output.text:
        told = nas.summary(rows)
        say(f"\nheld out: {told['cells']} times, median error {told['median']:.1%}, largest {told['largest']:.1%}")
