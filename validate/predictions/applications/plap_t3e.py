"""The rows of PETSc's lap2d on the Cray T3E, predicted: ``python validate/predictions/applications/plap_t3e.py`` writes plap-t3e.csv.

The open rows (PLAP-027, 028, 037, 038: the smallest number of processes of each grid) fix two factors on the roofline's time, of products
and of operations on vectors; nothing else is fitted. A draw has values of the library and the machine from their posterior or range, finds
its factors, and goes to the other numbers of processes. ``--before`` says what was computed of the open rows without them.
"""

from __future__ import annotations

import argparse
import csv
import math
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import NamedTuple

from retrompi.base import paths
from retrompi.papers import predictions
from retrompi.sim import simulate
from retrompi.sim.resolved import Resolved
from retrompi.spec import roofline
from retrompi.spec.question import Question, Replay
from retrompi.studies.uncertainty import Spec, question_of
from retrompi.traces.lap2d import lap2d

FILE = Path(__file__).parent / "plap-t3e.csv"
RESTART, DRAWS, SEED, LEVEL = 30, 40, 17, 0.9
ELSEWHERE = 0.1
"""Deviation of the logarithm of computation at another number of processes than the open row's (assumed: the share of caches and pages
changes with the size)."""


class Case(NamedTuple):
    """A grid of ``side`` x ``side`` points; iterations, nominal and drawn from; the open times of ``processes[0]``; the first row's id."""

    side: int
    iterations: tuple[int, ...]
    processes: tuple[int, ...]
    product_s: float
    solve_s: float
    first: int


CASES = (
    Case(1000, (500,), (2, 4, 8, 16, 32), 134.6, 432.3, 27),
    # Not stated: as many as it takes to a residual of 1e-5, PETSc's default (543, counted with PETSc 3.18), of 1e-2 / 101^2, as later
    # examples set it (719, counted), or as the larger grid's.
    Case(100, (543, 500, 719), (1, 2, 3, 4, 5, 6, 7, 8), 2.233, 9.566, 37),
)

SPEC = Spec(LEVEL, DRAWS, SEED)


def case_question(case: Case, ranks: int, draw: int | None, iterations: int, **options: float) -> Question:
    trace = lap2d(case.side, case.side, ranks, iterations, **options)  # type: ignore[arg-type]
    one = Question("craympt", f"cray-t3e-pe*{ranks}@t3e-torus", Replay(trace), "distributed")
    return one if draw is None else question_of(Resolved.of(one), draw, SPEC)


def seconds_of(question: Question) -> float:
    at = {row["label"]: row["time_s"] for row in simulate.run(question).marks}
    return at["end"] - at["begin"]


def product_s(case: Case, ranks: int, draw: int | None, iterations: int, product: float, vector: float) -> float:
    """All products of a solve: one an iteration, and one a restart."""
    few, count = 10, iterations + (iterations - 1) // RESTART
    return seconds_of(case_question(case, ranks, draw, few, products=True, product=product, vector=vector)) / few * count


def solve_s(case: Case, ranks: int, draw: int | None, iterations: int, modified: bool, product: float, vector: float) -> float:
    """From the first cycle, one more, and the beginning of one."""
    full, rest = divmod(iterations, RESTART)

    def of(steps: int) -> float:
        return seconds_of(case_question(case, ranks, draw, steps, modified=modified, product=product, vector=vector))

    first = of(RESTART)
    return first + (full - 1) * (of(2 * RESTART) - first) + (of(RESTART + rest) - first if rest else 0.0)


def factors(case: Case, draw: int | None, iterations: int, modified: bool) -> tuple[float, float]:
    """What meets the open rows. Times are linear in both as long as the processes compute equally; each is found for the other's value."""
    ranks, product, vector = case.processes[0], 1.0, 1.0
    for _ in range(3):
        one, two = (product_s(case, ranks, draw, iterations, f, vector) for f in (1, 2))
        product = 1 + (case.product_s - one) / (two - one)
        one, two = (solve_s(case, ranks, draw, iterations, modified, product, f) for f in (1, 2))
        vector = 1 + (case.solve_s - one) / (two - one)
    return product, vector


class Row(NamedTuple):
    id: str
    points: int
    processes: int
    observable: str
    nominal_s: float
    low_s: float = math.nan
    median_s: float = math.nan
    high_s: float = math.nan


def nominal(case: Case) -> list[Row]:
    """The times with nominal values, open ones too."""
    product, vector = factors(case, None, case.iterations[0], True)
    times = _times(case, None, case.iterations[0], True, product, vector)
    return [Row(name, case.side, ranks, what, value) for name, ranks, what, value in times]


def _times(
    case: Case, draw: int | None, iterations: int, modified: bool, product: float, vector: float, elsewhere: float = 1.0
) -> list[tuple[str, int, str, float]]:
    found = []
    for i, ranks in enumerate(case.processes):
        more = elsewhere if i else 1.0
        both = (product_s(case, ranks, draw, iterations, product * more, vector * more),
                solve_s(case, ranks, draw, iterations, modified, product * more, vector * more))  # fmt: skip
        found += [(f"PLAP-{case.first + 2 * i + k:03}", ranks, ("time of MatMult", "time of solve")[k], both[k]) for k in (0, 1)]
    return found


def predict(case: Case, draws: int = DRAWS) -> list[Row]:
    told: dict[str, list[float]] = {}
    rng = Random(SEED)
    for draw in range(draws):
        iterations, modified, elsewhere = rng.choice(case.iterations), rng.random() < 0.5, math.exp(rng.gauss(0, ELSEWHERE))
        for name, _, _, value in _times(case, draw, iterations, modified, *factors(case, draw, iterations, modified), elsewhere):
            told.setdefault(name, []).append(value)
    ends = ((1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2)
    quantiles = {name: [predictions.quantile(times, q) for q in ends] for name, times in told.items()}
    return [Row(*row[:5], *quantiles[row.id]) for row in nominal(case)]


def csv_line(row: Row) -> str:
    return ",".join([*map(str, row[:4]), *("" if math.isnan(value) else f"{value:.4g}" for value in row[4:])])


def before(case: Case) -> list[tuple[str, float]]:
    """Computed over open: with the roofline of the host as it is, for both forms of the Gram-Schmidt process."""
    ranks, iterations = case.processes[0], case.iterations[0]
    product = product_s(case, ranks, None, iterations, 1, 1)
    rest = case.solve_s - case.product_s
    return [("products", product / case.product_s),
            *((f"the rest, {name}", (solve_s(case, ranks, None, iterations, modified, 1, 1) - product) / rest)
              for name, modified in (("modified", True), ("unmodified", False)))]  # fmt: skip


def published(case: Case) -> list[tuple[str, float]]:
    """Computed over open: with the times an element of the machine's kernels for cfd.2.10 (PETC-057 to 065), without communication."""
    with (paths.validate_dir() / "reference/kernels.csv").open(encoding="utf-8", newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["host"] == "cray-t3e-pe" and r["matrix"] == "cfd"]
    element: dict[str, float] = {}
    for row in rows:
        one = roofline.kernel(row["kernel"])
        of = one.parameters.get("vectors", one.parameters.get("nz", 1.0))
        element[one.kind.name] = float(row["value"]) / int(row["calls"]) / float(row["length"]) / of
    points, steps = case.side**2 / case.processes[0], case.iterations[0]
    product = (steps + (steps - 1) // RESTART) * 5 * points * element["spmv"]
    vectors = sum(k % RESTART + 1 for k in range(steps)) * points
    once = steps * points * (element["norm"] + element["scale"] + element["copy"] + element["maxpy"])
    rest = case.solve_s - case.product_s
    return [("products", product / case.product_s),
            *((f"the rest, {name}", (vectors * (element["mdot"] + element[second]) + once) / rest)
              for name, second in (("modified", "axpy"), ("unmodified", "maxpy")))]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--before", action="store_true", help="the roofline and the factors, instead of a file")
    parser.add_argument("--nominal", action="store_true", help="without the draws: the ends of the intervals stay empty")
    given = parser.parse_args()
    if given.before:
        for case in CASES:
            for told, ratios in (("the roofline", before(case)), ("published kernels", published(case))):
                print(f"{case.side}, {told}:", "; ".join(f"{what} {ratio:.2f}" for what, ratio in ratios))
            for name, modified in (("modified", True), ("unmodified", False)):
                product, vector = factors(case, None, case.iterations[0], modified)
                print(f"  {name}: products x{product:.2f}, vectors x{vector:.2f}")
        return
    rows = [row for case in CASES for row in (nominal(case) if given.nominal else predict(case))]
    about = [f"# {key}: {value}" for key, value in predictions.stamps().items()]
    head = ["# PETSc's lap2d on a Cray T3E, predicted by plap_t3e.py; not by hand. README.md explains it.", *about,
            f"# draws: {0 if given.nominal else DRAWS}, seed: {SEED}, level: {LEVEL}; the first two rows of each grid are open",
            ",".join(Row._fields)]  # fmt: skip
    FILE.write_text("\n".join([*head, *map(csv_line, rows)]) + "\n", encoding="utf-8")
    print(f"{FILE.name}: {len(rows)} rows, {datetime.now(UTC):%H:%M} UTC")


if __name__ == "__main__":
    main()
