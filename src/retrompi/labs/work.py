"""A student's work on one lab, and where works are kept: the one way of the command line, the studio and a class's server.

A `Work` is immutable; the functions here return the next one, and a `Shelf` keeps it. The command line's shelf is a `FolderShelf`: the
folders that ``retrompi lab start`` makes. A class's server keeps the same fields in a database.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from retrompi.base.errors import InputError, RetrompiError, UsageError
from retrompi.base.scratch import folder as temporary
from retrompi.base.translate import _
from retrompi.labs import answers as _answers
from retrompi.labs import grade, text
from retrompi.labs.answers import LONGEST, Given
from retrompi.labs.student import ANSWERS, STATE, State, draw, new_state, read_text, state_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from retrompi.labs.bench import Bench
    from retrompi.labs.grade import Grading
    from retrompi.labs.lab import Lab, Task

__all__ = ["LARGEST_FILE", "LARGEST_FILES", "MOST_FILES", "OWN", "CheckRequest", "Conflict", "Last", "Ran", "Shelf", "Work", "answer",
           "begin", "change", "check", "folder_files", "grade_work", "hint", "hints", "lacking", "model_answer", "put", "reseal", "seal",
           "sheet"]

LARGEST_FILE, LARGEST_FILES, MOST_FILES = 4 << 20, 16 << 20, 40
"""Limits of a work's files: bytes of one, bytes of all, their number."""
OWN = ("README.md", ANSWERS, STATE, "report.html")
"""Names that a work's files cannot have: they are written from the rest of it."""
LARGEST_RESULT = 1 << 20
"""Bytes of a kept result, compressed; of a larger one the timeline is left out."""
_LARGEST_UNPACKED = 32 << 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_TRIES = 6


class Conflict(RetrompiError):
    """A save of a work that was changed elsewhere in the meantime."""

    code = "changed-meanwhile"


@dataclass(frozen=True)
class Work:
    """``answers``: task -> value as in answers.toml (a text, a list of texts); ``files``: name -> content of the student's files.

    ``revision`` is the shelf's: a save of an older one is refused. ``lines``: where the answers stand in a sheet, for messages.
    """

    state: State
    answers: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    revision: int = 0
    lines: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)

    def given_answers(self, lab: Lab) -> dict[str, Given]:
        """Task id -> answer, for every task of ``lab`` that is not answered by a file."""
        tasks = [t.id for t in lab.tasks if t.kind != "file"]
        return {i: Given(self.answers.get(i, ""), _answers.as_text(self.answers.get(i, "")), self.lines.get(i)) for i in tasks}


@dataclass(frozen=True)
class CheckRequest:
    """A check that was asked for: the student's how-many-th of a lab, and when (UTC). ``id`` is the shelf's."""

    lab: str
    number: int
    at: datetime
    id: int = 0

    @classmethod
    def now(cls, work: Work) -> CheckRequest:
        """A check, asked for now, of a work whose predictions are sealed."""
        return cls(work.state.lab, work.state.checks, datetime.now(UTC))


@dataclass(frozen=True)
class Last:
    """The result of a student's last check of a lab. ``row``: of its grading, {} for none; ``error``: why a later one could not be
    graded."""

    row: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True)
class Ran:
    """The last result of one command of a lab's text, as its form was run.

    ``key``: the form's number in the text; ``line``: the command as the text has it; ``values``: what its fields had; ``at``: when (UTC);
    ``told``: what is shown of it (`retrompi.studio.labs.lab_commands.run`).
    """

    key: str
    line: str
    values: Mapping[str, str]
    told: Mapping[str, Any] = field(repr=False)
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def pack(self) -> bytes:
        """For a shelf, at most `LARGEST_RESULT` bytes; UsageError for a result that is larger without its timeline, too."""
        told = {k: v for k, v in self.told.items() if k != "files"}  # these are files of the work
        for kept in (told, {k: v for k, v in told.items() if k != "chart"}):
            row = {"key": self.key, "line": self.line, "values": dict(self.values), "at": self.at.isoformat(), "told": kept}
            out = zlib.compress(json.dumps(row, ensure_ascii=False).encode())
            if len(out) <= LARGEST_RESULT:
                return out
        raise UsageError(f"the result has {len(out)} B; at most {LARGEST_RESULT >> 20} MiB are kept", code="too-large")

    @classmethod
    def unpack(cls, data: bytes) -> Ran:
        """Reads the bytes that `pack` made. InputError for anything else."""
        try:
            row = json.loads(zlib.decompressobj().decompress(data, _LARGEST_UNPACKED))
            return cls(row["key"], row["line"], row["values"], row["told"], datetime.fromisoformat(row["at"]))
        except (zlib.error, ValueError, KeyError, TypeError) as error:
            raise InputError(f"a kept result is damaged: {error}", code="damaged-file") from None


class Shelf(Protocol):
    """Storage for the work of one student."""

    def labs(self) -> list[str]:
        """The names of the labs with a work."""
        ...

    def offers(self, lab: str) -> bool:
        """Whether the student may work on the lab of this name."""
        ...

    def open(self, lab: Lab) -> Work:
        """The student's work on ``lab``, begun if there is none. InputError if it is of another version of the lab."""
        ...

    def save(self, work: Work) -> Work:
        """Keeps ``work``; returns it with its new revision. Conflict if what is kept is not the revision that was opened."""
        ...

    def ask(self, work: Work) -> CheckRequest:
        """Notes that a check of ``work``, saved and its predictions sealed, is asked for. `keep_check` or `keep_failure` answers it."""
        ...

    def keep_check(self, asked: CheckRequest, grading: Grading) -> None:
        """Keeps what a check said, the first time that it is told."""
        ...

    def keep_failure(self, asked: CheckRequest, error: str) -> None:
        """Keeps why a check could not be graded; "" if it was taken back."""
        ...

    def last(self, lab: str) -> Last:
        """The result of the student's newest check of a lab."""
        ...

    def ran(self, lab: Lab) -> dict[str, Ran]:
        """The last results of the lab's forms, by the forms' keys; a damaged one is left out."""
        ...

    def keep(self, lab: Lab, ran: Ran) -> None:
        """Keeps a form's result in the place of its last one."""
        ...


def begin(lab: Lab, student: str) -> Work:
    """The work of a student who begins: nothing answered, and the lab's files with the student's numbers."""
    p, state = draw(lab, student), new_state(lab, student)
    files = {f.name: text.rendered_file(read_text(f, "the lab's file"), lab, p, state.student).encode() for f in lab.files}
    prepare = getattr(lab.reference, "prepare", None)
    if prepare is not None:
        with temporary("lab") as place:
            prepare(place, p)
            files |= {f.name: f.read_bytes() for f in sorted(place.iterdir()) if f.is_file() and not f.name.startswith(".")}
    return Work(state, files=files)


def change(shelf: Shelf, lab: Lab, how: Callable[[Work], Work]) -> Work:
    """The work as changed by ``how`` and saved; done again on the newer one if it was saved elsewhere in the meantime."""
    for left in reversed(range(_TRIES)):
        before = shelf.open(lab)
        after = how(before)
        if after == before and before.revision:
            return before
        try:
            return shelf.save(after)
        except Conflict:
            if not left:
                raise
    raise AssertionError("unreachable")


def reseal(state: State, **changes: Any) -> State:
    """``state`` with ``changes``. A state that was edited by hand keeps its broken seal, so that the flag stays."""
    changed = replace(state, **changes)
    return replace(changed, seal=changed.computed_seal()) if state.intact else changed


def lacking(task: Task, work: Work) -> list[str]:
    """The predictions to be sealed before the task is answered."""
    return [a for a in task.after if a not in work.state.sealed]


def answer(work: Work, lab: Lab, given: Mapping[str, Any]) -> Work:
    """The work with other answers (an empty one removes); what they mean is judged by `check`, not here.

    UsageError for a task that the lab does not have, a sealed prediction, or an answer whose predictions are not sealed yet.
    """
    answered = dict(work.answers)
    for name, value in given.items():
        task = lab.task(name)
        if task.kind == "file":
            raise UsageError(f"'{name}' is answered by the file {task.file}", code="bad-answer")
        if not (isinstance(value, str) or (isinstance(value, list) and all(isinstance(v, str) for v in value))):
            raise UsageError(f"the answer to '{name}' is no text", code="bad-answer")
        value = [" ".join(v.split()) for v in value] if isinstance(value, list) else value.replace("\r\n", "\n").replace("\r", "\n")
        size = len(_answers.as_text(value))
        if size > LONGEST:
            raise UsageError(f"the answer to '{name}' has {size} characters; at most {LONGEST} are kept", code="out-of-range")
        empty = not _answers.as_text(value).strip()
        if value == answered.get(name, "") or (empty and name not in answered):
            continue
        if name in work.state.sealed:
            raise UsageError(f"the prediction '{name}' is sealed and cannot be changed any more", code="sealed")
        if not empty and lacking(task, work):
            raise UsageError(f"predict and seal {', '.join(lacking(task, work))} before you answer '{name}'", code="sealed")
        if empty:
            del answered[name]
        else:
            answered[name] = value
    return replace(work, answers=answered)


def put(work: Work, name: str, content: bytes | None) -> Work:
    """The work with one of its files written (None: removed). UsageError for a bad name or too large files."""
    if not _NAME.fullmatch(name) or name in OWN:
        raise UsageError(f"no file of a lab can be called '{name[:60]}'", code="bad-name")
    files = {n: c for n, c in work.files.items() if n != name}
    if content is not None:
        files[name] = content
    if content is not None and len(content) > LARGEST_FILE:
        raise UsageError(f"{name} has {len(content)} B; at most {LARGEST_FILE >> 20} MiB are kept", code="too-large")
    if len(files) > MOST_FILES or sum(map(len, files.values())) > LARGEST_FILES:
        raise UsageError(f"at most {MOST_FILES} files of {LARGEST_FILES >> 20} MiB in all are kept; remove others first", code="too-large")
    return replace(work, files=files)


def seal(work: Work, lab: Lab) -> Work:
    """The work with every readable prediction sealed; nothing is checked. Counts as a check, as on the command line."""
    return replace(work, state=_seal(work, lab))


def _seal(work: Work, lab: Lab) -> State:
    after = grade.seal(lab, work.state, work.given_answers(lab))
    return reseal(work.state, checks=after.checks, sealed=after.sealed)


def check(work: Work, lab: Lab, bench: Bench) -> tuple[Work, Grading]:
    """Seals the predictions and grades: (the work to be saved, the result)."""
    after = seal(work, lab)
    return after, grade_work(after, lab, bench)


def grade_work(work: Work, lab: Lab, bench: Bench) -> Grading:
    """The grading of a work; nothing is sealed. Files are looked at in the bench's folder, else in a temporary one made for it."""
    if bench.folder is not None or not any(t.kind == "file" for t in lab.tasks):
        return grade.grade(lab, bench.folder or Path(), work.state, bench, work.given_answers(lab))
    with _laid_out(work) as place:
        found = grade.grade(lab, place, work.state, bench, work.given_answers(lab))
    return replace(found, results=tuple(replace(r, says=r.says.replace(f"{place}/", "")) for r in found.results))


@contextmanager
def _laid_out(work: Work) -> Iterator[Path]:
    with temporary("lab") as place:
        for name, content in work.files.items():
            (place / name).write_bytes(content)
        yield place


def hints(work: Work, lab: Lab, task: str) -> list[str]:
    """The hints that were taken for a task, in their order."""
    asked = lab.task(task)
    known = text.names(lab, draw(lab, work.state.student), work.state.student)
    return [text.fill(h, known) for h in asked.hints[: work.state.hints.get(task, 0)]]


def hint(work: Work, lab: Lab, task: str) -> tuple[Work, str]:
    """(the work with the next hint for a task taken, the hint). UsageError if the task has no further one."""
    asked = lab.task(task)
    taken = work.state.hints.get(task, 0) + 1
    if taken > len(asked.hints):
        none = _("there is no hint for '{task}'") if not asked.hints else _("there is no further hint for '{task}'")
        raise UsageError(none.format(task=task), code="not-found")
    after = replace(work, state=reseal(work.state, hints={**work.state.hints, task: taken}))
    return after, hints(after, lab, task)[-1]


def model_answer(work: Work, lab: Lab, task: str) -> str:
    """The model answer to an open question with the student's numbers, for teachers only; empty if there is none."""
    model = lab.task(task).model or str(getattr(lab.reference, "TEXTS", {}).get(task, ""))
    return text.fill(model, text.names(lab, draw(lab, work.state.student), work.state.student), strict=False)


# -- as files ------------------------------------------------------------------------------------------------------------


def sheet(work: Work, lab: Lab, before: str | None = None) -> str:
    """answers.toml of a work; ``before``: the sheet that stands there, whose comments are kept."""
    if before is not None:
        kept = _answers.rewritten(before, lab, work.answers)
        if kept is not None:
            return kept
    told = {i: _answers.answer_text(lab.task(i), v) for i, v in work.answers.items()}
    return _answers.sheet(lab, draw(lab, work.state.student), work.state.student, told)


def folder_files(work: Work, lab: Lab) -> dict[str, bytes]:
    """File name -> content of a student's folder."""
    readme = text.render_readme(lab, draw(lab, work.state.student), work.state.student)
    return {**work.files, "README.md": readme.encode(), ANSWERS: sheet(work, lab).encode(), STATE: state_text(work.state).encode()}
