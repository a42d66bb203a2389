"""``retrompi calibrate MODEL --check-posterior``: whether the intervals of a posterior hold the truth as often as they say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retrompi.cli.options import progress
from retrompi.cli.output import Column, say

if TYPE_CHECKING:
    from retrompi.cli.calibrate import CalibrateOptions
    from retrompi.cli.options import StoreOutput

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


def check(what: str, given: CalibrateOptions, output: StoreOutput) -> int:
    """Simulates truths from the prior and judges the ranks; the rows of a shipped model are kept in the project's table, those of another
    beside the model."""
    from dataclasses import asdict

    from retrompi.base import paths
    from retrompi.base.errors import UsageError
    from retrompi.inference import checks
    from retrompi.papers.claims import papers
    from retrompi.spec import registry

    others = {"--nas": given.nas, "--replication": given.replication, "--evaluations": given.evaluations, "--only-fit": given.only_fit,
              "--posterior": given.posterior}  # fmt: skip
    if wrong := next((k for k, v in others.items() if v), None):
        raise UsageError(f"{wrong} is another calculation than --check-posterior; give one of them", code="conflicting-options")
    # Without a word the model's own platform is right: nt-pair is the default of the fits of 1998.
    platform = "" if given.platform == "nt-pair" else given.platform
    rows = []
    for data, problem in checks.of(what, platform).items():
        with progress(f"{problem.of}: {data}") as report:
            row, _ = checks.check(problem, data, seed=given.seed, trained=given.simulations or checks.TRAINED, progress=report)
        rows.append(row)
    output.emit([asdict(row) for row in rows], CHECKED)
    right = all(row.right for row in rows)
    if output.text:
        say("\nthe 90 % intervals hold the truth in 85 to 95 % of all cases" if right else
            "\nthe 90 % intervals do not hold the truth in 85 to 95 % of all cases: do not trust them")  # fmt: skip
    if not given.dry_run:
        folder = None if what in papers() else registry.model(what).folder()
        ours = folder is None or folder.is_relative_to(paths.models_dir())
        file = checks.write(rows, None if ours or folder is None else folder / "ranks.csv")
        if output.text:
            say(f"written: {file}")
    return 0 if right else 1
