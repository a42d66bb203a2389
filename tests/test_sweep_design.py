"""A study's definition: files and command lines, what a key does to a scenario, and what is refused before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cases import for_each
from refusals import agrees, refused

from retrompi.base.errors import InputError, RetrompiError, UsageError
from retrompi.studies.define import case, catalogue
from retrompi.studies.define.scenario import Scenario, load
from retrompi.studies.execute import design

EXAMPLE = Path(__file__).parent / "data" / "study-example.toml"
HALO = """
name = "halo"
title = "t"
summary = "s"
reproduces = "what-if: test"
model = "wmpi"
platform = "nt-cluster"
mode = "distributed"
[set]
"wmpi.packet" = "64KiB"
"platform.link.latency" = "5us"
[trace]
generator = "halo"
ranks = 4
reps = 2
size = "1KiB"
"""


@pytest.fixture
def halo(tmp_path: Path) -> Scenario:
    (tmp_path / "halo.toml").write_text(HALO)
    return load(tmp_path / "halo.toml")


def test_a_study_file() -> None:
    study = design.load(EXAMPLE)
    assert [a.key for a in study.axes] == ["model", "wmpi.header", "platform.host.dispatch", "mode", "seed"]
    assert design.count(study) == (2 + 1) * 2 * 2
    design.check(study)
    first = design.points(study)[0].scenario
    assert (first.args["sizes"], first.args["reps"], first.mode, first.setting("seed")) == ((0, 1024), 3, "shared", 1)


def test_a_definition_makes_the_same_study_again() -> None:
    study = design.load(EXAMPLE)
    again = design.from_definition(study.definition())
    assert again.hash == study.hash
    assert again.definition() == study.definition()
    assert [(p.values, p.scenario.hash) for p in design.each(again)] == [(p.values, p.scenario.hash) for p in design.each(study)]


def test_the_hash_is_of_what_determines_the_points() -> None:
    def made(**changed: str) -> str:
        return design.from_command("bf-wmpi-shared", {"seed": "1..3"}, **changed).hash  # type: ignore[arg-type]

    assert made() == replace(design.from_command("bf-wmpi-shared", {"seed": "1..3"}), name="other", metric="time").hash
    hashes = {made(), made(sample="lhs:3"), made(set_={"seed": "1"}), design.from_command("bf-hpvm-shared", {"seed": "1..3"}).hash}
    for keys in (("seed", "hosts"), ("hosts", "seed")):
        hashes.add(design.from_command("bf-wmpi-shared", dict.fromkeys(keys, "1..2")).hash)
    assert len(hashes) == 6  # the order of axes is that of the rows


def test_what_keys_do(halo: Scenario) -> None:
    def of(**values: str) -> Scenario:
        return case.apply(halo, {k.replace("__", "."): v for k, v in values.items()})

    assert case.apply(halo, {}).hash == halo.hash
    assert of(ranks="8").args["ranks"] == 8 == of(trace__ranks="8").args["ranks"]
    assert of(size="2KiB").args["size"] == 2048
    assert of(trace__dims="2x2").args["dims"] == [2, 2]
    assert of(hosts="16").platform == "nt-cluster*16"
    assert of(platform="abe", hosts="16").platform == "abe*16"
    assert of(seed="7").setting("seed") == 7
    assert of(mode="0,1,0,1").mode == "0,1,0,1"
    assert of(fidelity="curve").setting("fidelity") == "curve"
    assert of(kills="rank 1@1s + rank 2@2s").setting("kills") == ("rank 1@1s", "rank 2@2s")
    assert of(kills="none").setting("kills") == ()
    assert case.apply(halo, {"wmpi.pool": "8MiB"}).sets == {**halo.sets, "wmpi.pool": "8MiB"}
    # Another model keeps what is no parameter of the old one.
    assert of(model="hpvm").sets == {"platform.link.latency": "5us"}
    assert of(model="wmpi:additive-stall").sets == halo.sets
    for key, text in (("seed", "-1"), ("hosts", "0"), ("trace.foo", "1"), ("ranks", "x"), ("size", "1s"), ("trace.dims", "2y2")):
        with pytest.raises(UsageError):
            case.apply(halo, {key: text})


def test_keys_of_a_replayed_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.ti").write_text("0 init\n0 send 1 0 8 6\n0 finalize\n1 init\n1 recv 0 0 8 6\n1 finalize\n")
    text = HALO.partition("[trace]")[0] + '[trace]\nfile = "a.ti"\n'
    (tmp_path / "s.toml").write_text(text.replace("wmpi.packet", "wmpi.network_packet"))
    together = '[[zip]]\n"trace.file" = ["a.ti", "b.ti"]\n"trace.section" = "1-1,1-2"\n'
    (tmp_path / "study.toml").write_text(f'name = "s"\nscenario = "s.toml"\n{together}')
    study = design.load(tmp_path / "study.toml")
    design.check(study)
    told = [(p.scenario.trace, p.scenario.program.section) for p in design.points(study)]
    assert told == [(tmp_path / "a.ti", "1-1"), (tmp_path / "b.ti", "1-2")]
    again = design.from_definition(study.definition())
    assert [p.scenario.trace for p in design.points(again)] == [tmp_path / "a.ti", tmp_path / "b.ti"]
    assert again.hash == study.hash


def test_a_mode_may_name_hosts_that_only_a_larger_room_has() -> None:
    design.check(design.from_command("bf-wmpi-shared", ["hosts=2..4", 'mode="2,3"']))
    with refused(UsageError, "unknown-host | '4'"):
        design.check(design.from_command("bf-wmpi-shared", ["hosts=2..4", 'mode="3,4"']))


def test_keys_of_a_start() -> None:
    study = design.from_command("start-wmpi-six", {"ranks": "2..4"}, set_={"trace.starts": "10"})
    design.check(study)
    assert [dict(p.scenario.start) for p in design.points(study)] == [{"ranks": n, "starts": 10} for n in (2, 3, 4)]


def test_an_inline_base(tmp_path: Path) -> None:
    base = '[base]\nmodel = "wmpi"\nplatform = "nt-pair"\nmode = "shared"\n[base.trace]\ngenerator = "pingpong"\nsizes = "1KiB"\n'
    (tmp_path / "s.toml").write_text(f'name = "mine"\n[vary]\nseed = "1..2"\n{base}')
    study = design.load(tmp_path / "s.toml")
    design.check(study)
    assert study.base.what_if
    assert design.from_definition(study.definition()).hash == study.hash


@for_each(
    "key, unit, text",
    [
        ("wmpi.packet", "B", "128 KiB"),
        ("platform.link.bandwidth", "B/s", "100 Mbps"),
        ("platform.host.quantum", "s", "120 ms"),
        ("platform.link.kind", "", "cable"),
        ("trace.reps", "", ""),
        ("seed", "1", "1"),
        ("hosts", "1", "2"),
        ("model", "", "wmpi"),
    ],
)
def test_what_a_key_is(key: str, unit: str, text: str) -> None:
    told = case.about(catalogue.scenario("bf-wmpi-shared"), key)
    assert (told.unit, told.text) == (unit, text)


@for_each("key", ["wmpi.packt", "foo", "hpvm.packet", "trace.foo", "platform.link.foo", "platform.host.foo"])
def test_what_is_no_key(key: str) -> None:
    with pytest.raises(UsageError) as caught:
        case.about(catalogue.scenario("bf-wmpi-shared"), key)
    assert caught.value.code in ("unknown-key", "unknown-parameter")
    assert key.rpartition(".")[2] in str(caught.value)


# -- refused before anything runs -----------------------------------------------------------------------------------------

BAD: list[tuple[list[str], str]] = [
    (["wmpi.pakket=1KiB"], "unknown-parameter | 'wmpi.packet'"),
    (["hpvm.packet=1KiB"], "unknown-key | 'hpvm.packet'"),
    (["foo=1"], "unknown-key | 'foo'"),
    (["wmpi.packet=1s,2s"], "bad-unit | '1s'"),
    (["wmpi.packet=1us..1ms:x10"], "bad-unit | '1us'"),
    (["platform.link.bandwidth=1KiB"], "bad-unit | platform.link.bandwidth | '1KiB'"),
    (["platform.host.cores=0..2"], "out-of-range | '0'"),
    (["platform.link.bandwith=1Mbps"], "unknown-parameter | 'platform.link.bandwidth'"),
    (["platform.workstatio.cores=2"], "unknown-parameter | 'platform.workstation.cores'"),
    (["model=wmpi,wimpich"], "unknown-model | 'winmpich'"),
    (["platform=nt-pear"], "unknown-platform | 'nt-pair'"),
    (["mode=shard"], "unknown-host | 'shared'"),
    (["fidelity=curv"], "unknown-name | 'curve'"),
    (["seed=1.5"], "out-of-range | '1.5'"),
    (["hosts=100000"], "out-of-range | '100000'"),
    (["kills=rank 1"], "bad-syntax | PROCESS | TIME"),
    (["kills=proxy on nowhere@1s"], "unknown-host | 'nowhere'"),
    (["failures=link nope@1s"], "unknown-host | 'nope'"),
    (["traffic=a->b 2Mbps 1500B"], "unknown-host | 'a'"),
    (["trace.size=1KiB"], "unknown-key | 'trace.size' | 'trace.sizes'"),
    (["trace.reps=0"], "out-of-range | '0'"),
    (["seed=1..1000000000"], "too-many | 1000000000 | 100000 | --max-points"),
    (["seed=1..100000", "platform.link.latency=1ns..10us:+1ns"], "too-many | 1000000000"),
]


@for_each("vary, says", BAD)
def test_a_bad_study_is_one_line(vary: list[str], says: str) -> None:
    with pytest.raises(RetrompiError) as caught:
        design.check(design.from_command("bf-wmpi-shared", vary))
    agrees(caught.value, says)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


@for_each(
    "line, says, at",
    [
        ('"wmpi.packt" = "1KiB"', "unknown-parameter | 'wmpi.packet'", 3),
        ('"wmpi.packet" = "2KiB..1KiB:x2"', "bad-range", 3),
        ('"wmpi.packet" = "1us"', "bad-unit", 3),
        ('"seed" = []', "bad-range", 3),
        ('"seed" = true', "bad-value", 3),
        ('"trace.reps" = 1\n"reps" = 2', "duplicate-name | 'reps'", 4),
        ('[[zip]]\nseed = "1..3"\nmode = "shared,distributed"', "bad-input", 4),
        ('[set]\n"wmpi.packt" = "1KiB"', "unknown-parameter | 'wmpi.packet'", 4),
        ('"seed" = "1..3"\n[set]\nseed = 1', "duplicate-name", 3),
        ('"seed" = "1..1000000000"', "too-many | 1000000000", 2),
    ],
)
def test_a_bad_file_names_file_and_line(tmp_path: Path, line: str, says: str, at: int) -> None:
    file = tmp_path / "s.toml"
    file.write_text(f'name = "s"\nscenario = "bf-wmpi-shared"\n{"" if line.startswith("[") else "[vary]"}\n{line}\n')
    with pytest.raises(InputError) as caught:
        design.check(design.load(file))
    agrees(caught.value, says)
    assert str(caught.value).startswith(f"{file}:{at + 1}: ")


@for_each(
    "text, says",
    [
        ('name = "s"\nscenario = "bf-wmpi-share"', "unknown-scenario | 'bf-wmpi-shared'"),
        ('name = "12"\nscenario = "bf-wmpi-shared"', "bad-name | 's name is a word or a few, no number and no path, not ' | 12"),
        ('name = "s"\nscenario = "bf-wmpi-shared"\nvray = 1', "unknown-key | 'vary'"),
        ('name = "s"', "bad-value"),
        ('scenario = "bf-wmpi-shared"', "missing-key | 'name'"),
        ('name = "s"\nscenario = "bf-wmpi-shared"\nsampling = "lhs"', "bad-input"),
        ('name = "s"\nscenario = "bf-wmpi-shared"\nsamples = 3', "bad-input"),
        ('name = "s"\nscenario = "bf-wmpi-shared"\nsampling = "sobol"', "unknown-name | 'sobol'"),
        ('name = "s"\nscenario = "bf-wmpi-shared"\nvary = 3', "bad-value | 'vary'"),
        ('name = "s"\nscenario = "bf-wmpi-shared"\nzip = 3', "bad-value | 'zip'"),
        ('name = "s"\nscenario = "bf-wmpi-shared"\nmetric = "tyme"', "unknown-metric"),
        ("name = ", "unreadable-file | TOML"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "s.toml").write_text(text.replace("wmpi.packet", "wmpi.network_packet"))
    with pytest.raises(InputError) as caught:
        design.check(design.load(tmp_path / "s.toml"))
    agrees(caught.value, says)
    assert "\n" not in str(caught.value)


def test_a_limit_can_be_raised() -> None:
    study = design.from_command("bf-wmpi-shared", {"seed": "1..200000"})
    with refused(UsageError, "too-many | --max-points | 200000"):
        design.check(study)
    design.check(study, limit=200_000)


def test_every_ready_study_is_right() -> None:
    for name in design.study_names():
        study = design.study(name)
        assert study.name == name
        assert study.title
        assert study.question
        design.check(study)
        assert design.count(study) == len(design.points(study))
        assert design.from_definition(study.definition()).hash == study.hash
        case.identity(next(design.each(study)).scenario)


def test_the_command_line_says_it_in_one_line(retrompi: Callable[..., object]) -> None:
    told = retrompi("sweep", "bf-wmpi-shared", "--vary", "wmpi.pakket=1KiB")
    assert told.code == 2  # type: ignore[attr-defined]
    assert told.err.count("\n") == 1  # type: ignore[attr-defined]
