"""All message orders: agreement with brute force, with the engine, and the command."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from brute_orders import EAGER, Brute, program, text
from cases import for_each
from refusals import refused

from retrompi import traces
from retrompi.base.errors import InputError
from retrompi.explore import SearchLimits, explore
from retrompi.explore.buffers import BufferPath as MessagePath
from retrompi.explore.buffers import Buffers, PoolSize, Space
from retrompi.explore.machine import ProgramMachine
from retrompi.explore.program import CHOICE, ExploredProgram
from retrompi.explore.run import force_execution
from retrompi.explore.search import _Found, count_orders, explore_program
from retrompi.sim import simulate
from retrompi.spec.question import Question, Replay
from retrompi.traces.outcomes import Outcomes, read_outcomes

ROOT = Path(__file__).resolve().parents[1]
QUICK = SearchLimits(orders=3000, descents=0)


def read(lines: str, ranks: int | None = None) -> traces.Trace:
    return traces.parse(lines, ranks)


def found(lines: str, buffers: Buffers | None = None, limits: SearchLimits = QUICK) -> Any:
    trace = read(lines, None if buffers is None else len(buffers.hosts))
    limit = buffers or Buffers.without_limit(trace.ranks)
    return explore_program(ExploredProgram.of(trace, limit, [[] for _ in range(trace.ranks)]), limit, limits)


# ---- brute force


class Classes:
    """The classes of a search, as `brute_orders.Brute` writes them: where it is stuck, and what each open call did, by line."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kept: list[tuple[Any, frozenset[Any]]] = []
        add = _Found.add

        def noted(found: _Found, st: Any) -> bool:
            before = len(found.classes)
            is_one = add(found, st)
            if len(found.classes) > before:
                self.kept.append(self.told(found, st))
            return is_one

        monkeypatch.setattr(_Found, "add", noted)

    @staticmethod
    def told(found: _Found, st: Any) -> tuple[Any, frozenset[Any]]:
        made, machine = found.program, found.machine

        def line(strand: int, at: int) -> int:
            return made.calls[machine.call_of(strand, at)].line

        def of(step: int) -> int:
            return line((step - 1) >> 24, (step - 1) & ((1 << 24) - 1)) if step else 0

        stuck = [(s, st.pc[s]) for s in range(made.ranks) if st.pc[s] < len(made.strands[s])]
        waiting = {-op[3] for op in (made.strands[s][at] for s, at in stuck) if op[0] == CHOICE}
        done = set()
        for step, what in st.taken:
            if step in waiting:
                continue
            if step < 0:
                done.add((-made.calls[made.choices[-step][0]].line, tuple(made.requests[s] for s in what)))
            else:
                done.add((of(step), of(what)))
        return tuple((s, line(s, at)) for s, at in stuck), frozenset(done)


@for_each("first", range(0, 1000, 50), few=4)
def test_the_search_agrees_with_brute_force(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over 1,000 random programs in all: the same executions, each once; of more than 10^4 orders fewer than one in a hundred."""
    classes = Classes(monkeypatch)
    large = 0
    for seed in range(first, first + 50):
        ranks = program(seed)
        brute = Brute(ranks)
        classes.kept.clear()
        result = found(text(ranks), Buffers.without_limit(len(ranks), EAGER), SearchLimits(descents=0))
        assert set(classes.kept) == brute.classes, (seed, text(ranks))
        assert result.classes == len(classes.kept) == len(brute.classes), seed
        if brute.orders > 10_000:
            large += 1
            assert 100 * (result.orders + result.abandoned) <= brute.orders, (seed, result, brute.orders)
    assert large > 5


# ---- the engine


def large(seed: int, size: int) -> str:
    """The random program, with its long messages of ``size`` bytes."""
    return text(program(seed)).replace(" 1000 6", f" {size} 6").replace(" 5000 6", " 5000000 6")


@for_each("model, mode, size", [
    ("lam", "distributed", 300_000), ("wmpi", "shared", 300_000), ("wmpi", "shared", 200_000), ("hpvm", "distributed", 1_500_000),
    ("hpvm:blind-send", "distributed", 200_000), ("winmpich:deaf-send", "shared", 200_000), ("mpich:shmem", "shared", 100_000),
])
def test_the_engine_ends_as_it_is_told(model: str, mode: str, size: int) -> None:
    """The shortest execution to every end, followed by the engine, ends there: the same outcome, the same calls stuck."""
    outcomes = set()
    for seed in range(25):
        trace = read(large(seed, size))
        question = Question(model, "nt-cluster", Replay(trace), mode)
        for end in explore(question, QUICK, confirm=False).ends:
            run = simulate.run(force_execution(question, end))
            outcomes.add(end.outcome)
            assert run.outcome == end.outcome, (seed, end, run.detail)
            if end.outcome == "deadlock":
                assert sorted((w["rank"], w["line"]) for w in run.waits) == sorted((s.rank, s.line) for s in end.stuck), (seed, end)
    assert {"completed", "deadlock"} <= outcomes
    assert ("aborted" in outcomes) == (model == "wmpi" and size < 262_144)


@pytest.mark.parametrize(("model", "mode"), [("lam", "distributed"), ("wmpi", "shared"), ("winmpich", "distributed")])
def test_whatever_the_engine_does_was_found(model: str, mode: str) -> None:
    """Ranks that compute for random times before each call: the engine ends in one of the ways that the search has found."""
    source = random.Random(7)
    for seed in range(12):
        lines = [line for line in large(seed, 300_000).splitlines() if not line.split()[1].startswith(("test", "waitany", "iprobe"))]
        question = Question(model, "nt-cluster", Replay(read("\n".join(lines) + "\n")), mode)
        ends = explore(question, QUICK, confirm=False).ends
        for _ in range(4):
            late = "".join(f"{line.split()[0]} sleep {source.choice([0, 1e-4, 0.01, 1])}\n{line}\n" for line in lines)
            run = simulate.run(question.with_(workload=Replay(read(late)), wildcards="free"))
            stuck = sorted((w["rank"], w["line"] // 2) for w in run.waits)
            possible = [(e.outcome, sorted((s.rank, s.line) for s in e.stuck)) for e in ends]
            assert (run.outcome, stuck) in possible, (seed, late)


@pytest.mark.parametrize(("model", "mode", "size"), [("wmpi", "shared", 200_000), ("winmpich:deaf-send", "shared", 200_000)])
def test_calls_that_nobody_else_sees_need_no_order(model: str, mode: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where calls are interleaved: the same ends with and without the reduction, in fewer orders."""
    followed = [0, 0]
    for seed in range(20):
        question = Question(model, "nt-cluster", Replay(read(large(seed, size))), mode)
        ends = []
        for whole in (0, 1):
            with monkeypatch.context() as m:
                if whole:
                    m.setattr("retrompi.explore.search._unseen", lambda *_: False)
                result = explore(question, SearchLimits(orders=20_000, descents=0), confirm=False)
            followed[whole] += result.orders + result.abandoned
            ends.append(sorted((e.outcome, e.detail, e.classes) for e in result.ends))
        assert ends[0] == ends[1], seed
    assert followed[0] < followed[1]


# ---- what is open

RACE = """0 init
0 recv -555 1 10 6
0 recv 1 1 10 6
0 finalize
1 init
1 send 0 1 10 6
1 finalize
2 init
2 send 0 1 10 6
2 finalize
"""


def test_a_receive_from_any_source_takes_either() -> None:
    result = found(RACE)
    assert (result.classes, result.orders, result.abandoned, result.verdict) == (2, 2, 0, "can deadlock")
    (end,) = result.failing
    assert [(s.rank, s.line, s.waits_for) for s in end.stuck] == [(0, 3, "a message from rank 1, tag 1")]
    assert end.matches == [(0, 2, 1, 1)]


def test_a_receive_that_names_its_sender_is_not_open() -> None:
    assert found(RACE.replace("recv -555", "recv 2")).classes == 1


def test_only_one_can_send_so_nothing_is_open() -> None:
    result = found("0 recv -555 1 10 6\n0 recv -555 1 10 6\n1 send 0 1 10 6\n1 send 0 1 10 6\n")
    assert (result.classes, result.orders) == (1, 1)


def test_a_message_may_come_later_than_one_that_was_sent_after_it() -> None:
    """Rank 1 sends to 0, then to 2, which then sends to 0: both orders are possible."""
    result = found("0 recv -555 1 10 6\n0 recv -555 1 10 6\n1 send 0 1 10 6\n1 send 2 1 10 6\n2 recv 1 1 10 6\n2 send 0 1 10 6\n")
    assert result.classes == 2


def test_a_probe_decides_what_the_receive_behind_it_takes() -> None:
    lines = "0 probe -555 1 from=2\n0 recv 2 1 10 6\n0 recv -555 1 10 6\n1 send 0 1 10 6\n2 send 0 1 10 6\n"
    result = found(lines)
    assert (result.classes, result.verdict) == (2, "completes")


def test_a_recorded_test_is_kept_and_another_is_open() -> None:
    lines = "0 irecv 1 1 10 6 req=1\n0 test req=1{}\n0 waitall 1{}\n1 send 0 1 10 6\n"
    assert found(lines.format(" flag=0", " reqs=1")).classes == 1
    assert found(lines.format(" flag=1", " reqs=none")).classes == 1
    assert found(lines.format("", " reqs=1")).classes == 2


def test_which_request_a_waitany_completes_is_open() -> None:
    lines = "0 irecv 1 1 10 6 req=1\n0 irecv 2 1 10 6 req=2\n0 waitany 2 reqs=1,2\n0 waitall 2 reqs=1,2\n1 send 0 1 10 6\n2 send 0 1 10 6\n"
    result = found(lines)
    assert (result.classes, result.verdict) == (2, "completes")


def test_a_waitany_that_cannot_be_told_apart_is_refused() -> None:
    with refused(InputError, "unsupported-action | trace:2 | without reqs="):
        found("0 irecv 1 1 10 6\n0 waitany 1\n1 send 0 1 10 6\n")


def test_a_message_longer_than_its_buffer_aborts() -> None:
    result = found("0 recv -555 1 10 6\n0 recv -555 1 20 6\n1 send 0 1 10 6\n2 send 0 1 20 6\n")
    assert sorted(e.outcome for e in result.ends) == ["aborted", "completed"]
    assert "longer than its receive buffer" in result.failing[0].detail


# ---- buffers


def test_eager_or_not_decides_head_to_head() -> None:
    lines = "0 send 1 1 100 6\n0 recv 1 1 100 6\n1 send 0 1 100 6\n1 recv 0 1 100 6\n"
    assert found(lines, Buffers.without_limit(2, 100)).verdict == "completes"
    assert found(lines, Buffers.without_limit(2, 99)).verdict == "always deadlocks"


def _pool(total: int, *, aborts: bool = True) -> Buffers:
    path = MessagePath(((0, 1e18, "eager"),), 64, 0, PoolSize(total, (64,), 0, aborts, True))
    return Buffers((0, 0), path, path, names=("one",))


def test_a_pool_is_exhausted_in_some_orders_only() -> None:
    lines = "0 send 1 1 64 6\n0 send 1 1 64 6\n1 recv 0 1 64 6\n1 recv 0 1 64 6\n"
    assert found(lines, _pool(128)).verdict == "completes"
    result = found(lines, _pool(64))
    assert result.verdict == "can abort"
    (end,) = result.failing
    assert end.detail == "the shared memory pool of 64 B on host one is exhausted"
    assert end.order == [(0, 1), (0, 2)]


def test_room_counts_only_where_a_waiting_sender_takes_in_nothing() -> None:
    lines = "0 send 1 1 300 6\n0 recv 1 1 300 6\n1 send 0 1 300 6\n1 recv 0 1 300 6\n"
    for total, verdict in ((3, "completes"), (2, "always deadlocks")):
        path = MessagePath(((0, 1e18, "eager"),), 100, 0, None, Space(total, "packets", True))
        assert found(lines, Buffers((0, 0), path, path)).verdict == verdict


def test_a_fixed_buffer_for_unexpected_messages_overflows_if_the_others_are_early() -> None:
    """HPVM's 2 MiB a rank: three messages of 1 MB before the one that rank 0 waits for."""
    lines = "".join(f"{r} init\n" for r in range(3)) + "0 recv 2 1 8 6\n" + "0 recv 1 1 1000000 6\n1 send 0 1 1000000 6\n" * 3
    trace = read(lines + "2 send 0 1 8 6\n" + "".join(f"{r} finalize\n" for r in range(3)))
    result = explore(Question("hpvm", "nt-cluster", Replay(trace), "distributed"), QUICK)
    assert result.verdict == "can abort"
    assert {e.outcome: e.replayed for e in result.ends} == {"completed": "completed", "aborted": "aborted"}
    assert "fixed buffer of rank 0" in result.failing[0].detail


def test_collectives_wait_for_whom_their_algorithm_waits() -> None:
    """A rank that leaves a barrier out stops the others in it; the root of a broadcast of a small message goes on."""
    lines = "0 init\n0 {}\n0 recv 1 1 8 6\n0 finalize\n1 init\n1 send 0 1 8 6\n1 {}\n1 finalize\n"
    for call in ("barrier", "bcast 8 0 6", "allreduce 8 0 6"):
        trace = read(lines.format(call, call))
        assert explore(Question("lam", "nt-cluster", Replay(trace), "distributed"), QUICK).verdict == "completes"
    trace = read("0 init\n0 recv 1 1 8 6\n0 {0}\n0 finalize\n1 init\n1 {0}\n1 send 0 1 8 6\n1 finalize\n".format("bcast 8 1 6"))
    assert explore(Question("lam", "nt-cluster", Replay(trace), "distributed"), QUICK).verdict == "completes"
    trace = read("0 init\n0 recv 1 1 8 6\n0 {0}\n0 finalize\n1 init\n1 {0}\n1 send 0 1 8 6\n1 finalize\n".format("barrier"))
    result = explore(Question("lam", "nt-cluster", Replay(trace), "distributed"), QUICK)
    assert result.verdict == "always deadlocks"
    assert result.failing[0].replayed == "deadlock"


def test_a_nonblocking_collective_goes_on_beside_its_rank() -> None:
    calls = {0: "send 1", 1: "recv 0"}
    lines = "".join(f"{r} init\n{r} ibarrier req=1\n{r} {call} 1 8 6\n{r} wait req=1\n{r} finalize\n" for r, call in calls.items())
    assert explore(Question("nemesis", "nt-cluster", Replay(read(lines)), "distributed"), QUICK).verdict == "completes"


# ---- counting and limits


def test_orders_are_counted_or_estimated() -> None:
    """Two ranks of two calls each and a finalize, which do not meet: 6 over 3 orders."""
    lines = "0 send 0 1 8 6\n0 recv 0 1 8 6\n1 send 1 1 8 6\n1 recv 1 1 8 6\n"
    trace, buffers = read(lines), Buffers.without_limit(2)
    made = ExploredProgram.of(trace, buffers, [[], []])
    exact = count_orders(made, buffers)
    assert (exact.value, exact.exact, exact.text) == (20.0, True, "20")
    guess = count_orders(made, buffers, SearchLimits(counted=0, descents=2000))
    assert not guess.exact
    assert guess.value == pytest.approx(20, rel=0.1)


def test_a_limit_ends_the_search_and_is_told() -> None:
    many = "".join(f"0 recv -555 1 8 6\n{r} send 0 1 8 6\n" for r in range(1, 8))
    result = found(many, limits=SearchLimits(orders=50, descents=0))
    assert (result.limited, result.verdict, result.classes) == ("after 50 orders", "no failure found", 50)


def test_the_machine_says_what_a_slot_is() -> None:
    buffers = Buffers.without_limit(3)
    machine = ProgramMachine(ExploredProgram.of(read(RACE), buffers, [[], [], []]), buffers)
    assert machine.about(1) == ("receive", -555, 1)


# ---- the file and the commands


def test_a_matching_is_written_and_read(tmp_path: Path) -> None:
    trace = read(RACE)
    given = Outcomes(trace.sha256, [(0, 2, 1, 1)], [], [(1, 6), (0, 2)], ["about it"])
    given.write(tmp_path / "one")
    assert read_outcomes(tmp_path / "one") == given
    assert "recv -555 1 10 6 from=1" in given.apply_to(trace, "one").to_ti(0)


@for_each("lines, code, words", [
    ("", "bad-syntax", ":1: expected 'retrompi-matching 1'"),
    ("retrompi-matching 1\nmatch 0 2 1\n", "bad-syntax", ":2: expected 'trace SHA256'"),
    ("retrompi-matching 1\ndone 0 2 perhaps\n", "bad-syntax", "found 'done 0 2 perhaps'"),
    ("retrompi-matching 1\nbegin 0 99999999999\n", "bad-syntax", "found 'begin"),
    ("retrompi-matching 1\ntrace 0123\n", "wrong-trace", "was written for another trace"),
    ("retrompi-matching 1\ntrace {}\nbegin 7 2\n", "out-of-range", "the trace has ranks 0 to 2"),
    ("retrompi-matching 1\ntrace {}\nmatch 0 1 1 1\n", "bad-trace", "receives nothing"),
    ("retrompi-matching 1\ntrace {}\nmatch 0 99 1 1\n", "bad-trace", "rank 0 makes no call on this line"),
    ("retrompi-matching 1\ntrace {}\ndone 0 2 yes\n", "bad-trace", "has no outcome that can be chosen"),
])
def test_a_wrong_matching_is_refused(lines: str, code: str, words: str, tmp_path: Path) -> None:
    trace = read(RACE)
    file = tmp_path / "one"
    file.write_text(lines.format(trace.sha256), encoding="utf-8")
    with refused(InputError, f"{code} | {words}"):
        read_outcomes(file).apply_to(trace, str(file))


def test_the_counterexample_replays(tmp_path: Path, retrompi: Any) -> None:
    trace, file = str(ROOT / "examples" / "explore" / "first-come.ti"), str(tmp_path / "hang.matching")
    where = ["-m", "lam", "-p", "nt-cluster", "--mode", "distributed"]
    assert retrompi("replay", trace, *where).out.startswith("completed")
    told = retrompi("explore", trace, *where, "-o", file, "--json")
    assert told.code == 1
    (row,) = json.loads(told.out)["runtimes"]
    assert row["verdict"] == "can deadlock"
    assert {e["outcome"]: e["replayed"] for e in row["ends"]} == {"completed": "completed", "deadlock": "deadlock"}
    again = retrompi("replay", trace, *where, "--matching", file)
    assert (again.code, again.out.partition(":")[0].split()[0]) == (1, "deadlock")
    both = retrompi("replay", trace, *where, "--matching", file, "--wildcards", "free")
    assert (both.code, both.error) == (2, "conflicting-options")


def test_which_runtimes_can_fail_is_a_table(retrompi: Any) -> None:
    trace = str(ROOT / "examples" / "explore" / "head-to-head.ti")
    told = retrompi("explore", trace, "--models", "lam,lam:sysv,chnt,wmpi", "-p", "nt-cluster", "--mode", "shared", "--json")
    verdicts = {r["model"]: r["verdict"] for r in json.loads(told.out)["runtimes"]}
    assert told.code == 1
    assert verdicts == {"lam": "completes", "lam:sysv": "always deadlocks", "chnt": "always deadlocks", "wmpi": "completes"}


def test_a_runtime_that_does_not_join_the_hosts_cannot_run_it(retrompi: Any) -> None:
    trace = str(ROOT / "examples" / "explore" / "first-come.ti")
    told = retrompi("explore", trace, "-m", "mpich:shmem", "-p", "nt-cluster", "--mode", "distributed")
    assert (told.code, told.out.partition(":")[0]) == (1, "cannot run it")


def test_a_limited_search_finds_what_happens_by_itself() -> None:
    """A recorded program of 1,000 calls, whose messages exhaust WMPI's pool at once."""
    trace = traces.read(ROOT / "examples" / "traces" / "broadcast-4.tar.zst")
    result = explore(Question("wmpi", "nt-cluster", Replay(trace), "shared"), SearchLimits(orders=2000, descents=0))
    assert result.verdict == "can abort"
    assert result.failing[0].replayed == "aborted"


def test_a_runtime_is_asked_for_once(retrompi: Any) -> None:
    trace = str(ROOT / "examples" / "explore" / "first-come.ti")
    assert retrompi("explore", trace).error == "missing-option"
    assert retrompi("explore", trace, "-m", "lam", "--models", "all").error == "conflicting-options"
    assert retrompi("explore", trace, "-m", "lan").error == "unknown-model"
