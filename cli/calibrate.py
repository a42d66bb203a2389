"""``retrompi calibrate``: fit the free values of a model, or those of a paper's machines and models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from retrompi.cli.bundle import option, options
from retrompi.cli.options import OnPlatform, SeedOption, StoreOutput, complete_model, progress
from retrompi.cli.output import Column, as_text, print_table, say
from retrompi.cli.this_machine import ThisMachine
from retrompi.cli.this_machine import calibrate as calibrate_here

if TYPE_CHECKING:
    from retrompi.api.fits import Calibration

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


FITTED = (Column("fit", "fit"), *VALUES)
EVIDENCE = (
    Column("fit", "fit"),
    Column("evidence", "curve or claim"),
    Column("what", "what"),
    Column("points", "points", right=True),
    Column("observed", "simulated"),
    Column("limit", "median at most", lambda v: "" if v is None else f"{v:.0%}", right=True),
    Column("verdict", "verdict"),
)
PAPER_KEYS = ("fit", "parameter", "value", "low", "high", "note", "evidence", "what", "seen", "points", "median", "largest", "at_B",
              "limit", "observed", "verdict")


@dataclass(frozen=True)
class CalibrateOptions(OnPlatform, SeedOption):
    """Options of ``retrompi calibrate``."""

    evaluations: int | None = option("Approximate number of candidates to try (default: the optimiser's).", type=click.IntRange(1))
    dry_run: bool = option("Do nothing: print the fit without writing fit.toml.")
    only_fit: str | None = option("Of a paper: only this [[fit]].", metavar="NAME")


@click.command()
@click.argument("what", metavar="MODEL|PAPER", shell_complete=complete_model)
@options(given=CalibrateOptions, here=ThisMachine, output=StoreOutput)
def command(what: str, given: CalibrateOptions, here: ThisMachine, output: StoreOutput) -> int:
    """Fit a model's free parameters, or a paper's machines and models, to what is marked for calibration.

    A model is a name or a folder; it is fitted to claims, and to curves of its own evidence.toml. A paper is a key or a folder; each
    [[fit]] of its paper.toml moves values of models, hosts and networks until its measured curves and claims are met. Values stay within
    their sourced ranges, what is held out is never read before the fit is done, and the same seed gives the same fit. It is written
    beside the models and machines, and to the paper's own fit.toml for those that the package has. Exit code 1 means that a claim or
    curve which the fit has seen is missed.

    What a fit leaves undetermined, retrompi posterior finds.

    MODEL may also be this-machine: then messages between two ranks on this machine are measured, and a model of its MPI library and
    the platform 'this-machine' are added to your own models and platforms. Sizes and programs that the fit does not see are used to
    judge it.

    \b
    Examples:
      retrompi calibrate wmpi --dry-run
      retrompi calibrate gropp-lusk-1994 --dry-run
      retrompi calibrate ./mypaper
      retrompi calibrate this-machine --quick --name mine
    """
    from retrompi.api.fits import calibrate_model, is_paper
    from retrompi.base.errors import UsageError
    from retrompi.spec import registry

    model = what
    if model == "this-machine":
        if given.evaluations:
            raise UsageError(
                "--evaluations applies to the historical models; "
                f"'calibrate this-machine' takes {', '.join(here.given_values())} and --dry-run",
                code="unused-option",
            )
        calibrate_here(here, output, dry_run=given.dry_run)
        return 0
    wrong = next((k for k, v in here.given_values().items() if v), None)
    if wrong:
        raise UsageError(f"{wrong} applies only to 'calibrate this-machine', not to '{model}'", code="unused-option")
    if is_paper(what):
        return _paper(what, given, output)
    if given.only_fit is not None:
        raise UsageError(f"--only-fit names a [[fit]] of a paper, and '{what}' is none", code="unused-option")
    registry.model(model)
    found = calibrate_model(model, given.platform, progress, seed=given.seed, evaluations=given.evaluations, write=not given.dry_run)
    (fit,) = found.fits
    output.emit(fit.values, VALUES, empty="this model has nothing to fit")
    if output.text:
        say("")
        print_table(fit.residuals, RESIDUALS, "no claim was used")
        if fit.note:
            say(f"\n{fit.note}")
        for file in fit.files:
            say(f"\nwritten: {file}")
    return 1 if fit.missed else 0


def _paper(what: str, given: CalibrateOptions, output: StoreOutput) -> int:
    """The fits of a paper."""
    from retrompi.api.fits import calibrate_paper
    from retrompi.base.errors import UsageError

    others = {"--evaluations": given.evaluations, "--platform": given.platform}
    wrong = next((k for k, v in others.items() if v), None)
    if wrong:
        raise UsageError(f"{wrong} is for a model; the [[fit]] tables of '{what}' say what is fitted", code="unused-option")
    found = calibrate_paper(what, progress, seed=given.seed, only_fit=given.only_fit, write=not given.dry_run)
    _print_fits(found, output)
    return 1 if found.missed else 0


def _print_fits(found: Calibration, output: StoreOutput) -> None:
    evidence = found.evidence.rows
    if not output.text:
        output.emit([{k: row.get(k) for k in PAPER_KEYS} for row in [*found.rows, *evidence]], (), keys=PAPER_KEYS)
        return
    print_table(found.rows, FITTED, "nothing was free")
    say("")
    print_table(evidence, EVIDENCE, "nothing was judged")
    say(f"\nmissed: {', '.join(found.missed)}" if found.missed else "\nevery curve and claim that a fit saw is met")
    if found.unseen:
        say(f"marked for calibration, seen by no fit: {', '.join(found.unseen)}")
    for file in found.written:
        say(f"written: {file}")
