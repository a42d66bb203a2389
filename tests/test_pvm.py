"""PVM 3.4: its routes and encodings, as far as they are mechanisms."""

from __future__ import annotations

import pytest
from asking import ask
from period_curves import GIGABIT, mbps, stages, time_of, times, total

from retrompi import traces
from retrompi.sim import simulate
from retrompi.spec.question import Question, Starts
from retrompi.traces import generate

DIRECT, IN_PLACE, RAW = "pvm.route=direct", "pvm.encoding=inplace", "pvm.encoding=raw"
FRAGMENT = 4080 - 16 - 32  # UDPMAXLEN without the headers of fragment and message


def test_every_fragment_waits_for_the_one_before_it() -> None:
    one, two, three = times("pvm", [FRAGMENT, FRAGMENT + 1, 2 * FRAGMENT + 1])
    assert two > one + 100  # an acknowledgement from pvmd to pvmd
    assert three - two == pytest.approx(times("pvm", [3 * FRAGMENT + 1])[0] - three, rel=0.2)


def test_a_longer_window_would_not_wait() -> None:
    assert mbps("pvm", 1 << 18, "pvm.udp_window=8") > 1.5 * mbps("pvm", 1 << 18)


def test_the_fragment_is_a_knee_of_the_direct_route_as_well_but_not_of_data_in_place() -> None:
    packed = times("pvm", [FRAGMENT, FRAGMENT + 1], sets=[DIRECT])
    in_place = times("pvm", [FRAGMENT, FRAGMENT + 1], sets=[DIRECT, IN_PLACE])
    assert packed[1] - packed[0] > 5 * abs(in_place[1] - in_place[0])


def test_each_step_of_the_three_is_faster() -> None:
    by_daemon, direct, in_place = (mbps("pvm", 1 << 20, *s) for s in ((), (DIRECT,), (DIRECT, IN_PLACE)))
    assert in_place > direct > 2 * by_daemon


def test_daemons_are_on_the_path_of_the_default_route_only() -> None:
    by_daemon, direct = stages("pvm", 1024), stages("pvm", 1024, DIRECT)
    assert {who for _, who, _ in by_daemon if who.startswith("pvmd")} == {"pvmd on n1", "pvmd on n2"}
    assert not any(who.startswith("pvmd") for _, who, _ in direct)
    assert total(by_daemon, "switch") > total(direct, "switch")


def test_packing_and_unpacking_copy_the_message() -> None:
    size = 1 << 20
    packed, in_place = stages("pvm", size, DIRECT, RAW), stages("pvm", size, DIRECT, IN_PLACE)
    assert total(in_place, "copy", "rank 0") < 0.7 * total(packed, "copy", "rank 0")
    alone = size / 350  # us at the memory's copy rate: what is received is unpacked in either case
    assert total(in_place, "copy", "rank 1") > 0.8 * alone


def test_only_words_are_converted_and_only_by_the_default_encoding() -> None:
    as_bytes = time_of("pvm", 1 << 16, DIRECT)
    assert time_of("pvm", 1 << 16, DIRECT, RAW) == as_bytes
    assert time_of("pvm", 1 << 16, DIRECT, "pvm.data=words") > 1.3 * as_bytes


def test_a_unix_socket_has_no_protocol_stack() -> None:
    unix, tcp = (stages("pvm", 1024, s, mode="shared") for s in ("pvm.local=unix", "pvm.local=tcp"))
    assert total(unix, "stack") == 0
    assert total(tcp, "stack") > 0


@pytest.mark.parametrize("route", ["daemon", "direct"])
def test_neighbours_and_strangers_share_a_daemon(route: str) -> None:
    trace = generate.generator("ring").make(ranks=4, size=20000, reps=2)
    result = ask("pvm", GIGABIT, trace, [0, 0, 1, 1], sets=[f"pvm.route={route}"])
    assert result.outcome == "completed", result.detail


def test_an_unexpected_message_is_unpacked_once() -> None:
    def run(first: str, second: str) -> float:
        text = f"1 init\n1 {first}\n1 {second}\n1 finalize\n"
        sender = "0 init\n0 send 1 0 1000000 6\n0 send 1 1 0 6\n0 finalize\n"
        trace = traces.Trace.parse([(sender.encode(), "a", 0), (text.encode(), "b", 1)])
        return ask("pvm", GIGABIT, trace, sets=[DIRECT, IN_PLACE]).time_s

    posted = run("recv 0 0 1000000 6", "recv 0 1 0 6")
    unexpected = run("recv 0 1 0 6", "recv 0 0 1000000 6")
    assert unexpected == pytest.approx(posted, rel=0.02)


def test_a_lost_datagram_is_sent_again_after_twice_the_round_trip_first_assumed() -> None:
    trace = generate.generator("pingpong").make(sizes=[200000], reps=1)
    result = ask("pvm", GIGABIT, trace, sets=["pvm.loss=0.02"])
    assert result.retransmissions > 0
    assert result.time_s > 2


def test_a_console_and_rsh_start_the_daemons() -> None:
    told = simulate.startup(Question("pvm", GIGABIT, Starts(2)))
    assert told["daemons"] == 2
    assert told["manual_steps_per_job"] == 2
