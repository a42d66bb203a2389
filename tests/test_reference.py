"""The engine equals the executable specification: every time to the picosecond, every counter, match and outcome."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import program_generator
import pytest
from cases import for_each
from engine_runs import job

from retrompi import _engine
from retrompi.reference import NotCovered, __main__, host, mpi, network, shared_memory, tcp
from retrompi.reference.algorithms import ALGORITHMS, CollectiveMember
from retrompi.reference.collectives import Choices
from retrompi.reference.compare import compare_question
from retrompi.reference.network import Wire
from retrompi.reference.programs import DrawnProgram, compare_programs, draw_program, shrink
from retrompi.spec import registry
from retrompi.spec.conditions.cojobs import JobSpec
from retrompi.spec.question import Beside, Question, Replay, pingpong
from retrompi.traces import generate


def _equal(model: str, platform: str, workload: Any, mode: Any = "distributed", **options: Any) -> str:
    """The outcome, which is the same by both."""
    engine, rule, what = compare_question(Question(model, platform, workload, mode, **options))
    assert not what, what
    assert rule["time_ps"] == engine["time_ps"]
    return str(rule["outcome"])


@for_each("model", lambda: sorted(registry.models()), few=12)
def test_a_pingpong_of_a_model_on_its_own_machine(model: str) -> None:
    assert _equal(model, registry.own_platform(model), pingpong([0, 1000, 40_000], 2)) == "completed"


@for_each("fidelity", ("curve", "loggp"))
def test_the_laws_below_the_mechanism(fidelity: str) -> None:
    assert _equal("wmpi", "nt-pair", pingpong([0, 1000], 2), "shared", fidelity=fidelity) == "completed"


@for_each("cores, timeout, kind", [(1, "500ms", "hub"), (1, "60ms", "hub"), (2, "100ms", "hub"), (1, "60ms", "switch")])
def test_frames_that_a_host_only_takes_in_are_left_out_on_a_crowded_wire(cores: int, timeout: str, kind: str) -> None:
    """Datagrams of several frames that are sent again while they wait: most frames find a host that nobody uses, and some do not."""
    overrides = [f"wmpi.udp_timeout={timeout}", f"platform.host.cores={cores}", f"platform.link.kind={kind}"]
    question = Question("wmpi", "nt-cluster*8", Replay(generate.halo2d(4, 2, 8192, 2, periodic=True)), "distributed", overrides)
    engine, _, what = compare_question(question)
    assert not what, what
    assert engine["outcome"] == "completed"


@for_each("size", (100, 65536, 300_000))
def test_boosted_processes_that_yield_to_each_other_come_to_an_end(size: int) -> None:
    """Each is woken above the others and offers the processor: what ends a quantum ends the boost, or nobody else would ever run."""
    assert _equal("wmpi:absorbed", "nt-pair", Replay(generate.halo2d(1, 5, size, 2)), "shared") == "completed"


@for_each("model, sets", [("ntmpich", ["wait=poll"]), ("ntmpich", ["wait=sleep"]), ("wmpi", []),
                          ("hpvm", ["platform.host.quantum_carry=1"])])
def test_a_quantum_that_is_counted_in_ticks_lasts_one_at_least(model: str, sets: list[str]) -> None:
    """E-NT-04: who gets the processor in the middle of a tick loses it at a tick, however short the quantum is."""
    work, times = generate.pingpong([1024], 20), []
    for quantum in ("100us", "10ms"):
        question = Question(model, "nt-pair", Replay(work), "shared", [*sets, f"platform.host.quantum={quantum}"])
        engine, _, what = compare_question(question)
        assert not what, what
        assert engine["outcome"] == "completed"
        times.append(engine["time_ps"])
    assert times[0] == times[1]


@for_each("rank0, rank1, outcome", [
    ("recv 1 0 8 6", "recv 0 0 8 6", "deadlock"),
    ("send 1 0 100 6", "recv 0 0 8 6", "aborted"),
    ("sleep 2", "recv 0 0 8 6", "timeout"),
    ("compute 1e13", "recv 0 0 8 6", "timeout"),
    ("kernel daxpy 1000 50", "kernel dyads 100", "completed"),
    ("isend 1 0 300000 6 req=1; wait req=1", "compute 1e6; irecv -555 -444 300000 6; waitall", "completed"),
])
def test_how_a_run_ends(rank0: str, rank1: str, outcome: str) -> None:
    assert _equal("winmpich", "nt-pair", Replay(job(rank0, rank1)), "shared", limit_s=1.0) == outcome


EVERY_COLLECTIVE = (
    "barrier; bcast 20000 1 6; reduce 3000 1e5 2 6; allreduce 3000 1e5 6; scan 100 0 6; exscan 100 0 6; gather 100 100 1 6 6",
    "scatter 5000 5000 2 6 6; allgather 5000 5000 6 6; alltoall 3000 3000 6 6; reducescatterblock 1000 1e4 6; reducescatter 8 0 4000 1e4 6",
    "gatherv 8 8 8 8 1 6 6; scatterv 9 9 9 9 0 6 6; allgatherv 40000 40000 40000 40000 6 6",
    "alltoallv 3 1 1 1 3 1 1 1 6 6; alltoallw 7 7 7 7 7 7",
    "ibarrier req=1; iallreduce 20000 1e5 6 req=2; compute 1e4; ialltoall 100 100 6 6 req=3; waitall 3 reqs=3,1,2",
    "comm_dup 1 0-2; ibcast 3000 2 6 comm=1 req=1; isend 0 5 9 6 comm=1 req=2; irecv -555 5 9 6 comm=1 req=3; waitany 3 reqs=1,2,3",
    "cart_create 1 2,0,1 dims=3x1 periods=1x0; neighbor_alltoallv 50 60 0 0 60 50 0 0 6 6 comm=1; comm_free comm=1",
)
"""Calls that three ranks make alike, as far as the trace's rules let them."""


@for_each("model, platform, mode", [("wmpi", "nt-cluster", "distributed"), ("winmpich", "nt-cluster", "shared"),
                                    ("nemesis", "abe", [0, 1, 0]), ("lam", "nt-cluster", "distributed"),
                                    ("openmpi", "poweredge-2650*3@infiniband-topspin", "distributed")])
@for_each("calls", lambda: EVERY_COLLECTIVE)
def test_collectives(model: str, platform: str, mode: Any, calls: str) -> None:
    assert _equal(model, platform, Replay(job(calls, calls, calls)), mode, what_if_hardware=True) in ("completed", "deadlock")


def test_a_collective_of_two_groups() -> None:
    both = "comm_split {mine} {group}; intercomm_create 9 {group} {other} comm={mine}; barrier comm=9; allgatherv {sizes} 6 6 comm=9"
    low = both.format(mine=1, group="0,2", other="1", sizes="10 4000")
    high = both.format(mine=2, group="1", other="0,2", sizes="4000 10 10")
    last = "; bcast 5000 {} 6 comm=9; intercomm_merge 3 1,0,2 comm=9; scan 8 0 6 comm=3"
    trace = job(low + last.format(-666), high + last.format(1), low + last.format(-777))
    for model, platform in (("wmpi", "nt-cluster"), ("nemesis", "abe")):
        assert _equal(model, platform, Replay(trace)) == "completed"


@for_each("model, platform, mode", [("craympt", "cray-t3e", "distributed"), ("craympt", "cray-j90", "shared"),
                                    ("craympt:shmem", "cray-t3e", "distributed")])
@for_each("calls", (
    "Win_fence win=1; Put {o} 0 100 6 win=1; Win_fence win=1; bcast 20000 1 6",
    "Win_lock {o} 1 win=1; Put {o} 0 5000 6 win=1; Win_flush {o} win=1; Win_unlock {o} win=1",
    "Win_lock_all win=1; Rput {o} 0 70 6 win=1 req=1; Rget {o} 0 9000 6 win=1 req=2; waitall 2 reqs=2,1; Win_unlock_all win=1",
    "Win_post {o} win=1; Win_start {o} win=1; Accumulate {o} 0 70000 6 win=1; Win_complete win=1; Win_wait win=1",
))
def test_one_sided_operations(model: str, platform: str, mode: str, calls: str) -> None:
    ranks = [f"win_create 1 1000; {calls.format(o=1 - r)}; win_free 1" for r in range(2)]
    assert _equal(model, platform, Replay(job(*ranks)), mode) == "completed"


def _as_told(steps: Any) -> list[Any]:
    """The specification's steps; of a wait, the place of what it waits for among those that are open."""
    told: list[Any] = []
    opened: list[Any] = []
    for step in steps:
        if step.kind == "wait":
            told.append(("wait", opened.index(step.of)) if step.of else "wait for all")
            opened = [other for other in opened if step.of and other is not step.of]
            continue
        opened += [step] if step.kind in ("send", "receive") else []
        told.append((step.kind, step.peer, step.size, step.copies))
    return told


def _as_the_engine_tells(steps: Any) -> list[Any]:
    """The engine's, which count slots."""
    names = {"isend": "send", "irecv": "receive", "copy": "copy", "combine": "combine", "taken": "taken", "all_taken": "all taken"}
    told: list[Any] = []
    opened: list[int] = []
    for step in steps:
        if step["kind"] == "wait":
            told.append(("wait", opened.index(step["slot"])))
            opened.remove(step["slot"])
        elif step["kind"] == "waitall":
            told.append("wait for all")
            opened = []
        elif name := names.get(step["kind"]):
            opened += [step["slot"]] if name in ("send", "receive") else []
            told.append((name, step["peer"], step["slot"] if name == "all taken" else step["bytes"], step["copies"]))
    return told


NO_PART = {"put_tree", "nothing", "by_reference", "nodes", "nodes_scatter", "nodes_forward"}
"""Algorithms that are not drawn for the parts of others."""


@for_each("operation", lambda: sorted(name for name in ALGORITHMS if not name.startswith("neighbor")))
def test_the_steps_of_every_algorithm(operation: str) -> None:
    """Each algorithm of the engine is here, and its steps are the engine's: for any member, root, sizes, hosts, algorithms of its parts."""
    assert sorted(ALGORITHMS[operation]) == _engine.collective_algorithms()[operation]
    (seed,) = program_generator.seeds(1)
    rng = random.Random(seed)
    for algorithm in sorted(set(ALGORITHMS[operation]) - {"put_tree", "nothing"}):
        for n in range(1, 14):
            parts = {other: rng.choice(sorted(set(names) - NO_PART)) for other, names in ALGORITHMS.items() if other[:8] != "neighbor"}
            table = [(name, part, 0.0, None, 1, None, "any", "both", False) for name, part in parts.items()]
            tree = {"algorithm": "binomial", "copies_root": 0.0, "copies_leaf": 0.0}
            rows = {"collectives": table, "bcast": tree, "context_bytes": 4, "split_gathers": False}
            size, size_in = rng.choice((0, 1, 7, 100, 100_000)), rng.choice((0, 7, 1000))
            root = rng.randrange(n) if operation in ("bcast", "reduce", "gather", "gatherv", "scatter", "scatterv") else 0
            if operation in ("allgather", "reducescatterblock"):
                size_in = size
            out, into = ([rng.choice((0, 0, 1, 5, 1000, 40_000, 70_000)) for _ in range(n)] for _ in range(2))
            out = out if operation in ("alltoallv", "alltoallw", "scatterv") else []
            into = into if operation in ("alltoallv", "alltoallw", "gatherv", "allgatherv", "reducescatter") else []
            hosts = [rng.randrange(3) for _ in range(n)]
            me = rng.randrange(n)
            member = CollectiveMember(n, me, Choices(rows), root, size, size_in, out, into, hosts)
            told = _engine.collective_steps(operation, algorithm, n, me, root, size, size_in, out, into, parts, hosts)
            assert _as_told(ALGORITHMS[operation][algorithm](member)) == _as_the_engine_tells(told), f"seed {seed}: {algorithm}, {member}"


def test_the_processor_time_of_a_call_that_a_limit_ends() -> None:
    engine, _, what = compare_question(Question("winmpich", "nt-pair", Replay(job("compute 1e13", "")), "distributed", limit_s=1.0))
    assert not what, what
    assert engine["per_rank"][0]["compute_ps"] > 0.9e12
    assert engine["per_rank"][0]["cpu_ps"] > 0.9e12


def test_two_groups_exchange_the_context_that_each_has_found() -> None:
    """Of 4 B, not Nemesis' set of 256 B (code: MPICH2, src/mpi/comm/commutil.c); before it 8 B for each member of the other group."""
    calls = ("comm_split 1 0; intercomm_create 2 0 1 comm=1", "comm_split 3 1; intercomm_create 2 1 0 comm=3")
    engine, _, what = compare_question(Question("nemesis", "abe", Replay(job(*calls)), "distributed"))
    assert not what, what
    assert [size for _, _, _, size, line, _, _, _ in sorted(engine["messages_of"], key=lambda m: m[6]) if line == 3] == [8, 8, 4, 4]


TWICE = "irecv 1 5 4096 6; test 1 0 5{}; "


@for_each(
    "receiver, received",
    [
        (2 * TWICE.format(" flag=1"), 2),
        (2 * TWICE.format(" flag=1") + "test 1 0 5 flag=1; wait 1 0 5", 2),  # MPI_REQUEST_NULL, at once
        (TWICE.format(" flag=1") + "test 1 0 5 flag=1; " + TWICE.format(" flag=1"), 2),
        # Without a record a test may have failed, and the next wait belongs to it: as in SMPI's replay, which takes the older.
        ("compute 1e9; irecv 1 5 4096 6; test 1 0 5; irecv 1 5 4096 6; wait 1 0 5; wait 1 0 5", 2),
    ],
)
def test_requests_without_a_number_that_tests_complete(receiver: str, received: int) -> None:
    """By the trace a test has succeeded: later calls of its key are about the request that has been posted since."""
    engine, _, what = compare_question(Question("nemesis", "abe", Replay(job(receiver, 2 * "send 0 5 4096 6; ")), "distributed"))
    assert not what, what
    assert (engine["outcome"], engine["delivered"]) == ("completed", received)


def test_a_program_that_differed() -> None:
    """Its processor time did: a rank that ended the job gives its processor up first, and the others' copies change speed."""
    lines = (("ISsend 1 2 16384 6",), ("recv -555 -444 8192 6",), ("finalize",),
             ("send 1 1 16384 6", "sendRecv 16384 4 16384 2 6 6 stag=3 rtag=3"), ("isend 2 2147483647 16384 6 req=1",))
    program = DrawnProgram("wmpi", "myrinet-piii", (0,) * 5, lines, (("platform.host.boost", "1"),))
    assert not compare_question(program.question())[2]


def test_links_that_are_as_scarce_but_for_rounding() -> None:
    """Which of them was divided first differed, and with it the last bit of a share, and a picosecond."""
    lines = (("irecv 1 0 20000 0", "irecv 2 0 20000 0", "irecv 3 0 20000 0", "isend 2 0 1500 0", "isend 3 0 1500 0"),
             ("irecv 2 0 20000 0", "irecv 3 0 20000 0", "isend 2 0 9000 0", "isend 3 0 9000 0", "isend 0 0 9000 0"),
             ("irecv 3 0 20000 0", "irecv 0 0 20000 0", "irecv 1 0 20000 0", "isend 3 0 9000 0", "isend 0 0 9000 0", "isend 1 0 9000 0"),
             ("irecv 1 0 20000 0", "irecv 2 0 20000 0", "isend 0 0 1500 0", "isend 1 0 1500 0", "isend 2 0 1500 0"))
    program = DrawnProgram("mpibip", "nt4-p6-200*4@switch-10", (0, 1, 2, 3), lines, seed=46, traffic=("any 32706B/s 200B poisson",))
    assert not compare_question(program.question())[2]


def test_of_frames_that_begin_at_one_instant_the_later_sent_waits() -> None:
    """The engine had planned the later one ahead, and did not count it as one that has to share its links."""
    scatter = "iscatter 100 100 3 6 6 req=1"
    often = {1: "testsome 1 reqs=1 done=1", 2: "waitall 1 reqs=1", 4: "wait req=1"}
    lines = {r: (*(scatter, done) * 3, "ialltoall 100 100 6 6 req=1") for r, done in often.items()}
    lines |= {0: (scatter,), 3: (*(scatter, "wait req=1") * 2, scatter), 5: (scatter,)}
    program = DrawnProgram("mpichgm", "myrinet-clos", (0, 1, 2, 3, 3, 0), tuple(lines[r] for r in range(6)))
    engine, _, what = program.compare()
    assert not what, what
    assert engine["contended"] > 0


def test_a_deadlock_is_when_the_last_event_of_the_job_was() -> None:
    """It had been when the next frame of others set out, of which the engine has no event where that has its links to itself."""
    lines = (("irecv 2 0 20000 0", "waitall", "irecv 2 0 20000 0", "isend 3 0 1500 0", "isend 4 0 1500 0", "waitall"),
             ("isend 2 0 4000 0", "isend 3 0 4000 0", "isend 4 0 4000 0"),
             ("isend 3 0 20000 0", "isend 4 0 20000 0", "isend 0 0 20000 0"),
             ("isend 4 0 9000 0", "isend 0 0 9000 0", "isend 1 0 9000 0", "isend 2 0 9000 0"),
             ("isend 0 0 1500 0", "isend 1 0 1500 0", "isend 2 0 1500 0"))
    program = DrawnProgram(
        "pvm", "nt-wan", (0, 1, 2, 3, 4), lines, seed=14, network="fluid",
        traffic=("any 39863.9B/s 1500B poisson",),
        failures=("link n4@2.09942676395s..2.10065921495s", "link n5@7.52308671178s..8.00978522408s"),
    )
    engine, _, what = compare_question(program.question())
    assert not what, what
    assert engine["outcome"] == "deadlock"


TIES: list[Any] = [
    ("mpibip:bip", "ibm-43p*4@myrinet-lanai9-clos", (3, 1, 2, 3, 0),
     (("finalize",), ("ibsend 3 77 1 6 req=1",), ("send 3 2 1 6",), ("recv 4 0 1 6",), ("rsend 3 0 1 6",))),
    ("mpibip:bip-windows", "myrinet-clos", (0, 1, 2, 2, 0, 1, 2, 1),
     (("isend 5 77 0 6 req=1",), ("ISsend 5 0 0 6 req=1",), ("send 5 0 0 6",), ("finalize",), ("isend 5 1 0 6 req=1",),
      ("irecv 1 -444 0 6 req=1", "irecv -555 0 0 6 req=2", "irecv -555 -444 0 6 req=3", "irecv 7 -444 0 6 req=4",
       "irecv -555 2147483647 0 6 req=5", "testsome 5 reqs=1,2,3,4,5 done=2"), ("finalize",), ("finalize",))),
]


@for_each("model, platform, placement, lines", TIES)
def test_flows_that_end_together_arrive_in_the_order_of_sending(
    model: str, platform: str, placement: tuple[int, ...], lines: Any, monkeypatch: Any
) -> None:
    """Where two shared a link and ended half a picosecond after one, the first of them had arrived a picosecond before."""
    arrivals: list[tuple[int, int]] = []
    arrives = Wire._arrives

    def watched(wire: Wire, t: int, frame: Any) -> None:
        assert t >= wire.loop.now, "time runs back"
        arrivals.append((t, frame.order))
        arrives(wire, t, frame)

    monkeypatch.setattr(Wire, "_arrives", watched)
    assert not compare_question(DrawnProgram(model, platform, placement, lines).question())[2]
    assert len({t for t, _ in arrivals}) < len(arrivals), "none end together"
    assert arrivals == sorted(arrivals)


CUT_OFF: list[Any] = [
    # What waits when a link fails keeps its order: the one that was sent first had gone first.
    DrawnProgram("nemesis", "nt4-p6-200*4@switch-100", (0, 1, 2, 3),
            (("irecv 2 0 20000 0",), ("isend 2 0 9000 0", "isend 3 0 9000 0", "isend 0 0 9000 0"),
             ("isend 3 0 20000 0", "isend 0 0 20000 0"), ("finalize",)), failures=("link n4@0.0263665203783s..0.0343681664934s",)),
    # A frame that a switch has dropped still passes the link before: that had been free at once.
    DrawnProgram("lam", "nt4-p6-200*4@switch-10", (0, 1, 2, 3),
            (("isend 1 0 4000 0", "isend 3 0 4000 0"), ("finalize",), ("isend 3 0 1500 0", "isend 0 0 1500 0", "isend 1 0 1500 0"),
             ("irecv 0 0 20000 0", "isend 1 0 20000 0")), (("platform.link.buffer", "3000B"),),
            failures=("link n3@0.0245534952781s..0.0251162911403s",)),
    # The next frame of a station whose first one is lost comes to the hub then: it had come when it was sent.
    DrawnProgram("mpich2sock", "nt4-p6-200*3@hub-10", (0, 1, 2), (("isend 1 0 4000 0",), ("finalize",), ("isend 0 0 1500 0",)),
            failures=("link n2@0.0091209082932s..0.0130666686574s",)),
    DrawnProgram("mpich2sock", "nt4-p6-200*6@hub-10", (0, 1, 2, 3, 4, 5),
            (("isend 1 0 4000 0", "isend 2 0 4000 0"), ("isend 2 0 4000 0", "isend 3 0 4000 0", "isend 4 0 4000 0", "isend 5 0 4000 0"),
             ("finalize",), ("isend 2 0 1500 0",), ("isend 5 0 9000 0", "isend 0 0 9000 0", "isend 1 0 9000 0", "isend 2 0 9000 0"),
             ("isend 0 0 9000 0",)), (("platform.link.access", "csma-cd"),), seed=14,
            failures=("link n1@0.51028214574s..0.510630752897s",)),
    # A frame that has passed and not arrived is cut off, and with it the one that had begun behind it.
    DrawnProgram("ntmpich", "nt4-p6-200*6@hub-100", (0, 1, 2, 3, 4, 5),
            (("isend 1 0 20000 0", "isend 2 0 20000 0", "isend 3 0 20000 0", "isend 5 0 20000 0"),
             ("isend 2 0 9000 0", "isend 3 0 9000 0", "isend 4 0 9000 0"),
             ("isend 4 0 4000 0", "isend 5 0 4000 0", "isend 0 0 4000 0", "isend 1 0 4000 0"),
             ("isend 4 0 4000 0", "isend 5 0 4000 0", "isend 0 0 4000 0", "isend 1 0 4000 0", "isend 2 0 4000 0"),
             ("isend 5 0 9000 0", "isend 0 0 9000 0", "isend 1 0 9000 0", "isend 3 0 9000 0"),
             ("isend 0 0 1500 0", "isend 1 0 1500 0", "isend 2 0 1500 0", "isend 3 0 1500 0", "isend 4 0 1500 0")),
            (("platform.link.latency", "x10"), ("platform.link.access", "csma-cd")), seed=35,
            failures=("link n6@0.065206212482s..0.0684460530546s",)),
]


@for_each("program", CUT_OFF)
def test_frames_that_wait_when_a_link_fails(program: DrawnProgram) -> None:
    engine, _, what = compare_question(program.question())
    assert not what, what
    assert engine["failed"], "nothing failed while it ran"


SELDOM_DRAWN: list[Any] = [
    # A wait for some takes out every request that is complete, also those behind a persistent one: the second receive is another one.
    DrawnProgram("nemesis", "abe", (0, 1),
            (("recvInit 1 9 8 6", "start 1 0 9", "irecv 1 0 8 6", "sleep 0.05", "waitsome", "irecv 1 0 8 6", "wait 1 0 0"),
             ("send 0 9 8 6", "send 0 0 8 6", "sleep 0.2", "send 0 0 8 6"))),
    # A wait for any takes out one of two that are complete, a wait for some both.
    DrawnProgram("nemesis", "abe", (0, 1),
            (("irecv 1 0 8 6 req=1", "irecv 1 1 8 6 req=2", "sleep 0.05", "waitany 2 reqs=1,2", "test req=2", "wait req=2"),
             ("send 0 0 8 6", "send 0 1 8 6"))),
    DrawnProgram("nemesis", "abe", (0, 1),
            (("irecv 1 0 8 6 req=1", "irecv 1 1 8 6 req=2", "sleep 0.05", "waitsome 2 reqs=1,2", "irecv 1 2 8 6 req=2", "wait req=2"),
             ("send 0 0 8 6", "send 0 1 8 6", "sleep 0.2", "send 0 2 8 6"))),
    # A packet that stays in the pool costs the receiver its work all the same, once as it comes and once as it is fetched.
    DrawnProgram("wmpi", "nt-pair", (0, 0), (("recv 1 1 8 6", "recv 1 0 4000 6"), ("send 0 0 4000 6", "send 0 1 8 6")),
            hops=(("same", 0, "recv_cpu", 1e-5),)),
    # Two updates of credits are lost, one after the other has arrived: the second waits no longer than the first.
    DrawnProgram("hpvm", "nt4-p6-200*2@switch-100", (0, 1), (("send 1 0 200000 0",), ("recv 0 0 200000 0",)),
            failures=("link n1@0.393143s..0.394143s", "link n1@0.034698s..0.037698s")),
    DrawnProgram("hpvm", "nt4-p6-200*2@switch-100", (0, 1), (("send 1 0 200000 0",) * 2, ("recv 0 0 200000 0",) * 2),
            failures=("link n2@0.191539s..0.192039s", "link n1@0.238126s..0.241126s", "link n2@1.239524s..1.242524s",
                      "link n1@1.982683s..1.983683s")),
    # The same of a segment: what is lost later, when all has been acknowledged, is sent again no later than what was lost first.
    DrawnProgram("mpich", "nt4-p6-200*2@switch-100", (0, 1), (("send 1 0 1000 0", "sleep 5") * 3, ("recv 0 0 1000 0", "sleep 5") * 3),
            failures=("link n1@0.027858s..0.037858s", "link n1@5.023996s..5.033996s", "link n1@10.020778s..10.030778s")),
    # Each wait is charged to a quantum that outlives it.
    DrawnProgram("wmpi", "nt-pair", (0, 0), (("compute 1e5", "sleep 0.001") * 20, ("compute 1e6", "sleep 0.001") * 20),
            (("platform.host.quantum_carry", "1"), ("platform.host.wait_charge", "1ms"), ("platform.host.quantum", "10ms"))),
    # A switch of a fat tree with two rails fails in both planes.
    DrawnProgram("nemesis", "nt-fat-tree", (0, 1, 2, 3, 4, 5),
            tuple((*(f"irecv {(r + 3) % 6} 0 20000 6",) * 6, *(f"isend {(r + 3) % 6} 0 20000 6",) * 6, "waitall") for r in range(6)),
            (("platform.link.rails", "2"),), failures=("switch 1.0@1ms..40ms",)),
    # The last send of a non-blocking reduction is waited for without blocking.
    DrawnProgram("nemesis", "abe", (0, 1, 1),
            (("ireduce 300000 0 1 6 req=1", "sleep 0.001", "compute 1e7", "test req=1 flag=0", "compute 1e7", "wait req=1"),
             ("sleep 0.5", "ireduce 300000 0 1 6 req=1", "wait req=1"), ("ireduce 300000 0 1 6 req=1", "wait req=1")),
            (("nemesis.coll.reduce", "nodes_forward"),)),
    # Each round of a ring waits for its send, here one whose data wait for the receiver.
    DrawnProgram("nemesis", "nt-cluster", (0, 1, 2),
            (("allreduce 1000000 0 6", "send 2 0 8 6"), ("sleep 0.01", "allreduce 1000000 0 6"), ("allreduce 1000000 0 6", "recv 0 0 8 6")),
            (("nemesis.coll.allreduce", "ring"),)),
    # A card has one place for a sender's messages.
    DrawnProgram("mpibip", "myrinet-clos", (0, 1), (("send 1 0 8 6",) * 6, ("sleep 0.01", *("recv 0 0 8 6",) * 6)),
            hops=(("remote", 0, "slots", 1.0),)),
]
"""Programs that a changed engine answered otherwise (packaging/mutants.py), and that are seldom drawn."""


@for_each("program", SELDOM_DRAWN)
def test_what_is_seldom_drawn(program: DrawnProgram) -> None:
    engine, _, what = program.compare()
    assert not what, what
    assert engine["outcome"] == "completed", engine["detail"]


BESIDE: list[Any] = [
    ({"traffic": ["any 4Mbps 1500B poisson", "n1->any 500kbps 200B onoff:3ms/7ms"]}, "traffic"),
    ({"failures": ["hub@2ms..60ms"]}, "lost"),
    ({"kills": ["daemon on n2@10ms"]}, ""),
    ({"kills": ["rank 1@30ms", "rank 1@31ms"]}, ""),
]


@for_each("beside, counted", BESIDE)
def test_what_happens_beside_a_program(beside: dict[str, Any], counted: str) -> None:
    program = job("send 1 0 100000 0; recv 1 0 100000 0", "recv 0 0 100000 0; send 0 0 100000 0")
    engine, _, what = compare_question(Question("wmpi", "nt-cluster", Replay(program), "distributed", beside=Beside(**beside)))
    assert not what, what
    assert engine[counted] if counted else "killed" in engine["detail"]


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
])
def test_a_rule_that_is_changed_is_noticed(owner: type, name: str, change: Callable[[Any], Any], monkeypatch: Any) -> None:
    """The comparison is no formality: with one rule of the specification changed, some of these questions differ."""
    monkeypatch.setattr(owner, name, change(getattr(owner, name)))
    text = "send 1 0 3000 6; recv 1 0 3000 6; sleep 0.001; send 1 0 3000 6"
    answer = "recv 0 0 3000 6; send 0 0 3000 6; recv 0 0 3000 6; recv 0 0 8 6"
    asked = [("winmpich", "nt-pair", "shared"), ("wmpi", "nt-pair", "distributed"), ("sockets", "nt-pair", "distributed")]

    def differs(model: str, platform: str, mode: str) -> bool:
        try:
            return bool(compare_question(Question(model, platform, Replay(job(text, answer)), mode, limit_s=20.0))[2])
        except AssertionError:
            return True

    assert any(differs(*question) for question in asked)


def test_a_difference_is_made_small() -> None:
    sender, receiver = ("init", *["compute 1"] * 20, "Ssend 1 0 8 6", "compute 2", "finalize"), ("init", "recv 0 0 8 6", "finalize")
    program = replace(draw_program(3), lines=(sender, receiver), placement=(0, 0), cores=())
    small = shrink(program, lambda p: any("Ssend" in line for lines in p.lines for line in lines))
    assert small.lines == (("Ssend 1 0 8 6",),) or small.size == 1
    assert not small.sets
    made = eval(small.text(), {"DrawnProgram": DrawnProgram})
    assert made == small


@for_each("options, what", [
    ({"network": "simgrid"}, "the network 'simgrid'"),
    ({"beside": Beside(jobs=[JobSpec("wmpi", job("barrier", "barrier"))])}, "further jobs"),
    ({"order": [(0, 1)]}, "an order of calls"),
])
def test_what_has_no_rule_is_refused(options: dict[str, Any], what: str) -> None:
    with pytest.raises(NotCovered, match=what):
        compare_question(Question("wmpi", "nt-pair", Replay(job("barrier", "barrier")), "distributed", **options))


def test_the_command(tmp_path: Any, capsys: Any) -> None:
    file = tmp_path / "job.ti"
    file.write_text("0 init\n0 send 1 0 8 6\n0 finalize\n1 init\n1 recv 0 0 8 6\n1 finalize\n")
    assert __main__.main([str(file), "-m", "wmpi", "-p", "nt-pair", "--mode", "shared"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("equal")
    assert __main__.main([str(file), "--network", "fluid"]) == 0
    assert __main__.main([str(file), "--network", "simgrid"]) == 2
    assert "does not cover" in capsys.readouterr().err
    assert __main__.main([str(file), "-m", "wmpj"]) == 2
    assert "wmpi" in capsys.readouterr().err
    assert __main__.main(["--programs", "2", "--seed", "5"]) == 0
    assert "2 programs compared, 0 differ" in capsys.readouterr().out
