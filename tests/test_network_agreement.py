"""Verdicts under another network beside the native ones: counted, listed, and explained by the engine's own fluid network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import Outcome

from retrompi.papers.judging.verdicts import Verdict
from retrompi.papers.reproduce.network_agreement import network_agreement


@dataclass
class Study:
    """What is compared of a reproduction."""

    verdicts: list[Verdict]
    paper: Any = field(default_factory=lambda: SimpleNamespace(key="paper"))


def verdict(name: str, word: str, observed: float | None) -> Verdict:
    return Verdict(name, "system", "validate", word, observed, 1.0, 2.0, "s", "")


NATIVE = [verdict("A", "pass", 1.5), verdict("B", "pass", 1.9), verdict("C", "fail", 3.0), verdict("D", "unjudged", None)]


def test_equal_verdicts_agree_whatever_their_numbers() -> None:
    other = [NATIVE[0], replace(NATIVE[1], observed=1.9 * (1 + 1e-9)), *NATIVE[2:]]
    told = network_agreement("simgrid", [Study(NATIVE)], [Study(other)])  # type: ignore[list-item]
    assert (told.judged, told.differing, told.moved) == (3, (), 1)
    assert told.farthest == pytest.approx(1e-9, rel=1e-5)
    assert str(told) == "network simgrid: 3 of 3 verdicts are those of the network native; 1 number differs, by at most 1e-09 of its value"
    same = network_agreement("simgrid", [Study(NATIVE)], [Study(NATIVE)])  # type: ignore[list-item]
    assert str(same).endswith("every number is the same")


@pytest.mark.parametrize(("fluid", "reason"), [("fail", "flows share a link"), ("pass", "what simgrid does beyond fluid flows")])
def test_a_difference_is_the_laws_or_simgrids(fluid: str, reason: str) -> None:
    other = [NATIVE[0], verdict("B", "fail", 2.1), *NATIVE[2:]]
    between = [replace(v, verdict=fluid) if v.id == "B" else v for v in NATIVE]
    told = network_agreement("simgrid", *([Study(v)] for v in (NATIVE, other, between)))  # type: ignore[arg-type]
    (row,) = (d.row("simgrid") for d in told.differing)
    assert (row["id"], row["native"], row["verdict"], row["observed"]) == ("B", "pass", "fail", 2.1)
    assert row["reason"].startswith(reason)


def test_a_paper_under_simgrid_says_how_many_verdicts_are_the_native_ones(retrompi: Callable[..., Outcome], tmp_path: Path) -> None:
    where = ("--store", str(tmp_path / "s.db"))
    done = retrompi("reproduce", PAPER, "--network", "simgrid", "-o", str(tmp_path / "report"), *where)
    assert done.code == 0, done.err
    assert "verdicts are those of the network native" in done.out
    assert "simgrid" in retrompi("runs", "list", "--csv", *where).out
    assert "network simgrid" not in retrompi("reproduce", PAPER, "-o", str(tmp_path / "own"), *where).out


PAPER = "mpptest-1994"
