"""``retrompi posterior``: what fits leave undetermined, and whether the intervals hold the truth as often as they say."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import click

from retrompi.base.errors import UsageError
from retrompi.cli.bundle import option, options
from retrompi.cli.options import OnPlatform, SeedOption, StoreOutput, complete_model, progress
from retrompi.cli.output import Column, as_text, say

POSTERIOR = (
    Column("parameter", "parameter"),
    Column("prior_low", "prior from", as_text, right=True),
    Column("prior_high", "to", as_text, right=True),
    Column("low", "5 %", as_text, right=True),
    Column("median", "50 %", as_text, right=True),
    Column("high", "95 %", as_text, right=True),
    Column("unit", "unit"),
    Column("left", "variance left", lambda v: f"{min(v, 1.0):.0%}", right=True),
    Column("fitted", "fitted", lambda v: "yes" if v else ""),
)
CHECKED = (
    Column("data", "data"),
    Column("truths", "truths", right=True),
    Column("parameters", "parameters", right=True),
    Column("seen", "seen", right=True),
    Column("coverage", "coverage", lambda v: f"{v:.1%}", right=True),
    Column("coverage_seen", "of those seen", lambda v: "" if v != v else f"{v:.1%}", right=True),
    Column("p_seen", "p", lambda v: f"{v:.2g}", right=True),
    Column("error_stated", "emulator's error", lambda v: f"{v:.1%}", right=True),
)


@dataclass(frozen=True)
class PosteriorOptions(OnPlatform, SeedOption):
    """Options of ``retrompi posterior``."""

    dry_run: bool = option("Do nothing: print the answer without writing a file.")
    simulations: int | None = option(
        "Training runs of each part of the posterior (default: 512; of its check: 300).", type=click.IntRange(64))


@click.group()
def command() -> None:
    """Find what fits leave undetermined, or check the intervals of posteriors.

    \b
    Examples:
      retrompi posterior find nemesis -p abe --dry-run
      retrompi posterior check sockets:pipe --dry-run
    """


@command.command("find")
@click.argument("what", metavar="MODEL|PAPER", shell_complete=complete_model)
@options(given=PosteriorOptions, output=StoreOutput)
def find(what: str, given: PosteriorOptions, output: StoreOutput) -> int:
    """Find the posterior of a model's parameters, or of a paper's fits.

    Nothing is fitted: the sourced ranges are priors, what the fit may see is the likelihood, and 1000 draws are written beside the fit
    (posterior.npz), of all models that are calibrated on the same platform, or of the fits of a paper that share a host. --uncertainty of
    other commands reads them. Exit code 1 means that it has not converged.

    \b
    Examples:
      retrompi posterior find nemesis -p abe --dry-run
      retrompi posterior find ./mypaper
    """
    from retrompi.api.fits import fitted_to_claims, is_paper
    from retrompi.inference import posterior, problem
    from retrompi.papers.statements.paper import working_with
    from retrompi.spec import registry

    simulations = given.simulations or posterior.SIMULATIONS
    done: list[posterior.Posterior] = []
    files: list[Path] = []

    def one_more(one: problem.Problem) -> None:
        with progress(f"posterior of {', '.join(one.written)}") as report:
            done.append(posterior.posterior(one, seed=given.seed, simulations=simulations, progress=report))
        files.extend([] if given.dry_run else done[-1].write())

    if is_paper(what):
        if given.platform:
            raise UsageError(f"--platform is for a model; the [[fit]] tables of '{what}' say what is fitted", code="unused-option")
        with working_with(what) as (paper,):
            problems = [*problem.of_paper(paper), *(problem.of_model(m, paper.platform) for m in fitted_to_claims(paper))]
            if not problems:
                raise UsageError(f"'{paper.key}' has no [[fit]], and no model of its own with claims to fit to: nothing says what is free",
                                 code="no-claims")
            for one in problems:
                one_more(one)
    else:
        one_more(problem.of_model(what, given.platform or registry.own_platform(what)))
    output.emit([row for found in done for row in found.rows()], POSTERIOR)
    if output.text:
        for found in done:
            say(f"\n{posterior.summary(found)}")
        for file in files:
            say(f"written: {file}")
    return 0 if all(found.converged for found in done) else 1


@command.command("check")
@click.argument("what", metavar="MODEL", shell_complete=complete_model)
@options(given=PosteriorOptions, output=StoreOutput)
def check(what: str, given: PosteriorOptions, output: StoreOutput) -> int:
    """Check that 90 % intervals hold the truth in nine of ten simulated cases.

    Points of the prior are taken as true: their simulated numbers, with a discrepancy and errors like those of what was published, are
    given to the calculation of 'find', and its 90 % intervals are counted (simulation-based calibration). The data are a standard curve on
    the model's own platform (or --platform) and what its fit may see. The table is kept in validate/posteriors/ranks.csv, that of your own
    model in its folder. Exit code 1 means that fewer than 85 or more than 95 % hold the truth.

    \b
    Examples:
      retrompi posterior check sockets:pipe --dry-run
    """
    from retrompi.base import paths
    from retrompi.inference import checks
    from retrompi.papers.statements.claims import papers
    from retrompi.spec import registry

    rows = []
    for data, problem in checks.of(what, given.platform).items():
        with progress(f"{problem.of}: {data}") as report:
            row, _ = checks.check(problem, data, seed=given.seed, trained=given.simulations or checks.TRAINED, progress=report)
        rows.append(row)
    output.emit([asdict(row) for row in rows], CHECKED)
    right = all(row.right for row in rows)
    if output.text:
        say("\nthe 90 % intervals hold the truth in 85 to 95 % of all cases" if right else
            "\nthe 90 % intervals do not hold the truth in 85 to 95 % of all cases: do not trust them")
    if not given.dry_run:
        folder = None if what in papers() else registry.model(what).folder()
        ours = folder is None or folder.is_relative_to(paths.models_dir())
        file = checks.write(rows, None if ours or folder is None else folder / "ranks.csv")
        if output.text:
            say(f"written: {file}")
    return 0 if right else 1
