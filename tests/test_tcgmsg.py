"""TCGMSG and MP_Lite: header and data as two writes, packets of the socket's buffer, a shared buffer, and a signal handler that goes on."""

from __future__ import annotations

import pytest
from engine_runs import job

from retrompi.sim import simulate
from retrompi.spec.question import Question, Replay, Starts, pingpong

GA620, TRENDNET, DS20 = "p4-1800*2@ge-ga620", "p4-1800*2@ge-trendnet", "alpha-ds20*2@ge-syskonnect-jumbo"


def _times(model: str, platform: str, sizes: list[int], *sets: str, mode: str = "distributed") -> list[float]:
    rows = simulate.benchmark(Question(model, platform, pingpong([1, *sizes], 3), mode, overrides=list(sets)))
    return [row["time_us"] for row in rows[1:]]


def test_nothing_but_sockets_costs_time_beside_raw_tcp() -> None:
    (mine,), (raw,) = (_times(m, GA620, [1 << 20]) for m in ("tcgmsg", "sockets:netpipe"))
    assert mine == pytest.approx(raw, rel=0.02)


def test_a_larger_socket_buffer_speeds_up_jumbo_frames() -> None:
    (default,), (large,) = _times("tcgmsg", DS20, [1 << 20]), _times("tcgmsg", DS20, [1 << 20], "tcgmsg.sockbuf=128 KiB")
    assert default > 1.2 * large


def test_with_nagle_the_data_wait_for_the_headers_acknowledgement() -> None:
    (off,), (on,) = _times("tcgmsg", GA620, [100]), _times("tcgmsg", GA620, [100], "tcgmsg.nodelay=off")
    assert off < 300
    assert on > 20_000  # Linux delays an acknowledgement by 40 ms


def test_a_long_message_passes_the_shared_buffer_piece_by_piece() -> None:
    one, two = _times("tcgmsg", GA620, [65_536, 65_537], mode="shared")
    assert two > one + 2  # a second filling, with its semaphores


def test_a_signal_handler_costs_signals_and_frees_the_program() -> None:
    # The message arrives during a computation, which the handler interrupts, and is complete when the program asks for it.
    trace = job("send 1 0 50000 6; compute 4e6", "irecv 0 0 50000 6; compute 4e6; wait 0 1 0")
    asked = Question("mplite", GA620, Replay(trace), "distributed")
    cheap, dear = (simulate.run(asked.with_(overrides=[f"mplite.signal={t}"])).time_ps for t in ("1 us", "10 us"))
    alone = simulate.run(asked.with_(workload=Replay(job("compute 4e6", "compute 4e6")))).time_ps
    assert dear > cheap
    assert cheap < alone * 1.1


def test_they_are_started_by_their_own_commands() -> None:
    told = {m: simulate.startup(Question(m, GA620, Starts(2, 1), seed=0))["steps"] for m in ("tcgmsg", "mplite")}
    assert [told[m][0]["step"] for m in ("tcgmsg", "mplite")] == ["parallel", "mprun"]
    assert all(step["seconds"] > 0 for step in told["mplite"][1:])
