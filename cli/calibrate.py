"""``retrompi calibrate``: fit a model's free parameters."""

from __future__ import annotations

from dataclasses import dataclass

import click

from retrompi.cli.bundle import option, options
from retrompi.cli.options import Drawn, OnPlatform, StoreOutput, complete_model, progress
from retrompi.cli.output import Column, as_text, print_table, say
from retrompi.cli.this_machine import ThisMachine
from retrompi.cli.this_machine import calibrate as calibrate_here

VALUES = (
    Column("parameter", "parameter"),
    Column("value", "value", right=True),
    Column("low", "low", right=True),
    Column("high", "high", right=True),
    Column("note", "identifiability"),
)
RESIDUALS = (
    Column("claim", "claim"),
    Column("observed", "observed", as_text, right=True),
    Column("low", "low", as_text, right=True),
    Column("high", "high", as_text, right=True),
    Column("unit", "unit"),
    Column("residual", "residual", as_text, right=True),
)


@dataclass(frozen=True)
class CalibrateOptions(OnPlatform, Drawn):
    """Options of ``retrompi calibrate``."""

    evaluations: int | None = option("Approximate number of candidates to try (default: the optimiser's).", type=click.IntRange(1))
    dry_run: bool = option("Do nothing: print the fit without writing fit.toml.")
    nas: bool = option("Fit the NAS programs (computation, gain) on this runtime's systems instead.")
    replication: bool = option("Fit the disks of the disk-copy paper instead.")


@click.command()
@click.argument("model", shell_complete=complete_model)
@options(given=CalibrateOptions, here=ThisMachine, output=StoreOutput)
def command(model: str, given: CalibrateOptions, here: ThisMachine, output: StoreOutput) -> int:
    """Fit a model's free parameters to the claims marked for calibration.

    MODEL is a name or a folder. Values stay within their sourced ranges, held-out claims are never read, and the same seed gives
    the same fit. The result is written to fit.toml beside the model.

    MODEL may also be this-machine: then messages between two ranks on this machine are measured, and a model of its MPI library and
    the platform 'this-machine' are added to your own models and platforms. Sizes and programs that the fit does not see are used to
    judge it. Exit code 1 means that a claim which the fit has seen lies outside its range.

    \b
    Examples:
      retrompi calibrate wmpi --dry-run
      retrompi calibrate this-machine --quick --name mine
    """
    from retrompi.base.errors import UsageError
    from retrompi.papers import calibrate
    from retrompi.spec import registry

    if model == "this-machine":
        others = {"--nas": given.nas, "--replication": given.replication, "--evaluations": given.evaluations}
        wrong = next((k for k, v in others.items() if v), None)
        if wrong:
            raise UsageError(
                f"{wrong} applies to the historical models; 'calibrate this-machine' takes {', '.join(here.given())} and --dry-run",
                code="unused-option",
            )
        calibrate_here(here, output, dry_run=given.dry_run)
        return 0
    wrong = next((k for k, v in here.given().items() if v), None)
    if wrong:
        raise UsageError(f"{wrong} applies only to 'calibrate this-machine', not to '{model}'", code="unused-option")
    cls = registry.model(model)
    if given.nas or given.replication:
        if given.nas and given.replication:
            raise UsageError("--nas and --replication are different fits; give one", code="conflicting-options")
        if given.evaluations is not None:
            raise UsageError(
                "--evaluations applies to the model's own fit only", code="unused-option"
            )
        _study(given, output)
        return 0
    registry.platform(given.platform)
    with progress(f"fit {cls.name}") as report:
        fit = calibrate.fit(model, given.platform, seed=given.seed, evaluations=given.evaluations, progress=report)
    output.emit(fit.values, VALUES, empty="this model has nothing to fit")
    if output.text:
        say("")
        print_table(fit.residuals, RESIDUALS, "no claim was used")
        if fit.note:
            say(f"\n{fit.note}")
    if not given.dry_run:
        written = fit.write()
        if output.text:
            say(f"\nwritten: {written}")
    return 1 if fit.outside else 0


NAS = (
    Column("program", "program"),
    Column("system", "system"),
    Column("compute_s", "computation, s", as_text, right=True),
    Column("gain", "gain", as_text, right=True),
    Column("memory_share", "memory share", as_text, right=True),
    Column("error_1", "off T(1)", as_text, right=True),
    Column("error_4", "off T(4)", as_text, right=True),
    Column("claims", "claims"),
)
DISK = (
    Column("disk", "disk, B/s", as_text, right=True),
    Column("low", "low", as_text, right=True),
    Column("high", "high", as_text, right=True),
    Column("time_s", "time, s", as_text, right=True),
    Column("published_s", "published, s", as_text, right=True),
    Column("claims", "claims"),
)


def _study(given: CalibrateOptions, output: StoreOutput) -> None:
    """The fits of a study, on its own platform: T(1) and T(4) of the NAS programs, or the disks."""
    from retrompi.papers import nas as programs
    from retrompi.papers.paper import find_paper

    plan = find_paper(programs.PAPER)
    kept = output.open()
    if given.nas:
        with progress("fit NAS") as report:
            rows = programs.calibrate(kept, plan.options("nas")["systems"], plan.platform, report, write=not given.dry_run)
    else:
        from retrompi.papers import replication_task

        rows = [replication_task.calibrate(kept, plan.platform, write=not given.dry_run)]
    output.emit(rows, NAS if given.nas else DISK)
