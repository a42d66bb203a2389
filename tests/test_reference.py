"""The engine equals the executable specification: every time to the picosecond, every counter, match and outcome."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import program_generator
import pytest
from cases import for_each
from engine_runs import job

from retrompi.reference import NotCovered, __main__, host, mpi, network, shared_memory, tcp
from retrompi.reference.compare import compared
from retrompi.reference.programs import Program, compare_programs, drawn, shrunk
from retrompi.spec import registry
from retrompi.spec.question import Question, Replay, pingpong


def _equal(model: str, platform: str, workload: Any, mode: Any = "distributed", **options: Any) -> str:
    """The outcome, which is the same by both."""
    engine, rule, what = compared(Question(model, platform, workload, mode, **options))
    assert not what, what
    assert rule["time_ps"] == engine["time_ps"]
    return str(rule["outcome"])


@for_each("model", lambda: sorted(registry.models()), few=12)
def test_a_pingpong_of_a_model_on_its_own_machine(model: str) -> None:
    workload = pingpong([0, 1000, 40_000], 2)
    try:
        outcome = _equal(model, registry.own_platform(model), workload)
    except NotCovered as beyond:
        outcome = str(beyond)
    assert outcome in ("completed", "cards that move messages from memory to memory")


@for_each("fidelity", ("curve", "loggp"))
def test_the_laws_below_the_mechanism(fidelity: str) -> None:
    assert _equal("wmpi", "nt-pair", pingpong([0, 1000], 2), "shared", fidelity=fidelity) == "completed"


@for_each("rank0, rank1, outcome", [
    ("recv 1 0 8 6", "recv 0 0 8 6", "deadlock"),
    ("send 1 0 100 6", "recv 0 0 8 6", "aborted"),
    ("sleep 2", "recv 0 0 8 6", "timeout"),
    ("isend 1 0 300000 6 req=1; wait req=1", "compute 1e6; irecv -555 -444 300000 6; waitall", "completed"),
])  # fmt: skip
def test_how_a_run_ends(rank0: str, rank1: str, outcome: str) -> None:
    assert _equal("winmpich", "nt-pair", Replay(job(rank0, rank1)), "shared", limit_s=1.0) == outcome


def test_a_program_that_differed() -> None:
    """Its processor time did: a rank that ended the job gives its processor up first, and the others' copies change speed."""
    lines = (("ISsend 1 2 16384 6",), ("recv -555 -444 8192 6",), ("finalize",),
             ("send 1 1 16384 6", "sendRecv 16384 4 16384 2 6 6 stag=3 rtag=3"), ("isend 2 2147483647 16384 6 req=1",))  # fmt: skip
    program = Program("wmpi", "myrinet-piii", (0,) * 5, lines, (("platform.host.boost", "1"),))
    assert not compared(program.question())[2]


def test_generated_programs() -> None:
    seeds = program_generator.seeds(10_000)
    tally = compare_programs(seeds, len(seeds), seconds=6)
    assert not tally.differences, tally.text()
    assert tally.compared > 0


@pytest.mark.exhaustive
def test_many_generated_programs() -> None:
    first = program_generator.seeds(1)[0]
    tally = compare_programs(itertools.count(first), 1000)
    assert not tally.differences, tally.text()


def _later(method: Callable[..., Any]) -> Callable[..., Any]:
    def changed(self: Any, *arguments: Any) -> Any:
        return method(self, *arguments) + 1

    return changed


@for_each("owner, name, change", [
    (host.Host, "next_tick", _later),
    (host.Host, "service", _later),
    (host.Host, "could_act", lambda _: lambda self: True),
    (tcp.Tcp, "_ack_due", lambda _: lambda self: True),
    (network.Queues, "_latency", _later),
    (host.Host, "work", _later),
    (mpi.Rank, "conversion", _later),
    (shared_memory.SharedChannel, "memory", lambda method: lambda *given: 2 * method(*given)),
])  # fmt: skip
def test_a_rule_that_is_changed_is_noticed(owner: type, name: str, change: Callable[[Any], Any], monkeypatch: Any) -> None:
    """The comparison is no formality: with one rule of the specification changed, some of these questions differ."""
    monkeypatch.setattr(owner, name, change(getattr(owner, name)))
    text = "send 1 0 3000 6; recv 1 0 3000 6; sleep 0.001; send 1 0 3000 6"
    answer = "recv 0 0 3000 6; send 0 0 3000 6; recv 0 0 3000 6; recv 0 0 8 6"
    asked = [("winmpich", "nt-pair", "shared"), ("wmpi", "nt-pair", "distributed"), ("sockets", "nt-pair", "distributed")]

    def differs(model: str, platform: str, mode: str) -> bool:
        try:
            return bool(compared(Question(model, platform, Replay(job(text, answer)), mode, limit_s=20.0))[2])
        except AssertionError:
            return True

    assert any(differs(*question) for question in asked)


def test_a_difference_is_made_small() -> None:
    sender, receiver = ("init", *["compute 1"] * 20, "Ssend 1 0 8 6", "compute 2", "finalize"), ("init", "recv 0 0 8 6", "finalize")
    program = replace(drawn(3), lines=(sender, receiver), placement=(0, 0), cores=())
    small = shrunk(program, lambda p: any("Ssend" in line for lines in p.lines for line in lines))
    assert small.lines == (("Ssend 1 0 8 6",),) or small.size == 1
    assert not small.sets
    made = eval(small.text(), {"Program": Program})
    assert made == small


@for_each("lines, what", [
    ("barrier", "rank-0.txt:2: the call barrier"),
    ("comm_dup 1 0-1", "rank-0.txt:2: the call comm_dup"),
])  # fmt: skip
def test_what_has_no_rule_is_refused(lines: str, what: str) -> None:
    with pytest.raises(NotCovered, match=what):
        compared(Question("wmpi", "nt-pair", Replay(job(lines, lines)), "shared"))


def test_the_command(tmp_path: Any, capsys: Any) -> None:
    file = tmp_path / "job.ti"
    file.write_text("0 init\n0 send 1 0 8 6\n0 finalize\n1 init\n1 recv 0 0 8 6\n1 finalize\n")
    assert __main__.main([str(file), "-m", "wmpi", "-p", "nt-pair", "--mode", "shared"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("equal")
    file.write_text("0 init\n0 barrier\n0 finalize\n1 init\n1 barrier\n1 finalize\n")
    assert __main__.main([str(file)]) == 2
    assert "does not cover" in capsys.readouterr().err
    assert __main__.main([str(file), "-m", "wmpj"]) == 2
    assert "wmpi" in capsys.readouterr().err
    assert __main__.main(["--programs", "2", "--seed", "5"]) == 0
    assert "2 programs compared, 0 differ" in capsys.readouterr().out
