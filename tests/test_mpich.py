"""MPICH's ch_p4, ch_shmem and ch_lfshmem: the switches of their protocols, copies, calls, and what a socket buffer limits."""

from __future__ import annotations

import pytest
from engine_runs import job

from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.question import Message, Question, Replay, Starts, pingpong
from retrompi.traces.generate import pingpong as pingpong_trace

GA620, TRENDNET, DS20 = "p4-1800*2@ge-ga620", "p4-1800*2@ge-trendnet", "alpha-ds20*2@ge-syskonnect-jumbo"
LARGE = "mpich.sockbuf=256 KiB"


def _times(model: str, platform: str, sizes: list[int], *sets: str, mode: str = "distributed") -> list[float]:
    """One-way times in us; the first exchange, which opens the connection, is not counted."""
    rows = simulate.benchmark(Question(model, platform, pingpong([1, *sizes], 3), mode, overrides=list(sets)))
    return [row["time_us"] for row in rows[1:]]


def _stages(model: str, size: int, *sets: str, mode: str = "distributed", platform: str = GA620) -> dict[str, int]:
    """Stage -> picoseconds of one message."""
    found: dict[str, int] = {}
    question = Question(model, platform, Message(size), mode, overrides=list(sets))
    for stage in simulate.explain(question)["stages"]:
        found[stage["stage"]] = found.get(stage["stage"], 0) + stage["ps"]
    return found


def test_a_message_of_128000_bytes_asks_first() -> None:
    last, first = _times("mpich", GA620, [127_999, 128_000], LARGE)
    assert first > last + 150  # a request and its answer
    moved = _times("mpich", GA620, [127_999, 128_000], LARGE, "mpich.long=64 KiB")
    assert moved[1] == pytest.approx(moved[0], rel=1e-3)


def test_a_packet_of_a_long_message_goes_alone() -> None:
    def frames(size: int) -> int:
        return simulate.run(Question("mpich", GA620, Replay(pingpong_trace([size], 3)), "distributed", overrides=[LARGE])).frames

    assert frames(16_385) > frames(16_384)
    assert frames(16_385) == frames(16_500)


def test_every_message_is_copied_out_of_p4s_buffer() -> None:
    with_it, raw = _stages("mpich", 60_000, LARGE), _stages("sockets:netpipe", 60_000)
    assert with_it["copy"] > raw["copy"] * 1.2


def test_its_own_cost_is_that_of_all_mpich_1_models() -> None:
    mine = registry.model("mpich").params()["library"]
    assert mine is registry.model("cheui").params()["library"]


def test_a_small_socket_buffer_limits_a_card_whose_driver_takes_large_frames() -> None:
    size = 1 << 20
    (default,), (large,) = _times("mpich", TRENDNET, [size]), _times("mpich", TRENDNET, [size], LARGE)
    assert default > 2 * large
    (default,), (large,) = _times("mpich", GA620, [size]), _times("mpich", GA620, [size], LARGE)
    assert default == pytest.approx(large, rel=0.05)  # a frame of the other card takes what it holds


def test_nothing_moves_between_calls() -> None:
    waits = job("send 1 0 200000 6; compute 2e7", "irecv 0 0 200000 6; compute 2e7; wait 0 1 0")
    times = [simulate.run(Question(m, GA620, Replay(waits), "distributed")).time_ps for m in ("mpich", "mplite")]
    assert times[0] > times[1] * 1.02  # the rendezvous is answered only after the computation; a signal handler goes on


@pytest.mark.parametrize("model", ["mpich:shmem", "mpich:lfshmem"])
def test_a_shared_device_joins_one_machine(model: str) -> None:
    result = simulate.run(Question(model, GA620, Replay(pingpong_trace([0], 1)), "distributed"))
    assert result.outcome == "failed-start"
    assert "one machine" in result.detail


def test_locks_are_calls_and_a_free_queue_has_none() -> None:
    (locked,), (spun,) = (_times("mpich:shmem", GA620, [0], f"mpich.lock={kind}", mode="shared") for kind in ("semop", "spin"))
    (free,) = _times("mpich:lfshmem", GA620, [0], mode="shared")
    assert locked > spun + 3
    assert abs(spun - free) < 1


def test_a_long_message_goes_through_shared_memory_as_a_whole() -> None:
    below, above = _times("mpich:shmem", GA620, [127_999, 128_000], mode="shared")
    assert above > below
    stages = _stages("mpich:shmem", 1 << 20, mode="shared")
    assert stages["copy"] > 0.9 * sum(stages.values()) * 0.9


def test_it_is_started_by_rsh_or_by_fork() -> None:
    told = {m: simulate.startup(Question(m, GA620, Starts(3, 1), seed=0)) for m in ("mpich", "mpich:shmem")}
    assert told["mpich"]["failures"] == 0
    assert any("rsh" in step["note"] for step in told["mpich"]["steps"])
