"""What a run says at its end besides its outcome: what the program left undone, that its trace is partial, and counts that add up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from engine_runs import PATHS, job, run

from retrompi import traces
from retrompi.cli.main import run as cli
from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.question import Question, Replay

everywhere = for_each("model, mode", PATHS)
MODELS = [name for name in registry.model_names() if ":" not in name]
ROOMS = {"nemesis": "abe", "craympt": "cray-t3e", "mpibip": "myrinet-piii"}


def on(model: str, trace: Any) -> Any:
    return simulate.run(Question(model, ROOMS.get(model, "nt-cluster"), Replay(trace), "shared"))


LEFT = [  # lines of rank 0, of rank 1, the facts of the caution
    ("send 1 5 8 6", "", "1 message was sent and never received | rank 0 to rank 1, tag 5, 8 B, sent at rank-0.txt:2"),
    ("send 1 5 8 6; send 1 6 9 6; send 1 7 9 6; send 1 8 9 6", "recv 0 6 9 6",
     "3 messages were | rank-0.txt:2 | rank-0.txt:4 | rank-0.txt:5"),
    ("", "irecv 0 3 8 6 req=1", "1 receive was posted and never matched | rank 1 from rank 0, tag 3, posted at rank-1.txt:2"),
    ("isend 1 0 8 6 req=1", "recv 0 0 8 6", "1 request was never completed | a send to rank 1, tag 0, begun at rank-0.txt:2"),
    ("ibarrier req=1", "ibarrier req=1; wait req=1", "1 request was never completed | rank 0, of a collective, begun at rank-0.txt:2"),
    ("sendInit 1 0 8 6 req=1; start req=1", "recv 0 0 8 6", "1 request was never completed | begun at rank-0.txt:3"),
]


@everywhere
@for_each("zero, one, facts", LEFT)
def test_what_a_completed_program_left_undone_is_a_caution(model: str, mode: str, zero: str, one: str, facts: str) -> None:
    result = run(job(zero, one), model, mode)
    assert result.outcome == "completed"
    told = " ".join(map(str, result.cautions))
    for fact in facts.split(" | "):
        assert fact in told


def test_a_program_that_leaves_nothing_has_no_caution() -> None:
    trace = job(
        "isend 1 0 8 6 req=1; wait req=1; irecv 1 1 8 6 req=2; requestFree req=2; sendInit 1 2 8 6 req=3; win_create 1 8; win_free 1",
        "recv 0 0 8 6; send 0 1 8 6; win_create 1 8; win_free 1",
    )
    result = simulate.run(Question("craympt", "cray-t3e", Replay(trace), "shared"))
    assert (result.outcome, result.cautions) == ("completed", [])


def test_a_window_left_open_and_a_lock_left_held_are_cautions() -> None:
    trace = job("win_create 1 8; Win_lock 1 1 win=1", "win_create 1 8")
    result = simulate.run(Question("craympt", "cray-t3e", Replay(trace), "shared"))
    assert result.outcome == "completed"
    assert any("1 window was never freed: window 1, made at rank-0.txt:2" in c for c in map(str, result.cautions))
    assert any("1 lock on a window was never released: rank 0 on rank 1 in window 1" in c for c in map(str, result.cautions))


def test_a_collective_that_a_rank_does_not_call_is_a_caution() -> None:
    # The root's small message leaves at once, so the job completes.
    result = run(job("bcast 8 0 6", ""), "wmpi", "shared")
    assert result.outcome == "completed"
    assert any("1 message was sent and never received" in c and "of a collective" in c for c in map(str, result.cautions))
    assert any("not all members call the same collectives" in c and "rank-1.txt" in c for c in map(str, result.cautions))


@everywhere
def test_a_receive_under_way_was_matched_and_not_completed(model: str, mode: str) -> None:
    """The message's request came before the second message, and its data wait for a rank that makes no call any more."""
    lines = (("init", "isend 1 0 900000 6 req=1", "send 1 5 8 6"), ("init", "irecv 0 0 900000 6 req=1", "recv 0 5 8 6"))
    trace = traces.Trace.parse([("".join(f"{r} {line}\n" for line in own).encode(), f"rank-{r}.txt", r) for r, own in enumerate(lines)])
    told = " ".join(map(str, run(trace, model, mode).cautions))
    assert "never completed by a wait or a test" in told
    assert "rank 1, of a receive from rank 0, tag 0, begun at rank-1.txt:2" in told
    assert "never matched" not in told


PARTIAL = {
    "completed": ["0 init\n0 send 1 0 8 6\n", "1 init\n1 recv 0 0 8 6\n"],
    "deadlock": ["0 init\n0 recv 1 0 8 6\n", "1 init\n1 compute 5\n"],
    "aborted": ["0 init\n0 send 1 0 80 6\n", "1 init\n1 recv 0 0 8 6\n"],
}


@pytest.mark.parametrize("outcome", PARTIAL)
def test_a_partial_trace_says_so_in_every_outcome(outcome: str) -> None:
    result = run(traces.parse(PARTIAL[outcome], name="cut"), "wmpi", "shared")
    assert result.outcome == outcome
    cut = "the trace is partial: 2 of 2 ranks end before MPI_Finalize"
    assert any(cut in c and "cut/rank-0.txt:2" in c for c in map(str, result.cautions))


def test_a_partial_trace_says_so_when_a_bound_ends_the_run() -> None:
    cut = traces.parse(["0 init\n0 compute 1e12\n", "1 init\n1 compute 1\n1 finalize\n"], name="cut", partial=True)
    result = run(cut, "wmpi", "shared", limit_s=1.0)
    assert result.outcome == "timeout"
    assert any("1 of 2 ranks end before MPI_Finalize" in c for c in map(str, result.cautions))


def test_cautions_are_stored_and_printed_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "left.txt"
    path.write_text("0 init\n1 init\n0 send 1 5 8 6\n0 finalize\n1 finalize\n")
    ask = ["replay", str(path), "-m", "wmpi", "-p", "nt-pair", "--store", str(tmp_path / "s.db")]
    for _ in range(2):  # simulated, then found
        assert cli(ask) == 0
        told = capsys.readouterr()
        assert (told.out + told.err).count("sent and never received") == 1
        assert "caution: 1 message" in told.err
    assert cli([*ask, "--json"]) == 0
    assert '"code": "left-open"' in capsys.readouterr().out


# --- counts that add up -----------------------------------------------------------------------------------------------------


def test_a_message_to_nobody_is_none() -> None:
    trace = job("send -666 0 100 6; sendRecv 8 -666 8 1 6 6; isend -666 0 8 6 req=1; wait req=1; recv -666 0 8 6", "send 0 0 8 6").info()
    assert (trace["sends"], trace["bytes_sent"]) == (1, 8)
    pair = job("send -666 0 100 6; send 1 0 8 6", "recv 0 0 8 6")
    result = run(pair, "wmpi", "shared")
    assert pair.info()["sends"] == result.messages == 1
    assert pair.communicators()[0]["messages"] == 1


@everywhere
@pytest.mark.parametrize("probe", ["probe -666 5", "iprobe -666 5 flag=1", "iprobe -666 -444"])
def test_a_probe_of_nobody_returns_at_once(model: str, mode: str, probe: str) -> None:
    assert run(job(probe, ""), model, mode).outcome == "completed"


@for_each("model", MODELS)
def test_what_all_ranks_sent_is_what_all_received(model: str) -> None:
    trace = job(*["bcast 100 0 6; allreduce 20000 0 6; bcast 100000 1 6; barrier; alltoall 300 300 6 6"] * 4)
    rows = on(model, trace).per_rank
    assert sum(r["sent"] for r in rows) == sum(r["received"] for r in rows) > 0
    assert sum(r["bytes_sent"] for r in rows) == sum(r["bytes_received"] for r in rows) > 0


def test_one_sided_transfers_count_at_both_ends() -> None:
    trace = job("win_create 1 800; Put 1 0 100 6 win=1; Get 1 0 50 6 win=1; Win_fence win=1; win_free 1",
                "win_create 1 800; Win_fence win=1; win_free 1")
    alone = job("win_create 1 800; Win_fence win=1; win_free 1", "win_create 1 800; Win_fence win=1; win_free 1")
    with_it, without = (simulate.run(Question("craympt", "cray-t3e", Replay(t), "shared")).per_rank for t in (trace, alone))
    more = [{k: a[k] - b[k] for k in ("bytes_sent", "bytes_received")} for a, b in zip(with_it, without, strict=True)]
    assert more == [{"bytes_sent": 100, "bytes_received": 50}, {"bytes_sent": 50, "bytes_received": 100}]


@everywhere
def test_a_call_that_never_ends_counts_as_time_in_mpi(model: str, mode: str) -> None:
    result = run(job("compute 1e6; recv 1 0 8 6", "compute 1e7; recv 0 0 8 6"), model, mode)
    assert result.outcome == "deadlock"
    row = result.per_rank[0]
    assert row["mpi_s"] + row["compute_s"] == pytest.approx(row["time_s"], abs=1e-3)  # but for its start
    assert row["mpi_s"] > row["compute_s"] > 0


def test_a_computation_that_a_limit_cuts_counts_as_computing() -> None:
    result = run(job("compute 1e12", ""), "wmpi", "shared", limit_s=1.0)
    assert result.outcome == "timeout"
    assert result.per_rank[0]["compute_s"] == pytest.approx(result.time_s, abs=1e-3)
    assert result.per_rank[0]["mpi_s"] == 0


def test_far_more_ranks_than_the_timeline_has_room_for() -> None:
    from retrompi.sim.timeline import TimelineRequest

    trace = job(*["barrier; compute 1000; barrier"] * 100)
    timeline = run(trace, "wmpi", "shared", timeline=TimelineRequest(10)).timeline
    assert set(timeline.calls.rank) == set(range(100))
