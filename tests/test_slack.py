"""Slack beside the critical path: less than that changes nothing, more changes the run's time."""

from __future__ import annotations

from itertools import pairwise

import pytest

from retrompi.base.units import PS
from retrompi.sim import simulate
from retrompi.sim.critical_path import CriticalPath, PathPart
from retrompi.sim.observe import Observe
from retrompi.spec import registry
from retrompi.spec.question import Question, Replay
from retrompi.traces import Trace, generate

ON = Observe(critical_path=True)
SWITCH = "nt4-p6-200*4@switch-100"


def _trace(compute: dict[int, list[float]]) -> Trace:
    """A ring of four ranks in two rounds; each computes its seconds before each round."""
    rate = registry.platform(SWITCH).hosts[0].flops  # all are alike
    lines = {}
    for rank in range(4):
        right, left = (rank + 1) % 4, (rank - 1) % 4
        text = ""
        for seconds in compute[rank]:
            text += f"{rank} compute {seconds * rate!r}\n{rank} isend {right} 0 1000 6\n{rank} recv {left} 0 1000 6\n{rank} waitall 1\n"
        lines[rank] = text
    return Trace.parse([(text.encode(), f"rank {rank}", rank) for rank, text in lines.items()])


COMPUTE = {0: [0.010, 0.004], 1: [0.002, 0.003], 2: [0.007, 0.001], 3: [0.001, 0.020]}


def _run(model: str, compute: dict[int, list[float]], recorded: bool = False) -> tuple[int, CriticalPath]:
    result = simulate.run(Question(model, SWITCH, Replay(_trace(compute)), "distributed"), ON if recorded else Observe())
    assert result.outcome == "completed", result.detail
    return result.time_ps, result.critical_path


def _computations(path: CriticalPath, rank: int) -> list[PathPart]:
    """The computations of a rank, each as its last interval: it is interrupted by the kernel."""
    mine = sorted((p for p in path.parts() if p.who == f"rank {rank}" and p.stage in ("compute", "interrupt")), key=lambda p: p.begin)
    return [a for a, b in pairwise([*mine, None]) if a is not None and a.stage == "compute" and (b is None or b.begin != a.end)]


@pytest.mark.parametrize("model", ["mpich", "lam", "wmpi"])
def test_what_is_later_by_less_than_its_slack_changes_nothing(model: str) -> None:
    before, path = _run(model, COMPUTE, recorded=True)
    tried = 0
    for rank, seconds in COMPUTE.items():
        parts = _computations(path, rank)
        assert len(parts) == len(seconds)
        for i, part in enumerate(parts):
            if part.slack is None or part.slack < 100_000_000:  # 0.1 ms
                continue
            tried += 1
            for share, same in ((0.9, True), (1.3, False)):
                later = {r: list(s) for r, s in COMPUTE.items()}
                later[rank][i] += share * part.slack * PS
                time, _ = _run(model, later)
                assert (time == before) is same, (rank, i, part.slack, share, time - before)
    assert tried >= 3


def test_on_the_path_there_is_no_slack() -> None:
    _, path = _run("mpich", COMPUTE, recorded=True)
    on_path = {(p.begin, p.end, p.who) for p in path}
    slack = {(p.begin, p.end, p.who): p.slack for p in path.parts()}
    assert on_path & slack.keys()
    assert all(slack[key] == 0 for key in on_path & slack.keys())
    assert sum(s.on_path for s in path.slacks()) == path.took


def test_a_tick_absorbs() -> None:
    """What ends at a clock tick could have come as late as that."""
    sleeper = Question("wmpi", "nt-pair", Replay(generate.halo(2, 2, 2000)), "shared")
    path = simulate.run(sleeper, ON).critical_path
    assert "ticks of the clock" in path.unfollowed or "ends of quanta" in path.unfollowed or not path.unfollowed
    assert all(s.least is None or s.least >= 0 for s in path.slacks())


def test_what_is_recorded_is_bounded_by_the_events() -> None:
    """A few points, joins and pairs for each event of the simulation, whatever the program."""
    for size in (100, 20000):
        result = simulate.run(Question("mpich", SWITCH, Replay(generate.halo(4, 5, size)), "distributed"), ON)
        points, joins, orders = result.critical_path.recorded
        assert points < 8 * result.events
        assert joins < 4 * result.events
        assert orders < 4 * result.events
