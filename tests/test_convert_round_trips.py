"""A trace that is converted and read back is the same program, or what differs is told, call by call.

The whole table, of every reference trace: ``python tests/round_trips.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cases import for_each
from conftest import Outcome
from extended_traces import everything
from hypothesis import HealthCheck, given, settings
from random_jobs import jobs
from round_trips import FORMATS, MODELS, archive, time_ps, trip

from retrompi import convert, traces
from retrompi.base.paths import reference_dir
from retrompi.convert import timelines
from retrompi.sim import simulate
from retrompi.sim.observe import Observe
from retrompi.sim.timeline import TimelineRequest
from retrompi.spec.question import Question, Replay
from retrompi.traces import generate

Run = Callable[..., Outcome]
EXAMPLES = Path(__file__).parent.parent / "examples" / "traces"
SMALL = ["npb3.3.1-is-A-4", "npb3.3.1-mg-A-1", "npb3.3.1-ep-A-4", "npb3.3.1-lu-A-1"]
"""Reference traces that take no time; the script takes all."""
ARCHIVES = [*sorted(EXAMPLES.glob("*.tar.zst")), *(reference_dir() / "traces" / f"{name}.tar.zst" for name in SMALL)]
HERE = [f for f in FORMATS if f != "otf2"]


@pytest.fixture(autouse=True)
def _with_otf2(request: pytest.FixtureRequest) -> None:
    if "otf2" in request.node.nodeid.rpartition("::")[2]:
        pytest.importorskip("otf2", reason="the otf2 library reads and writes OTF2 (retrompi[otf2])")


@for_each("target", FORMATS)
@for_each("path", ARCHIVES)
def test_what_is_told_to_be_lost_is_what_differs(path: Path, target: str) -> None:
    for name, trace in archive(path):
        made = trip(name, trace, target)
        assert made.right, made
        assert target != "otf2" or made.same, made


def test_every_call_of_the_format_to_smpi() -> None:
    """Communicators, windows, persistent and several requests, tests, neighbourhoods."""
    made = trip("everything", traces.parse(everything()), "smpi", replay=False)
    assert made.told, made
    assert made.right, made


def test_every_call_of_the_format_in_otf2(tmp_path: Path) -> None:
    whole = traces.parse(everything())
    question = Question(*MODELS[0], Replay(generate.pingpong([8], 1)), "distributed")
    timeline = simulate.run(question, Observe(timeline=TimelineRequest())).timeline
    timeline.program, timeline.processes = whole, [replace(timeline.processes[0], name=f"rank {r}") for r in range(whole.ranks)]
    timeline.files = whole.files
    timelines.write(timeline, tmp_path / "x.otf2")
    again = convert.load(tmp_path / "x.otf2")
    assert (again.trace, again.losses.total) == (whole, 0)


@pytest.mark.parametrize("target", HERE)
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trace=jobs())
def test_random_jobs(target: str, trace: traces.Trace) -> None:
    made = trip("random", trace, target)
    assert made.right, (made, [trace.to_ti(r) for r in range(trace.ranks)])


def test_every_registered_format_that_is_written_can_be_tried() -> None:
    written = {name for name in convert.BUILT_IN if convert.find(name).write is not None}
    assert written <= {*FORMATS, "ti"}  # TI there and back: test_traces.py


REQUESTS = "irecv 1 0 70000 6 req=1; isend 1 0 70000 6 req=2; compute 1e6; waitall 2 reqs=1,2"


def test_otf2_of_a_replay_is_the_program_that_was_replayed(tmp_path: Path, retrompi: Run) -> None:
    """Also where the timeline is sampled, and whatever a second was on the machine that recorded."""
    other = REQUESTS.replace("1 0 70000", "0 0 70000")
    (tmp_path / "x.ti").write_text("".join(f"{r} {line.strip()}\n" for r, text in enumerate([REQUESTS, other])
                                           for line in f"init;{text};{text};finalize".split(";")))
    on = ["-m", MODELS[0][0], "-p", MODELS[0][1], "--json", "--store", str(tmp_path / "s.db")]
    first = retrompi("replay", str(tmp_path / "x.ti"), *on, "--timeline", str(tmp_path / "x.otf2"), "--timeline-limit", "5")
    assert first.code == 0, first.err
    told = retrompi("trace", "convert", str(tmp_path / "x.otf2"), str(tmp_path / "out"), "--strict", "--json")
    assert (told.code, json.loads(told.out)["losses"]) == (0, [])
    assert "reqs=1,2" in (tmp_path / "out" / "rank-0.txt").read_text()
    again = retrompi("replay", str(tmp_path / "out"), *on)
    assert json.loads(again.out)["time_s"] == json.loads(first.out)["time_s"]
    original = traces.read(tmp_path / "x.ti")
    assert traces.read(tmp_path / "out") == original
    assert time_ps(traces.read(tmp_path / "out"), *MODELS[1]) == time_ps(original, *MODELS[1])


def test_a_rank_that_does_nothing_is_kept(tmp_path: Path) -> None:
    trace = traces.parse("0 init\n0 compute 5\n0 finalize\n", np=3)
    for target in ("ti", *HERE):
        losses = convert.Losses()
        out = tmp_path / (f"x.{target}" if target == "goal" else target)
        convert.save(convert.Converted(trace, "ti", losses), out, target)
        assert convert.load(out).trace.ranks == 3


def test_strict_is_one_if_anything_is_lost(tmp_path: Path, retrompi: Run) -> None:
    (tmp_path / "x.ti").write_text("0 init\n0 comm_dup 1 0\n0 send 0 0 8 6 comm=1\n0 finalize\n")
    for target in HERE:
        told = retrompi("trace", "convert", str(tmp_path / "x.ti"), str(tmp_path / target), "--to", target, "--strict", "--json")
        report = json.loads(told.out)
        assert (told.code, report["lost"]) == (1, sum(x["count"] for x in report["losses"]))
        # The call is there but for its communicator: not lost.
        assert {x["call"]: x["effect"] for x in report["losses"]}["send"] == "approximated"
