"""Checks of measured facts: for every claim that one of them judges, facts are made up with which it passes, and with which it fails."""

from __future__ import annotations

from typing import Any

import pytest

from retrompi.validate import claims, metrics, verdicts
from retrompi.validate.claims import Claim
from retrompi.validate.experiments import merge
from retrompi.validate.findings import scaled, unit_of

MADE_UP = ("near", "digits", "extremes", "compare", "faster")
MINE = [
    pytest.param(claims.find(claim_id), entries, id=claim_id)
    for claim_id, entries in claims.checks().items()
    if entries and all(e["kind"] in MADE_UP for e in entries)
]


def facts_for(claim: Claim, entries: Any, *, good: bool) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Points and facts with which every check of a claim passes, or none does; all in base units."""
    facts: dict[str, Any] = {}
    points: list[dict[str, Any]] = []
    for check in entries:
        kind = check["kind"]
        unit = scaled(1.0, unit_of(claim, check)) if kind in ("near", "digits", "extremes") else 1.0
        if kind in ("near", "digits"):
            assert claim.low is not None
            merge(facts, check["path"], claim.low * (1 if good else 1.6) / unit)
        elif kind == "extremes":
            assert claim.low is not None and claim.high is not None
            merge(facts, check["path"], {"min": claim.low / unit, "max": claim.high * (1 if good else 1.6) / unit})
        elif kind == "compare":
            names = list(dict.fromkeys(check["relation"].split()[::2]))
            same = "=" in check["relation"].split()
            for i, name in enumerate(names):
                rank = len(names) - i
                value = (1.0 if good else float(2**rank)) if same else float(rank if good else i + 1)
                merge(facts, check["paths"][name], value)
        else:
            sizes = (0, 1, 64, 1024, 1 << 20, 1 << 21, 1 << 22)
            for key, slow in (("better", not good), ("worse", good)):
                model, mode = check[key]
                points += [{"model": model, "mode": mode, "size_B": n, "time_us": (n + 1.0) * (2 if slow else 1)} for n in sizes]
    return points, facts


def test_there_are_such_checks() -> None:
    assert len(MINE) > 20


@pytest.mark.parametrize(("claim", "entries"), MINE)
@pytest.mark.parametrize("good", [True, False], ids=["passes", "fails"])
def test_a_check_can_pass_and_can_fail(claim: Claim, entries: Any, good: bool) -> None:
    points, facts = facts_for(claim, entries, good=good)
    (told,) = verdicts.judge([claim], points, facts)
    expected = "unjudged" if claim.use in ("exclude", "context") else "pass" if good else "fail"
    assert told.verdict == expected, told


@pytest.mark.parametrize(("claim", "entries"), MINE)
def test_without_facts_nothing_is_judged(claim: Claim, entries: Any) -> None:
    (told,) = verdicts.judge([claim], [], {})
    assert told.verdict == "unjudged"


def test_a_fitted_number_is_judged_more_strictly() -> None:
    fitted, held_out = claims.find("HW-T1-MPI"), claims.find("HW-T2-MPI")
    for claim, slack in ((fitted, metrics.FITTED), (held_out, metrics.PREDICTED)):
        (check,) = claims.checks()[claim.id]
        for factor, word in ((1 + 0.9 * slack, "pass"), (1 + 1.1 * slack, "fail"), (1 - 0.9 * slack, "pass"), (1 - 1.1 * slack, "fail")):
            facts: dict[str, Any] = {}
            assert claim.low is not None
            merge(facts, check["path"], claim.low * factor / scaled(1.0, claim.unit))
            assert verdicts.judge([claim], [], facts)[0].verdict == word
