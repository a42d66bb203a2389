"""The claims of turner-chen-2002 are the rows of the period's evidence, and every library is predicted on every card."""

from __future__ import annotations

import csv

from retrompi.base import paths
from retrompi.papers import claims, curves
from retrompi.papers.paper import find_paper

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
