"""Compaq MPI over Elan's tagged ports, on the AlphaServer SC."""

from __future__ import annotations

import pytest

from retrompi.sim import simulate
from retrompi.spec.question import Question, Starts, pingpong

SC = "alpha-es40-667*64@qsnet-elan3"
PAIR = "alpha-es40-667*2@qsnet-elan3"


def times(sizes: list[int], *sets: str, mode: str = "distributed", platform: str = PAIR) -> dict[int, float]:
    rows = simulate.benchmark(Question("elan", platform, pingpong(sizes, 2, 1), mode, list(sets)))
    return {row["size_B"]: row["time_us"] for row in rows}


def test_a_short_message_takes_what_is_documented() -> None:
    """5 us (E-QSN-02), the only value that anything here was set by; across three levels of switches four links more."""
    assert times([0])[0] == pytest.approx(5, abs=0.1)
    far = simulate.benchmark(Question("elan", SC, pingpong([0], 2, 1), "n1,n64"))[0]["time_us"]
    assert far - times([0])[0] == pytest.approx(4 * 0.06, abs=1e-3)


def test_data_of_a_long_message_are_copied_by_no_processor() -> None:
    """Its rate is the bus's, whatever a copy costs; a message that fits into the queue's slot is copied at both ends."""
    got = times([288, 1 << 20])
    slow = times([288, 1 << 20], "platform.host.copy_mem=60 MB/s", "platform.host.copy_l1=60 MB/s", "platform.host.copy_l2=60 MB/s")
    assert (1 << 20) / got[1 << 20] == pytest.approx(200, rel=0.01)
    assert slow[1 << 20] == pytest.approx(got[1 << 20], rel=1e-3)
    assert slow[288] > got[288] + 2 * 288 / 60 * 0.8


def test_only_the_longest_wait_for_their_receive() -> None:
    """Above LIBELAN_TPORT_BIGMSG."""
    at, above = times([4 << 20])[4 << 20], times([(4 << 20) + 1])[(4 << 20) + 1]
    assert above > at + 2.5, "it asks first: two short messages more"
    assert times([1 << 20], "elan.big=512 KiB")[1 << 20] > times([1 << 20])[1 << 20] + 2.5


def test_a_node_s_processes_use_its_memory_and_not_its_card() -> None:
    near = times([1024, 1 << 20], mode="shared")
    assert near[1024] < times([1024])[1024] / 2
    assert times([1 << 20], "platform.host.copy_mem=60 MB/s", mode="shared")[1 << 20] > near[1 << 20] * 2
    pieces = times([1 << 20], "elan.node_work=100 us", mode="shared")[1 << 20]
    assert pieces > near[1 << 20] + (1 << 20) / (16 << 10) * 90, "each piece costs its work"


def test_prun_starts_a_daemon_s_processes_on_every_node() -> None:
    told = simulate.startup(Question("elan", SC, Starts(8, 2), "block"))
    assert (told["hosts"], told["daemons"], told["failures"]) == (2, 2, 0)
