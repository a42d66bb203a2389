"""``retrompi calibrate``: fit a model's free parameters."""

from __future__ import annotations

import click

from retrompi.cli.options import (
    complete_model,
    csv_option,
    debug_option,
    json_option,
    platform_option,
    progress,
    seed_option,
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
@json_option
@csv_option
@debug_option
def command(
    model: str, platform: str, seed: int, evaluations: int | None, dry_run: bool, as_json: bool, as_csv: bool
) -> None:
    """Fit a model's free parameters to the claims marked for calibration.

    MODEL is a name or a folder. Values move inside their sourced ranges only, no held-out claim is read, and the
    same seed gives the same fit. Writes fit.toml beside the model.
    """
    from retrompi import calibrate, registry

    cls = registry.model(model)
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
