"""Link kinds, rails, traffic beside a job and what is down: closed forms (beside SimGrid: tests/test_wire.py)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from asking import ask
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from links import link
from refusals import agrees, refused

from retrompi import _engine
from retrompi.base.errors import InputError, UsageError
from retrompi.cli.main import run as cli
from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.conditions import cross_traffic
from retrompi.spec.machine import topology
from retrompi.spec.machine.platform_file import load
from retrompi.spec.question import Beside, Question, Replay, pingpong
from retrompi.store import open_store
from retrompi.store.lookup import answer
from retrompi.studies.define import scenario
from retrompi.traces import generate

MB, US, MS, S = 1e6, 10**6, 10**9, 10**12  # bytes; picoseconds
RATE, LATENCY = 1.25 * MB, 5e-6
TREE = [4, 4, 1, 2, 1, 1]  # 16 places; four below a switch, two ways up from it
Flow = tuple[int, int, int, int]


def carry(
    kind: str, shape: list[int], hosts: int, flows: list[Flow], rails: int = 1, wire: str = "native", failures: Any = (), **more: Any
) -> list[int]:
    positions = [h for h in range(hosts) for _ in range(rails)]
    return _engine.carry(wire, link(kind, shape, RATE, LATENCY, rails=rails, **more), positions, flows, list(failures))


def took(bytes_: float, rate: float = RATE, hops: float = 0) -> int:
    return round((bytes_ / rate + hops * LATENCY) * S)


# --- shapes in words -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "text", "shape"),
    [
        ("torus", "4x4x2", (4, 4, 2)),
        ("fat-tree", "4x8;1x2;1x1", (4, 8, 1, 2, 1, 1)),
        ("fat-tree", "6;1;2", (6, 1, 2)),
        ("fat-tree", "2x3x2;1x2x3;2x2x1", (2, 3, 2, 1, 2, 3, 2, 2, 1)),
    ],
)
def test_a_shape_is_read_and_written(kind: str, text: str, shape: tuple[int, ...]) -> None:
    assert topology.of(kind).parse(text) == shape
    assert topology.of(kind).text(shape) == text


def test_the_engine_names_the_kinds_that_it_has() -> None:
    valid = ", ".join(sorted((*topology.KINDS, topology.PLATFORM_FILE)))
    with pytest.raises(_engine.ConfigError, match=f"unknown kind of link 'wire'; valid: {valid}"):
        carry("wire", [], 2, [])


def test_parallel_links_may_be_left_out() -> None:
    assert topology.of("fat-tree").parse("4x8;1x2") == (4, 8, 1, 2, 1, 1)


SITES = [("3+3", (0, 0, 0, 1, 1, 1)), ("2", (0, 0, 0, 1, 1, 1)), ("4+1+1", (0, 0, 0, 0, 1, 2)), ("3", (0, 0, 1, 1, 2, 2))]


@pytest.mark.parametrize(("text", "sites"), SITES)
def test_sites_are_read(text: str, sites: tuple[int, ...]) -> None:
    assert topology.parse_sites(text, 6) == sites


@settings(max_examples=200, deadline=None)
@given(hosts=st.integers(1, 3000), kind=st.sampled_from(["torus", "fat-tree"]))
def test_what_a_kind_has_by_default_has_room_and_what_grows_is_the_next_that_fits(hosts: int, kind: str) -> None:
    assert topology.of(kind).places(topology.of(kind).default(hosts)) >= hosts
    grown = topology.of("fat-tree").grow(TREE, hosts)
    assert grown[0], grown[2:] == (4, TREE[2:])
    assert hosts <= topology.of("fat-tree").places(grown) < hosts + 4


OVERRIDES = [
    ({"link.kind": "fat-tree", "link.shape": "2x2"}, "bad-topology | '2x2' | fat-tree"),
    ({"link.kind": "fat-tree", "link.shape": "2x2;1x1"}, "bad-topology"),
    ({"link.kind": "fat-tree", "link.shape": "0x2;1x1"}, "bad-topology | fat-tree"),
    ({"link.kind": "torus", "link.shape": "2x2;1"}, "bad-topology"),
    ({"link.shape": "2x2"}, "bad-topology"),
    ({"link.sites": "3+3"}, "bad-topology"),
    ({"link.kind": "wan"}, "missing-key | wan_bandwidth | e.g | 1544 | wan_latency | 20ms"),
    ({"link.kind": "wan", "link.sites": "3+4"}, "bad-topology"),
    ({"link.kind": "wan", "link.sites": "1"}, "bad-topology"),
    ({"link.kind": "wan", "link.sites": "many"}, "bad-topology | 'many'"),
    ({"link.kind": "wan", "link.sites": "9" * 5000}, "bad-topology"),
    ({"link.kind": "wan", "link.sites": "9999999999+1"}, "bad-topology"),
    ({"link.kind": "wan", "link.sites": "999999999+1"}, "bad-topology"),
    ({"link.kind": "torus", "link.shape": "9" * 5000 + "x2"}, "bad-topology"),
    ({"link.kind": "fattree"}, "unknown-name | 'fattree' | 'fat-tree'"),
    ({"link.rails": "0"}, "out-of-range"),
    ({"link.rails": "1.5"}, "out-of-range"),
    ({"link.rail_policy": "strip"}, "unknown-name | 'strip' | 'stripe'"),
    ({"link.wan_bandwidth": "0 Mbps"}, "out-of-range"),
    ({"link.wan_bandwith": "1 Mbps"}, "unknown-parameter | 'platform.link.wan_bandwidth'"),
    ({"link.wan_latency": "5"}, "bad-unit"),
]


@for_each("sets, says", OVERRIDES)
def test_a_link_that_cannot_be_is_refused_in_one_line(sets: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        registry.platform("nt-cluster").with_overrides(sets)
    agrees(caught.value, says)
    assert "\n" not in str(caught.value)


FILES = [
    ('shape = "4x2;1x2;1x1"', 'shape = "4x2"', "bad-topology | fat-tree"),
    ('shape = "4x2;1x2;1x1"', "shape = [4, 2]", "bad-topology"),
    ('shape = "4x2;1x2;1x1"', 'shape = "2x2;1x1"', "bad-topology"),
    ('shape = "4x2;1x2;1x1"', "", "bad-topology"),
    ('shape = "4x2;1x2;1x1"', 'shape = "4x2;1x2;1x1"\nsites = [["n1"]]', "bad-topology"),
    ('shape = "4x2;1x2;1x1"', 'shape = "4x2;1x2;1x1"\nrail_policy = "hash"', "unknown-name | 'hash'"),
    ('kind = "fat-tree"\nshape = "4x2;1x2;1x1"', 'kind = "wan"\nsites = [["n1", "n2"], ["n3"]]', "bad-topology | 'sites'"),
    ('kind = "fat-tree"\nshape = "4x2;1x2;1x1"', 'kind = "wan"\nsites = [["n1", "n2", "n3", "n4"], ["n5", "n6", "n7", "n8"]]',
     "missing-key | wan_bandwidth"),
]


@for_each("old, new, says", FILES)
def test_a_platform_file_with_a_wrong_link_is_refused(tmp_path: Any, old: str, new: str, says: str) -> None:
    file = tmp_path / "room.toml"
    text = registry.platform("nt-fat-tree").path.read_text(encoding="utf-8")  # type: ignore[union-attr]
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load(file)
    agrees(caught.value, says)


def test_rooms_of_the_new_kinds_grow() -> None:
    assert registry.platform("nt-fat-tree*17").link.shape == (4, 5, 1, 2, 1, 1)
    assert registry.platform("myrinet-clos*64").link.shape == (8, 8, 1, 8, 1, 1)
    assert registry.platform("nt-wan*9").link.shape == (0, 0, 0, 1, 1, 1, 0, 0, 0)
    assert registry.platform("nt-wan").with_overrides({"link.rails": "2"}).hash != registry.platform("nt-wan").hash
    trace = generate.pingpong([1000], 2)
    assert ask("wmpi", "nt-fat-tree*17", trace).time_ps == ask("wmpi", "nt-fat-tree", trace).time_ps


# --- closed forms ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_flows_share_the_way_up_that_d_mod_k_gives_them(k: int) -> None:
    """All to destinations that are alike modulo the two ways up: one way carries them all, the other none."""
    flows = [(0, h, 4 + 4 * h if h < 3 else 8, 10_000) for h in range(k)]
    # 4, 8 and 12 are even: D-mod-K sends them over the same way up.
    assert carry("fat-tree", TREE, 16, flows, wire="fluid") == [took(10_000 * k, hops=4)] * k
    assert carry("fat-tree", TREE, 16, flows) == [took(10_000 * n, hops=4) for n in range(1, k + 1)]


def test_a_tapered_tree_has_half_the_bisection_of_a_full_one() -> None:
    """Every host of the first switch sends to its counterpart below another: four flows, two ways up, or four."""
    shift = [(0, h, 4 + h, 10_000) for h in range(4)]
    assert set(carry("fat-tree", [4, 4, 1, 2, 1, 1], 16, shift, wire="fluid")) == {took(20_000, hops=4)}
    assert sorted(carry("fat-tree", [4, 4, 1, 2, 1, 1], 16, shift)) == [took(10_000, hops=4)] * 2 + [took(20_000, hops=4)] * 2
    assert set(carry("fat-tree", [4, 4, 1, 4, 1, 1], 16, shift)) == {took(10_000, hops=4)}


def test_parallel_links_are_taken_up_by_destination_and_down_by_source() -> None:
    """As SimGrid does: what comes from hosts that are alike modulo the parallel links goes down over the same one."""
    two = [4, 4, 1, 2, 1, 2]
    alike = [(0, 0, 4, 10_000), (0, 2, 6, 10_000), (0, 1, 5, 10_000), (0, 3, 7, 10_000)]
    apart = [(0, 0, 4, 10_000), (0, 1, 6, 10_000), (0, 2, 5, 10_000), (0, 3, 7, 10_000)]
    assert set(carry("fat-tree", two, 16, alike, wire="fluid")) == {took(20_000, hops=4)}
    assert max(carry("fat-tree", two, 16, alike)) == took(20_000, hops=4)
    assert set(carry("fat-tree", two, 16, apart)) == {took(10_000, hops=4)}


def test_below_one_switch_a_tree_is_a_switch() -> None:
    flows = [(0, 0, 1, 10_000), (0, 1, 0, 10_000), (0, 2, 3, 10_000)]
    assert carry("fat-tree", TREE, 16, flows) == carry("switch", [], 16, flows)


@settings(max_examples=60, deadline=None)
@given(shift=st.integers(1, 15), levels=st.sampled_from([[4, 4, 1, 4, 1, 1], [2, 2, 4, 1, 2, 4, 1, 1, 1], [8, 2, 1, 8, 1, 1]]))
def test_shifts_do_not_block_each_other_in_a_full_tree(shift: int, levels: list[int]) -> None:
    """Zahavi's theorem: under D-mod-K the links of a real-life fat tree carry one flow each in any shift permutation."""
    flows = [(0, h, (h + shift) % 16, 10_000) for h in range(16)]
    assert all(t <= took(10_000, hops=2 * (len(levels) // 3)) + 1 for t in carry("fat-tree", levels, 16, flows))


LINE = {"wan_bandwidth": 0.25 * MB, "wan_latency": 20e-3}


def test_a_line_between_sites_is_its_latency_and_its_rate() -> None:
    assert carry("wan", [0, 0, 1, 1], 4, [(0, 0, 2, 10_000)], **LINE) == [took(10_000, 0.25 * MB, 2) + 20 * MS]
    assert carry("wan", [0, 0, 1, 1], 4, [(0, 0, 1, 10_000)], **LINE) == [took(10_000, hops=2)]


def test_flows_share_a_line_each_way_apart_and_lines_between_other_sites_are_others() -> None:
    both = [(0, 0, 2, 10_000), (0, 1, 3, 10_000), (0, 2, 0, 10_000)]
    alone = took(10_000, 0.25 * MB, 2) + 20 * MS
    assert carry("wan", [0, 0, 1, 1], 4, both, wire="fluid", **LINE) == [took(20_000, 0.25 * MB, 2) + 20 * MS] * 2 + [alone]
    assert carry("wan", [0, 0, 1, 1], 4, both, **LINE) == [alone, took(20_000, 0.25 * MB, 2) + 20 * MS, alone]
    assert carry("wan", [0, 0, 1, 2], 4, [(0, 0, 2, 10_000), (0, 1, 3, 10_000)], **LINE) == [alone] * 2


def test_a_flow_from_afar_does_not_starve_beside_one_from_near() -> None:
    """Frames share a link alike; that TCP over a long way gets less is a matter of its window, which we simulate."""
    flows = [(0, 0, 1, 10_000), (20 * MS, 2, 1, 100_000)]
    far, near = carry("wan", [0, 1, 1], 3, flows, wire="fluid", wan_bandwidth=RATE, wan_latency=20e-3)
    assert far == took(20_000, hops=2) + 20 * MS
    assert near == took(110_000, hops=2) + 20 * MS


def test_rails_share_nothing() -> None:
    for kind, shape in (("hub", []), ("switch", []), ("torus", [2, 2]), ("fat-tree", [4, 1, 1])):
        one = carry(kind, shape, 4, [(0, 0, 1, 10_000)])[0]
        two = carry(kind, shape, 4, [(0, 0, 2, 10_000), (0, 1, 3, 10_000)], rails=2)
        assert two == [one, one], kind
        assert max(carry(kind, shape, 4, [(0, 0, 2, 10_000), (0, 0, 2, 10_000)], rails=2)) > one


def big(model: str, platform: str, size: int = 1 << 20, **more: Any) -> simulate.Result:
    result = ask(model, platform, generate.pingpong([size], 2), **more)
    assert result.outcome == "completed", result.detail
    return result


CARDS = [("sockets", "nt4-p6-200*2@switch-100", 1000, 1086, 1086), ("gm", "p4-1800*2@myrinet-pci64a", 100_000, 100_024, 4096)]
"""Model, platform, bytes of a message, and how many a card's rate delays out of memory and into it: all of a frame; of a burst, whose
pieces go into memory while later ones are on their way, the last piece."""


@pytest.mark.parametrize(("model", "platform", "size", "out", "into"), CARDS)
def test_a_card_reads_memory_at_one_rate_and_writes_it_at_another(model: str, platform: str, size: int, out: int, into: int) -> None:
    lines = f"0 init\n0 send 1 0 {size}\n0 finalize\n1 init\n1 recv 0 0 {size}\n1 finalize\n"
    trace = _engine.Trace.parse([(lines.encode(), "a.ti", -1)])

    def time(**rates: int) -> int:
        sets = [f"platform.{key.replace('_', '.', 1)}={rate} MB/s" for key, rate in rates.items()]
        return ask(model, platform, trace, "n1,n2", sets=sets).time_ps

    assert time(host_nic_rate=25) == time(host_nic_rate=25, host_nic_rate_in=25) == time(host_nic_rate=25, host_nic_rate_in=0)
    both = {"host_nic_rate": 25, "host_nic_rate_in": 50}
    for changed, saved in (({"n1_nic_rate": 50}, out / (50 * MB)), ({"n2_nic_rate_in": 100}, into / (100 * MB)),
                           ({"n2_nic_rate": 50}, 0), ({"n1_nic_rate_in": 100}, 0)):
        assert time(**both) - time(**both, **changed) == pytest.approx(saved * S, abs=2), changed


def test_striping_frames_doubles_a_slow_wire_and_a_pair_keeps_to_one_rail() -> None:
    rails = ["platform.link.rails=2"]
    one, pair = big("wmpi", "nt-cluster"), big("wmpi", "nt-cluster", sets=rails)
    stripe = big("wmpi", "nt-cluster", sets=[*rails, "platform.link.rail_policy=stripe"])
    assert pair.time_ps == one.time_ps
    assert 1.8 < one.time_ps / stripe.time_ps <= 2.0


def test_striping_a_card_transfer_divides_the_message() -> None:
    sets = ["platform.link.rails=2", "platform.link.rail_policy=stripe"]
    one, two = big("mpibip", "myrinet-piii"), big("mpibip", "myrinet-piii", sets=sets)
    # The link gives 250 MB/s, the host's bus 421 MB/s for all its cards.
    assert 250 / 421 < two.time_ps / one.time_ps < 0.95


@pytest.mark.parametrize("model", ["winmpich", "wmpi", "hpvm", "nemesis"])
def test_striped_streams_and_datagrams_end_well(model: str) -> None:
    """Frames take different cards and are handed over in order: nothing is lost and nothing comes twice."""
    sets = ["platform.link.rails=3", "platform.link.rail_policy=stripe"]
    result = simulate.run(Question(model, "nt-cluster", Replay(generate.all_at_once(6, 20_000)), overrides=sets))
    plain = simulate.run(Question(model, "nt-cluster", Replay(generate.all_at_once(6, 20_000))))
    for what in ("outcome", "messages", "delivered_bytes", "duplicates", "lost"):
        assert getattr(result, what) == getattr(plain, what)
    assert result.time_ps < plain.time_ps


SLOWEST = [("nt-fat-tree", "n1,n8", 12.5e6), ("nt-wan", "n1,n4", 193e3), ("myrinet-clos", "n1,n16", 250e6)]


@for_each("platform, mode, rate", SLOWEST)
@for_each("model", ["wmpi", "hpvm", "nemesis", "mpibip"])
def test_no_message_is_faster_than_its_slowest_link(model: str, platform: str, mode: str, rate: float) -> None:
    where = registry.platform(platform).placement(mode)
    for row in simulate.benchmark(Question(model, platform, pingpong([1000, 32 << 10, 100_000], reps=2), where)):
        assert row["time_us"] * 1e-6 >= row["size_B"] / rate


# --- traffic ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("load", [0.25, 0.45, 0.6])
def test_constant_traffic_on_a_hub_takes_its_turn_and_leaves_the_rest(load: float) -> None:
    """A message of many frames keeps the hub busy: it gets what traffic does not take, and no less than every other turn."""
    sets = ["wmpi.network_packet=32KiB"]
    alone = big("wmpi", "nt-cluster", 1 << 20, sets=sets)
    beside = big("wmpi", "nt-cluster", 1 << 20, sets=sets, traffic=[f"n3->n4 {10 * load}Mbps 1538B"])
    assert beside.retransmissions == 0
    # The hub is idle for a moment between the messages, and takes up then what had piled up.
    assert beside.time_s / alone.time_s == pytest.approx(1 / max(1 - load, 0.5), rel=0.05)
    (row,) = beside.traffic
    assert row["bytes"] == 1538 * row["arrived"]
    assert row["lost"] == 0
    assert (row["dropped"] > 0) == (load > 0.5)
    assert row["frames"] * 1538 / beside.time_s == pytest.approx(load * RATE, rel=0.01)


def test_traffic_on_other_ports_of_a_switch_is_no_matter_and_on_the_same_ports_it_is() -> None:
    sets = ["platform.link.kind=switch"]
    alone = big("wmpi", "nt-cluster", sets=sets)
    assert big("wmpi", "nt-cluster", sets=sets, traffic=["n3->n4 9Mbps 1538B"]).time_ps == alone.time_ps
    into = big("wmpi", "nt-cluster", sets=sets, traffic=["n3->n2 5Mbps 1538B"])
    assert 1.3 < into.time_s / alone.time_s < 1.5  # one of the two ways takes twice as long, as far as the wire is what counts


def test_traffic_to_a_host_of_the_job_interrupts_it() -> None:
    """Without a wire between the ranks, the processor is all that they share with it."""
    trace = generate.pingpong([1 << 18], 4)
    alone = simulate.run(Question("wmpi", "nt-cluster", Replay(trace), "shared"))
    for ends in ("n3->n1", "n1->n3"):
        assert ask("wmpi", "nt-cluster", trace, "shared", traffic=[f"{ends} 5Mbps 1538B"]).time_ps > alone.time_ps
    assert ask("wmpi", "nt-cluster", trace, "shared", traffic=["n3->n4 5Mbps 1538B"]).time_ps == alone.time_ps


@pytest.mark.parametrize("law", ["constant", "poisson", "onoff:5ms/15ms"])
def test_every_law_has_the_mean_rate_and_is_drawn_by_the_seed(law: str) -> None:
    texts = [f"any 3Mbps 500B {law}"]
    first, again, other = (big("wmpi", "nt-cluster", 1 << 20, traffic=texts, seed=s) for s in (1, 1, 2))
    assert (first.time_ps, first.traffic) == (again.time_ps, again.traffic)
    assert first.time_ps != other.time_ps
    mean = sum(r.traffic[0]["frames"] * 500 for r in (first, other)) / (first.time_s + other.time_s)
    assert mean == pytest.approx(3e6 / 8, rel=0.01 if law == "constant" else 0.1)


def test_a_full_card_drops_frames_and_the_job_goes_on() -> None:
    result = big("wmpi", "nt-cluster", 1 << 16, traffic=["n3->n4 50Mbps 1538B"])
    (row,) = result.traffic
    assert row["dropped"] > 0
    assert row["arrived"] * 1538 <= RATE * result.time_s


def test_traffic_never_keeps_a_run_alive() -> None:
    trace = _engine.Trace.parse([(f"{r} init\n{r} recv {1 - r} 0 8 6\n{r} finalize\n".encode(), f"r{r}", r) for r in (0, 1)])
    for wire in ("native", "simgrid"):
        for ends in ("any", "n1->n2", "n3->n4"):
            result = ask("wmpi", "nt-cluster", trace, network=wire, traffic=[f"{ends} 2Mbps 1000B poisson"])
            assert result.outcome == "deadlock"
            assert result.time_s < 60


def test_traffic_is_the_same_on_the_reference_wire() -> None:
    texts = ["any 2Mbps 700B poisson", "n1->n2 1Mbps 1500B", "n4->n2 1Mbps 1500B onoff:10ms/10ms"]
    for platform in ("nt-cluster", "nt-fat-tree", "nt-wan"):
        fluid, reference = (big("wmpi", platform, 1 << 16, traffic=texts, network=w) for w in ("fluid", "simgrid"))
        assert fluid.time_s == pytest.approx(reference.time_s, rel=1e-3)
        assert [t["frames"] for t in fluid.traffic] == pytest.approx([t["frames"] for t in reference.traffic], rel=1e-2)


BAD_TRAFFIC = [
    ("n1->n2", "bad-traffic | FROM | RATE | FRAME | LAW"),
    ("n1 2Mbps 1500B", "bad-traffic"),
    ("n1->n1 2Mbps 1500B", "bad-traffic"),
    ("n1->n22 2Mbps 1500B", "unknown-host | 'n22'"),
    ("any 2 1500B", "bad-unit"),
    ("any 2Mbps 1500ms", "bad-unit"),
    ("any 0Mbps 1500B", "out-of-range | 1558 B"),
    ("any 2Mbps 64KiB", "out-of-range | 1558 B"),
    ("n3->n4 1000Gbps 1500B", "bad-traffic | 1000"),
    ("n3->n1 9Mbps 64B", "bad-traffic"),
    ("any 2Mbps 1500B poison", "unknown-name | 'poisson'"),
    ("any 2Mbps 1500B onoff", "unknown-name | 'onoff'"),
    ("any 2Mbps 1500B onoff:1ms", "bad-traffic"),
    ("any 2Mbps 1500B onoff:0ms/1ms", "bad-traffic"),
]


@for_each("text, says", BAD_TRAFFIC)
def test_traffic_that_cannot_be_is_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        cross_traffic.traffic([text], registry.platform("nt-cluster"), [0, 1])
    agrees(caught.value, says)


# --- what is down ----------------------------------------------------------------------------------------------------------


def lost(times: list[int]) -> list[int]:
    """Which flows were lost, and when."""
    return [-2 - t for t in times if t < -1]


def test_a_flow_on_its_way_and_one_that_sets_out_are_lost_and_later_ones_arrive() -> None:
    flows = [(0, 0, 1, 1250), (US, 0, 1, 1250), (5 * MS, 0, 1, 1250)]
    for kind, shape in (("hub", []), ("switch", []), ("torus", [2, 2]), ("fat-tree", TREE), ("wan", [0, 1, 1, 1])):
        hosts = 16 if kind == "fat-tree" else 4
        got = carry(kind, shape, hosts, flows, failures=[("host", 1, 0, MS // 2, 3 * MS)], **(LINE if kind == "wan" else {}))
        assert got[:2] == [-2 - MS // 2] * 2, kind
        assert got[2] > 5 * MS
        late = carry(kind, shape, hosts, [(MS, 0, 1, 10)], failures=[("host", 1, 0, MS // 2, 3 * MS)], **(LINE if kind == "wan" else {}))
        assert late == [-2 - MS]


def test_those_who_stay_get_the_share_of_those_who_are_lost() -> None:
    flows = [(0, 0, 1, 1250), (0, 2, 3, 1250)]
    down = [("host", 3, 0, MS, -1)]
    assert carry("hub", [], 4, flows, wire="fluid", failures=down) == [MS + took(625, hops=1), -2 - MS]
    assert carry("hub", [], 4, flows[::-1], failures=down) == [-2 - MS, MS + took(1250, hops=1)]


def test_only_what_crosses_it_is_lost() -> None:
    flows = [(0, a, b, 12_500) for a in range(16) for b in range(16) if a != b]
    down = carry("fat-tree", TREE, 16, flows, failures=[("switch", 2, 0, 0, -1)])
    # The core switch 0 carries what goes to even places below other switches.
    for (_, a, b, _), t in zip(flows, down, strict=True):
        assert (t < 0) == (a // 4 != b // 4 and b % 2 == 0)
    edge = carry("fat-tree", TREE, 16, flows, failures=[("switch", 1, 3, 0, -1)])
    for (_, a, b, _), t in zip(flows, edge, strict=True):
        assert (t < 0) == (3 in (a // 4, b // 4))


def test_a_torus_loses_one_link_both_ways() -> None:
    flows = [(0, a, b, 1000) for a in range(5) for b in range(5) if a != b]
    down = carry("torus", [5], 5, flows, failures=[("pair", 0, 1, 0, -1)])
    over = {(0, 1), (0, 2), (4, 1), (1, 0), (2, 0), (1, 4)}
    assert {(a, b) for (_, a, b, _), t in zip(flows, down, strict=True) if t < 0} == over


def test_a_line_a_site_and_a_rail_go_down() -> None:
    flows = [(0, a, b, 1000) for a in range(6) for b in range(6) if a != b]
    sites = [0, 0, 1, 1, 2, 2]
    wan = carry("wan", sites, 6, flows, failures=[("wan", 0, 2, 0, -1)], **LINE)
    assert all((t < 0) == ({sites[a], sites[b]} == {0, 2}) for (_, a, b, _), t in zip(flows, wan, strict=True))
    site = carry("wan", sites, 6, flows, failures=[("site", 1, 0, 0, -1)], **LINE)
    assert all((t < 0) == (1 in (sites[a], sites[b])) for (_, a, b, _), t in zip(flows, site, strict=True))
    rail = carry("switch", [], 3, [(0, 0, 2, 1000), (0, 1, 3, 1000)], rails=2, failures=[("rail", 1, 0, 0, -1)])
    assert [t < 0 for t in rail] == [False, True]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_flow_arrives_or_is_lost_while_its_host_is_down(data: st.DataObject) -> None:
    kinds = [("hub", []), ("switch", []), ("torus", [3, 2]), ("fat-tree", [3, 2, 1, 2, 1, 1]), ("wan", [0, 1] * 3)]
    kind, shape = data.draw(st.sampled_from(kinds))
    pair = st.tuples(st.integers(0, 20 * MS), st.integers(0, 5), st.integers(0, 5), st.integers(1, 20_000)).filter(lambda f: f[1] != f[2])
    flows = data.draw(st.lists(pair, min_size=1, max_size=30))
    begin, end = sorted(data.draw(st.lists(st.integers(0, 30 * MS), min_size=2, max_size=2, unique=True)))
    host = data.draw(st.integers(0, 5))
    more: dict[str, Any] = {**(LINE if kind == "wan" else {}), "wire": data.draw(st.sampled_from(["native", "fluid"]))}
    whole = carry(kind, shape, 6, flows, **more)
    got = carry(kind, shape, 6, flows, failures=[("host", host, 0, begin, end)], **more)
    for (at, a, b, _), t, before in zip(flows, got, whole, strict=True):
        if t >= 0:
            assert host not in (a, b) or at >= end or t <= begin
            assert t >= at
            # On one link, others only get more of it; in turns, the next frame of who lost one may take the turn of another.
            assert (kind, more["wire"]) != ("hub", "fluid") or t <= before + 4 or host in (a, b)
        else:
            assert host in (a, b)
            assert max(at, begin) == -2 - t
            assert -2 - t < end


@pytest.mark.parametrize(("model", "platform"), [("mpibip", "myrinet-clos"), ("craympt", "cray-t3e")])
def test_a_card_that_waits_for_what_is_lost_hangs_and_the_diagnosis_names_the_link(model: str, platform: str) -> None:
    trace = generate.pingpong([1 << 18], 40)
    host = registry.platform(platform).hosts[1].name
    result = simulate.run(Question(model, platform, Replay(trace), limit_s=30, beside=Beside(failures=[f"link {host}@5ms..6ms"])))
    assert result.outcome == "deadlock"  # cards without an operating system send nothing again
    assert result.lost > 0
    assert f"link {host} down from 0.005 s to 0.006 s ({result.lost} frame" in result.failed
    assert result.failed in result.detail


def test_a_failure_that_takes_nothing_changes_nothing() -> None:
    for model, platform in (("wmpi", "nt-cluster"), ("mpibip", "myrinet-clos"), ("winmpich", "nt-wan"), ("craympt", "cray-t3e")):
        alone = big(model, platform, 1 << 16)
        assert big(model, platform, 1 << 16, failures=[f"link {registry.platform(platform).hosts[-1].name}@1us"]).time_ps == alone.time_ps
        late = big(model, platform, 1 << 16, failures=[f"link {registry.platform(platform).hosts[0].name}@1000s"])
        assert (late.time_ps, late.lost, late.failed) == (alone.time_ps, 0, "")


BAD_FAILURES = [
    ("nt-cluster", "link n1", "bad-failure | WHAT | FROM"),
    ("nt-cluster", "link n1@1", "bad-unit"),
    ("nt-cluster", "link n1@2s..1s", "bad-failure"),
    ("nt-cluster", "link n11@1s", "unknown-host | 'n11' | 'n1'"),
    ("nt-cluster", "link n1-n2@1s", "bad-failure"),
    ("nt-cluster", "switch@1s", "bad-failure | 'link n1' | 'hub'"),
    ("nt-fat-tree", "switch@1s", "bad-failure | 'switch 1.0'"),
    ("nt-fat-tree", f"switch {'9' * 5000}@1s", "bad-failure"),
    ("nt-fat-tree", "switch 3.0@1s", "out-of-range"),
    ("nt-fat-tree", "switch 1.2@1s", "out-of-range"),
    ("nt-wan", "switch 2@1s", "bad-failure | 'switch 0' | 'switch 1' | 'wan'"),
    ("nt-wan", "wan 0-3@1s", "bad-failure"),
    ("nt-wan", "switch a.1@1s", "bad-failure | 'switch 0' | 'switch 1'"),
    ("nt-wan", "wan a@1s", "bad-failure"),
    ("nt-pair", "rail 1@1s", "bad-failure | 'link server' | 'link server-workstation'"),
]


@for_each("platform, text, says", BAD_FAILURES)
def test_failures_of_what_is_not_there_are_refused(platform: str, text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        cross_traffic.failures([text], registry.platform(platform))
    agrees(caught.value, says)


def test_names_of_hosts_with_dashes_are_told_apart() -> None:
    room = registry.platform("nt-pair*4").with_overrides({"link.kind": "torus"})
    assert cross_traffic.failures(["link server-2@1s"], room) == [(0, 2, 0, 1.0, -1.0, "link server-2")]
    assert cross_traffic.failures(["link server-server-2@1s..2s"], room) == [(1, 0, 2, 1.0, 2.0, "link server-server-2")]


def test_at_other_rungs_and_on_the_reference_wire_there_is_nothing_to_fail() -> None:
    trace = generate.pingpong([100], 1)
    with refused(UsageError, "needs-mechanism"):
        simulate.run(Question("wmpi", "nt-cluster", Replay(trace), fidelity="curve", beside=Beside(failures=["hub@1s"])))
    with refused(UsageError, "needs-mechanism"):
        simulate.run(Question("wmpi", "nt-cluster", Replay(trace), fidelity="loggp", beside=Beside(traffic=["any 1Mbps 100B"])))
    with pytest.raises(InputError, match="failures need the wire native"):
        simulate.run(Question("wmpi", "nt-cluster", Replay(trace), network="simgrid", beside=Beside(failures=["hub@1s"])))


# --- from the outside ------------------------------------------------------------------------------------------------------

SCENARIO = """
name = "busy"
title = "A busy hub"
summary = "PingPong beside others"
reproduces = "what-if: others on the hub"
model = "wmpi"
platform = "nt-cluster"
mode = "distributed"
traffic = ["n3->n4 5Mbps 1538B"]
failures = ["link n6@1s"]
[trace]
generator = "pingpong"
sizes = "64KiB"
reps = 2
"""


def test_a_scenario_has_traffic_and_failures_and_they_are_part_of_a_run(tmp_path: Any) -> None:
    file = tmp_path / "busy.toml"
    file.write_text(SCENARIO, encoding="utf-8")
    busy = scenario.load(file)
    assert (busy.setting("traffic"), busy.setting("failures")) == (("n3->n4 5Mbps 1538B",), ("link n6@1s",))
    file.write_text(SCENARIO.replace('traffic = ["n3->n4 5Mbps 1538B"]\n', "").replace('failures = ["link n6@1s"]\n', ""), encoding="utf-8")
    quiet = scenario.load(file)
    assert quiet.hash != busy.hash
    store = open_store(tmp_path / "runs.db")
    found = [answer(store, s.question()) for s in (busy, quiet, busy)]
    assert found[0].run_id == found[2].run_id != found[1].run_id
    assert found[0].rows[0]["time_us"] > 1.3 * found[1].rows[0]["time_us"]
    assert store.run(found[0].run_id)["facts"]["traffic"][0]["arrived"] > 0
    for wrong in ("traffic = 3", 'failures = "hub@1s"', 'fidelity = "curve"'):
        old = 'traffic = ["n3->n4 5Mbps 1538B"]' if "traffic" in wrong else 'failures = ["link n6@1s"]'
        file.write_text(SCENARIO.replace(old, wrong), encoding="utf-8")
        with pytest.raises(InputError):
            scenario.load(file)


def test_the_command_line_takes_both(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*more: str) -> tuple[int, Any, str]:
        common = ["pingpong", "-m", "wmpi", "-p", "nt-cluster", "--mode", "n1,n2", "--sizes", "64KiB", "--reps", "2", "--json"]
        code = cli([*common, "--store", str(tmp_path / "runs.db"), *more])
        said = capsys.readouterr()
        return code, json.loads(said.out) if said.out else None, said.err

    alone, beside = run(), run("--traffic", "n3->n4 5Mbps 1538B", "--fail", "link n6@1s")
    assert alone[0] == beside[0] == 0
    assert beside[1][0]["time_us"] > 1.3 * alone[1][0]["time_us"]
    code, _, said = run("--traffic", "n3->n44 5Mbps 1538B")
    assert code == 2
    assert "no host 'n44'" in said
    file = tmp_path / "busy.toml"
    file.write_text(SCENARIO, encoding="utf-8")
    assert cli(["scenarios", "run", str(file), "--fail", "hub@10ms..20ms", "--store", str(tmp_path / "runs.db")]) == 0


DOC = Path(__file__).resolve().parents[1] / "docs" / "networks.md"


def test_the_document_names_every_kind_and_ready_room() -> None:
    text = DOC.read_text(encoding="utf-8")
    for name in (*topology.KINDS, *topology.POLICIES, "nt-fat-tree", "nt-wan", "myrinet-clos"):
        assert f"`{name}`" in text
