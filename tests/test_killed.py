"""Processes that somebody ends: what their peers see, how the job ends, and names that no process has."""

from __future__ import annotations

import pytest
from cases import for_each
from engine_runs import MODES, job, run
from refusals import agrees, refused

from retrompi.base.errors import UsageError
from retrompi.cli.main import run as cli
from retrompi.sim import simulate
from retrompi.spec.question import Beside, Question, Replay
from retrompi.store import open_store
from retrompi.store.lookup import answer
from retrompi.traces import generate

LONG = generate.pingpong([1024], 500)


def test_a_killed_proxy_hangs_the_job_silently() -> None:
    result = run(LONG, "winmpich", "distributed", kills=["proxy on workstation@1s"])
    assert result.outcome == "deadlock"
    assert "killed: proxy on workstation at 1 s" in result.detail
    assert "said nothing to the job's owner" in result.detail
    assert {w["rank"]: w["on"].split(",")[0] for w in result.waits} == {0: "a message from rank 1", 1: "a message from rank 0"}
    assert 1 < result.time_s < 3


def test_a_killed_daemon_is_noticed_when_the_retries_run_out() -> None:
    result = run(LONG, "wmpi", "distributed", kills=["daemon on workstation@1004ms"])
    assert result.outcome == "aborted"
    assert "was not acknowledged after 10 retries" in result.detail
    assert "killed: daemon on workstation" in result.detail
    assert result.time_s > 60
    few = run(LONG, "wmpi", "distributed", kills=["daemon on workstation@1004ms"], sets=["udp_retries=3"])
    assert few.outcome == "aborted"
    assert few.time_s < result.time_s / 10


@for_each("model", ["winmpich", "wmpi", "hpvm"])
@for_each("mode", MODES)
def test_a_killed_rank_is_waited_for(model: str, mode: str) -> None:
    result = run(LONG, model, mode, kills=["rank 1@0.05s"], limit_s=2000)
    # A PingPong has one message in the air: whether a daemon is left with a datagram nobody takes is up to the moment.
    assert result.outcome in ("deadlock", "aborted")
    assert "killed: rank 1 at 0.05 s" in result.detail
    assert [w["rank"] for w in result.waits] == [0]
    assert result.delivered < result.messages + 1 < 1000


@pytest.mark.parametrize("model", ["winmpich", "wmpi", "hpvm"])
def test_the_others_go_on(model: str) -> None:
    """Rank 2 dies while it computes; 0 and 1, who want nothing of it, finish and only the job does not."""
    trace = job("; ".join(["send 1 0 100 6; recv 1 0 100 6"] * 20), "; ".join(["recv 0 0 100 6; send 0 0 100 6"] * 20), "compute 22e9")
    result = run(trace, model, "distributed", kills=["rank 2@1s"])
    assert result.outcome == "deadlock"
    assert not result.waits
    assert {r["rank"]: r["received"] for r in result.per_rank} == {0: 20, 1: 20, 2: 0}


def test_a_processor_is_free_for_others_when_its_process_dies() -> None:
    trace = job("compute 220e6", "compute 220e6")
    together = run(trace, "wmpi", "shared")
    alone = run(trace, "wmpi", "shared", kills=["rank 1@1s"])
    assert alone.outcome == "deadlock"
    assert together.outcome == "completed"
    assert alone.per_rank[0]["time_s"] == pytest.approx(10.5, rel=0.02)  # 1 s shared, the rest alone
    assert together.per_rank[0]["time_s"] > 19


def test_a_death_after_the_end_changes_nothing() -> None:
    trace = job("send 1 0 100 6", "recv 0 0 100 6")
    late = run(trace, "wmpi", "distributed", kills=["rank 1@1000s", "daemon on server@2000s"])
    assert (late.outcome, late.detail, late.time_ps) == ("completed", "", run(trace, "wmpi", "distributed").time_ps)


@for_each("seed", range(12))
def test_any_moment_will_do(seed: int) -> None:
    """Whatever a process is in the middle of: the run ends, and twice the same way."""
    when = 0.01 + 0.0137 * seed
    for model, victim in (("winmpich", "proxy on server"), ("wmpi", "daemon on server"), ("hpvm", "rank 0"), ("wmpi", "rank 0")):
        mode = "distributed"
        one, two = (run(LONG, model, mode, kills=[f"{victim}@{when}s"], seed=seed) for _ in range(2))
        assert one.outcome in ("deadlock", "aborted")
        assert (one.detail, one.time_ps, one.events) == (two.detail, two.time_ps, two.events)


@for_each(
    "kill, says",
    [
        ("proxy on servr@1s", "unknown-process | 'proxy on servr' | 'proxy on server'"),
        ("daemon on server@1s", "unknown-process | 'daemon on server'"),
        ("rank 7@1s", "unknown-process | 'rank 7'"),
        ("rank 1", "bad-syntax | PROCESS | TIME"),
        ("@1s", "bad-syntax | PROCESS | TIME"),
        ("rank 1@", "bad-syntax | PROCESS | TIME"),
        ("rank 1@soon", "bad-unit"),
    ],
)
def test_a_wrong_kill_is_told(kill: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        run(LONG, "winmpich", "distributed", kills=[kill])
    agrees(caught.value, says)


def test_between_ranks_of_one_host_there_is_no_proxy() -> None:
    with refused(UsageError, "unknown-process | 'proxy on server'"):
        run(LONG, "winmpich", "shared", kills=["proxy on server@1s"])


def test_a_kill_is_part_of_a_runs_identity(tmp_path: object) -> None:
    store = open_store(f"{tmp_path}/runs.db")
    plain = answer(store, Question("winmpich", "nt-pair", Replay(LONG, "pp"), "distributed"))
    dead = answer(store, Question("winmpich", "nt-pair", Replay(LONG, "pp"), "distributed", beside=Beside(kills=["proxy on server@1s"])))
    again = answer(store, Question("winmpich", "nt-pair", Replay(LONG, "pp"), "distributed", beside=Beside(kills=["proxy on server@1s"])))
    assert plain.run_id != dead.run_id == again.run_id
    assert store.run(dead.run_id)["outcome"] == "deadlock"


def test_the_command_line(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    from retrompi import traces

    traces.write(LONG, f"{tmp_path}/pp")
    common = ["replay", f"{tmp_path}/pp", "-m", "winmpich", "--store", f"{tmp_path}/runs.db"]
    assert cli([*common, "--kill", "proxy on workstation@1s"]) == 1
    assert "killed: proxy on workstation" in capsys.readouterr().err
    assert cli([*common, "--kill", "proxi on workstation@1s"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_benchmark_that_lost_a_process_says_so() -> None:
    result = run(LONG, "hpvm", "distributed", kills=["rank 1@1s"])
    with pytest.raises(simulate.SimulationEnded, match="killed: rank 1"):
        simulate.require_completed(result, "a test")
