"""Figures and tables of a study: the ``[[figure]]`` and ``[[table]]`` entries of ``paper.toml``, read and checked.

No results are read here; `retrompi.render.figures.exhibits` computes the contents. ``papers/README.md`` explains the keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from retrompi.base.errors import InputError, nearest
from retrompi.spec.question import freeze

__all__ = [
    "ClaimTable",
    "CurveFigure",
    "FactFigure",
    "FactTable",
    "FigurePlan",
    "MeasuredFigure",
    "ScatterFigure",
    "TablePlan",
    "read_figures",
    "read_tables",
]


@dataclass(frozen=True)
class CurveFigure:
    """Time or bandwidth against message size. ``curves``: (model, mode) or (model, mode, legend), each may be a pattern (``*``).

    ``at``: (claim, model, mode, size), for published numbers whose check does not give their position on a curve.
    """

    name: str
    title: str
    what: str
    curves: tuple[tuple[str, ...], ...]
    caption: str = ""
    y: str = "log"
    published: bool = True
    at: tuple[tuple[str, str, str, str], ...] = ()


@dataclass(frozen=True)
class ScatterFigure:
    """Published numbers against simulated ones, with the line on which they are equal; ``groups``: legend -> pattern of claims.

    ``show``: "numbers", or "deviation" from the published ones in percent, if they span many orders of magnitude.
    """

    name: str
    title: str
    claims: tuple[str, ...]
    groups: Mapping[str, str] = field(default_factory=dict)
    caption: str = ""
    scale: str = "log"
    show: str = "numbers"


@dataclass(frozen=True)
class FactFigure:
    """Columns of a list of facts plotted against another column; ``y``: (column, legend). ``facts`` holds one list, or one for each key."""

    name: str
    title: str
    facts: str
    x: str
    y: tuple[tuple[str, str], ...]
    x_title: str
    y_title: str
    caption: str = ""
    x_scale: str = "log"
    y_scale: str = "log"


@dataclass(frozen=True)
class MeasuredFigure:
    """Measured curves (``[[curve]]``, by name, patterns allowed) as points, and what simulates them as lines; blind ones have no points."""

    name: str
    title: str
    measured: tuple[str, ...]
    what: str = "bandwidth"
    caption: str = ""


@dataclass(frozen=True)
class ClaimTable:
    """Published against simulated: a row for a claim or, with ``cells``, the paper's own grid.

    ``claims`` are patterns (``HW-T1-*``). ``cells`` is a regular expression over identifiers with the groups ``row`` and
    ``column``; ``names`` turns what they matched into text, ``row_name`` takes a row's text from that column of its claims.
    ``scatter`` draws the "numbers", or the "deviation", as a figure.
    """

    name: str
    title: str
    claims: tuple[str, ...] = ()
    cells: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    row_name: str = ""
    head: str = ""
    groups: Mapping[str, str] = field(default_factory=dict)
    caption: str = ""
    scatter: str = ""


@dataclass(frozen=True)
class FactTable:
    """Facts at a dotted path: a list of rows, dicts of rows, or a dict of values.

    ``keys`` are the titles of the columns that hold the keys of the dicts, outermost first: one for each level of nesting.
    ``columns``: (key, title[, "%" | "s" | "B" | "B/s"]).
    """

    name: str
    title: str
    facts: str
    keys: tuple[str, ...] = ("name",)
    columns: tuple[tuple[str, ...], ...] = ()
    caption: str = ""


FigurePlan = CurveFigure | ScatterFigure | FactFigure | MeasuredFigure
TablePlan = ClaimTable | FactTable

_SCALES = ("log", "linear")
_VALUES: Mapping[str, tuple[str, ...]] = {
    "what": ("time", "bandwidth"),
    "scale": _SCALES,
    "show": ("numbers", "deviation"),
    "scatter": ("numbers", "deviation"),
    "x_scale": _SCALES,
    "y_scale": _SCALES,
}


def _make(kind: type[Any], entry: Mapping[str, Any], where: str, path: Path) -> Any:
    known = [f.name for f in fields(kind)]
    for key in entry:
        if key not in known:
            raise InputError(f"{where}: no key '{key}'{nearest(key, known)}", path, code="unknown-key")
    for key, valid in {**_VALUES, **({"y": _SCALES} if kind is CurveFigure else {})}.items():
        if key in entry and entry[key] not in valid:
            raise InputError(f"{where}: {key} is '{entry[key]}'; valid: {', '.join(valid)}", path)
    try:
        made = kind(**{k: " ".join(v.split()) if k == "caption" else freeze(v) for k, v in entry.items()})
    except TypeError as error:
        raise InputError(f"{where}: {str(error).partition('() ')[2] or error}", path) from None
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", made.name):
        raise InputError(
            f"{where}: a name has lower-case letters, digits and single hyphens, so that it can name a file", path, code="bad-name"
        )
    if isinstance(made, ClaimTable):
        _check_cells(made, where, path)
    if isinstance(made, CurveFigure) and not all(len(a) == 4 for a in made.at):
        raise InputError(f"{where}: an entry of 'at' is [claim, model, mode, size]", path)
    return made


def _check_cells(table: ClaimTable, where: str, path: Path) -> None:
    if bool(table.claims) == bool(table.cells):
        raise InputError(f"{where}: give either 'claims' or 'cells'", path)
    try:
        groups = set(re.compile(table.cells).groupindex)
    except re.error as error:
        raise InputError(f"{where}: 'cells' is no regular expression: {error}", path, code="bad-value") from None
    if table.cells and groups != {"row", "column"}:
        raise InputError(f"{where}: 'cells' needs the groups (?P<row>...) and (?P<column>...)", path, code="bad-value")


def _entry_name(entry: Mapping[str, Any], what: str, number: int) -> str:
    return f"[[{what}]] {number} ('{entry.get('name', 'without a name')}')"


def _unique(made: Iterable[Any], what: str, path: Path) -> None:
    seen: set[str] = set()
    for one in made:
        if one.name in seen:
            raise InputError(f"two [[{what}]] are named '{one.name}'", path, code="duplicate-name")
        seen.add(one.name)


def read_figures(entries: Iterable[Mapping[str, Any]], path: Path) -> tuple[FigurePlan, ...]:
    """The figures of a study's file; InputError naming the entry on an unknown or missing key."""
    kinds: Mapping[str, type[Any]] = {"curves": CurveFigure, "claims": ScatterFigure, "facts": FactFigure, "measured": MeasuredFigure}
    out = []
    for i, entry in enumerate(entries, 1):
        kind = next((k for marker, k in kinds.items() if marker in entry), None)
        if kind is None:
            raise InputError(f"{_entry_name(entry, 'figure', i)}: needs one of {', '.join(kinds)}", path, code="bad-value")
        out.append(_make(kind, entry, _entry_name(entry, "figure", i), path))
    _unique(out, "figure", path)
    return tuple(out)


def read_tables(entries: Iterable[Mapping[str, Any]], path: Path) -> tuple[TablePlan, ...]:
    """The tables of a study's file; InputError naming the entry on an unknown or missing key."""
    out = [
        _make(FactTable if "facts" in entry else ClaimTable, entry, _entry_name(entry, "table", i), path)
        for i, entry in enumerate(entries, 1)
    ]
    _unique(out, "table", path)
    return tuple(out)
