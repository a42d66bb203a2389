"""What is in a trace, and what each runtime will do with it, before it is replayed."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cases import for_each
from conftest import Outcome
from engine_runs import job
from extended_traces import everything, random_trace
from hypothesis import given, settings
from hypothesis import strategies as st

from retrompi import traces
from retrompi.base.errors import InputError
from retrompi.sim import preflight, simulate
from retrompi.spec import registry
from retrompi.spec.question import Question, Replay
from retrompi.traces import generate

DATA = Path(__file__).parent / "data" / "traces"
Run = Callable[..., Outcome]
CG = DATA / "npb3.3.1-cg-A-4.tar.zst"


def test_traffic_counts_what_every_send_says() -> None:
    told = job("send 1 0 100 6; isend 2 0 0 6; waitall", "recv -555 0 100 6; Put 2 0 7 6", "recv 0 0 0 6; Get 0 0 9 6").traffic()
    assert told["pairs"] == [(0, 1, 1, 100), (0, 2, 2, 9), (1, 2, 1, 7)]
    assert told["sizes"] == [(0, 1), (8, 1), (16, 1), (128, 1)]
    assert (told["receives"], told["wildcards"]) == (2, 1)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 5), st.integers(0, 5000), st.integers(1, 4))
def test_the_matrix_adds_up_to_what_a_replay_sends(ranks: int, size: int, reps: int) -> None:
    trace = generate.ring(ranks, size, reps)
    told = preflight.summary(trace)
    result = simulate.run(Question("hpvm", "nt-cluster", Replay(trace), "shared"))
    assert sum(p[2] for p in told["pairs"]) == result.messages == told["messages"]
    assert sum(p[3] for p in told["pairs"]) == result.bytes


LINES = ["bcast 100 0 6", "reduce 100 0 0 6", "allreduce 100 0 6", "allgather 100 100 6 6", "alltoall 100 100 6 6"]


@for_each("line", LINES)
def test_the_messages_of_collectives_are_about_those_of_a_replay(line: str) -> None:
    trace = job(*[line] * 4)
    sent = simulate.run(Question("mpibip", "myrinet-piii", Replay(trace), "distributed")).messages
    assert sent / 2 <= preflight.messages(trace.info(), trace.communicators()) <= 2 * sent


def test_one_sided_calls_are_refused_by_line_where_a_runtime_has_none() -> None:
    trace = job("send 1 0 8 6; Put 1 0 8 6; Win_fence", "recv 0 0 8 6; Win_fence")
    refused = preflight.support(Question("wmpi", "nt-pair", Replay(trace)))
    assert (refused["support"], refused["lines"]) == ("refused", 1)
    assert refused["why"] == "rank-0.txt:3: Put: this runtime has no one-sided operations"
    assert preflight.support(Question("craympt:shmem", "cray-t3e", Replay(trace)))["support"] == "simulated"


def test_what_no_runtime_simulates_is_refused_and_what_is_ignored_is_approximated() -> None:
    for model in registry.models():
        assert preflight.support(Question(model, "nt-cluster", Replay(job("ibarrier", ""))))["support"] == "refused"
        told = preflight.support(Question(model, "nt-cluster", Replay(job("comm_split 0", ""))))
        assert told["support"] == "approximated"
        assert "rank-0.txt:2: comm_split" in told["why"]


def test_calls_of_mpi_3_are_approximated_on_older_runtimes() -> None:
    trace = job("barrier; ibarrier req=1; wait req=1", "barrier; ibarrier req=1; wait req=1")
    told = preflight.support(Question("wmpi", "nt-pair", Replay(trace)))
    assert (told["support"], told["lines"]) == ("approximated", 1)
    assert told["why"] == "rank-0.txt:3: ibarrier: a call of MPI-3, which this runtime is older than: made of what it has"


HOMES = [("wmpi", "nt-cluster"), ("craympt", "cray-t3e"), ("nemesis", "abe"), ("mpibip", "myrinet-piii")]


@pytest.mark.parametrize(("model", "platform"), HOMES)
def test_what_the_pre_flight_says_is_what_a_run_does(model: str, platform: str) -> None:
    levels = set()
    for seed in range(25):
        trace = traces.parse(random_trace(seed))
        told = preflight.support(Question(model, platform, Replay(trace)))
        levels.add(told["support"])
        if told["support"] == "refused":
            with pytest.raises(InputError) as caught:
                simulate.run(Question(model, platform, Replay(trace), "distributed"))
            assert told["why"] in str(caught.value)
            continue
        result = simulate.run(Question(model, platform, Replay(trace), "distributed"))
        assert result.outcome == "completed", (seed, result.detail, result.waits)
        assert result.messages == result.delivered
    assert levels - {"refused"}


def test_the_summary_of_everything_in_the_extension() -> None:
    trace = traces.parse(everything())
    told = preflight.summary(trace)
    assert (told["wildcards"], told["matched"], told["matched_share"]) == (16, 12, 0.75)  # recvInit is told by its starts
    assert (told["nonblocking_collectives"], told["one_sided"]) == (8, 12)
    by_id = {c["id"]: c for c in told["communicators"]}
    assert by_id[4]["calls"] == {"neighbor_allgather": 4, "neighbor_alltoall": 4, "neighbor_alltoallv": 4}
    assert by_id[4]["neighbours"] == 12  # two of the four directions end at the edge, for each of four ranks one
    assert by_id[3]["messages"] == 16
    assert sum(c["collectives"] for c in told["communicators"]) == told["collectives"]
    # Communicator 4 sends 3 x 12 messages in its three neighbourhood collectives, 5 sends 4 in each of two.
    assert preflight.messages({"ranks": 4, "sends": 0, "calls": {}}, [by_id[4], by_id[5]]) == 3 * 12 + 2 * 4
    first = trace.first_lines()
    assert first["comm_create_group"] == ("trace/rank-0.txt", 7)
    assert first["comm_split"] == ("trace/rank-0.txt", 2)


def test_the_command_tells_communicators(retrompi: Run, here: None) -> None:
    traces.write(traces.parse(everything()), Path("all"))
    shown = retrompi("trace", "info", "all")  # a name that is short wherever the tests run: lines are folded at 80 columns
    assert (shown.code, shown.err) == (0, "")
    matched = "16 of them from any source (100.0%), 75.0% of these with what they matched"
    for words in (matched, "8 of them non-blocking; 12 one-sided transfers", "intercomm_create", "2+2", "rank-0.txt:4"):
        assert words in shown.out, words
    told = json.loads(retrompi("trace", "info", "all", "--json").out)
    assert [c["kind"] for c in told["communicators"] if c["id"] in (4, 5, 10)] == ["cart", "graph", "inter"]
    refused = {m["model"]: m["why"] for m in told["models"] if m["support"] == "refused"}
    assert refused["wmpi"].endswith("rank-0.txt:34: win_create: this runtime has no one-sided operations")


def test_the_command(retrompi: Run) -> None:
    shown = retrompi("trace", "info", str(CG))
    assert (shown.code, shown.err) == (0, "")
    for words in ("4 ranks, 40330 actions", "6720 messages sent", "wmpi", "simulated"):
        assert words in shown.out
    told = json.loads(retrompi("trace", "info", str(CG), "--json", "-m", "hpvm", "--mode", "shared").out)
    assert told["sends"] == sum(s["messages"] for s in told["sizes"]) == sum(p["messages"] for p in told["pairs"])
    assert told["bytes_sent"] == sum(p["bytes"] for p in told["pairs"])
    assert told["models"] == [{"model": "hpvm", "support": "simulated", "lines": 0, "why": ""}]
    assert told["estimate"]["seconds"] > 0
    rows = list(csv.DictReader(io.StringIO(retrompi("trace", "info", str(CG), "--csv").out)))
    assert len(rows) == len(told["pairs"])


def test_wrong_arguments_are_one_line(retrompi: Run, tmp_path: Path) -> None:
    (tmp_path / "t").write_text("0 nosuch\n")
    for arguments, says in (
        ([str(tmp_path / "none")], "none"),
        ([str(tmp_path / "t")], "unknown action 'nosuch'"),
        ([str(CG), "-m", "wmpy"], "did you mean 'wmpi'?"),
        ([str(CG), "-m", "wmpi", "-p", "abf"], "no platform 'abf'"),
    ):
        got = retrompi("trace", "info", *arguments)
        assert (got.code, got.out) == (2, "")
        assert says in got.err
        assert got.err.count("\n") == 1


def test_a_trace_of_every_generator_can_be_told() -> None:
    assert traces.unsupported_lines(generate.pingpong([0, 8], 2)) == []
    assert preflight.summary(generate.pingpong([0, 8], 2))["sizes"] == [(0, 4), (8, 4)]


@pytest.mark.parametrize("name", ["scaled", "scaled.ti", "scaled.ti.zst"])
def test_a_scaled_trace_computes_more_and_sends_the_same(retrompi: Run, tmp_path: Path, name: str) -> None:
    got = retrompi("trace", "scale", str(CG), str(tmp_path / name), "--factor", "2.5")
    assert (got.code, got.err) == (0, "")
    before, after = traces.read(CG), traces.read(tmp_path / name)
    assert after.info()["compute_flops"] == pytest.approx(2.5 * before.info()["compute_flops"])
    assert after.traffic() == before.traffic()
    assert after.scaled(1 / 2.5).info()["compute_flops"] == pytest.approx(before.info()["compute_flops"])


def test_a_trace_is_scaled_to_a_time(retrompi: Run, tmp_path: Path) -> None:
    whole, part = tmp_path / "whole", tmp_path / "part"
    assert retrompi("trace", "scale", str(CG), str(whole), "--compute", "9s", "--rate", "100Mflop/s").code == 0
    assert traces.read(whole).info()["compute_flops"] == pytest.approx(9e8)
    timed = ("--compute", "9.46s", "--rate", "1Gflop/s", "--section", "11-72")
    assert retrompi("trace", "scale", str(DATA / "npb3.3.1-is-A-4.tar.zst"), str(part), *timed).code == 0
    assert sum(traces.read(part).section_compute(11, 72)) == pytest.approx(9.46e9, rel=0.02)  # lines move where others were dropped


def test_scaling_that_makes_no_sense_is_told(retrompi: Run, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for arguments, says in (
        (["x"], "either --factor or --compute"),
        (["x", "--factor", "2", "--compute", "1s"], "either --factor or --compute"),
        (["x", "--factor", "-1"], "above zero"),
        (["x", "--factor", "2", "--section", "1-2"], "give --compute as well"),
        ([str(tmp_path / "there"), "--factor", "2"], "exists"),
    ):
        got = retrompi("trace", "scale", str(CG), *arguments)
        assert (got.code, got.out) == (2, "")
        assert says in got.err
        assert got.err.count("\n") == 1
