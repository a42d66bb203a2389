"""The claims of turner-chen-2002 are the rows of the period's evidence, every library is predicted on every card and runs the suite."""

from __future__ import annotations

import csv

from cases import for_each

from retrompi.base import paths
from retrompi.papers.experiments import suite
from retrompi.papers.statements import claims, curves
from retrompi.papers.statements.paper import find_paper

KEY = "turner-chen-2002"


def _rows() -> dict[str, dict[str, str]]:
    with (paths.reference_dir() / "period" / "evidence.csv").open(newline="", encoding="utf-8") as handle:
        return {r["id"]: r for r in csv.DictReader(handle) if r["id"].startswith("TC02-")}


def test_its_claims_are_the_rows_of_the_evidence() -> None:
    rows, mine = _rows(), {c.id: c for c in claims.by_paper(KEY)}
    assert {i for i, r in rows.items() if r["use"] == "validate"} <= set(mine)
    for name, claim in mine.items():
        row = rows[name]
        assert (claim.value, claim.unit, claim.use) == (row["value"], row["unit"], row["use"]), name
        assert (claim.low, claim.high) == (float(row["low"]), float(row["high"])), name


def test_every_library_is_predicted_on_every_card() -> None:
    found = {c.name: c for c in curves.of(find_paper(KEY))}
    for card in ("ga620", "trendnet", "ds20", "ip-gm"):
        for library in ("mpich", "mpich-default", "tcgmsg", "mplite", "pvm"):
            curve = found[f"{card}-{library}"]
            assert curve.blind
            assert curve.layer_below == card
            assert curve.platform == found[card].platform


@for_each("model, mode", [
    ("mpich", "distributed"), ("mpich:shmem", "shared"), ("mpich:lfshmem", "shared"), ("tcgmsg", "distributed"), ("mplite", "distributed"),
])
def test_the_functional_suite_completes(model: str, mode: str) -> None:
    """All 79 programs but the one whose recording lacks a size."""
    runs = suite.runs_of("ibm-suite.tar.zst")
    outcomes = {run: suite.outcome_of(model, "p4-1800*16@gigabit", mode, trace, ()) for run, trace in runs.items()}
    bad = {suite.program_of(run) for run, (outcome, _) in outcomes.items() if outcome != "completed"}
    assert len({suite.program_of(run) for run in outcomes}) == 79
    assert bad == {"ibm-ccl-bcast_struct"}
