"""The fidelity ladder: every model runs at every rung, and what a rung keeps of the mechanism."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from engine_runs import completed, job, run
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from retrompi.base.errors import UsageError
from retrompi.sim import fidelity, samples, sampling, simulate
from retrompi.sim.resolved import MODES, Resolved
from retrompi.sim.sampling import SamplePoint
from retrompi.spec import registry
from retrompi.spec.calibrated_range import Range
from retrompi.spec.media import NO_LIMIT
from retrompi.spec.question import Message, Question, pingpong
from retrompi.spec.runtime.outside_range import outside
from retrompi.store import open_store
from retrompi.store.lookup import answer
from retrompi.store.rungs import spread
from retrompi.studies.define import catalogue

MODELS = {name: cls for name, cls in registry.models().items() if cls.calibrated is not None}
BASES = [name for name, cls in MODELS.items() if cls.variant_of is None]
LOWER = ("curve", "loggp")
KIB = 1024
SIZES = (0, KIB, 64 * KIB, 256 * KIB, KIB * KIB)


def _range(name: str) -> Range:
    known = MODELS[name].calibrated
    assert known is not None
    return known


HOMES = [
    (name, platform, mode)
    for name in BASES
    for platform in (MODELS[name].calibrated or _range(BASES[0])).platforms
    for mode in MODES
]


@for_each("rung", LOWER)
@for_each("name", MODELS)
def test_every_model_and_rival_carries_messages_at_every_rung(name: str, rung: str) -> None:
    sizes = (0, 1, 5000, 70_000, 400_000)
    # Sizes fall and buffers fit exactly: a message that overtakes is too long for the buffer it meets.
    falling = sorted(sizes, reverse=True)
    trace = job(
        "; ".join(f"send 1 0 {n} 6; recv 1 0 {n} 6" for n in sizes)
        + "; "
        + "; ".join(f"isend 1 3 {n} 6" for n in reversed(falling))
        + "; waitall 5; barrier",
        "; ".join(f"recv 0 0 {n} 6; send 0 0 {n} 6" for n in sizes)
        + "; "
        + "; ".join(f"recv 0 3 {n} 6" for n in reversed(falling))
        + "; barrier",
    )
    for platform in _range(name).platforms:
        room = registry.platform(platform)
        for mode in (m for m in MODES if not MODELS[name]().joins(room, simulate.place(room, m, 2))):
            result = completed(trace, name, mode, platform=platform, fidelity=rung)
            assert result.frames == 0
            assert result.time_ps > 0


@for_each("name, platform, mode", HOMES, few=24)
def test_a_curve_reproduces_the_pingpong_it_was_sampled_from(name: str, platform: str, mode: str) -> None:
    def reps(size: int) -> int:
        return 60 if size <= KIB else 6

    question = Question(name, platform, pingpong(SIZES, reps), mode)
    mechanism, curve = (simulate.benchmark(question.with_(fidelity=f)) for f in ("mechanism", "curve"))
    # Where two processes spin on one processor, a time is a number of quanta and the rest of one, which a curve does not know.
    rows = simulate.compile_question(Resolved.of(question)).rows
    spin = mode == "shared" and rows["recv_wait"]["kind"].startswith("spin") and rows["hosts"]["kinds"][0]["cores"] == 1
    # Where memory stays registered, the first long messages register it: a curve has that in the mean of other messages (docs/fidelity.md).
    registers = mode == "distributed" and any(hop.get("pin_cache") for hop in rows["remote"])
    for a, b in zip(mechanism, curve, strict=True):
        rel = 0.1 if spin else 0.05 if registers and a["size_B"] == 64 * KIB else 0.01
        assert b["time_us"] == pytest.approx(a["time_us"], rel=rel), a["size_B"]


@for_each("name, platform, mode", HOMES, few=24)
def test_a_curve_is_straight_between_its_points_and_goes_on_beyond(name: str, platform: str, mode: str) -> None:
    sizes = (0, 2 * KIB, 3 * KIB, 4 * KIB, 4 * KIB * KIB, 8 * KIB * KIB)
    rows = simulate.benchmark(Question(name, platform, pingpong(sizes, 2), mode, fidelity="curve"))
    _, two, three, four, last, beyond = (r["time_us"] for r in rows)
    bounds = {p.size for p in next(iter(_points(name, platform, mode)))}
    if not bounds & set(range(2 * KIB + 1, 4 * KIB)):
        assert three == pytest.approx((two + four) / 2, rel=1e-6)
    assert beyond > last


def _points(name: str, platform: str, mode: str) -> list[tuple[SamplePoint, ...]]:
    """The points both ways, as sampled for the first two ranks."""
    asked = Resolved.of(Question(name, platform, pingpong(), mode))
    pair = fidelity.pairs_of(fidelity.classes_of(asked.placement, asked.platform), asked.placement, asked.platform)[0]
    sample = samples.Samples(simulate.run).of(asked, pair)
    return [sample.there, sample.back]


@for_each("name, platform, mode", HOMES)
def test_points_are_times_and_leave_a_pingpong_undisturbed(name: str, platform: str, mode: str) -> None:
    there, back = _points(name, platform, mode)
    for p, q in zip(there, back, strict=True):
        assert min(p.send, p.transit, p.recv, p.gap, p.port, p.both) >= 0
        assert p.both <= p.port <= p.gap <= (p.time + q.time + 1) // 2
        assert p.both <= p.transit + p.recv + q.send + 1
    assert [p.size for p in there] == sorted({p.size for p in there})


@for_each("name", BASES)
def test_same_seed_same_result(name: str) -> None:
    platform = _range(name).platforms[0]
    trace = job(
        "send 1 0 9000 6; recv 1 1 20 6; sendRecv 70000 1 70000 1 6 6", "recv 0 0 9000 6; send 0 1 20 6; sendRecv 70000 0 70000 0 6 6"
    )
    for rung in LOWER:
        a, b = (run(trace, name, "distributed", platform=platform, fidelity=rung) for _ in range(2))
        assert (a.time_ps, a.per_rank, a.events) == (b.time_ps, b.per_rank, b.events)


@pytest.mark.parametrize("rung", LOWER)
def test_the_stages_of_a_message_sum_to_its_time(rung: str) -> None:
    for name in ("wmpi", "hpvm", "winmpich"):
        for mode in MODES:
            told = simulate.explain(Question(name, "nt-pair", Message(70_000), mode, fidelity=rung))
            assert sum(s["ps"] for s in told["stages"]) == told["total_ps"]
            assert {s["stage"] for s in told["stages"]} <= {"library", "wire", "queueing"}


@pytest.mark.parametrize("rung", LOWER)
def test_a_rendezvous_waits_for_its_receiver(rung: str) -> None:
    late = job("send 1 0 400000 6; # mark sent", "sleep 2; recv 0 0 400000 6")
    assert run(late, "wmpi", "shared", fidelity=rung).marks[0]["time_s"] >= 2
    early = job("send 1 0 1000 6; # mark sent", "sleep 2; recv 0 0 1000 6")
    assert run(early, "wmpi", "shared", fidelity=rung).marks[0]["time_s"] < 0.1


@pytest.mark.parametrize("rung", LOWER)
def test_a_deadlock_is_one_at_every_rung(rung: str) -> None:
    result = run(job("recv 1 0 1 6; send 1 0 1 6", "recv 0 0 1 6; send 0 0 1 6"), "wmpi", "distributed", fidelity=rung)
    assert result.outcome == "deadlock"
    assert len(result.waits) == 2


def test_ports_are_shared() -> None:
    """Two senders into one receiver take as long as one sender with twice the messages; two separate pairs do not."""
    n, size = 8, 64 * KIB
    into = ["; ".join(f"isend 2 0 {size} 6" for _ in range(n)) + f"; waitall {n}"] * 2
    taken = "; ".join(f"irecv {s} 0 {size} 6" for s in (0, 1) for _ in range(n))
    funnel = completed(job(*into, f"{taken}; waitall {2 * n}"), "mpibip", "distributed",
                       platform="myrinet-piii", fidelity="curve")
    one = completed(job("; ".join(f"isend 1 0 {size} 6" for _ in range(n)) + f"; waitall {n}",
                        "; ".join(f"irecv 0 0 {size} 6" for _ in range(n)) + f"; waitall {n}"), "mpibip", "distributed",
                    platform="myrinet-piii", fidelity="curve")
    assert 1.6 < funnel.time_s / one.time_s < 2.4


def test_a_hub_carries_one_message_at_a_time() -> None:
    def time(platform_kind: str) -> float:
        sends = "; ".join("isend {0} 0 65536 6" for _ in range(4)) + "; waitall 4"
        receives = "; ".join("irecv {0} 0 65536 6" for _ in range(4)) + "; waitall 4"
        trace = job(sends.format(2), sends.format(3), receives.format(0), receives.format(1))
        return completed(
            trace, "mpibip", [0, 1, 2, 3], platform="nt-cluster", sets=[f"platform.link.kind={platform_kind}"], fidelity="curve"
        ).time_s

    assert time("hub") > 1.6 * time("switch")


def test_a_curve_ends_where_the_mechanism_did_not_complete() -> None:
    small = ["wmpi.pool=100 KiB", "wmpi.packet=1 MiB"]
    assert simulate.benchmark(Question("wmpi", "nt-pair", pingpong([KIB], reps=2), "shared", small, fidelity="curve"))
    trace = job("send 1 0 131072 6", "recv 0 0 131072 6")
    for rung in fidelity.RUNGS:
        result = run(trace, "wmpi", "shared", sets=small, fidelity=rung)
        assert result.outcome == "aborted"
        assert "pool" in result.detail
    dead = run(trace, "wmpi", "distributed", sets=["wmpi.loss=1"], fidelity="curve")
    assert dead.outcome == run(trace, "wmpi", "distributed", sets=["wmpi.loss=1"]).outcome


def test_wrong_rungs_are_refused() -> None:
    with refused(UsageError, "unknown-name"):
        run(job("", ""), fidelity="curves")


def test_mixed_placements_have_a_curve_for_every_pair_kind() -> None:
    """Two ranks on the server, one on the workstation. Opening connections, which a curve counts by pairs of ranks, is drowned."""
    ring = ["send {b} 0 5000 6; recv {a} 0 5000 6; " * 40, *["recv {a} 0 5000 6; send {b} 0 5000 6; " * 40] * 2]
    trace = job(*(line.format(a=(me - 1) % 3, b=(me + 1) % 3) for me, line in enumerate(ring)))
    mechanism, curve = (completed(trace, "wmpi", [0, 0, 1], platform="nt-pair", fidelity=f) for f in ("mechanism", "curve"))
    assert curve.time_s == pytest.approx(mechanism.time_s, rel=0.1)


# -- LogGP -------------------------------------------------------------------------------------------------------------------

whole = st.integers(1, 10**9)


@given(L=whole, o=whole, per_byte=st.integers(1, 10**5), g=whole, asks=st.sampled_from([float("inf"), 8192.0]))
@settings(max_examples=60, deadline=None)
def test_loggp_finds_the_parameters_of_a_loggp_curve(L: int, o: int, per_byte: int, g: int, asks: float) -> None:
    g = min(g, L + 2 * o)
    points = [SamplePoint(s, o, L + s * per_byte, o, g + s * per_byte, g + s * per_byte, 0) for s in (0, *(1 << k for k in range(23)))]
    for part in fidelity.fit(points, asks):
        assert part.o == pytest.approx(o * 1e-12, rel=1e-6)
        assert pytest.approx(per_byte * 1e-12, rel=1e-4) == part.G
        assert part.L + 2 * part.o == pytest.approx((L + 2 * o) * 1e-12, rel=1e-3)
        assert part.g == pytest.approx(g * 1e-12, rel=1e-3, abs=1e-4 * per_byte * asks * 1e-12 if part.low else 1e-15)


@given(times=st.lists(st.integers(1, 10**12), min_size=2, max_size=24))
@settings(max_examples=60, deadline=None)
def test_loggp_of_any_curve_is_physical(times: list[int]) -> None:
    points = [
        SamplePoint(s, t // 4, t - t // 4 - t // 8, t // 8, t // 2, t // 3, t // 4)
        for s, t in zip((0, *(1 << k for k in range(23))), times, strict=False)
    ]
    for part in fidelity.fit(points):
        assert min(part.L, part.o, part.g, part.G) >= 0
        assert part.g <= part.L + 2 * part.o + 1e-15
    lines = fidelity._lines(points, 64)
    assert all(a.size < b.size for a, b in pairwise(lines))
    assert all(min(fidelity._numbers(p)) >= 0 for p in lines)


def loggp(model: str, mode: str) -> list[fidelity.LogGP]:
    return samples.Samples(simulate.run).loggp(Resolved.of(Question(model, "nt-pair", pingpong(), mode)))


def test_loggp_has_parameters_of_its_own_where_the_protocol_asks_first() -> None:
    below, above = loggp("wmpi", "shared")
    assert below.high == above.low == 256 * KIB + 1
    assert above.L + 2 * above.o > 10 * (below.L + 2 * below.o)  # the burnt quantum
    assert len(loggp("hpvm", "distributed")) == 1


# -- the store, the command line, the spread ---------------------------------------------------------------------------------


def test_samples_and_runs_of_every_rung_are_kept(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(store_path)
    monkeypatch.setattr(samples, "_KNOWN", {})
    question = Question("hpvm", "nt-pair", pingpong([0, KIB], 2), "shared")
    first = spread(store, question)
    assert [r["kind"] for r in store.runs()].count("sample") == 1
    assert {r["fidelity"] for r in store.runs(kind="pingpong")} == set(fidelity.RUNGS)
    count = len(store.runs())
    assert spread(store, question) == first
    assert len(store.runs()) == count
    # A sample is taken from the store: nothing is simulated for it in a process that does not know it.
    monkeypatch.setattr(samples, "_KNOWN", {})
    monkeypatch.setattr(sampling, "measure", lambda *a, **k: pytest.fail("sampled again"))
    answer(store, Question("hpvm", "nt-pair", pingpong([4 * KIB], reps=2), "shared", fidelity="loggp"))
    for row in first:
        times = [row[f"{rung}_us"] for rung in fidelity.RUNGS]
        assert row["spread"] == max(times) / min(times) >= 1


def test_the_command_shows_the_rungs(retrompi: Callable[..., Any], store_path: Path) -> None:
    told = retrompi("fidelity", "wmpi", "--mode", "shared", "--sizes", "0,1KiB", "--reps", "3", "--store", str(store_path), "--json")
    assert told.code == 0
    table = json.loads(told.out)
    assert [r["size_B"] for r in table] == [0, 1024]
    assert {w["code"] for r in table for w in r["warnings"]} == {"not-sampled"}  # the pool is too small for a stream
    assert all(len(r["run_ids"]) == 3 and r["spread"] >= 1 for r in table)
    assert "LogGP" in retrompi("fidelity", "wmpi", "--mode", "shared", "--sizes", "0", "--reps", "3", "--store", str(store_path)).out


def test_outside_the_calibrated_range_one_line_says_so(retrompi: Callable[..., Any], store_path: Path) -> None:
    common = ("--mode", "shared", "--reps", "1", "--store", str(store_path), "--json")
    inside = retrompi("pingpong", "--model", "wmpi", "--sizes", "1KiB", *common)
    assert (inside.code, inside.err) == (0, "")
    assert json.loads(inside.out)[0]["warnings"] == []
    beyond = retrompi("pingpong", "--model", "wmpi", "--platform", "nt-cluster", "--sizes", "8MiB", "--set", "wmpi.library=60us", *common)
    assert beyond.code == 0
    assert beyond.err == ""  # a mark in the title line: an extrapolation that nearly every question needs
    warnings = json.loads(beyond.out)[0]["warnings"]
    assert [(w["code"], w["text"].split()[0], w["minor"]) for w in warnings] == [
        ("outside-calibration", what, True) for what in ("platform", "messages", "wmpi.library")]
    text = retrompi("pingpong", "--model", "wmpi", "--platform", "nt-cluster", "--sizes", "8MiB", *common[:-1]).out
    assert "[outside calibration: platform nt-cluster, messages of 8 MiB]" in " ".join(text.split())
    far = retrompi("pingpong", "--model", "wmpi", "--sizes", "64MiB", *common)
    assert far.err.startswith("caution: far outside the calibrated range of wmpi: messages of 64 MiB (calibrated for 0 B to 4 MiB)")
    assert "warnings" not in retrompi("pingpong", "--model", "wmpi", "--sizes", "1KiB", *common[:-1], "--csv").out


def test_every_model_states_the_range_it_is_calibrated_in() -> None:
    # What nothing published stands behind has nothing fitted either, and says so.
    for name, cls in registry.models().items():
        if cls.calibrated is None:
            assert not any(p.fitted for p in cls.params().values())
            assert outside(name, "nt-pair") == ["the model states no calibrated range"]
    for name in BASES:
        known = _range(name)
        for platform in known.platforms:
            assert registry.platform(platform).hosts
            assert outside(name, platform, sizes=[int(s) for s in known.bytes], ranks=known.ranks[0]) == []
    assert outside("wmpi", "nt-pair", ranks=3) == ["3 ranks (calibrated for 2)"]
    assert outside("hpvm", "nt-pair", sets=["platform.host.nic_rate=3 MB/s"])[0].endswith("(a what-if)")
    assert outside("hpvm", "nt-pair", sets=["platform.host.cores=2"]) == []
    with pytest.raises(ValueError, match="source"):
        Range(("0 B", "1 B"), (1, 2), ("nt-pair",), "somewhere")
    assert _range("wmpi").bytes[1] < NO_LIMIT


def test_scenarios_and_their_hash_know_the_rung(tmp_path: Path) -> None:
    text = (catalogue.scenario("bf-wmpi-shared").path or tmp_path).read_text()
    for rung in fidelity.RUNGS:
        file = tmp_path / f"{rung}.toml"
        file.write_text(text.replace('mode = "shared"', f'mode = "shared"\nfidelity = "{rung}"'))
        assert catalogue.scenario(str(file)).setting("fidelity") == rung
    assert len({catalogue.scenario(str(tmp_path / f"{rung}.toml")).hash for rung in fidelity.RUNGS}) == 3
