"""Grading, and diagnosis of wrong values by comparison with those of common mistakes, which are computed like the answer itself.

No message contains the correct value or says on which side of it an answer lies, since students could find the answer by trial.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from retrompi.base import units
from retrompi.base.errors import InputError, RetrompiError
from retrompi.base.translate import _, lazy, ngettext
from retrompi.labs import answers as _answers
from retrompi.labs import text as _text
from retrompi.labs.answers import Given, UnreadableAnswer
from retrompi.labs.bench import Bench
from retrompi.labs.lab import Lab, Task
from retrompi.labs.student import ANSWERS, Parameters, Sealed, State, draw, seed_of, shown_id

__all__ = ["Grading", "TaskResult", "diagnose", "grade", "is_right", "lab_of", "right_values", "seal", "usual", "within"]

GOOD = ("right", "sealed", "open")
"""The statuses that require no further action of the student."""


@dataclass(frozen=True)
class TaskResult:
    """A task's outcome: ``status`` is right, wrong, missing, unreadable, waiting (for a prediction), sealed, changed or open.

    An open task is answered, and a person judges it: ``open`` is the number of points it can get.
    """

    task: str
    kind: str
    status: str
    points: float
    of: float
    says: str = ""
    given: str = ""
    line: int | None = None
    notes: tuple[str, ...] = ()
    compared: str = ""
    """For a prediction whose task is solved: predicted and found value, as text."""
    open: float = 0.0


@dataclass(frozen=True)
class Grading:
    """A submission's results. ``flags`` are issues for the teacher's attention: changed predictions, a broken seal."""

    lab: str
    student: str
    results: tuple[TaskResult, ...]
    flags: tuple[str, ...] = ()
    checks: int = 0
    hints: int = 0
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def points(self) -> float:
        """Points reached."""
        return sum(r.points for r in self.results)

    @property
    def of(self) -> float:
        """Maximum number of points."""
        return sum(r.of for r in self.results)

    @property
    def open(self) -> float:
        """Points not given yet, which the teacher's marks decide."""
        return sum(r.open for r in self.results)

    @property
    def passed(self) -> bool:
        """Whether nothing is left for the student: every task is right or open, and every prediction sealed."""
        return all(r.status in (*GOOD, "changed") for r in self.results)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Grading:
        """The grading that `row` was made of."""
        results = tuple(TaskResult(**{**r, "notes": tuple(r["notes"])}) for r in row["tasks"])
        return cls(row["lab"], row["student"], results, tuple(row["flags"]), row["checks"], row["hints"], row["parameters"])

    def row(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "lab": self.lab, "student": self.student, "points": self.points, "of": self.of, "open": self.open,
            "passed": self.passed, "checks": self.checks, "hints": self.hints, "flags": list(self.flags),
            "parameters": dict(self.parameters), "tasks": [asdict(r) for r in self.results],
        }


def lab_of(state: State, folder: Path) -> Lab:
    """The lab that a folder was created for; InputError if the installed version of the lab differs."""
    from retrompi.labs import lab as _lab

    try:
        name = next(n for n in _lab.lab_names() if n == state.lab)
    except StopIteration:
        raise InputError(
            f"made for a lab '{state.lab[:60]}', which this retrompi does not have", folder / ".lab.toml", code="wrong-version"
        ) from None
    found = _lab.lab(name)
    if found.version != state.version:
        raise InputError(
            f"made for version {state.version} of lab {found.key}; this retrompi has version {found.version}: start it again",
            folder / ".lab.toml",
            code="wrong-version",
        )
    return found


def seal(lab: Lab, state: State, given: Mapping[str, Given]) -> State:
    """The state after another check: every readable prediction not yet sealed is sealed."""
    count = state.checks + 1
    sealed = dict(state.sealed)
    for task in lab.predictions:
        if task.id in sealed or given[task.id].empty:
            continue
        try:
            _answers.value(task, given[task.id])
        except UnreadableAnswer:
            continue
        after = [t for t in lab.tasks if t.id == task.of or task.id in t.after]
        late = any(t.kind != "file" and not given[t.id].empty for t in after)
        sealed[task.id] = Sealed(given[task.id].text.strip(), count, late)
    return replace(state, checks=count, sealed=sealed)


def right_values(lab: Lab, p: Parameters, bench: Bench) -> dict[str, Any]:
    """Task id -> the correct answer, by simulation; InputError (reference.py) if one is missing."""
    found: dict[str, Any] = bench.once(("expected", lab.name, tuple(sorted(p.texts.items()))), lambda: lab.reference.expected(p, bench))
    missing = [t.id for t in lab.tasks if t.kind in ("number", "choice", "order") and t.id not in found]
    if missing:
        raise InputError(f"expected() gives nothing for {', '.join(missing)}", lab.folder / "reference.py", code="missing-key")
    return found


def usual(lab: Lab, p: Parameters, bench: Bench) -> dict[str, dict[str, Any]]:
    """Task id -> name of a mistake -> the value that results from it."""
    made = getattr(lab.reference, "mistakes", None)
    found: dict[str, dict[str, Any]] = bench.once(
        ("mistakes", lab.name, tuple(sorted(p.texts.items()))), lambda: made(p, bench) if made else {}
    )
    for task in lab.tasks:
        if task.kind == "choice":
            found = {**found, task.id: {m.name: m.name for m in task.mistakes}}
    return found


def within(value: float, right: float, relative: float, absolute: float) -> bool:
    """Whether a number is within the tolerance of the correct one, relative or absolute, whichever is wider."""
    return bool(abs(value - right) <= max(relative * abs(right), absolute) * (1 + 1e-9))


def is_right(task: Task, value: Any, expected: Any) -> bool:
    """Whether an answer is within the task's tolerance, relative or absolute, whichever is wider."""
    if task.kind == "number":
        return within(value, expected, task.tolerance, task.absolute)
    if task.kind == "order":
        return list(value) == list(expected)
    return bool(_answers.normal(str(value)) == _answers.normal(str(expected)))


_THOUSAND = lazy("out by a factor of a thousand (or a power of it): check the unit's prefix")
_GENERIC: Mapping[str, Sequence[tuple[float, str]]] = {
    "s": (
        (2.0, lazy("twice what is asked: a round trip is two messages, and one way is half of it")),
        (0.5, lazy("half of what is asked: the tables of retrompi already show one way")),
        *((1e3**k, _THOUSAND) for k in (1, -1, 2, -2)),
    ),
    "B/s": (
        (8.0, lazy("a factor of eight: bits and bytes")),
        (1 / 8.0, lazy("a factor of eight: bits and bytes")),
        (0.5, lazy("half of what is asked: was the time of a round trip taken for one way?")),
        (2.0, lazy("twice what is asked: was the one-way time halved once more?")),
        *((1e3**k, _THOUSAND) for k in (1, -1, 2, -2)),
    ),
    "B": (
        (2.0, lazy("twice what is asked")),
        (0.5, lazy("half of what is asked")),
        *((1e3**k, _THOUSAND) for k in (1, -1, 2, -2)),
        *((1024.0**k, lazy("out by a factor of 2^10 (or a power of it): check the unit's prefix")) for k in (1, -1, 2, -2)),
    ),
    "1": (
        (100.0, lazy("a percentage where a plain number is asked")),
        (0.01, lazy("a hundredth of what is asked: a share written as percent?")),
    ),
    "probability": (
        (100.0, lazy("a percentage where a share is asked, or the other way round")),
        (0.01, lazy("a hundredth of what is asked")),
    ),
}

_TWINS = {"kB": 1.024, "MB": 1.024**2, "GB": 1.024**3, "KiB": 1 / 1.024, "MiB": 1 / 1.024**2, "GiB": 1 / 1.024**3}
"""Prefix as written -> factor when it is read as its counterpart (decimal or binary)."""
_TWIN = 0.005
"""Maximum relative tolerance of a number read with the other prefix. The prefixes differ by 2.4 % or more."""


def _prefix_mistake(task: Task, value: float, expected: float, written: str) -> tuple[float, str] | None:
    """(relative error, message) if the number is correct with the ``written`` unit's prefix read as its decimal or binary counterpart."""
    found = re.search(r"([kMGK]i?B)(/s)?$", written.strip())
    if found is None or found[1] not in _TWINS or not expected:
        return None
    off = abs(value * _TWINS[found[1]] - expected) / abs(expected)
    if off > min(task.tolerance / 2, _TWIN):
        return None
    ten, two = (f"{found[1][0].replace('K', 'k')}B", f"{found[1][0].replace('k', 'K')}iB")
    per = found[2] or ""
    return off, _("{ten}{per} counts by powers of ten, {two}{per} by powers of two: in which of them was this number computed?").format(
        ten=ten, per=per, two=two
    )


def diagnose(task: Task, value: Any, expected: Any, mistakes: Mapping[str, Any], written: str = "") -> str:
    """Diagnosis of a wrong answer: the common mistake with the nearest value within the tolerance; otherwise, that it is none of them.

    ``written`` is the answer as the student wrote it: a confusion of kB and KiB is reported only for that unit.
    """
    says = {m.name: m.says for m in task.mistakes}
    if task.kind in ("choice", "order"):
        for name, wrong in mistakes.items():
            if name in says and is_right(task, value, wrong):
                return says[name]
        return _("not in this order") if task.kind == "order" else _("not this one")
    found: list[tuple[float, int, str]] = []

    def look(wrong: float, rank: int, said: str) -> None:
        off = abs(value - wrong)
        if wrong and off <= max(min(task.tolerance, 0.05) * abs(wrong), task.absolute) and not is_right(task, wrong, expected):
            found.append((round(off / abs(wrong), 6), rank, said))

    for name, wrong in mistakes.items():
        if name in says:
            look(float(wrong), 0, says[name])
    for factor, said in _GENERIC.get(units.canonical(task.unit), ()):
        look(expected * factor, 1, said)
    if units.canonical(task.unit) == "1" and expected:
        look(1 / expected, 2, _("the quotient is upside down"))
    mixed = _prefix_mistake(task, value, expected, written)
    if mixed is not None:
        found.append((round(mixed[0], 6), 1, mixed[1]))
    if found:
        return _(min(found)[2])
    return _("not within the tolerance, and none of the usual mistakes leads to it: go through your steps again") + (
        _(", or take a hint (it costs points)") if task.hints else ""
    )


def grade(lab: Lab, folder: Path, state: State, bench: Bench, given: Mapping[str, Given] | None = None) -> Grading:
    """Grade the answers in ``folder`` against simulated values. ``state`` holds the sealed predictions; nothing is written.

    Raises InputError for a sheet that cannot be read.
    """
    sheet = _answers.read(folder, lab) if given is None else given
    p = draw(lab, state.student)
    known = _text.names(lab, p, state.student)
    found: dict[str, TaskResult] = {}
    for task in lab.tasks:
        if task.kind != "prediction":
            found[task.id] = _grade_task(task, lab, folder, state, sheet, p, bench, known)
    for task in lab.predictions:
        found[task.id] = _prediction(task, lab, state, sheet, found, known)
    flags = []
    if not state.intact:
        flags.append(_("the lab's own file .lab.toml was changed by hand"))
    if state.seed != seed_of(lab, state.student):
        flags.append(_("the seed is not this student's"))
    flags += [f"{r.task}: {n}" for r in found.values() for n in r.notes]
    if not bench.may_run:
        programs = [t for t in lab.tasks if t.id in getattr(lab.reference, "RUNS", ()) and found[t.id].status == "open"]
        flags += [_("{file} was not compiled and run: its points are open").format(file=t.file) for t in programs]
    ordered = tuple(found[t.id] for t in lab.tasks)
    return Grading(lab.name, shown_id(state.student), ordered, tuple(flags), state.checks, sum(state.hints.values()), dict(p.texts))


def _grade_task(
    task: Task, lab: Lab, folder: Path, state: State, sheet: Mapping[str, Given], p: Parameters, bench: Bench, known: Mapping[str, str]
) -> TaskResult:
    """The outcome of a task other than a prediction."""
    if task.kind == "file":
        return _file(task, lab, folder, p, bench, _points_after_hints(task, lab, state), _cost(task, lab, state))
    given = sheet[task.id]
    result = TaskResult(task.id, task.kind, "wrong", 0.0, task.points, given=given.text.strip(), line=given.line)
    if given.empty:
        return replace(result, status="missing", says=_("no answer yet"))
    lacks = [a for a in task.after if a not in state.sealed]
    if lacks:
        told = (_("graded after {lacks}: empty this answer, predict, check, and fill it in again; a prediction "
"that is sealed while its answer stands here is marked for your teacher, for good").format(lacks=', '.join(lacks)))
        return replace(result, status="waiting", says=told)
    earned = _points_after_hints(task, lab, state)
    if task.kind == "text":
        problem = _too_thin(task, given.text, known)
        if problem:
            return replace(result, status="missing", says=problem)
        return _open(result, earned, _("marked by your teacher"))
    try:
        value = _answers.value(task, given)
    except UnreadableAnswer as error:
        wrongs = usual(lab, p, bench).get(task.id, {}) if error.negative is not None else {}
        if not any(isinstance(wrong, float) and wrong < 0 for wrong in wrongs.values()):
            return replace(result, status="unreadable", says=str(error))
        value = error.negative  # to be diagnosed: one of the usual mistakes leads below zero
    expected = right_values(lab, p, bench)[task.id]
    if is_right(task, value, expected):
        return replace(result, status="right", points=earned, says=_cost(task, lab, state))
    said = diagnose(task, value, expected, usual(lab, p, bench).get(task.id, {}), given.text)
    return replace(result, says=_text.fill(said, known, strict=False))


def _open(result: TaskResult, points: float, why: str) -> TaskResult:
    """The outcome of an answer that a person judges."""
    told = ngettext("open: {n:g} point, {why}", "open: {n:g} points, {why}", 1 if points == 1 else 2)
    return replace(result, status="open", open=points, says=told.format(n=points, why=why))


def _points_after_hints(task: Task, lab: Lab, state: State) -> float:
    """Points of a correct answer after deduction of the hints used."""
    return max(task.points - lab.hint_cost * state.hints.get(task.id, 0), 0.0)


def _cost(task: Task, lab: Lab, state: State) -> str:
    """Why a correct answer has fewer points than the task; empty if it has all."""
    taken = state.hints.get(task.id, 0)
    lost = task.points - _points_after_hints(task, lab, state)
    if not (taken and lost):
        return ""
    return ngettext("right; {n} hint costs {lost:g}", "right; {n} hints cost {lost:g}", taken).format(n=taken, lost=lost)


def _too_thin(task: Task, text: str, known: Mapping[str, str]) -> str:
    """Why a free-text answer is not accepted; empty if it is."""
    words = _answers.words_of(text)
    if len(words) < task.words:
        told = ngettext("{n} word; asked are at least {least}", "{n} words; asked are at least {least}", len(words))
        return told.format(n=len(words), least=task.words)
    if len({w.casefold() for w in words}) < task.words / 2:
        return _("the same words again and again")
    if _answers.normal(text) in _answers.normal(_text.fill(task.question, known)):
        return _("that is the question")
    return ""


def _file(task: Task, lab: Lab, folder: Path, p: Parameters, bench: Bench, earned: float, cost: str) -> TaskResult:
    """The outcome of a task answered by a file; ``reference.inspect(task id, folder, p, bench)`` returns what is wrong with it."""
    result = TaskResult(task.id, task.kind, "wrong", 0.0, task.points, given=task.file)
    path = folder / task.file
    if path.is_symlink() or not path.is_file():
        return replace(result, status="missing", says=_("the file {name} is missing").format(name=task.file))
    try:
        problem = str(lab.reference.inspect(task.id, folder, p, bench))
    except RetrompiError as error:
        return replace(result, status="unreadable", says=str(error))
    if problem:
        return replace(result, says=problem)
    if not bench.may_run and task.id in getattr(lab.reference, "RUNS", ()):
        return _open(result, earned, _("not compiled and run here"))
    return replace(result, status="right", points=earned, says=cost)


def _prediction(
    task: Task, lab: Lab, state: State, sheet: Mapping[str, Given], found: Mapping[str, TaskResult], known: Mapping[str, str]
) -> TaskResult:
    """The outcome of a prediction: whether and when it was made; compared once its task is solved."""
    given, sealed = sheet[task.id], state.sealed.get(task.id)
    shown = sealed.text if sealed else given.text.strip()
    result = TaskResult(task.id, task.kind, "sealed", task.points, task.points, given=shown, line=given.line)
    if sealed is None:
        if given.empty:
            return replace(result, status="missing", points=0.0, says=_("no prediction yet; a guess is as good as a reckoning"))
        try:
            _answers.value(task, given)
        except UnreadableAnswer as error:
            return replace(result, status="unreadable", points=0.0, says=str(error))
        return replace(result, status="missing", points=0.0, says=_("not sealed yet; 'retrompi lab check' seals it"))
    notes = []
    if sealed.late:
        notes.append(_("sealed when the answer was there already"))
        after = ", ".join(t.id for t in lab.tasks if t.id == task.of or task.id in t.after)
        told = _("sealed, but after an answer that depends on it ({tasks}) stood there: your teacher sees that").format(tasks=after)
        result = replace(result, says=told)
    if not _same(task, given, sealed.text):
        notes.append(_("changed after sealing (the sealed one counts)"))
        result = replace(result, status="changed", says=_("changed after sealing; the sealed one counts"))
    compared = ""
    if task.of and found[task.of].status == "right":
        compared = _comparison(task, lab.task(task.of), sealed.text, found[task.of].given)
    return replace(result, notes=tuple(notes), compared=compared)


def _same(task: Task, given: Given, sealed: str) -> bool:
    """Whether a prediction equals the sealed one, in any notation."""
    try:
        now, then = _answers.value(task, given), _answers.value(task, Given(sealed, sealed))
    except UnreadableAnswer:
        return given.text.strip() == sealed
    if task.number:
        return math.isclose(now, then, rel_tol=1e-9)
    return bool(now == then) if task.choices else _answers.normal(str(now)) == _answers.normal(str(then))


def _comparison(task: Task, other: Task, predicted: str, answered: str) -> str:
    """Predicted and found value, as text."""
    try:
        a, b = _answers.value(task, Given(predicted, predicted)), _answers.value(other, Given(answered, answered))
    except UnreadableAnswer:
        return ""
    if not task.number:
        same = lazy("predicted {predicted}, found {answered}")
        other_than = lazy("predicted {predicted}, found {answered}: not what you thought")
        return _(same if a == b else other_than).format(predicted=_choice_text(task, a), answered=_choice_text(other, b))
    if not a or not b or (a < 0) != (b < 0):
        return _("predicted {predicted}, found {answered}").format(predicted=predicted, answered=answered)
    ratio = max(a / b, b / a)
    how = _("as predicted") if ratio < 1.1 else _("off by a factor of {ratio:.2g}").format(ratio=ratio)
    return _("predicted {predicted}, found {answered}: {how}").format(predicted=predicted, answered=answered, how=how)


def _choice_text(task: Task, value: Any) -> str:
    """A choice, or an order of choices, in the lab's language."""
    return ", ".join(task.choice_text(c) for c in value) if isinstance(value, list) else task.choice_text(str(value))


def where(result: TaskResult, folder: Path) -> str:
    """The location of an answer, for a message."""
    return f"{folder / ANSWERS}:{result.line}" if result.line else str(folder / ANSWERS)
