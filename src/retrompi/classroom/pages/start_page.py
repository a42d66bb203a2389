"""A page that starts a class: its name, labs, dates and students; then it shows the members' links. For this machine's browsers alone."""

from __future__ import annotations

import io
import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flask import Flask, Response, g, redirect, request

from retrompi.base import translate
from retrompi.base.csv_safe import write_rows
from retrompi.base.errors import RetrompiError, UsageError
from retrompi.base.translate import _
from retrompi.classroom.course import members
from retrompi.classroom.course import settings as course
from retrompi.classroom.course.class_list import Entry, entries
from retrompi.classroom.course.database import Database
from retrompi.classroom.page import message, page, style
from retrompi.labs.lab import labs

__all__ = ["CoursePlan", "StartPage", "asked_of", "make"]

_NAMES = ("127.0.0.1", "localhost", "[::1]")
_LONGEST = 400_000
"""Characters of a class list that is typed or pasted."""


@dataclass(frozen=True)
class CoursePlan:
    """The form's values from which a class is created. ``dates``: lab -> (opens, closes), as written."""

    name: str
    labs: tuple[str, ...]
    people: tuple[Entry, ...]
    dates: dict[str, tuple[str, str]]
    zone: str = ""
    code: str = ""


def asked_of(form: Any) -> CoursePlan:
    """What a form asks for. UsageError or InputError in one line for what is missing or cannot be taken."""
    name = form.get("name", "").strip()[:200]
    wanted = tuple(lab for lab in form.getlist("lab") if lab)
    if not wanted:
        raise UsageError(_("choose a lab at least"), code="missing-option")
    teacher = form.get("teacher", "").strip()[:200] or "teacher"
    text = form.get("students", "")[:_LONGEST].strip()
    people = entries(text) if text else []
    if not any(p.role == "teacher" for p in people):
        people = [Entry(teacher, role="teacher"), *people]
    dates = {lab: (form.get(f"opens-{lab}", "")[:40], form.get(f"closes-{lab}", "")[:40]) for lab in wanted}
    return CoursePlan(name, wanted, tuple(people), dates, form.get("zone", "").strip()[:60], form.get("code", "").strip()[:40])


def make(where: str | None, asked: CoursePlan) -> tuple[Database, dict[str, str]]:
    """The new course, and each student's secret of the first link; nothing is left of one that cannot be made. Raises UsageError or
    StoreError."""
    zone = course.zone_of(asked.zone) if asked.zone else None
    times = {lab: tuple(course.time_of(text, zone) for text in pair) for lab, pair in asked.dates.items()}
    db = Database.open(where, new=True)
    try:
        settings = course.Settings(zone=asked.zone)
        links = course.new(db, asked.name, asked.labs, asked.people, code=asked.code or None, settings=settings)
        for lab, (opens, closes) in times.items():
            course.dates(db, lab, opens=opens, closes=closes)
    except BaseException:
        db.discard()
        raise
    return db, links


class StartPage:
    """The page, served at ``address`` to who knows it. ``base`` is the beginning of the members' links. When a class has been made,
    ``made`` is set and ``db`` is its database; the page goes on showing the links until it is closed."""

    def __init__(self, where: str | None, base: Callable[[Database], str]) -> None:
        from waitress import create_server

        self.where, self.base = where, base
        self.made = threading.Event()
        self.db: Database | None = None
        self._rows: list[dict[str, Any]] = []
        self._making = threading.Lock()
        self._secret = secrets.token_urlsafe(24)
        self._server = create_server(self._app(), host="127.0.0.1", port=0, threads=4, ident=None, max_request_body_size=4 << 20,
                                     expose_tracebacks=False)
        self.address = f"http://127.0.0.1:{self._server.effective_port}/start/{self._secret}"

    def serve(self) -> None:
        """Serves the page beside whatever this process does, until it is `close`d."""
        threading.Thread(target=self._server.run, name="start of a class", daemon=True).start()

    def close(self) -> None:
        """Ends the page."""
        self._server.close()

    def _links(self, links: dict[str, str]) -> list[dict[str, Any]]:
        assert self.db is not None
        base = self.base(self.db)
        return [
            {"role": m["role"], "student": m["student"], "name": m["name"], "email": m["email"] or "",
             "link": f"{base}join/{links[m['student']]}"}
            for m in members.members(self.db) if m["student"] in links
        ]

    def _app(self) -> Flask:
        app = Flask(__name__, static_folder=None)
        here = f"/start/{self._secret}"

        @app.before_request
        def speak() -> Response | None:
            g.zone = None
            tags = (translate.among(tag) for tag, quality in request.accept_languages if quality > 0)
            translate.use(next((tag for tag in tags if tag is not None), translate.ENGLISH))
            # Another name for this machine is another site's, whose page would read this one.
            if request.host.rpartition(":")[0] not in _NAMES:
                return message(_("This page is for the browsers of this machine."), 403)
            return None

        @app.teardown_request
        def forget(_error: BaseException | None) -> None:
            translate.use(translate.ENGLISH)

        @app.get("/join/style.css")
        def sheet() -> Response:
            return Response(style(), mimetype="text/css")

        @app.get(here)
        def home() -> Response:
            return page("links.html", rows=self._rows, here_=here) if self.made.is_set() else self._form({}, "")

        @app.post(here)
        def start() -> Response:
            with self._making:
                if not self.made.is_set():
                    try:
                        self.db, links = make(self.where, asked_of(request.form))
                    except RetrompiError as error:
                        return self._form(request.form, str(error))
                    self._rows = self._links(links)
                    self.made.set()
            return redirect(here, 303)  # type: ignore[return-value]

        @app.get(f"{here}/links.csv")
        def table() -> Response:
            out = io.StringIO()
            write_rows(out, ["role", "student", "name", "email", "link"], self._rows)
            return Response(out.getvalue(), mimetype="text/csv", headers={"Content-Disposition": 'attachment; filename="links.csv"'})

        return app

    def _form(self, given: Any, line: str) -> Response:
        chosen: Sequence[str] = given.getlist("lab") if given else [one.name for one in labs()[:3]]
        return page("start.html", 400 if line else 200, line=line, given=given, chosen=chosen, labs=labs(), zones=course.zone_names())
