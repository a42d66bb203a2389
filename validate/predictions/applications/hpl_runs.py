"""HPL's rows of a machine, predicted: what `hpla.py` and `hplt.py` share.

One row of a machine is open and fixes the rate of its matrix product (``gemm_rate``) and nothing else. The authors give the best of the
parameters they tried and do not say which: a draw has a block size, and tries the modified ring with and without look-ahead, or without.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from random import Random
from typing import NamedTuple

import _common

from retrompi._engine import Trace
from retrompi.sim import simulate
from retrompi.sim.resolved import Resolved
from retrompi.sim.result import Result
from retrompi.spec import registry
from retrompi.spec.machine import roofline
from retrompi.spec.question import Question
from retrompi.studies.draws.uncertainty import Spec, log_job, question_of
from retrompi.traces.hpl import BROADCASTS, HplForm, local, neighbours, solve

SEED = 23
SETTLING = 2
"""Simulations of a solve with look-ahead, each with the panels found where the durations of the one before say (`found_by_polls`)."""
BLOCKS = (32, 40, 48, 60, 64, 80, 100)
"""Block sizes drawn from (HPL's TUNING: 32 to 256 are good, and small multiples of what the matrix product has)."""
USUAL = 60
"""The block size of its examples."""


class Way(NamedTuple):
    """A broadcast of `BROADCASTS` and the panels of look-ahead."""

    bcast: int
    depth: int

    def __str__(self) -> str:
        return f"{BROADCASTS[self.bcast]} depth {self.depth}"


WAYS = tuple(Way(b, d) for d in (0, 1) for b in range(len(BROADCASTS)))
PLAIN, AHEAD = Way(1, 0), Way(1, 1)
"""What HPL's TUNING file advises: the modified ring, with and without look-ahead."""
ELSEWHERE = 0.05
"""Deviation of the logarithm of the product's rate at other sizes than the open row's (assumed: what it copies, and the block size that was
best there)."""
TRIED = 0.85
"""Probability that look-ahead was among what the authors tried (assumed)."""


@dataclass(frozen=True)
class Machine:
    """``question``: (trace, ranks) -> what is asked. ``ids``: (grid, n) -> row. ``open``: grid, n and Gflop/s of the row that is open."""

    file: Path
    ids: Mapping[tuple[tuple[int, int], int], str]
    draws: int
    open: tuple[tuple[int, int], int, float]
    question: Callable[[Trace, int], Question]
    more: Callable[[Random], Mapping[str, str]] = lambda rng: {}
    """What a draw sets beside the values of the model and the platform."""
    ahead: bool = True
    """Whether look-ahead is one of the ways; otherwise it gains too little there to be simulated."""
    blocks: tuple[int, ...] = BLOCKS


class Draw(NamedTuple):
    """``number``: of the values of model and platform, None: nominal ones. ``ahead``: look-ahead was tried. ``elsewhere``: a factor on the
    rate of the product in other rows than the open one. ``sets``: what else it sets."""

    number: int | None = None
    nb: int = USUAL
    ahead: bool = True
    elsewhere: float = 1.0
    sets: Mapping[str, str] = {}


@cache
def memory_share(platform: str, nb: int) -> float:
    """Of a matrix product of the update, by the roofline of the platform's first host: what the memory needs of the time that the
    arithmetic takes."""
    terms = roofline.terms(roofline.kernel(f"gemm:n=1000,k={nb}"), 5000, registry.platform(platform).hosts[0])
    return min(1.0, terms["memory"] / max(terms.values()))


def discrepancy(result: Result, asked: Question, draw: int | None, spec: Spec) -> float:
    """The factor on a draw's seconds: those outside computation have the discrepancy of a job, as in every interval
    (docs/uncertainty.md)."""
    if draw is None:
        return 1.0
    factor = math.exp(log_job(Resolved.of(asked), spec)[draw])
    last = max(result.per_rank, key=lambda row: row["time_s"])
    return float((last["compute_s"] + factor * (last["time_s"] - last["compute_s"])) / last["time_s"])


def gflops(n: int, seconds: float) -> float:
    return (2 / 3 * n**3 + 3 / 2 * n**2) / seconds / 1e9


@cache
def pivots(n: int) -> list[int]:
    rng = Random(1)
    return [rng.randrange(i, n) for i in range(n)]


@cache
def plain(n: int, nb: int, p: int, q: int, bcast: int) -> Trace:
    """Without look-ahead."""
    return solve(nb, p, q, pivots(n), HplForm(bcast=bcast))


Places = dict[tuple[int, int], int]
"""(panel, rank) -> blocks of its update that a process has done when a poll finds the panel."""


class Pace(NamedTuple):
    """Durations of a simulated solve with look-ahead, from its marks, by (panel, column).

    ``ahead``: from the end of the update before to the panel's first send. ``block``, ``swaps``: of an update. ``message``: of a send and
    its receive, (constant, for a row of the panel).
    """

    ahead: Mapping[int, float]
    block: Mapping[tuple[int, int], float]
    swaps: Mapping[tuple[int, int], float]
    message: tuple[float, float]


def pace(result: Result, grid: tuple[int, int], n: int, nb: int, bcast: int) -> Pace:
    q = grid[1]
    at: dict[tuple[str, int, int], float] = {}
    for mark in result.marks:
        word, _, rest = str(mark["label"]).partition(" ")
        if rest:
            number, _, receiver = rest.partition(" ")
            at[word, int(number), int(receiver) if receiver else mark["rank"]] = mark["time_s"]
    ahead, sent = dict[int, float](), list[tuple[float, float]]()
    block, swaps = dict[tuple[int, int], float](), dict[tuple[int, int], float]()
    for (word, panel, rank), updated in at.items():
        if word != "updated":
            continue
        update, swapped, found, passed = (at[w, panel, rank] for w in ("update", "swapped", "panel", "passed"))
        distance, key = (rank % q - panel) % q, (panel, rank % q)
        late = found > swapped
        busy = (found - swapped) + (updated - passed) if late else updated - swapped
        block[key] = max(block.get(key, 0.0), busy / blocks(n, nb, q, panel, rank % q))
        swaps[key] = max(swaps.get(key, 0.0), swapped - (update if late else passed))
        if distance == 0 and ("updated", panel - 1, rank) in at:
            ahead[panel] = min(ahead.get(panel, math.inf), found - at["updated", panel - 1, rank])
        if distance and not neighbours(bcast, q, distance)[1] and found > at["give", panel, rank]:
            sent.append((n - panel * nb, passed - found))  # it was sent for before: nothing but the message
    return Pace(ahead, block, swaps, _line(sent))


def blocks(n: int, nb: int, q: int, panel: int, column: int) -> int:
    """Of the update before ``panel`` that are left when that panel is factored."""
    columns = local(n + 1 - panel * nb, panel * nb, nb, column, q) - (nb if column == panel % q else 0)
    return max(1, -(-columns // nb))


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Least squares: (constant, slope), neither below 0."""
    if len(points) < 2:
        return 0.0, points[0][1] / points[0][0] if points else 0.0
    mean_x, mean_y = (sum(p[k] for p in points) / len(points) for k in (0, 1))
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    slope = min(max(slope, 0.0), mean_y / mean_x)
    return mean_y - slope * mean_x, slope


def found_by_polls(of: Pace, grid: tuple[int, int], n: int, nb: int, bcast: int) -> Places:
    """When polls find the panels: the processes of a row once more, with the durations of ``of``.

    A panel is sent when its receiver answers (all but the last panels are longer than a library sends without asking), which it does at a
    poll: between two blocks of its update, or at once when it has nothing left. Neither computes while the panel moves.
    """
    p, q = grid
    free = [0.0] * q
    places: Places = {}
    for panel in range(1, -(-n // nb)):
        root = panel % q
        begin = list(free)
        ready, end = {0: begin[root] + of.ahead.get(panel, 0.0)}, dict[int, float]()
        for distance in range(q):
            column = (root + distance) % q
            now = ready[distance]
            for other in neighbours(bcast, q, distance)[1]:
                receiver = (root + other) % q
                step, total = of.block.get((panel, receiver), 0.0), blocks(n, nb, q, panel, receiver)
                first = begin[receiver] + of.swaps.get((panel, receiver), 0.0)
                done = 0
                if now > begin[receiver] and step:
                    done = min(max(1 if p > 1 else 0, math.ceil((now - first) / step)), total)
                answered = max(now, begin[receiver] if done == 0 else first + done * step)
                now = answered + of.message[0] + of.message[1] * (n - panel * nb)
                ready[other] = now
                end[other] = (total - done) * step + (of.swaps.get((panel, receiver), 0.0) if done == 0 else 0.0)
                for row in range(p):
                    places[panel, row * q + receiver] = done
            whole = blocks(n, nb, q, panel, column) * of.block.get((panel, column), 0.0) + of.swaps.get((panel, column), 0.0)
            free[column] = now + end.get(distance, whole)
    return places


class Runs:
    """Simulations of a machine's solves; places of panels are kept from draw to draw, where they begin."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.places: dict[tuple[object, ...], Places] = {}
        self.chosen: dict[tuple[tuple[int, int], int], Way] = {}

    def question(self, trace: Trace, ranks: int, draw: Draw, gemm: float | None) -> Question:
        one = self.machine.question(trace, ranks)
        rate = {} if gemm is None else {"platform.host.gemm_rate": f"{gemm:.8g} flop/s"}
        one = one.with_(overrides=[f"{k}={v}" for k, v in {**draw.sets, **rate}.items()])
        return one if draw.number is None else question_of(Resolved.of(one), draw.number, self.spec)

    @property
    def spec(self) -> Spec:
        return Spec(_common.LEVEL, 2 * self.machine.draws, SEED)

    def seconds(self, grid: tuple[int, int], n: int, draw: Draw, way: Way, gemm: float | None) -> float:
        p, q = grid
        ahead = way.depth > 0 and q > 1
        key = (grid, n, draw.nb, way)
        for _ in range(SETTLING if ahead and way.bcast < 4 else 1):
            places = self.places.get(key, {})

            def found(panel: int, rank: int, blocks: int, places: Places = places) -> int:
                return places.get((panel, rank), blocks // 2)

            trace = solve(draw.nb, p, q, pivots(n), HplForm(4, *way, found)) if ahead else plain(n, draw.nb, p, q, way.bcast)
            asked = self.question(trace, p * q, draw, gemm)
            result = simulate.run(asked)
            simulate.require_completed(result, f"hpl of {n} on {p}x{q}")
            if ahead and way.bcast < 4:
                self.places[key] = found_by_polls(pace(result, grid, n, draw.nb, way.bcast), grid, n, draw.nb, way.bcast)
        return _common.seconds(result) * discrepancy(result, asked, draw.number, self.spec)

    def best(self, grid: tuple[int, int], n: int, draw: Draw, gemm: float | None) -> tuple[float, Way]:
        """Gflop/s of what was tried, and by which way. With nominal values both are compared; where look-ahead is the faster there, a draw
        that tried it has it."""
        if draw.number is None:
            ways = [PLAIN, AHEAD] if grid[1] > 1 and self.machine.ahead else [PLAIN]
        else:
            ways = [AHEAD if draw.ahead and self.chosen.get((grid, n)) == AHEAD else PLAIN]
        rate, way = max((gflops(n, self.seconds(grid, n, draw, way, gemm)), way) for way in ways)
        if draw.number is None:
            self.chosen[grid, n] = way
        return rate, way

    def gemm_rate(self, draw: Draw) -> float:
        """Rate of the matrix product that meets the open row, whose time is about linear in its reciprocal: two steps of the secant method,
        the first with the slope of a product that nobody waits for. Infinite where no rate up to the processor's peak does."""
        (p, q), n, wanted = self.machine.open
        goal = 2 / 3 * n**3 / (wanted * 1e9)
        slope, at = 2 / 3 * n**3 / (p * q), 1 / 500e6
        time = 2 / 3 * n**3 / (self.best((p, q), n, draw, 1 / at)[0] * 1e9)
        for _ in range(2):
            after = at + (goal - time) / slope
            if after * self.peak < 1:
                return math.inf
            new = 2 / 3 * n**3 / (self.best((p, q), n, draw, 1 / after)[0] * 1e9)
            slope, at, time = (new - time) / (after - at), after, new
            if abs(time / goal - 1) < 0.002:
                return 1 / at
        after = at + (goal - time) / slope
        return 1 / after if after * self.peak >= 1 else math.inf

    @cached_property
    def peak(self) -> float:
        (p, q), *_ = self.machine.open
        asked = Resolved.of(self.machine.question(plain(8, 8, p, q, 0), p * q))
        return roofline.peak(asked.platform.hosts[0])


def draws_of(machine: Machine) -> list[Draw]:
    rng = Random(SEED)
    return [
        Draw(number, rng.choice(machine.blocks), rng.random() < TRIED, math.exp(rng.gauss(0, ELSEWHERE)), machine.more(rng))
        for number in range(2 * machine.draws)
    ]


def predict(machine: Machine, draws: Sequence[Draw], write: Callable[[list[str], int], None]) -> None:
    """``write`` is called with what is known: after the nominal values, and after each draw. A draw that no rate of the product brings to
    the open row is none of this machine: as many of the others as the machine has draws count."""
    runs, values, counted = Runs(machine), dict[str, list[float]](), 0
    gemm = runs.gemm_rate(Draw())
    first = {name: runs.best(grid, n, Draw(), gemm) for (grid, n), name in machine.ids.items()}
    print(f"nominal: gemm_rate {gemm / 1e6:.0f} Mflop/s", *(f"{value:.3f}" for value, _ in first.values()), flush=True)
    def so_far() -> list[str]:
        lines = []
        for ((p, q), n), name in machine.ids.items():
            rate, way = first[name]
            numbers = [rate, *(_common.ends(values[name]) if name in values else (math.nan,) * 3)]
            lines.append(",".join([name, str(n), f"{p}x{q}", "ahead" if way == AHEAD else "plain", *_common.values(numbers)]))
        return lines

    write(so_far(), 0)
    for draw in draws:
        rate = runs.gemm_rate(draw)
        some = []
        for (grid, n), name in machine.ids.items() if math.isfinite(rate) else ():
            value = machine.open[2]
            if (grid, n) != machine.open[:2]:
                value = runs.best(grid, n, draw, rate * draw.elsewhere)[0]
            values.setdefault(name, []).append(value)
            some.append(f"{value:.3f}")
        print(draw.number, draw.nb, draw.ahead, f"{rate / 1e6:.0f}", *some, flush=True)
        counted += math.isfinite(rate)
        write(so_far(), counted)
        if counted == machine.draws:
            return


def main(machine: Machine, about: str) -> None:
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--before", action="store_true", help="the open row with the values of the library, instead of a file")
    parser.add_argument("--ways", action="store_true", help="every broadcast and look-ahead with nominal values, instead of a file")
    parser.add_argument("--nominal", action="store_true", help="without the draws: the ends of the intervals stay empty")
    given = parser.parse_args()
    runs = Runs(machine)
    grid, n, value = machine.open
    if given.before:
        for way in (PLAIN, AHEAD):
            rate = gflops(n, runs.seconds(grid, n, Draw(), way, None))
            print(f"{machine.ids[grid, n]}: {rate:.3f} Gflop/s by {way}, published {value} ({rate / value:.2f})")
        print(f"gemm_rate that meets it: {runs.gemm_rate(Draw()) / 1e6:.0f} Mflop/s")
    elif given.ways:
        gemm = runs.gemm_rate(Draw())
        for grid, n in machine.ids:
            rates = {way: gflops(n, runs.seconds(grid, n, Draw(), way, gemm)) for way in (WAYS if grid[1] > 1 else WAYS[:1])}
            told = ", ".join(f"{way} {rate:.3f}" for way, rate in sorted(rates.items(), key=lambda r: -r[1]))
            print(f"{grid[0]}x{grid[1]} {n}: {told}", flush=True)
    else:

        def write(lines: list[str], counted: int) -> None:
            drawn = f"draws: {counted}, seed: {SEED}, level: {_common.LEVEL}; {machine.ids[grid, n]} is open"
            columns = "id,n,grid,nominal_is,nominal_gflops,low_gflops,median_gflops,high_gflops"
            _common.write_lines(machine.file, f"{about} Not by hand; README.md explains it.", drawn, [columns, *lines])

        predict(machine, [] if given.nominal else draws_of(machine), write)
