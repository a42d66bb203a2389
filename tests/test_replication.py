"""Copying a disk to many machines: the pipeline, its closed form, trees, and the study's own figures."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from cases import for_each
from hypothesis import given, settings
from hypothesis import strategies as st
from paper_code import experiment
from refusals import refused

from retrompi.base.errors import UsageError
from retrompi.papers.statements import claims

replication_task, disk_replication = (experiment("lefevre-westrelin", name) for name in ("_replication_task", "_disk_replication"))
Copy, closed_form, levels = disk_replication.Copy, disk_replication.closed_form, disk_replication.levels
network_rate, replicate, simulate_chain = disk_replication.network_rate, disk_replication.replicate, disk_replication.simulate_chain
copies = st.builds(
    Copy,
    chunks=st.integers(1, 60),
    chunk=st.just(1e6),
    disk=st.floats(1e6, 1e9),
    network=st.floats(1e6, 1e9),
    extra_s=st.floats(0, 10),
    buffers=st.integers(2, 6),
)


def slow_but_plain(copy: Copy, machines: int, fan_out: int) -> float:
    """The same pipeline, machine by machine and chunk by chunk, in the words of the module's documentation."""
    depth, n, b = levels(machines, fan_out), copy.chunks, copy.buffers
    net, disk = min(fan_out, machines) * copy.chunk / copy.network, copy.chunk / copy.disk
    got: dict[tuple[int, int], float] = {}
    done: dict[tuple[int, int], float] = {}
    never = float("-inf")
    for wave in range(1, n + depth):
        for level in range(1, depth + 1):
            c = wave - level
            if not 0 <= c < n:
                continue
            # The master sends a chunk while it reads it.
            start = max(c * disk, got.get((1, c - b), never)) if level == 1 else done[level - 1, c]
            start = max(start, got.get((level, c - 1), never))  # the card
            start = max(start, done.get((level, c - b), never), got.get((level + 1, c - b), never))  # a buffer
            got[level, c] = start + net
            written = max(start, done.get((level, c - 1), never)) + disk
            done[level, c] = max(got[level, c], written, (c + 1) * disk if level == 1 else never)
    return done[depth, n - 1] + copy.extra_s


@settings(max_examples=150, deadline=None)
@given(copies, st.integers(1, 40), st.integers(1, 4))
def test_the_diagonals_give_what_following_every_chunk_gives(copy: Copy, machines: int, fan_out: int) -> None:
    assert simulate_chain(copy, machines, fan_out) == pytest.approx(slow_but_plain(copy, machines, fan_out), rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(copies, st.integers(1, 200))
def test_the_pipeline_equals_its_closed_form_on_even_machines(copy: Copy, machines: int) -> None:
    assert simulate_chain(copy, machines) == pytest.approx(closed_form(copy, machines), rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(copies, st.integers(1, 100), st.floats(1.01, 10))
def test_faster_parts_and_fewer_machines_never_take_longer(copy: Copy, machines: int, factor: float) -> None:
    time = simulate_chain(copy, machines)
    assert simulate_chain(copy, machines + 1) >= time
    for name in ("disk", "network"):
        faster = Copy(**{**copy.__dict__, name: getattr(copy, name) * factor})
        assert simulate_chain(faster, machines) <= time * (1 + 1e-12)
    assert time >= copy.extra_s + copy.chunks * copy.chunk / min(copy.disk, copy.network) * (1 - 1e-12)


def test_a_tree_beats_the_chain_when_there_are_many_machines_and_loses_when_the_card_is_the_limit() -> None:
    copy = Copy(chunks=500, chunk=1e6, disk=30e6, network=100e6)
    assert simulate_chain(copy, 1000, 3) < simulate_chain(copy, 1000) / 2
    few = Copy(chunks=500, chunk=1e6, disk=100e6, network=30e6)
    assert simulate_chain(few, 7, 3) > simulate_chain(few, 7)


@for_each(
    "machines, fan_out, expected", [(7, 1, 7), (1, 2, 1), (2, 2, 1), (3, 2, 2), (6, 2, 2), (7, 2, 3), (12, 3, 2)]
)
def test_levels_of_a_tree(machines: int, fan_out: int, expected: int) -> None:
    assert levels(machines, fan_out) == expected


def test_beyond_the_limit_only_the_closed_form_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    copy = Copy(chunks=100, chunk=1e6, disk=30e6, network=100e6)
    both = replicate(copy, 50)
    assert both["simulated_s"] == pytest.approx(both["closed_form_s"])
    monkeypatch.setattr(disk_replication, "LIMIT_CELLS", 1000)
    row = replicate(copy, 50)
    assert row["simulated_s"] is None
    assert row["time_s"] == row["closed_form_s"] == both["closed_form_s"]


@for_each(
    "bad", [{"chunks": 0}, {"chunk": 0.0}, {"disk": -1.0}, {"network": 0.0}, {"buffers": 1}]
)
def test_a_copy_that_cannot_be_made_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Copy(**{"chunks": 10, "chunk": 1e6, "disk": 30e6, "network": 100e6, **bad})
    for machines, fan_out in ((0, 1), (5, 0)):
        with pytest.raises(UsageError):
            levels(machines, fan_out)


# --- the networks


def test_a_relay_is_slower_than_a_receiver_and_the_wire_limits_ethernet() -> None:
    for name in disk_replication.NETWORKS:
        relay, one_way = (network_rate(name, "myrinet-piii", 1_000_000, relayed=r) for r in (True, False))
        assert 0 < relay < one_way
    assert one_way < 12.5e6 if name == "fast-ethernet" else one_way > 12.5e6
    with refused(UsageError, "unknown-name"):
        network_rate("token-ring", "myrinet-piii", 1000)


def test_the_relays_rate_falls_with_a_slower_processor() -> None:
    fast = network_rate("myrinet", "myrinet-piii", 1_000_000)
    slow = network_rate("myrinet", "myrinet-piii", 1_000_000, sets=("platform.host.tcp_byte=10 ns/B",))
    assert slow < fast


# --- the study


def test_the_task_is_what_the_paper_says() -> None:
    task = replication_task.task()
    assert (task.chunks, task.chunk, task.machines) == (5000, 1e6, 7)


def test_the_fitted_disk_reproduces_the_fitted_time_inside_its_range() -> None:
    disks, goal = claims.find("LW-R-01"), claims.find("LW-R-06")
    assert disks.low is not None
    assert disks.high is not None
    disk = replication_task.fitted_disk()
    assert disks.low * 1e6 <= disk <= disks.high * 1e6
    rate = network_rate(replication_task.MEASURED, "myrinet-piii", 1_000_000)
    time = simulate_chain(replication_task.copy(disk, rate), replication_task.task().machines)
    assert time == pytest.approx(goal.low, rel=0.05)


def test_the_command_shows_simulation_and_closed_form(retrompi: Callable[..., Any]) -> None:
    rows = json.loads(retrompi("paper", "replicate", "--machines", "7,100", "--link-rate", "100MB/s", "--disk", "40MB/s", "--json").out)
    assert [r["machines"] for r in rows] == [7, 100]
    assert all(r["simulated_s"] == pytest.approx(r["closed_form_s"]) for r in rows)
    tree = retrompi("paper", "replicate", "--machines", "100", "--tree", "2", "--link-rate", "100MB/s", "--csv").out
    assert tree.splitlines()[0].startswith("chunks,chunk,disk")
    assert retrompi("paper", "replicate", "--machines", "many").code == 2
