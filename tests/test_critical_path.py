"""The critical path: it tiles the time of a run for every runtime and level of detail, and splits a difference exactly."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest
from cases import for_each

from retrompi import traces
from retrompi.base.errors import RetrompiError
from retrompi.sim import simulate
from retrompi.sim.critical_path import CriticalPath, difference
from retrompi.sim.observe import Observe
from retrompi.sim.result import Result
from retrompi.spec import registry
from retrompi.spec.question import Beside, Question, Replay
from retrompi.traces import Trace, generate

ON = Observe(critical_path=True)
MODELS = registry.model_names()
PROGRAMS = ("halo", "alltoall", "lu", "cg")
SCALING = Path(__file__).parent / "data" / "traces" / "scaling"


def _trace(program: str) -> Trace:
    if program == "halo":
        return generate.halo(4, 2, 2000)
    if program == "alltoall":
        return generate.alltoall(4, 3000, 2)
    return traces.read(str(SCALING / f"npb3.3.1-{program}-4.ti.zst"))


TRACES = {program: _trace(program) for program in PROGRAMS}


def _question(model: str, program: str, mode: str = "natural", **more: object) -> Question:
    known = registry.model(model).calibrated
    return Question(model, known.platforms[0] if known else "nt-pair", Replay(TRACES[program]), mode, **more)  # type: ignore[arg-type]


def _tiles(path: CriticalPath, time_ps: int) -> None:
    """The pieces follow each other from 0 to the end of the run, each of a known kind."""
    pieces = list(path)
    assert path.took == time_ps
    assert [p.begin for p in pieces[:1]] in ([], [0])
    assert all(a.end == b.begin and a.took > 0 for a, b in pairwise(pieces))
    assert sum(p.took for p in pieces) == time_ps == sum(s.ps for s in path.shares()) == sum(path.by("who").values())
    assert not {p.stage for p in pieces} & {"wait"}


@for_each("program", PROGRAMS)
@for_each("model", MODELS, few=15)
def test_the_path_is_as_long_as_the_run(model: str, program: str) -> None:
    question = _question(model, program)
    recorded = simulate.run(question, ON)
    if recorded.outcome != "completed":
        assert recorded.critical_path is None
        return
    _tiles(recorded.critical_path, recorded.time_ps)
    if program != "lu":  # the recording has changed no time
        assert simulate.run(question).time_ps == recorded.time_ps


@for_each("fidelity", ["curve", "loggp"])
@for_each("program", PROGRAMS)
def test_the_path_is_as_long_as_the_run_at_every_level_of_detail(fidelity: str, program: str) -> None:
    question = Question("wmpi", "nt-cluster", Replay(TRACES[program]), "distributed", fidelity=fidelity)
    recorded = simulate.run(question, ON)
    _tiles(recorded.critical_path, recorded.time_ps)


@pytest.mark.parametrize("network", ["fluid", "simgrid"])
def test_the_path_is_as_long_as_the_run_on_every_wire(network: str) -> None:
    recorded = simulate.run(Question("mpich", "nt-cluster", Replay(TRACES["halo"]), "distributed", network=network), ON)
    _tiles(recorded.critical_path, recorded.time_ps)


@pytest.mark.parametrize(
    "beside",
    [
        Beside(traffic=("any 2Mbps 1500B poisson",)),
        Beside(failures=("link n2@20ms..60ms",)),
    ],
    ids=["traffic", "failure"],
)
def test_the_path_is_as_long_as_the_run_beside_others(beside: Beside) -> None:
    recorded = simulate.run(Question("wmpi", "nt-cluster", Replay(TRACES["halo"]), "distributed", beside=beside), ON)
    assert recorded.outcome == "completed", recorded.detail
    _tiles(recorded.critical_path, recorded.time_ps)


def test_a_run_that_does_not_complete_has_no_path() -> None:
    trace = Trace.parse([(b"0 recv 1 0 8 0\n", "a", 0), (b"1 compute 1\n", "b", 1)])
    assert simulate.run(Question("wmpi", "nt-pair", Replay(trace), "shared"), ON).critical_path is None


def test_computation_alone_is_the_path() -> None:
    trace = Trace.parse([(b"0 compute 1e6\n", "a", 0), (b"1 compute 3e6\n", "b", 1)])
    path = simulate.run(Question("wmpi", "nt-pair", Replay(trace), "distributed"), ON).critical_path
    *before, last = path
    assert {p.stage for p in before} == {"switch"}  # the processes start one after the other
    assert (last.stage, last.who) == ("compute", "rank 1")


def test_the_path_goes_through_the_slower_of_two_senders() -> None:
    """A late sender is on the path, with all that it computed; an early one is not."""
    lines = {
        0: b"0 recv 1 0 8 0\n0 recv 2 0 8 0\n",
        1: b"1 compute 1e5\n1 send 0 0 8 0\n",
        2: b"2 compute 1e7\n2 send 0 0 8 0\n",
    }
    trace = Trace.parse([(text, str(rank), rank) for rank, text in lines.items()])
    path = simulate.run(Question("mpich", "nt-cluster", Replay(trace), "distributed"), ON).critical_path
    computing = {p.who for p in path if p.stage == "compute"}
    assert computing == {"rank 2"}
    assert next(iter(path)).who == "rank 2"


def _some(rng: random.Random) -> Result:
    program = rng.choice(["halo", "alltoall", "cg"])
    model = rng.choice([m for m in MODELS if ":" not in m])
    sets = rng.choice([[], [], [f"platform.link.latency={rng.randint(1, 900)}us"]])
    try:
        return simulate.run(_question(model, program, overrides=sets), ON)
    except RetrompiError:
        return simulate.run(_question(model, program), ON)


def test_the_parts_of_a_difference_sum_to_it_for_fifty_pairs() -> None:
    rng = random.Random(21)
    pairs = 0
    while pairs < 50:
        a, b = _some(rng), _some(rng)
        if a.critical_path is None or b.critical_path is None:
            continue
        pairs += 1
        parts = difference(a.critical_path, b.critical_path)
        assert sum(d.ps for d in parts) == b.time_ps - a.time_ps
        assert sum(d.a for d in parts) == a.time_ps
        assert sum(d.b for d in parts) == b.time_ps
        assert sorted(abs(d.ps) for d in parts) == [abs(d.ps) for d in parts][::-1]
