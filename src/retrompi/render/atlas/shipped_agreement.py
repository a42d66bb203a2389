"""The third verdicts that the package keeps (``validate/agreement.csv``), for pages of papers that were made without draws."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from retrompi.papers.judging.verdicts import Agreement, Verdict
from retrompi.papers.reproduce import coverage
from retrompi.papers.reproduce.reproduction import Reproduction

__all__ = ["with_kept"]

_SAME = 1e-3


def with_kept(study: Reproduction) -> Reproduction:
    """The study with the kept third verdict of each claim, where it is of the same nominal result; as it is if it has draws of its own.

    Raises InputError if the file cannot be read.
    """
    if any(v.agreement is not None for v in study.verdicts) or not coverage.file_of().is_file():
        return study
    kept = {r["id"]: r for r in coverage.shipped_rows() if r["paper"] == study.paper.key}
    return replace(study, verdicts=[_with(v, kept[v.id]) if v.id in kept else v for v in study.verdicts])


def _number(row: Mapping[str, str], key: str) -> float | None:
    return float(row[key]) if row[key] else None


def _with(v: Verdict, row: Mapping[str, str]) -> Verdict:
    """The verdict with the row's, unless the simulation gives another result now than when the row was written."""
    before = _number(row, "observed")
    now = v.observed if isinstance(v.observed, float) else None
    same = before is None or (now is not None and math.isclose(before, now, rel_tol=_SAME, abs_tol=1e-12))
    if v.verdict != row["verdict"] or not same or not row["agreement"]:
        return v
    low, median, high, stated_low, stated_high = (
        _number(row, k) for k in ("observed_low", "observed_median", "observed_high", "stated_low", "stated_high")
    )
    inside = {"yes": True, "no": False}.get(row["inside"])
    word, share, draws = row["agreement"], float(row["share"]), int(row["draws"])
    return replace(v, agreement=Agreement(word, share, draws, low, median, high, stated_low, stated_high, inside))
