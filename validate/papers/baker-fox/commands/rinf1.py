"""``retrompi paper rinf1``: the 17 loops on a machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from retrompi.cli.bundle import option, options
from retrompi.cli.calibrate import RESIDUALS, VALUES
from retrompi.cli.loop_rates import COLUMNS, KEYS, with_published
from retrompi.cli.options import Effort, Overrides, RunOutput, SeedOption, complete_platform, progress
from retrompi.cli.output import Column, Output, as_text, note_run, print_json, print_table, say

from ..experiments import _rinf1 as rinf1


@dataclass(frozen=True)
class Rinf1Options(Effort, Overrides, SeedOption):
    """Options of ``retrompi paper rinf1``."""

    platform: str = option(
        "Platform: its hosts.", "-p", "--platform", default="nt-pair", metavar="NAME|FILE", shell_complete=complete_platform)
    host: str | None = option("Host of the platform (default: all, with one table each).", "--platform-host", metavar="NAME")
    loops: str = option("Names of loops, separated by commas (default: all).", "--kernels", default="", metavar="NAMES")
    fitting: bool = option("Fit the parameters: of the machines, to the claims marked for calibration, and write the fit.", "--fit")
    dry_run: bool = option("Do nothing: with --fit, print the fit without writing it.")


@click.command()
@options(given=Rinf1Options, output=RunOutput)
def command(given: Rinf1Options, output: RunOutput) -> None:
    """Time the 17 Rinf1 loops on a machine, or fit the machine to them.

    Rates are in Mflop/s (flop/s in JSON and CSV): the smallest and the largest over all vector lengths by the machine's own clock,
    then Rinf and n1/2 of the loop in cache.

    \b
    Examples:
      retrompi paper rinf1 --platform nt-pair --platform-host server
      retrompi paper rinf1 --kernels daxpy --csv
    """
    from retrompi.spec import registry
    from retrompi.spec.machine import kernels
    from retrompi.spec.question import Benchmark, Question
    from retrompi.store.lookup import answer

    room = registry.platform(given.platform)
    hosts = [room.host(given.host).name] if given.host else [h.name for h in room.hosts]
    for name in given.loops.split(","):
        if name.strip():
            kernels.loop(name.strip())
    if given.fitting:
        _fit(room.name, given.platform, hosts, given.seed, given.dry_run, output)
        return
    store_ = output.open()
    tables: dict[str, list[dict[str, Any]]] = {}
    for h in hosts:
        workload = Benchmark("rinf1", {"kernels": given.loops})
        question = Question("wmpi", given.platform, workload, h, given.sets, given.seed, bounds=given.bounds())
        found = answer(store_, question, fresh=output.fresh)
        tables[h] = with_published(found.rows, room.name, h)
        note_run(found.run_id, found.found)
    if not output.text:
        rows = [{"host": h, **r} for h, table in tables.items() for r in table]
        output.emit(rows, COLUMNS, keys=("host", *KEYS))
        return
    for i, (h, table) in enumerate(tables.items()):
        say(("\n" if i else "") + f"{h}: {room.host(h).os}, Mflop/s")
        print_table(table, COLUMNS)


def _fit(name: str, platform: str, hosts: list[str], seed: int, dry_run: bool, output: Output) -> None:
    fits = []
    with progress(f"fit {name}") as report:
        for i, h in enumerate(hosts):
            report(i, len(hosts), h)
            fits.append(rinf1.fit(platform, h, seed=seed))
            report(i + 1, len(hosts), h)
    rows = [{"host": f.host, **v} for f in fits for v in f.values]
    if output.as_json:
        print_json([{"host": f.host, "values": f.values, "residuals": f.residuals, "note": f.note} for f in fits])
    else:
        output.emit(rows, (Column("host", "host"), *VALUES))
    if output.text:
        say("")
        print_table([r for f in fits for r in f.residuals], RESIDUALS)
        for f in fits:
            say(f"\n{f.host}: {as_text(f.note)}")
    if not dry_run:
        written = rinf1.write(platform, fits)
        if output.text:
            say(f"\nwritten: {written}")
