"""Kernels stated by operations and bytes: their table, the roofline of a host, replays of traces that name them, and what was judged."""

from __future__ import annotations

import csv
import math
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cases import for_each
from conftest import Outcome
from refusals import refused

from retrompi import traces
from retrompi.base.errors import UsageError
from retrompi.base.paths import reference_dir
from retrompi.papers.fit import kernel_rates
from retrompi.sim import simulate
from retrompi.sim.computation import scale_of
from retrompi.sim.resolved import Resolved
from retrompi.spec import registry
from retrompi.spec.host import Host
from retrompi.spec.machine import kernels, roofline
from retrompi.spec.question import Question, Replay
from retrompi.studies.draws.uncertainty import COMPUTATION_SCALE

PARAMETERS = {"mdot": "vectors=3", "maxpy": "vectors=9", "spmv": "nz=7", "sptrsv": "nz=7,block=2", "gemm": "n=8,k=60", "gemv": "n=60",
              "ger": "n=4", "trsm": "order=32", "work": "operations=3,read=8,written=4"}


def named(kind: str) -> str:
    return f"{kind}:{PARAMETERS[kind]}" if kind in PARAMETERS else kind


def plain() -> Host:
    """One operation, one load and one store of 8 B a nanosecond in cache; memory is read at 1 GB/s and copied at 500 MB/s."""
    host = registry.platform("nt-pair").host("server")
    rates = {"copy_l1": 8e9, "copy_l2": 4e9, "read_mem": 1e9, "copy_mem": 0.5e9, "gemm_rate": 0}
    return replace(host, clock=1e9, flops_per_cycle=1, l1=2**14, l2=2**14, **rates)


def replayed(*lines: str, **sets: str) -> float:
    """Simulated seconds of one rank on nt-pair's server."""
    trace = traces.parse(["0 init\n" + "".join(f"0 kernel {line}\n" for line in lines) + "0 finalize\n"])
    overrides = {f"platform.host.{key}": value for key, value in sets.items()}
    return simulate.run(Question("wmpi", "nt-pair", Replay(trace), "shared", overrides)).time_s


def test_names_mean_one_thing() -> None:
    assert not kernels.loops().keys() & roofline.KINDS.keys()


@for_each("text, n, seconds, limit", [
    ("axpy", 1000, 2000e-9, "arithmetic"),  # two operations an element; its 24 B take 1.5 ns
    ("dot", 10_000, 160_000e-9, "memory"),  # 16 B an element read at 1 B/ns
    ("copy", 10_000, 160_000e-9, "memory"),  # as the host copies: 8 B at 0.5 B/ns
    ("set", 10_000, 80_000e-9, "memory"),
    ("gemm:n=10,k=10", 10, 2000e-9, "arithmetic"),
    ("spmv:nz=5", 10_000, 10_000 * (5 * 12 + 8 + 8) * 1e-9, "memory"),
])
def test_a_pass_takes_what_its_slowest_part_takes(text: str, n: int, seconds: float, limit: str) -> None:
    terms = roofline.terms(roofline.kernel(text), n, plain())
    assert max(terms.values()) == pytest.approx(seconds)
    assert max(terms, key=terms.__getitem__) == limit


@for_each("kind", sorted(roofline.KINDS))
def test_more_is_never_faster_and_a_better_host_never_slower(kind: str) -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    one, host = roofline.kernel(named(kind)), plain()
    for _ in range(30):
        n = rng.randint(1, 10**6)
        took = roofline.seconds(one, n, host)
        assert 0 < took <= roofline.seconds(one, n + 1, host) * (1 + 1e-12), (seed, n)
        # The memory's two rates change together: at the same rate of copies, reading faster means writing slower.
        keys = rng.choice([["clock"], ["copy_l1"], ["copy_l2"], ["read_mem", "copy_mem"], ["l1"], ["l2"]])
        better = replace(host, **{key: getattr(host, key) * factor for factor in [rng.uniform(1, 4)] for key in keys})
        assert roofline.seconds(one, n, better) <= took * (1 + 1e-9), (seed, n, keys)


@for_each("kind", sorted(roofline.KINDS))
def test_data_that_others_pushed_out_are_fetched_again(kind: str) -> None:
    text = named(kind)
    away = roofline.kernel(f"{text}{',' if ':' in text else ':'}over=1e9")
    assert roofline.terms(roofline.kernel(text), 10, plain())["memory"] == 0 < roofline.terms(away, 10, plain())["memory"]


def test_a_published_rate_of_the_matrix_product_replaces_processor_and_first_level_for_what_is_blocked() -> None:
    known = replace(plain(), gemm_rate=0.5e9)
    for text, factor in (("gemm:n=10,k=10", 2.0), ("axpy", 1.0)):
        one = roofline.kernel(text)
        assert roofline.seconds(one, 10, known) == pytest.approx(factor * roofline.seconds(one, 10, plain()))


def test_without_operations_a_cycle_the_ceiling_is_the_rate_of_the_host() -> None:
    assert roofline.peak(replace(plain(), flops_per_cycle=0, flops=7e6)) == 7e6
    assert roofline.peak(plain()) == 1e9


@for_each("text, code", [
    ("spvm:nz=5", "unknown-kernel"), ("spmv", "missing-key"), ("spmv:nz=-1", "out-of-range"), ("spmv:nz=5,nz=6", "bad-syntax"),
    ("gemm:n=8,k=60,q=1", "unknown-key"), ("gemm:n", "bad-syntax"), ("gemv:n=x", "bad-value"), ("work", "out-of-range"),
    ("axpy:over=nan", "out-of-range"), ("copy:over=1e99", "out-of-range"),
])
def test_a_kernel_that_is_not_one_is_refused_with_its_line(text: str, code: str) -> None:
    with refused(UsageError, f"{code} | rank-0.txt:2"):
        replayed(f"{text} 100")


def test_a_replay_computes_its_kernels_where_they_run() -> None:
    host = registry.platform("nt-pair").host("server")
    one = 3 * roofline.seconds(roofline.kernel("spmv:nz=5"), 10_000, host)
    assert replayed("spmv:nz=5 10000 3") - replayed("spmv:nz=5 1") == pytest.approx(one, rel=1e-3)


def test_overriding_clock_or_memory_moves_computation() -> None:
    in_cache, beyond = "gemm:n=20,k=20 20 1000", "axpy 1000000"
    assert replayed(in_cache, clock="x2", copy_l1="x2") == pytest.approx(replayed(in_cache) / 2, rel=0.01)
    assert replayed(beyond, clock="x2") == pytest.approx(replayed(beyond), rel=0.01)
    assert replayed(beyond, copy_mem="x2", read_mem="x2") == pytest.approx(replayed(beyond) / 2, rel=0.01)


def test_values_that_only_other_kernels_use_are_refused() -> None:
    with refused(UsageError, "idle-override | platform.host.gemm_rate"):
        replayed("daxpy 100", gemm_rate="1 Mflop/s")
    with refused(UsageError, "idle-override | platform.host.tcp_byte"):
        replayed("axpy 100", tcp_byte="1 ns/B")


@for_each("line, told", [
    ("kernel axpy 100", "kernels (axpy) take what caches and memory of server allow"),
    ("compute 1e6", "the trace names no kernels"),
])
def test_a_replay_says_what_it_took_computation_for(line: str, told: str) -> None:
    trace = traces.parse([f"0 init\n0 {line}\n0 finalize\n"])
    scale = scale_of(Resolved.of(Question("wmpi", "nt-pair", Replay(trace), "shared")))
    assert scale is not None
    assert told in scale.line


def test_the_judged_rows_are_those_of_the_data_and_the_page_has_their_totals() -> None:
    found = kernel_rates.judge_kernels()
    with (reference_dir() / "kernels.csv").open(newline="") as file:
        given = {row["id"] for row in csv.DictReader(file)}
    assert given == {r.id for r in found if r.of.startswith("PETSc")}
    page = (Path(__file__).parents[1] / "docs/computation.md").read_text()
    for (of, host), (good, all_) in kernel_rates.totals(found).items():
        assert re.search(rf"\| {re.escape(of)} \| {host} \| {good} of {all_} \|", page), (of, host, good, all_)
    sparse = [r for r in found if r.kernel.startswith("spmv") and r.agrees]
    assert {r.host for r in sparse} == {"ibm-sp1", "ibm-sp2-wide", "sgi-ip22", "sgi-ip21", "nt4-p54-166", "nt4-p6-200"}


def test_what_the_rule_misses_is_the_discrepancy_of_draws() -> None:
    assert kernel_rates.spread(kernel_rates.judge_kernels()) == pytest.approx(COMPUTATION_SCALE, abs=0.005)
    row = kernel_rates.judge_kernels()[0]
    twice = [replace(row, host=host, computed=row.seconds * factor) for host, factor in (("a", 2), ("b", 0.5), ("c", 8)) for _ in range(3)]
    assert kernel_rates.spread([*twice, replace(row, host="d", computed=1e9)]) == pytest.approx(math.log(2))  # a single row says nothing


def test_the_command_shows_kernels_and_judges(retrompi: Callable[..., Outcome]) -> None:
    shown = retrompi("platforms", "kernels", "nt-pair", "--kernel", "spmv:nz=5", "--lengths", "100,1e6", "--csv")
    assert shown.code == 0
    assert len(shown.out.splitlines()) == 1 + 2 * 2
    judged = retrompi("platforms", "kernels", "--judge", "--json")
    assert judged.code == 1
    assert '"agrees": true' in judged.out
    for wrong in (["--lengths", "0"], ["--kernel", "nothing"], ["--judge"]):
        assert retrompi("platforms", "kernels", "nt-pair", *wrong).code == 2
