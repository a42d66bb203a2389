"""What the predictions of applications share: rows with intervals, their file, and the time between a program's marks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from retrompi.papers import predictions
from retrompi.sim import simulate
from retrompi.sim.result import Result
from retrompi.spec.question import Question

LEVEL = 0.9


def seconds(result: Result) -> float:
    """Between the marks ``begin`` and ``end`` of rank 0."""
    at = {row["label"]: row["time_s"] for row in result.marks}
    return at["end"] - at["begin"]


def seconds_of(question: Question) -> float:
    return seconds(simulate.run(question))


class Told(NamedTuple):
    """A predicted value: nominal, and the ends and the median of its interval, nan without draws."""

    nominal: float
    low: float = math.nan
    median: float = math.nan
    high: float = math.nan


def told(nominal: float, drawn: Sequence[float]) -> Told:
    """The interval at `LEVEL` of the values of the draws."""
    ends = ((1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2)
    return Told(nominal, *(predictions.quantile(drawn, q) for q in ends)) if drawn else Told(nominal)


def csv_line(about: Sequence[object], values: Told) -> str:
    return ",".join([*map(str, about), *("" if math.isnan(value) else f"{value:.4g}" for value in values)])


def write(file: Path, head: Sequence[str], columns: Sequence[str], rows: Mapping[tuple[object, ...], Told]) -> None:
    """``rows`` as CSV, below ``head`` and what says which code made it."""
    about = [f"{key}: {value}" for key, value in predictions.stamps().items()]
    lines = [*(f"# {line}" for line in (head[0], *about, *head[1:])), ",".join(columns), *(csv_line(*row) for row in rows.items())]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
