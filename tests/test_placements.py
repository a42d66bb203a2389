"""Where ranks run: words, counts, hostfiles, a limit a host, the natural placement of a platform; more ranks than processors."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from asking import ask
from cases import for_each
from conftest import Outcome
from engine_runs import job
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import agrees, refused

from retrompi import traces
from retrompi.base.errors import InputError, UsageError
from retrompi.sim.resolved import Resolved, place
from retrompi.spec import registry
from retrompi.spec.machine import placements
from retrompi.spec.question import Benchmark, Message, Question, Replay
from retrompi.studies.define import case, catalogue
from retrompi.traces import generate

pytestmark = pytest.mark.usefixtures("here")
Run = Callable[..., Outcome]
ABE = "abe"  # two hosts of eight processors


@for_each(
    "mode, ranks, expected",
    [
        ("block", 10, [0] * 8 + [1] * 2),
        ("block", 20, [0] * 8 + [1] * 8 + [0] * 4),
        ("block:3", 6, [0, 0, 0, 1, 1, 1]),
        ("cyclic", 5, [0, 1, 0, 1, 0]),
        ("cyclic:2", 4, [0, 1, 0, 1]),
        ("distributed", 5, [0, 1, 0, 1, 0]),
        ("n1*8,n2*8", 16, [0] * 8 + [1] * 8),
        ("n2*2, n1", 3, [1, 1, 0]),
        ("0*2,1", 3, [0, 0, 1]),
        ("fill:n2*3,n1*4", 5, [1, 1, 1, 0, 0]),
        ("natural", 10, [0] * 8 + [1] * 2),
        ("shared", 3, [0, 0, 0]),
    ],
)
def test_a_placement_puts_ranks_where_it_says(mode: str, ranks: int, expected: list[int]) -> None:
    room = registry.platform(ABE)
    assert place(room, mode, ranks) == expected
    normal = room.placement(mode)
    assert place(room, normal, ranks) == expected
    if isinstance(normal, str):
        assert room.placement(normal) == normal


@for_each(
    "mode, ranks, wanted",
    [
        ("n1*8,n3*8", 16, "unknown-host | 'n3' | n1"),
        ("n1*0", 1, "out-of-range | n1"),
        ("n1*99999999", 1, "out-of-range | ranks"),
        ("block:0", 1, "out-of-range | block:0"),
        ("block:999999999", 1, "unknown-host | block:999999999"),
        ("block:4", 9, "bad-placement | block:4 | 8, not 9 | abe*3"),
        ("n1*3,n2", 5, "bad-placement | 4 hosts | 5 ranks"),
        ("fill:n1*2", 3, "bad-placement | 2 ranks, not 3"),
        ("fill:", 1, "unknown-host"),
        ("blok", 2, "unknown-host | 'blok' | block"),
        ("", 2, "unknown-host"),
        ("n1*8,", 8, "unknown-host"),
    ],
)
def test_a_placement_that_is_none_is_refused_in_one_line(mode: str, ranks: int, wanted: str) -> None:
    with refused(UsageError, wanted) as caught:
        place(registry.platform(ABE), mode, ranks)
    assert "\n" not in str(caught.value)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["block", "cyclic", "distributed", "natural", "shared"]), st.integers(1, 200),
    st.sampled_from(["abe*5", "nt-cluster", "cray-j90"]),
)
def test_no_host_is_crowded_while_another_has_room(mode: str, ranks: int, platform: str) -> None:
    room = registry.platform(platform)
    where = place(room, mode, ranks)
    assert len(where) == ranks
    if mode in ("block", "cyclic"):
        load = Counter(where)
        rounds = [load[i] / h.cores for i, h in enumerate(room.hosts)]
        assert max(rounds) <= -(-ranks // sum(h.cores for h in room.hosts))
        if mode == "block" and ranks <= sum(h.cores for h in room.hosts):
            assert list(where) == sorted(where)


def test_the_natural_placement_fills_hosts_of_several_processors_and_spreads_over_others_unless_the_file_says() -> None:
    names = (ABE, "nt-cluster", "nt-pair", "cray-t3e", "cray-j90", "myrinet-piii")
    natural = {name: registry.platform(name).placement("natural") for name in names}
    assert natural == {
        ABE: "block", "nt-cluster": "distributed", "nt-pair": "distributed", "cray-t3e": "distributed", "cray-j90": "shared",
        "myrinet-piii": "distributed",
    }
    assert registry.platform("nt-pair").with_overrides({"host.cores": "2"}).placement("natural") == "block"
    assert registry.platform(ABE).of_size(64).placement("natural") == "block"
    assert registry.platform("myrinet-piii").hash == replace(registry.platform("myrinet-piii"), natural="").hash  # it changes no result


def test_a_platforms_file_may_declare_its_natural_placement(tmp_path: Path) -> None:
    text = registry.platform("nt-pair").path.read_text()  # type: ignore[union-attr]
    for word, line in (("block", 'natural = "block"\n'), ("distributed", "")):
        (tmp_path / f"{word}.toml").write_text(line + text)
        assert registry.platform(str(tmp_path / f"{word}.toml")).placement("natural") == word
    (tmp_path / "wrong.toml").write_text('natural = "packed"\n' + text)
    with refused(InputError, "bad-value | wrong.toml:1 | packed | block"):
        registry.platform(str(tmp_path / "wrong.toml"))


def test_the_default_is_the_natural_placement_and_is_said(retrompi: Run, tmp_path: Path) -> None:
    traces.write(job("barrier", "barrier", "barrier"), tmp_path / "t")
    for platform, mode, hosts in ((ABE, "block", "n1*3"), ("nt-cluster", "distributed", "n1,n2,n3")):
        done = retrompi("replay", "t", "-m", "wmpi", "-p", platform, "--json")
        assert json.loads(done.out)["placement"]["mode"] == mode
        said = " ".join(retrompi("replay", "t", "-m", "wmpi", "-p", platform).err.split())
        assert f"note: placement: {mode}, the natural one of {platform}: {hosts}" in said
        explicit = json.loads(retrompi("replay", "t", "-m", "wmpi", "-p", platform, "--mode", mode, "--json").out)
        assert explicit["time_s"] == json.loads(done.out)["time_s"]
        assert not explicit["placement"]["natural"]
    # A question by default is the same run as one that names the placement.
    assert Resolved.of(Question("wmpi", ABE, Replay(job("barrier")), "natural")).mode == "block"


HOSTFILE = "# our nodes\nn2:3\n\nn1 slots=2 max_slots=4  # the first\n"


def test_a_hostfile_fills_its_hosts_in_order(retrompi: Run, tmp_path: Path) -> None:
    room = registry.platform(ABE)
    (tmp_path / "hosts").write_text(HOSTFILE)
    assert placements.read_hostfile(tmp_path / "hosts", room.name, room.hosts) == "fill:n2*3,n1*2"
    (tmp_path / "plain").write_text("n1\nn2\nn1\n")
    assert placements.read_hostfile(tmp_path / "plain", room.name, room.hosts) == "fill:n1*16,n2*8"
    traces.write(job(*["barrier"] * 4), tmp_path / "t")
    words = ["replay", "t", "-m", "wmpi", "-p", ABE, "--json"]
    told = json.loads(retrompi(*words, "--hostfile", "hosts").out)
    assert [r["host"] for r in told["per_rank"]] == ["n2", "n2", "n2", "n1"]
    told = json.loads(retrompi(*words, "--hostfile", "plain", "--per-host", "2").out)
    assert [r["host"] for r in told["per_rank"]] == ["n1", "n1", "n2", "n2"]
    told = json.loads(retrompi(*words, "--per-host", "3").out)
    assert [r["host"] for r in told["per_rank"]] == ["n1", "n1", "n1", "n2"]
    told = json.loads(retrompi(*words, "--mode", "cyclic", "--per-host", "2").out)
    assert [r["host"] for r in told["per_rank"]] == ["n1", "n2", "n1", "n2"]
    agrees(retrompi(*words, "--hostfile", "hosts", "--mode", "block"), "conflicting-options | --hostfile")
    agrees(retrompi(*words, "--mode", "shared", "--per-host", "2"), "conflicting-options | --per-host")
    agrees(retrompi(*words, "--mode", "n1*4", "--per-host", "2"), "conflicting-options | --per-host")


@for_each(
    "text, wanted",
    [
        ("n1\nn3:2\n", "unknown-host | hosts:2 | 'n3' | n1"),
        ("n1 slots=0\n", "bad-syntax | hosts:1 | slots=0"),
        ("\nn1:many\n", "bad-syntax | hosts:2 | many"),
        ("n1 cpu=4\n", "bad-syntax | hosts:1 | cpu=4 | n1 slots=4"),
        ("n1:99999999999\n", "bad-syntax | hosts:1"),
        ("# nothing\n", "empty-file | hosts"),
    ],
)
def test_a_wrong_hostfile_is_refused_with_file_and_line(text: str, wanted: str, tmp_path: Path) -> None:
    room = registry.platform(ABE)
    (tmp_path / "hosts").write_text(text)
    with refused(InputError, wanted):
        placements.read_hostfile(tmp_path / "hosts", room.name, room.hosts)


def test_a_hostfile_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    room = registry.platform(ABE)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name in ("binary", "missing", "."):
        with refused(InputError, "unreadable-file"):
            placements.read_hostfile(tmp_path / name, room.name, room.hosts)


def test_studies_take_the_same_placements() -> None:
    scenario = replace(catalogue.scenario("bf-wmpi-shared"), platform=ABE)
    for text, hosts in (("block", [0, 0]), ("cyclic", [0, 1]), ("n2*2", [1, 1]), ("block:1", [0, 1]), ("natural", [0, 1])):
        changed = case.apply(scenario, {"mode": text})
        case.ValueChecker(changed, [changed.model], [changed.platform]).check("mode", [text])
        assert list(Resolved.of(changed.question()).placement) == hosts
    with refused(UsageError, "unknown-host | 'blok'"):
        case.ValueChecker(scenario, [scenario.model], [scenario.platform]).check("mode", ["blok"])


def test_more_ranks_than_processors_is_told_with_the_factor_and_the_platform_that_has_enough() -> None:
    trace = generate.ring(32, 8)
    told = ask("wmpi", "cray-t3e", trace, "natural", fidelity="curve")
    (caution,) = [c.text for c in told.cautions if c.code == "more-ranks-than-processors"]
    assert "8 hosts" in caution
    assert "runs 4 on 1 processor, 4 times as many" in caution
    assert "'cray-t3e*32'" in caution
    told = ask("wmpi", "abe*2", generate.ring(24, 8), "block", fidelity="curve")
    (caution,) = [c.text for c in told.cautions if c.code == "more-ranks-than-processors"]
    assert "n1 has more ranks than processors" in caution
    assert "16 on 8 processors, 2 times" in caution
    assert "'abe*3'" in caution
    for platform, mode, ranks in (("cray-t3e*32", "natural", 32), ("abe", "block", 16), ("nt-pair", "shared", 2), ("abe", "n1*9", 9)):
        told = ask("wmpi", platform, generate.ring(ranks, 8), mode, fidelity="curve").cautions
        assert "more-ranks-than-processors" not in {c.code for c in told}, (platform, mode)


def test_a_platform_has_a_stated_maximum_of_hosts() -> None:
    with refused(UsageError, "out-of-range | 1048576 | 1048577"):
        registry.platform("abe*1048577")
    assert len(registry.platform("abe*4096").hosts) == 4096


# -- messages between two ranks ------------------------------------------------------------------------------------------------------


DUAL = "linux-piii-933*2@myrinet-lanai9"  # two hosts of two processors


def test_a_pingpong_of_several_hosts_goes_between_them_unless_a_placement_is_given(retrompi: Run) -> None:
    given = ["-m", "mpichgm", "-p", DUAL]
    curve = ["pingpong", *given, "--sizes", "8B", "--reps", "5", "--json"]
    modes = {"": [], "distributed": ["--mode", "distributed"], "shared": ["--mode", "shared"]}
    times = {mode: json.loads(retrompi(*curve, *how).out)[0]["time_us"] for mode, how in modes.items()}
    assert times[""] == times["distributed"] > times["shared"]
    stages = {r["stage"] for r in json.loads(retrompi("explain", *given, "--size", "8B", "--json").out)["stages"]}
    assert {"nic", "wire"} <= stages
    why = json.loads(retrompi("why", "pingpong", *given, "--json", "--", "sizes=8", "reps=5").out)
    assert "nic" in json.dumps(why)


def test_the_natural_placement_of_two_ranks_is_by_their_program() -> None:
    expected = {"pingpong", "pingping", "osu_latency", "osu_bandwidth", "one_way", "put_one_way", "get_one_way"}
    assert {name for name, made in generate.GENERATORS.items() if made.between_two} == expected
    for name in ("pingpong", "osu_bandwidth"):
        assert Resolved.of(Question("mpichgm", DUAL, Benchmark(name, {"sizes": [8], "reps": 2}), "natural")).mode == "distributed"
    assert Resolved.of(Question("mpichgm", DUAL, Benchmark("ring", {"ranks": 2, "size": 8}), "natural")).mode == "block"
    assert Resolved.of(Question("mpichgm", DUAL, Message(8), "natural")).placement == [0, 1]
    assert Resolved.of(Question("mpichgm", "linux-piii-933", Message(8), "natural")).mode == "shared"
    assert Resolved.of(Question("mpich:shmem", "ibm-sp1*2@sp1-switch", Message(8), "natural")).mode == "shared", "it joins no machines"


def test_a_list_of_hosts_is_told_by_their_names(retrompi: Run) -> None:
    head = retrompi("pingpong", "-m", "wmpi", "-p", "nt-cluster", "--mode", "n1,n4", "--sizes", "8B", "--reps", "2").out.splitlines()[0]
    assert head.startswith("wmpi, n1,n4 on nt-cluster (run ")
