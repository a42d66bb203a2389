"""What the scripts of this folder share: a row, the draws' intervals, and the file that is written."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from retrompi._engine import Trace
from retrompi.papers.predict import predictions
from retrompi.sim import simulate
from retrompi.sim.result import Result
from retrompi.spec.question import Question
from retrompi.studies.draws.uncertainty import Spec
from retrompi.traces.making import trace_of_lines

RESTART, DRAWS, SEED, LEVEL = 30, 40, 17, 0.9
SPEC = Spec(LEVEL, DRAWS, SEED)
ELSEWHERE = 0.1
"""Deviation of the logarithm of computation at another number of processes than the open row's (assumed: the share of caches and pages
changes with the size)."""


class Row(NamedTuple):
    """A published number and what is predicted of it, in seconds unless its file has another unit."""

    id: str
    points: int
    processes: int
    observable: str
    nominal_s: float
    low_s: float = math.nan
    median_s: float = math.nan
    high_s: float = math.nan


def trace_of(name: str, calls: Callable[[int], Iterable[str]], processes: int) -> Trace:
    """A program by the lines of each process, without its number; a line that begins with ``#`` is about it (``# mark NAME``)."""
    def text(me: int) -> str:
        said = ("init", *calls(me), "finalize")
        return "".join(f"# {me} {line[2:]}\n" if line.startswith("#") else f"{me} {line}\n" for line in said)

    return trace_of_lines(name, ([text(me)] for me in range(processes)))


def seconds(result: Result) -> float:
    """Between the marks of the program."""
    at = {row["label"]: row["time_s"] for row in result.marks}
    return at["end"] - at["begin"]


def seconds_of(question: Question) -> float:
    return seconds(simulate.run(question))


def ends(values: Sequence[float]) -> tuple[float, float, float]:
    """The interval of the draws' values: (low, median, high)."""
    low, median, high = (predictions.quantile(values, q) for q in ((1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2))
    return low, median, high


def with_intervals(rows: Iterable[Row], told: Mapping[str, Sequence[float]]) -> list[Row]:
    """The rows with the quantiles of the draws' values by id."""
    found = []
    for row in rows:
        low, median, high = ends(told[row.id])
        found.append(row._replace(low_s=low, median_s=median, high_s=high))
    return found


def values(numbers: Iterable[float]) -> list[str]:
    """As the files have them; one that is not known is empty."""
    return ["" if math.isnan(value) else f"{value:.4g}" for value in numbers]


def read(file: Path) -> list[dict[str, str]]:
    """The rows of a table behind its comments."""
    with file.open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(line for line in text if not line.startswith("#")))


def csv_line(row: Row) -> str:
    return ",".join([*map(str, row[:4]), *values(row[4:])])


def write(file: Path, title: str, note: str, rows: Sequence[Row], unit: str = "s") -> None:
    """``title``: of the first line; ``note``: behind the draws; ``unit``: of the values, if it is not seconds."""
    draws = 0 if all(math.isnan(row.low_s) for row in rows) else DRAWS
    columns = [name.removesuffix("_s") + f"_{unit}" if name.endswith("_s") else name for name in Row._fields]
    write_lines(file, title, f"draws: {draws}, seed: {SEED}, level: {LEVEL}; {note}", [",".join(columns), *map(csv_line, rows)])


def write_lines(file: Path, title: str, drawn: str, lines: Sequence[str]) -> None:
    """Below the title, what says which code made the lines, and what was drawn."""
    about = [f"{key}: {value}" for key, value in predictions.stamps().items()]
    head = [f"# {line}" for line in (title, *about, drawn)]
    file.write_text("\n".join([*head, *lines]) + "\n", encoding="utf-8")
    print(f"{file.name}: {len(lines) - 1} rows, {datetime.now(UTC):%H:%M} UTC", flush=True)
