"""Repetitions that are not simulated again: the same result as a run in full, to the picosecond."""

from __future__ import annotations

import random

import pytest

from retrompi.sim import simulate
from retrompi.sim.observe import Observe
from retrompi.sim.result import Result
from retrompi.spec.question import Question, Replay
from retrompi.traces import Trace, generate

IN_FULL = Observe(profile=True)
"""What records calls is simulated call by call."""

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


def _said(r: Result) -> tuple[object, ...]:
    return r.outcome, r.time_ps, r.marks, r.per_rank, r.messages, r.packets, r.frames, r.retransmissions, r.contended


def _same(question: Question) -> tuple[int, int]:
    """The events of the run and of the one in full; their results are equal."""
    short, full = simulate.run(question), simulate.run(question, IN_FULL)
    assert _said(short) == _said(full)
    return short.events, full.events


def _program(rng: random.Random) -> Trace:
    """Two ranks, a few messages of either, repeated."""
    body = [(rng.randint(0, 1), rng.choice([0, 1, 100, 1460, 2920, 5000, 20_000])) for _ in range(rng.randint(1, 4))]
    compute = rng.choice([0, 1000, 50_000])
    lines: list[list[str]] = [["0 init"], ["1 init"]]
    for _ in range(rng.choice([9, 40])):
        for sender, size in body:
            lines[sender].append(f"{sender} send {1 - sender} 0 {size} 0")
            lines[1 - sender].append(f"{1 - sender} recv {sender} 0 {size} 0")
        if compute:
            lines[0].append(f"0 compute {compute}")
    for rank in (0, 1):
        lines[rank].append(f"{rank} finalize")
    return Trace.parse([("\n".join(each).encode() + b"\n", f"rank-{rank}.txt", rank) for rank, each in enumerate(lines)])


@pytest.mark.parametrize(("model", "platform", "mode"), PAIRS)
def test_a_pingpong_is_the_same_as_in_full(model: str, platform: str, mode: str) -> None:
    trace = generate.pingpong([0, 1000, 5000, 65536], {0: 40, 1000: 40, 5000: 40, 65536: 20}, warm_up=2)
    _same(Question(model, platform, Replay(trace), mode))


@pytest.mark.parametrize("model", ["winmpich", "wmpi", "hpvm"])
def test_most_of_the_published_pingpong_only_repeats(model: str) -> None:
    short, full = _same(Question(model, "nt-pair", Replay(generate.pingpong([0, 8192], 400)), "distributed"))
    assert short < full / 30


CLUSTERS = [("wmpi", "nt-cluster"), ("hpvm", "nt-cluster"), ("winmpich", "nt-cluster"), ("pvm", "nt-cluster"), ("nemesis", "abe")]


@pytest.mark.parametrize(("model", "platform"), CLUSTERS)
def test_a_halo_is_the_same_as_in_full(model: str, platform: str) -> None:
    """Also where it never repeats: WMPI's daemons send datagrams again at ticks of their clocks."""
    for size in (1000, 8192):
        _same(Question(model, f"{platform}*9", Replay(generate.halo(9, 40, size))))


@pytest.mark.parametrize(("model", "platform"), [("hpvm", "nt-cluster*9"), ("lam", "nt-unix*16"), ("nemesis", "abe*16")])
def test_most_of_a_halo_only_repeats(model: str, platform: str) -> None:
    """Hosts that share a medium or a switch fall into step; ranks then wait in the middle of sends, with packets of others under way."""
    ranks = int(platform.partition("*")[2])
    short, full = _same(Question(model, platform, Replay(generate.halo(ranks, 300, 8192))))
    assert short < full / 3


@pytest.mark.parametrize("seed", range(12))
def test_any_repeated_program_is_the_same_as_in_full(seed: int) -> None:
    rng = random.Random(seed)
    model, platform, mode = rng.choice(PAIRS)
    _same(Question(model, platform, Replay(_program(rng)), mode, seed=seed + 1))
