"""The teacher's pages: who is where, what the class predicted and got wrong, marks, members, dates."""

from __future__ import annotations

import io
from collections.abc import Callable
from threading import Lock
from typing import Any, Protocol
from urllib.parse import quote

from flask import Blueprint, Response, g, redirect, request

from retrompi.base.csv_safe import write_rows
from retrompi.base.errors import RetrompiError, UsageError
from retrompi.base.translate import _
from retrompi.classroom.course import members
from retrompi.classroom.course import settings as course
from retrompi.classroom.course.database import Database
from retrompi.classroom.course.roster import Roster
from retrompi.classroom.grades import records
from retrompi.classroom.page import message, page, teaching
from retrompi.classroom.pages.own_data import devices
from retrompi.classroom.works import answers, marks, predictions, similar
from retrompi.classroom.works.prepare import SESSION, Preparer
from retrompi.labs.lab import Lab
from retrompi.labs.lab import lab as lab_of
from retrompi.studio.jobs.resources import Resources
from retrompi.studio.labs import slides

__all__ = ["teacher"]

HOME = "/course/teacher"
_COMPARING_S = 60.0
"""How long a page waits for the comparison of a class's works."""


class Served(Protocol):
    """The interface of the server that these pages use (`retrompi.classroom.serve.ClassServer`)."""

    db: Database
    course: course.CourseInfo
    roster: Roster
    preparer: Preparer
    resources: Resources

    @property
    def links(self) -> str:
        """The beginning of the members' links."""
        ...

    def settings(self, **values: Any) -> None:
        """Changes the course's settings while it is served."""
        ...


def _may_change() -> None:
    """UsageError for an assistant, who sees and marks but does not change the course."""
    if g.member.role != "teacher":
        raise UsageError(_("only a teacher of the course may change this"), code="not-allowed")


def _back(where: str) -> Response:
    return redirect(where, 303)  # type: ignore[return-value]


def _refusal(error: RetrompiError) -> Response:
    return message(str(error), 404 if error.code in ("gone", "unknown-lab", "unknown-task") else 400)


def _points(text: str) -> float | None:
    """Points of a form; None where nothing is given. UsageError otherwise."""
    if not text.strip():
        return None
    try:
        return float(text.strip().replace(",", "."))
    except ValueError:
        raise UsageError(_("'{text}' is no number of points").format(text=text[:20]), code="bad-value") from None


class _TeacherPages:
    """The pages of a course, for its teachers and assistants."""

    def __init__(self, server: Served) -> None:
        self.server = server
        self.db = server.db
        self.decks: dict[str, str] = {}
        self.making = Lock()

    def _people(self) -> list[dict[str, Any]]:
        recent = self.server.roster.last_seen()
        return [{**row, "seen": recent.get(row["id"], row["seen"])} for row in members.members(self.db)]

    def _find_lab(self, lab: str) -> Lab:
        return lab_of(course.plan(self.db, lab[:80])["lab"])

    def _whom(self, member_id: int) -> dict[str, Any]:
        found = next((row for row in self._people() if row["id"] == member_id), None)
        if found is None:
            raise UsageError(_("there is no such member"), code="gone")
        return found

    def _overview(self, **values: Any) -> Response:
        plans = course.labs(self.db)
        rows = self._people()
        found = records.standings(self.db)
        return page(
            "teacher.html", course=self.server.course, labs=[{**p, "about": lab_of(p["lab"])} for p in plans], found=found,
            students=[r for r in rows if r["role"] == "student"], staff=[r for r in rows if r["role"] != "student"], base=self.server.links,
            zones=course.zone_names(),
            **values,
        )

    def home(self) -> Response:
        return self._overview()

    def of_lab(self, lab: str) -> Response:
        found = self._find_lab(lab)
        plan = course.plan(self.db, found.name)
        rows = predictions.sealed_predictions(self.db, found)
        shown = []
        for task in found.predictions:
            right: dict[str, Any] | None = None
            if task.id in plan["revealed"]:
                known = {student: self.server.preparer.right(found.name, student) for student, _texts in rows}
                right = {s: r[task.of] for s, r in known.items() if r and task.of in r}
            shown.append(predictions.distribution(task, rows, right))
        return page("lab.html", lab=found, plan=plan, predictions=shown, statistics=records.statistics(self.db, found), students=len(rows),
                    mistakes=records.mistakes(self.db, found), open_tasks=marks.open_tasks(found), slides=slides.count(found))

    def slides_of(self, lab: str) -> Response:
        found = self._find_lab(lab)
        with self.making:
            # Once in the server's life: simulating their figures takes seconds.
            if found.name not in self.decks:
                self.decks[found.name] = slides.deck(found, self.server.resources.store)
        head = {"Content-Disposition": f'attachment; filename="slides-{found.key}.html"'}
        return Response(self.decks[found.name], mimetype="text/html", headers=head)

    def change_lab(self, lab: str, what: str) -> Response:
        _may_change()
        found = self._find_lab(lab)
        if what == "dates":
            times = {name: course.time_of(request.form.get(name, "")[:40], self.server.course.settings.tz) for name in ("opens", "closes")}
            course.dates(self.db, found.name, **times)
            return _back(f"{HOME}#labs")
        if what == "release":
            marks.release(self.db, found.name, request.form.get("yes") == "1")
            return _back(f"{HOME}#labs")
        if what == "reveal":
            course.reveal(self.db, found.name, request.form.get("task", "")[:80], request.form.get("yes") == "1")
            return _back(f"{HOME}/lab/{found.name}#{quote(request.form.get('task', '')[:80])}")
        raise UsageError(_("there is no such page"), code="gone")

    def marking(self, lab: str, task: str) -> Response:
        found = self._find_lab(lab)
        asked = found.task(task[:80])
        anonymous = self.server.course.settings.anonymous
        sheets = marks.sheets(self.db, found, asked, anonymous=anonymous)
        return page("marks.html", lab=found, task=asked, sheets=sheets, anonymous=anonymous,
                    open_tasks=marks.open_tasks(found), released=course.plan(self.db, found.name)["released"])

    def mark(self, lab: str, task: str, tag: str) -> Response:
        found = self._find_lab(lab)
        asked = found.task(task[:80])
        sheet = next((s for s in marks.sheets(self.db, found, asked) if s.tag == tag), None)
        if sheet is None:
            raise UsageError(_("there is no such answer"), code="gone")
        given = {}
        for number, one in enumerate(marks.criteria(asked)):
            comment = request.form.get(f"comment-{number}", "").strip() if one.name else request.form.get("comment", "").strip()
            given[one.name] = marks.GivenMark(_points(request.form.get(f"points-{number}", "")), comment)
        if marks.WHOLE not in given:
            given[marks.WHOLE] = marks.GivenMark(None, request.form.get("comment", "").strip())
        marks.give(self.db, found, asked, sheet.member_id, given, g.member.id)
        return _back(f"{HOME}/marks/{found.name}/{asked.id}#{sheet.tag}")

    def _student_page(self, member_id: int, **values: Any) -> Response:
        person = self._whom(member_id)
        found = records.standings(self.db)
        rows = [{"plan": p, "about": lab_of(p["lab"]), "standing": found.get((member_id, p["lab"]))} for p in course.labs(self.db)]
        return page("student.html", course=self.server.course, person=person, labs=rows, devices=devices(self.db, member_id), **values)

    def student(self, member_id: int) -> Response:
        return self._student_page(member_id)

    def answers_of(self, member_id: int, lab: str) -> Response:
        person, found = self._whom(member_id), self._find_lab(lab)
        rows = answers.answers(self.db, found, member_id, self.server.preparer.right(found.name, person["student"]))
        return page("answers.html", person=person, lab=found, rows=rows, checks=answers.checks(self.db, found, member_id),
                    given=marks.given_to(self.db, member_id, found))

    def alike(self, lab: str) -> Response:
        found = self._find_lab(lab)
        works = similar.works(self.db, found)
        known = self.server.preparer.known_values(found.name, (student for _id, student, _work in works))
        jobs, title = self.server.resources.jobs, _("comparing the works")
        job = jobs.submit(SESSION, title, similar.compare_works, found.name, works, known, self.server.resources.places[1],
                          client=f"alike {found.name}")
        state = jobs.wait(job, SESSION, _COMPARING_S)
        if state.status != "done":
            return message(_("The works could not be compared in time; try again in a minute."), 503)
        names, told = {row["id"]: row for row in self._people()}, state.result
        left_out = [names[one]["name"] for one in told["left_out"]]
        return page("alike.html", lab=found, names=names, pairs=told["pairs"], compared=told["compared"], left_out=left_out)

    def change_student(self, member_id: int, what: str) -> Response:
        _may_change()
        person = self._whom(member_id)
        if what == "link":
            return self._student_page(member_id, link=f"{self.server.links}join/{members.link_for(self.db, member_id)}")
        if what == "out":
            members.sign_out(self.db, member_id)
            self.server.roster.forget()
            return self._student_page(member_id)
        if what == "remove":
            if request.form.get("sure", "").strip() != person["student"]:
                return self._student_page(member_id, line=_("Not deleted: the id was not typed as it stands here."))
            if member_id == g.member.id:
                return self._student_page(member_id, line=_("Not deleted: that is yourself."))
            members.remove(self.db, member_id)
            self.server.roster.forget()
            return _back(HOME)
        raise UsageError(_("there is no such page"), code="gone")

    def add(self) -> Response:
        _may_change()
        given = {k: request.form.get(k, "").strip()[:200] for k in ("student", "name", "role")}
        try:
            found = members.add(self.db, given["student"], name=given["name"], role=given["role"] or "student")
        except RetrompiError as error:
            return self._overview(line=str(error))
        return self._student_page(found, link=f"{self.server.links}join/{members.link_for(self.db, found)}")

    def settings(self) -> Response:
        _may_change()
        code, zone = (request.form.get(name, "").strip()[:60] for name in ("code", "zone"))
        try:
            self.server.settings(code=code[:40], anonymous=request.form.get("anonymous") == "1", zone=zone)
        except UsageError as error:
            return self._overview(line=str(error))
        return _back(f"{HOME}#settings")

    def grades(self) -> Response:
        rows = records.grades(self.db)
        out = io.StringIO()
        write_rows(out, list(rows[0]) if rows else ["student"], rows)
        head = {"Content-Disposition": 'attachment; filename="grades.csv"'}
        return Response(out.getvalue(), mimetype="text/csv", headers=head)


def teacher(server: Served) -> Blueprint:
    """The routes under /course/teacher, all of them for teachers and assistants alone."""
    pages = _TeacherPages(server)
    routes: tuple[tuple[str, str, Callable[..., Response]], ...] = (
        ("GET", "", pages.home),
        ("GET", "/lab/<lab>", pages.of_lab),
        ("GET", "/lab/<lab>/slides.html", pages.slides_of),
        ("POST", "/lab/<lab>/<what>", pages.change_lab),
        ("GET", "/marks/<lab>/<task>", pages.marking),
        ("POST", "/marks/<lab>/<task>/<tag>", pages.mark),
        ("GET", "/student/<int:member_id>", pages.student),
        ("GET", "/student/<int:member_id>/<lab>", pages.answers_of),
        ("GET", "/alike/<lab>", pages.alike),
        ("POST", "/student/<int:member_id>/<what>", pages.change_student),
        ("POST", "/add", pages.add),
        ("POST", "/settings", pages.settings),
        ("GET", "/grades.csv", pages.grades),
    )
    made = Blueprint("teacher", __name__, url_prefix=HOME)
    made.register_error_handler(RetrompiError, _refusal)
    for method, rule, view in routes:
        made.add_url_rule(rule, view.__name__, teaching(view), methods=[method])
    return made
