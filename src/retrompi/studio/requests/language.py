"""The language of a request: asked for in the address (``?lang=de``), of the member, chosen before (a cookie), or the browser's."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dash import html
from flask import Flask, Response, g, has_request_context, request

from retrompi.base import translate
from retrompi.base.translate import _

if TYPE_CHECKING:
    from dash.development.base_component import Component

    from retrompi.studio.jobs.resources import Resources

__all__ = ["KEY", "install", "requested_language", "switch"]

KEY = "lang"
"""The key of an address that sets the language; no page has a control of that name."""
_YEAR_S = 365 * 24 * 3600


def _cookie() -> str:
    """With the port, as all cookies of a studio: browsers share them between the ports of a host."""
    return f"retrompi-language-{urlsplit(f'//{request.host}').port or 80}"


def requested_language(resources: Resources) -> str:
    """The language of the current request."""
    asked = translate.among(request.args.get(KEY, "")[:40]) if request.args.get(KEY) else None
    if asked is not None:
        g.new_language = asked
        return asked
    kept = request.cookies.get(_cookie(), "")
    member = getattr(resources, "member", None)
    person = member(g.session) if callable(member) and g.get("session") else None
    for tag in (kept, getattr(person, "language", None) or ""):
        if tag in translate.languages():
            return tag
    for tag, quality in request.accept_languages:
        found = translate.among(tag) if quality > 0 else None
        if found is not None:
            return found
    return translate.ENGLISH


def install(server: Flask, resources: Resources) -> None:
    """Sets the language of every request that is answered; to be called before the guard, whose refusals come first."""

    @server.before_request
    def speak() -> None:
        translate.use(requested_language(resources))

    @server.teardown_request
    def forget(_error: BaseException | None) -> None:
        translate.use(translate.ENGLISH)  # the thread's next request, or whatever else it does, begins anew

    @server.after_request
    def keep(response: Response) -> Response:
        if g.get("new_language"):
            response.set_cookie(_cookie(), g.new_language, max_age=_YEAR_S, httponly=False, samesite="Lax", path="/")
        response.headers["Content-Language"] = translate.language()
        return response


def switch() -> Component:
    """The languages to choose from; assets/language.js keeps the page's state, without it the link still works."""
    now = translate.language() if has_request_context() else translate.ENGLISH
    links = [
        html.Li(html.A(code.upper(), href=f"?{KEY}={code}", lang=code, hrefLang=code, title=name,
                       className="language" + (" current" if code == now else ""),
                       **{"aria-label": name, **({"aria-current": "true"} if code == now else {})}))
        for code, name in translate.NAMES.items() if code in translate.languages()
    ]
    return html.Nav(html.Ul(links), id="studio-languages", className="languages", **{"aria-label": _("language")})
