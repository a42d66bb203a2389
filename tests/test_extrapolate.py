"""Traces for more ranks than were recorded: generated and recorded truth where the pattern is exact, a refusal where it is not known."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

import pytest
from cases import for_each
from conftest import Outcome
from refusals import agrees

from retrompi import traces
from retrompi.base.errors import UsageError
from retrompi.sim import simulate
from retrompi.spec.question import Question, Replay
from retrompi.traces import Trace, TraceError, generate
from retrompi.traces.extrapolate import Extrapolated, compare, extrapolate

DATA = Path(__file__).parent / "data" / "traces"
Run = Callable[..., Outcome]


def recorded(program: str, ranks: int) -> Trace:
    """A recording of NAS Parallel Benchmarks 3.3.1 (tests/data/traces/README.md)."""
    return traces.read(DATA / "scaling" / f"npb3.3.1-{program}-{ranks}.ti.zst")


@lru_cache(maxsize=4)
def from_sizes(program: str, sizes: tuple[int, ...], ranks: int) -> Extrapolated:
    return extrapolate([recorded(program, p) for p in sizes], ranks)


def same(made: Trace, wanted: Trace) -> bool:
    return all(made.to_ti(r) == wanted.to_ti(r) for r in range(wanted.ranks))


GENERATED: dict[str, tuple[Callable[..., Trace], list[tuple[int, ...]]]] = {
    "a halo with borders": (lambda p, r, c: generate.halo2d(r, c, 1000, 3, flops=5e3), [(16, 4, 4), (36, 6, 6), (256, 16, 16)]),
    "one around a torus": (lambda p, r, c: generate.halo2d(r, c, 1000, 3, periodic=True), [(16, 4, 4), (64, 8, 8), (256, 16, 16)]),
    "strong scaling": (lambda p, r, c: generate.halo2d(r, c, 65536 // r, 3, flops=1e6 / p), [(16, 4, 4), (64, 8, 8), (256, 16, 16)]),
    "three dimensions": (lambda p, *d: generate.halo(p, 3, 800, d), [(27, 3, 3, 3), (64, 4, 4, 4), (216, 6, 6, 6)]),
    "squares of a halo": (lambda p: generate.halo(p, 3, 800), [(16,), (64,), (256,)]),
    "a line of ranks": (lambda p: generate.halo(p, 3, 800, [p]), [(4,), (8,), (32,)]),
    "a ring": (lambda p: generate.ring(p, 100, 3), [(4,), (8,), (32,)]),
    "reductions": (lambda p: generate.allreduce(p, 100, 3), [(4,), (8,), (32,)]),
    "all to all": (lambda p: generate.alltoall(p, 4096 // p, 3), [(4,), (8,), (32,)]),
    "broadcasts": (lambda p: generate.broadcast(p, 100, 3), [(4,), (8,), (32,)]),
    "all ranks at once": (lambda p: generate.all_at_once(p, 100), [(4,), (8,), (32,)]),
    "all to the root": (lambda p: generate.late_receive(p, 100, 2), [(4,), (8,), (32,)]),
    "halves": (lambda p: generate.half_to_half(p, 100, 2), [(4,), (8,), (16,), (64,)]),
    "halves both ways": (lambda p: generate.half_to_half(p, 100, 2, both=True), [(4,), (8,), (32,)]),
}


@for_each("name", GENERATED)
def test_a_generated_program_is_what_its_generator_makes(name: str) -> None:
    make, sizes = GENERATED[name]
    *small, wanted = [make(*size) for size in sizes]
    made = extrapolate(small, wanted.ranks).trace
    assert same(made, wanted)


def test_butterflies_and_trees_of_point_to_point_calls() -> None:
    def butterfly(p: int) -> Trace:
        bits = range(p.bit_length() - 1)
        turn = "{0} irecv {1} {2} {3} 6; {0} send {1} {2} {3} 6; {0} wait {1} {0} {2}"
        texts = [f"{r} init; " + "; ".join(turn.format(r, r ^ (1 << b), b, 8 << b) for b in bits) + f"; {r} finalize; " for r in range(p)]
        return traces.parse([t.replace("; ", "\n") for t in texts])

    made = extrapolate([butterfly(8), butterfly(16)], 64)
    assert same(made.trace, butterfly(64))
    assert any("butterfly" in row["peers"] and "twice" in row["law"] for row in made.report.calls)


def multigrid(ranks: int, points: int, *, first: bool = True, fine: bool = True, unit: int = 24) -> Trace:
    """A two-dimensional multigrid of its own: blocks of ``points`` along both axes, halved down to 2 and doubled again, borders of
    ``unit`` bytes a point with one point more on each side. Ranks with points are counted from the first or the last; those that join
    a finer level get a border from those that are on already, of which only those that are on along both axes take part (``fine``)."""
    long = 1 << (ranks.bit_length() // 2)
    dims = (long, ranks // long)
    down = [points >> k for k in range(points.bit_length() - 1)]

    def lines(rank: int) -> Iterator[str]:
        at = rank % dims[0], rank // dims[0]
        offset = at if first else tuple(d - 1 - c for c, d in zip(at, dims, strict=True))
        apart = {n: [max(1, d // n) for d in dims] for n in down}
        on = {n: [o % s == 0 for o, s in zip(offset, apart[n], strict=True)] for n in down}

        def next_to(axis: int, step: int) -> int:
            there = [(c + step * (a == axis)) % d for a, (c, d) in enumerate(zip(at, dims, strict=True))]
            return there[0] + dims[0] * there[1]

        def size(axis: int, n: int) -> int:
            return unit * (max(1, n // dims[1 - axis]) + 2)

        def exchange(n: int) -> Iterator[str]:
            for axis in (0, 1) if all(on[n]) else ():
                for to in (1, -1):
                    step = to * apart[n][axis]
                    yield f"irecv {next_to(axis, -step)} {axis} {size(axis, n)} 6"
                    yield f"send {next_to(axis, step)} {axis} {size(axis, n)} 6"
                    yield f"wait {next_to(axis, -step)} {rank} {axis}"

        def hand_over(coarse: int, n: int) -> Iterator[str]:
            for axis in (0, 1):
                near = apart[n][axis]
                if near == apart[coarse][axis] or offset[axis] % near or (fine and not on[n][1 - axis]):
                    continue
                if on[coarse][axis]:
                    yield f"send {next_to(axis, near)} 7 {unit} 6"
                else:
                    yield f"recv {next_to(axis, -near)} 7 {unit} 6"

        yield "init"
        for n in down:
            yield from exchange(n)
        yield "allreduce 8 0 6"
        for coarse, n in itertools.pairwise(down[::-1]):
            yield from hand_over(coarse, n)
            yield from exchange(n)
        yield "finalize"

    return traces.parse(["".join(f"{rank} {line}\n" for line in lines(rank)) for rank in range(ranks)])


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("fine", [True, False])
def test_the_levels_of_a_multigrid(first: bool, fine: bool) -> None:
    """From 8x4 on ranks sit levels out along both axes; a third of those on 256 sit out a level at which all of 64 take part."""
    made = extrapolate([multigrid(p, 32, first=first, fine=fine) for p in (16, 32, 64)], 256)
    assert same(made.trace, multigrid(256, 32, first=first, fine=fine))
    assert "levels of 2x2 to 32x32 points" in made.report.grid
    assert any("joins a finer level" in row["peers"] for row in made.report.calls)


def test_who_takes_part_in_a_level_is_not_guessed() -> None:
    """On 4x4 every rank with points along one axis has some along the other when the finer level begins: both rules give the same."""
    told = not_recognised([multigrid(4, 32), multigrid(16, 32)], 64)
    assert "do not tell apart" in told
    assert "a recording on 32 ranks would" in told


# The recordings from which 64 and 256 ranks are extrapolated.
SMALLER = {64: (4, 8, 16), 256: (16, 32, 64)}


@pytest.mark.parametrize("ranks", SMALLER)
@pytest.mark.parametrize("program", ["lu", "cg"])
def test_every_message_of_a_larger_recording(program: str, ranks: int) -> None:
    made = from_sizes(program, SMALLER[ranks], ranks)
    found = compare(made.trace, recorded(program, ranks))
    assert found.equal
    assert found.messages[0] == found.messages[1]
    assert found.bytes[0] == found.bytes[1]
    assert made.report.grids[ranks] == {64: "8x8", 256: "16x16"}[ranks]


def test_two_recordings_are_enough_for_lu() -> None:
    assert compare(from_sizes("lu", (4, 16), 64).trace, recorded("lu", 64)).equal


MACHINES = {"mpich": "linux-p2-450*{}@switch-100", "wmpi": "nt4-p6-200*{}@switch-100", "mpibip": "linux-piii-933*{}@myrinet-lanai9"}


def simulated(trace: Trace, model: str) -> float:
    platform = MACHINES[model].format(trace.ranks)
    return simulate.run(Question(model, platform, Replay(trace), "distributed", fidelity="loggp")).time_s


@for_each("model", MACHINES)
@for_each("program", ["lu", "cg"], few=1)
def test_simulated_time_on_256_ranks_is_within_five_percent(program: str, model: str) -> None:
    made, truth = from_sizes(program, SMALLER[256], 256).trace, recorded(program, 256)
    assert simulated(made, model) == pytest.approx(simulated(truth, model), rel=0.05)


def test_the_report_says_what_was_recognised_and_how_well(retrompi: Run, tmp_path: Path) -> None:
    files = [str(DATA / "scaling" / f"npb3.3.1-cg-{p}.ti.zst") for p in (4, 8, 16, 32)]
    found = retrompi("trace", "extrapolate", *files, str(tmp_path / "out.ti"), "-n", "64", "--json")
    told = json.loads(found.out)
    assert told["grids"] == {"4": "2x2", "8": "4x2", "16": "4x4", "32": "8x4", "64": "8x8"}
    assert told["held_out"]["equal"]
    assert abs(sum(row["share"] for row in told["computation"]) - 1) < 1e-9
    assert {"the transposed place", "butterfly along axis 1, bits upwards"} <= {row["peers"] for row in told["calls"]}
    assert traces.read(tmp_path / "out.ti").ranks == 64


def test_two_sizes_leave_nothing_to_check_with() -> None:
    report = from_sizes("lu", (4, 16), 64).report
    assert report.held_out is None
    assert report.why_not == "needs a third recording"


def not_recognised(found: list[Trace], ranks: int) -> str:
    with pytest.raises(TraceError) as caught:
        extrapolate(found, ranks)
    assert caught.value.code == "not-recognised"
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("model", MACHINES)
def test_a_recorded_multigrid_on_256_ranks(model: str) -> None:
    """Every line of every rank but computation, and the simulated time within 5 %."""
    made, truth = from_sizes("mg", (32, 64, 128), 256), recorded("mg", 256)
    if model == "mpich":
        for rank in range(256):
            calls = [[line for line in t.to_ti(rank).splitlines() if " compute " not in line] for t in (made.trace, truth)]
            assert calls[0] == calls[1]
    assert simulated(made.trace, model) == pytest.approx(simulated(truth, model), rel=0.05)


def test_a_multigrid_of_which_no_recording_shows_an_idle_level_twice_is_refused() -> None:
    told = not_recognised([recorded("mg", p) for p in (16, 32, 64)], 256)
    assert "which ranks hand over to others that join a level" in told
    assert "a recording on 128 ranks would" in told


def test_counts_of_a_vector_are_refused() -> None:
    read = [traces.read(DATA / "npb3.3.1-is-A-4.tar.zst"), generate.ring(8, 10)]
    assert "alltoallv" in not_recognised(read, 64)


def test_a_peer_without_a_rule_is_refused() -> None:
    def odd(p: int) -> Trace:
        to = {1: 5 % p, 5 % p: 1}
        texts = [f"{r} init\n" + (f"{r} sendRecv 8 {to[r]} 8 {to[r]} 6 6\n" if r in to else "") + f"{r} finalize\n" for r in range(p)]
        return traces.parse(texts)

    assert "rank" in not_recognised([odd(9), odd(16)], 64)


def test_different_programs_are_refused() -> None:
    not_recognised([generate.ring(4, 10), generate.allreduce(8, 10)], 16)


def test_sizes_that_do_not_determine_a_law_are_refused() -> None:
    def halo(r: int, c: int) -> Trace:
        return generate.halo2d(r, c, 1024 // r, 2)

    told = not_recognised([halo(4, 2), halo(8, 4)], 64)
    assert "do not tell apart" in told


def test_what_depends_on_an_axis_of_one_length_is_not_guessed() -> None:
    """On 4x2 and 4x4 CG's messages are of one size; on 8x4 they are half of it."""
    assert "32 ranks are 8 long along axis 1 and all recorded grids 4" in not_recognised([recorded("cg", p) for p in (8, 16)], 32)


def test_the_order_of_the_axes_is_not_guessed() -> None:
    told = not_recognised([generate.halo2d(2, 2, 1024, 2), generate.halo2d(4, 4, 1024, 2)], 32)
    assert "32 ranks could be a grid of 8x4 or of 4x8" in told


def test_what_was_given_is_checked() -> None:
    rings = [generate.ring(4, 10), generate.ring(8, 10)]
    with pytest.raises(UsageError, match="two or more"):
        extrapolate(rings[:1], 16)
    with pytest.raises(UsageError, match="two or more"):
        extrapolate([rings[0], rings[0]], 16)
    with pytest.raises(UsageError, match="not more than"):
        extrapolate(rings, 8)


def test_the_command_asks_for_what_it_needs(retrompi: Run, tmp_path: Path) -> None:
    traces.write(generate.ring(4, 10), tmp_path / "a")
    out = str(tmp_path / "out")
    agrees(retrompi("trace", "extrapolate", str(tmp_path / "a"), out, "-n", "8"), "out-of-range | two recordings")
    agrees(retrompi("trace", "extrapolate", str(tmp_path / "a"), str(tmp_path / "a"), out), "missing-option | -n")
