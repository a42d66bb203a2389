"""A student's desk in the studio: the work on the shelf, the last check, and the right values that checks need."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from retrompi.base import paths
from retrompi.base.errors import RetrompiError, UsageError
from retrompi.base.translate import _
from retrompi.labs import work as _work
from retrompi.labs.lab import Lab
from retrompi.labs.shelf import FolderShelf, Remembered
from retrompi.labs.work import Last, Ran, Shelf, Work
from retrompi.studio.components import parts, timeline_frames
from retrompi.studio.labs import lab_commands, lab_jobs, lab_page, lab_text
from retrompi.studio.labs.lab_page import Saved

if TYPE_CHECKING:
    from dash.development.base_component import Component

    from retrompi.studio.jobs.job import JobState
    from retrompi.studio.jobs.resources import Resources, SessionMember

__all__ = ["Desk", "Progress", "owner_of"]


@dataclass(frozen=True)
class Progress:
    """How far a student is: tasks that are done of all, in a line."""

    done: int
    of: int
    line: str


def owner_of(member: SessionMember) -> str:
    """Whose the jobs of a member's checks are, as sessions are told apart. No cookie has a blank."""
    return f"member {member.id}"


class _Kept:
    """What is remembered of all students: the last check of each whose works are folders, and right values."""

    def __init__(self) -> None:
        self.known = lab_jobs.Known()
        self.last = Remembered()


class Desk:
    """The labs of whoever asks. One for each studio; `who` says whose."""

    def __init__(self, resources: Resources) -> None:
        self.resources = resources
        self._kept: _Kept = resources.extra.setdefault("labs", _Kept())

    @property
    def known(self) -> lab_jobs.Known:
        """The right values by parameters."""
        return self._kept.known

    def who(self, student: Any) -> str:
        """The id of the student: of the member, in a class; else the one that was typed; "" without any."""
        member = self.resources.member(parts.session())
        return member.student if member is not None else parts.text(student).strip()

    def owner(self) -> str:
        """Whose the checks are: a member's in a class, in whichever browser; else the session's."""
        member = self.resources.member(parts.session())
        return parts.session() if member is None else owner_of(member)

    def shelf(self, student: Any) -> Shelf:
        """Where the student's works are. UsageError without an id."""
        found = self.resources.shelf_of(parts.session())
        if found is not None:
            return found  # type: ignore[no-any-return]
        who = self.who(student)
        if not who:
            raise UsageError(_("Enter your id first."), code="bad-name")
        return FolderShelf(paths.data_dir() / "lab-work", who, self._kept.last)

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

    # -- what a student does -----------------------------------------------------------------------------------------------

    def save(self, name: Any, student: Any, task: str, value: Any) -> Saved:
        """Keeps an answer; returns what is said of it."""
        lab = self.lab(name)
        try:
            work = _work.change(self.shelf(student), lab, lambda w: _work.answer(w, lab, {task: value}))
        except RetrompiError as error:
            return Saved(wrong=str(error))
        return lab_page.saved_message(lab, work, task)

    def put(self, name: Any, student: Any, file: str, content: bytes) -> Saved:
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
            return Saved(wrong=str(error))
        return Saved(_("{file} is saved: {size} B").format(file=file, size=len(content)))

    def seal(self, name: Any, student: Any, step: int) -> dict[str, str]:
        """Seals the predictions of a step if all are there and readable; else says what is missing, by task."""
        from retrompi.labs import answers

        lab = self.lab(name)
        work = self.work(lab, student)
        given, wrong = work.given_answers(lab), {}
        all_ = lab_text.steps(lab, work)
        for task in all_[min(step, len(all_)) - 1].seals:
            if given[task.id].empty:
                wrong[task.id] = _("no prediction yet; a guess is as good as a reckoning")
                continue
            try:
                answers.value(task, given[task.id])
            except answers.UnreadableAnswer as error:
                wrong[task.id] = str(error)
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
        """Begins the job of a form that the student may see; returns its id. Its result and the files that it makes are kept."""
        lab, shelf = self.lab(name), self.shelf(student)
        work = shelf.open(lab)
        form = next((p.form for s in lab_text.steps(lab, work) for p in s.pieces if p.key == key and p.form is not None), None)
        if form is None:
            raise UsageError(_("Seal the predictions before it first."), code="sealed")

        def keep(state: JobState) -> None:
            if state.status == "done":
                with suppress(UsageError):  # too large: it is shown and not kept
                    shelf.keep(lab, Ran(key, form.line, dict(values), state.result))
            for file, content in (state.result.get("files") or {}).items() if state.status == "done" else ():
                made = bytes.fromhex(content)
                _work.change(shelf, lab, lambda w, n=file, c=made: _work.put(w, n, c))  # type: ignore[misc]

        return self.resources.jobs.submit(
            parts.session(), form.line[:80], lab_commands.run, self.resources.places[1], form.kind, dict(form.given), dict(values),
            dict(work.files), slot=f"labs-run {lab.name} {key}", client=parts.client(), then=keep,
        )

    def ran(self, told: Mapping[str, Any]) -> list[Component]:
        """The components of a form's result."""
        chart = timeline_frames.keep(self.resources, parts.session(), told["chart"]) if "chart" in told else ""
        return lab_page.form_result(told, chart)

    def mine(self, lab: Lab, student: Any, last: Last) -> lab_page.Mine:
        """What the student has found so far; ``last``: what the last check said."""
        return lab_page.Mine(last.row, self.shelf(student).ran(lab), self.ran)

    def open_result(self, name: Any, student: Any, key: str) -> list[Component]:
        """The kept result of a form; UsageError if there is none."""
        found = self.shelf(student).ran(self.lab(name)).get(key)
        if found is None:
            raise UsageError(_("This form has no result yet."), code="not-found")
        return self.ran(found.told)

    # -- checks --------------------------------------------------------------------------------------------------------------

    def ahead(self, lab: Lab, student: Any) -> None:
        """Computes the right values for a student's numbers in the background, before they are needed."""
        key = lab_jobs.key_of(lab, self.who(student))
        if not self.known.asks(key):
            return
        session = f"in advance {hashlib.sha256(key.encode()).hexdigest()}"  # its own: it takes no turn of the student's
        with suppress(UsageError):  # too many wait: the first check computes them
            self.resources.jobs.submit(
                session, lab.name, lab_jobs.expected_values, lab.name, self.who(student), self.resources.places[1],
                client="labs in advance",
                then=lambda state: self.known.put(key, state.result) if state.status == "done" else None,
            )

    def check(self, name: Any, student: Any) -> parts.Begun:
        """The job of a check: of the work as it is now, with its predictions sealed; its result is kept on the student's shelf."""
        lab, shelf = self.lab(name), self.shelf(student)
        done = _work.change(shelf, lab, lambda w: _work.seal(w, lab))
        return lab_jobs.check(shelf.ask(done), shelf, done, self.resources.places[1], self.known)

    def last(self, lab: Lab, student: Any) -> Last:
        """What the last check said."""
        return self.shelf(student).last(lab.name)

    def summary(self, last: Last) -> str:
        """The last check in a line."""
        row, told = last.row, []
        if row:
            told.append(_("{points} of {of} points").format(points=f"{row['points']:g}", of=f"{row['of']:g}"))
            if row["open"]:
                told.append(_("{points} open until marked").format(points=f"{row['open']:g}"))
            told.append(_("check {n}").format(n=row["checks"]))
        if last.error:
            told.append(_("a later check could not be graded: {error}").format(error=last.error))
        return "; ".join(told)

    def offered_labs(self) -> list[Lab]:
        """The labs to choose from: all, or those of the course."""
        from retrompi.labs.lab import labs

        shelf = self.resources.shelf_of(parts.session())
        return [lab for lab in labs() if shelf is None or shelf.offers(lab.name)]

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
            out[name] = Progress(done, of, "; ".join(x for x in (line, self.summary(shelf.last(name))) if x))
        return out

