"""PETSc's lap2d, predicted: a grid's times from two factors on computation, which its open rows fix. What differs from machine to machine
is how a question is made of a program (`Ask`)."""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import NamedTuple

from _common import DRAWS, ELSEWHERE, RESTART, SEED, Row, seconds_of, with_intervals, write

from retrompi._engine import Trace
from retrompi.base import paths
from retrompi.spec.machine import roofline
from retrompi.spec.question import Question
from retrompi.traces.lap2d import lap2d

Ask = Callable[[Trace, int | None], Question]
"""A program with the values of a draw; None: nominal ones."""


class Case(NamedTuple):
    """A grid of ``side`` x ``side`` points; iterations, nominal and drawn from; the open times of ``processes[0]``; the first row's id."""

    side: int
    iterations: tuple[int, ...]
    processes: tuple[int, ...]
    product_s: float
    solve_s: float
    first: int


def _seconds(ask: Ask, case: Case, ranks: int, draw: int | None, iterations: int, **options: float) -> float:
    return seconds_of(ask(lap2d(case.side, case.side, ranks, iterations, **options), draw))  # type: ignore[arg-type]


def product_s(ask: Ask, case: Case, ranks: int, draw: int | None, iterations: int, product: float, vector: float) -> float:
    """All products of a solve: one an iteration, and one a restart."""
    few, count = 10, iterations + (iterations - 1) // RESTART
    return _seconds(ask, case, ranks, draw, few, products=True, product=product, vector=vector) / few * count


def solve_s(ask: Ask, case: Case, ranks: int, draw: int | None, iterations: int, modified: bool, product: float, vector: float) -> float:
    """From the first cycle, one more, and the beginning of one."""
    full, rest = divmod(iterations, RESTART)

    def of(steps: int) -> float:
        return _seconds(ask, case, ranks, draw, steps, modified=modified, product=product, vector=vector)

    first = of(RESTART)
    return first + (full - 1) * (of(2 * RESTART) - first) + (of(RESTART + rest) - first if rest else 0.0)


def factors(ask: Ask, case: Case, draw: int | None, iterations: int, modified: bool) -> tuple[float, float]:
    """What meets the open rows. Times are linear in both as long as the processes compute equally; each is found for the other's value."""
    ranks, product, vector = case.processes[0], 1.0, 1.0
    for _ in range(3):
        one, two = (product_s(ask, case, ranks, draw, iterations, f, vector) for f in (1, 2))
        product = 1 + (case.product_s - one) / (two - one)
        one, two = (solve_s(ask, case, ranks, draw, iterations, modified, product, f) for f in (1, 2))
        vector = 1 + (case.solve_s - one) / (two - one)
    return product, vector


def nominal(ask: Ask, case: Case) -> list[Row]:
    """The times with nominal values, open ones too."""
    product, vector = factors(ask, case, None, case.iterations[0], True)
    times = _times(ask, case, None, case.iterations[0], True, product, vector)
    return [Row(name, case.side, ranks, what, value) for name, ranks, what, value in times]


def _times(
    ask: Ask, case: Case, draw: int | None, iterations: int, modified: bool, product: float, vector: float, elsewhere: float = 1.0
) -> list[tuple[str, int, str, float]]:
    found = []
    for i, ranks in enumerate(case.processes):
        more = elsewhere if i else 1.0
        both = (product_s(ask, case, ranks, draw, iterations, product * more, vector * more),
                solve_s(ask, case, ranks, draw, iterations, modified, product * more, vector * more))
        found += [(f"PLAP-{case.first + 2 * i + k:03}", ranks, ("time of MatMult", "time of solve")[k], both[k]) for k in (0, 1)]
    return found


def predict(ask: Ask, case: Case, draws: int = DRAWS) -> list[Row]:
    told: dict[str, list[float]] = {}
    rng = Random(SEED)
    for draw in range(draws):
        iterations, modified, elsewhere = rng.choice(case.iterations), rng.random() < 0.5, math.exp(rng.gauss(0, ELSEWHERE))
        both = factors(ask, case, draw, iterations, modified)
        for name, _, _, value in _times(ask, case, draw, iterations, modified, *both, elsewhere):
            told.setdefault(name, []).append(value)
    return with_intervals(nominal(ask, case), told)


def before(ask: Ask, case: Case) -> list[tuple[str, float]]:
    """Computed over open: with the roofline of the host as it is, for both forms of the Gram-Schmidt process."""
    ranks, iterations = case.processes[0], case.iterations[0]
    product = product_s(ask, case, ranks, None, iterations, 1, 1)
    rest = case.solve_s - case.product_s
    return [("products", product / case.product_s),
            *((f"the rest, {name}", (solve_s(ask, case, ranks, None, iterations, modified, 1, 1) - product) / rest)
              for name, modified in (("modified", True), ("unmodified", False)))]


def elements(host: str, matrix: str) -> dict[str, float]:
    """Seconds an element of the published kernels of a host, by kind."""
    with (paths.validate_dir() / "reference/kernels.csv").open(encoding="utf-8", newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["host"] == host and r["matrix"] == matrix]
    element: dict[str, float] = {}
    for row in rows:
        one = roofline.kernel(row["kernel"])
        of = one.parameters.get("vectors", one.parameters.get("nz", 1.0))
        element[one.kind.name] = float(row["value"]) / int(row["calls"]) / float(row["length"]) / of
    return element


def published(case: Case, element: Mapping[str, float]) -> list[tuple[str, float]]:
    """Computed over open: with the times an element of the machine's kernels for cfd.2.10, without communication."""
    points, steps = case.side**2 / case.processes[0], case.iterations[0]
    product = (steps + (steps - 1) // RESTART) * 5 * points * element["spmv"]
    vectors = sum(k % RESTART + 1 for k in range(steps)) * points
    once = steps * points * (element["norm"] + element["scale"] + element["copy"] + element["maxpy"])
    rest = case.solve_s - case.product_s
    return [("products", product / case.product_s),
            *((f"the rest, {name}", (vectors * (element["mdot"] + element[second]) + once) / rest)
              for name, second in (("modified", "axpy"), ("unmodified", "maxpy")))]


def print_before(ask: Ask, cases: tuple[Case, ...], element: Mapping[str, float]) -> None:
    for case in cases:
        for told, ratios in (("the roofline", before(ask, case)), ("published kernels", published(case, element))):
            print(f"{case.side}, {told}:", "; ".join(f"{what} {ratio:.2f}" for what, ratio in ratios))
        for name, modified in (("modified", True), ("unmodified", False)):
            product, vector = factors(ask, case, None, case.iterations[0], modified)
            print(f"  {name}: products x{product:.2f}, vectors x{vector:.2f}")


def main(about: str | None, file: Path, title: str, ask: Ask, cases: tuple[Case, ...], element: Callable[[], Mapping[str, float]]) -> None:
    """A machine's command line. ``about``: the script's docstring; ``element``: seconds an element of its published kernels, by kind."""
    parser = argparse.ArgumentParser(description=(about or "").split("\n\n")[0])
    parser.add_argument("--before", action="store_true", help="the roofline and the factors, instead of a file")
    parser.add_argument("--nominal", action="store_true", help="without the draws: the ends of the intervals stay empty")
    given = parser.parse_args()
    if given.before:
        print_before(ask, cases, element())
        return
    rows = [row for case in cases for row in (nominal(ask, case) if given.nominal else predict(ask, case))]
    write(file, title, "the first two rows of each grid are open", rows)
