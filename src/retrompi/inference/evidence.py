"""Rival variants of a model, compared by evidence and by predictive score.

The evidence is that of the joint posterior in which a variant has the place of its base: the same statements, the same priors. The score
is the mean logarithm of the probability that a posterior gives to held-out statements, which nothing was fitted to. docs/uncertainty has
the rule by which a difference counts.

    python -m retrompi.inference.evidence        # compares all that have posteriors, and writes validate/posteriors/rivals.csv
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retrompi.base import paths
from retrompi.base.errors import UsageError
from retrompi.inference.design import WORKERS
from retrompi.inference.likelihood import Array, Likelihood, Observations, StatedInterval
from retrompi.inference.problem import ProblemPart, StatedNumber, held_out
from retrompi.inference.stored_rows import read_rows, write_table
from retrompi.spec import registry
from retrompi.spec.declare.number import Number
from retrompi.studies.draws import posteriors
from retrompi.studies.draws.posteriors import DISCREPANCY, PosteriorFile

__all__ = ["DRAWS", "Rival", "against", "compare", "file", "groups", "read_rivals", "score", "word", "write"]

DRAWS = 50
"""Draws that a score is taken over."""
NONE, STRONG = 1.0, 3.0
"""Differences of the logarithms of evidences (Kass and Raftery, Journal of the American Statistical Association 90, 1995)."""
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Rival:
    """A variant or its base (``variant`` = ``base``). ``difference``: its log evidence minus the base's. ``score``: the mean log
    probability of ``statements`` held-out numbers that all rivals of the base are judged by; ``lost``: the share of runs without one.
    ``discrepancy``: the posterior median of its standard deviation."""

    base: str
    variant: str
    log_evidence: float
    error: float
    difference: float
    discrepancy: float
    score: float
    statements: int
    lost: float


def file() -> Path:
    """The stored table."""
    return paths.validate_dir() / "posteriors" / "rivals.csv"


def read_rivals(path: Path | None = None) -> list[Rival]:
    """The stored rows; none without a file. Raises InputError for a file that cannot be read."""
    return read_rows(path or file(), Rival, "rivals")


def write(rows: Sequence[Rival], path: Path | None = None) -> Path:
    """Writes the table. Raises InputError if it cannot be written."""
    path = path or file()
    write_table(path, Rival, rows, "rivals")
    return path


def groups() -> dict[str, dict[str, PosteriorFile]]:
    """Base model -> the posteriors of it and of its variants, by name: those that saw the same statements. Bases without a rival are
    left out."""
    found: dict[str, dict[str, PosteriorFile]] = {}
    for name, cls in registry.models().items():
        base, _, variant = name.partition(":")
        path = cls.folder() / (f"posterior-{variant}.npz" if variant else "posterior.npz")
        if path.is_file():
            found.setdefault(base, {})[name] = posteriors.read(path)
    out = {}
    for base, mine in found.items():
        first = next(iter(mine.values())).about
        alike = {n: p for n, p in mine.items() if all(p.about[k] == first[k] for k in ("claims", "curves", "platform"))}
        if len(alike) > 1:
            out[base] = alike
    return out


def word(difference: float, error: float) -> str:
    """A word for the strength of a difference of log evidences, its error counted against it."""
    size = abs(difference) - error
    if size < NONE:
        return "no difference"
    return ("strongly " if size >= STRONG else "") + ("for it" if difference > 0 else "against it")


# --- predictive score --------------------------------------------------------------------------------------------------------------


def _shares(part: ProblemPart, of: PosteriorFile, rows: Array, seed: int) -> Array:
    """Draws [rows, priors] as shares of a part's priors: from the posterior, or from the prior where it has no column."""
    def column(prior: Number) -> Array:
        if not of.holds(prior):
            return np.random.default_rng([seed, *prior.path.encode()]).uniform(size=len(rows))
        return np.array([prior.share(float(v)) for v in of.column(prior.path)[rows]])

    return np.stack([column(p) for p in part.priors], axis=1)


def score(model: str, of: PosteriorFile, *, seed: int = 1, progress: Progress | None = None) -> tuple[dict[str, float], float]:
    """Held-out number -> log probability that the posterior ``of`` gives to what was published, and the share of runs without a number,
    whose probability is zero. The discrepancy is the draw's.

    Raises UsageError if nothing that is held out is a number of this model.
    """
    parts = held_out(model, str(of.about["platform"]))
    if not parts:
        raise UsageError(f"nothing that is held out is a number of '{model}'", code="no-claims")
    rows = np.linspace(0, len(of.column(DISCREPANCY)) - 1, DRAWS).astype(int)
    sigma = of.column(DISCREPANCY)[rows][:, None]
    told: dict[str, float] = {}
    lost: list[float] = []
    for at, part in enumerate(parts):
        shares = _shares(part, of, rows, seed)
        with ThreadPoolExecutor(max_workers=WORKERS) as pool:
            y = np.empty((len(rows), len(part.observables)))
            for i, seen in enumerate(pool.map(part.simulate, shares)):
                y[i] = seen
                if progress is not None:
                    progress(at * len(rows) + i + 1, len(parts) * len(rows), part.name)
        lost.append(float(np.isnan(y).mean()))
        for k, o in enumerate(part.observables):
            if isinstance(o, StatedNumber):
                data = Observations([StatedInterval(k, low, high, o.log) for low, high in o.readings])
                terms = Likelihood(data, np.zeros(y.shape[1]))(y, sigma)
                told[o.name] = float(np.log(np.mean(np.exp(terms)) + 1e-12))
    return told, float(np.mean(lost))


def compare(seed: int = 1, progress: Progress | None = None) -> list[Rival]:
    """Every group of rivals, the base first; scores are over the numbers that all of a group have."""
    rows = []
    for base, mine in groups().items():
        scores = {name: score(name, p, seed=seed, progress=progress) for name, p in mine.items()}
        common = set.intersection(*(set(told) for told, _ in scores.values()))
        first = next(iter(mine.values())).about["log_evidence"]
        for name, p in mine.items():
            told, lost = scores[name]
            mean = float(np.mean([told[k] for k in sorted(common)])) if common else float("nan")
            rows.append(Rival(base, name, p.about["log_evidence"], p.about["log_evidence_error"], round(p.about["log_evidence"] - first, 3),
                              round(float(np.median(p.column(DISCREPANCY))), 4), round(mean, 3), len(common), round(lost, 4)))
    return rows


def against(rows: Sequence[Rival]) -> dict[str, float]:
    """Variant -> the standard error of its difference from its base."""
    base = {r.base: r.error for r in rows if r.variant == r.base}
    return {r.variant: float(np.hypot(r.error, base[r.base])) for r in rows}


if __name__ == "__main__":
    print(write(compare()))
