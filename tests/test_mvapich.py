"""MVAPICH over VAPI: copies through registered buffers, writes by the card behind a registration cache; MP_Lite over two ports."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.model import model_values
from retrompi.spec.question import Question, Starts, pingpong

PCS = "pc-2003*2@infiniband-2003"


def times(model: str, sizes: Sequence[int], *sets: str, platform: str = PCS, warm_up: int = 1) -> dict[int, float]:
    """Size -> one-way time, us."""
    rows = simulate.benchmark(Question(model, platform, pingpong(list(sizes), 2, warm_up), overrides=list(sets)))
    return {r["size_B"]: r["time_us"] for r in rows}


def test_its_library_is_mpichs_and_its_wire_is_vapis() -> None:
    values = model_values(registry.model("mvapich")).settings
    assert values["library"].value == model_values(registry.model("cheui")).settings["library"].value
    assert values["overhead"].value == model_values(registry.model("vapi")).settings["overhead"].value
    above = times("mvapich", [0])[0] - times("vapi", [0])[0]
    assert 0.5 < above < 4
    slower = times("mvapich", [0], "mvapich.completion=2 us")[0]
    assert slower == pytest.approx(times("mvapich", [0])[0] + 3, abs=0.5)  # 1.5 us more at both ends


def test_a_message_asks_when_it_fills_a_buffer_with_its_envelope() -> None:
    longest = 12 * 1024 - 36
    got = times("mvapich", [longest - 1, longest, 32768])
    below = times("vapi", [longest, 32768])
    extra = {n: got[n] - below[n] for n in below}
    assert got[longest] > got[longest - 1] + times("vapi", [0])[0]
    assert extra[longest] == pytest.approx(extra[32768], rel=0.1)  # the request, its answer and the message behind the data
    small = times("mvapich", [4096], "mvapich.vbuf=2 KiB")[4096]
    assert small > times("mvapich", [4096])[4096]


def test_registered_memory_stays_registered() -> None:
    first, again = (times("mvapich", [65536], warm_up=w)[65536] for w in (0, 1))
    assert first > again + 10
    assert times("mvapich", [65536], "mvapich.cache=no")[65536] > again + 20
    assert times("mvapich", [8192], warm_up=0) == times("mvapich", [8192])  # eager buffers are registered at the start


def test_a_packet_is_a_kibibyte() -> None:
    coarse, fine = times("vapi", [1 << 20], "vapi.piece=2 KiB"), times("vapi", [1 << 20])
    assert fine[1 << 20] < coarse[1 << 20]
    assert 700 < (1 << 20) / fine[1 << 20] < 1000  # MB/s


def test_it_starts_by_a_login_to_each_machine() -> None:
    told = simulate.startup(Question("mvapich", PCS, Starts(2)))
    assert (told["daemons"], told["failure_rate"]) == (0, 0)


def test_two_ports_carry_long_messages_faster_where_the_processor_lets_them() -> None:
    two = ("platform.link.rails=2", "platform.link.rail_policy=stripe")
    stack = ("platform.host.tcp_segment=1 us", "platform.host.tcp_byte=0.2 ns/B")  # of a processor that two ports do not fill

    def gain(network: str, *sets: str) -> float:
        one_port, both = (times("mplite", [64, 4 << 20], *sets, *more, platform=f"pc-2003*2@{network}") for more in ((), two))
        assert both[64] == one_port[64]
        return one_port[4 << 20] / both[4 << 20]

    assert gain("ge-2003", *stack) > 1.5
    assert gain("ge-2003-jumbo") > 1.05
