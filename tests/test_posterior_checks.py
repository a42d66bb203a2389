"""The check of posteriors by simulation: its data, its command, the stored table, and the rivals' comparison."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import Outcome
from refusals import refused

from retrompi.base import paths
from retrompi.base.errors import InputError
from retrompi.inference import checks, evidence, problem, tables
from retrompi.inference.checks import RankCheck
from retrompi.spec import registry

pytest.importorskip("emcee")

PAGE = Path(__file__).resolve().parents[1] / "docs" / "uncertainty" / "tests.md"
ROW = RankCheck("wmpi", "standard curve", "nt-pair distributed", 100, 0, 30, 16, 4, 0.9, 0.89, 0.88, 0.9, 0.5, 0.05, 0.05, 1.01, 500.0,
              "300 " * 9 + "300", "160 " * 9 + "160", 1)


def part_of(name: str) -> str:
    found = re.search(rf"<!-- {name} -->\n\n(.*?)\n\n<!-- /{name} -->", PAGE.read_text(encoding="utf-8"), re.S)
    assert found is not None
    return found[1]


# --- the stored results --------------------------------------------------------------------------------------------------------------


def test_every_shipped_model_was_checked_with_a_hundred_truths() -> None:
    rows = checks.read_checks()
    standard = {model: row for (model, data), row in rows.items() if data == "standard curve"}
    assert set(standard) == {name for name, cls in registry.models().items() if cls.folder().is_relative_to(paths.models_dir())}
    for row in rows.values():
        assert row.truths + row.incomplete == 100
        assert sum(map(int, row.ranks.split())) == row.truths * row.parameters
        assert sum(map(int, row.ranks_seen.split())) == row.truths * row.seen


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """Pooled over a model's parameters; a row outside is named in the docs with its reason."""
    page = PAGE.read_text(encoding="utf-8")
    outside = [row for row in checks.read_checks().values() if not row.right]
    assert [row.model for row in outside if f"`{row.model}` lies outside" not in page] == []


def test_the_page_has_the_stored_tables_and_the_figure() -> None:
    assert part_of("ranks") == tables.ranks_table(checks.read_checks())
    assert part_of("rivals") == tables.rivals_table(evidence.read_rivals())
    assert (PAGE.parents[1] / "img" / "ranks.svg").read_text(encoding="utf-8") == tables.figure(checks.read_checks())


def test_rows_are_kept_and_replaced(tmp_path: Path) -> None:
    file = tmp_path / "ranks.csv"
    checks.write([ROW, replace(ROW, model="hpvm")], file)
    checks.write([replace(ROW, coverage=0.8)], file)
    found = checks.read_checks(file)
    assert [(model, row.coverage) for (model, _), row in found.items()] == [("hpvm", 0.9), ("wmpi", 0.8)]
    assert not found["wmpi", "standard curve"].right
    assert "**0.800**" in tables.ranks_table(found)
    assert checks.pool_histograms(found) == [320] * 10
    file.write_text("model,data\nwmpi,x\n", encoding="utf-8")
    with refused(InputError, "unreadable-file | no table of ranks"):
        checks.read_checks(file)


# --- the calculation -----------------------------------------------------------------------------------------------------------------


def test_the_standard_curve_is_the_models_own() -> None:
    one = checks.standard(registry.model("sockets:pipe"))
    assert one.platform == "linux-i686"
    (part,) = one.parts
    assert [o.size for o in part.observables if isinstance(o, problem.PointObservable)] == list(checks.SIZES)
    (curve,) = one.data.curves
    assert curve.error == [0.05] * 12
    # At nominal values the simulated curve is the "measured" one.
    assert part.simulate(part.nominal) == pytest.approx(curve.log_time, abs=0.02)


def test_the_command_says_how_often_the_truth_is_held(retrompi: Callable[..., Outcome]) -> None:
    got = retrompi("posterior", "check", "sockets:pipe", "--dry-run", "--simulations", "64", "--json")
    (row,) = json.loads(got.out)
    assert row["data"] == "standard curve"
    assert row["truths"] == 100
    assert got.code == (0 if 0.85 <= row["coverage"] <= 0.95 else 1)
    again = retrompi("posterior", "check", "sockets:pipe", "--dry-run", "--simulations", "64", "--json")
    assert again.out == got.out


# --- rivals --------------------------------------------------------------------------------------------------------------------------


def test_what_is_held_out_is_not_what_was_fitted() -> None:
    """A score is over claims of use ``validate`` alone; the posterior is over claims of use ``calibrate`` alone."""
    scored = {i for part in problem.held_out("winmpich", "nt-pair") for o in part.observables if isinstance(o, problem.StatedNumber)
              for i in o.stated_by}
    fitted = {i for part in problem.of_model("winmpich", "nt-pair").parts for o in part.observables if isinstance(o, problem.StatedNumber)
              for i in o.stated_by}
    assert scored
    assert not scored & fitted


def test_a_difference_counts_beyond_its_error() -> None:
    assert evidence.word(0.9, 0.0) == "no difference"
    assert evidence.word(-3.5, 0.1) == "strongly against it"
    assert evidence.word(2.0, 0.1) == "for it"
    assert evidence.word(3.5, 3.0) == "no difference"


def test_rivals_saw_the_same_statements() -> None:
    for base, mine in evidence.groups().items():
        assert base in mine
        assert len({tuple(p.about["claims"]) for p in mine.values()}) == 1
    assert {r.variant for r in evidence.read_rivals()} <= {name for mine in evidence.groups().values() for name in mine}
    for row in evidence.read_rivals():
        assert row.error < 1
        assert math.isfinite(row.log_evidence)
        assert row.variant != row.base or row.difference == 0


def test_a_table_of_rivals_is_read_as_written(tmp_path: Path) -> None:
    rows = [evidence.Rival("wmpi", "wmpi", -36.8, 0.1, 0.0, 0.11, -2.5, 3, 0.0),
            evidence.Rival("wmpi", "wmpi:x", -46.8, 0.1, -10.0, 0.2, float(np.nan), 0, 0.0)]
    file = evidence.write(rows, tmp_path / "rivals.csv")
    assert [r.variant for r in evidence.read_rivals(file)] == ["wmpi", "wmpi:x"]
    assert "strongly against it" in tables.rivals_table(rows)
    assert evidence.read_rivals(tmp_path / "none.csv") == []
    assert paths.validate_dir() / "posteriors" / "rivals.csv" == evidence.file()
