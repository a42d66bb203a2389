"""The course's own pages: HTML written on the server, in the studio's style, without scripts."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar

from flask import Response, g, has_app_context, request
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from retrompi.base import translate
from retrompi.base.translate import _, ngettext
from retrompi.studio.jobs.resources import SessionMember

__all__ = ["ago", "field", "here", "message", "page", "style", "teaching", "utc", "when"]

F = TypeVar("F", bound=Callable[..., Any])
_HERE = Path(__file__).parent
_LOADING = threading.Lock()


def here(time: datetime) -> datetime:
    """A time in the zone of the course that is being served, else of this machine."""
    return time.astimezone(g.get("zone") if has_app_context() else None)


def when(time: datetime | None) -> str:
    """A time to the minute, with the zone it is told in (`here`); a dash for none."""
    return "–" if time is None else here(time).strftime("%Y-%m-%d %H:%M %Z")


def utc(time: datetime | None) -> str:
    """A time, UTC to the minute, as the commands write it; a dash for none."""
    return "–" if time is None else time.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def field(time: datetime | None) -> str:
    """A time as a field of a form has it."""
    return "" if time is None else here(time).strftime("%Y-%m-%dT%H:%M")


def ago(time: datetime | None) -> str:
    """How long ago, in one unit."""
    if time is None:
        return _("never")
    past = max(datetime.now(UTC) - time, timedelta())
    if past < timedelta(minutes=2):
        return _("now")
    if past < timedelta(hours=2):
        return _("{n} min ago").format(n=past // timedelta(minutes=1))
    if past < timedelta(days=2):
        return _("{n} h ago").format(n=past // timedelta(hours=1))
    return _("{n} days ago").format(n=past.days)


def role(name: str) -> str:
    """A member's role, in the reader's language."""
    return {"student": _("student"), "assistant": _("assistant"), "teacher": _("teacher")}.get(name, name)


def status(name: str | None) -> str:
    """The result of a check for a task, in a word."""
    told = {"right": _("right"), "sealed": _("sealed"), "open": _("to be marked"), "wrong": _("wrong"), "unreadable": _("cannot be read"),
            "missing": _("to do"), "waiting": _("waits for a prediction"), "changed": _("changed after it was sealed")}
    return told.get(name, name) if name else _("not checked")


def way(name: str) -> str:
    """By what a browser came in, in the reader's language."""
    told = {"code": _("code"), "link": _("link"), "class code": _("code of the class"), "learning platform": _("learning platform")}
    return told.get(name, name)


def without_numbers(text: str) -> str:
    """A question for all: each student has numbers of their own, so the numbers' names stand for them."""
    return re.sub(r"\{([a-z][a-z0-9_]*)(?::arg)?\}", r"[\1]", text)


@cache
def _environment() -> Environment:
    made = Environment(loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
                       lstrip_blocks=True)
    made.filters.update(when=when, ago=ago, field=field, points=lambda v: "–" if v is None else f"{v:g}", percent=lambda v: f"{v:.0%}")
    made.filters.update(role=role, status=status, unnumbered=without_numbers, way=way)
    made.globals.update(_=_, ngettext=ngettext)
    return made


@cache
def style() -> str:
    """The style sheet: the studio's own, and what the course's pages have beside it."""
    studio = _HERE.parent / "studio" / "assets"
    parts = [studio / "studio.css", studio / "cards.css", _HERE / "templates" / "course.css"]
    return "\n".join(p.read_text(encoding="utf-8") for p in parts)


def page(template: str, status: int = 200, **values: Any) -> Response:
    """A page from its template. ``member`` is whose browser asks, None for a stranger's."""
    with _LOADING:
        found = _environment().get_template(template)
    text = found.render(member=g.get("member"), here=request.path, lang=translate.language(), line=values.pop("line", ""), **values)
    return Response(text, status=status, mimetype="text/html")


def message(line: str, status: int = 200) -> Response:
    """A page of one line."""
    return page("message.html", status, line=line)


def teaching(function: F) -> F:
    """A view for teachers and assistants alone: for anybody else there is no such page."""

    @wraps(function)
    def view(*args: Any, **values: Any) -> Any:
        member: SessionMember | None = g.get("member")
        if member is None or not member.teaches:
            return message(_("This page is for the teachers of the course."), 403)
        return function(*args, **values)

    return view  # type: ignore[return-value]
