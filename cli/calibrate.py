"""``retrompi calibrate``: fit a model's free parameters."""

from __future__ import annotations

import click

from retrompi.cli.options import (
    complete_model,
    csv_option,
    debug_option,
    json_option,
    open_for,
    platform_option,
    progress,
    seed_option,
    store_option,
)
from retrompi.cli.output import Column, as_text, emit, print_table

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


@click.command()
@click.argument("model", shell_complete=complete_model)
@platform_option
@seed_option
@click.option("--evaluations", type=click.IntRange(1), help="About how many candidates to try (default: the optimiser's).")
@click.option("--dry-run", is_flag=True, help="Print the fit without writing fit.toml.")
@click.option("--mpi", type=click.Choice(["mpich", "openmpi"]), help="this-machine: whose messages (default: MPICH, else Open MPI).")
@click.option("--quick", is_flag=True, help="this-machine: a few seconds instead of a minute; wider noise.")
@click.option("--internode", is_flag=True, help="this-machine: also two network namespaces on a virtual link, as root.")
@click.option("--rate", metavar="RATE", help="this-machine --internode: rate of the link (default: 100 Mbps).")
@click.option("--delay", metavar="TIME", help="this-machine --internode: one-way delay of the link (default: 100 us).")
@click.option("--name", metavar="NAME", help="this-machine: the model's name (default: that of the MPI).")
@click.option("--record", metavar="FILE", help="this-machine: keep every measured number in FILE (.json or .json.zst).")
@click.option("--from", "recorded", metavar="FILE", help="this-machine: fit again from what --record kept, measuring nothing.")
@click.option("--nas", is_flag=True, help="Fit the NAS programs (computation, gain) of the study on this runtime's systems instead.")
@click.option("--replication", is_flag=True, help="Fit the disks of the replication study instead.")
@json_option
@csv_option
@store_option
@debug_option
@click.pass_context
def command(
    ctx: click.Context,
    model: str,
    platform: str,
    seed: int,
    evaluations: int | None,
    dry_run: bool,
    mpi: str | None,
    quick: bool,
    internode: bool,
    rate: str | None,
    delay: str | None,
    name: str | None,
    record: str | None,
    recorded: str | None,
    nas: bool,
    replication: bool,
    as_json: bool,
    as_csv: bool,
    store: str | None,
) -> None:
    """Fit a model's free parameters to the claims marked for calibration.

    MODEL is a name or a folder. Values move inside their sourced ranges only, no held-out claim is read, and the
    same seed gives the same fit. Writes fit.toml beside the model.

    MODEL may also be this-machine: then messages between two ranks on this machine are measured, and a model of its
    MPI and the platform 'this-machine' are written among your own models and platforms. Sizes and programs that the fit
    does not see judge it.
    """
    from retrompi.base.errors import UsageError
    from retrompi.papers import calibrate
    from retrompi.spec import registry

    own = {"--mpi": mpi, "--quick": quick, "--internode": internode, "--rate": rate, "--delay": delay, "--name": name, "--record": record,
           "--from": recorded}  # fmt: skip
    if model == "this-machine":
        others = {"--nas": nas, "--replication": replication, "--evaluations": evaluations}
        wrong = next((k for k, v in others.items() if v), None)
        if wrong:
            raise UsageError(
                f"{wrong} is of the historical models; 'calibrate this-machine' takes {', '.join(own)} and --dry-run", code="unused-option"
            )
        from retrompi.cli import this_machine

        this_machine.calibrate(this_machine.Wanted(mpi, quick, internode, rate, delay, name, record, recorded, dry_run), as_json, as_csv)
        return
    wrong = next((k for k, v in own.items() if v), None)
    if wrong:
        raise UsageError(f"{wrong} goes with 'calibrate this-machine', not with '{model}'", code="unused-option")
    cls = registry.model(model)
    if nas or replication:
        if nas and replication:
            raise UsageError("--nas and --replication are two fits; name one", code="conflicting-options")
        if evaluations is not None:
            raise UsageError(
                "--evaluations is of the model's own fit; those of a study end when they have met the published times", code="unused-option"
            )
        _study(ctx, nas, store, dry_run, as_json, as_csv)
        return
    registry.platform(platform)
    with progress(f"fit {cls.name}") as report:
        fit = calibrate.fit(model, platform, seed=seed, evaluations=evaluations, progress=report)
    emit(fit.values, VALUES, as_json=as_json, as_csv=as_csv, empty="this model has nothing to fit")
    if not (as_json or as_csv):
        click.echo("")
        print_table(fit.residuals, RESIDUALS, "no claim was used")
        if fit.note:
            click.echo(f"\n{fit.note}")
    if dry_run:
        return
    written = fit.write()
    if not (as_json or as_csv):
        click.echo(f"\nwritten: {written}")


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


def _study(ctx: click.Context, nas: bool, store: str | None, dry_run: bool, as_json: bool, as_csv: bool) -> None:
    """The fits that belong to a study, on the study's own platform: T(1) and T(4) of the NAS programs, or the disks."""
    from retrompi.papers import nas as programs
    from retrompi.papers import replication as disks
    from retrompi.papers.study import setup

    plan = setup(programs.PAPER)
    kept = open_for(ctx, store)
    if nas:
        with progress("fit NAS") as report:
            rows = programs.calibrate(kept, plan.options("nas")["systems"], plan.platform, report, write=not dry_run)
    else:
        rows = [disks.calibrate(kept, plan.platform, write=not dry_run)]
    emit(rows, NAS if nas else DISK, as_json=as_json, as_csv=as_csv)
