"""lmbench on simulated hosts: every published row is there once, inputs come out again, near predictions stay near."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from refusals import agrees

from retrompi.papers.fit import lmbench

PREDICTED = {
    "latency_pipe_roundtrip": (5, 8),
    "bandwidth_TCP_loopback": (5, 7),
    "latency_UDP_loopback_roundtrip": (2, 7),
    "context_switch_2proc_32K": (3, 7),
    "latency_TCP_roundtrip": (2, 3),
    "latency_UDP_roundtrip": (5, 7),
    "bandwidth_TCP": (0, 7),
}
"""Observable -> (predictions within 15 %, all); docs/transfer.md says what the others miss."""


@pytest.fixture(scope="module")
def table() -> list[dict[str, Any]]:
    return lmbench.table()


def test_every_published_row_is_compared_once(table: list[dict[str, Any]]) -> None:
    assert sorted(r["id"] for r in table) == [f"LM96-{n:03}" for n in range(1, 88)]


def test_a_number_that_a_host_was_taken_from_comes_out_of_it_again(table: list[dict[str, Any]]) -> None:
    off = {r["id"]: r["error"] for r in table if r["use"] == "input" and abs(r["error"]) > 0.03}
    assert not off


def test_the_first_four_systems_are_fitted_to_and_the_others_are_not(table: list[dict[str, Any]]) -> None:
    """The order is that of evidence.csv: nobody chose them."""
    local = [s for s in lmbench.systems() if not s.remote]
    first = sorted(local, key=lambda s: min(s.ids.values()))
    assert [s.role for s in first] == ["fitted"] * 4 + ["nothing"] * 4
    assert {s.name for s in lmbench.systems() if s.remote and s.role != "nothing"} == {"Sun Ultra (sun4u@167), SunOS 5.5"}  # Sun Ultra1
    assert {r["observable"] for r in table if r["use"] == "fitted"} == {"latency_pipe_roundtrip"}


def test_predictions(table: list[dict[str, Any]]) -> None:
    found = {o: (n["near"], n["of"]) for o, n in lmbench.summary(table)["observables"].items()}
    assert {o: of for o, (_, of) in found.items()} == {o: of for o, (_, of) in PREDICTED.items()}
    assert all(found[o][0] >= near for o, (near, _) in PREDICTED.items()), found


def test_systems_with_everything_within_15_percent(table: list[dict[str, Any]]) -> None:
    told = lmbench.summary(table)
    assert len(told["listed_near"]) >= 4, told
    assert len(told["listed_near_unused"]) >= 2, told


@pytest.mark.parametrize(
    ("key", "observable"),
    [("syscall", "null_system_call"), ("dispatch", "context_switch_2proc_0K"), ("copy_mem", "bcopy")],
)
def test_a_host_twice_as_fast_is_twice_as_fast(key: str, observable: str) -> None:
    units = {"syscall": "2 us", "dispatch": "3 us", "copy_mem": f"{2 * 59.77} MB/s"}
    factor = lmbench.one("linux-i686", observable, [f"platform.host.{key}={units[key]}"]) / lmbench.one("linux-i686", observable)
    assert factor == pytest.approx(2 if key == "copy_mem" else 0.5, rel=1e-3)


@pytest.mark.parametrize(
    ("host", "published", "least", "most"),
    [("nt4-alpha-533", 29.6, -0.15, 0.15), ("nt4-p2-333", 27.5, -0.3, 0), ("linux-p2-333", 26.3, -0.3, 0), ("linux-p54-150", 12, -0.4, 0)],
)
def test_tcp_over_gigabit_ethernet_of_1998(host: str, published: float, least: float, most: float) -> None:
    """GE98-001 to GE98-004, which nothing was taken from: one of four is within 15 %, the others are too slow (docs/transfer.md)."""
    error = lmbench.one(f"{host}*2@gigabit", "bandwidth_TCP") * lmbench.MB / 1e6 / published - 1
    assert least <= error <= most


def test_the_command(retrompi: Callable[..., Any]) -> None:
    alone = retrompi("lmbench", "-p", "linux-i686", "--json")
    assert alone.code == 0
    assert {r["observable"] for r in json.loads(alone.out)} >= {"null_system_call", "bandwidth_TCP_loopback"}
    pair = retrompi("lmbench", "-p", "sun-ultra1*2@hub-100", "--json")
    assert {r["observable"] for r in json.loads(pair.out)} == set(lmbench.OBSERVABLES)


def test_what_the_command_refuses(retrompi: Callable[..., Any]) -> None:
    unknown = retrompi("lmbench", "-p", "linux-i687")
    assert unknown.code == 2
    agrees(unknown, "unknown-platform | 'linux-i687'")
    both = retrompi("lmbench", "-p", "linux-i686", "--fit")
    assert both.code == 2
    agrees(both, "conflicting-options | --fit")
