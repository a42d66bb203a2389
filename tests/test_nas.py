"""Sections, scaled computation, smoothing, and the NAS study's own figures."""

from __future__ import annotations

import csv
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asking import ask
from cases import for_each
from engine_runs import job
from hypothesis import given, settings
from hypothesis import strategies as st
from paper_code import experiment
from refusals import agrees, refused

from retrompi import traces
from retrompi.base import paths
from retrompi.base.errors import RetrompiError, UsageError
from retrompi.papers.statements import claims
from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.conditions.timed_section import Program
from retrompi.spec.question import Question, Replay
from retrompi.studies.define import catalogue
from retrompi.traces import TraceError, timed_section

nas = experiment("lefevre-westrelin", "_nas")
TRACES = paths.reference_dir() / "traces"
PLATFORM = "myrinet-piii"
INDEX = tomllib.loads((TRACES / "INDEX.toml").read_text())


def run(trace: Any, told: Program, **options: Any) -> simulate.Result:
    return ask("hpvm", "nt-pair", trace, [0] * trace.ranks, program=told, **options)


# --- sections


def test_a_section_is_the_time_between_two_lines_of_rank_0() -> None:
    trace = job("compute 1e6; send 1 0 0 6; compute 3e6; compute 2e6; send 1 0 0 6", "recv 0 0 0 6; recv 0 0 0 6")
    flops = registry.platform("nt-pair").hosts[0].flops
    two = ["platform.host.cores=2"]
    result = run(trace, Program("4-5"), sets=two)
    assert result.section is not None
    assert result.section["seconds"] == pytest.approx(5e6 / flops, rel=1e-2)
    assert result.section["end_s"] - result.section["begin_s"] == pytest.approx(result.section["seconds"])
    # What is timed does not change what happens.
    assert result.time_ps == run(trace, Program(), sets=two).time_ps


def test_a_section_may_be_named_by_marks() -> None:
    lines = "compute 1e6; # mark here; compute 3e6; # mark there; compute 2e6"
    by_marks, by_lines = run(job(lines), Program("here..there")), run(job(lines), Program("4-4"))
    assert by_marks.section is not None
    assert by_lines.section is not None
    assert by_marks.section["seconds"] == by_lines.section["seconds"] > 0


def test_a_section_that_is_not_reached_is_not_timed() -> None:
    result = run(job("compute 1; recv 1 0 0 6; compute 1", "compute 1"), Program("4-4"))
    assert (result.outcome, result.section) == ("deadlock", None)


@for_each("section", ["x", "5-", "..b", "9-3", "0-4", "no..mark"])
def test_a_wrong_section_says_so(section: str) -> None:
    with refused(RetrompiError, "no-section"):
        run(job("compute 1; barrier"), Program(section))


@pytest.mark.parametrize("told", [{"compute_s": 1.0}, {"compute_s": -1.0, "section": "1-2"}, {"memory_share": 2.0}])
def test_a_program_that_makes_no_sense_is_refused(told: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Program(**told)


# --- scaled computation


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 10**7), min_size=3, max_size=8), st.floats(0.01, 100))
def test_scaling_gives_the_section_the_computation_asked_for(amounts: list[int], seconds: float) -> None:
    """Two ranks with the same bursts between two barriers; what is outside is scaled by the same factor."""
    inside = "; ".join(f"compute {a}" for a in amounts)
    trace = job(*[f"compute 500; barrier; {inside}; barrier; compute 500"] * 2)
    flops = [2e6, 5e6]
    section = f"4-{3 + len(amounts)}"
    factor = timed_section.compute_scale(trace, section, seconds, flops)
    assert sum(factor * sum(amounts) / f for f in flops) == pytest.approx(seconds, rel=1e-9)


def test_other_ranks_part_lies_between_the_same_collectives() -> None:
    trace = job("barrier; compute 7; barrier; compute 1", "compute 100; barrier; compute 5; send 0 0 0 6; compute 6; barrier; compute 90")
    assert trace.section_compute(3, 3) == [7, 11]


def test_a_section_without_computation_cannot_be_scaled() -> None:
    with refused(TraceError, "no-section"):
        timed_section.compute_scale(job("barrier; compute 5"), "2-2", 1.0, [1e6])


def test_the_replay_computes_as_long_as_was_asked_for() -> None:
    trace = traces.read(TRACES / "npb3.3.1-is-A-4.tar.zst")
    section = INDEX["npb3.3.1-is-A-4"]["section"]
    long, short = (
        simulate.run(Question("mpibip", "myrinet-piii", Replay(trace, program=Program(section, seconds)))).section for seconds in (8.0, 4.0)
    )
    assert long is not None
    assert short is not None
    assert 0.9 < long["seconds"] - short["seconds"] < 1.3  # a quarter of four seconds, and some imbalance


@for_each("name", INDEX)
def test_shipped_traces_hold_the_computation_that_their_index_states(name: str) -> None:
    entry = INDEX[name]
    trace = traces.read(TRACES / f"{name}.tar.zst")
    first, last = (int(x) for x in entry["section"].split("-"))
    assert trace.ranks == entry["ranks"]
    assert not trace.unsupported()
    assert sum(trace.section_compute(first, last)) / 1e9 == pytest.approx(entry["captured_s"], rel=0.03)


# --- smoothing


def loop(bursts: list[int], calls: str = "barrier") -> str:
    return "; ".join(f"compute {b}; {calls}" for b in bursts)


def amounts(trace: Any, rank: int = 0) -> list[float]:
    return [row[-1] for row in trace.rank_actions(rank) if row[1] == "compute"]


def test_smoothing_gives_every_iteration_the_mean_of_its_place() -> None:
    bursts = [10, 30] * 50
    noisy = [b + (i * 7) % 5 for i, b in enumerate(bursts)]
    text = "; ".join(f"compute {b}; {'barrier' if i % 2 else 'send 0 0 0 6; recv 0 0 0 6'}" for i, b in enumerate(noisy))
    smooth = job(f"bcast 1 0 6; {text}; allreduce 8 0 6").smoothed()
    inner = amounts(smooth)[2:-1]
    assert len({round(a, 9) for a in inner}) == 2
    assert sum(amounts(smooth)) == pytest.approx(sum(noisy), rel=1e-9)


def test_smoothing_leaves_what_does_not_repeat() -> None:
    irregular = job("; ".join(f"compute {i}; bcast {i} 0 6" for i in range(1, 60)))
    assert irregular.smoothed() == irregular
    short = job(loop([1, 2, 3]))
    assert short.smoothed() == short


def test_smoothing_keeps_calls_lines_and_totals_of_a_real_trace() -> None:
    name = "npb3.3.1-lu-A-4"
    trace = traces.read(TRACES / f"{name}.tar.zst")
    smooth = trace.smoothed()
    assert smooth == trace.smoothed()
    first, last = (int(x) for x in INDEX[name]["section"].split("-"))
    assert smooth.section_compute(first, last) == pytest.approx(trace.section_compute(first, last), rel=1e-4)
    for rank in range(trace.ranks):
        before, after = ([r for r in t.rank_actions(rank) if r[1] != "compute"] for t in (trace, smooth))
        assert before == after
        assert len(set(amounts(smooth, rank))) < len(set(amounts(trace, rank))) / 10


# --- the study


def test_memory_shares_come_from_counts_and_times_a_fit_may_see(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = {(p, s): nas.memory_share(p, s, PLATFORM) for p in ("ISA", "ISB", "LUA", "LUB") for s in "LW"}
    assert all(0 < m < 1 for m in shares.values())
    # What a compiler makes of LU changes neither its words nor its operations.
    assert shares["LUA", "W"] == shares["LUA", "L"]
    held_out = [c for c in claims.by_paper(nas.PAPER) if c.use == "validate"]
    monkeypatch.setattr(nas, "by_paper", lambda paper: [c for c in claims.by_paper(paper) if c not in held_out])
    assert shares == {k: nas.memory_share(*k, PLATFORM) for k in shares}


def test_arithmetic_is_at_the_clock_of_the_host() -> None:
    """By hand: 119.3 Gflop (E-NPB-01) at 22.353 Mflop/s x 933 / 150."""
    assert nas.arithmetic_seconds("LUA", PLATFORM) == pytest.approx(119.3e9 / (22.353e6 * 933 / 150), rel=1e-3)
    assert nas.arithmetic_seconds("ISA", PLATFORM) is None


def test_a_share_is_one_of_the_computation_without_the_copies_of_the_library() -> None:
    """T(1) of IS holds an all-to-all with oneself, which the engine plays as copies and never stretches."""
    for (name, system), fit in nas.fits().items():
        if name.startswith("IS"):
            assert nas.memory_share(name, system, PLATFORM) == nas.memory_seconds(name, PLATFORM) / fit.compute_s
    assert nas.fits()["ISA", "L"].compute_s < 0.9 * nas.one_process_seconds("ISA", "L")


def test_lu_counts_scale_with_the_interior_points() -> None:
    assert nas.memory_seconds("LUB", PLATFORM) / nas.memory_seconds("LUA", PLATFORM) == pytest.approx((100 / 62) ** 3)


def test_the_fit_sees_times_on_one_and_four_processes_only() -> None:
    assert {c.processes for c in nas.published(fit=True)} == {1, 4}
    used = {i for entry in tomllib.loads(nas.FIT_FILE.read_text())["fit"].values() for i in entry["claims"]}
    assert all(claims.find(i).use == "calibrate" for i in used)


def test_every_published_time_has_a_trace_and_a_section() -> None:
    for at in nas.published():
        assert nas.section(at.trace)
        assert (TRACES / f"{at.trace}.tar.zst").is_file()
    with refused(UsageError, "unknown-trace"):
        nas.section("npb3.3.1-cg-A-4")


def test_the_solver_finds_the_time_and_stops_at_its_bound() -> None:
    x, off = nas._solve(lambda g: 3 + 2 * g * g, 1.0, 4.0, 11.0)
    assert x == pytest.approx(2, rel=0.02)
    assert abs(off) < 0.02
    x, off = nas._solve(lambda g: 50 + g, 1.0, 1.0, 11.0)
    assert x >= nas.LEAST
    assert off > 1


def test_the_summary_counts_held_out_times() -> None:
    rows = [{"use": "held out", "error": e} for e in (-0.3, 0.1, 0.2)] + [{"use": "fit", "error": 9.0}, {"use": "held out", "error": None}]
    assert nas.summary(rows) == {"cells": 3, "median": 0.2, "largest": 0.3}


def test_replay_reports_the_section(retrompi: Callable[..., Any], tmp_path: Path) -> None:
    trace = str(TRACES / "npb3.3.1-is-A-4.tar.zst")
    told = ("-m", "mpibip", "-p", "myrinet-piii", "--section", "11-72", "--compute", "8s", "--memory-share", "0.5")
    text = retrompi("replay", trace, *told)
    assert text.code == 0
    assert "section 11-72:" in text.out
    row = json.loads(retrompi("replay", trace, *told, "--json").out)["section"]
    assert 2 < row["seconds"] < 4
    assert row["seconds"] == pytest.approx(row["end_s"] - row["begin_s"])
    table = list(csv.DictReader(retrompi("replay", trace, *told, "--csv").out.splitlines()))
    assert {float(r["section_s"]) for r in table} == {row["seconds"]}
    assert "section_s" not in retrompi("replay", trace, *told[:4], "--csv").out
    wrong = retrompi("replay", trace, *told[:4], "--section", "nonsense")
    agrees(wrong, "no-section | 'nonsense'")


SCENARIOS = [n for n in catalogue.scenario_names() if n.startswith("lw-nas-")]


@for_each("name", SCENARIOS)
def test_scenarios_say_what_the_fit_and_the_counts_say(name: str) -> None:
    scenario = catalogue.scenario(name)
    benchmark, letter, processes = name.split("-")[2:5]
    system = "W" if scenario.model.endswith("windows") else "L"
    at = nas.Cell(f"{benchmark}{letter}".upper(), system, int(processes))
    assert scenario.trace is not None
    assert scenario.trace.name == f"{at.trace}.tar.zst"
    assert scenario.program.section == nas.section(at.trace)
    assert scenario.program.compute_s == pytest.approx(nas.fits()[at.program, system].of(at.processes), rel=1e-3)
    if not scenario.what_if:
        assert scenario.program.memory_share == pytest.approx(nas.memory_share(at.program, system, PLATFORM), abs=1e-3)
