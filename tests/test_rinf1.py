"""The Rinf1 loops: instructions, caches, the clock, the fit that sees no held-out row, and the road through the engine."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import pytest
from cases import for_each
from conftest import reference_ids
from hypothesis import given, settings
from hypothesis import strategies as st
from paper_code import experiment
from refusals import agrees, refused

from retrompi._engine import Trace
from retrompi.base.errors import UsageError
from retrompi.papers.statements import claims
from retrompi.sim import loop_rates, simulate
from retrompi.spec import registry
from retrompi.spec.machine import kernels
from retrompi.spec.question import Question, Replay
from retrompi.traces import generate

rinf1 = experiment("baker-fox", "_rinf1")
HOSTS = ("server", "workstation")
LOOPS = sorted(kernels.loops())


def machine(host: str = "server") -> kernels.KernelMachine:
    return kernels.machine(registry.platform("nt-pair"), host)


def trace(*lines: str) -> Trace:
    text = "\n".join(["0 init", *lines, "0 finalize", ""])
    return Trace.parse([(text.encode(), "kernels.txt", 0)])


# --- the loops as data ---------------------------------------------------------------------------------------------------------


def test_every_row_of_the_table_has_its_loop_and_every_number_a_source() -> None:
    assert [k.claim for k in kernels.loops().values()] == [f"BF-R-{i:02d}" for i in range(1, 18)]
    known = reference_ids()
    for host in HOSTS:
        for q in kernels.quantities(registry.platform("nt-pair"), host).values():
            kind, _, what = q.source.partition(":")
            assert kind != "doc" or what in known
            assert kind != "fit" or (q.low is not None and q.high is not None)
    assert all(q.source.startswith(("paper:", "assumed:")) for q in kernels.benchmark_rules().values())


@for_each("key", LOOPS)
def test_what_a_loop_executes_touches_what_it_walks(key: str) -> None:
    one = kernels.loop(key)
    used = {w for text in one.code for w in text.replace("=", " ").split()}
    for s in one.streams:
        assert s.array in used, f"{key} walks {s.array} but does not use it"
    stored = [s.array for s in one.streams if s.use in ("write", "update")]
    assert stored == [text.split()[1] for text in one.code if text.startswith("st ")]


def test_the_instructions_of_a_turn() -> None:
    """By hand, for a machine that starts one instruction after the other: ld 0, mul 1, st at 5 for two cycles, three for the turn."""
    assert kernels.turn_cycles(kernels.loop("dyads")) == 10
    assert kernels.turn_cycles(kernels.loop("triads")) == 13
    assert kernels.turn_cycles(kernels.loop("inner-product")) == 8  # the addition's latency hides behind the turn


# --- cost ----------------------------------------------------------------------------------------------------------------------


@for_each("host", HOSTS)
@for_each("key", LOOPS)
def test_no_rate_exceeds_rinf(key: str, host: str) -> None:
    one, m = kernels.loop(key), machine(host)
    rinf, half = kernels.in_cache(one, m)
    for n in kernels.lengths(one):
        assert kernels.rate(one, n, m) <= rinf * (1 + 1e-12)
    if one.shape == "vector":
        n = 2  # the two lines of a cache set: everything stays
        assert kernels.rate(one, n, m) == pytest.approx(rinf * n / (n + half), rel=0.08)


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 90), host=st.sampled_from(HOSTS))
def test_a_larger_stride_is_never_faster(n: int, host: str) -> None:
    m = machine(host)
    took = [kernels.seconds(kernels.loop(k), n, m) for k in ("dyads", "dyads-8", "dyads-128", "dyads-1024")]
    assert all(b >= a * (1 - 1e-9) for a, b in pairwise(took))


@settings(max_examples=60, deadline=None)
@given(key=st.sampled_from(LOOPS), n=st.integers(1, 200), factor=st.floats(1.0, 3.0))
def test_dearer_memory_slower_clocks_and_smaller_caches_never_help(key: str, n: int, factor: float) -> None:
    one, m = kernels.loop(key), machine()
    base = kernels.seconds(one, n, m)
    for worse in (replace(m, copy_mem=m.copy_mem / factor), replace(m, read_mem=m.read_mem / factor, copy_mem=m.copy_mem / factor),
                  replace(m, clock=m.clock / factor), replace(m, startup=m.startup * factor),
                  replace(m, l2=m.l2 / 2), replace(m, l1=m.l1 / 2)):
        assert kernels.seconds(one, n, worse) >= base * (1 - 1e-9)


@settings(max_examples=40, deadline=None)
@given(key=st.sampled_from(LOOPS), n=st.integers(1, 100_000))
def test_costs_are_positive_and_finite_and_grow_with_the_length(key: str, n: int) -> None:
    one, m = kernels.loop(key), machine()
    n = min(n, max(kernels.lengths(one)))
    took = kernels.seconds(one, n, m)
    assert math.isfinite(took)
    assert kernels.seconds(one, n + 1, m) > took > 0


def test_working_sets() -> None:
    """Contiguous vectors in the first cache cost their instructions alone; beyond the second they cost every line."""
    one, m = kernels.loop("dyads"), machine()
    inside = kernels.turn_cycles(one) * m.cycle_scale / m.clock
    assert kernels.cost(one, 100, m) == pytest.approx(inside)
    second = kernels.cost(one, 2000, m)
    lines = 3 / 4 * m.l2_cycles / m.clock
    assert inside < second <= inside + lines * 1.3
    beyond = kernels.cost(one, 100_000, m)
    memory = (2 * m.line_read + m.line_write) / 4
    assert beyond == pytest.approx(inside + memory, rel=0.02)
    # Every eighth element has a line of its own: four times the lines.
    assert kernels.cost(kernels.loop("dyads-8"), 12_500, m) == pytest.approx(inside + 4 * memory, rel=0.08)


def test_page_sized_strides_conflict_and_miss_translations() -> None:
    m = machine()
    few, many = (kernels.cost(kernels.loop("dyads-1024"), n, m) for n in (2, 10))
    assert many > few + 2 * m.l2_cycles / m.clock  # ten lines on the two ways of one set
    roomy = replace(m, tlb=1024)
    assert kernels.cost(kernels.loop("dyads-1024"), 97, m) > kernels.cost(kernels.loop("dyads-1024"), 97, roomy)


def test_a_random_vector_that_fits_stays_though_a_long_one_streams_by() -> None:
    """The mesh of the charge assignment lies in the second cache; the index vector that streams through it takes little of it."""
    one, m = kernels.loop("charge"), machine()
    _, read, _ = kernels._traffic(one, 100_000, m)
    index_lines = 4 / 32
    assert read == pytest.approx(index_lines, abs=0.1)


def test_lengths_and_repetitions() -> None:
    for one in kernels.loops().values():
        ns = kernels.lengths(one)
        assert ns[0] == 1
        assert ns == sorted(set(ns))
        assert max(ns) * max(s.stride for s in one.streams) <= 100_000
        for n in ns:
            assert kernels.repetitions(one, n) >= 1
    assert kernels.repetitions(kernels.loop("dyads"), 1000) == 1000


# --- the clock -------------------------------------------------------------------------------------------------------------------


def test_the_published_rates_are_whole_ticks_of_a_million_elements() -> None:
    """The inference behind the clock, from rows that a fit may see: BF-R-01 and BF-R-03, maxima of both and minima of the Workstation."""
    tick = registry.platform("nt-pair").hosts[0].tick
    for stem, operations in (("BF-R-01", 1), ("BF-R-03", 2)):
        for letter, ends in (("S", ("high",)), ("W", ("low", "high"))):
            row = claims.find(f"{stem}{letter}")
            assert row.use == "calibrate"
            for end in ends:
                rate = getattr(row, end) * 1e6
                ticks = operations * kernels._rule("iterations") / rate / tick
                # The rate is printed with three decimals: that is how far a whole number of ticks may be off.
                assert abs(ticks - round(ticks)) < ticks * 0.0006e6 / rate + 1e-3


def test_readings_are_whole_ticks_and_within_one_of_the_truth() -> None:
    made = generate.rinf1("dyads,triads")
    result = simulate.run(Question("wmpi", "nt-pair", Replay(made), [0]))
    m = machine()
    rows = loop_rates.readings(result, m.tick)
    assert {r["kernel"] for r in rows} == {"dyads", "triads"}
    for r in rows:
        ticks = r["clock_s"] / m.tick
        assert ticks == pytest.approx(round(ticks))
        assert abs(r["clock_s"] - r["seconds"]) <= m.tick * (1 + 1e-9)
        assert r["seconds"] == pytest.approx(r["repetitions"] * kernels.seconds(kernels.loop(r["kernel"]), r["n"], m), rel=1e-9)


def test_a_table_is_extremes_and_its_total_their_mean() -> None:
    rows = [{"kernel": k, "n": n, "seen": v} for k, n, v in (("dyads", 1, 2.0), ("dyads", 5, 6.0), ("daxpy", 1, 4.0))]
    table = loop_rates.table(rows)
    assert [(t["min"], t["at_min"], t["max"], t["at_max"]) for t in table] == [(2.0, 1, 6.0, 5), (4.0, 1, 4.0, 1)]
    facts = rinf1.facts({"a": table, "b": [{**t, "min": t["min"] / 2, "max": t["max"] / 2} for t in table]})
    assert facts["a"]["total"] == {"min": fmean([2.0, 4.0]), "max": fmean([6.0, 4.0])}
    assert facts["ratio"] == {"min": 2.0, "max": 2.0}
    assert facts["peak"] == {"min": 2.5, "max": 5.0}


# --- the fit ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", HOSTS)
def test_the_fit_sees_the_calibrate_rows_only(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    letter = "S" if host == "server" else "W"
    seen = {c.id for c, _ in rinf1._visible(registry.platform("nt-pair"), host)}
    assert seen == {f"BF-R-{i}{letter}" for i in ("01", "03", "18")}
    monkeypatch.setattr(rinf1, "STARTS", 2)
    first = rinf1.fit("nt-pair", host)
    # Another world in which every held-out number is different: the fit does not notice.
    shipped = claims.load()
    changed = [replace(c, low=c.low and c.low * 7, high=c.high and c.high * 7) if c.held_out else c for c in shipped]
    monkeypatch.setattr(claims, "load", lambda path=None: changed)
    again = rinf1.fit("nt-pair", host)
    assert again.values == first.values
    assert again.residuals == first.residuals


@pytest.mark.parametrize("host", HOSTS)
def test_the_fit_in_force_is_what_the_command_gives(host: str) -> None:
    room = registry.platform("nt-pair")
    found = rinf1.fit("nt-pair", host)
    kept = rinf1.free_values(room, host)
    for key, value in rinf1.found_values(found, room).items():
        assert kept[key].value == pytest.approx(value, rel=1e-3)
    assert all(abs(r["residual"]) <= 1 for r in found.residuals)


# --- through the engine ------------------------------------------------------------------------------------------------------------


def test_a_kernel_costs_what_its_host_makes_it_cost() -> None:
    line = trace("# mark a", "0 kernel daxpy 1000 50", "# mark b", "0 kernel daxpy 1000", "# mark c")
    for i, host in enumerate(HOSTS):
        got = simulate.run(Question("wmpi", "nt-pair", Replay(line), [i]))
        a, b, c = (m["time_s"] for m in got.marks)
        once = kernels.seconds(kernels.loop("daxpy"), 1000, machine(host))
        assert b - a == pytest.approx(50 * once, rel=1e-9)
        assert c - b == pytest.approx(once, rel=1e-9)
        assert got.per_rank[0]["compute_s"] == pytest.approx(51 * once, rel=1e-9)


def test_overrides_reach_the_loops() -> None:
    line = trace("0 kernel dyads 100 1000")
    slow, fast = (
        simulate.run(Question("wmpi", "nt-pair", Replay(line), [0], [f"platform.host.clock={c}"])).per_rank[0]["compute_s"]
        for c in ("150 MHz", "300 MHz")
    )
    assert slow == pytest.approx(2 * fast, rel=1e-6)


def test_the_cluster_has_the_servers_loops() -> None:
    n4 = kernels.machine(registry.platform("nt-cluster"), "n4")
    assert n4.line_read == machine().line_read
    assert n4.clock == machine().clock


def test_kernel_lines_are_read_written_and_told_apart() -> None:
    one = trace("0 kernel daxpy 1e3 7", "0 kernel triads 5")
    assert one.kernels() == [("daxpy", 1000, "kernels.txt", 2), ("triads", 5, "kernels.txt", 3)]
    assert "0 kernel daxpy 1000 7\n0 kernel triads 5 1\n" in one.to_ti(0)
    again = Trace.parse([(one.to_ti(0).encode(), "again.txt", 0)])
    assert again == one
    assert Trace.load(one.dump()) == one
    assert trace("0 kernel dyads 1000 7", "0 kernel triads 5") != one
    assert one.sha256 == again.sha256


@for_each(
    "line, message",
    [
        ("0 kernel daxpy", "needs at least 2 arguments"),
        ("0 kernel daxpy 0", "a vector length is at least 1"),
        ("0 kernel daxpy -3", "is negative"),
        ("0 kernel daxpy 10 x", "'x' is not a number"),
        ("0 kernal daxpy 10", "did you mean 'kernel'"),
    ],
)
def test_wrong_kernel_lines_are_told_by_line(line: str, message: str) -> None:
    with pytest.raises(Exception, match=message) as caught:
        trace(line)
    agrees(caught.value, "bad-trace | kernels.txt:2")


def test_an_unknown_kernel_is_told_by_line() -> None:
    with refused(UsageError, "unknown-kernel | kernels.txt:2 | 'daxpi'"):
        simulate.run(Question("wmpi", "nt-pair", Replay(trace("0 kernel daxpi 10")), [0]))


def test_compute_amounts_scaled_by_a_loop() -> None:
    room = registry.platform("nt-pair")
    sets = kernels.compute_sets(room, "daxpy:100000")
    assert set(sets) == {"platform.server.flops", "platform.workstation.flops"}
    flops = 1e6
    got = simulate.run(Question("wmpi", "nt-pair", Replay(trace(f"0 compute {flops}")), [0], sets))
    assert got.per_rank[0]["compute_s"] == pytest.approx(flops / kernels.rate(kernels.loop("daxpy"), 100_000, machine()), rel=1e-6)
    with refused(UsageError, "bad-syntax | KERNEL | LENGTH"):
        kernels.compute_sets(room, "daxpy:none")
    with refused(UsageError, "unknown-kernel"):
        kernels.compute_sets(room, "daxpi")


# --- command and scenario ------------------------------------------------------------------------------------------------------------


def test_the_command(retrompi, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    told = retrompi("paper", "rinf1", "--kernels", "dyads,daxpy", "--platform-host", "server", "--json")
    rows = json.loads(told.out)
    assert [r["kernel"] for r in rows] == ["dyads", "daxpy", "total"]
    assert rows[0]["claim"] == "BF-R-01S"
    assert rows[0]["published_max"] == claims.find("BF-R-01S").high * 1e6
    assert rows[2]["max"] == pytest.approx((rows[0]["max"] + rows[1]["max"]) / 2)
    table = retrompi("paper", "rinf1", "--kernels", "dyads", "--platform-host", "workstation").out
    assert "Contiguous dyads" in table
    assert "A(I)=B(I)*C(I)" in table
    wrong = retrompi("paper", "rinf1", "--kernels", "dyad")
    assert wrong.code == 2
    agrees(wrong, "unknown-kernel")


def test_a_scenario_may_scale_its_compute(retrompi, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "work.txt").write_text("0 init\n0 compute 1e6\n0 finalize\n", encoding="utf-8")
    text = """name = "mine"
title = "t"
summary = "s"
reproduces = "what-if: mine"
model = "wmpi"
platform = "nt-pair"
mode = "server"
COMPUTE
[trace]
file = "work.txt"
"""
    took = []
    for compute in ("", 'compute_kernel = "dyads:100000"'):
        (tmp_path / "mine.toml").write_text(text.replace("COMPUTE", compute), encoding="utf-8")
        told = retrompi("scenarios", "run", str(tmp_path / "mine.toml"), "--json")
        assert told.code == 0, told.err
        took.append(json.loads(told.out)[0]["compute_s"])
    replayed = retrompi("replay", str(tmp_path / "work.txt"), "--model", "wmpi", "--mode", "server",
                        "--compute-kernel", "dyads:100000", "--json")
    assert json.loads(replayed.out)["per_rank"][0]["compute_s"] == took[1]
    flops = registry.platform("nt-pair").hosts[0].flops
    assert took == pytest.approx([1e6 / flops, 1e6 / kernels.rate(kernels.loop("dyads"), 100_000, machine())], rel=1e-6)
