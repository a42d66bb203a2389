"""The trace of events, which debugs the engine: every event in order, named, with its process; it changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Outcome

from retrompi.sim import simulate
from retrompi.sim.observe import Observe
from retrompi.spec.question import Question, Replay
from retrompi.traces import generate


def _events(path: Path) -> list[tuple[int, str, str]]:
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return [(int(time), process, name) for time, process, name in rows]


@pytest.mark.parametrize("network", ["native", "fluid", "simgrid"])
def test_every_event_is_written_in_order_with_its_process_and_name(network: str, tmp_path: Path) -> None:
    trace = generate.pingpong([0, 5000], 3)
    question = Question("mpich", "nt-pair", Replay(trace), "distributed", network=network)
    path = tmp_path / "events.tsv"
    plain = simulate.run(question)
    traced = simulate.run(question, Observe(trace_events=str(path)))
    assert (traced.time_ps, traced.events) == (plain.time_ps, plain.events)
    events = _events(path)
    assert len(events) >= traced.events  # and the arrivals on the wire
    times = [time for time, _, _ in events]
    assert times == sorted(times)
    assert "?" not in {name for _, _, name in events}
    known = {(process, name) for _, process, name in events}
    assert {("rank 0", "Thread::on_done"), ("server", "Host::on_kernel"), ("server > workstation", "Net::Flight::on_in")} <= known
    assert any(name == "Net::Flight::on_carried" for _, _, name in events)


def test_replay_writes_it_whether_the_run_is_stored_or_not(retrompi: Callable[..., Outcome], tmp_path: Path) -> None:
    path = tmp_path / "events.tsv"
    for _ in range(2):
        told = retrompi("replay", "examples/traces/jacobi-4.tar.zst", "-m", "mpich", "-p", "nt-pair", "--trace-events", str(path))
        assert told.code == 0, told.err
        assert {"rank 0", "rank 3"} <= {process for _, process, _ in _events(path)}
        path.unlink()
