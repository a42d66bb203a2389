"""NT-MPICH and MPICH.NT: copies, events, receiving threads, reading the other's memory, and their thresholds."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from retrompi.base.errors import RetrompiError
from retrompi.sim import simulate
from retrompi.spec.question import Question, Starts, pingpong

NT = "nt-pair"
DUAL = "nt4-p6-200-dual"


def times(model: str, mode: str, sizes: Sequence[int], *sets: str, platform: str = NT) -> dict[int, float]:
    """Size -> one-way time, us."""
    rows = simulate.benchmark(Question(model, platform, pingpong(list(sizes), 3, 1), mode, list(sets)))
    return {r["size_B"]: r["time_us"] for r in rows}


@pytest.mark.parametrize("model", ["ntmpich", "chnt"])
def test_windows_only(model: str) -> None:
    with pytest.raises(RetrompiError, match="Win32 only"):
        times(model, "distributed", [0], platform="nt-unix")
    assert simulate.startup(Question(model, NT, Starts(2, 2)))["manual_steps_per_job"] == 1


def test_nt_mpich_polls_where_each_process_has_a_processor() -> None:
    polled, slept = (times("ntmpich", "shared", [0], f"ntmpich.wait={w}", platform=DUAL)[0] for w in ("as processors", "sleep"))
    assert polled < 10 < slept
    assert times("ntmpich", "shared", [0], platform=NT) == times("ntmpich", "shared", [0], "ntmpich.wait=sleep", platform=NT)
    assert times("ntmpich", "shared", [0], "ntmpich.event=30 us")[0] == pytest.approx(times("ntmpich", "shared", [0])[0] + 15, abs=5)


def test_nt_mpich_reads_a_long_message_out_of_the_senders_memory() -> None:
    got = times("ntmpich", "shared", [8704, 8705, 65536], platform=DUAL)
    assert got[8705] < got[8704] - 20  # a system call more, a copy less
    assert times("ntmpich", "shared", [65536], "ntmpich.long=1 MiB", platform=DUAL)[65536] > got[65536]
    dear = times("ntmpich", "shared", [8704, 8705], "ntmpich.read_memory=60 us", platform=DUAL)
    assert dear[8704] == got[8704]
    assert dear[8705] > got[8705] + 20


def test_nt_mpich_between_hosts_asks_from_128000_bytes_on() -> None:
    got = times("ntmpich", "distributed", [16384, 16385, 127999, 128000])
    assert got[16385] < got[16384] - 100  # two copies less
    assert got[128000] > got[127999] + 500
    assert times("ntmpich", "distributed", [65536], "ntmpich.sockbuf=4 KiB")[65536] > times("ntmpich", "distributed", [65536])[65536]


def test_mpich_nt_wakes_a_thread_which_wakes_the_process() -> None:
    got, dear = times("chnt", "shared", [0]), times("chnt", "shared", [0], "chnt.event=25 us")
    assert dear[0] - got[0] == pytest.approx(20, abs=1)  # two events a message
    slow = times("chnt", "shared", [1024], "platform.host.copy_l1=50 MB/s", "platform.host.copy_l2=50 MB/s")
    fast = times("chnt", "shared", [1024], "platform.host.copy_l1=100 MB/s", "platform.host.copy_l2=100 MB/s")
    assert slow[1024] - fast[1024] == pytest.approx(3 * 1024 * (1 / 50 - 1 / 100), rel=0.15)  # three copies


def test_mpich_nt_sends_the_envelope_alone_and_asks_above_20_kib() -> None:
    got = times("chnt", "shared", [3000, 3001, 20480, 20481, 40960])
    assert got[3001] > got[3000] + 20
    assert got[20481] < got[20480]  # one copy instead of three is worth asking
    assert times("chnt", "shared", [40960], "chnt.long_shm=100 KiB")[40960] > got[40960]
    assert times("chnt", "shared", [40960], "chnt.read_memory=60 us")[40960] > got[40960] + 20


def test_mpich_nt_between_hosts() -> None:
    got = times("chnt", "distributed", [0, 8192, 102400, 102401])
    assert got[102401] > got[102400] + 500
    assert times("chnt", "distributed", [0], "chnt.reads=0")[0] < got[0] - 10
    assert times("chnt", "distributed", [102400], "chnt.piece=1 KiB")[102400] > got[102400]
