"""The generated parts of docs/uncertainty/posteriors.md: ``python -m retrompi.inference.page docs/uncertainty/posteriors.md``.

``posteriors``: what each is of and how well it was found. ``determined``: of every parameter, how much of its prior's variance is left.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from retrompi.base import paths, units
from retrompi.papers.markdown import fill, parts, table
from retrompi.studies.draws import posteriors
from retrompi.studies.draws.posteriors import DISCREPANCY, PosteriorFile

__all__ = ["determined_table", "posterior_table", "shipped_posteriors", "write"]

NOTABLE = 0.8
"""Parameters that no fit was for have a row of their own where less than this share of the prior's variance is left."""


def shipped_posteriors() -> list[PosteriorFile]:
    """The posteriors of the package's models and papers, those of a group together: bases, then variants, then papers."""
    models = paths.models_dir()
    files = [*models.glob("*/posterior.npz"), *models.glob("*/posterior-*.npz"), *paths.papers_dir().glob("*/posterior-*.npz")]

    def order(p: PosteriorFile) -> tuple[int, str, str]:
        of_paper, of_variant = p.file.parent.parent == paths.papers_dir(), "-" in p.file.stem
        return 2 * of_paper + (of_variant and not of_paper), p.about["platform"], name_of(p)

    return sorted(map(posteriors.read, files), key=order)


def name_of(posterior: PosteriorFile) -> str:
    """The member whose file it is; of a paper, with its key."""
    member = str(posterior.about["member"])
    return member if posterior.about["platform"] else f"{posterior.of}, {member}"


def posterior_table() -> str:
    """Of every posterior: with what it is joint, what it reads, its discrepancy, and its diagnostics."""
    rows = []
    for p in shipped_posteriors():
        a = p.about
        others = [m for m in a["members"] if m != a["member"]]
        low, middle, high = (f"{v:.0%}" for v in np.quantile(p.column(DISCREPANCY), (0.05, 0.5, 0.95)))
        errors = sorted(float(v) for v in a["emulator"].values())
        told = a["diagnostics"]
        rows.append((
            name_of(p), ", ".join(others), " ".join([*a["own_claims"], *(f"`{c}`" for c in a["own_curves"])]),
            f"{len(p.fitted)} of {len(p.priors)}", f"{middle} ({low} .. {high})", f"{errors[len(errors) // 2]:.1%}, {errors[-1]:.1%}",
            f"{told['r_hat']:.3f}, {told['ess']:.0f}" + ("" if a["converged"] else " **not converged**"),
            f"{a['log_evidence']:.1f} ± {a['log_evidence_error']:.1g}",
        ))
    return table(
        ("posterior of", "joint with", "reads", "fitted, of all parameters", "discrepancy (90 %)", "error of the emulator: median, largest",
         "R-hat, effective sample size", "log evidence of the group"), rows,
    )


def determined_table() -> str:
    """A row for every parameter that a fit was for, and for others that the data say something about; the rest are listed below."""
    rows, rest = [], []
    every = shipped_posteriors()
    told = {(p.group, path) for p in every for path in p.fitted}  # what members share is told once
    for p in every:
        mine = sorted((path for path in p.priors if path in p.fitted or (p.group, path) not in told),
                      key=lambda path: (path not in p.fitted, p.seen[path]))
        told.update((p.group, path) for path in mine)
        rows += [_row(p, path) for path in mine if path in p.fitted or p.seen[path] < NOTABLE]
        silent = [path for path in mine if path not in p.fitted and p.seen[path] >= NOTABLE]
        if silent:
            rest.append(f"- {name_of(p)}: {', '.join(f'`{path}`' for path in silent)}")
    head = ("posterior of", "parameter", "fitted", "prior", "90 % interval", "variance left", "")
    return f"{table(head, rows)}\n\nNot determined, and not fitted: they keep their priors.\n\n" + "\n".join(rest)


def _row(p: PosteriorFile, path: str) -> tuple[str, ...]:
    low, high, _, unit = p.priors[path]
    base = units.canonical(str(unit))
    ends = np.quantile(p.column(path), (0.05, 0.95))
    return (
        name_of(p), f"`{path}`", "yes" if path in p.fitted else "", units.format_span(float(low), float(high), base),
        units.format_span(float(ends[0]), float(ends[1]), base), f"{min(1.0, p.seen[path]):.0%}", posteriors.word(p.seen[path]),
    )


def write(page: Path) -> list[str]:
    """Fills those of the two parts that ``page`` has; returns what changed. InputError for a page without them."""
    made: Mapping[str, str] = {"posteriors": posterior_table(), "determined": determined_table()}
    return [name for name in parts(page) if name in made and fill(page, name, made[name])]


if __name__ == "__main__":
    for name in write(Path(sys.argv[1])):
        print(f"written: {name}")
