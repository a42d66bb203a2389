"""Timelines in a frame of a page: documents of their own (`retrompi.render.timeline.timeline_page`), each for the session whose job made
it.

Such a document brings its script with it, which the studio's pages may not; so it is shown apart, in a sandbox without an origin.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from flask import Flask, Response, g

from retrompi.studio.requests.guard import AddressRule

if TYPE_CHECKING:
    from retrompi.studio.jobs.resources import Resources

__all__ = ["WAY", "install", "keep"]

WAY = AddressRule("/replay/chart/", foreign=True)
MOST = 40
"""Charts that are kept, the newest; an older one is made again when its page is."""
_POLICY = "; ".join(
    [
        "default-src 'none'", "script-src 'unsafe-inline'", "style-src 'unsafe-inline'", "img-src data:", "frame-ancestors 'self'",
        "form-action 'none'", "base-uri 'none'", "sandbox allow-scripts",
    ]
)


def _kept_charts(resources: Resources) -> dict[str, tuple[str, str]]:
    kept: dict[str, tuple[str, str]] = resources.extra.setdefault("charts", {})
    return kept


def keep(resources: Resources, session: str, document: str) -> str:
    """The address of a chart, for this session alone."""
    kept = _kept_charts(resources)
    name = secrets.token_urlsafe(16)
    kept[name] = session, document
    for oldest in list(kept)[:-MOST]:
        kept.pop(oldest, None)
    return f"{WAY.prefix}{name}"


def install(server: Flask, resources: Resources) -> None:
    """Serves the charts that are kept."""

    @server.get(f"{WAY.prefix}<name>")
    def chart(name: str) -> Response:
        session, document = _kept_charts(resources).get(name, ("", ""))
        if not document or session != g.session:
            return Response("this chart is gone; load its page again\n", status=404, mimetype="text/plain")
        answer = Response(document, mimetype="text/html")
        answer.headers["Content-Security-Policy"] = _POLICY
        answer.headers["X-Frame-Options"] = "SAMEORIGIN"
        answer.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        return answer
