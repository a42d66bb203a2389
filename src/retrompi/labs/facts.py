"""Facts of a submission that are compared with those of others, from its answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from retrompi.base.errors import RetrompiError
from retrompi.labs import answers, grade, student
from retrompi.labs import text as _text
from retrompi.labs.alike import Facts, normal_text

if TYPE_CHECKING:
    from retrompi.labs.answers import Given
    from retrompi.labs.bench import Bench
    from retrompi.labs.lab import Lab
    from retrompi.labs.student import State

__all__ = ["gather_facts", "in_folder"]


def gather_facts(lab: Lab, state: State, sheet: Mapping[str, Given], files: Mapping[str, str], bench: Bench) -> Facts:
    """The facts of a submission; ``files``: name -> text of the files that its tasks ask for."""
    numbers = [t for t in lab.tasks if t.kind == "number"]
    given = {}
    for task in numbers:
        if not sheet[task.id].empty:
            try:
                given[task.id] = float(answers.value(task, sheet[task.id]))
            except answers.UnreadableAnswer:
                continue
    p = student.draw(lab, state.student)
    known = _text.names(lab, p, state.student)
    expected, usual = grade.right_values(lab, p, bench), grade.usual(lab, p, bench)
    told = [lab.text, *(t.question for t in lab.tasks), *(h for t in lab.tasks for h in t.hints)]
    return Facts(
        student=student.normal_id(state.student), name=student.shown_id(state.student), lab=lab.name, token=state.token,
        texts={t.id: normal_text(sheet[t.id].text) for t in lab.tasks if t.kind == "text"},
        predictions={t.id: state.sealed[t.id].text for t in lab.predictions if t.number and t.id in state.sealed},
        files=dict(files), given=given, expected={t.id: float(expected[t.id]) for t in numbers},
        tolerances={t.id: (t.tolerance, t.absolute) for t in numbers},
        usual={t.id: tuple(float(v) for v in usual.get(t.id, {}).values()) for t in numbers},
        told=" ".join(normal_text(_text.fill(one, known, strict=False)) for one in told),
        templates={f.name: _text.rendered_file(student.read_text(f, "the lab's file"), lab, p, state.student) for f in lab.files},
    )


def in_folder(lab: Lab, folder: Path) -> dict[str, str]:
    """Name -> text of the files in a student's folder that tasks ask for; those that cannot be read are left out."""
    out = {}
    for task in lab.tasks:
        if task.kind == "file" and (folder / task.file).is_file() and not (folder / task.file).is_symlink():
            try:
                out[task.file] = student.read_text(folder / task.file, task.file)
            except RetrompiError:
                continue
    return out
