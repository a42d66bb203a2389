"""Frames queue: closed forms of the textbook, a second implementation of the law, what holds for any frames (fluid: test_wire.py)."""

from __future__ import annotations

import heapq
import math
import random
import statistics
from itertools import pairwise
from typing import Any

import pytest
from asking import ask
from cases import for_each
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from links import link

from retrompi import _engine
from retrompi.base.errors import UsageError
from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.question import Question, Replay
from retrompi.traces import generate

US, MS, S = 10**6, 10**9, 10**12  # picoseconds
RATE, LATENCY = 1.25e6, 5 * US  # 10 Mbit/s
FRAME = 1500
T = FRAME * S // int(RATE)
Flow = tuple[int, int, int, int]  # start, from, to, bytes


def carry(
    kind: str, shape: list[int], hosts: int, flows: list[Flow], wire: str = "native", seed: int = 1, ahead: Any = (), **more: Any
) -> list[int]:
    return _engine.carry(wire, link(kind, shape, RATE, LATENCY / S, **more), list(range(hosts)), flows, seed=seed, ahead=ahead)


# --- closed forms -----------------------------------------------------------------------------------------------------------------


def test_two_flows_into_one_port_take_turns() -> None:
    """Each sends 200 frames back to back from 0 on: the port serves them alternately, one every T after the first byte has come."""
    flows = [(0, source, 2, FRAME) for _ in range(200) for source in (0, 1)]
    assert carry("switch", [], 3, flows) == [2 * LATENCY + T * n for n in range(1, 401)]


@pytest.mark.parametrize("senders", [2, 8, 32])
def test_incast_is_served_in_the_order_of_sending(senders: int) -> None:
    flows = [(0, source, senders, FRAME) for source in range(senders)]
    assert carry("switch", [], senders + 1, flows) == [2 * LATENCY + T * n for n in range(1, senders + 1)]


@for_each("room, kept", [(1, 1), (FRAME, 2), (4 * FRAME + 1, 5), (31 * FRAME, 32), (0, 32)])
def test_incast_into_a_small_buffer_keeps_one_frame_and_those_that_find_room(room: int, kept: int) -> None:
    """All come at one time: the first is on the port at once, the buffer takes as many as fit; 0 is no bound."""
    got = carry("switch", [], 33, [(0, source, 32, FRAME) for source in range(32)], buffer=float(room))
    assert sum(t >= 0 for t in got) == kept
    assert [t for t in got if t >= 0] == [2 * LATENCY + T * n for n in range(1, kept + 1)]
    assert all(-2 - t == LATENCY for t in got if t < 0)  # dropped when they came to the port


def test_three_stations_of_a_hub_get_a_third_each() -> None:
    """Station 0 has its frames ready before the others: it gets no more than its turn."""
    flows = [(0, 0, 3, FRAME)] * 50 + [(1, 1, 3, FRAME)] * 50 + [(2, 2, 3, FRAME)] * 50
    got = carry("hub", [], 4, flows)
    for station in range(3):
        assert got[50 * station : 50 * station + 50] == [LATENCY + T * (3 * n + station + 1) for n in range(50)]


@pytest.mark.parametrize("kind", ["switch", "hub"])
@pytest.mark.parametrize("load", [0.3, 0.7])
def test_poisson_frames_wait_as_long_as_in_an_m_d_1_queue(kind: str, load: float) -> None:
    """Pollaczek-Khinchine: the mean wait is load T / 2 (1 - load). Each frame has another sender, so that only the port is shared."""
    draw, at, flows = random.Random(4), 0.0, []
    for n in range(400_000):
        at += draw.expovariate(load / T)
        flows.append((int(at), n % 64, 64, FRAME))
    alone = T + LATENCY * (2 if kind == "switch" else 1)
    waits = [t - f[0] - alone for t, f in zip(carry(kind, [], 65, flows), flows, strict=True)]
    assert statistics.fmean(waits) == pytest.approx(load * T / (2 * (1 - load)), rel=0.01)


def test_a_slow_line_spaces_frames_and_a_fast_link_behind_it_adds_nothing() -> None:
    slow = {"wan_bandwidth": RATE / 5, "wan_latency": 1e-3}
    got = carry("wan", [0, 1], 2, [(0, 0, 1, FRAME)] * 40, **slow)
    assert got == [2 * LATENCY + MS + 5 * T * n for n in range(1, 41)]


@for_each("flows", [
    [("a", 0, 2), ("b", 1, 2)],
    [("a", 0, 3), ("b", 1, 3), ("c", 2, 3)],
    [("a", 0, 1), ("b", 1, 2), ("c", 2, 0)],
    [("a", 0, 3), ("b", 0, 3)],
])
@for_each("kind", ["switch", "hub"])
def test_long_flows_end_when_they_do_under_the_fluid_law(kind: str, flows: list[tuple[str, int, int]]) -> None:
    """1,000 frames each beside one fluid flow of as many bytes."""
    frames = [(0, a, b, FRAME) for _ in range(1000) for _, a, b in flows]
    queued = carry(kind, [], 4, frames)
    fluid = carry(kind, [], 4, [(0, a, b, 1000 * FRAME) for _, a, b in flows], wire="fluid")
    for n, end in enumerate(fluid):
        assert max(queued[n :: len(flows)]) == pytest.approx(end, rel=0.01)


def test_a_flow_over_two_crowded_links_gets_less_than_its_max_min_share() -> None:
    """The parking lot: on the first link the long flow gets half; on the second its frames come at half the rate of the short flow's and
    get a third. Senders that do not hold back are served in proportion to what they send; the fluid law says a half."""
    n = 3000
    frames = [f for _ in range(n) for f in ((0, 0, 2, FRAME), (0, 0, 1, FRAME), (0, 1, 2, FRAME))]
    got = carry("torus", [5], 5, frames)  # 0 -> 2 goes over 1
    until = 4000 * T
    long, short = (sum(0 <= t <= until for t in got[k::3]) for k in (0, 2))
    assert long / short == pytest.approx(1 / 2, rel=0.01)


def test_two_stations_that_collide_resolve_it_in_the_time_of_the_exponential_back_off() -> None:
    """After the n-th collision both draw one of m = 2^n slots. They differ with probability 1 - 1/m, and the sooner one then starts after
    (m - 2) / 3 slots on average; else they collide again after (m - 1) / 2. A collision takes a slot."""

    def slots(n: int) -> float:
        m = 2 ** min(n, 10)
        return 1 + ((m - 1) / 2 + (slots(n + 1) if n < 15 else 0.0)) / m + (1 - 1 / m) * (m - 2) / 3

    trials, apart = 40_000, 100 * MS
    flows = [(k * apart, source, 2, FRAME) for k in range(trials) for source in (0, 1)]
    got = carry("hub", [], 3, flows, access="csma-cd", seed=7)
    slot = 512 * S // int(8 * RATE)
    first = [(min(got[2 * k : 2 * k + 2]) - k * apart - T - LATENCY) / slot for k in range(trials)]
    assert statistics.fmean(first) == pytest.approx(slots(1), rel=0.01)
    assert all(t > 0 for t in got)


def test_csma_cd_without_contention_is_first_come_first_served() -> None:
    flows = [(k * 5 * T, k % 3, 3, FRAME) for k in range(30)]
    assert carry("hub", [], 4, flows, access="csma-cd") == carry("hub", [], 4, flows)


# --- a second implementation of the law ------------------------------------------------------------------------------------------------

LINE_RATE, LINE_LATENCY = 0.3e6, 3 * MS
SITES = [0, 0, 1, 1, 1, 2]


def _way(kind: str, a: int, b: int) -> list[tuple[Any, int, float]]:
    """The links from one host to another: name, latency (ps), rate."""
    if kind == "torus":  # a ring of five
        right = (b - a) % 5 <= 2
        steps = (b - a) % 5 if right else (a - b) % 5
        card = (("card", a), 0, RATE)  # others cross the first link too: its own frames come there one after another
        return [card, *(((a + (k if right else -k)) % 5 * 2 + (not right), LATENCY, RATE) for k in range(steps))]
    up, down = (("up", a), LATENCY, RATE), (("down", b), LATENCY, RATE)
    if kind == "wan" and SITES[a] != SITES[b]:
        return [up, ((SITES[a], SITES[b]), LINE_LATENCY, LINE_RATE), down]
    return [up, down]


ROUNDED = 200
"""Picoseconds by which a time may be off that was rounded on every link."""


def plainly(kind: str, flows: list[Flow], sent: list[int]) -> list[float]:
    """Every first byte is an event; each link serves in the order of these. ``sent``: when each frame was handed to the wire.

    Refuses (`assume`) what rounding decides: two first bytes that come to a link at one time, one of them at a rounded time.
    """
    order = {i: n for n, i in enumerate(sorted(range(len(flows)), key=lambda i: (sent[i], i)))}
    free: dict[Any, float] = {}
    came: dict[Any, tuple[float, bool]] = {}
    rounded, rounds = set(), set()  # frames whose first byte has a rounded time; links that are free at one
    arrived = [0.0] * len(flows)
    events = [(float(at), order[i], i, 0, float(at)) for i, (at, *_) in enumerate(flows)]
    heapq.heapify(events)
    while events:
        head, n, i, hop, tail = heapq.heappop(events)
        way = _way(kind, flows[i][1], flows[i][2])
        if hop == len(way):
            arrived[i] = tail
            continue
        name, latency, rate = way[hop]
        before, was_rounded = came.get(name, (-math.inf, False))
        assume(head - before > ROUNDED or not (was_rounded or i in rounded))
        came[name] = head, i in rounded
        start = max(head, free.get(name, 0.0))
        if start > head:
            (rounded.add if name in rounds else rounded.discard)(i)
        takes = flows[i][3] / rate * S
        end = max(start + takes, tail)
        (rounds.discard if i not in rounded and takes.is_integer() and end.is_integer() else rounds.add)(name)
        free[name] = end
        heapq.heappush(events, (start + latency, n, i, hop + 1, end + latency))
    return arrived


@st.composite
def crowds(draw: Any, kinds: tuple[str, ...]) -> tuple[str, list[int], int, list[Flow], list[int]]:
    kind = draw(st.sampled_from(kinds))
    shape, hosts = {"wan": (SITES, 6), "torus": ([5], 5)}.get(kind, ([], 6 if kind != "cable" else 2))
    seed, count, spread = draw(st.integers(0, 1 << 30)), draw(st.integers(1, 120)), draw(st.sampled_from([1, 300, 20_000, 400_000]))
    rng = random.Random(seed)
    flows, ahead = [], []
    for _ in range(count):
        a, b = rng.sample(range(hosts), 2)
        flows.append((rng.randrange(spread) * US, a, b, rng.choice((60, 84, 1538, 1538, rng.randrange(1, 5000)))))
        ahead.append(rng.choice((0, 0, rng.randrange(1, 2000) * US)))
    return kind, shape, hosts, flows, ahead


LINE = {"wan_bandwidth": LINE_RATE, "wan_latency": LINE_LATENCY / S}


@settings(max_examples=150, deadline=None)
@given(crowds(("switch", "wan", "torus")))
def test_frames_planned_ahead_arrive_as_if_every_first_byte_were_an_event(crowd: tuple[str, list[int], int, list[Flow], list[int]]) -> None:
    kind, shape, hosts, flows, ahead = crowd
    sent = [max(0, f[0] - a) for f, a in zip(flows, ahead, strict=True)]
    got = carry(kind, shape, hosts, flows, ahead=ahead, **LINE)
    assert max(abs(a - b) for a, b in zip(got, plainly(kind, flows, sent), strict=True)) <= ROUNDED


# --- what holds for any frames -----------------------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(crowds(("cable", "hub", "switch", "wan", "torus")), st.sampled_from([0.0, 1600.0, 20_000.0]), st.sampled_from(["fifo", "csma-cd"]))
def test_no_frame_overtakes_another_of_its_path_and_none_is_made_or_lost(
    crowd: tuple[str, list[int], int, list[Flow], list[int]], buffer: float, access: str
) -> None:
    kind, shape, hosts, flows, ahead = crowd
    got = carry(kind, shape, hosts, flows, ahead=ahead, buffer=buffer, access=access, **LINE)
    sent = [max(0, f[0] - a) for f, a in zip(flows, ahead, strict=True)]
    alone = [carry(kind, shape, hosts, [f], **LINE)[0] for f in flows]
    if buffer == 0 or kind in ("cable", "hub"):
        assert min(got) >= 0  # bytes in are bytes out
    assert all(t >= a for t, a in zip(got, alone, strict=True) if t >= 0)
    for a, b in {f[1:3] for f in flows}:
        pair = sorted((f[0], s, i) for i, (f, s) in enumerate(zip(flows, sent, strict=True)) if f[1:3] == (a, b))
        arrived = [(got[i], flows[i][3]) for *_, i in pair if got[i] >= 0]
        for (before, _), (after, size) in pairwise(arrived):
            assert after - before >= size / RATE * S - ROUNDED  # and each has the last link to itself


# --- runs ---------------------------------------------------------------------------------------------------------------------------------


def test_incast_overflows_a_small_buffer_and_tcp_sends_again() -> None:
    trace = generate.all_at_once(6, 30_000)
    free = ask("mpich", "nt-cluster", trace, sets=["platform.link.kind=switch"])
    small = ask("mpich", "nt-cluster", trace, sets=["platform.link.kind=switch", "platform.link.buffer=4 KiB"])
    assert (free.outcome, small.outcome) == ("completed", "completed")
    assert free.lost == free.retransmissions == 0
    assert small.lost > 0
    assert small.retransmissions > 0
    assert small.delivered_bytes == free.delivered_bytes
    assert small.time_ps > free.time_ps


def test_collisions_on_a_hub_cost_time_and_are_drawn_by_the_seed() -> None:
    trace = generate.all_at_once(4, 5000)
    turns = simulate.run(Question("mpich", "nt-cluster", Replay(trace)))
    first, again, other = (
        simulate.run(Question("mpich", "nt-cluster", Replay(trace), overrides=["platform.link.access=csma-cd"], seed=s)) for s in (1, 1, 2)
    )
    assert {r.outcome for r in (turns, first, again, other)} == {"completed"}
    assert first.time_ps == again.time_ps != other.time_ps
    assert turns.time_ps < min(first.time_ps, other.time_ps)


@for_each("sets", [{"link.access": "csma"}, {"link.access": "token"}, {"link.buffer": "-1 B"}, {"link.buffer": "many"},
                                  {"link.buffer": "4 KiB"}, {"link.kind": "switch", "link.access": "csma-cd"}])
def test_a_wrong_rule_or_buffer_is_refused_in_one_line(sets: dict[str, str]) -> None:
    with pytest.raises(UsageError) as caught:
        registry.platform("nt-cluster").with_overrides(sets)
    assert "\n" not in str(caught.value)
