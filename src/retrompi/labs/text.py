"""A lab's text with a student's parameters: ``{size}`` is the parameter for reading, ``{size:arg}`` in command-line syntax.

In text.md ``[[in a terminal|in the browser]]`` is what a reader is told in one place and in the other; a side may be empty. There a line
``[task ID]`` is replaced by the task's question, and every name in braces must be known. In files for the
student only known names are replaced, so that C and TOML may contain braces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from retrompi.base import units
from retrompi.base.errors import InputError, nearest
from retrompi.base.translate import _, lazy, ngettext
from retrompi.labs import glossary

if TYPE_CHECKING:
    from retrompi.labs.lab import Lab, Task
    from retrompi.labs.student import Parameters

__all__ = ["fill", "names", "render_readme", "rendered_file", "task_text", "text_for"]

KINDS_TOLD = {"prediction": lazy("prediction"), "text": lazy("in your own words"), "file": lazy("file"), "number": lazy("number"),
              "choice": lazy("choice"), "order": lazy("order")}
"""Kind of a task -> how it is called in the text."""
_PLACES = re.compile(r"\[\[(.*?)\|(.*?)\]\]", re.DOTALL)
_BRACES = re.compile(r"\{([a-z][a-z0-9_]*)(:arg)?\}")
_TASK = re.compile(r"^\[task ([a-z][a-z0-9_-]*)\]$", re.MULTILINE)


def names(lab: Lab, p: Parameters, student: str) -> dict[str, str]:
    """Every name that a text may use: the parameters, those of ``reference.derive(p)``, and student, lab, points, minutes."""
    derive = getattr(lab.reference, "derive", None)
    found = {k: str(v) for k, v in (derive(p) if derive else {}).items()}
    for parameter in lab.parameters:
        text = p.text(parameter.name)
        if parameter.unit and units.canonical(parameter.unit) == "B":
            text = units.format_bytes(p[parameter.name])
        found[parameter.name] = text
    return {**found, "student": student, "lab": lab.key, "points": f"{lab.points:g}", "minutes": str(lab.minutes)}


def text_for(text: str, *, browser: bool) -> str:
    """``text`` for readers in the browser, or for those in a terminal."""
    return _PLACES.sub(lambda found: found[2 if browser else 1], text)


def fill(text: str, known: Mapping[str, str], strict: bool = True, where: Any = None) -> str:
    """``text`` with its names replaced; InputError for an unknown one if ``strict``."""

    def put(found: re.Match[str]) -> str:
        name = found[1]
        if name not in known:
            if not strict:
                return found[0]
            line = text[: found.start()].count("\n") + 1
            raise InputError(f"no parameter '{name}'{nearest(name, known, 30)}", where, line if where else None, code="unknown-parameter")
        return known[name].replace(" ", "") if found[2] else known[name]

    return _BRACES.sub(put, text)


def task_text(task: Task, known: Mapping[str, str]) -> str:
    """A task as shown in the text: id, points, question, form of the answer."""
    points = ngettext("{n} point", "{n} points", _whole(task.points)).format(n=f"{task.points:g}")
    told = f"{_(KINDS_TOLD[task.kind])}, {points}" + (_("; hints: {n}").format(n=len(task.hints)) if task.hints else "")
    question = "\n".join(f"> {line}".rstrip() for line in fill(task.question, known).splitlines())
    head, form = _("Task `{task}`").format(task=task.id), _("Answer: {form}.").format(form=task.asked)
    return f"> **{head}** ({told})\n>\n{question}\n>\n> *{form}*"


def _whole(points: float) -> int:
    """For the plural: half a point is none of one point."""
    return 1 if points == 1 else 2


def render_readme(lab: Lab, p: Parameters, student: str) -> str:
    """The student's README.md. Raises InputError (text.md, line) for an unknown name, and for a missing or duplicate task."""
    known = names(lab, p, student)
    where = lab.folder / "text.md"
    there = _TASK.findall(lab.text)
    for task in lab.tasks:
        if there.count(task.id) != 1:
            said = f"task '{task.id}' stands {there.count(task.id)} times in the text; a line [task {task.id}] puts it there"
            raise InputError(said, where)
    other = next((t for t in there if t not in {task.id for task in lab.tasks}), None)
    if other is not None:
        raise InputError(f"lab.toml has no task '{other}'{nearest(other, [t.id for t in lab.tasks], 20)}", where, code="unknown-task")
    filled = fill(text_for(lab.text, browser=False), known, where=where)
    used = glossary.link_terms(lab.text, glossary.terms(lab.language), set())[1]
    terms = f"\n{glossary.section(used, _('Terms'))}" if used else ""
    return _TASK.sub(lambda found: task_text(lab.task(found[1]), known), filled).rstrip("\n") + "\n" + terms


def rendered_file(text: str, lab: Lab, p: Parameters, student: str) -> str:
    """A file for the student: known names replaced, all other braces left."""
    return fill(text, names(lab, p, student), strict=False)
