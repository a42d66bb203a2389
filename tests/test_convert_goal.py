"""GOAL in and out: schedules of LogGOPSim as traces and back."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from cases import for_each
from conftest import Outcome
from engine_runs import job
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from retrompi import convert
from retrompi.convert.goal.writer import goal_text
from retrompi.sim import preflight, simulate
from retrompi.spec.question import Question, Replay
from retrompi.traces import Trace, TraceError, generate

DATA = Path(__file__).parent / "data" / "traces"
Run = Callable[..., Outcome]


def read(folder: Path, text: str, **options: float) -> convert.Converted:
    path = folder / "s.goal"
    path.write_text(text)
    return convert.load(path, options=convert.FormatOptions(**options))  # type: ignore[arg-type]


def lines(made: convert.Converted, rank: int = 0) -> list[str]:
    return [line.split(" ", 1)[1] for line in made.trace.to_ti(rank).splitlines()][1:-1]


def test_a_chain_of_blocking_calls(tmp_path: Path) -> None:
    made = read(tmp_path, """num_ranks 2
        // a PingPong
        rank 0 { a: send 1024b to 1 tag 5 cpu 0 nic 0; b: recv 8b from 1; b requires a; c: calc 100; c requires b }
        rank 1 { /* two
        lines */ a: recv 1024b from -1 tag -1
        b: send 8b to 0
        b requires a }
    """)
    assert lines(made, 0) == ["send 1 5 1024 6", "recv 1 0 8 6", "compute 100"]
    assert lines(made, 1) == ["recv -555 -444 1024 6", "send 0 0 8 6"]
    assert (made.format, made.losses.total) == ("goal", 0)


def test_what_is_required_later_is_waited_for_later(tmp_path: Path) -> None:
    made = read(tmp_path, """num_ranks 2
        rank 0 { r: recv 8b from 1 tag 1; s: send 8b to 1 tag 2; c: calc 500; d: calc 7; d requires r; d requires c }
        rank 1 { x: calc 50; s: send 8b to 0 tag 1; s requires x; r: recv 8b from 0 tag 2 }
    """, rate=2e9)
    assert lines(made, 0) == [
        "irecv 1 1 8 6 req=1", "isend 1 2 8 6 req=2", "compute 1000", "wait 1 0 1 req=1", "compute 14", "wait 0 1 2 req=2",
    ]
    # Rank 1 receives at any time; as there is one line, the calculation does not wait for it.
    assert lines(made, 1) == ["irecv 0 2 8 6 req=1", "compute 100", "send 0 1 8 6", "wait 0 1 2 req=1"]


def test_irequires_orders_beginnings_only(tmp_path: Path) -> None:
    made = read(tmp_path, """num_ranks 2
        rank 0 { a: recv 8b from 1; b: send 8b to 1; b irequires a }
        rank 1 { a: recv 8b from 0; b: send 8b to 0; b irequires a }
    """)
    assert lines(made) == ["irecv 1 0 8 6 req=1", "send 1 0 8 6", "wait 1 0 0 req=1"]
    assert simulate.run(Question("mpibip", "myrinet-piii", Replay(made.trace), "distributed")).outcome == "completed"


def test_what_a_line_cannot_say_is_reported(tmp_path: Path) -> None:
    made = read(tmp_path, """num_ranks 2
        rank 0 { a: calc 100; b: calc 300 cpu 1; c: send 8b to 1; c requires a; d: send 1b to 1 tag 9 }
        rank 1 { a: recv 8b from 0 }
    """)
    assert [(x.call, x.effect, x.count, x.what, x.places) for x in made.losses] == [
        ("send", "lost", 1, "that nobody receives: left out", ["s.goal:2"]),
        ("calc", "approximated", 1, "free to go at any time, but in a line it comes behind a calculation", ["s.goal:2"]),
        ("calc", "approximated", 1, "on another processor of the rank: computed by the one it has", ["s.goal:2"]),
        ("send", "approximated", 1, "free to go at any time, but in a line it comes behind a calculation", ["s.goal:2"]),
    ]


def test_sends_that_only_work_when_buffered(tmp_path: Path) -> None:
    made = read(tmp_path, """num_ranks 2
        rank 0 { a: send 8b to 1; b: recv 8b from 1; b requires a }
        rank 1 { a: send 8b to 0; b: recv 8b from 0; b requires a }
    """)
    assert lines(made) == ["isend 1 0 8 6 req=1", "recv 1 0 8 6", "wait 0 1 0 req=1"]
    assert [(x.call, x.count) for x in made.losses] == [("send", 1)]
    assert simulate.run(Question("mpibip", "myrinet-piii", Replay(made.trace), "distributed")).outcome == "completed"


BAD = [
    ("rank 0 { }", "bad-trace | s.goal | 'num_ranks' | 'rank'"),
    ("num_ranks 0", "bad-syntax | s.goal | num_ranks"),
    ("num_ranks 99999999999", "bad-syntax | s.goal | num_ranks | 99999999999"),
    ("num_ranks 2\nrank 2 { }", "unknown-rank | s.goal | 0..1"),
    ("num_ranks 2\nrank 1 { }\nrank 1 { }", "duplicate-name | s.goal"),
    ("num_ranks 1\nrank 0 {\nl1: calc 5\n", "bad-trace | s.goal | '}'"),
    ("num_ranks 1\nrank 0 {\nl1: calc\n}", "bad-trace | s.goal | '}'"),
    ("num_ranks 2\nrank 0 {\nl1: send 5 to 1\n}", "bad-trace | s.goal | 'b' | 'to'"),
    ("num_ranks 2\nrank 0 {\nl1: send 5b from 1\n}", "bad-trace | s.goal | 'to' | 'from'"),
    ("num_ranks 2\nrank 0 {\nl1: send 5b to -1\n}", "bad-trace | s.goal"),
    ("num_ranks 2\nrank 0 {\nl1: send 5b to 7\n}", "unknown-rank | s.goal"),
    ("num_ranks 1\nrank 0 {\nl1: calc 5\nl2 requires l1\n}", "bad-trace | s.goal"),
    ("num_ranks 1\nrank 0 {\nl1: calc 5\nl1: calc 5\n}", "duplicate-name | s.goal"),
    ("num_ranks 1\nrank 0 {\nl1: calc 5\nl1 requires l1\n}", "unknown-rank | s.goal"),
    ("num_ranks 1\nrank 0 {\nl1: jump 5\n}", "bad-trace | s.goal | 'jump'"),
    ("num_ranks 1\nrank 0 {\na: calc 5\nb: calc 5\na requires b\nb requires a\n}", "bad-trace | s.goal"),
    ("num_ranks 2\nrank 0 {\na: recv 5b from 1\n}", "bad-trace | s.goal"),
    ("num_ranks 1\nrank 0 {\n$\n}", "bad-trace | s.goal | '$'"),
]


@for_each("text, why", BAD)
def test_errors_name_the_line(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "s.goal").write_text(text)
    with refused(TraceError, why):
        convert.load(tmp_path / "s.goal", "goal")


# -- out


def test_a_trace_as_a_schedule() -> None:
    losses = convert.Losses()
    trace = job("compute 2000; isend 1 3 64 6; recv 1 4 8 6; wait 0 1 3", "irecv 0 3 100 6; send 0 4 8 6; waitall 1")
    text = goal_text(trace, losses, rate=2e9)
    assert text.split("rank 1")[0].split("{\n")[1].split("}")[0].splitlines() == [
        "l1: calc 1000",
        "l2: send 64b to 1 tag 3", "l2 requires l1",
        "l3: recv 8b from 1 tag 4", "l3 requires l1", "l3 irequires l2",
    ]
    assert "l1: recv 64b from 0 tag 3" in text  # what arrives, not the length of the buffer
    assert {(x.call, x.count, x.what.split(":")[0]) for x in losses} == {
        ("irecv", 1, "the length of its buffer is lost"), ("waitall", 1, "becomes a wait for each request"),
    }


def volume(trace: Trace) -> tuple[int, int]:
    told = preflight.summary(trace)
    return told["sends"], told["bytes_sent"]


def back(trace: Trace, folder: Path) -> Trace:
    made = convert.Converted(trace, "ti")
    convert.save(made, folder / "s.goal", "goal")
    return convert.load(folder / "s.goal").trace


def test_a_captured_trace_keeps_its_messages_there_and_back(tmp_path: Path) -> None:
    from retrompi import traces

    cg = traces.read(DATA / "npb3.3.1-cg-A-4.tar.zst")
    again = back(cg, tmp_path)
    sends, size = volume(again)
    # Barrier, broadcast and reduction of 4 ranks: 8 empty messages, 3 and 3.
    assert sends == volume(cg)[0] + 8 + 3 + 3
    pairs = {(a, b): n for a, b, n, _ in cg.traffic()["pairs"]}
    assert all(n >= pairs.get((a, b), 0) for a, b, n, _ in again.traffic()["pairs"])
    assert size >= volume(cg)[1]
    assert again.info()["compute_flops"] == pytest.approx(cg.info()["compute_flops"], rel=1e-4)


@settings(max_examples=25, deadline=None)
@given(ranks=st.integers(2, 9), root=st.integers(0, 8), size=st.integers(1, 5000))
@pytest.mark.parametrize(
    "line",
    [
        "barrier", "bcast {s} {r} 6", "reduce {s} 0 {r} 6", "allreduce {s} 0 6", "scan {s} 0 6", "gather {s} {s} {r} 6 6",
        "scatter {s} {s} {r} 6 6",
        "allgather {s} {s} 6 6", "alltoall {s} {s} 6 6", "reducescatter {v} 0 6", "allgatherv {m} {v} 6 6", "alltoallv {t} {v} {t} {w} 6 6",
        "gatherv {m} {v} {r} 6 6", "scatterv {v} {m} {r} 6 6",
    ],
)
def test_collectives_become_messages_that_arrive(
    tmp_path_factory: pytest.TempPathFactory, line: str, ranks: int, root: int, size: int
) -> None:
    counts = [size + k for k in range(ranks)]
    programs = []
    for me in range(ranks):
        alltoallv = {"v": " ".join(str(size + k) for k in range(ranks)), "w": " ".join([str(size + me)] * ranks), "t": sum(counts)}
        text = line.format(s=size, r=root % ranks, m=counts[me], **alltoallv)
        programs.append(text)
    trace = job(*programs)
    assert trace.unsupported() == []
    # Reading the schedule fails when a receive has no send or an order cannot be had.
    again = back(trace, tmp_path_factory.mktemp("goal"))
    sent = volume(again)[0]
    n = ranks
    wanted = {
        "barrier": n * (n - 1).bit_length(), "bcast": n - 1, "reduce": n - 1, "allreduce": 2 * (n - 1), "scan": n - 1, "gather": n - 1,
        "scatter": n - 1, "allgather": n * (n - 1), "alltoall": n * (n - 1), "reducescatter": 2 * (n - 1), "allgatherv": n * (n - 1),
        "alltoallv": n * (n - 1), "gatherv": n - 1, "scatterv": n - 1,
    }
    assert sent == wanted[line.split()[0]]


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 5), st.integers(0, 5000), st.integers(1, 4))
def test_a_ring_there_and_back_takes_as_long(tmp_path_factory: pytest.TempPathFactory, ranks: int, size: int, reps: int) -> None:
    trace = generate.ring(ranks, size, reps)
    again = back(trace, tmp_path_factory.mktemp("goal"))
    assert volume(again) == volume(trace)
    first, second = (simulate.run(Question("mpibip", "myrinet-piii", Replay(t), "distributed")) for t in (trace, again))
    assert (first.outcome, second.outcome) == ("completed", "completed")
    assert first.messages == second.messages


def test_what_goal_does_not_have_is_reported(tmp_path: Path, retrompi: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.ti").write_text("0 init\n0 Ssend 1 0 8 6\n0 probe 1 4\n0 recv 1 4 9 6\n0 sleep 1e-6\n0 finalize\n"
                                   "1 init\n1 recv 0 0 8 6\n1 send 0 4 9 6\n1 finalize\n")
    monkeypatch.chdir(tmp_path)
    told = retrompi("trace", "convert", "a.ti", "a.goal")
    assert told.code == 0
    for words in (r"probe +lost +1 .*a.ti:3", r"Ssend +approximated +1", r"sleep +approximated +1"):
        assert re.search(words, told.err)
    assert (tmp_path / "a.goal").read_text().startswith("num_ranks 2\n")
    assert retrompi("trace", "convert", str(tmp_path / "a.ti"), str(tmp_path / "a.goal")).code == 2  # it exists


def test_formats_are_known_by_content_and_a_wrong_name_is_told(tmp_path: Path, retrompi: Run) -> None:
    (tmp_path / "x").write_text("// made by hand\nnum_ranks 1\nrank 0 { a: calc 5 }\n")
    assert convert.detect(tmp_path / "x")[0] == "goal"
    told = retrompi("trace", "convert", "--from", "dumpi", str(tmp_path / "x"), str(tmp_path / "y"))
    assert (told.code, told.err) == (2, f"error: {tmp_path / 'x'} is goal, not dumpi\n")
    assert convert.detect(DATA / "npb3.3.1-cg-A-4.tar.zst")[0] == "ti"
    told = retrompi("trace", "convert", str(tmp_path / "nothing"), str(tmp_path / "y"))
    assert (told.code, told.err) == (2, f"error: {tmp_path / 'nothing'}: no such trace file\n")


WORDS = ["num_ranks", "2", "rank", "0", "1", "{", "}", "a", "b", ":", "send", "recv", "calc", "8b", "9", "-1", "to", "from", "tag",
         "cpu", "requires", "irequires", ";", "\n", "/*", "*/", "//", "99999999999999999999", "é"]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=40), st.booleans())
def test_hostile_schedules_end_in_a_line_or_a_trace(tmp_path_factory: pytest.TempPathFactory, words: list[str], begun: bool) -> None:
    path = tmp_path_factory.mktemp("hostile") / "s.goal"
    path.write_text(("num_ranks 2 rank 0 { a: calc 5 " if begun else "") + " ".join(words))
    try:
        convert.load(path, "goal")
        told = ""
    except TraceError as e:
        told = str(e)
    assert "\n" not in told
