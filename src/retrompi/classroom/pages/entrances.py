"""The addresses by which members come in and leave, and a member's own page: devices, codes, one's own data."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from flask import Blueprint, Response, g, redirect, request

from retrompi.base.errors import RetrompiError
from retrompi.base.translate import _
from retrompi.classroom.course import members
from retrompi.classroom.course.quota import usage_of
from retrompi.classroom.course.roster import Roster
from retrompi.classroom.course.settings import about, labs
from retrompi.classroom.grades.records import standings
from retrompi.classroom.grades.scores import visible_points
from retrompi.classroom.page import message, page, style
from retrompi.classroom.pages.admission import came_in
from retrompi.classroom.pages.own_data import archive, devices
from retrompi.classroom.works import marks
from retrompi.labs.lab import lab as lab_of
from retrompi.studio.requests.guard import cookie

if TYPE_CHECKING:
    from retrompi.classroom.pages.admission import ClassGuard

__all__ = ["doors"]


class _Doors:
    """The pages of whoever comes in, is in, or leaves."""

    def __init__(self, roster: Roster, guard: ClassGuard) -> None:
        self.roster, self.guard, self.db = roster, guard, roster.db

    def sheet(self) -> Response:
        return Response(style(), mimetype="text/css", headers={"Cache-Control": "private, max-age=3600"})

    def join(self, secret: str) -> Response:
        # Opening a link uses nothing up: mail programs and messengers look into links before people do.
        refused: list[str] = []
        entered: list[str] = []

        def right() -> bool:
            try:
                if request.method == "POST":
                    entered.append(members.join(self.db, secret))
                else:
                    members.of_link(self.db, secret)
            except RetrompiError as error:
                refused.append(str(error))
            return not refused

        if self.guard.try_secret(request.remote_addr or "", right, 60, random=True) is None:
            return message("too many wrong links from this address; wait a minute", 429)
        if refused:
            already = self.roster.member(g.session)
            return redirect("/", 303) if already is not None and request.method == "GET" else message(refused[0], 403)  # type: ignore[return-value]
        if entered:
            found = members.by_session(self.db, entered[0])
            return came_in(entered[0], "/course/teacher" if found is not None and found.teaches else "/labs")
        return page("join.html", course=about(self.db), who=members.of_link(self.db, secret))

    def _mine(self, **values: Any) -> Response:
        found = g.member
        standing = standings(self.db, found.id)
        rows, given = [], []
        for plan in labs(self.db):
            about_lab = lab_of(plan["lab"])
            one = standing.get((found.id, plan["lab"]))
            rows.append({**plan, "title": f"{about_lab.key} {_(about_lab.title)}", "of": about_lab.points,
                         "points": one.points if one is not None and one.checked is not None else None,
                         "open_points": one.open if one is not None else 0.0})
            if plan["released"] is not None:
                given += [{**m, "title": _(about_lab.title)} for m in marks.of_member(self.db, found.id, about_lab)]
            if one is not None and one.checked is not None:  # marks that are not shown yet are not shown in the sum either
                rows[-1]["points"], rows[-1]["open_points"] = visible_points(one, plan["released"])
        used_today = usage_of(self.db, found.id, datetime.now(UTC).date())
        return page("me.html", course=about(self.db), devices=devices(self.db, found.id, g.session), used=used_today, labs=rows,
                    marks=given, login=f"{request.host_url}login", **values)

    def home(self) -> Response:
        return redirect("/course/teacher" if g.member.teaches else "/course/me", 303)  # type: ignore[return-value]

    def of_lab(self, lab: str) -> Response:
        return redirect(f"/labs?lab={quote(lab[:80])}", 303)  # type: ignore[return-value]

    def me(self) -> Response:
        return self._mine()

    def code(self) -> Response:
        return self._mine(code=members.code_for(self.db, g.member.id))

    def out(self) -> Response:
        members.sign_out(self.db, g.member.id, None if request.form.get("all") else [g.session])
        self.roster.forget()
        answer = message(_("You are signed out on this device."))
        answer.delete_cookie(cookie("session"))
        return answer

    def data(self) -> Response:
        name = {"Content-Disposition": 'attachment; filename="my-course-data.zip"'}
        return Response(archive(self.db, g.member.id), mimetype="application/zip", headers=name)


def doors(roster: Roster, guard: ClassGuard) -> Blueprint:
    """The routes under /join, and those of /course/me."""
    made = Blueprint("doors", __name__)
    of = _Doors(roster, guard)
    routes: tuple[tuple[str, Callable[..., Response], list[str]], ...] = (
        ("/join/style.css", of.sheet, ["GET"]),
        ("/join/<secret>", of.join, ["GET", "POST"]),
        ("/course", of.home, ["GET"]),
        ("/labs/<lab>", of.of_lab, ["GET"]),
        ("/course/me", of.me, ["GET"]),
        ("/course/me/code", of.code, ["POST"]),
        ("/course/me/out", of.out, ["POST"]),
        ("/course/me/data.zip", of.data, ["GET"]),
    )
    for rule, view, methods in routes:
        made.add_url_rule(rule, view.__name__, view, methods=methods)
    return made
