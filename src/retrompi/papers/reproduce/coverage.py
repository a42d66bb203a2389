"""How much of what no fit has seen lies inside the intervals: ``validate/agreement.csv``, and the tables made from it.

``retrompi validate --uncertainty 90% --write`` makes the file, or the rows of one paper; ``python -m retrompi.papers.markdown
docs/uncertainty/statements.md`` writes the tables.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from retrompi.base import paths
from retrompi.base.csv_safe import write_rows
from retrompi.base.errors import InputError
from retrompi.base.files import read_text
from retrompi.papers.experiments import MESSAGES, module
from retrompi.papers.statements.claims import checks
from retrompi.papers.statements.paper import all_papers

if TYPE_CHECKING:
    from pathlib import Path

    from retrompi.papers.reproduce.reproduction import Reproduction

__all__ = ["COLUMNS", "WORDS", "coverage_table", "file_of", "first_papers", "outside_table", "rows_of", "shipped_rows", "update_file"]

COLUMNS = ("paper", "id", "use", "verdict", "agreement", "share", "draws", "unit", "observed", "observed_low", "observed_median",
           "observed_high", "stated_low", "stated_high", "inside")
WORDS = ("agrees", "cannot tell", "disagrees")
Row = Mapping[str, str]


def file_of() -> Path:
    """The file of the agreement of the package's papers."""
    return paths.validate_dir() / "agreement.csv"


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def rows_of(study: Reproduction) -> list[dict[str, str]]:
    """The rows of a study: its claims and curves that draws have judged."""
    found = []
    for v in study.verdicts:
        if v.agreement is not None:
            told = {**v.row(), **v.agreement.row(), "paper": study.paper.key}
            told["observed"] = v.observed if isinstance(v.observed, float) else None
            found.append({k: _text(told[k]) for k in COLUMNS})
    return found


def shipped_rows() -> list[dict[str, str]]:
    """The rows of the file; InputError if it cannot be read."""
    return list(csv.DictReader(read_text(file_of()).splitlines()))


def update_file(studies: Iterable[Reproduction]) -> Path:
    """Writes the rows of ``studies`` to the file, in place of those that their papers have there; returns its path."""
    made = {s.paper.key: rows_of(s) for s in studies}
    old = shipped_rows() if file_of().is_file() else []
    out = io.StringIO()
    write_rows(out, COLUMNS, [row for key in all_papers() for row in made.get(key) or [r for r in old if r["paper"] == key]])
    try:
        file_of().write_text(out.getvalue(), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write the agreement: {error.strerror}", file_of(), code="unwritable-file") from None
    return file_of()


def first_papers() -> set[str]:
    """The keys of the five papers whose experiments the project began with (two are forms of one); the others have curves alone."""
    return {key for key, paper in all_papers().items() if paper.experiments}


# --- tables ------------------------------------------------------------------------------------------------------------------------


def _claims(rows: Iterable[Row]) -> list[Row]:
    """Claims alone: a measured curve is no number."""
    return [r for r in rows if ":" not in r["id"]]


OTHERS = "tests, start-up and tasks"


def _subjects() -> dict[str, str]:
    """First word of the path of a fact -> what a statement about it is about, as the experiments of the papers say (``FACTS``)."""
    used = ((kind, paper.folder) for paper in all_papers().values() for kind in paper.experiments)
    return {word: what for use in used for word, what in getattr(module(*use), "FACTS", {}).items()}


def _what(claim: str, subjects: Mapping[str, str]) -> str:
    """The subject of a claim: by the first fact that its checks look at, or curves."""
    entries = checks().get(claim, ())
    paths = [str(p) for c in entries for p in (c.get("path"), *c.get("paths", {}).values()) if p]
    first = paths[0].partition(".")[0] if paths else ""
    curves = any("path" not in c and "paths" not in c for c in entries)
    return subjects.get(first) or (MESSAGES if curves or not paths else OTHERS)


def _counts(name: str, rows: Sequence[Row]) -> list[str]:
    numbers = [r for r in rows if r["inside"]]
    inside = sum(r["inside"] == "yes" for r in numbers)
    share = f"{inside} of {len(numbers)} ({inside / len(numbers):.0%})" if numbers else ""
    passed = sum(r["verdict"] == "pass" for r in rows)
    return [name, f"{passed} of {len(rows)}", *(str(sum(r["agreement"] == w for r in rows)) for w in WORDS), share]


def coverage_table(rows: Sequence[Row], table: Callable[[Sequence[str], Iterable[Sequence[str]]], str]) -> str:
    """Held-out claims by paper: how many pass, the third verdict, how many numbers lie inside the interval; then sums, also of what was
    fitted. A paper with claims of several kinds has a row for each."""
    claims = _claims(rows)
    held = [r for r in claims if r["use"] == "validate"]
    told, subjects = [], _subjects()
    for key in dict.fromkeys(r["paper"] for r in held):
        mine = [r for r in held if r["paper"] == key]
        told.append(_counts(key, mine))
        about = {r["id"]: _what(r["id"], subjects) for r in mine}
        kinds = [(what, [r for r in mine if about[r["id"]] == what]) for what in dict.fromkeys((MESSAGES, *subjects.values(), OTHERS))]
        if sum(bool(some) for _, some in kinds) > 1:
            told += [_counts(f"{key}: {what}", some) for what, some in kinds if some]
    five = first_papers()
    for name, first in (("the five papers", True), ("the second atlas", False)):
        for what, use in (("held out", "validate"), ("fitted", "calibrate")):
            told.append(_counts(f"**{name}, {what}**", [r for r in claims if r["use"] == use and (r["paper"] in five) == first]))
    return table(("paper", "pass", *WORDS, "numbers inside the 90 % interval"), told)


def outside_table(rows: Sequence[Row], table: Callable[[Sequence[str], Iterable[Sequence[str]]], str]) -> str:
    """The held-out numbers outside the interval: what is stated, the interval, and by which factor the two miss each other."""
    told = []
    for r in _claims(rows):
        if r["use"] == "validate" and r["inside"] == "no":
            stated = " .. ".join(dict.fromkeys(t for t in (r["stated_low"], r["stated_high"]) if t))
            span = f"{r['observed_low']} .. {r['observed_high']}" if r["observed_low"] else "none"
            told.append((r["paper"], r["id"], f"{stated} {r['unit']}", span, _factor(r), r["verdict"], r["agreement"]))
    return table(("paper", "claim", "stated", "90 % interval", "apart by a factor", "verdict", "third verdict"), told)


def _factor(r: Row) -> str:
    """By which factor the interval would have to move to reach the stated range; "" for numbers of which one is not positive."""
    ends = {k: float(r[k]) if r[k] else None for k in ("stated_low", "stated_high", "observed_low", "observed_high")}
    low, high, below, above = ends["stated_low"], ends["stated_high"], ends["observed_low"], ends["observed_high"]
    if above is not None and low is not None and above < low and above > 0:
        return f"{low / above:.2f} too small"
    if below is not None and high is not None and below > high > 0:
        return f"{below / high:.2f} too large"
    return ""
