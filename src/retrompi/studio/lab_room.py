"""A student's desk in the studio: the work on the shelf, the last check, and the right values that checks need."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from retrompi.base import paths
from retrompi.base.errors import RetrompiError, UsageError
from retrompi.base.translate import _
from retrompi.labs import work as _work
from retrompi.labs.grade import Grading, Result
from retrompi.labs.lab import Lab
from retrompi.labs.shelf import FolderShelf
from retrompi.labs.student import normal_id
from retrompi.labs.work import Shelf, Work
from retrompi.studio import charts, lab_commands, lab_jobs, lab_page, lab_text, parts

if TYPE_CHECKING:
    from dash.development.base_component import Component

    from retrompi.studio.room import Room

__all__ = ["Desk", "Progress"]

MOST = 2000
"""Students whose last check is remembered."""


@dataclass(frozen=True)
class Progress:
    """How far a student is: tasks that are done of all, in a line."""

    done: int
    of: int
    line: str


class _Kept:
    """What is remembered of all students: the last grading of each, and right values."""

    def __init__(self) -> None:
        self.known = lab_jobs.Known()
        self.last: OrderedDict[tuple[str, str], dict[str, Any]] = OrderedDict()
        self.lock = Lock()


class Desk:
    """The labs of whoever asks. One for each studio; `who` says whose."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self._kept: _Kept = room.extra.setdefault("labs", _Kept())

    @property
    def known(self) -> lab_jobs.Known:
        """The right values by parameters."""
        return self._kept.known

    def who(self, student: Any) -> str:
        """The id of the student: of the member, in a class; else the one that was typed; "" without any."""
        member = self.room.member(parts.session())
        return member.student if member is not None else parts.text(student).strip()

    def shelf(self, student: Any) -> Shelf:
        """Where the student's works are. UsageError without an id."""
        found = self.room.shelf_of(parts.session())
        if found is not None:
            return found  # type: ignore[no-any-return]
        who = self.who(student)
        if not who:
            raise UsageError(_("Enter your id first."), code="bad-name")
        return FolderShelf(paths.data_dir() / "lab-work", who)

    def lab(self, name: Any) -> Lab:
        """A lab by its name in a callback."""
        from retrompi.labs.lab import lab

        return lab(parts.text(name))

    def address(self, lab: Lab, student: str) -> str:
        """The address of a lab's page."""
        return f"/labs?{urlencode({'lab': lab.name, **({'student': student} if student else {})})}"

    def work(self, lab: Lab, student: Any) -> Work:
        """The student's work, begun if there is none."""
        return self.shelf(student).open(lab)

    def steps(self, lab: Lab, work: Work) -> list[lab_text.Step]:
        """The steps as far as the student may see them."""
        return lab_text.steps(lab, work)

    # -- what a student does -----------------------------------------------------------------------------------------------

    def save(self, name: Any, student: Any, given: Mapping[str, Any], quiet: bool = False) -> str:
        """Keeps answers; returns a line beside the field: saved, or what is wrong. ``quiet``: only what is wrong."""
        lab = self.lab(name)
        try:
            work = _work.change(self.shelf(student), lab, lambda w: _work.answer(w, lab, given))
        except RetrompiError as error:
            return str(error)
        return "" if quiet else self._form(lab, work, next(iter(given)))

    def _form(self, lab: Lab, work: Work, name: str) -> str:
        """Saved; and what the form of the answer says: a missing unit, the count of words."""
        from retrompi.labs import answers

        task, given = lab.task(name), work.given(lab)[name]
        if given.empty:
            return _("saved: empty")
        if task.kind == "text":
            return _("saved: {count} of at least {words} words").format(count=len(answers.words_of(given.text)), words=task.words)
        try:
            answers.value(task, given)
        except answers.Problem as error:
            return _("saved, but: {problem}").format(problem=error)
        return _("saved")

    def put(self, name: Any, student: Any, file: str, content: bytes) -> str:
        """Keeps a file of the student's: one that the lab has or asks for."""
        lab = self.lab(name)

        def how(work: Work) -> Work:
            asked = {t.file for t in lab.tasks if t.kind == "file"}
            if file not in asked and file not in work.files:
                raise UsageError(_("This lab has no file {file}.").format(file=file[:60]), code="bad-name")
            return work if work.files.get(file) == content else _work.put(work, file, content)

        try:
            _work.change(self.shelf(student), lab, how)
        except RetrompiError as error:
            return str(error)
        return _("{file} is saved: {size} B").format(file=file, size=len(content))

    def seal(self, name: Any, student: Any, step: int) -> list[str]:
        """Seals the predictions of a step if all are there and readable; else says what is missing."""
        from retrompi.labs import answers

        lab = self.lab(name)
        work = self.work(lab, student)
        given, wrong = work.given(lab), []
        all_ = self.steps(lab, work)
        for task in all_[min(step, len(all_)) - 1].seals:
            if given[task.id].empty:
                wrong.append(_("{task}: no prediction yet; a guess is as good as a reckoning").format(task=task.id))
                continue
            try:
                answers.value(task, given[task.id])
            except answers.Problem as error:
                wrong.append(f"{task.id}: {error}")
        if not wrong:
            _work.change(self.shelf(student), lab, lambda w: _work.seal(w, lab))
        return wrong

    def hint(self, name: Any, student: Any, task: str, take: bool) -> list[Component]:
        """The hints of a task: asks before one is taken."""
        lab = self.lab(name)
        if take:
            work = _work.change(self.shelf(student), lab, lambda w: _work.hint(w, lab, task)[0])
            return lab_page.hint_parts(lab, work, lab.task(task))
        return lab_page.hint_parts(lab, self.work(lab, student), lab.task(task), ask=True)

    # -- runs ----------------------------------------------------------------------------------------------------------------

    def run(self, name: Any, student: Any, key: str, values: Mapping[str, str]) -> str:
        """Begins the job of a form that the student may see; returns its id. The form's file is kept as it was run."""
        lab = self.lab(name)
        work = self.work(lab, student)
        form = next((p.form for s in self.steps(lab, work) for p in s.pieces if p.key == key and p.form is not None), None)
        if form is None:
            raise UsageError(_("Seal the predictions before it first."), code="sealed")
        for field in form.fields:
            if field.kind == "area" and field.name in values:
                self.put(name, student, field.file, values[field.name].encode())
        work = self.work(lab, student)
        return self.room.jobs.submit(
            parts.session(), form.line[:80], lab_commands.run, self.room.places[1], form.kind, dict(form.given), dict(values),
            dict(work.files), slot=f"labs-run {lab.name} {key}", client=parts.client(),
        )  # fmt: skip

    def ran(self, name: Any, student: Any, told: Mapping[str, Any]) -> list[Component]:
        """The result of a form; files that it made are kept."""
        lab = self.lab(name)
        for file, content in (told.get("files") or {}).items():
            made = bytes.fromhex(content)
            _work.change(self.shelf(student), lab, lambda w, n=file, c=made: _work.put(w, n, c))  # type: ignore[misc]
        chart = charts.keep(self.room, parts.session(), told["chart"]) if "chart" in told else ""
        return lab_page.shown(told, chart)

    # -- checks --------------------------------------------------------------------------------------------------------------

    def ahead(self, lab: Lab, student: Any) -> None:
        """Computes the right values for a student's numbers in the background, before they are needed."""
        key = lab_jobs.key_of(lab, self.who(student))
        if not self.known.asks(key):
            return
        session = f"in advance {hashlib.sha256(key.encode()).hexdigest()}"  # its own: it takes no turn of the student's
        with suppress(UsageError):  # too many wait: the first check computes them
            job = self.room.jobs.submit(
                session, lab.name, lab_jobs.expected, lab.name, self.who(student), self.room.places[1], client="labs in advance"
            )  # fmt: skip
            _after(self.room, job, session, lambda values: self.known.put(key, values))

    def sealed(self, lab: Lab, student: Any) -> Work:
        """The work with its predictions sealed, saved: what is graded."""
        return _work.change(self.shelf(student), lab, lambda w: _work.seal(w, lab))

    def graded(self, lab: Lab, student: Any, result: Mapping[str, Any]) -> None:
        """Remembers a grading, and tells the shelf of it, once."""
        who, row = self.who(student), dict(result["grading"])
        self.known.put(lab_jobs.key_of(lab, who), result["known"])
        place = (lab.name, normal_id(who))
        with self._kept.lock:
            before = self._kept.last.get(place)
            if before is not None and before == row:
                return
            self._kept.last[place] = row
            self._kept.last.move_to_end(place)
            while len(self._kept.last) > MOST:
                self._kept.last.popitem(last=False)
        results = tuple(Result(**{**r, "notes": tuple(r["notes"])}) for r in row["tasks"])
        grading = Grading(row["lab"], row["student"], results, tuple(row["flags"]), row["checks"], row["hints"], row["parameters"])
        self.shelf(student).checked(self.work(lab, student), grading)

    def last(self, lab: Lab, student: Any) -> dict[str, Any] | None:
        """The row of the last grading, if it is remembered."""
        return self._kept.last.get((lab.name, normal_id(self.who(student))))

    def summary(self, lab: Lab, student: Any) -> str:
        """The last check in a line."""
        row = self.last(lab, student)
        if row is None:
            return ""
        told = [_("{points} of {of} points").format(points=f"{row['points']:g}", of=f"{row['of']:g}")]
        if row["open"]:
            told.append(_("{points} open until marked").format(points=f"{row['open']:g}"))
        return "; ".join([*told, _("check {n}").format(n=row["checks"])])

    def offered(self) -> list[Lab]:
        """The labs to choose from: all, or those of the course."""
        from retrompi.labs.lab import labs

        shelf = self.room.shelf_of(parts.session())
        return [lab for lab in labs() if shelf is None or shelf.offered(lab.name)]

    def progress(self, student: Any) -> dict[str, Progress]:
        """Lab -> how far the student is, for those that were begun."""
        from retrompi.labs.lab import lab

        try:
            shelf = self.shelf(student)
        except RetrompiError:
            return {}
        out = {}
        for name in shelf.labs():
            try:
                found = lab(name)
                work = shelf.open(found)
            except RetrompiError:
                continue
            files = {t.file for t in found.tasks if t.kind == "file"}
            done = sum(t.id in work.state.sealed if t.kind == "prediction" else t.id in work.answers for t in found.tasks)
            of = len(found.tasks) - len(files)
            line = _("{done} of {of} answered").format(done=done, of=of)
            out[name] = Progress(done, of, "; ".join(x for x in (line, self.summary(found, student)) if x))
        return out


def _after(room: Room, job: str, session: str, put: Callable[[Any], None]) -> None:
    """Calls ``put`` with the result of a job in advance, once it is done."""
    from threading import Thread

    def wait() -> None:
        try:
            state = room.jobs.wait(job, session, 600.0)
        except RetrompiError:
            return
        if state.status == "done":
            put(state.result)

    Thread(target=wait, name="labs in advance", daemon=True).start()
