"""MPICH-GM: eager copies through registered buffers, directed sends behind a registration cache, polling and blocking receives."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.model import model_values
from retrompi.spec.question import Question, Starts, pingpong

PCS = "p4-1800*2@myrinet-pci64a"


def times(model: str, sizes: Sequence[int], *sets: str, warm_up: int = 1) -> dict[int, float]:
    """Size -> one-way time, us."""
    rows = simulate.benchmark(Question(model, PCS, pingpong(list(sizes), 2, warm_up), overrides=list(sets)))
    return {r["size_B"]: r["time_us"] for r in rows}


def test_its_library_is_mpichs_and_its_wire_is_gms() -> None:
    values = model_values(registry.model("mpichgm")).settings
    assert values["library"].value == model_values(registry.model("cheui")).settings["library"].value
    assert values["overhead"].value == model_values(registry.model("gm")).settings["overhead"].value
    low = times("mpichgm", [0])[0] - times("gm", [0])[0]
    assert 0.3 < low < 3  # a fast processor: less than the 12 us of the SP1


def test_messages_ask_from_16288_bytes_on() -> None:
    got = times("mpichgm", [16287, 16288, 32768])
    below = times("gm", [16288, 32768])
    extra = {n: got[n] - below[n] for n in below}
    assert got[16288] > got[16287]
    assert extra[16288] == pytest.approx(extra[32768], rel=0.1)  # RTS, CTS and the message behind the data, whatever the length
    assert extra[16288] > 2 * times("gm", [0])[0]
    assert times("mpichgm", [32768], "mpichgm.eager=64 KiB")[32768] > got[32768]  # copies cost more than asking


def test_an_eager_copy_finds_its_data_in_memory() -> None:
    got = times("mpichgm", [8192])[8192]
    warm = times("mpichgm", [8192], "mpichgm.tokens=1", "mpichgm.eager=16 KiB")[8192]
    slow = times("mpichgm", [8192], "platform.host.copy_mem=100 MB/s")[8192]
    assert slow > got > warm


def test_registered_memory_stays_registered() -> None:
    sets = ["mpichgm.pin=50 us"]
    first, again = (times("mpichgm", [65536], *sets, warm_up=w)[65536] for w in (0, 1))
    never = times("mpichgm", [65536], *sets, "mpichgm.cache=no")[65536]
    assert first > again + 20
    assert never > again + 50
    assert times("mpichgm", [65536])[65536] == again  # nothing is pinned any more, whatever it costs
    assert times("mpichgm", [8192], *sets, warm_up=0) == times("mpichgm", [8192], warm_up=0)  # eager buffers are registered at the start


def test_the_message_behind_the_data_is_paid() -> None:
    plain = times("mpichgm", [65536], "mpichgm.done=0 B")[65536]
    assert 0.2 < times("mpichgm", [65536])[65536] - plain < 20


def test_the_sender_registers_the_next_part_while_the_last_one_leaves() -> None:
    whole, parts = (times("mpichgm", [4 << 20], f"mpichgm.put={n}", "mpichgm.cache=no")[4 << 20] for n in ("8 MiB", "256 KiB"))
    assert parts < whole


def test_a_blocking_receive_sleeps_until_the_card_interrupts() -> None:
    polling, blocking = times("mpichgm", [0])[0], times("mpichgm", [0], "mpichgm.receive=blocking")[0]
    assert 4 < blocking - polling < 20
    assert times("mpichgm", [0], "mpichgm.receive=blocking", "platform.host.interrupt=17 us")[0] > blocking + 9


def test_on_a_host_it_uses_shared_memory_unless_it_sleeps() -> None:
    two = "myrinet-piii"
    shared = simulate.benchmark(Question("mpichgm", two, pingpong([0, 1024], 2, 1), "shared", ["platform.host.cores=2"]))
    apart = simulate.benchmark(Question("mpichgm", two, pingpong([0, 1024], 2, 1)))
    assert all(s["time_us"] < a["time_us"] for s, a in zip(shared, apart, strict=True))


def test_a_card_has_five_ports() -> None:
    few, many = (simulate.startup(Question("mpichgm", "myrinet-piii", Starts(n, 2), "shared")) for n in (5, 6))
    assert (few["failure_rate"], many["failure_rate"]) == (0, 1)
