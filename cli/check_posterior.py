"""``retrompi calibrate MODEL --check-posterior``: whether the intervals of a posterior hold the truth as often as they say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retrompi.cli.options import progress
from retrompi.cli.output import Column, say

if TYPE_CHECKING:
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


def check(what: str, platform: str, output: StoreOutput, *, seed: int, trained: int | None, dry_run: bool) -> int:
    """Simulates truths from the prior and judges the ranks; the rows of a shipped model are kept in the project's table, those of another
    beside the model. ``platform``: "" for the model's own."""
    from dataclasses import asdict

    from retrompi.base import paths
    from retrompi.inference import checks
    from retrompi.papers.claims import papers
    from retrompi.spec import registry

    rows = []
    for data, problem in checks.of(what, platform).items():
        with progress(f"{problem.of}: {data}") as report:
            row, _ = checks.check(problem, data, seed=seed, trained=trained or checks.TRAINED, progress=report)
        rows.append(row)
    output.emit([asdict(row) for row in rows], CHECKED)
    right = all(row.right for row in rows)
    if output.text:
        say("\nthe 90 % intervals hold the truth in 85 to 95 % of all cases" if right else
            "\nthe 90 % intervals do not hold the truth in 85 to 95 % of all cases: do not trust them")  # fmt: skip
    if not dry_run:
        folder = None if what in papers() else registry.model(what).folder()
        ours = folder is None or folder.is_relative_to(paths.models_dir())
        file = checks.write(rows, None if ours or folder is None else folder / "ranks.csv")
        if output.text:
            say(f"written: {file}")
    return 0 if right else 1
