"""The teacher's pages: who is where, what the class predicted and got wrong, marks, members, dates."""

from __future__ import annotations

import io
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


def teacher(server: Served) -> Blueprint:
    """The routes under /course/teacher."""
    made = Blueprint("teacher", __name__, url_prefix=HOME)
    db = server.db
    decks: dict[str, str] = {}
    making = Lock()

    def people() -> list[dict[str, Any]]:
        recent = server.roster.last_seen()
        return [{**row, "seen": recent.get(row["id"], row["seen"])} for row in members.members(db)]

    def find_lab(lab: str) -> Lab:
        return lab_of(course.plan(db, lab[:80])["lab"])

    def whom(member_id: int) -> dict[str, Any]:
        found = next((row for row in people() if row["id"] == member_id), None)
        if found is None:
            raise UsageError(_("there is no such member"), code="gone")
        return found

    def overview(**values: Any) -> Response:
        plans = course.labs(db)
        rows = people()
        found = records.standings(db)
        return page(
            "teacher.html", course=server.course, labs=[{**p, "about": lab_of(p["lab"])} for p in plans], found=found,
            students=[r for r in rows if r["role"] == "student"], staff=[r for r in rows if r["role"] != "student"], base=server.links,
            zones=course.zone_names(),
            **values,
        )

    @made.errorhandler(RetrompiError)
    def refusal(error: RetrompiError) -> Response:
        return message(str(error), 404 if error.code in ("gone", "unknown-lab", "unknown-task") else 400)

    @made.get("")
    @teaching
    def home() -> Response:
        return overview()

    @made.get("/lab/<lab>")
    @teaching
    def of_lab(lab: str) -> Response:
        found = find_lab(lab)
        plan = course.plan(db, found.name)
        rows = predictions.sealed_predictions(db, found)
        shown = []
        for task in found.predictions:
            right: dict[str, Any] | None = None
            if task.id in plan["revealed"]:
                known = {student: server.preparer.right(found.name, student) for student, _texts in rows}
                right = {s: r[task.of] for s, r in known.items() if r and task.of in r}
            shown.append(predictions.distribution(task, rows, right))
        return page("lab.html", lab=found, plan=plan, predictions=shown, statistics=records.statistics(db, found), students=len(rows),
                    mistakes=records.mistakes(db, found), open_tasks=marks.open_tasks(found), slides=slides.count(found))

    @made.get("/lab/<lab>/slides.html")
    @teaching
    def slides_of(lab: str) -> Response:
        found = find_lab(lab)
        with making:
            # Once in the server's life: simulating their figures takes seconds.
            if found.name not in decks:
                decks[found.name] = slides.deck(found, server.resources.store)
        head = {"Content-Disposition": f'attachment; filename="slides-{found.key}.html"'}
        return Response(decks[found.name], mimetype="text/html", headers=head)

    @made.post("/lab/<lab>/<what>")
    @teaching
    def change_lab(lab: str, what: str) -> Response:
        _may_change()
        found = find_lab(lab)
        if what == "dates":
            times = {name: course.time_of(request.form.get(name, "")[:40], server.course.settings.tz) for name in ("opens", "closes")}
            course.dates(db, found.name, **times)
            return _back(f"{HOME}#labs")
        if what == "release":
            marks.release(db, found.name, request.form.get("yes") == "1")
            return _back(f"{HOME}#labs")
        if what == "reveal":
            course.reveal(db, found.name, request.form.get("task", "")[:80], request.form.get("yes") == "1")
            return _back(f"{HOME}/lab/{found.name}#{quote(request.form.get('task', '')[:80])}")
        raise UsageError(_("there is no such page"), code="gone")

    @made.get("/marks/<lab>/<task>")
    @teaching
    def marking(lab: str, task: str) -> Response:
        found = find_lab(lab)
        asked = found.task(task[:80])
        anonymous = server.course.settings.anonymous
        sheets = marks.sheets(db, found, asked, anonymous=anonymous)
        return page("marks.html", lab=found, task=asked, sheets=sheets, anonymous=anonymous,
                    open_tasks=marks.open_tasks(found), released=course.plan(db, found.name)["released"])

    @made.post("/marks/<lab>/<task>/<tag>")
    @teaching
    def mark(lab: str, task: str, tag: str) -> Response:
        found = find_lab(lab)
        asked = found.task(task[:80])
        sheet = next((s for s in marks.sheets(db, found, asked) if s.tag == tag), None)
        if sheet is None:
            raise UsageError(_("there is no such answer"), code="gone")
        given = {}
        for number, one in enumerate(marks.criteria(asked)):
            comment = request.form.get(f"comment-{number}", "").strip() if one.name else request.form.get("comment", "").strip()
            given[one.name] = marks.GivenMark(_points(request.form.get(f"points-{number}", "")), comment)
        if marks.WHOLE not in given:
            given[marks.WHOLE] = marks.GivenMark(None, request.form.get("comment", "").strip())
        marks.give(db, found, asked, sheet.member_id, given, g.member.id)
        return _back(f"{HOME}/marks/{found.name}/{asked.id}#{sheet.tag}")

    def student_page(member_id: int, **values: Any) -> Response:
        person = whom(member_id)
        found = records.standings(db)
        rows = [{"plan": p, "about": lab_of(p["lab"]), "standing": found.get((member_id, p["lab"]))} for p in course.labs(db)]
        return page("student.html", course=server.course, person=person, labs=rows, devices=devices(db, member_id), **values)

    @made.get("/student/<int:member_id>")
    @teaching
    def student(member_id: int) -> Response:
        return student_page(member_id)

    @made.get("/student/<int:member_id>/<lab>")
    @teaching
    def answers_of(member_id: int, lab: str) -> Response:
        person, found = whom(member_id), find_lab(lab)
        rows = answers.answers(db, found, member_id, server.preparer.right(found.name, person["student"]))
        return page("answers.html", person=person, lab=found, rows=rows, checks=answers.checks(db, found, member_id),
                    given=marks.given_to(db, member_id, found))

    @made.get("/alike/<lab>")
    @teaching
    def alike(lab: str) -> Response:
        found = find_lab(lab)
        works = similar.works(db, found)
        known = server.preparer.known_values(found.name, (student for _id, student, _work in works))
        jobs, title = server.resources.jobs, _("comparing the works")
        job = jobs.submit(SESSION, title, similar.compare_works, found.name, works, known, server.resources.places[1],
                          client=f"alike {found.name}")
        state = jobs.wait(job, SESSION, _COMPARING_S)
        if state.status != "done":
            return message(_("The works could not be compared in time; try again in a minute."), 503)
        names, told = {row["id"]: row for row in people()}, state.result
        left_out = [names[one]["name"] for one in told["left_out"]]
        return page("alike.html", lab=found, names=names, pairs=told["pairs"], compared=told["compared"], left_out=left_out)

    @made.post("/student/<int:member_id>/<what>")
    @teaching
    def change_student(member_id: int, what: str) -> Response:
        _may_change()
        person = whom(member_id)
        if what == "link":
            return student_page(member_id, link=f"{server.links}join/{members.link_for(db, member_id)}")
        if what == "out":
            members.sign_out(db, member_id)
            server.roster.forget()
            return student_page(member_id)
        if what == "remove":
            if request.form.get("sure", "").strip() != person["student"]:
                return student_page(member_id, line=_("Not deleted: the id was not typed as it stands here."))
            if member_id == g.member.id:
                return student_page(member_id, line=_("Not deleted: that is yourself."))
            members.remove(db, member_id)
            server.roster.forget()
            return _back(HOME)
        raise UsageError(_("there is no such page"), code="gone")

    @made.post("/add")
    @teaching
    def add() -> Response:
        _may_change()
        given = {k: request.form.get(k, "").strip()[:200] for k in ("student", "name", "role")}
        try:
            found = members.add(db, given["student"], name=given["name"], role=given["role"] or "student")
        except RetrompiError as error:
            return overview(line=str(error))
        return student_page(found, link=f"{server.links}join/{members.link_for(db, found)}")

    @made.post("/settings")
    @teaching
    def settings() -> Response:
        _may_change()
        code, zone = (request.form.get(name, "").strip()[:60] for name in ("code", "zone"))
        try:
            server.settings(code=code[:40], anonymous=request.form.get("anonymous") == "1", zone=zone)
        except UsageError as error:
            return overview(line=str(error))
        return _back(f"{HOME}#settings")

    @made.get("/grades.csv")
    @teaching
    def grades() -> Response:
        rows = records.grades(db)
        out = io.StringIO()
        write_rows(out, list(rows[0]) if rows else ["student"], rows)
        head = {"Content-Disposition": 'attachment; filename="grades.csv"'}
        return Response(out.getvalue(), mimetype="text/csv", headers=head)

    return made


def _points(text: str) -> float | None:
    """Points of a form; None where nothing is given. UsageError otherwise."""
    if not text.strip():
        return None
    try:
        return float(text.strip().replace(",", "."))
    except ValueError:
        raise UsageError(_("'{text}' is no number of points").format(text=text[:20]), code="bad-value") from None
