"""docs/instructor-answers.md says of every lab what the lab itself computes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cases import for_each
from lab_answers import ALIKE, PAGE, right_answers, section
from lab_students import numbers

from retrompi.base import units
from retrompi.labs import lab as _lab
from retrompi.store import open_store

QUICK = ("01", "03", "10", "11")
"""Labs whose answers take seconds; those of all are computed when the page is written."""


def _part(key: str) -> str:
    text = PAGE.read_text(encoding="utf-8")
    return text.split(f"{{ #lab-{key} }}", 1)[1].split("\n## ", 1)[0]


@for_each("name", _lab.lab_names())
def test_the_page_is_of_this_version_of_the_lab(name: str) -> None:
    lab = _lab.lab(name)
    part = _part(lab.key)
    assert f"Version {lab.version};" in part, "python tests/lab_answers.py writes the page anew"
    for task in lab.tasks:
        assert f"`{task.id}`" in part


@pytest.mark.parametrize("key", QUICK)
def test_a_students_answers_lie_in_the_ranges_of_the_page(key: str, tmp_path: Path) -> None:
    lab = _lab.lab(key)
    seen = right_answers(lab, numbers(1), open_store(tmp_path / "answers.db"))
    part = _part(key)
    assert seen.values
    for task, (value,) in seen.values.items():
        cells = next(line for line in part.splitlines() if line.startswith(f"| `{task}` ")).split(" | ")
        if cells[2] == ALIKE:
            continue
        low, high = _ends(cells[2], lab.task(task).unit)
        assert low * 0.99 <= value <= high * 1.01, (task, value, cells[2])


def _ends(told: str, unit: str) -> tuple[float, float]:
    first, _dots, last = told.partition(" .. ")
    known = re.search(r"[A-Za-z].*$", last)
    whole = first if re.search(r"[A-Za-z]", first) or known is None or _plain(unit) else f"{first} {known[0]}"
    return units.parse(whole, unit), units.parse(last, unit)


def _plain(unit: str) -> bool:
    """Whether an amount has no unit."""
    return unit in ("1", "count", "probability")


def test_a_lab_that_has_changed_is_noticed(tmp_path: Path) -> None:
    lab = _lab.lab("03")
    seen = right_answers(lab, numbers(2), open_store(tmp_path / "answers.db"))
    told = section(lab, seen)
    assert "| the same for all |" in told  # the order of the path: an answer is not published
    assert "sending process <" not in told.replace("&lt;", "<")
    seen.values["startup"] = [v * 2 for v in seen.values["startup"]]
    assert section(lab, seen) != told
