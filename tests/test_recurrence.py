"""Periods that only repeat are left out: the same result as a run in full, in every field and to the picosecond."""

from __future__ import annotations

import dataclasses
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from interrupted_loops import computing_pingpong, interrupted_loops

import retrompi._engine
from retrompi.base.errors import RetrompiError, UsageError
from retrompi.reference.compare import UNOBSERVED
from retrompi.reference.programs import DrawnProgram
from retrompi.sim import repetitions, simulate
from retrompi.sim.observe import Observe
from retrompi.sim.result import Result
from retrompi.sim.timeline import TimelineRequest
from retrompi.spec import registry
from retrompi.spec.question import Question, Replay
from retrompi.traces import Trace, generate

SEED = int(os.environ["RETROMPI_SEED"])
PROGRAMS = int(os.environ.get("RETROMPI_PROGRAMS", "60"))
"""Generated programs in a run of these tests; ten thousand were compared before a change of the state is relied on."""

PAIRS = [
    ("winmpich", "nt-pair", "distributed"),
    ("wmpi", "nt-pair", "distributed"),
    ("hpvm", "nt-pair", "distributed"),
    ("winmpich", "nt-pair", "shared"),
    ("wmpi", "nt-pair", "shared"),
    ("hpvm", "nt-pair", "shared"),
    ("wmpi", "nt-cluster", "distributed"),
    ("nemesis", "abe", "distributed"),
    ("nemesis", "abe", "shared"),
    ("lam", "nt-unix", "distributed"),
    ("pvm", "nt-cluster", "distributed"),
]
HOW = {"wall_s", "events", "events_left_out"}
"""Fields of a result that tell how it was found."""


@pytest.fixture(autouse=True)
def every_shortened_run_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(repetitions.VARIABLE, "check")


def fields_of(result: Result, without: set[str] = HOW) -> dict[str, Any]:
    found = {f.name: getattr(result, f.name) for f in dataclasses.fields(result) if f.name not in without}
    return found | {"per_rank": list(found["per_rank"])}


@for_each("model, platform, mode", PAIRS)
def test_a_pingpong_is_the_same_as_in_full(model: str, platform: str, mode: str) -> None:
    trace = generate.pingpong([0, 1000, 5000, 65536], {0: 40, 1000: 40, 5000: 40, 65536: 20}, warm_up=2)
    simulate.run(Question(model, platform, Replay(trace), mode))


@pytest.mark.parametrize("model", ["winmpich", "wmpi", "hpvm"])
def test_most_of_the_published_pingpong_only_repeats(model: str) -> None:
    run = simulate.run(Question(model, "nt-pair", Replay(generate.pingpong([0, 8192], 400)), "distributed"))
    assert run.events < run.events_left_out / 20


CLUSTERS = [("wmpi", "nt-cluster"), ("hpvm", "nt-cluster"), ("winmpich", "nt-cluster"), ("pvm", "nt-cluster"), ("nemesis", "abe")]


@for_each("model, platform", CLUSTERS)
def test_a_halo_is_the_same_as_in_full(model: str, platform: str) -> None:
    """Also where it never repeats: WMPI's daemons send datagrams again at ticks of their clocks."""
    for size in (1000, 8192):
        simulate.run(Question(model, f"{platform}*9", Replay(generate.halo(9, 40, size))))


@pytest.mark.parametrize(("model", "platform"), [("hpvm", "nt-cluster*9"), ("lam", "nt-unix*16"), ("nemesis", "abe*16")])
def test_most_of_a_halo_only_repeats(model: str, platform: str) -> None:
    """Hosts that share a medium or a switch fall into step; ranks then wait in the middle of sends, with packets of others under way."""
    ranks = int(platform.partition("*")[2])
    run = simulate.run(Question(model, platform, Replay(generate.halo(ranks, 300, 8192))))
    assert run.events < run.events_left_out / 2


# -- generated programs, with a fresh seed in every run -------------------------------------------------------------------------


def machines() -> list[tuple[str, str]]:
    """Each model on the machine it is for, several hosts of it where it has a cluster, and some that it never ran on."""
    own = [(name, registry.own_platform(name)) for name in registry.models()]
    return [*own, *((model, platform) for model, platform, _ in PAIRS)]


def questions(seed: int, n: int) -> list[tuple[int, Question]]:
    rng, found = random.Random(seed), []
    for _ in range(n):
        own = rng.getrandbits(40)
        each = random.Random(own)
        model, platform = each.choice(machines())
        trace: Trace = (interrupted_loops if each.random() < 0.6 else computing_pingpong)(each)
        mode = each.choice(["shared", "distributed", "natural"])
        network = each.choice(["native", "native", "fluid"])
        if trace.ranks > 2 and mode != "shared":
            platform = f"{platform}*{trace.ranks}"
        rails = {"platform.link.rails": each.choice("23"), "platform.link.rail_policy": "stripe"} if each.random() < 0.15 else {}
        more: dict[str, Any] = {"overrides": rails, "network": network, "seed": 1 + own % 5, "idle_overrides": True}
        found.append((own, Question(model, platform, Replay(trace), mode, **more)))
    return found


def test_interrupted_programs_are_the_same_as_in_full() -> None:
    shortened = 0
    for own, question in questions(SEED, PROGRAMS):
        try:
            shortened += simulate.run(question).events_left_out > 0
        except repetitions.RepetitionDefect as defect:
            where = f"{question.model}, {question.platform}, {question.mode}, {question.network}"
            pytest.fail(f"RETROMPI_SEED={SEED}, program {own} on {where}: {defect}")
        except RetrompiError:
            continue  # a placement that is not possible
    assert shortened >= PROGRAMS // 10


@for_each("model", registry.models)
def test_a_run_that_is_recorded_is_the_same_in_every_field(model: str) -> None:
    rng = random.Random(f"{SEED} {model}")
    question = Question(model, registry.own_platform(model), Replay(computing_pingpong(rng)), "natural")
    plain = simulate.run(question)
    for observe, records in (
        (Observe(profile=True), {"profile"}),
        (Observe(timeline=TimelineRequest()), {"timeline"}),
        (Observe(critical_path=True), {"critical_path"}),
    ):
        recorded = simulate.run(question, observe)
        assert recorded.events_left_out == 0
        assert fields_of(recorded, HOW | records) == fields_of(plain, HOW | records), f"RETROMPI_SEED={SEED}"


@for_each("model", ["lam", "mpich", "wmpi", "hpvm"])  # an idle proxy of WinMPICH polls, and when it looks next is part of the state
def test_a_rank_that_waits_through_periods_does_not_keep_them_from_being_left_out(model: str) -> None:
    """The call that rank 2 makes first, a receive or a barrier, lasts through all of the others' exchanges, and its time is counted when it
    returns."""
    # What the barrier sends at first is acknowledged late, which is an event to come for so long.
    for many, ends in ((200, ("send 2 0 8 6", "mark over", "recv 0 0 8 6")), (3000, ("barrier",) * 3)):
        loops = (["send 1 0 8 6", "recv 1 0 8 6"] * many, ["recv 0 0 8 6", "send 0 0 8 6"] * many, [])
        lines = [["init", *own, end, "finalize"] for own, end in zip(loops, ends, strict=True)]
        texts = ["".join(f"# {line}\n" if line.startswith("mark") else f"{r} {line}\n" for line in own) for r, own in enumerate(lines)]
        trace = Trace.parse([(text.encode(), f"rank-{r}.txt", r) for r, text in enumerate(texts)])
        result = simulate.run(Question(model, "nt-cluster", Replay(trace), "distributed"))
        assert result.events_left_out > result.events
        waited = list(result.per_rank)[2]
        assert waited["mpi_s"] > 0.9 * result.time_s
        assert waited["mpi_s"] + waited["compute_s"] <= waited["time_s"] <= result.time_s


def test_a_repetition_that_a_quantum_ends_is_simulated_in_full() -> None:
    """Rank 2 spins from a time on at which the ranks beside it repeat, and the end of its quantum is at none of their ticks."""
    program = DrawnProgram(
        "wmpi", "nt-pair", (0, 1, 0, 1),
        (("init", *("send 1 0 8 6", "recv 1 0 8 6") * 14, "finalize"),
         ("init", *("recv 0 0 8 6", *("send 3 0 8 6", "recv 3 0 8 6") * 4, "send 0 0 8 6") * 14, "finalize"),
         ("init", "compute 11695707", "send 3 9 300000 6", "finalize"),
         ("init", *("recv 1 0 8 6", "send 1 0 8 6") * 56, "recv 2 9 300000 6", "finalize")),
        (("platform.host.quantum", "20ms"),))
    rows, trace = program.rows()
    shortened = retrompi._engine.simulate({**UNOBSERVED, **rows, "repetitions": 1}, trace)
    assert (shortened["unconfirmed"], shortened["state_incomplete"]) == (True, False)
    assert shortened["events_left_out"] > 0
    assert program.compare()[2] == ""
    assert simulate.run(program.question()).outcome == "completed"


def test_frames_striped_over_rails_go_on_with_the_right_rail() -> None:
    """Rank 0 sends to two hosts, each pair of hosts with a turn of its own; whether two frames meet on a rail depends on both turns."""
    for rails, size, back in ((2, 1, 1000), (2, 100, 1000), (2, 8000, 1000), (3, 1000, 8), (3, 3000, 8)):
        loop = [[f"0 send 1 0 {size} 6", f"0 recv 1 0 {back} 6", "0 recv 2 0 100 6"],
                [f"1 recv 0 0 {size} 6", f"1 send 0 0 {back} 6", "1 send 2 0 8 6"],
                ["2 recv 1 0 8 6", "2 send 0 0 100 6"]]
        both = [["0 isend 1 3 20000 6", "0 isend 2 3 1000 6", "0 waitall", "0 recv 1 4 1 6", "0 recv 2 4 1 6"],
                ["1 recv 0 3 20000 6", "1 send 0 4 1 6"], ["2 recv 0 3 1000 6", "2 send 0 4 1 6"]]
        for times in (15, 30, 61):
            texts = ["\n".join([f"{r} init", *loop[r] * times, *both[r] * 5, f"{r} finalize\n"]) for r in range(3)]
            trace = Trace.parse([(text.encode(), f"rank-{r}.txt", r) for r, text in enumerate(texts)])
            sets = {"platform.link.rails": str(rails), "platform.link.rail_policy": "stripe"}
            for model in ("lam", "mpich"):
                simulate.run(Question(model, "nt4-p6-200*3@switch-100", Replay(trace), overrides=sets))


def test_calls_that_take_no_time_are_told_apart() -> None:
    """Several calls of a rank at one time, in the same state: which of them it is decides where the trace goes on."""
    lines = [["compute 1000", *["recv 1 1 2920 6"] * 12, "send 1 1 0 6"], ["compute 70000", *["send 0 1 2920 6"] * 12, "recv 0 1 0 6"]]
    for nothing in (1, 2, 8):
        for at in (0, 1, 13):
            loop = [[*each[:at], *[f"{what} -666 0 8 6"] * nothing, *each[at:]] for each, what in zip(lines, ("send", "recv"), strict=True)]
            texts = ["\n".join([f"{r} init", *(f"{r} {line}" for _ in range(40) for line in loop[r]), f"{r} finalize\n"])
                     for r in range(2)]
            trace = Trace.parse([(text.encode(), f"rank-{r}.txt", r) for r, text in enumerate(texts)])
            for model, platform, mode in PAIRS[:6]:
                simulate.run(Question(model, platform, Replay(trace), mode))


# -- what is done with a shortened run ------------------------------------------------------------------------------------------

CLEAN = {"outcome": "completed", "leftovers": [], "time_ps": 7, "events": 10, "events_left_out": 1000, "state_incomplete": False,
         "unconfirmed": False}


def answered(
    monkeypatch: pytest.MonkeyPatch, shortened: dict[str, Any], in_full: dict[str, Any], choice: repetitions.Repetitions
) -> dict[str, Any]:
    def engine(config: dict[str, Any], *_: object) -> dict[str, Any]:
        return dict(shortened if config["repetitions"] else in_full)

    monkeypatch.setattr(retrompi._engine, "simulate", engine)
    return repetitions.simulate({"repetitions": int(choice)}, [None])


def test_a_difference_is_a_defect_that_names_the_field(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(repetitions.RepetitionDefect, match=r"time_ps \(7, in full 8\)") as error:
        answered(monkeypatch, CLEAN, CLEAN | {"time_ps": 8, "events": 1010, "events_left_out": 0}, repetitions.Repetitions.CHECK)
    assert error.value.exit_code == 3


def test_a_state_that_took_two_courses_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(repetitions.RepetitionDefect, match="another course"):
        answered(monkeypatch, CLEAN | {"state_incomplete": True}, CLEAN, repetitions.Repetitions.CHECK)


def test_one_that_does_not_end_cleanly_is_simulated_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    in_full = CLEAN | {"events": 1010, "events_left_out": 0}
    for wrong in ({"outcome": "deadlock"}, {"leftovers": ["1 message was not received"]}, {"unconfirmed": True}):
        assert answered(monkeypatch, CLEAN | wrong, in_full, repetitions.Repetitions.ON) == in_full


def test_a_share_of_the_others_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over many runs the events of the comparisons are about the share of those simulated."""
    compared = 0
    for _ in range(30_000):
        try:
            answered(monkeypatch, CLEAN | {"events_left_out": 90}, CLEAN | {"time_ps": 8}, repetitions.Repetitions.ON)
        except repetitions.RepetitionDefect:
            compared += 1
    assert 80 <= compared <= 240  # 150 expected, and seven standard deviations


def test_a_bound_that_only_the_run_in_full_meets_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    got = answered(monkeypatch, CLEAN, CLEAN | {"outcome": "limit", "time_ps": 3}, repetitions.Repetitions.CHECK)
    assert got["time_ps"] == 7


def test_the_choice_is_one_of_three() -> None:
    assert repetitions.from_environment({}) is repetitions.Repetitions.ON
    with pytest.raises(UsageError, match="did you mean 'check'"):
        repetitions.from_environment({repetitions.VARIABLE: "chek"})


@pytest.mark.skipif(shutil.which("c++") is None or sys.platform != "linux", reason="no C++ compiler")
@pytest.mark.parametrize(
    ("header", "struct"), [("channel/message.hpp", "struct Message {"), ("mpi/rank.hpp", "class RankParts {\n public:")]
)
def test_a_member_that_is_not_put_does_not_compile(header: str, struct: str, tmp_path: Path) -> None:
    engine = Path(__file__).parents[1] / "src" / "retrompi" / "engine"
    copy = tmp_path / "engine"
    shutil.copytree(engine, copy)
    subprocess.run([sys.executable, "-m", "retrompi.spec.compiled.cpp", copy / "generated" / "specs.hpp"], check=True)
    file = copy / header
    text = file.read_text(encoding="utf-8")
    assert text.count(struct) == 1
    file.write_text(text.replace(struct, f"{struct}\n  int added_later = 0;"), encoding="utf-8")
    source = "recurrence.cpp" if header == "channel/message.hpp" else "rank.cpp"
    command = ["c++", "-std=c++20", "-fsyntax-only", f"-I{copy}", copy / "mpi" / source]
    got = subprocess.run(command, capture_output=True, text=True, check=False)
    assert got.returncode != 0
    assert "names provided for structured binding" in got.stderr
