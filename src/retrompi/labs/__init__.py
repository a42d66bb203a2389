"""Teaching labs: a text with tasks, numbers of every student's own, predictions first, checks that do not give the answer away.

    lab.py       what a lab is: lab.toml, text.md and reference.py of a folder in labs/
    student.py   a student's seed and parameters, the folder that `lab start` makes, sealed predictions and taken hints
    bench.py     what reference.py simulates with: curves and anatomies that the store keeps
    answers.py   what a student wrote: answers.toml, values with units
    grade.py     right or wrong, and what a wrong value usually means
    report.py    the page of a submission
    collect.py   a class's submissions: grade table, and which are alike
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from retrompi.labs.bench import Bench
    from retrompi.labs.grade import Grading, grade
    from retrompi.labs.lab import Lab, lab, lab_names

__all__ = ["Bench", "Grading", "Lab", "grade", "lab", "lab_names"]

_WHERE = {"Bench": "bench", "Grading": "grade", "Lab": "lab", "grade": "grade", "lab": "lab", "lab_names": "lab"}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"retrompi.labs.{_WHERE[name]}"), name)
