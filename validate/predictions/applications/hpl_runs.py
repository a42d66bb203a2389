"""HPL's rows of a machine, predicted: what `hpla.py` and `hplt.py` share.

One row of a machine is open and fixes the rate of its matrix product (``gemm_rate``) and nothing else. The authors give the best of the
parameters they tried and do not say which: a draw has a block size and a set of what was tried, and each row is the fastest of it.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

import rows
from retrompi.sim import simulate
from retrompi.sim.resolved import Resolved
from retrompi.sim.result import Result
from retrompi.spec.question import Question, Replay
from retrompi.studies.uncertainty import Spec, question_of
from retrompi.traces.hpl import BROADCASTS, Form, local, neighbours, solve

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
FEW = (Way(1, 0), Way(1, 1))
"""What the TUNING file advises: the modified ring, with and without look-ahead."""
NONE = (Way(0, 0), Way(1, 0))


@dataclass(frozen=True)
class Machine:
    """``question``: (trace, ranks) -> what is asked. ``ids``: (grid, n) -> row. ``open``: grid, n and Gflop/s of the row that is open."""

    file: Path
    host: str
    ids: Mapping[tuple[tuple[int, int], int], str]
    open: tuple[tuple[int, int], int, float]
    question: Callable[[object, int], Question]
    more: Callable[[Random, int], Mapping[str, str]] = field(default=lambda rng, draw: {})
    """What a draw sets beside the values of the model and the platform."""

    @property
    def rows(self) -> list[tuple[tuple[int, int], int]]:
        return list(self.ids)


class Draw(NamedTuple):
    """``number``: of the values of model and platform, None: nominal ones. ``nb``, ``ways``: tried. ``sets``: what else it sets."""

    number: int | None
    nb: int
    ways: tuple[Way, ...]
    sets: Mapping[str, str]


def gflops(n: int, seconds: float) -> float:
    return (2 / 3 * n**3 + 3 / 2 * n**2) / seconds / 1e9


@cache
def pivots(n: int) -> list[int]:
    rng = Random(1)
    return [rng.randrange(i, n) for i in range(n)]


Places = dict[tuple[int, int], int]
"""(panel, rank) -> blocks of its update that a process has done when a poll finds the panel."""


class Pace(NamedTuple):
    """What a simulated solve with look-ahead says of one: durations, from its marks, by (panel, column). ``ahead``: from the end of the update
    before to the panel's first send. ``block``, ``swaps``: of an update. ``message``: (constant, a panel's row) of a send and its receive."""

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
            panel, _, receiver = rest.partition(" ")
            at[word, int(panel), int(receiver) if receiver else mark["rank"]] = mark["time_s"]
    ahead, block, swaps, sent = dict[int, float](), dict[tuple[int, int], float](), dict[tuple[int, int], float](), list[tuple[float, float]]()
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
    return max(1, -(-(local(n + 1 - panel * nb, panel * nb, nb, column, q) - (nb if column == panel % q else 0)) // nb))


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

    A panel is sent when its receiver answers (HPL's panels are longer than any library sends at once), which it does at a poll: between two
    blocks of its update, or at once when it has nothing left. Neither computes while the panel moves.
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
                done = 0 if now <= begin[receiver] or not step else min(max(1 if grid[0] > 1 else 0, math.ceil((now - first) / step)), total)
                answered = max(now, begin[receiver] if done == 0 else first + done * step)
                now = answered + of.message[0] + of.message[1] * (n - panel * nb)
                ready[other] = now
                end[other] = (total - done) * step + (of.swaps.get((panel, receiver), 0.0) if done == 0 else 0.0)
                for row in range(p):
                    places[panel, row * q + receiver] = done
            rest = end.get(distance, blocks(n, nb, q, panel, column) * of.block.get((panel, column), 0.0) + of.swaps.get((panel, column), 0.0))
            free[column] = now + rest
    return places


class Runs:
    """Simulations of a machine's solves; places of panels are kept from draw to draw, where they begin."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.places: dict[tuple[object, ...], Places] = {}

    def question(self, trace: object, ranks: int, draw: Draw, gemm: float | None) -> Question:
        one = self.machine.question(trace, ranks)
        rate = {} if gemm is None else {"platform.host.gemm_rate": f"{gemm:.8g} flop/s"}
        one = one.with_(overrides=[f"{k}={v}" for k, v in {**draw.sets, **rate}.items()])
        return one if draw.number is None else question_of(Resolved.of(one), draw.number, Spec(rows.LEVEL, 100, SEED))

    def seconds(self, grid: tuple[int, int], n: int, draw: Draw, way: Way, gemm: float | None, settling: int = SETTLING) -> float:
        p, q = grid
        ahead = way.depth > 0 and q > 1
        key = (grid, n, draw.nb, way)
        for _ in range(settling if ahead and way.bcast < 4 else 1):
            places = self.places.get(key, {})

            def found(panel: int, rank: int, blocks: int, places: Places = places) -> int:
                return places.get((panel, rank), blocks // 2)

            result = simulate.run(self.question(solve(draw.nb, p, q, pivots(n), Form(4, *way, found)), p * q, draw, gemm))
            simulate.require_completed(result, f"hpl of {n} on {p}x{q}")
            if ahead and way.bcast < 4:
                self.places[key] = found_by_polls(pace(result, grid, n, draw.nb, way.bcast), grid, n, draw.nb, way.bcast)
        return rows.seconds(result)

    def best(self, grid: tuple[int, int], n: int, draw: Draw, gemm: float | None, settling: int = SETTLING) -> tuple[float, Way]:
        """Gflop/s of the fastest of what was tried, and which that is."""
        ways = dict.fromkeys(way if grid[1] > 1 else Way(0, 0) for way in draw.ways)
        return max((gflops(n, self.seconds(grid, n, draw, way, gemm, settling)), way) for way in ways)

    def gemm_rate(self, draw: Draw, settling: int = SETTLING) -> float:
        """Rate of the matrix product that meets the open row. A solve's time is linear in its reciprocal, as long as the same part waits."""
        grid, n, wanted = self.machine.open
        goal = (2 / 3 * n**3 + 3 / 2 * n**2) / wanted / 1e9
        slow, fast = 1 / 300e6, 1 / 1000e6
        for _ in range(3):
            times = [(2 / 3 * n**3 + 3 / 2 * n**2) / self.best(grid, n, draw, 1 / x, settling)[0] / 1e9 for x in (slow, fast)]
            x = fast + (goal - times[1]) / (times[0] - times[1]) * (slow - fast)
            if abs(slow - fast) < 0.02 * x:
                break
            slow, fast = x * 1.008, x / 1.008
            x = max(x, 1 / 4e9)
        return 1 / x


def nominal(ways: Sequence[Way]) -> Draw:
    return Draw(None, USUAL, tuple(ways), {})


def draws_of(machine: Machine, count: int, wide: Sequence[Way]) -> list[Draw]:
    """``wide``: the ways that a draw has which tried all of them (those of all that win anywhere; the others would change nothing)."""
    rng, made = Random(SEED), []
    for number in range(count):
        tried = rng.choices((tuple(wide), FEW, NONE), (0.45, 0.4, 0.15))[0]
        made.append(Draw(number, rng.choice(BLOCKS), tried, dict(machine.more(rng, number))))
    return made


def predict(machine: Machine, count: int, wide: Sequence[Way]) -> dict[tuple[object, ...], rows.Told]:
    runs, values = Runs(machine), dict[str, list[float]]()
    usual = nominal(wide)
    gemm = runs.gemm_rate(usual)
    print(f"gemm_rate {gemm / 1e6:.0f} Mflop/s", flush=True)
    first = {name: runs.best(grid, n, usual, gemm) for (grid, n), name in machine.ids.items()}
    for draw in draws_of(machine, count, wide):
        rate = runs.gemm_rate(draw, 2)
        told = []
        for (grid, n), name in machine.ids.items():
            value = machine.open[2] if (grid, n) == machine.open[:2] else runs.best(grid, n, draw, rate, 2)[0]
            values.setdefault(name, []).append(value)
            told.append(f"{value:.3g}")
        print(draw.number, draw.nb, len(draw.ways), f"{rate / 1e6:.0f}", *told, flush=True)
    return {
        (name, n, f"{grid[0]}x{grid[1]}", f"{way}" if grid[1] > 1 else ""): rows.told(value, values.get(name, []))
        for (grid, n), name in machine.ids.items()
        for value, way in [first[name]]
    }


def main(machine: Machine, about: str, wide: Sequence[Way], count: int) -> None:
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--before", action="store_true", help="the open row with the values of the library, instead of a file")
    parser.add_argument("--ways", action="store_true", help="every broadcast and look-ahead with nominal values, instead of a file")
    parser.add_argument("--nominal", action="store_true", help="without the draws: the ends of the intervals stay empty")
    given = parser.parse_args()
    runs = Runs(machine)
    if given.before:
        grid, n, value = machine.open
        rate, way = runs.best(grid, n, nominal(wide), None)
        print(f"{machine.ids[grid, n]}: {rate:.3f} Gflop/s by {way}, published {value} ({rate / value:.2f})")
        print(f"gemm_rate that meets it: {runs.gemm_rate(nominal(wide)) / 1e6:.0f} Mflop/s")
    elif given.ways:
        gemm = runs.gemm_rate(nominal(wide))
        for grid, n in machine.rows:
            rates = {way: gflops(n, runs.seconds(grid, n, nominal(wide), way, gemm)) for way in (WAYS if grid[1] > 1 else WAYS[:1])}
            print(f"{grid[0]}x{grid[1]} {n}:", ", ".join(f"{way} {rate:.3f}" for way, rate in sorted(rates.items(), key=lambda r: -r[1])), flush=True)
    else:
        made = predict(machine, 0 if given.nominal else count, wide)
        head = [f"{about} Not by hand; README.md explains it.", f"draws: {0 if given.nominal else count}, seed: {SEED}, level: {rows.LEVEL}; {machine.ids[machine.open[:2]]} is open"]  # fmt: skip
        rows.write(machine.file, head, ["id", "n", "grid", "nominal_way", "nominal_gflops", "low_gflops", "median_gflops", "high_gflops"], made)
