"""A lab's text in steps: what a student may see before and after the predictions are sealed, and the forms within it. Without Dash.

A step is a part under a heading of level 2. What follows the last prediction of a step, and all later steps, stay on the server until
every prediction so far is sealed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from retrompi.base.translate import _
from retrompi.labs import glossary
from retrompi.labs import text as _words
from retrompi.labs.student import draw
from retrompi.studio.labs.lab_commands import LabForm, form_of

if TYPE_CHECKING:
    from retrompi.labs.glossary import Term
    from retrompi.labs.lab import Lab, Task
    from retrompi.labs.work import Work

__all__ = ["LabStep", "StepPiece", "steps"]

_TASK = re.compile(r"^\[task ([a-z][a-z0-9_-]*)\]$")
_COMMAND = re.compile(r"^    (retrompi .+)$")
_OWN = re.compile(r"^    retrompi lab (check|report|hint).*$")


@dataclass(frozen=True)
class StepPiece:
    """A part of a step: Markdown, a task, or a form; ``own``: check or report, which the page has as buttons."""

    text: str = ""
    task: Task | None = None
    form: LabForm | None = None
    own: str = ""
    key: str = ""
    """Of a form: its number in the lab's text."""


@dataclass(frozen=True)
class LabStep:
    """``pieces`` are those that the student may see; ``seals``: the predictions to seal here; ``shut``: an earlier step waits for its."""

    title: str
    pieces: tuple[StepPiece, ...]
    seals: tuple[Task, ...] = ()
    shut: bool = False
    tasks: tuple[Task, ...] = ()
    terms: tuple[Term, ...] = ()
    """Those that the lab's text uses here for the first time; their links lead to entries below the step."""


def steps(lab: Lab, work: Work) -> list[LabStep]:
    """The steps of a student's lab, in order."""
    known = {**_words.names(lab, draw(lab, work.state.student), work.state.student), "student": _("you")}
    titles, bodies = [""], [[]]  # type: tuple[list[str], list[list[str]]]
    fenced = False
    for line in _words.text_for(lab.text, browser=True).splitlines():
        fenced = fenced != line.startswith("```")
        if line.startswith("# ") and not fenced:
            continue  # the page has its own heading
        if line.startswith("## ") and not fenced:
            titles.append(line[3:].strip())
            bodies.append([])
        else:
            bodies[-1].append(line)
    out: list[LabStep] = []
    shut, varied, number = False, {}, 0  # type: tuple[bool, dict[str, str], int]
    for title, body in zip(titles, bodies, strict=True):
        pieces: list[StepPiece] = []
        for piece in _pieces(body, lab, known, varied):
            number += piece.form is not None
            pieces.append(piece if piece.form is None else StepPiece(form=piece.form, key=str(number)))
        open_ = [p.task for p in pieces if p.task is not None and p.task.kind == "prediction" and p.task.id not in work.state.sealed]
        tasks = tuple(p.task for p in pieces if p.task is not None)
        if shut:
            out.append(LabStep(_words.fill(title, known), (), (), True, tasks))
            continue
        if open_:
            last = max(i for i, p in enumerate(pieces) if p.task is not None and p.task.kind == "prediction")
            pieces = pieces[: last + 1]
            shut = True
        out.append(LabStep(_words.fill(title, known), tuple(pieces), tuple(open_), False, tasks))
    if not out[0].title and not out[0].tasks and len(out) > 1 and not out[1].shut:
        first, second = out[0], out[1]
        both = (*first.pieces, StepPiece(text=f"### {second.title}"), *second.pieces)
        out[:2] = [LabStep(second.title, both, second.seals, False, second.tasks)]
    return _link_terms(out, lab)


def _link_terms(found: list[LabStep], lab: Lab) -> list[LabStep]:
    """The steps with links at the first use of each term of the glossary."""
    among, seen, out = glossary.terms(lab.language), set(), []  # type: tuple[tuple[Term, ...], set[str], list[LabStep]]
    for step in found:
        pieces, used = [], []  # type: tuple[list[StepPiece], list[Term]]
        for piece in step.pieces:
            text, new = glossary.link_terms(piece.text, among, seen) if piece.text else ("", [])
            pieces.append(replace(piece, text=text) if new else piece)
            used += new
        out.append(replace(step, pieces=tuple(pieces), terms=tuple(used)))
    return out


def _pieces(body: list[str], lab: Lab, known: Mapping[str, str], varied: dict[str, str]) -> list[StepPiece]:
    out: list[StepPiece] = []
    lines: list[str] = []

    def close() -> None:
        text = _words.fill("\n".join(lines), known).strip("\n")
        if text.strip():
            out.append(StepPiece(text=text))
        lines.clear()

    for line in body:
        task, command = _TASK.match(line), _COMMAND.match(line)
        if task:
            close()
            out.append(StepPiece(task=lab.task(task[1])))
        elif _OWN.match(line):
            close()
            out.append(StepPiece(own=_OWN.match(line)[1]))  # type: ignore[index]
        elif command:
            written = _words.fill(command[1], known)
            form = form_of(written, varied)
            if form is None:
                lines.append(line)
                continue
            close()
            if form.kind == "sweep":
                varied[form.given.get("file", "").removesuffix(".toml")] = form.given.get("vary", "")
            out.append(StepPiece(form=form))
        else:
            lines.append(line)
    close()
    return out
