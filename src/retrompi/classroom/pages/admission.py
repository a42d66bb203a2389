"""Access to a class's studio: members enter by the session that a link, a code or a learning platform gave their browser."""

from __future__ import annotations

from dataclasses import dataclass, field

from flask import Response, g, redirect, request

from retrompi.base.errors import RetrompiError
from retrompi.base.translate import _
from retrompi.classroom.course import members
from retrompi.classroom.course.roster import Roster
from retrompi.classroom.course.settings import about
from retrompi.classroom.page import message, page
from retrompi.studio.requests.guard import AddressRule, Guard, cookie, keep_session

__all__ = ["WAYS", "ClassGuard", "came_in"]

WAYS = (
    AddressRule("/join/", open=True),
    AddressRule("/lti/", open=True, foreign=True),
    AddressRule("/labs/"),
    AddressRule("/course/"),
)
_LASTS_S = 200 * 24 * 3600
"""How long a browser stays a member's: a term."""
_MOST_TRIES = 30
"""Wrong codes a minute from one address: a whole class may share one."""


@dataclass
class ClassGuard(Guard):
    """The rules of a class; ``roster`` knows its members."""

    roster: Roster = field(kw_only=True)

    def lets_in(self) -> bool:
        """Whether the request's browser is a member's."""
        session = request.cookies.get(cookie("session"), "")
        if not session or self.roster.member(session) is None:
            return False
        self.roster.saw(session)
        return True

    def client(self, session: str) -> str:
        """A member's browsers share their turns, whatever their addresses; a class behind one address does not share one."""
        found = self.roster.member(session)
        return f"member {found.id}" if found is not None else super().client(session)

    def login(self) -> Response:
        """The page for a code of another device, or the code of the class."""
        course = about(self.roster.db)
        if request.method != "POST":
            return page("login.html", course=course)
        session, line = "", ""
        given = {k: request.form.get(k, "")[:200] for k in ("code", "class", "student", "name")}

        def right() -> bool:
            nonlocal session, line
            try:
                if given["class"]:
                    session = members.enrol(self.roster.db, given["class"], given["student"], given["name"], course.settings.members)
                else:
                    session = members.join(self.roster.db, given["code"], kind="device")
            except RetrompiError as error:
                line = str(error)
            return bool(session)

        if self.try_secret(request.remote_addr or "", right, _MOST_TRIES, random=not given["class"]) is None:
            return message(_("too many wrong codes from this address; wait a minute"), 429)
        if not session:
            return page("login.html", 403, course=course, line=line, given=given)
        return came_in(session, "/")


def came_in(session: str, where: str) -> Response:
    """The browser gets the session of its member; a session that it had before is of no use to anybody who knows it."""
    g.new_session = False
    answer: Response = redirect(where, 303)  # type: ignore[assignment]
    keep_session(answer, session, _LASTS_S)
    return answer
