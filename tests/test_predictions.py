"""Predictions: the sample behind an interval, the files, and that they are made again as they are."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from cases import for_each
from refusals import agrees, refused

from retrompi.base import toml
from retrompi.base.errors import UsageError
from retrompi.papers.predict import predictions
from retrompi.sim.resolved import Resolved
from retrompi.spec import registry
from retrompi.studies.draws.uncertainty import Spec, drawn_of

NAMES = [name for name, p in predictions.plans().items() if not p.paper]
CURVES = [name for name, p in predictions.plans().items() if p.paper]
SAMPLE = Random(datetime.now(UTC).toordinal()).sample(CURVES, min(3, len(CURVES)))
"""Curves that are simulated again: others every day."""
DRAWS = 4


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans with few draws: what is tested does not depend on their number."""
    short = {name: replace(p, draws=DRAWS, repetitions=3) for name, p in predictions.plans().items()}
    monkeypatch.setattr(predictions, "plans", lambda: short)


def test_quantiles_are_interpolated() -> None:
    assert [predictions.quantile([3.0, 1.0, 2.0], q) for q in (0, 0.25, 0.5, 1)] == [1, 1.5, 2, 3]


@for_each("name", [*NAMES, *SAMPLE])
def test_what_is_drawn_is_uncertain_and_not_set(name: str) -> None:
    plan = predictions.plan(name)
    asked = Resolved.of(plan.question())
    priors = drawn_of(asked, Spec()).priors
    assert priors
    assert all(p.low < p.high and not p.source.startswith("code:") for p in priors)
    given = {key for p in priors for key in p.keys}
    assert not given & {s.partition("=")[0] for s in plan.sets}


@pytest.mark.parametrize("name", [*NAMES, *SAMPLE[:1]])
@pytest.mark.usefixtures("few")
def test_a_prediction_is_made_again_as_it_was(name: str) -> None:
    found = [predictions.simulate_prediction(name) for _ in range(2)]
    one, two = map(predictions.file_text, found)
    assert predictions.same(one, two)
    assert [line.partition(" = ")[0] for line in one.splitlines() if line.partition(" = ")[0] in predictions.STAMPS] == list(
        predictions.STAMPS
    )
    for v in found[0].values:
        assert 0 < v.low <= v.median <= v.high
        assert 0 < v.parameters_low <= v.parameters_high


@for_each("name", [*NAMES, *CURVES])
def test_a_shipped_prediction_says_how_it_was_made(name: str) -> None:
    told = predictions.shipped_predictions()[name]
    plan = predictions.plan(name)
    assert (told["model"], told["platform"], told["placement"]) == (plan.model, plan.platform, plan.placement)
    assert (told["draws"], told["seed"]) == (plan.draws, plan.seed)
    assert set(plan.sizes) <= {v["size_B"] for v in told["value"]}
    assert re.fullmatch(r"[0-9a-f]{40}", told["commit"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", told["date"])
    for f in told["drawn"]:
        assert f["source"].partition(":")[0] in ("paper", "doc", "fit", "assumed")
        assert f["from"].partition(" ")[0] in ("prior", "posterior")
    assert told["dropped"] <= plan.draws // 10


@pytest.mark.parametrize("name", SAMPLE)
def test_a_shipped_curve_is_what_the_code_gives(name: str) -> None:
    """Nominal values only: `retrompi predict --verify` makes the intervals too. A model that changes a curve needs it written again, and a
    row in docs/second-atlas.md that says why."""
    plan = predictions.plan(name)
    told = {v["size_B"]: v["nominal_s"] for v in predictions.in_force(name)["value"]}
    assert predictions.sizes(plan) == tuple(told)
    again = predictions.nominal(plan)
    assert again == pytest.approx(told, rel=1e-4)


def test_a_later_prediction_stands_beside_the_first() -> None:
    stamps: dict[str, list[tuple[str, str]]] = {}
    for later in reversed(predictions.LATER):
        names = [f"{f.parent.name}/{f.stem}" for f in (predictions.folder() / later).glob("*/*.toml")]
        assert names
        for name in names:
            told = toml.read(predictions.file_of(name, predictions.folder() / later), "prediction")[1]
            first = predictions.shipped_predictions()[name]
            stamps.setdefault(name, [(first["date"], first["commit"])]).append((told["date"], told["commit"]))
    for name, found in stamps.items():
        assert [date for date, _ in found] == sorted({date for date, _ in found})
        assert len({commit for _, commit in found}) == len(found)
        assert predictions.in_force(name)["date"] == found[-1][0]


def test_there_is_a_file_for_every_curve_and_no_other() -> None:
    files = {f"{f.parent.name}/{f.stem}" for f in predictions.folder().glob("*/*.toml")}
    assert files == set(CURVES)
    for name in CURVES:
        told = predictions.shipped_predictions()[name]
        assert tuple(told.get("set", ())) == predictions.plan(name).sets
        for v in told["value"]:
            assert 0 < v["low_s"] <= v["median_s"] <= v["high_s"]
            assert 0 < v["parameters_low_s"] <= v["parameters_high_s"]


def test_a_curve_has_both_sides_of_every_change_of_its_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = replace(predictions.plan("mpibip-lanai9"), paper="a-paper", sizes=(1, 1 << 20))
    assert predictions.sizes(plan) == (1, 1024, 1025, 1 << 20)
    assert predictions.sizes(replace(plan, paper="")) == plan.sizes


def test_what_is_predicted_is_a_known_model_on_a_known_platform() -> None:
    for plan in predictions.plans().values():
        registry.model(plan.model)
        registry.platform(plan.platform)
    with refused(UsageError, "unknown-name | 't3e-mpi'"):
        predictions.plan("t3e-mpy")


def test_files_differ_in_more_than_their_stamps() -> None:
    text = 'date = "a"\ncommit = "b"\nlow_s = 1\n'
    assert predictions.same(text, text.replace('"a"', '"c"'))
    assert not predictions.same(text, text.replace("1", "2"))


@pytest.mark.usefixtures("few")
def test_the_command(retrompi: Callable[..., Any], tmp_path: Path) -> None:
    name = "t3e-mpi"
    assert retrompi("predict", name, "--write", "--folder", str(tmp_path)).code == 0
    assert retrompi("predict", name, "--verify", "--folder", str(tmp_path)).code == 0
    file = tmp_path / f"{name}.toml"
    file.write_text(file.read_text().replace("nominal_s = ", "nominal_s = 9"), encoding="utf-8")
    differs = retrompi("predict", name, "--verify", "--folder", str(tmp_path))
    assert (differs.code, differs.out.strip()) == (1, f"differ: {name}")
    rows = json.loads(retrompi("predict", name, "--json").out)
    assert {r["prediction"] for r in rows} <= {name}
    agrees(retrompi("predict", "t3e-mpy"), "unknown-name | 't3e-mpi'")
    agrees(retrompi("predict", "--write", "--verify"), "conflicting-options")
    agrees(retrompi("predict", "--folder", "x"), "unused-option")
    agrees(retrompi("predict", "--verify", "--full"), "unused-option")
    agrees(retrompi("predict", name, "--verify", "--folder", str(tmp_path / "none")), "unreadable-file")


def test_without_a_name_there_is_a_screen_and_full_has_every_prediction(retrompi: Callable[..., Any]) -> None:
    brief = retrompi("predict").out.splitlines()
    assert len(brief) <= 25
    counts = {tuple(line.split()[:2]): int(line.split()[2]) for line in brief[1:] if line.startswith(("turner", "woodall", "gropp"))}
    shipped = predictions.shipped_predictions().values()
    of = Counter((told["paper"], told["model"].partition(":")[0]) for told in shipped if told["paper"])
    assert counts == of
    full = retrompi("predict", "--full").out.splitlines()
    assert {line.split()[0] for line in full} >= set(predictions.shipped_predictions())
    assert "ga620-mpich " not in retrompi("predict", "--score").out
    assert "turner-chen-2002/ga620-mpich " in retrompi("predict", "--score", "--full").out
