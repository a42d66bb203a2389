"""The data of a study's figures and tables, computed from its points, facts and verdicts; nothing is drawn here.

A number without its counterpart is left out of a figure and shown as missing in a table, never filled in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from math import isfinite, nan, sqrt
from typing import Any

from retrompi.papers.judging.findings import to_unit
from retrompi.papers.judging.verdicts import Verdict
from retrompi.papers.reproduce.reproduction import Reproduction
from retrompi.papers.statements.claims import Claim, checks
from retrompi.papers.statements.exhibits import ClaimTable, CurveFigure, FactFigure, FactTable
from retrompi.render.figures.overlay import stated_number

__all__ = ["FigureCurve", "GridCell", "NumberPair", "PrintedTable", "claim_rows", "curves", "fact", "fact_rows", "fact_series", "grid",
           "matching", "pairs", "with_bands"]

Intervals = Mapping[tuple[str, str], Sequence[tuple[int, float, float, float]]]
"""(model, mode), or ("curve", name) -> size (B), low, median and high (us) at each size."""
_NUMBERS = ("range", "plateau", "near", "digits", "fact", "ratio")
"""Kinds of check whose observed number is comparable to a published one in the same unit."""


@dataclass(frozen=True)
class NumberPair:
    """One published number beside the simulated one, in ``unit``; ``low``..``high`` is the reading range of the published one.

    ``part`` says which of several numbers of a claim it is ("min", "max"); ``deviation`` is simulated / published - 1.
    """

    claim: str
    part: str
    published: float
    simulated: float
    low: float
    high: float
    unit: str
    use: str
    verdict: str

    @property
    def deviation(self) -> float | None:
        """None where the published number is 0."""
        return self.simulated / self.published - 1 if self.published else None

    def row(self) -> dict[str, Any]:
        """A flat object for the CSV export."""
        return {**asdict(self), "deviation_percent": None if self.deviation is None else 100 * self.deviation}


def matching(study: Reproduction, patterns: Sequence[str]) -> list[tuple[Claim, Verdict]]:
    """The study's claims whose identifier matches one of the patterns, in file order, each with its verdict."""
    verdicts = {v.id: v for v in study.verdicts}
    return [(c, verdicts[c.id]) for c in study.claims if c.id in verdicts and any(fnmatchcase(c.id, p) for p in patterns)]


def published_number(claim: Claim) -> float | None:
    """The number that a claim states: the one in its text if it lies in low..high, else the middle of low..high."""
    if claim.low is None or claim.high is None:
        return None
    number = stated_number(claim)
    if number is not None and claim.low <= number <= claim.high:
        return number
    if claim.low == claim.high:
        return claim.low
    return sqrt(claim.low * claim.high) if claim.low > 0 else (claim.low + claim.high) / 2


def fact(facts: Mapping[str, Any], path: str) -> Any:
    """The fact at a dotted path; None when no simulation produced it."""
    here: Any = facts
    for name in path.split("."):
        if not isinstance(here, Mapping) or name not in here:
            return None
        here = here[name]
    return here


def pairs(study: Reproduction, claim: Claim, verdict: Verdict) -> list[NumberPair]:
    """The numbers of one claim; two if it states a minimum and a maximum, none if it has only text."""
    number = published_number(claim)
    if number is None or claim.low is None or claim.high is None:
        return []
    use, word = claim.use, verdict.verdict
    for check in checks().get(claim.id, ()):
        unit = str(check.get("unit", claim.unit))
        if check["kind"] == "extremes":
            found = {part: fact(study.facts, f"{check['path']}.{part}") for part in ("min", "max")}
            ends = {"min": claim.low, "max": claim.high}
            return [
                NumberPair(claim.id, part, ends[part], to_unit(float(value), unit), ends[part], ends[part], unit, use, word)
                for part, value in found.items()
                if isinstance(value, int | float)
            ]
        if check["kind"] in _NUMBERS and isinstance(verdict.observed, float) and verdict.unit == unit and isfinite(verdict.observed):
            return [NumberPair(claim.id, "", number, verdict.observed, claim.low, claim.high, unit, use, word)]
    return []


def claim_rows(study: Reproduction, table: ClaimTable) -> list[dict[str, Any]]:
    """A row for each claim of a table: the published and the simulated value, the deviation, and the verdict."""
    out = []
    for claim, verdict in matching(study, table.claims):
        found: Sequence[NumberPair | None] = pairs(study, claim, verdict) or (None,)
        for pair in found:
            out.append(
                {
                    "id": claim.id,
                    "what": _what(claim, pair.part if pair else ""),
                    "published": verdict.published if pair is None or not pair.part else pair.published,
                    "simulated": pair.simulated if pair else verdict.observed,
                    "unit": pair.unit if pair else verdict.unit,
                    "deviation_percent": pair.row()["deviation_percent"] if pair else None,
                    "verdict": "excluded" if claim.use == "exclude" else verdict.verdict,
                    "use": claim.use,
                }
            )
    return out


def _what(claim: Claim, part: str) -> str:
    text = ", ".join(t for t in (claim.system, claim.configuration.partition(";")[0], claim.observable) if t and t != "-")
    return f"{text} ({part})" if part else text


@dataclass(frozen=True)
class GridCell:
    """One cell of a grid: the claim, its pairs of numbers (none if nothing is simulated), and its verdict."""

    claim: Claim
    verdict: Verdict
    pairs: tuple[NumberPair, ...]


@dataclass(frozen=True)
class PrintedTable:
    """A paper's table as printed in the paper: ``cells`` by (row, column) text; cells that are empty in the paper are absent."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, str], GridCell]

    def flat(self) -> list[dict[str, Any]]:
        """Flat rows for the CSV export."""
        return [
            {
                "row": row,
                "column": column,
                **(pair.row() if pair else {"claim": cell.claim.id, "use": cell.claim.use, "verdict": cell.verdict.verdict}),
            }
            for (row, column), cell in self.cells.items()
            for pair in cell.pairs or (None,)
        ]


def grid(study: Reproduction, table: ClaimTable) -> PrintedTable:
    """The claims selected by a table's ``cells``, by row and column in order of first appearance."""
    verdicts = {v.id: v for v in study.verdicts}
    cells: dict[tuple[str, str], GridCell] = {}
    for claim in study.claims:
        found = re.fullmatch(table.cells, claim.id)
        if found is None or claim.id not in verdicts:
            continue
        row = table.names.get(found["row"], found["row"])
        if table.row_name:
            row = str(getattr(claim, table.row_name)).partition(": ")[2] or str(getattr(claim, table.row_name))
        key = row, table.names.get(found["column"], found["column"])
        cells[key] = GridCell(claim, verdicts[claim.id], tuple(pairs(study, claim, verdicts[claim.id])))
    columns = dict.fromkeys(c for _, c in cells)
    ordered = [c for c in table.names.values() if c in columns]  # in the file's order, then in order of appearance
    return PrintedTable(tuple(dict.fromkeys(r for r, _ in cells)), tuple(dict.fromkeys([*ordered, *columns])), cells)


def flatten(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings as one with dotted keys; lists of plain values stay."""
    out: dict[str, Any] = {}
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            out |= flatten(inner, f"{prefix}{key}.")
        else:
            out[f"{prefix}{key}"] = inner
    return out


def _rows_in(value: Any, keys: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of nested dicts (and the lists in them), each with the keys on its path."""
    if isinstance(value, list):
        return [flatten(v) for v in value if isinstance(v, Mapping)]
    if not isinstance(value, Mapping):
        return []
    if not keys:
        return [flatten(value)]
    if not any(isinstance(v, Mapping) or (isinstance(v, list) and any(isinstance(i, Mapping) for i in v)) for v in value.values()):
        return [{keys[0]: k, "value": v} for k, v in value.items()]
    return [{keys[0]: k, **row} for k, v in value.items() for row in _rows_in(v, keys[1:])]


def fact_rows(facts: Mapping[str, Any], table: FactTable) -> list[dict[str, Any]]:
    """The rows of a table of facts, the keys of its dicts in columns named by ``table.keys``; [] without such facts."""
    rows = _rows_in(fact(facts, table.facts), table.keys)
    if not table.columns:
        return rows
    names = [c[0] for c in table.columns]
    rows = [row for row in rows if any(row.get(n) is not None for n in names)]  # drops other entries of the same dict
    return [{**{k: row[k] for k in table.keys if k in row and k not in names}, **{n: row.get(n) for n in names}} for row in rows]


@dataclass(frozen=True)
class FigureCurve:
    """One curve of a figure: ``x`` and ``y`` ascending in x, its ``legend``, and the interval of each ``y``.

    ``low``, ``high``: the ends, nan where a point has none, empty for a curve without any; ``completed``: the share of draws behind each.
    """

    model: str
    mode: str
    legend: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    completed: tuple[float, ...] = ()


_COLUMN = {"time": "time_us", "bandwidth": "bandwidth_MBps"}


def curves(points: Iterable[Mapping[str, Any]], figure: CurveFigure) -> list[FigureCurve]:
    """The curves of a figure: microseconds or MB/s against bytes, in the figure's order; 0 B has no bandwidth.

    A point's interval is in its columns ``COLUMN_low`` and ``COLUMN_high``, the share of draws behind it in ``completed``.
    """
    column = _COLUMN[figure.what]
    rows: dict[tuple[str, str], dict[int, Mapping[str, Any]]] = {}
    for p in points:
        if p.get(column) is not None and not (figure.what == "bandwidth" and int(p["size_B"]) == 0):
            rows.setdefault((str(p["model"]), str(p["mode"])), {})[int(p["size_B"])] = p
    out: dict[tuple[str, str], FigureCurve] = {}
    for wanted in figure.curves:
        for (model, mode), found in rows.items():
            if (model, mode) not in out and fnmatchcase(model, wanted[0]) and fnmatchcase(mode, wanted[1]):
                shown = [found[size] for size in sorted(found)]
                legend = wanted[2] if len(wanted) > 2 else ""
                x, y = (tuple(float(p[k]) for p in shown) for k in ("size_B", column))
                out[model, mode] = FigureCurve(model, mode, legend, x, y, *_interval(shown, column))
    return list(out.values())


def _interval(points: Sequence[Mapping[str, Any]], column: str) -> tuple[tuple[float, ...], ...]:
    """(lower ends, upper ends, shares of completed draws) of these points; empty ones where no point has an interval."""
    keys = f"{column}_low", f"{column}_high"
    if all(p.get(keys[0]) is None for p in points):
        return (), (), ()
    ends = (tuple(nan if p.get(k) is None else float(p[k]) for p in points) for k in keys)
    return (*ends, tuple(float(p.get("completed", 1.0)) for p in points))


def with_bands(points: Sequence[Mapping[str, Any]], intervals: Intervals) -> list[Mapping[str, Any]]:
    """The points of a study with the interval of the time, and so of the bandwidth, where there is one."""
    by_size = {key: {size: (low, high) for size, low, _, high in rows} for key, rows in intervals.items()}
    out: list[Mapping[str, Any]] = []
    for p in points:
        ends = by_size.get((str(p["model"]), str(p["mode"])), {}).get(int(p["size_B"]))
        if ends is not None and isfinite(ends[0]):
            rate = {f"bandwidth_MBps_{end}": int(p["size_B"]) / us for end, us in zip(("high", "low"), ends, strict=True)}
            p = {**p, "time_us_low": ends[0], "time_us_high": ends[1], **rate}
        out.append(p)
    return out


def missing_curves(points: Sequence[Mapping[str, Any]], figure: CurveFigure) -> list[str]:
    """The curves that a figure requests but no simulation produced."""
    have = {(str(p["model"]), str(p["mode"])) for p in points}
    return [
        f"{w[0]} {w[1]}" for w in figure.curves if not any(fnmatchcase(model, w[0]) and fnmatchcase(mode, w[1]) for model, mode in have)
    ]


def fact_series(facts: Mapping[str, Any], figure: FactFigure) -> list[FigureCurve]:
    """The series of a figure of facts: one for each key and column; rows without both numbers are left out.

    The keys of a dict without lists are numbers for ``x``, its values rows, or numbers for the first column.
    """
    found = fact(facts, figure.facts)
    if isinstance(found, Mapping) and not any(isinstance(v, list) for v in found.values()):
        found = [{figure.x: _number_in(k), **(flatten(v) if isinstance(v, Mapping) else {figure.y[0][0]: v})} for k, v in found.items()]
    lists = found if isinstance(found, Mapping) else {"": found}
    out = []
    for key, rows in lists.items():
        if not isinstance(rows, list):
            continue
        for column, legend in figure.y:
            both = ((r.get(figure.x), r.get(column)) for r in rows if isinstance(r, Mapping))
            kept = sorted((x, y) for x, y in ((_number(a), _number(b)) for a, b in both) if x is not None and y is not None)
            if kept:
                name = ", ".join(t for t in (str(key), legend) if t)
                out.append(FigureCurve(str(key), column, name, tuple(x for x, _ in kept), tuple(y for _, y in kept)))
    return out


def _number(value: Any) -> float | None:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if plain and isfinite(value) else None


def _number_in(text: Any) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
