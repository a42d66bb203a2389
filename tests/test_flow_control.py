"""A switch that asks its senders to pause (IEEE 802.3x), and drivers that poll while frames come (NAPI)."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from asking import ask
from hypothesis import given, settings
from hypothesis import strategies as st
from test_queues import FRAME, LATENCY, RATE, ROUNDED, Flow, S, T, carry, crowds

from retrompi.base.errors import UsageError
from retrompi.reference.programs import compare_programs, draw_program
from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.question import Question, pingpong
from retrompi.traces import generate

KIND = "pausing-switch"
TOLD = LATENCY + 84 * S // int(RATE)
"""From what the switch finds until a card knows it."""


@settings(max_examples=100, deadline=None)
@given(crowds(("switch",)))
def test_it_is_a_switch_as_long_as_nobody_is_asked(crowd: tuple[str, list[int], int, list[Flow], list[int]]) -> None:
    _, shape, hosts, flows, ahead = crowd
    assert carry(KIND, shape, hosts, flows, ahead=ahead, buffer=1e9) == carry("switch", shape, hosts, flows, ahead=ahead)


@settings(max_examples=100, deadline=None)
@given(crowds(("switch",)), st.sampled_from([1.0, 1600.0, 20_000.0]))
def test_nothing_is_lost_or_overtaken_or_early(crowd: tuple[str, list[int], int, list[Flow], list[int]], buffer: float) -> None:
    _, shape, hosts, flows, ahead = crowd
    got = carry(KIND, shape, hosts, flows, ahead=ahead, buffer=buffer)
    for flow, t in zip(flows, got, strict=True):
        assert t >= carry(KIND, shape, hosts, [flow], buffer=buffer)[0]
    for to in {f[2] for f in flows}:
        into = sorted((t, f[3]) for t, f in zip(got, flows, strict=True) if f[2] == to)
        assert all(after - before >= size / RATE * S - ROUNDED for (before, _), (after, size) in pairwise(into))


def test_a_card_that_pauses_holds_back_what_would_go_elsewhere() -> None:
    """Two cards send to port 2 without a break. When its second frame has come and waits, card 1 is asked to pause; the frame that it
    has to port 3 by then is behind it. A switch that does not ask sends it as soon as the card has sent what is before it."""
    flows = [(0, 0, 2, FRAME)] * 40 + [(1, 1, 2, FRAME)] * 10 + [(2, 1, 3, FRAME)]
    free, paused = (carry(kind, [], 4, flows, buffer=buffer) for kind, buffer in (("switch", 0.0), (KIND, FRAME + 1.0)))
    assert free[-1] == 1 + 2 * LATENCY + 11 * T
    assert paused[-1] > free[-1] + 5 * T
    assert max(paused) == max(free), "port 2 is never idle"


def test_when_a_card_stops_and_goes_on() -> None:
    """Two frames of card 1 wait behind a long one at port 2, more than the buffer; the next, to the idle port 3, has not begun when the
    card hears of it. It begins when the second has left the queue and the card has heard of that:
    half a buffer would be less than a frame."""
    long = 20 * FRAME
    flows = [(0, 0, 2, long), (1, 1, 2, FRAME), (1, 1, 2, FRAME), (1, 1, 3, FRAME)]
    got = carry(KIND, [], 4, flows, buffer=1.5 * FRAME)
    free = LATENCY + long * S // int(RATE)
    assert got[1:3] == [free + LATENCY + T, free + LATENCY + 2 * T]
    assert got[3] == free + T + TOLD + 2 * LATENCY + T
    assert carry(KIND, [], 4, flows, buffer=2 * FRAME)[3] == 1 + 3 * T + 2 * LATENCY, "two fit: nobody is asked"


def test_incast_is_slow_on_a_switch_that_drops_and_lossless_on_one_that_asks() -> None:
    trace = generate.all_at_once(6, 30_000)
    drops, asks = (
        ask("mpich", "nt-cluster", trace, sets=[f"platform.link.kind={kind}", "platform.link.buffer=4 KiB"]) for kind in ("switch", KIND)
    )
    assert drops.lost > 0
    assert asks.lost == asks.retransmissions == 0
    assert asks.delivered_bytes == drops.delivered_bytes
    assert asks.time_ps < drops.time_ps


def test_it_needs_a_buffer() -> None:
    for more in ({}, {"link.buffer": "0 B"}):
        with pytest.raises(UsageError, match=r"pausing-switch needs (a )?buffer.*, e.g. .*16KiB"):
            registry.platform("nt-cluster").with_overrides({"link.kind": KIND, **more})


def test_a_frame_that_comes_alone_is_an_interrupt_with_any_driver() -> None:
    def times(size: int, napi: int) -> float:
        question = Question("mpich", "xeon-2000*2@gigabit", pingpong([size], 2, 1), overrides=[f"platform.host.napi={napi}"])
        return float(simulate.benchmark(question)[0]["time_us"])

    assert times(1, 0) == times(1, 1)
    assert times(1 << 20, 1) < 0.9 * times(1 << 20, 0), "a kernel that is busy with one frame takes the next without another"


def on_a_pausing_switch(seed: int) -> Any:
    """A drawn program, on such a switch and half of the time with such drivers."""
    drawn, rng = draw_program(seed), random.Random(seed)
    mine = {"platform.link.kind": KIND, "platform.link.buffer": rng.choice(("1B", "100B", "2kB", "4000B", "20kB")),
            "platform.host.napi": rng.choice("01")}
    others = tuple(f"platform.link.{key}" for key in ("shape", "access", "rail"))
    kept = {key: value for key, value in drawn.sets if not key.startswith(others)}
    return replace(drawn, sets=tuple({**kept, **mine}.items()), fidelity="mechanism", network="native")


def test_drawn_programs_take_the_same_picoseconds_by_the_specification() -> None:
    first = random.SystemRandom().getrandbits(32)
    print(f"programs of the seeds from {first} on")
    tally = compare_programs(range(first, first + 80), 40, 20.0, on_a_pausing_switch)
    assert not tally.differences, tally.text()
    assert tally.compared > 3
