"""Axes: what a list or range means, that texts come back as the values they stand for, and how a Latin hypercube is drawn."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from retrompi.base import units
from retrompi.base.errors import UsageError
from retrompi.studies.define import case
from retrompi.studies.define.axes import ABSENT, Axis, parse, split
from retrompi.studies.execute import design


@for_each(
    "text, values",
    [
        ("a,b,c", ["a", "b", "c"]),
        ("a, b ,a", ["a", "b"]),
        ('"0,1",shared', ["0,1", "shared"]),
        ("64KiB..512KiB:x2", ["64KiB", "128KiB", "256KiB", "512KiB"]),
        ("512KiB..2MiB:x2", ["512KiB", "1MiB", "2MiB"]),
        ("1000B..3000B:+1000B", ["1000B", "2000B", "3000B"]),
        ("10Mbps..1Gbps:x10", ["10Mbps", "100Mbps", "1000Mbps"]),
        ("1us..10us:+3us", ["1us", "4us", "7us", "10us"]),
        ("0..3us:+1us", ["0us", "1us", "2us", "3us"]),
        ("0.1..0.3:+0.1", ["0.1", "0.2", "0.3"]),
        ("0%..20%:+10%", ["0%", "10%", "20%"]),
        ("1..2:x1.5", ["1", "1.5"]),
        ("2..5", ["2", "3", "4", "5"]),
        ("-1..1", ["-1", "0", "1"]),
        ("1,4..6,8", ["1", "4", "5", "6", "8"]),
        ("1us..1us:x2", ["1us"]),
        ("rank 1@1s..2s", ["rank 1@1s..2s"]),
    ],
)
def test_what_a_text_means(text: str, values: list[str]) -> None:
    assert list(parse("k", text)) == values


@for_each(
    "text, says",
    [
        ("2MiB..1KiB:x2", "bad-range"),
        ("5..1", "bad-range"),
        ("1KiB..2ms:x2", "bad-range"),
        ("1us..2us", "bad-range"),
        ("1..2.5", "bad-range"),
        ("1..9:2", "bad-range"),
        ("1..9:x1", "bad-range"),
        ("1..9:xy", "bad-range"),
        ("0..9:x2", "bad-range"),
        ("1..9:+0", "bad-range"),
        ("1..9:+1s", "bad-range"),
        ("1..x", "bad-range"),
        ("1foo..2foo:x2", "bad-range"),
        ("1us..1ms:log", "bad-range"),
        ("a,,b", "bad-range"),
        ('"a', "bad-range"),
    ],
)
def test_what_is_refused(text: str, says: str) -> None:
    with refused(UsageError, says) as caught:
        parse("k", text)
    assert "\n" not in str(caught.value)


UNITS = st.sampled_from([("B", "KiB"), ("s", "us"), ("B/s", "Mbps"), ("1", "")])


@given(UNITS, st.integers(1, 500), st.integers(1, 500), st.integers(1, 60))
@settings(deadline=None)
def test_a_linear_range_has_the_values_that_arithmetic_says(unit: tuple[str, str], low: int, step: int, steps: int) -> None:
    base, spelling = unit
    high = low + step * steps + step // 2  # the last step need not reach the end
    values = list(parse("k", f"{low}{spelling}..{high}{spelling}:+{step}{spelling}"))
    assert len(values) == (high - low) // step + 1
    for i, text in enumerate(values):
        assert units.parse(text, base) == pytest.approx(units.parse(f"{low + i * step}{spelling}", base), rel=1e-12)


@given(UNITS, st.integers(1, 2000), st.integers(2, 9), st.integers(0, 12))
@settings(deadline=None)
def test_a_geometric_range_multiplies_exactly(unit: tuple[str, str], low: int, factor: int, steps: int) -> None:
    base, spelling = unit
    values = list(parse("k", f"{low}{spelling}..{low * factor**steps}{spelling}:x{factor}"))
    assert len(values) == steps + 1
    for i, text in enumerate(values):
        if low * factor**i < 10**12:
            assert units.parse(text, base) == units.parse(f"{low * factor**i}{spelling}", base)


@given(st.lists(st.text("abc ,.@", min_size=1).map(str.strip).filter(bool), min_size=1, max_size=5))
@settings(deadline=None)
def test_quotes_keep_a_value_whole(values: list[str]) -> None:
    assert [v for v, _ in split(",".join(f'"{v}"' for v in values))] == [v.strip() for v in values]


@given(st.integers(0, 10**6), st.integers(1, 10**12))
@settings(deadline=None)
def test_a_huge_range_is_counted_and_not_made(low: int, length: int) -> None:
    axis = parse("seed", f"{low}..{low + length - 1}")
    assert axis.values[-1] == str(low + length - 1)
    assert len(axis) == length


# -- grids ----------------------------------------------------------------------------------------------------------------

SCENARIO = "bf-wmpi-shared"
KEYS: dict[str, list[str]] = {
    "model": ["wmpi", "hpvm", "winmpich"],
    "wmpi.packet": ["64KiB", "128KiB", "256KiB"],
    "hpvm.packet": ["1KiB", "2KiB"],
    "seed": ["1", "2", "3"],
    "platform.link.bandwidth": ["10Mbps", "100Mbps"],
    "mode": ["shared", "distributed"],
}


@given(st.dictionaries(st.sampled_from(list(KEYS)), st.integers(1, 3), max_size=5), st.randoms())
@settings(deadline=None, max_examples=60)
def test_a_grid_has_every_combination_once_and_is_counted_without_making_it(sizes: dict[str, int], draw: Any) -> None:
    keys = list(sizes)
    draw.shuffle(keys)
    study = design.from_command(SCENARIO, {k: tuple(KEYS[k][: sizes[k]]) for k in keys})
    points = design.points(study)
    assert [p.position for p in points] == list(range(len(points)))
    assert len(points) == design.count(study)
    told = [tuple(p.values.items()) for p in points]
    if not study.applies.idle:  # points that differ in what they do not use have the same run
        assert len(set(told)) == len(told)
    expected = 0
    for model in KEYS["model"][: sizes["model"]] if "model" in sizes else ["wmpi"]:
        expected += math.prod(len(KEYS[k][:n]) for k, n in sizes.items() if k != "model" and case.concerns(k, model))
    assert len(points) == expected
    for p in points:
        model = p.values.get("model", "wmpi")
        assert p.scenario.model == model
        for key, text in p.values.items():
            if text == ABSENT:  # of another model, or not used by this point's run
                assert not case.concerns(key, model) or key in study.applies.idle
            else:
                assert case.concerns(key, model)
            if "." in key and text != ABSENT:
                assert p.scenario.sets[key] == text


def test_the_last_axis_varies_fastest_and_a_zip_goes_together() -> None:
    study = design.from_command(SCENARIO, ["seed=1..2"], ["mode=shared,distributed;platform.link.latency=1us,2us"])
    told = [(p.values["seed"], p.values["mode"], p.values["platform.link.latency"]) for p in design.points(study)]
    # A run on one machine does not use the link, and the study says so.
    assert told == [("1", "shared", "-"), ("1", "distributed", "2us"), ("2", "shared", "-"), ("2", "distributed", "2us")]
    (line,) = study.applies.lines()
    assert line.startswith("platform.link.latency applies to 2 of 4 points: ")
    assert line.endswith("this run is on one machine")


def test_equal_values_of_a_zip_stay() -> None:
    study = design.from_command(SCENARIO, zip_=["mode=shared,shared;seed=1,2"])
    assert design.count(study) == 2


# -- Latin hypercubes -----------------------------------------------------------------------------------------------------


@given(st.integers(1, 40), st.integers(0, 2**31))
@settings(deadline=None, max_examples=25)
def test_a_latin_hypercube_has_one_sample_in_each_stratum_of_every_axis(samples: int, seed: int) -> None:
    study = design.from_command(
        SCENARIO,
        {"platform.link.latency": "0s..1s", "platform.link.bandwidth": "1Mbps..1000Mbps:log", "platform.host.cores": f"1..{samples}"},
        sample=f"lhs:{samples}",
        seed=seed,
    )
    points = design.points(study)
    assert len(points) == samples == design.count(study)
    linear = sorted(int(min(units.parse(p.values["platform.link.latency"], "s") * samples + 1e-9, samples - 1)) for p in points)
    assert linear == list(range(samples))
    shares = [math.log(units.parse(p.values["platform.link.bandwidth"], "B/s") / 125e3, 1000) for p in points]
    assert sorted(int(min(s * samples + 1e-9, samples - 1)) for s in shares) == list(range(samples))
    assert sorted(int(p.values["platform.host.cores"]) for p in points) == list(range(1, samples + 1))
    again = design.points(design.from_definition(study.definition()))
    assert [p.values for p in again] == [p.values for p in points]


def test_another_seed_draws_another_hypercube() -> None:
    def drawn(seed: int) -> list[dict[str, str]]:
        study = design.from_command(SCENARIO, {"platform.link.latency": "0s..1s"}, sample="lhs:5", seed=seed)
        return [p.values for p in design.points(study)]

    assert drawn(1) == drawn(1) != drawn(2)


def test_lists_in_a_hypercube_get_even_shares() -> None:
    study = design.from_command(SCENARIO, {"model": "wmpi,hpvm", "wmpi.packet": "64KiB..128KiB"}, sample="lhs:10")
    models = [p.values["model"] for p in design.points(study)]
    assert sorted(models) == ["hpvm"] * 5 + ["wmpi"] * 5
    for p in design.points(study):
        assert (p.values["wmpi.packet"] == ABSENT) == (p.values["model"] == "hpvm")
    whole = [p.values["wmpi.packet"] for p in design.points(study) if p.values["model"] == "wmpi"]
    assert all(units.parse(t, "B") == int(units.parse(t, "B")) for t in whole)


def test_an_axis_is_its_key_and_values() -> None:
    assert parse("seed", "1..3") == Axis("seed", parse("seed", "1..3").values)
    assert Fraction(parse("platform.link.latency", "1ns..2s:+1ns").values[10**9].removesuffix("ns")) == 10**9 + 1
