"""HPL on the AlphaServer SC, predicted: ``python validate/predictions/applications/hplf.py`` writes hpl-falcon.csv.

Two rows are open, both of one processor: the rate at N = 6625, and the order at which half of it is reached. CXML's product is 1.24 Gflop/s
at best. They fix what the roofline lacks of short sides and of short calls: ``half`` and ``startup`` of `HplForm`. A draw has another rate
at best, as it is not known how much of what is missing at N = 6625 is the short side.

A solve of N = 106000 on 256 processes is 20 million calls. It is the sum of its panels: the time of a panel depends on how many rows are
left and on nothing else, so a few are simulated (`Paces`), a turn of the grid's columns each, and the rest follows from a parabola.
``--check`` compares sums with whole solves.

Look-ahead gains what part of the panel it hides, and that follows from how much of a solve is not the product: whole solves with it were
simulated on small grids (``--ahead`` prints `AHEAD`), and a rate has the gain of its efficiency. A draw may not have tried it.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

import _common
import hpl_runs
import numpy as np
from hpl_runs import PLAIN, SEED, gflops, pivots
from numpy.polynomial import polynomial

from retrompi._engine import Trace
from retrompi.sim import simulate
from retrompi.sim.resolved import Resolved
from retrompi.sim.result import Result
from retrompi.spec.conditions.timed_section import Program
from retrompi.spec.question import Question, Replay
from retrompi.studies.draws.uncertainty import Spec, question_of
from retrompi.traces.hpl import HplForm, solve

FILE = Path(__file__).parent / "hpl-falcon.csv"
HOST, NETWORK, PER_NODE = "alpha-es40-667", "qsnet-elan3", 4
GRIDS = {(1, 1): 6625, (2, 2): 13250, (4, 4): 26500, (8, 8): 53000, (16, 16): 106000}
"""Grid -> order of its row of the largest rate, as published: the 351 MB a processor that all of them have."""
OPEN_RATE, OPEN_HALF, HALF_WITHIN = 1.136, 150, 50
"""HPLF-001 in Gflop/s, HPLF-002 and what it is rounded to."""
BEST = 1.24e9
"""CXML's product at best, flop/s (E-HPL-03); a draw has one from `LEAST` on."""
LEAST = 1.15e9
DRAWS = 12
SHARED = 0.04
"""Deviation of the logarithm of what four processors lose that share a node's memory, which a product hardly needs (assumed). It is never a
gain: a processor has as much to do in every row, and does it no faster than alone. Nominal is the median."""
AHEAD: Mapping[int, Sequence[tuple[float, float]]] = {
    2: ((0.516, 1.115), (0.735, 1.051), (0.867, 1.024), (0.934, 1.010), (0.968, 1.005)),
    4: ((0.287, 1.229), (0.502, 1.203), (0.696, 1.111), (0.832, 1.054), (0.912, 1.020)),
    8: ((0.223, 1.224), (0.422, 1.241), (0.626, 1.144), (0.832, 1.054), (0.912, 1.020)),
    16: ((0.199, 1.131), (0.398, 1.157), (0.610, 1.114), (0.832, 1.054), (0.912, 1.020)),
}
"""Columns of the grid -> (rate without look-ahead over that of as many single processors, gain by it). The last two points of 8 and 16 are
those of 4: solves as large were not simulated."""
HIDDEN = (0.5, 1.1)
"""Share of that gain which a draw has (assumed: polls cost nothing here, and each asks the card's processor)."""
BLOCKS = (40, 48, 60, 64, 80)
POINTS = 4
WHOLE = 16
"""Processes up to which a sum of panels is corrected at the order of half the rate, by one whole solve of that order."""


class Form(NamedTuple):
    """What a draw computes with: block size, rate of the product at best, and what both open rows fix."""

    nb: int = hpl_runs.USUAL
    gemm: float = BEST
    half: float = 0.0
    startup: float = 0.0

    @property
    def of_hpl(self) -> HplForm:
        return HplForm(4, *PLAIN, half=self.half, startup=self.startup)


class Draw(NamedTuple):
    """``number``: of the values of model and platform, None: nominal ones. ``order``: at half of the rate of one processor;
    ``elsewhere``: a factor on the product's rate where four processors of a node compute (`SHARED`);
    ``hidden``: of `HIDDEN`, 0 if look-ahead was not tried."""

    number: int | None = None
    nb: int = hpl_runs.USUAL
    best: float = BEST
    order: float = OPEN_HALF
    elsewhere: float = math.exp(-0.6745 * SHARED)
    hidden: float = 1.0


class Pace(NamedTuple):
    """Seconds of a panel with m rows left, a + b m + c m², and of the substitution of order n, likewise."""

    panel: Sequence[float]
    substitution: Sequence[float]

    def seconds(self, n: int, nb: int) -> float:
        return sum(_at(self.panel, left) for left in range(n, 0, -nb)) + _at(self.substitution, n)


def _at(parabola: Sequence[float], x: float) -> float:
    return parabola[0] + x * (parabola[1] + x * parabola[2])


def parabola(points: Sequence[tuple[float, float]]) -> list[float]:
    """Least squares of the relative differences."""
    x, y = np.array(points).T
    return [float(c) for c in polynomial.polyfit(x, y, 2, w=1 / y)]


@cache
def part(nb: int, grid: tuple[int, int], n: int, form: HplForm, panels: int | None) -> Trace:
    return solve(nb, *grid, pivots(n), form, panels)


class Runs:
    """Simulations for one draw."""

    spec = Spec(_common.LEVEL, 2 * DRAWS, SEED)

    def __init__(self, draw: Draw = Draw()) -> None:  # noqa: B008  a frozen value
        self.draw = draw

    def question(self, trace: Trace, ranks: int, form: Form) -> Question:
        rate = form.gemm * (self.draw.elsewhere if ranks > 1 else 1)
        program = Program(memory_share=hpl_runs.memory_share(f"{HOST}*1", form.nb) if ranks > 1 else 0.0)
        platform = f"{HOST}*{max(1, ranks // PER_NODE)}" + (f"@{NETWORK}" if ranks > PER_NODE else "")
        one = Question("elan", platform, Replay(trace, program=program), "block", overrides=[f"platform.host.gemm_rate={rate:.8g} flop/s"])
        return one if self.draw.number is None else question_of(Resolved.of(one), self.draw.number, self.spec)

    def run(self, grid: tuple[int, int], n: int, form: Form, panels: int | None = None) -> tuple[Result, float]:
        """And the factor by which its seconds differ from those of this draw (`hpl_runs.discrepancy`)."""
        trace = part(form.nb, grid, n, form.of_hpl, panels)
        asked = self.question(trace, grid[0] * grid[1], form)
        result = simulate.run(asked)
        simulate.require_completed(result, f"hpl of {n} on {grid[0]}x{grid[1]}")
        return result, hpl_runs.discrepancy(result, asked, self.draw.number, self.spec)

    def whole(self, grid: tuple[int, int], n: int, form: Form, panels: int | None = None) -> float:
        result, factor = self.run(grid, n, form, panels)
        return _common.seconds(result) * factor

    def panel(self, grid: tuple[int, int], left: int, form: Form) -> tuple[float, float]:
        """(rows left, seconds) of a panel: the mean of the second turn of the grid's columns, the first of which fills the pipeline."""
        q = grid[1]
        n = max(left + (3 * q - 1) * form.nb // 2, 2 * q * form.nb)
        result, factor = self.run(grid, n, form, 2 * q)
        done = [0.0] * (2 * q)
        for mark in result.marks:
            word, _, number = str(mark["label"]).partition(" ")
            if word == "done":
                done[int(number)] = max(done[int(number)], mark["time_s"])
        return n - (3 * q - 1) / 2 * form.nb, (done[-1] - done[q - 1]) / q * factor

    def pace(self, grid: tuple[int, int], form: Form, points: int = POINTS) -> Pace:
        least, most = 2 * grid[0] * form.nb, GRIDS[grid]
        lefts = [round(least * (most / least) ** (k / (points - 1))) for k in range(points)]
        orders = [grid[0] * form.nb * k for k in (2, 8, 32)]
        panel = parabola([self.panel(grid, left, form) for left in lefts])
        return Pace(panel, parabola([(n, self.whole(grid, n, form, 0)) for n in orders]))

    def form(self) -> Form:
        """What the open rows fix. Both times are linear in both values; a half below 0 is no such machine."""
        n, order = GRIDS[1, 1], round(self.draw.order)
        form = Form(self.draw.nb, self.draw.best)
        for _ in range(3):
            half = self.share(n, OPEN_RATE, form._replace(half=0), form._replace(half=5))
            form = form._replace(half=5 * half)
            startup = self.share(order, OPEN_RATE / 2, form._replace(startup=0), form._replace(startup=2000))
            form = form._replace(startup=2000 * startup)
        return form

    def share(self, n: int, wanted: float, nothing: Form, some: Form) -> float:
        """Of the way from one form to the other at which a solve has the wanted rate; minus infinity where the first is slower already."""
        goal = n**2 * (2 / 3 * n + 3 / 2) / (wanted * 1e9)
        first, last = (self.whole((1, 1), n, form) for form in (nothing, some))
        return (goal - first) / (last - first) if goal >= first else -math.inf


def gain(columns: int, efficiency: float) -> float:
    """By look-ahead, between the points of `AHEAD`; a solve that is nothing but the product gains nothing."""
    points = [*AHEAD[min(columns, max(AHEAD))], (1.0, 1.0)]
    if efficiency <= points[0][0]:
        return points[0][1]
    for (x, y), (to_x, to_y) in itertools.pairwise(points):
        if efficiency <= to_x:
            return y + (to_y - y) * (efficiency - x) / (to_x - x)
    return 1.0


def order_at(rate: Callable[[int], float], least: int, wanted: float) -> float:
    """The order at which a rate is reached, Gflop/s."""
    low, high = float(least), 2e5
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if rate(round(middle)) < wanted else (low, middle)
    return math.sqrt(low * high)


def values(runs: Runs, form: Form) -> dict[str, float]:
    """Row -> value, of all grids of several processors."""
    found = {}
    for k, (grid, n) in enumerate(list(GRIDS.items())[1:]):
        pace = runs.pace(grid, form)
        alone = grid[0] * grid[1] * OPEN_RATE * runs.draw.elsewhere

        def rate(order: int, longer: float = 1.0, pace: Pace = pace, columns: int = grid[1], alone: float = alone) -> float:
            plain = gflops(order, pace.seconds(order, form.nb) * longer)
            return plain * (1 + runs.draw.hidden * (gain(columns, plain / alone) - 1))

        order = order_at(rate, form.nb, rate(n) / 2)
        if grid[0] * grid[1] <= WHOLE:
            ratio = runs.whole(grid, round(order), form) / pace.seconds(round(order), form.nb)
            order = order_at(lambda size, ratio=ratio, rate=rate: rate(size, ratio), form.nb, rate(n) / 2)  # type: ignore[misc]
        found[f"HPLF-{2 * k + 3:03}"], found[f"HPLF-{2 * k + 4:03}"] = rate(n), order
    return found


def draws() -> list[Draw]:
    rng = Random(SEED + 5)
    return [
        Draw(
            number, rng.choice(BLOCKS), rng.uniform(LEAST, BEST), rng.uniform(OPEN_HALF - HALF_WITHIN, OPEN_HALF + HALF_WITHIN),
            math.exp(-abs(rng.gauss(0, SHARED))), rng.uniform(*HIDDEN) if rng.random() < hpl_runs.TRIED else 0.0,
        )
        for number in range(2 * DRAWS)
    ]  # fmt: skip


def lines(first: Mapping[str, float], drawn: Mapping[str, Sequence[float]]) -> list[str]:
    told = ["id,n,grid,observable,unit,nominal,low,median,high"]
    for k, ((p, q), n) in enumerate(GRIDS.items()):
        for name, about, unit in ((f"HPLF-{2 * k + 1:03}", "Rmax", "Gflop/s"), (f"HPLF-{2 * k + 2:03}", "N1/2", "order")):
            ends = _common.ends(drawn[name]) if drawn.get(name) else (math.nan,) * 3
            order = str(n) if about == "Rmax" else ""
            told.append(",".join([name, order, f"{p}x{q}", about, unit, *_common.values([first[name], *ends])]))
    return told


def before() -> None:
    runs, form = Runs(), Form()
    rate = gflops(GRIDS[1, 1], runs.whole((1, 1), GRIDS[1, 1], form))
    orders = [n for n in range(10, 400, 5) if gflops(n, runs.whole((1, 1), n, form._replace(nb=min(n, form.nb)))) >= OPEN_RATE / 2]
    print(f"HPLF-001: {rate:.3f} Gflop/s, published {OPEN_RATE} ({rate / OPEN_RATE:.2f})")
    print(f"HPLF-002: {min(orders)}, published {OPEN_HALF}")
    fixed = runs.form()
    print(f"both are met by half = {fixed.half:.2f} and startup = {fixed.startup:.0f} operations ({fixed.startup / 1.334e3:.2f} us)")


def check() -> None:
    """Sums of panels beside whole solves."""
    runs = Runs()
    form = runs.form()
    for grid, orders in (((2, 2), (430, 4000)), ((4, 4), (1500, 6000)), ((8, 8), (3600, 8000)), ((16, 16), (4000, 8000))):
        pace, finer = runs.pace(grid, form), runs.pace(grid, form, 2 * POINTS)
        for n in orders:
            whole, summed = runs.whole(grid, n, form), pace.seconds(n, form.nb)
            told = f"{gflops(n, whole):.3f} Gflop/s, by panels {gflops(n, summed):.3f} ({whole / summed:.3f})"
            print(f"{grid[0]}x{grid[1]} {n}: {told}", flush=True)
        n = GRIDS[grid]
        once, twice = (gflops(n, of.seconds(n, form.nb)) for of in (pace, finer))
        print(f"{grid[0]}x{grid[1]} {n}: {once:.3f} Gflop/s, of twice the points {twice:.3f}", flush=True)


def ahead() -> None:
    """Whole solves with look-ahead beside those without: polls find panels where the durations of the solve before say."""
    runs = Runs()
    form = runs.form()
    cases = ((2, (500, 1000, 2000, 4000, 8000)), (4, (1000, 2000, 4000, 8000, 16000)), (8, (2000, 4000, 8000)), (16, (4000, 8000, 16000)))
    for q, orders in cases:
        for n in orders:
            grid = q, q
            plain = runs.whole(grid, n, form)
            places: hpl_runs.Places = {}
            for _ in range(3 if q < 16 else 2):

                def found(panel: int, rank: int, blocks: int, places: hpl_runs.Places = places) -> int:
                    return places.get((panel, rank), round(0.3 * blocks))

                trace = solve(form.nb, *grid, pivots(n), form.of_hpl._replace(depth=1, found=found))
                result = simulate.run(runs.question(trace, q * q, form))
                places = hpl_runs.found_by_polls(hpl_runs.pace(result, grid, n, form.nb, PLAIN.bcast), grid, n, form.nb, PLAIN.bcast)
            efficiency = gflops(n, plain) / (q * q * OPEN_RATE)
            print(f"{q}x{q} {n}: ({efficiency:.3f}, {plain / _common.seconds(result):.3f})", flush=True)


def predict(nominal: bool) -> None:
    runs = Runs()
    form = runs.form()
    first = {"HPLF-001": OPEN_RATE, "HPLF-002": float(OPEN_HALF), **values(runs, form)}
    told = [f"{name}: {value:.4g}" for name, value in first.items()]
    print(f"nominal: half {form.half:.2f}, startup {form.startup:.0f}", *told, flush=True)
    drawn: dict[str, list[float]] = {"HPLF-001": [OPEN_RATE], "HPLF-002": [OPEN_HALF]}
    counted = 0

    def write() -> None:
        about = f"draws: {counted}, seed: {SEED}, level: {_common.LEVEL}; HPLF-001 and HPLF-002 are open"
        title = "HPL on the AlphaServer SC, predicted by hplf.py. Not by hand; README.md explains it."
        _common.write_lines(FILE, title, about, lines(first, drawn))

    write()
    for draw in [] if nominal else draws():
        runs = Runs(draw)
        form = runs.form()
        if not (math.isfinite(form.half) and math.isfinite(form.startup)):
            print(draw, "meets no open row", flush=True)
            continue
        some = values(runs, form)
        print(draw.number, draw.nb, f"{form.half:.2f} {form.startup:.0f}", *(f"{value:.4g}" for value in some.values()), flush=True)
        for name, value in some.items():
            drawn.setdefault(name, []).append(value)
        counted += 1
        part.cache_clear()
        write()
        if counted == DRAWS:
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--before", action="store_true", help="the open rows with the values of the library, instead of a file")
    parser.add_argument("--check", action="store_true", help="sums of panels beside whole solves, instead of a file")
    parser.add_argument("--ahead", action="store_true", help="what look-ahead gains on small grids, instead of a file")
    parser.add_argument("--nominal", action="store_true", help="without the draws: the ends of the intervals stay empty")
    given = parser.parse_args()
    if given.before:
        before()
    elif given.check:
        check()
    elif given.ahead:
        ahead()
    else:
        predict(given.nominal)


if __name__ == "__main__":
    main()
