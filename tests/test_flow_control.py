"""A switch that asks its senders to pause (IEEE 802.3x), and drivers that poll while frames come (NAPI)."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from asking import ask
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from test_critical_path import ON, _length_of_chain, _predicted, _run_of, _tiles
from test_queues import FRAME, LATENCY, RATE, ROUNDED, Flow, S, T, carry, crowds

from retrompi.base.errors import UsageError
from retrompi.base.units import PS
from retrompi.reference.programs import DrawnProgram, compare_programs, draw_program
from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.question import Beside, Question, Replay, pingpong
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


# -- the critical path ------------------------------------------------------------------------------------------------------------

QUICK = ["platform.host.interrupt=0.1us", "platform.host.tcp_segment=0.1us", "platform.host.syscall=0.1us"]
"""A host on which the links are what is slow."""


def path_of(kind: str, buffer: str, **more: Any) -> Any:
    sets = [*QUICK, f"platform.link.kind={kind}", f"platform.link.buffer={buffer}"]
    question = Question("mpich", "xeon-2000*4@gigabit", Replay(generate.all_at_once(4, 60_000)), "distributed", sets, **more)
    return simulate.run(question, ON)


@for_each("field", ["bandwidth", "latency"])
def test_its_critical_path_is_a_switch_s_as_long_as_nobody_is_asked(field: str) -> None:
    """Also where frames wait for the link of their own card: it is what had the link that is on the path."""
    switch, asks = (path_of(kind, "1000000B").critical_path for kind in ("switch", KIND))
    assert asks.shares() == switch.shares()
    assert asks.unfollowed == switch.unfollowed
    change = {("link", 0, field, 0): 1e-9}
    assert asks.time_change(change) == switch.time_change(change)
    assert asks.time_change(change)[0] != 0


@for_each("begin", [0.7, 1.1, 1.5])
def test_its_critical_path_is_as_long_as_the_run_where_a_link_fails(begin: float) -> None:
    for buffer in ("1B", "2000B", "1000000B"):
        failures = f"link n2@{begin}ms..{begin + 0.2}ms", f"{KIND}@{begin + 0.4}ms..{begin + 0.5}ms"
        got = path_of(KIND, buffer, beside=Beside(failures=failures))
        assert got.outcome == "completed", got.detail
        assert got.lost > 0
        _tiles(got.critical_path, got.time_ps)
        assert ("senders that a switch asked to pause" in got.critical_path.unfollowed) == (buffer != "1000000B")


def test_a_frame_that_comes_when_the_kernel_has_just_ended_is_not_predicted_to_need_an_interrupt() -> None:
    """The second sender's frame comes to a process that computes; 0.01 of a cost later, the kernel would still be at work."""
    seen = 0
    for late in range(1500, 3000, 150):
        lines = ("compute 1e7", "recv 1 0 8 6", "recv 2 0 8 6"), ("send 0 0 8 6",), (f"compute {late}", "send 0 0 8 6")
        run = _run_of(DrawnProgram("mpich", "xeon-2000*4@gigabit", (0, 1, 2), lines, sets=(("platform.host.napi", "1"),)), 0)
        assert run is not None
        number, rounding = ("host", 0, "interrupt", 0), _length_of_chain(run) + 2
        places = run.places()[number]
        for step in (0.01, 0.1) if not run.path.unfollowed else ():
            predicted, in_order = _predicted(run, number, places, step)
            time = run.time_with(places, places[0][1] * step)
            assert time is not None
            if time - run.time_ps != pytest.approx(predicted / PS, abs=rounding):
                seen += 1
                assert not in_order, (late, step)
    assert seen
