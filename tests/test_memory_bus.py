"""The processors of a host share its memory in copies, on every platform and every host of the library that has several."""

from __future__ import annotations

from functools import cache

import pytest
from cases import for_each
from engine_runs import job
from hypothesis import given
from hypothesis import strategies as st

from retrompi import _engine
from retrompi.sim import simulate
from retrompi.sim.result import Result
from retrompi.spec import registry
from retrompi.spec.host import Host
from retrompi.spec.machine import machines
from retrompi.spec.question import Question, Replay

ROOMS = [name for name in registry.platform_names() if registry.platform(name).hosts[0].cores > 1]
ROOMS += [f"{name}*2@switch-100" for name, machine in machines.hosts().items() if machine.quantities["cores"].value > 1]
THROUGH = ("wmpi", "mpibip", "nemesis")
"""Models whose ranks of one host copy through a pool, a ring, and queues in the caches."""


@cache
def host(room: str) -> Host:
    return registry.platform(room).hosts[0]


def several(room: str) -> list[int]:
    """Numbers of ranks on the first host: two, all its processors, and one between."""
    cores = int(host(room).cores)
    return sorted({2, (cores + 2) // 2, cores})


def run(room: str, *ranks: str, model: str = "mpibip") -> Result:
    result = simulate.run(Question(model, room, Replay(job(*ranks)), [0] * len(ranks)))
    assert result.outcome == "completed", result.detail
    assert (result.messages, result.bytes) == (result.delivered, result.delivered_bytes)
    return result


def took(result: Result) -> list[tuple[float, float]]:
    """When each rank passed its two marks (s)."""
    times: dict[int, list[float]] = {}
    for mark in result.marks:
        times.setdefault(mark["rank"], []).append(mark["time_s"])
    return [(a, b) for a, b in times.values()]


def rate(result: Result, copied: float) -> float:
    """Bytes a second from the first mark to the last."""
    times = took(result)
    return copied / (max(b for _, b in times) - min(a for a, _ in times))


def to_itself(size: int, times: int) -> str:
    """A long message to the rank itself is a copy and two calls."""
    return "# mark a; " + f"isend 0 0 {size} 6; recv 0 0 {size} 6; waitall; " * times + "# mark b"


def copying(room: str, ranks: int, size: int, times: int) -> Result:
    return run(room, *[to_itself(size, times).replace("isend 0", f"isend {r}").replace("recv 0", f"recv {r}") for r in range(ranks)])


def beyond(room: str) -> int:
    """A size that no cache holds any part of."""
    return int(max(16 * host(room).l2, 8 << 20))


@for_each("room", ROOMS)
def test_copies_of_all_processors_get_no_more_than_the_memory_has(room: str) -> None:
    size, h = beyond(room), host(room)
    alone = rate(copying(room, 1, size, 2), 2 * size)
    assert alone == pytest.approx(h.copy_mem, rel=0.02)
    for ranks in several(room):
        together = rate(copying(room, ranks, size, 2), 2 * size * ranks)
        assert together <= h.copy_mem * h.mem_streams * (1 + 1e-6)
        assert together == pytest.approx(alone * min(ranks, h.mem_streams), rel=0.02)  # and what it has, they get


@for_each("room", ROOMS)
def test_copies_within_the_caches_do_not_slow_each_other_down(room: str) -> None:
    size = int(host(room).l1 / 4)
    [alone] = [b - a for a, b in took(copying(room, 1, size, 50))]
    for ranks in several(room):
        assert [b - a for a, b in took(copying(room, ranks, size, 50))] == pytest.approx([alone] * ranks, rel=1e-9)


@for_each("model", THROUGH)
@for_each("room", ROOMS)
def test_pairs_that_send_in_one_direction_get_no_more_than_the_memory_has(room: str, model: str) -> None:
    size, h = beyond(room) // 4, host(room)
    for ranks in several(room):
        pairs = ranks // 2
        each = [f"# mark a; {f'{call} {{peer}} 0 {size} 6; ' * 3}# mark b" for call in ("send", "recv")]
        result = run(room, *[each[r % 2].format(peer=r ^ 1) for r in range(2 * pairs)], model=model)
        assert result.bytes == 3 * size * pairs
        assert rate(result, 3 * size * pairs) <= h.copy_mem * h.mem_streams * (1 + 1e-6)


SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=9)


def slow(shares: list[float], streams: float) -> list[float]:
    return [_engine.memory_slowdown(m, shares[:i] + shares[i + 1 :], streams) for i, m in enumerate(shares)]


@given(SHARES, st.floats(1, 12))
def test_the_law_never_gives_more_than_there_is_and_slows_nobody_without_need(shares: list[float], streams: float) -> None:
    factors = slow(shares, streams)
    assert sum(m / f for m, f in zip(shares, factors, strict=True)) <= streams * (1 + 1e-9)
    assert min(factors) >= 1
    if len(shares) <= streams:
        assert factors == [1] * len(shares)
    assert all(f == 1 for m, f in zip(shares, factors, strict=True) if m == 0)


@given(SHARES, st.floats(0, 1), st.floats(1, 12), st.floats(0, 3))
def test_one_more_neighbour_makes_nobody_faster_and_one_more_stream_nobody_slower(
    shares: list[float], more: float, streams: float, added: float
) -> None:
    before = slow(shares, streams)
    assert all(b >= a * (1 - 1e-9) for a, b in zip(before, slow([*shares, more], streams), strict=False))
    assert all(b <= a * (1 + 1e-9) for a, b in zip(before, slow(shares, streams + added), strict=True))


@given(st.floats(0, 1), st.floats(0, 1))
def test_two_customers_of_one_stream_are_those_of_mean_value_analysis(a: float, b: float) -> None:
    assert slow([a, b], 1) == pytest.approx([1 + a * b] * 2, rel=1e-12)
