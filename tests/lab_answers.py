"""docs/instructor-answers.md: what the right answers to every lab's tasks are over student numbers, computed by the labs themselves.

    python tests/lab_answers.py [--students 20]

writes the page (about three minutes). tests/test_instructor_answers.py recomputes some of it: changed answers need a new page.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab_students import numbers

from retrompi.base import units
from retrompi.labs import grade, student
from retrompi.labs import lab as _lab
from retrompi.labs.bench import Bench
from retrompi.store import open_store

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "instructor-answers.md"
STUDENTS = 20
ALIKE = "the same for all"
_PUT = re.compile(r"\{([a-z][a-z0-9_]*)(?::arg)?\}")
_HEAD = """# Answers of the labs

What right answers look like, for each task that has one: the smallest and the largest over {count} student numbers, or how many of the
{count} get which answer. Each student has one answer, with the tolerance that the table states. The page is written by
`python tests/lab_answers.py` from the labs' own draws and simulations; the tests recompute a part of it. Names in brackets such as [probe]
stand for the student's own numbers; model answers and rubrics of open questions are on the teacher's page of a course and in each lab's
`lab.toml`. How to use it is in the [instructor's guide](instructor.md).

Students can read this page too. So an answer that is the same for all is not shown: `python tests/lab_students.py LAB --ranges` prints it.
"""


@dataclass
class Seen:
    """The right answers of some students: task -> its numbers, or how many have which word."""

    values: dict[str, list[float]] = field(default_factory=dict)
    words: dict[str, Counter[str]] = field(default_factory=dict)


def right_answers(lab: _lab.Lab, whos: Sequence[str], store: Any) -> Seen:
    """The students' right answers."""
    seen = Seen()
    for who in whos:
        found = grade.right_values(lab, student.draw(lab, who), Bench(store))
        for task in lab.tasks:
            if task.kind == "number":
                seen.values.setdefault(task.id, []).append(float(found[task.id]))
            elif task.kind in ("choice", "order"):
                text = " < ".join(found[task.id]) if task.kind == "order" else str(found[task.id])
                seen.words.setdefault(task.id, Counter())[text] += 1
    return seen


def within(task: _lab.Task) -> str:
    """The tolerance in words."""
    parts = [f"{100 * task.tolerance:g} %"] if task.tolerance else []
    if task.absolute:
        parts.append(units.format_quantity(task.absolute, task.unit))
    return " + ".join(parts) or "exact"


def _cell(text: str) -> str:
    """For a table: on one line, with the names of parameters in brackets."""
    return _PUT.sub(r"[\1]", " ".join(text.split())).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


def _mistakes(task: _lab.Task, answers: Mapping[str, int]) -> str:
    """What a check says to the task's usual mistakes; not the message of an answer that some students have."""
    told = [m.says for m in task.mistakes if m.name not in answers]
    return "<br>".join(_cell(t) for t in dict.fromkeys(told)) or "–"


def section(lab: _lab.Lab, seen: Seen) -> str:
    """A lab's part of the page."""
    needs = f"; needs {', '.join(lab.needs)}" if lab.needs else ""
    rows = [f"## Lab {lab.key}: {lab.title} {{ #lab-{lab.key} }}", "",
            f"Version {lab.version}; {lab.minutes} minutes, {len(lab.tasks)} tasks, {lab.points:g} points{needs}.", "",
            "| task | points | right answers | tolerance | usual mistakes, as the check names them |", "|---|---|---|---|---|"]
    for task in lab.tasks:
        if task.id in seen.values:
            values = seen.values[task.id]
            told = units.format_span(min(values), max(values), task.unit)
            told = ALIKE if " .. " not in told else told
            rows.append(f"| `{task.id}` | {task.points:g} | {told} | {within(task)} | {_mistakes(task, {})} |")
        elif task.id in seen.words:
            counted = seen.words[task.id]
            told = ALIKE if len(counted) == 1 else "; ".join(f"{w} ({n})" for w, n in counted.most_common())
            rows.append(f"| `{task.id}` | {task.points:g} | {_cell(told)} | exact | {_mistakes(task, counted)} |")
    others = [f"`{t.id}` ({t.points:g})" for t in lab.tasks if t.kind == "prediction"]
    open_ = [f"`{t.id}` ({t.points:g})" for t in lab.tasks if t.kind in ("text", "file")]
    rows += ["", f"Predictions, for which any sealed answer counts: {', '.join(others)}."]
    if open_:
        rows.append(f"Marked by you, or run in a box: {', '.join(open_)}.")
    return "\n".join(rows)


def main(words: Sequence[str] | None = None) -> int:
    """Writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--students", type=int, default=STUDENTS)
    given = parser.parse_args(words)
    parts = [_HEAD.format(count=given.students)]
    with tempfile.TemporaryDirectory() as place:
        store = open_store(Path(place) / "answers.db")
        with store.hold_connection():
            for name in _lab.lab_names():
                lab = _lab.lab(name)
                parts.append(section(lab, right_answers(lab, numbers(given.students), store)))
                print(name, flush=True)
    PAGE.write_text("\n\n".join(parts).replace("\n\n\n", "\n\n") + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
