"""Calibration: fits of a model, or of the machines and models of a paper, to the published values marked for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.api.checking import check_arguments
from retrompi.api.frames import Progress, Row, Table, reporting
from retrompi.api.programs import Rows
from retrompi.base.errors import UsageError, nearest

if TYPE_CHECKING:
    from retrompi.api.judging import Reporting
    from retrompi.papers.fit.curve_fits import PaperEvidence
    from retrompi.papers.statements.paper import Paper

__all__ = ["Calibration", "Fitted", "calibrate", "calibrate_model", "calibrate_paper", "fitted_to_claims", "is_paper"]


@dataclass(frozen=True)
class Fitted:
    """One fit: its values, what it was judged by, what it missed, and the files written."""

    name: str
    values: Sequence[Row]
    """parameter, value, low, high, note."""
    evidence: Sequence[Row]
    """evidence, what, seen, points, median, largest, at_B, limit, observed, verdict of every curve and claim."""
    missed: Sequence[str]
    files: Sequence[Path]
    residuals: Sequence[Row] = ()
    """Of a model: claim, observed, low, high, unit, residual (within -1 to 1: inside the claim's range)."""
    note: str = ""


class Calibration(Table):
    """The result of a calibration: a row for each fitted value, with its range and how well the data determine it.

    >>> retrompi.calibrate("mpibip", evaluations=50).missed    # values with their units    # doctest: +SKIP
    []
    """

    def __init__(self, of: str, fits: Sequence[Fitted], unseen: Sequence[str] = ()) -> None:
        self.of, self.fits, self.unseen = of, fits, unseen
        """What was fitted; each fit; what is marked for calibration and was seen by no fit."""

    @property
    def title(self) -> str:
        """The model or paper that was fitted."""
        return f"calibration of {self.of}"

    @property
    def rows(self) -> Sequence[Row]:
        """fit, parameter, value (text with its unit), low, high, note of every value."""
        return [{"fit": f.name, **row} for f in self.fits for row in f.values]

    @property
    def evidence(self) -> Table:
        """The curves and statements that judge the fits: fit, evidence, what, seen (by the fit), points, median and largest error (shares),
        limit, observed, verdict."""
        return Rows(f"evidence of the {self.title}", [{"fit": f.name, **row} for f in self.fits for row in f.evidence])

    @property
    def missed(self) -> list[str]:
        """The curves and claims that a fit has seen and does not meet."""
        return [f"{name} ({f.name})" for f in self.fits for name in f.missed]

    @property
    def written(self) -> list[Path]:
        """The files written, if that was asked for."""
        return list(dict.fromkeys(file for f in self.fits for file in f.files))


def is_paper(what: str) -> bool:
    """Whether ``what`` is the key or the folder of a paper, and no model."""
    from retrompi.papers.statements.claims import papers

    return what in papers() or (Path(what) / "paper.toml").is_file()


def calibrate_model(
    model: str, platform: str | None, reporting: Reporting, *, seed: int, evaluations: int | None, write: bool
) -> Calibration:
    """The fit of a model's free parameters, on a platform (None: its own)."""
    from retrompi.papers.fit import calibrate
    from retrompi.spec import registry

    cls, on = registry.model(model), platform or registry.own_platform(model)
    registry.platform(on)
    with reporting(f"fit {cls.name}") as report:
        fit = calibrate.fit(model, on, seed=seed, evaluations=evaluations, progress=report)
    evidence, files = [_claim_row(r) for r in fit.residuals], [fit.write()] if write else []
    done = Fitted(cls.name, fit.values, evidence, fit.outside, files, fit.residuals, fit.note)
    return Calibration(model, [done])


def calibrate_paper(paper: str, reporting: Reporting, *, seed: int, only_fit: str | None, write: bool) -> Calibration:
    """The fits of a paper, one after the other: each is written, if at all, before the next begins."""
    from retrompi.base import paths
    from retrompi.papers.fit import curve_fits
    from retrompi.papers.statements import curves
    from retrompi.papers.statements.paper import working_with

    with working_with(paper) as (found,):
        plans = {p.name: p for p in curves.fits_of(found)}
        models = [] if only_fit is not None else fitted_to_claims(found)
        if only_fit is not None and only_fit not in plans:
            raise UsageError(f"'{found.key}' has no fit '{only_fit}'{nearest(only_fit, plans)}", code="unknown-name")
        if not plans and not models:
            raise UsageError(f"'{found.key}' has no [[fit]], and no model of its own with claims to fit to: nothing says what is free",
                             code="no-claims")
        evidence = curve_fits.evidence_of(found)
        folder = None if found.folder.parent == paths.papers_dir() else found.folder
        done: list[Fitted] = []
        for plan in plans.values() if only_fit is None else [plans[only_fit]]:
            with reporting(f"fit {plan.name}") as report:
                fit = curve_fits.fit(plan, evidence, folder=folder, seed=seed, progress=report)
            done.append(Fitted(plan.name, fit.values, fit.rows, fit.missed, fit.write() if write else []))
        for model in models:
            done += calibrate_model(model, found.platform, reporting, seed=seed, evaluations=None, write=write).fits
        unseen = _unseen(found, evidence, {str(r["evidence"]) for d in done for r in d.evidence}) if only_fit is None else []
    return Calibration(paper, done, unseen)


def fitted_to_claims(paper: Paper) -> list[str]:
    """The paper's own models that have free parameters and claims to fit them to, other than claims about curves."""
    from retrompi.papers.statements.claims import for_fit
    from retrompi.spec import registry

    found = []
    for name in paper.models:
        cls = registry.model(name)
        if not cls.folder().resolve().is_relative_to(paper.folder.resolve()) or not any(p.fitted for p in cls.params().values()):
            continue
        try:
            claims = for_fit(cls.name)
        except UsageError:  # none is marked
            continue
        if any(check["kind"] != "curve" for c in claims for check in paper.checks.get(c.id, ())):
            found.append(name)
    return found


def _claim_row(row: Mapping[str, Any]) -> dict[str, Any]:
    told = f"{row['observed']:.4g} {row['unit']} in {row['low']:.4g}..{row['high']:.4g}"
    return {"evidence": row["claim"], "what": "claim", "seen": row.get("seen", True), "points": 1, "median": None, "largest": None,
            "at_B": None, "limit": None, "observed": told, "verdict": "pass" if abs(row["residual"]) <= 1 else "fail"}


def _unseen(paper: Paper, evidence: PaperEvidence, seen: Collection[str]) -> list[str]:
    """Evidence that is marked for calibration but was used by none of the fits."""
    marked = [c.name for c in evidence.curves.values() if c.use == "calibrate"] + [c.id for c in paper.claims if c.use == "calibrate"]
    return [name for name in marked if name not in seen]


@check_arguments
def calibrate(
    what: str | Path, platform: str | Path | None = None, *, seed: int = 1, evaluations: int | None = None, only_fit: str | None = None,
    write: bool = False, progress: Progress | None = None,
) -> Calibration:
    """Fits a model (name or folder), or a paper's machines and models (key or folder), to what is marked for calibration.

    Values stay within their sourced ranges, what is held out is not read before the fit is done, and the same ``seed`` gives the same fit.
    ``platform`` (default: the model's own) and ``evaluations`` (candidates to try) are for a model, ``only_fit`` names a [[fit]] of a
    paper. ``write`` writes the values beside models and machines, as the command does without ``--dry-run``. Raises UsageError for an
    unknown name and for what has nothing to be fitted to.

    >>> retrompi.calibrate("mpibip", evaluations=50).rows[0]["value"]    # with its unit, such as "3.1 us"    # doctest: +SKIP
    """
    told, name = partial(reporting, progress), str(what)
    if is_paper(name):
        if platform is not None or evaluations is not None:
            raise UsageError(f"the [[fit]] tables of '{name}' say what is fitted; 'platform' and 'evaluations' are for a model",
                             code="unused-option")
        return calibrate_paper(name, told, seed=seed, only_fit=only_fit, write=write)
    if only_fit is not None:
        raise UsageError(f"'only_fit' names a [[fit]] of a paper, and '{name}' is none", code="unused-option")
    return calibrate_model(name, None if platform is None else str(platform), told, seed=seed, evaluations=evaluations, write=write)
