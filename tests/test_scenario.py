"""Experiments: every shipped one names what exists, and a wrong file is told by line."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import for_each
from conftest import reference_ids
from refusals import agrees, refused

from retrompi.base.errors import InputError, UsageError
from retrompi.spec import registry
from retrompi.spec.registry import resolve
from retrompi.studies.define import catalogue, scenario
from retrompi.traces import generate

NAMES = catalogue.scenario_names()
CURVES = [f"bf-{m}-{mode}" for m in ("winmpich", "wmpi", "hpvm") for mode in ("shared", "distributed")]


def test_shipped() -> None:
    assert set(CURVES) <= set(NAMES)
    assert {"hpvm-workstation", "hpvm-two-cpus", "wmpi-fast-ethernet"} <= set(NAMES)


@for_each("name", NAMES)
def test_contract(name: str) -> None:
    one = catalogue.scenario(name)
    assert one.path is not None
    assert one.name == one.path.stem
    room = registry.platform(one.platform)
    assert room.placement(one.mode)
    values, _ = resolve(registry.model(one.model), room, one.sets)
    assert values.as_dict()
    assert set(one.claims) <= reference_ids()
    assert one.expect
    assert one.summary
    assert one.what_if or one.claims
    assert one.start or one.generator in generate.GENERATORS or (one.trace is not None and one.trace.exists())


def test_the_claims_of_the_six_curves_are_all_their_checkable_claims() -> None:
    named = {c for name in CURVES for c in catalogue.scenario(name).claims}
    from retrompi.papers import load

    wanted = {c.id for c in load() if c.id.startswith(("BF-SM-", "BF-DM-")) and c.use in ("calibrate", "validate")}
    assert wanted - named <= {"BF-DM-16"}, "only the claim about the link belongs to no runtime"


GOOD = """
name = "mine"
title = "t"
summary = "s"
reproduces = "what-if: mine"
model = "wmpi"
platform = "nt-pair"
mode = "shared"
[trace]
generator = "pingpong"
sizes = "0,1KiB"
reps = 3
[set]
"platform.host.cores" = 2
"""


def test_load_and_hash(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(GOOD)
    one = catalogue.scenario(str(file))
    assert one.args["sizes"] == (0, 1024)
    for given in ("[0, 1024]", '[0, "1KiB"]', '"0,1024"'):
        file.write_text(GOOD.replace('"0,1KiB"', given))
        assert scenario.load(file).args["sizes"] == (0, 1024)
    assert one.args["reps"] == 3
    assert one.sets == {"platform.host.cores": "2"}
    assert one.what_if
    file.write_text(GOOD.replace('title = "t"', 'title = "another"'))
    assert scenario.load(file).hash == one.hash
    file.write_text(GOOD.replace("1KiB", "2KiB"))
    assert scenario.load(file).hash != one.hash
    file.write_text(GOOD.replace('generator = "pingpong"\nsizes = "0,1KiB"\nreps = 3', 'file = "a.ti"'))
    with refused(InputError, "unknown-trace | a.ti"):
        scenario.load(file)
    (tmp_path / "a.ti").write_text("0 init\n")
    assert scenario.load(file).trace == (tmp_path / "a.ti").resolve()


@for_each(
    "old, new, line, says",
    [
        ('model = "wmpi"', 'modell = "wmpi"', 6, "unknown-key | 'modell' | 'model'"),
        ('model = "wmpi"', "", None, "missing-key | 'model'"),
        ('mode = "shared"', "mode = 3", 8, "missing-key | 'mode'"),
        ("pingpong", "pingpon", 10, "unknown-name | 'pingpon' | 'pingpong'"),
        ("1KiB", "1KB", 11, "bad-unit"),
        ("reps = 3", "reps = 0", 12, "out-of-range"),
        ("reps = 3", "rep = 3", 12, "unknown-key | 'reps'"),
        ("[trace]", "[trace", 9, "unreadable-file | TOML"),
        ('generator = "pingpong"', "", 9, "missing-key"),
        ('name = "mine"', 'name = "mine"\nseed = -1', 3, "out-of-range | 'seed'"),
        ('name = "mine"', 'name = "mine"\nseed = 9223372036854775808', 3, "out-of-range | 'seed'"),
        ('name = "mine"', 'name = "mine"\nclaims = "BF-SM-01"', 3, "bad-value | 'claims'"),
        ('"platform.host.cores" = 2', "platform.host.cores = 2", 13, "bad-value | 'set'"),
    ],
)
def test_a_wrong_file_is_told_by_line(tmp_path: Path, old: str, new: str, line: int | None, says: str) -> None:
    file = tmp_path / "mine.toml"
    assert old in GOOD
    file.write_text(GOOD.replace(old, new))
    with pytest.raises(InputError) as caught:
        scenario.load(file)
    agrees(caught.value, says)
    assert caught.value.line == line


def test_unknown_scenario() -> None:
    with refused(UsageError, "unknown-scenario | 'bf-wmpi-shared'"):
        catalogue.scenario("bf-wmpi-share")
