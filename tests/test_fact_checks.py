"""Checks of measured facts: for every claim that one of them judges, facts are made up with which it passes, and with which it fails."""

from __future__ import annotations

from typing import Any

from cases import for_each

from retrompi.papers.experiments import merge
from retrompi.papers.judging import verdicts
from retrompi.papers.judging.findings import to_unit, unit_of
from retrompi.papers.statements import claims, metrics
from retrompi.papers.statements.claims import Claim

MADE_UP = ("near", "digits", "extremes", "compare", "faster")
MINE = [
    (claims.find(claim_id), entries)
    for claim_id, entries in claims.checks().items()
    if entries and all(e["kind"] in MADE_UP for e in entries)
]


def facts_for(claim: Claim, entries: Any, *, good: bool) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Points and facts with which every check of a claim passes, or none does; all in base units."""
    facts: dict[str, Any] = {}
    points: list[dict[str, Any]] = []
    relations: list[tuple[str, str, str]] = []
    for check in entries:
        kind = check["kind"]
        unit = to_unit(1.0, unit_of(claim, check)) if kind in ("near", "digits", "extremes") else 1.0
        if kind in ("near", "digits"):
            assert claim.low is not None
            merge(facts, check["path"], claim.low * (1 if good else 1.6) / unit)
        elif kind == "extremes":
            assert claim.low is not None
            assert claim.high is not None
            merge(facts, check["path"], {"min": claim.low / unit, "max": claim.high * (1 if good else 1.6) / unit})
        elif kind == "compare":
            tokens = check["relation"].split()
            paths = [check["paths"][n] for n in tokens[::2]]
            for a, sign, b in zip(paths, tokens[1::2], paths[1:], strict=False):
                relations.append((a, b, sign) if good else (b, a, ">" if sign == "=" else sign))
        else:
            sizes = (0, 1, 64, 1024, 1 << 20, 1 << 21, 1 << 22)
            for key, slow in (("better", not good), ("worse", good)):
                model, mode = check[key]
                points += [{"model": model, "mode": mode, "size_B": n, "time_us": (n + 1.0) * (2 if slow else 1)} for n in sizes]
    values = {path: 1.0 for a, b, _ in relations for path in (a, b)}
    for _ in relations:  # several checks of a claim may compare the same facts: the longest chain decides
        for a, b, sign in relations:
            values[a] = max(values[a], values[b] * (1 if sign == "=" else 100))
    for path, value in values.items():
        merge(facts, path, value)
    return points, facts


def test_there_are_such_checks() -> None:
    assert len(MINE) > 20


@for_each("claim, entries", MINE)
@for_each("good", [True, False])
def test_a_check_can_pass_and_can_fail(claim: Claim, entries: Any, good: bool) -> None:
    points, facts = facts_for(claim, entries, good=good)
    (told,) = verdicts.judge([claim], points, facts)
    expected = "unjudged" if claim.use in ("exclude", "context") else "pass" if good else "fail"
    assert told.verdict == expected, told


@for_each("claim, entries", MINE)
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
            merge(facts, check["path"], claim.low * factor / to_unit(1.0, claim.unit))
            assert verdicts.judge([claim], [], facts)[0].verdict == word
