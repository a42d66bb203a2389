"""The layers below MPI: what fits may read, the published curves, and how near the simulated ones are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from refusals import agrees, refused

from retrompi.base.errors import UsageError
from retrompi.papers import layers
from retrompi.render.layer_figures import bandwidth
from retrompi.spec import machines

NEAR = 0.05
"""The median error of every curve, at most."""
CURVES = [(g, c.name) for g in layers.names() for c in layers.group(g).curves]


def test_every_curve_of_the_layers_is_there_once() -> None:
    assert sorted(name for _, name in CURVES) == sorted(["ga620", "trendnet", "gm", "ds20", "teg", "euih", "ip-gm"])


@pytest.mark.parametrize("name", layers.names())
def test_simulated_curves_are_near_the_published_ones(name: str) -> None:
    for row in layers.judge(name):
        assert row["median"] <= NEAR, row
        assert row["points"] >= 70


@pytest.mark.parametrize("name", layers.names())
def test_every_free_value_has_an_owner_a_range_and_a_fit(name: str) -> None:
    for path in layers.group(name).free:
        owner = layers.owner(path)
        free = layers.span(path, owner)
        assert 0 < free.low < free.high
        assert layers.fit_file(owner).is_file()


def test_a_fit_keeps_a_card_within_the_bus_of_its_host() -> None:
    what = layers.group("turner2002-ipgm")
    owners = {path: layers.owner(path) for path in what.free}
    bus = machines.host("p4-1800").quantities["bus_rate"]
    given = {"ip-gm-pci64a.card.nic_rate": "60 MB/s", "ip-gm-pci64a.card.nic_rate_in": "132 MB/s"}
    found = layers.limited(what, owners, dict.fromkeys(owners, "1 us") | given)
    assert {k: found[k] for k in given} == given | {"ip-gm-pci64a.card.nic_rate_in": bus.text}


def test_points_are_those_of_the_drawing() -> None:
    (zero, *_), (euih,) = layers.points("curves_sp1_layers.csv", {"system": "EUIH"}), layers.group("sp1").curves
    assert (zero.size, zero.time) == (0, pytest.approx(30.4e-6))
    assert len(euih.points) == 114
    at = {p.size: p for p in layers.points("curves_turner2002_layers.csv", {"figure": "1", "curve": "raw TCP"})}
    assert at[8388608].time == pytest.approx(8388608 * 8 / 566.8e6)
    assert at[4].grid == pytest.approx(1)
    with refused(UsageError, "no-claims | curves_sp1_layers.csv"):
        layers.points("curves_sp1_layers.csv", {"system": "MPL"})


def test_a_fit_reads_what_may_be_calibrated_to_alone() -> None:
    assert {r["use"] for r in layers.evidence().values()} == {"calibrate"}


def test_the_command(retrompi: Callable[..., Any]) -> None:
    (row,) = json.loads(retrompi("layers", "sp1", "--json").out)
    points = json.loads(retrompi("layers", "sp1", "--every-point", "--json").out)
    errors = [abs(p["simulated_us"] / p["published_us"] - 1) for p in points if p["judges"]]
    assert row["median"] == pytest.approx(median(errors))
    assert row["points"] == len(errors)


def test_the_figure_has_simulated_and_published_points(retrompi: Callable[..., Any], tmp_path: Path) -> None:
    points = layers.curve_rows("sp1")
    line, marks = bandwidth(points, {"euih": "EUIH"}).data
    assert len(line.x) == len(marks.x) == sum(p["size_B"] > 0 for p in points)
    assert retrompi("layers", "sp1", "-o", str(tmp_path / "made.csv")).code == 0
    assert len((tmp_path / "made.csv").read_text().splitlines()) == len(points) + 1


def test_what_the_command_refuses(retrompi: Callable[..., Any]) -> None:
    for words, wanted in (
        (("sp2",), "unknown-name | 'sp2' | 'sp1'"),
        (("--fit",), "missing-key | sp1"),
        (("sp1", "--dry-run"), "unused-option | --fit"),
        (("sp1", "--fit", "--every-point"), "conflicting-options | --fit"),
    ):
        ended = retrompi("layers", *words)
        assert ended.code == 2
        agrees(ended, wanted)
