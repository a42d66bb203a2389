"""Platform files of SimGrid as platforms, and platforms as such files."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from conftest import Outcome
from refusals import agrees, refused

from retrompi.base.errors import InputError, UsageError
from retrompi.convert.platform_xml import host_names, xml
from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.question import Question, Replay
from retrompi.traces import generate

HEAD = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
"""
SITES = """<zone id="world" routing="Full">
  <cluster id="left" prefix="a" radical="0-2" suffix=".left" speed="20Mf" bw="12.5MBps" lat="50us" router_id="gate-left"/>
  <cluster id="right" prefix="b" radical="0-10" suffix=".right" speed="40Mf" core="2" bw="12.5MBps" lat="20us" router_id="gate-right"/>
  <link id="line" bandwidth="193kBps" latency="2ms"/>
  <zoneRoute src="left" dst="right" gw_src="gate-left" gw_dst="gate-right"><link_ctn id="line"/></zoneRoute>
</zone>
</platform>
"""
CLUSTER = """<zone id="world" routing="Full">
<cluster id="c" prefix="n" radical="0-{last}" suffix="" speed="20Mf" bw="12.5MBps" lat="5us" {more}/></zone></platform>
"""
KINDS = {
    "cluster": (3, ""),
    "backbone": (3, 'bb_bw="6MBps" bb_lat="3us"'),
    "torus": (7, 'topology="TORUS" topo_parameters="2,2,2" sharing_policy="SPLITDUPLEX"'),
    "fat-tree": (7, 'topology="FAT_TREE" topo_parameters="2;4,2;1,2;1,1" sharing_policy="SPLITDUPLEX"'),
    "dragonfly": (119, 'topology="DRAGONFLY" topo_parameters="3,4;4,3;5,1;2" sharing_policy="SPLITDUPLEX"'),
}
FILLED = 'name = "sites"\ntitle = "Two sites"\nsimgrid = "sites.xml"\nhosts = "nt4-p6-200"\nnetwork = "switch-100"\n'


@pytest.fixture
def sites(tmp_path: Path) -> Path:
    file = tmp_path / "sites.xml"
    file.write_text(HEAD + SITES)
    return file


def arrival(platform: str, network: str, mode: str = "distributed", *, ranks: int = 2, size: int = 100_000) -> float:
    made = generate.pingpong([size], 3) if ranks == 2 else generate.make_trace("alltoall", {"ranks": ranks, "size": 4096})
    result = simulate.run(Question("sockets", platform, Replay(made), mode, network=network, idle_overrides=True))
    assert result.outcome == "completed"
    return result.time_s


def test_hosts_have_what_the_file_says_and_the_rest_of_a_host_of_the_library(sites: Path) -> None:
    room = registry.platform(f"nt4-p6-200@{sites}")
    assert [h.name for h in room.hosts] == [*(f"a{i}-left" for i in range(3)), *(f"b{i}-right" for i in range(11))]
    last, known = room.hosts[-1], registry.platform("nt4-p6-200").hosts[0]
    assert (last.cores, last.flops) == (2, 40e6)
    assert (last.quantum, last.os) == (known.quantum, known.os)
    assert room.link.bandwidth == 193_000
    assert "sites.xml" in room.quantities["b0-right.flops"].source
    before = room.hash
    sites.write_text((HEAD + SITES).replace("193kBps", "194kBps"))
    assert registry.platform(f"nt4-p6-200@{sites}").hash != before


def test_a_toml_file_says_what_the_hosts_are(sites: Path) -> None:
    file = sites.with_suffix(".toml")
    file.write_text(FILLED + '[like]\n"b1*" = "linux-p6-200"\n')
    room = registry.platform(str(sites))
    assert room.name == "sites"
    assert {h.name for h in room.hosts if h.os.startswith("Linux")} == {"b1-right", "b10-right"}
    assert room.link.frame_overhead == registry.platform("nt4-p6-200*2@switch-100").link.frame_overhead
    assert arrival(str(file), "simgrid") > arrival(f"nt4-p6-200@{sites}", "simgrid")


@for_each("kind", KINDS)
def test_every_network_follows_the_routes_of_the_file(kind: str, tmp_path: Path) -> None:
    """SimGrid finds the routes; who carries the frames is one's choice: all agree on a frame alone, SimGrid and our own flows on many."""
    last, more = KINDS[kind]
    file = tmp_path / "c.xml"
    file.write_text(HEAD + CLUSTER.format(last=last, more=more))
    on = f"nt4-p6-200@{file}"
    for mode in ("n0,n1", f"n0,n{last}", f"n{last},n{last // 2}"):
        assert arrival(on, "native", mode, size=1000) == pytest.approx(arrival(on, "simgrid", mode, size=1000), rel=1e-9)
        assert arrival(on, "fluid", mode) == pytest.approx(arrival(on, "simgrid", mode), rel=1e-9)
    together = arrival(on, "simgrid", ranks=min(last + 1, 12))
    assert arrival(on, "fluid", ranks=min(last + 1, 12)) == pytest.approx(together, rel=1e-6)


def test_two_sites_are_as_far_apart_as_the_line_between_them(sites: Path) -> None:
    on = f"nt4-p6-200@{sites}"
    for network in ("native", "fluid", "simgrid"):
        near, far = (arrival(on, network, mode) for mode in ("a0-left,a1-left", "a0-left,b0-right"))
        assert far > 6 * 100_000 / 193_000 > 5 * near


PAIR = """<zone id="z" routing="Full"><host id="n0" speed="20Mf"/><host id="n1" speed="20Mf"/>
<link id="l" bandwidth="1MBps" latency="1us" {more}/><route src="n0" dst="n1"><link_ctn id="l"/></route></zone></platform>
"""


@pytest.mark.parametrize(("text", "fact"), [
    (CLUSTER.format(last=3, more='bb_bw="6MBps" bb_lat="3us" bb_sharing_policy="FATPIPE"'), "link '.*' is no shared link"),
    (PAIR.format(more='sharing_policy="FATPIPE"'), "link 'l' is no shared link"),
    (PAIR.format(more='bandwidth_file="l.bw"'), "changes links or hosts over time"),
])
def test_what_only_simgrid_has_needs_its_network(text: str, fact: str, tmp_path: Path) -> None:
    file = tmp_path / "c.xml"
    file.write_text(HEAD + text)
    (tmp_path / "l.bw").write_text("PERIODICITY 9\n0 1e6\n5 5e5\n")
    on = f"nt4-p6-200@{file}"
    assert arrival(on, "simgrid") > 0
    with pytest.raises(InputError, match=f"c.xml: .*{fact}.*; --network simgrid carries it"):
        arrival(on, "native")


@for_each("text, facts", [
    ("<platform", "bad-platform-file | c.xml"), ("no xml", "bad-platform-file | c.xml"), (HEAD, "bad-platform-file | c.xml"),
    (HEAD + '<zone id="z" routing="Full"><host id="h"/></zone></platform>', "bad-platform-file | c.xml | speed"),
    (HEAD + '<zone id="z" routing="Odd"><host id="h" speed="1f"/></zone></platform>', "bad-platform-file | c.xml"),
    (HEAD + '<zone id="z" routing="Full">' + 2 * '<host id="h" speed="1f"/>' + "</zone></platform>", "bad-platform-file | c.xml"),
    (HEAD + '<zone id="z" routing="Full"><host id="h" speed="fast"/></zone></platform>', "bad-platform-file | c.xml"),
    (HEAD + '<zone id="z" routing="Full"></zone></platform>', "out-of-range | c.xml | 0 hosts"),
])
def test_what_simgrid_refuses_is_one_line(text: str, facts: str, tmp_path: Path) -> None:
    file = tmp_path / "c.xml"
    file.write_text(text)
    with refused(InputError, facts) as caught:
        registry.platform(f"nt4-p6-200@{file}")
    assert "\n" not in str(caught.value)
    assert "CRITICAL" not in str(caught.value)


def test_a_platform_that_ends_simgrid_is_wrong_input(tmp_path: Path) -> None:
    """A dragonfly with too few routers in a group: SimGrid dies of it."""
    file = tmp_path / "c.xml"
    file.write_text(HEAD + CLUSTER.format(last=11, more='topology="DRAGONFLY" topo_parameters="3,1;2,1;2,1;1"'))
    with refused(InputError, "bad-platform-file | c.xml | SimGrid"):
        arrival(f"nt4-p6-200@{file}", "simgrid", "n0,n11")


def test_what_a_platform_file_does_not_say_is_asked_for(sites: Path, retrompi: Callable[..., Outcome]) -> None:
    agrees(retrompi("platforms", "show", str(sites)), f"missing-key | -p nt4-p6-200@{sites} | sites.toml")
    agrees(retrompi("platforms", "show", f"nt4-p6@{sites}"), "unknown-host | nt4-p6-200")
    agrees(retrompi("platforms", "show", f"nt4-p6-200@{sites}x.xml"), "unknown-platform | sites.xmlx.xml")
    with refused(UsageError, "bad-topology | platform.link.bandwidth | sites.xml"):
        registry.platform(f"nt4-p6-200@{sites}").with_overrides({"link.bandwidth": "1MB/s"})
    with refused(UsageError, "bad-topology | 14 hosts | 20"):
        registry.platform(f"nt4-p6-200@{sites}").of_size(20)
    with refused(UsageError, "needs-mechanism | use mechanism"):
        simulate.run(Question("sockets", f"nt4-p6-200@{sites}", Replay(generate.pingpong([0], 1)), fidelity="curve"))
    file = sites.with_suffix(".toml")
    for wrong, facts in (
        (FILLED.replace("sites.xml", "none.xml"), "unknown-platform | none.xml"),
        (FILLED.replace("switch-100", "switch"), "unknown-network"),
        (FILLED + '[like]\n"z*" = "linux-p6-200"\n', "unknown-host | 'z*'"), (FILLED + "[link]\n", "unknown-key | 'link'"),
    ):
        file.write_text(wrong)
        agrees(retrompi("platforms", "show", str(file)), facts)


EXPORTED = {
    "switch": (5, {}),
    "hub": (4, {"kind": "hub"}),
    "cable": (2, {"kind": "cable"}),
    "torus": (8, {"kind": "torus", "shape": "4x2"}),
    "fat-tree": (8, {"kind": "fat-tree", "shape": "4x2;1x2;1x1"}),
    "wan": (6, {"kind": "wan", "sites": "4+2", "wan_bandwidth": "2Mbps", "wan_latency": "3ms"}),
}


@for_each("kind", EXPORTED)
def test_a_platform_written_and_read_is_the_same(kind: str, tmp_path: Path) -> None:
    """Hosts, their rate and their cores; every route takes as long, and what is shared is shared."""
    n, sets = EXPORTED[kind]
    on = f"nt4-p6-200*{n}@switch-100"
    room = registry.platform(on).with_overrides({f"link.{k}": v for k, v in sets.items()})
    (tmp_path / "p.xml").write_text(xml(room))
    (tmp_path / "p.toml").write_text(FILLED.replace("sites.xml", "p.xml"))
    read = registry.platform(str(tmp_path / "p.xml"))
    assert [(h.name, h.flops, h.cores) for h in read.hosts] == [(h.name, h.flops, h.cores) for h in room.hosts]
    assert host_names(room) == [h.name for h in room.hosts]

    def took(platform: str, mode: str, made: Any, overrides: dict[str, str]) -> float:
        asked = Question("sockets", platform, Replay(made), mode, overrides, network="simgrid", idle_overrides=True)
        return simulate.run(asked).time_s

    given = {f"platform.link.{k}": v for k, v in sets.items()}
    for mode in ("n1,n2", f"n1,n{n}", f"n{n},n1"):
        made = generate.pingpong([50_000], 2)
        assert took(str(tmp_path / "p.toml"), mode, made, {}) == pytest.approx(took(on, mode, made, given), rel=1e-9)
    if kind not in ("fat-tree", "wan"):  # there, plain flows do not share by latency; those of a file do
        made = generate.make_trace("alltoall", {"ranks": n, "size": 4096})
        there, here = (took(p, "distributed", made, o) for p, o in ((str(tmp_path / "p.toml"), {}), (on, given)))
        assert there == pytest.approx(here, rel=1e-6)


@pytest.mark.skipif(None in (shutil.which("smpicc"), shutil.which("smpirun")), reason="SimGrid's SMPI is not installed")
@pytest.mark.parametrize("name", ["nt-cluster", "nt-fat-tree", "nt-wan", "cray-t3e"])
def test_smpirun_accepts_what_is_exported(name: str, tmp_path: Path, retrompi: Callable[..., Outcome]) -> None:
    (tmp_path / "ring.c").write_text(
        "#include <mpi.h>\nint main(int c, char **v) { int n, r; MPI_Init(&c, &v); MPI_Comm_size(MPI_COMM_WORLD, &n);\n"
        "MPI_Comm_rank(MPI_COMM_WORLD, &r); MPI_Allreduce(MPI_IN_PLACE, &r, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);\n"
        "MPI_Finalize(); return r != n * (n - 1) / 2; }\n"
    )
    done = retrompi("platforms", "export", name, "-o", str(tmp_path / "p.xml"), "--hostfile", str(tmp_path / "hosts"))
    assert done.code == 0, done.err
    subprocess.run(["smpicc", "ring.c", "-o", "ring"], cwd=tmp_path, check=True, capture_output=True)
    ranks = len((tmp_path / "hosts").read_text().split())
    told = subprocess.run(["smpirun", "-np", str(ranks), "-platform", "p.xml", "-hostfile", "hosts", "./ring"], cwd=tmp_path, check=False,
                          capture_output=True, text=True)
    assert told.returncode == 0, told.stderr[-2000:]


def test_what_simgrid_has_no_words_for_is_refused(retrompi: Callable[..., Outcome]) -> None:
    agrees(retrompi("platforms", "export", "nt-cluster", "--set", "platform.link.rails=2"), "bad-topology | 2 rails")
    agrees(retrompi("platforms", "export", "nt-fat-tree", "--set", "platform.n1.cores=2"), "bad-topology | fat-tree | all alike")
    agrees(retrompi("platforms", "export", "nt-cluster", "--set", "wmpi.pool=1MiB"), "idle-override | platform.link.KEY")
