"""Why a run did not complete: the wait-for cycle with trace lines, near misses, and what filled a pool or buffer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from engine_runs import ANY_SOURCE, ANY_TAG, PATHS, job, run
from refusals import refused

from retrompi.base.errors import RetrompiError
from retrompi.cli.main import run as cli
from retrompi.sim import simulate
from retrompi.sim.diagnosis import lines
from retrompi.spec.question import Question, Replay
from retrompi.store import open_store
from retrompi.store.lookup import answer
from retrompi.studies.define import catalogue
from retrompi.traces import generate

everywhere = for_each("model, mode", PATHS)


def stuck(*ranks: str, model: str = "hpvm", mode: Any = "distributed", **options: Any) -> simulate.Result:
    result = run(job(*ranks), model, mode, **options)
    assert result.outcome == "deadlock", result.detail
    return result


def told(result: simulate.Result) -> str:
    return "\n".join(result.diagnosis["told"])


# ---------------------------------------------------------------- cycles


@everywhere
def test_a_cycle_of_two_is_told_with_its_lines(model: str, mode: str) -> None:
    result = stuck("compute 1000; recv 1 5 10 6", "recv 0 7 10 6", model=model, mode=mode)
    cycle = "rank 0 (rank-0.txt:3 recv from 1 tag 5) -> rank 1 (rank-1.txt:2 recv from 0 tag 7) -> rank 0"
    assert result.detail == f"no process can go on: wait-for cycle: {cycle}"
    assert result.diagnosis["closed"]
    assert [(r["process"], r["file"], r["line"], r["action"], r["waits_for"]) for r in result.diagnosis["cycle"]] == [
        ("rank 0", "rank-0.txt", 3, "recv", "rank 1"),
        ("rank 1", "rank-1.txt", 2, "recv", "rank 0"),
    ]
    assert not result.diagnosis["near_misses"]
    assert not result.diagnosis["unreceived"]


@everywhere
def test_a_cycle_of_four_is_found_and_who_waits_beside_it(model: str, mode: str) -> None:
    receives = [f"recv {(r + 1) % 4} 0 8 6; send {(r + 3) % 4} 0 8 6" for r in range(4)]
    result = stuck(*receives, "recv 2 3 8 6", model=model, mode=mode)
    assert [r["process"] for r in result.diagnosis["cycle"]] == [f"rank {r}" for r in range(4)]
    assert result.detail.count(" -> ") == 4
    assert "1 other process waits beside or behind them" in told(result)


def test_a_long_cycle_is_cut_on_the_line_and_whole_in_the_table() -> None:
    result = stuck(*(f"recv {(r + 1) % 30} 0 8 6" for r in range(30)), mode="shared")
    assert "… 22 more … ->" in result.detail
    assert len(result.diagnosis["cycle"]) == 30


@everywhere
def test_sends_that_nobody_takes_are_edges_too(model: str, mode: str) -> None:
    result = stuck("Ssend 1 1 10 6; recv 1 2 10 6", "Ssend 0 2 10 6; recv 0 1 10 6", model=model, mode=mode)
    assert "rank 0 (rank-0.txt:2 Ssend to 1 tag 1 10 B) -> rank 1 (rank-1.txt:2 Ssend to 0 tag 2 10 B) -> rank 0" in result.detail
    assert result.diagnosis["unreceived_total"] == 2
    assert [(r["source"], r["destination"], r["tag"], r["file"], r["line"]) for r in result.diagnosis["unreceived"]] == [
        (0, 1, 1, "rank-0.txt", 2),
        (1, 0, 2, "rank-1.txt", 2),
    ]


@everywhere
@for_each(
    "lines_, what",
    [
        ("irecv 1 6 10 6; waitall 1", "waitall recv from 1 tag 6"),
        ("irecv 1 6 10 6; wait 1 0 6", "wait recv from 1 tag 6"),
        ("ISsend 1 3 10 6; wait 0 1 3", "wait send to 1 tag 3 10 B"),
        ("ISsend 1 3 10 6", "finalize send to 1 tag 3 10 B"),
        ("probe 1 2", "probe from 1 tag 2"),
        ("recvInit 1 4 10 6; start 1 0 4; wait 1 0 4", "wait recv from 1 tag 4"),
    ],
)
def test_every_way_of_waiting_is_an_edge(model: str, mode: str, lines_: str, what: str) -> None:
    result = stuck(lines_, "recv 0 99 1 6", model=model, mode=mode)
    assert result.diagnosis["closed"]
    assert f"{what}) -> rank 1 (rank-1.txt:2 recv from 0 tag 99) -> rank 0" in result.detail


# ---------------------------------------------------------------- alternatives


@everywhere
def test_a_wildcard_waits_for_any_of_the_others(model: str, mode: str) -> None:
    result = stuck(f"recv {ANY_SOURCE} {ANY_TAG} 10 6", "", "recv 0 3 10 6", model=model, mode=mode)
    first, second = "rank 0 (rank-0.txt:2 recv from any source any tag, any of 2)", "rank 2 (rank-2.txt:2 recv from 0 tag 3)"
    assert f"{first} -> {second} -> rank 0" in result.detail
    assert [r["alternatives"] for r in result.diagnosis["cycle"]] == [2, 1]


def test_a_cycle_without_alternatives_is_preferred() -> None:
    result = stuck(f"recv {ANY_SOURCE} 1 10 6", "recv 2 5 10 6", "recv 1 6 10 6")
    assert [r["process"] for r in result.diagnosis["cycle"]] == ["rank 1", "rank 2"]
    assert "1 other process waits" in told(result)


def test_waitany_waits_for_any_waitall_for_all() -> None:
    requests = "irecv 1 3 10 6; irecv 2 4 10 6"
    result = stuck(f"{requests}; waitAny 2", "recv 0 4 10 6", "")
    assert "waitAny recv from 1 tag 3, any of 2" in result.detail
    result = stuck(f"{requests}; waitall 2", "send 0 3 10 6", "recv 0 4 10 6")
    assert "rank 0 (rank-0.txt:4 waitall recv from 2 tag 4) -> rank 2" in result.detail


def test_a_collective_of_a_communicator_and_a_non_blocking_one_are_edges() -> None:
    split = "comm_split 1 1,2"
    result = stuck("comm_split -1; recv 2 9 1 6", f"{split}; barrier comm=1; recv 0 1 1 6", f"{split}; recv 0 3 1 6; barrier comm=1")
    assert [(r["comm"], r["rank"]) for r in result.diagnosis["collectives"]] == [(1, 2)]
    assert "barrier with rank 2" in stuck("ibarrier req=1; barrier", "ibarrier req=1; barrier", "ibarrier req=1; recv 0 3 1 6").detail
    for wait, told in (("waitall 1 reqs=1", "waitall"), ("wait req=1", "wait")):
        result = stuck(f"ibarrier req=1; {wait}", f"recv 0 2 1 6; ibarrier req=1; {wait}")
        assert f"rank 0 (rank-0.txt:3 {told} with rank 1) -> rank 1 (rank-1.txt:2 recv from 0 tag 2) -> rank 0" in result.detail


def test_a_lock_is_waited_for_at_its_holder() -> None:
    trace = job("win_create 1 100; Win_lock 1 1 win=1; recv 1 1 1 6", "win_create 1 100; Win_lock 1 1 win=1; Win_unlock 1 win=1")
    result = simulate.run(Question("craympt:shmem", "cray-t3e", Replay(trace)))
    assert result.outcome == "deadlock"
    assert [(r["process"], r["waits_for"]) for r in result.diagnosis["cycle"]] == [("rank 0", "rank 1"), ("rank 1", "rank 0")]
    assert "Win_lock the lock on the window of rank 1) -> rank 0" in result.detail


# ---------------------------------------------------------------- no cycle


@everywhere
def test_a_rank_that_has_finished_is_named(model: str, mode: str) -> None:
    result = stuck("recv 1 4 10 6", "", "recv 0 1 10 6", model=model, mode=mode)
    assert not result.diagnosis["closed"]
    chain = "rank 2 (rank-2.txt:2 recv from 0 tag 1) -> rank 0 (rank-0.txt:2 recv from 1 tag 4)"
    assert result.detail.endswith(f"{chain} -> rank 1, which has finished")


def test_a_killed_peer_is_named() -> None:
    result = run(generate.pingpong([1024], 500), "hpvm", "distributed", kills=["rank 1@0.05s"])
    assert "-> rank 1, which was killed" in result.detail
    assert result.diagnosis["cycle"][0]["process"] == "rank 0"


def test_a_message_that_a_killed_proxy_holds_is_named_with_its_send() -> None:
    result = run(generate.pingpong([1024], 500), "winmpich", "distributed", kills=["proxy on workstation@1s"])
    assert result.outcome == "deadlock"
    assert "and not arrived) -> proxy on workstation, which was killed" in result.detail
    assert [r["waits_for"] for r in result.diagnosis["cycle"]] == ["rank 1", "proxy on workstation"]
    assert [r["where"] for r in result.diagnosis["unreceived"]] == ["on its way"]
    assert result.diagnosis["unreceived"][0]["line"] == int(result.detail.split("sent at pingpong/rank-0.txt:")[1].split()[0])


def test_a_job_that_only_lost_somebody_says_no_more() -> None:
    result = run(job("", "", "compute 22e9"), "wmpi", "distributed", kills=["rank 2@1s"])
    assert result.detail.startswith("no process can go on; killed")
    assert result.diagnosis["summary"] == ""


# ---------------------------------------------------------------- collectives


@everywhere
@pytest.mark.parametrize("call", ["barrier", "bcast 100 1 6", "allreduce 100 100 6", "alltoall 10 10 6 6"])
def test_who_has_not_come_to_a_collective_and_where_it_is(model: str, mode: str, call: str) -> None:
    result = stuck(f"{call}; {call}", f"{call}; recv 0 9 10 6; {call}", f"{call}; {call}", model=model, mode=mode)
    name = call.split()[0]
    assert result.diagnosis["closed"]
    rows = result.diagnosis["collectives"]
    assert [(r["rank"], r["instead_file"], r["instead_line"]) for r in rows] == [(1, "rank-1.txt", 3)]
    assert rows[0]["collective"].lower() == name
    assert rows[0]["line"] == 3
    assert f"{rows[0]['collective']} ({rows[0]['file']}:3): rank 1 is at rank-1.txt:3 in recv" in told(result)


def test_a_finished_rank_has_not_come_to_a_collective() -> None:
    result = stuck("barrier", "", "")
    assert [r["rank"] for r in result.diagnosis["collectives"]] == [1, 2]
    assert "rank 1 has finished; rank 2 has finished" in told(result)
    assert "which has finished" in result.detail


def test_collectives_that_differ_are_refused_by_the_reader_with_both_lines() -> None:
    """So no hang comes of them: a run begins only where all members of a communicator call the same collectives in the same order."""
    with refused(RetrompiError, "unsupported-action | rank-1.txt:2 | 'bcast' | rank-0.txt:2"):
        run(job("bcast 100 0 6", "reduce 100 0 0 6"))


# ---------------------------------------------------------------- near misses


@everywhere
def test_a_message_with_another_tag_is_a_near_miss(model: str, mode: str) -> None:
    result = stuck("recv 1 5 10 6", "send 0 6 10 6; recv 0 1 10 6", model=model, mode=mode)
    assert "rank 0 wants tag 5 from rank 1 (rank-0.txt:2), rank 1 has sent tag 6 (rank-1.txt:2, 10 B)" in told(result)
    (row,) = result.diagnosis["near_misses"]
    assert (row["rank"], row["wants_tag"], row["tag"], row["source"], row["send_file"], row["send_line"], row["differs"]) == (
        0, 5, 6, 1, "rank-1.txt", 2, "tag",
    )
    assert result.diagnosis["unreceived_total"] == 1


def test_a_message_from_another_source_is_a_near_miss() -> None:
    result = stuck("recv 2 5 10 6", "send 0 5 10 6", "recv 0 1 10 6")
    assert [(r["wants_source"], r["source"], r["differs"]) for r in result.diagnosis["near_misses"]] == [(2, 1, "source")]


def test_a_message_on_another_communicator_is_a_near_miss() -> None:
    split = "comm_split 1 0,1"
    result = stuck(f"{split}; recv 1 5 10 6 comm=1", f"{split}; send 0 5 10 6", "comm_split -1")
    (row,) = result.diagnosis["near_misses"]
    assert (row["wants_comm"], row["comm"], row["differs"]) == (1, 0, "communicator")
    assert "rank 0 wants tag 5 from rank 1 on communicator 1 (rank-0.txt:3), rank 1 has sent tag 5 on communicator 0" in told(result)


def test_a_message_that_differs_in_two_ways_is_none() -> None:
    result = stuck("recv 2 5 10 6", "send 0 6 10 6", "recv 0 1 10 6")
    assert not result.diagnosis["near_misses"]
    assert result.diagnosis["unreceived_total"] == 1


def test_messages_that_nobody_receives_are_listed_oldest_first_and_counted() -> None:
    result = stuck("; ".join(f"send 1 {t} 8 6" for t in range(80)) + "; recv 1 0 1 6", "recv 0 99 1 6", mode="shared")
    assert result.diagnosis["unreceived_total"] == 80
    assert [r["line"] for r in result.diagnosis["unreceived"]] == list(range(2, 52))
    assert "80 messages were sent and not received; the oldest: rank 0 to rank 1, tag 0, 8 B, sent at rank-0.txt:2" in told(result)


# ---------------------------------------------------------------- resources


def test_a_full_pool_names_what_fills_it() -> None:
    trace = ("; ".join([*["isend 1 7 100 6"] * 3, *["isend 1 8 16000 6"] * 100]), "recv 0 9 1 6")
    result = run(job(*trace), "wmpi", "shared")
    assert result.outcome == "aborted"
    d = result.diagnosis
    assert d["resource"] == "the shared memory pool of host server"
    taken = sum(r["held"] for r in d["held"])
    assert all(r["tag"] == 8 and r["bytes"] == 16000 and r["file"] == "rank-0.txt" for r in d["held"]), "the largest come first"
    assert [r["line"] for r in d["held"]] == list(range(5, 25)), "of equal ones the oldest"
    assert [r["held_s"] for r in d["held"]] == sorted((r["held_s"] for r in d["held"]), reverse=True)
    assert d["held_total"] > 60
    (pair,) = d["pairs"]
    assert (pair["source"], pair["destination"], pair["messages"]) == (0, 1, d["held_total"])
    assert taken < pair["held"] <= 1 << 20
    assert f"{d['held_total']} messages take {pair['held']} of the 1048576 B of the shared memory pool of host server" in result.detail
    assert "the largest: rank 0 to rank 1, tag 8, 16000 B, sent at rank-0.txt:5, held for" in result.detail


def test_a_full_pool_counts_by_pair() -> None:
    trace = ("; ".join(["isend 2 1 16000 6"] * 50), "; ".join(["isend 2 1 4000 6"] * 100), "compute 1e9; recv 0 9 1 6")
    result = run(job(*trace), "wmpi", "shared")
    assert result.outcome == "aborted"
    assert [(r["source"], r["destination"]) for r in result.diagnosis["pairs"]] == [(0, 2), (1, 2)]
    held = [r["held"] for r in result.diagnosis["pairs"]]
    assert held == sorted(held, reverse=True)


@pytest.mark.parametrize("mode", ["shared", "distributed"])
def test_an_overflowing_buffer_names_the_messages_in_it(mode: str) -> None:
    result = run(job("; ".join(f"send 1 {t} 400000 6" for t in range(8)), "recv 0 9 1 6"), "hpvm", mode)
    assert result.outcome == "aborted"
    d = result.diagnosis
    assert d["resource"] == "the buffer of rank 1 for unexpected messages"
    assert [(r["tag"], r["line"]) for r in d["held"]][:3] == [(0, 2), (1, 3), (2, 4)]
    assert sum(r["held"] for r in d["held"]) == d["pairs"][0]["held"] > 2 << 20
    assert "6 messages take 2098304 of the 2097152 B" in result.detail or mode == "distributed"


def test_a_hang_for_want_of_a_mailbox_names_the_messages_in_them() -> None:
    """A T3E's sender has two mailboxes at a receiver (`craympt.mailboxes`), who is gone."""
    sends = "; ".join(f"send 1 {tag} 8 6" for tag in range(4))
    result = run(job(f"sleep 0.02; {sends}", "sleep 1"), "craympt", "distributed", "cray-t3e", kills=["rank 1@10ms"])
    assert result.outcome == "deadlock"
    places = "the places for unasked messages from rank 0 in the memory of rank 1"
    assert f"rank 0 (rank-0.txt:5 send waits for room in {places}) -> rank 1, which was killed" in result.detail
    assert result.diagnosis["resource"] == places
    assert [(r["bytes"], r["held"], r["unit"], r["line"]) for r in result.diagnosis["held"]] == [(8, 1, "packets", 3), (8, 1, "packets", 4)]


def test_a_hang_for_want_of_room_names_the_resource_and_the_cycle() -> None:
    """Rank 0's eager messages fill the pool; the large one rank 1 waits for finds no room in it."""
    filling = "; ".join(["isend 1 8 16000 6"] * 60)
    result = run(job(f"{filling}; irecv 1 1 10 6; send 1 5 400000 6", "recv 0 5 400000 6"), "wmpi", "shared", sets=["wmpi.pool=1MiB"])
    assert result.outcome in ("deadlock", "aborted")
    assert result.diagnosis["resource"] == "the shared memory pool of host server"
    assert result.diagnosis["held"][0]["destination"] == 1
    if result.outcome == "deadlock":
        assert "waits for room in the shared memory pool of host server" in result.detail


@pytest.mark.parametrize("name", ["buffer-overflow-hpvm", "credits-hang-hpvm"])
def test_the_studies_of_full_resources_name_messages(name: str, tmp_path: Path) -> None:

    store = open_store(f"{tmp_path}/runs.db")
    found = answer(store, catalogue.scenario(name).question())
    row = store.run(found.run_id)
    assert row["outcome"] in ("aborted", "deadlock")
    kept = row["facts"]["diagnosis"]
    assert kept["summary"]
    assert row["detail"].count(kept["summary"]) == 1


# ---------------------------------------------------------------- where it is said


def test_a_completed_run_needs_no_diagnosis() -> None:
    assert run(job("send 1 0 1 6", "recv 0 0 1 6")).diagnosis == {}


def test_it_is_stored_and_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "t.ti"
    trace.write_text("0 init\n0 recv 1 5 10 6\n0 finalize\n1 init\n1 send 0 6 10 6\n1 recv 0 7 10 6\n1 finalize\n")
    common = ["replay", str(trace), "-m", "hpvm", "--store", f"{tmp_path}/runs.db"]
    for _ in range(2):  # simulated, then found in the store
        assert cli([*common, "--json"]) == 1
        out, err = capsys.readouterr()
        first, *more = err.splitlines()
        assert "wait-for cycle: rank 0" in first
        assert any("near miss" in line for line in more)
        said = json.loads(out)
        assert [r["process"] for r in said["diagnosis"]["cycle"]] == ["rank 0", "rank 1"]
        assert said["detail"] in first
        assert len(said["waits"]) == 2
    sends = "".join(f"0 {a}\n" for a in ("init", *["isend 1 0 16000 6"] * 90, "finalize"))
    trace.write_text(sends + "1 init\n1 recv 0 1 1 6\n1 finalize\n")
    assert cli([*common[:3], "wmpi", "--mode", "shared", *common[4:]]) == 1
    err = capsys.readouterr().err
    assert "the shared memory pool of host server holds, largest first:" in err
    assert "by pair: rank 0 -> rank 1:" in err


def test_lines_of_a_run_without_a_diagnosis() -> None:
    assert lines("timeout", "", [], {}) == ["outcome timeout: no detail"]
