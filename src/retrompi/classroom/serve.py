"""The class server: the studio for the members of a course, with the course's own pages beside it."""

from __future__ import annotations

import importlib
import importlib.util
import ipaddress
import secrets
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from flask import Response, g

from retrompi.base.errors import RetrompiError, UsageError
from retrompi.base.translate import _
from retrompi.classroom.course import members
from retrompi.classroom.course.database import Database
from retrompi.classroom.course.quota import Quotas
from retrompi.classroom.course.roster import Roster
from retrompi.classroom.course.settings import Settings, about, change, file_of_runs
from retrompi.classroom.pages.admission import WAYS, ClassGuard, came_in
from retrompi.classroom.pages.entrances import doors
from retrompi.classroom.pages.teacher import teacher
from retrompi.classroom.works.owed_checks import Owed
from retrompi.classroom.works.prepare import Preparer
from retrompi.classroom.works.shelf import DatabaseShelf
from retrompi.studio.jobs.limits import Limits
from retrompi.studio.jobs.resources import SessionMember
from retrompi.studio.requests.guard import Guard
from retrompi.studio.requests.uploads import uploads_of
from retrompi.studio.serve import Studio, is_loopback, reachable

__all__ = ["ClassServer", "ServedCourse", "base_of", "checked_address"]

_EVERY_S = 15.0


def checked_address(text: str) -> str:
    """The address of a course as members see it, with a slash at its end. UsageError for what no browser would open."""
    parts = urlsplit(text.strip())
    try:
        good = parts.scheme in ("http", "https") and parts.hostname and parts.path in ("", "/") and not (parts.query or parts.fragment)
        port = parts.port
    except ValueError:
        good, port = False, None
    if not good or parts.username is not None:
        raise UsageError(f"'{text[:80]}' is no address of a course; write it as https://lab.example.org/", code="bad-address")
    host = f"[{parts.hostname}]" if ":" in str(parts.hostname) else parts.hostname
    return f"{parts.scheme}://{host}{'' if port is None else f':{port}'}/"


def base_of(settings: Settings, host: str, port: int) -> str:
    """The beginning of the links: the course's address, else that of this machine."""
    if settings.address:
        return settings.address
    shown = reachable(host)
    return f"http://{f'[{shown}]' if ':' in shown and not shown.startswith('[') else shown}:{port}/"


class ClassServer(Studio):
    """A course, served. Options as for `Studio`; ``address`` is the course's behind a proxy, kept for the links of later."""

    threads = 24

    def __init__(
        self, db: Database, *, host: str, port: int, store: str | None, names: Iterable[str] = (), limits: Limits | None = None,
        proxy: str | None = None,
    ) -> None:
        self.db = db
        self.course = about(db)
        self.roster = Roster(db)
        self.quotas = Quotas(db, self.roster.member, lambda: self.course.settings)
        self._ending = threading.Event()
        self._keeper: threading.Thread | None = None
        self._sender: Any = None
        named = set(names)
        if self.course.settings.address:
            named.add(str(urlsplit(self.course.settings.address).hostname))
        if proxy is not None:
            try:
                ipaddress.ip_address(proxy)
            except ValueError:
                raise UsageError(f"--proxy {proxy}: the address of the proxy is wanted, e.g. 127.0.0.1", code="bad-address") from None
            headers = {"x-forwarded-for", "x-forwarded-proto"}
            self.proxy = {"trusted_proxy": proxy, "trusted_proxy_count": 1, "trusted_proxy_headers": headers}  # type: ignore[misc]
        # Studio asks for a token where others are let in; here members' sessions let in, and the token is never given out.
        super().__init__(host=host, port=port, token=secrets.token_urlsafe(24), store=store or file_of_runs(db), names=named, limits=limits)

    def furnish(self) -> None:
        """Gives the resources their members, their shelves and quotas."""
        resources = self.resources
        self.preparer = Preparer(self.db, resources)
        self.owed = Owed(self.db, resources, self._shelf_of)
        resources.member = self.roster.member
        resources.shelf_of = self._shelf
        resources.more = self._more
        resources.jobs.account = self.quotas
        uploads_of(resources).account = self.quotas.upload

    def _shelf(self, session: str) -> DatabaseShelf | None:
        found = self.roster.member(session)
        return None if found is None else self._shelf_of(found)

    def _shelf_of(self, member: SessionMember) -> DatabaseShelf:
        return DatabaseShelf(self.db, member, self.preparer.prefer, self.owed.later)

    def _more(self, session: str) -> list[tuple[str, str]]:
        found = self.roster.member(session)
        if found is None:
            return []
        return [*([(_("Class"), "/course/teacher")] if found.teaches else []), (found.name, "/course/me")]

    def guard(self, names: frozenset[str]) -> Guard:
        """Members have access."""
        public = not is_loopback(self.host) or bool(self.course.settings.address)
        return ClassGuard(None, names, public=public, ways=WAYS, command="retrompi course serve", roster=self.roster)

    def add_routes(self, guarded: Guard) -> None:
        """The course's pages; who asks for them is known before."""
        assert isinstance(guarded, ClassGuard)
        server = self.app.server

        @server.before_request
        def whose() -> None:
            g.member = self.roster.member(g.session)
            g.zone = self.course.settings.tz

        server.url_map.strict_slashes = False
        server.register_blueprint(doors(self.roster, guarded))
        server.register_blueprint(teacher(self))
        if importlib.util.find_spec("retrompi.classroom.lti") is not None:
            lti: Any = importlib.import_module("retrompi.classroom.lti.lti_routes")
            lti.install(server, ServedCourse(self))

    @property
    def links(self) -> str:
        """The beginning of the members' links."""
        return base_of(self.course.settings, self.host, self.port)

    def settings(self, **values: Any) -> None:
        """Changes the course's settings while it is served."""
        self.course = change(self.db, **values)

    def run(self, ready: Any = None) -> None:
        """Serves until it is interrupted or closed."""
        self.owed.find()  # before anybody can ask for another check
        self._keeper = threading.Thread(target=self._keep, name="course", daemon=True)
        self._keeper.start()
        self.preparer.start()
        if importlib.util.find_spec("retrompi.classroom.lti") is not None:
            scores: Any = importlib.import_module("retrompi.classroom.lti.lti_scores")
            self._sender = scores.Sender(self.db.engine)
            self._sender.start()
        super().run(ready)

    def _keep(self) -> None:
        """Grades the checks that were left, writes what is counted in memory, and takes up changes made on the command line."""
        while True:
            with suppress(RetrompiError):
                self.owed.pay()
            if self._ending.wait(_EVERY_S):
                return
            self._flush()
            with suppress(RetrompiError):
                self.course = about(self.db)

    def _flush(self) -> None:
        for write in (self.quotas.flush, self.roster.flush, self.owed.record):
            with suppress(RetrompiError):  # locked for long, say: it is written the next time
                write()

    def close(self) -> None:
        """Ends the server; what was counted is kept."""
        self._ending.set()
        if hasattr(self, "preparer"):
            self.preparer.close()
        if self._sender is not None:
            self._sender.stop()
        super().close()
        self._flush()


class ServedCourse:
    """What the doors for learning platforms need of a course."""

    def __init__(self, server: ClassServer) -> None:
        self._server = server
        self.engine = server.db.engine
        self.course = 1

    @property
    def base_url(self) -> str:
        """The course's address as members see it, without a slash at its end."""
        return self._server.links.rstrip("/")

    def newcomer(self, name: str, email: str, role: str) -> int:
        """A new member; the id that draws the numbers is the address, else the name, with a number where that is taken."""
        told = email or name or "student"
        for number in range(1, 1000):
            try:
                return members.add(self._server.db, told if number == 1 else f"{told} {number}", name=name, role=role, email=email)
            except UsageError as error:
                if error.code != "exists-already":
                    raise
        raise UsageError("too many members of one name", code="bad-name")

    def rename_member(self, member: int, name: str, email: str, role: str) -> None:
        """A later launch tells another name, address or role."""
        members.rename(self._server.db, member, name=name, email=email, role=role)
        self._server.roster.forget()

    def admit(self, member: int, path: str) -> Response:
        """Lets the browser in as this member."""
        return came_in(members.enter(self._server.db, member, "learning platform"), path)
