"""Frames that the wire loses: what TCP, the daemons' datagrams and the cards make of it, and how a runtime ends that cannot."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from asking import ask
from cases import for_each
from engine_runs import job
from hypothesis import example, given, settings
from hypothesis import strategies as st

from retrompi.sim import simulate
from retrompi.sim.observe import Observe
from retrompi.spec import registry
from retrompi.spec.question import Question, Replay
from retrompi.traces import generate

TCP = [
    ("winmpich", "nt-pair"),
    ("hpvm", "nt-pair"),
    ("sockets", "nt-pair"),
    ("sockets", "nt-unix"),
    ("nemesis", "abe"),
    ("nemesis", "abe-windows"),
]
CARDS = [("mpibip", "myrinet-piii", "n1"), ("craympt", "cray-t3e", "pe0")]
SHORT = generate.pingpong([1024, 20000], 20)
BULK = job(
    "; ".join(f"isend 1 {i} 50000 6" for i in range(6)) + "; waitall 6; recv 1 9 300000 6",
    "; ".join(f"recv 0 {i} 50000 6" for i in range(6)) + "; send 0 9 300000 6",
)
FIRST = {"nt-pair": "server", "nt-unix": "server", "abe": "n1", "abe-windows": "n1"}


def run(model: str, platform: str, trace: Any, *downs: tuple[float, float | None], **more: Any) -> simulate.Result:
    """With the link of the first machine down from..to (seconds, None: for ever)."""
    link = f"link {FIRST.get(platform, 'n1' if platform == 'myrinet-piii' else 'pe0')}"
    if platform == "cray-t3e":
        link = "link pe0-pe1"
    failures = [f"{link}@{a:.12g}s..{'' if b is None else f'{b:.12g}s'}" for a, b in downs]
    return ask(model, platform, trace, failures=failures, limit_s=20000, **more)


@for_each("model, platform", [*TCP, ("wmpi", "nt-pair")])
def test_what_is_lost_for_a_second_comes_later(model: str, platform: str) -> None:
    alone = run(model, platform, BULK)
    at = 0.3 * alone.time_s
    broken = run(model, platform, BULK, (at, at + 1))
    assert (broken.outcome, broken.delivered, broken.delivered_bytes) == ("completed", alone.delivered, alone.bytes)
    assert broken.lost > 0
    assert broken.retransmissions > 0
    assert broken.time_s > at + 1
    # Whoever waits twice as long after each try finds the link up again after at most as long as it was down.
    assert broken.time_s < alone.time_s + 1 + 3 + 1.5
    assert broken.time_ps == run(model, platform, BULK, (at, at + 1)).time_ps


@for_each("model, platform", [*TCP, ("wmpi", "nt-pair")])
def test_a_link_that_is_down_later_changes_nothing(model: str, platform: str) -> None:
    alone, later = run(model, platform, SHORT), run(model, platform, SHORT, (10000, None))
    assert (later.time_ps, later.per_rank, later.retransmissions) == (alone.time_ps, alone.per_rank, 0)


@pytest.mark.parametrize(("tries", "longest"), [(5, "240 s"), (2, "240 s"), (5, "2 s")])
def test_nt_gives_a_connection_up_after_its_retransmissions(tries: int, longest: str) -> None:
    """The first after the timer's time, the others each after twice the time before, up to the longest; then once more that long."""
    sets = [f"platform.host.tcp_retries={tries}", f"platform.host.rto_max={longest}"]
    result = run("winmpich", "nt-pair", SHORT, (0.05, None), sets=sets)
    assert result.outcome == "aborted"
    assert f"was given up: a segment was sent again {tries} times and not acknowledged" in result.detail
    assert "the connection from proxy on " in result.detail
    assert "link server down from 0.05 s on" in result.detail
    assert result.retransmissions == tries
    timers = [min(0.3 * 2**i, float(longest.split()[0])) for i in range(tries + 1)]
    assert result.time_s == pytest.approx(0.05 + sum(timers), abs=0.05)


def test_the_timer_before_a_round_trip_is_known_is_the_first_one() -> None:
    result = run("winmpich", "nt-pair", SHORT, (0, None))
    assert result.outcome == "aborted"
    assert result.time_s == pytest.approx(3 * (2**6 - 1), rel=0.01)


def test_the_timer_follows_the_round_trips() -> None:
    """On a slow line a round trip takes longer than the shortest timer: what is on its way is not sent again."""
    slow = ["platform.link.latency=400 ms"]
    alone = run("winmpich", "nt-pair", SHORT, sets=slow)
    broken = run("winmpich", "nt-pair", SHORT, (alone.time_s / 2, alone.time_s / 2 + 0.01), sets=slow)
    assert broken.outcome == "completed"
    assert broken.retransmissions <= 6


def test_three_acknowledgements_without_news_are_enough() -> None:
    """One frame of a long stream is lost: TCP need not wait for its timer, which is a second here."""
    wide = ["platform.host.window=64KiB", "platform.host.sndbuf=64KiB", "platform.host.rto_min=1 s", "platform.host.nic_rate=1MB/s"]
    trace = job("send 1 0 2000000 6", "recv 0 0 2000000 6")
    alone = run("sockets", "nt-pair", trace, sets=[s for s in wide if "rto_min" not in s])  # nothing is lost: no timer
    at = alone.time_s / 2
    fast = run("sockets", "nt-pair", trace, (at, at + 1.5e-3), sets=wide)
    slow = run("sockets", "nt-pair", trace, (at, at + 1.5e-3), sets=[*wide, "platform.host.dup_acks=1000"])
    for result in (fast, slow):
        assert result.outcome == "completed"
        assert result.lost > 0
    assert fast.time_s < alone.time_s + 0.5
    assert slow.time_s > alone.time_s + 0.8


def _survived_s(platform: str) -> float:
    """The outage that TCP survives: at its end one of the times at which a segment is sent again is still to come."""
    host = registry.platform(platform).hosts[0]
    return float(host.rto_min * (2**host.tcp_retries - 1))


def test_an_outage_longer_than_all_retransmissions_ends_the_connection() -> None:
    lasting = _survived_s("nt-pair")
    assert run("winmpich", "nt-pair", SHORT, (0.04, 0.04 + 0.99 * lasting)).outcome == "completed"
    ended = run("winmpich", "nt-pair", SHORT, (0.04, 0.04 + 1.01 * lasting))
    assert ended.outcome == "aborted"
    assert "was given up: a segment was sent again 5 times" in ended.detail


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([*TCP, ("wmpi", "nt-pair")]),
    st.lists(st.integers(500, 1_500_000), min_size=2, max_size=40, unique=True).map(sorted),
    st.sampled_from([1.0, 0.3, 0.05]),
    st.sampled_from([SHORT, BULK]),
)
@example(("winmpich", "nt-pair"), [4086, 1_016_577], 1.0, SHORT)
def test_whatever_is_lost_every_byte_arrives_once(where: tuple[str, str], cuts: list[int], width: float, trace: Any) -> None:
    """The link is down again and again, for parts of the stretches between random millionths of the time that the job takes alone, all
    within an outage that TCP survives."""
    scale = min(run(*where, trace).time_s / 1e6, 0.99 * _survived_s(where[1]) / 1_500_000)
    downs = [(scale * a, scale * (a + (b - a) * width)) for a, b in list(pairwise(cuts))[::2]]
    result = run(*where, trace, *downs)
    assert result.outcome == "completed"
    assert (result.messages, result.bytes) == (result.delivered, result.delivered_bytes)
    assert sum(r["bytes_received"] for r in result.per_rank) == result.bytes
    assert result.retransmissions == 0 or result.lost > 0


def test_a_datagram_is_sent_again_by_the_daemon() -> None:
    """WMPI's daemons have a timer of half a second that doubles; TCP between task and daemon never leaves the machine."""
    result = run("wmpi", "nt-pair", SHORT, (0.05, 1.05))
    assert result.outcome == "completed"
    assert result.retransmissions == 2  # after 0.5 s, still down, and after 1 s more
    ever = run("wmpi", "nt-pair", SHORT, (0.05, None))
    assert ever.outcome == "aborted"
    assert "was not acknowledged after 10 retries" in ever.detail
    assert ever.lost == 11


@pytest.mark.parametrize(("model", "platform", "host"), CARDS)
def test_what_a_card_loses_is_lost(model: str, platform: str, host: str) -> None:
    alone = run(model, platform, BULK)
    result = run(model, platform, BULK, (alone.time_s / 3, alone.time_s / 3 + 1e-4))
    assert result.outcome == "deadlock"
    assert "link" in result.detail
    told = " ".join(result.diagnosis["told"])
    assert "lost on the wire and nobody sends " in told
    assert "the oldest: rank 0 to rank 1, tag" in told


def test_a_second_job_goes_on_when_the_first_loses_its_connection() -> None:
    from retrompi.spec.conditions.cojobs import JobSpec

    result = ask("winmpich", "nt-cluster", SHORT, "n1,n2", failures=["link n1@0.05s"], sets={"platform.link.kind": "switch"},
                 jobs=[JobSpec("winmpich", generate.pingpong([1024], 2000), "n3,n4")])
    assert result.outcome == "aborted"
    assert result.jobs[0]["outcome"] == "completed"
    assert result.jobs[0]["time_s"] > result.time_s


def test_an_anatomy_names_the_wait() -> None:
    """A round trip during which a frame is lost: the time until it is sent again is one of TCP's waits."""
    trip = "send 1 0 1000 6; recv 1 0 1000 6"
    trace = job(f"{trip}; # mark anatomy; {trip}; # mark end", "; ".join(["recv 0 0 1000 6; send 0 0 1000 6"] * 2))
    alone = simulate.run(Question("hpvm", "nt-pair", Replay(trace), "distributed"), Observe(anatomy=True))
    at = alone.marks[0]["time_s"]
    result = ask("hpvm", "nt-pair", trace, failures=[f"link server@{at}s..{at + 0.1}s"], anatomy=True)
    assert result.outcome == "completed"
    waited = sum(r["ps"] for r in result.anatomy if r["process"] == "tcp retransmission")
    assert waited > 0.2e12
    assert sum(r["ps"] for r in result.anatomy) == result.anatomy_ps
