"""The addresses under /lti/ of a course: login, launch, choice of a lab, keys, and the configuration for Canvas.

The studio is never shown in a platform's frame. A launch within one answers a page with a link that opens the lab in a new window,
where cookies are the course's own; that page and the choice of a lab may be framed by the platform alone.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from functools import wraps
from html import escape
from urllib.parse import urlsplit

from flask import Flask, Response, jsonify, redirect, request

from retrompi.classroom.lti import lti_launch, lti_platforms
from retrompi.classroom.lti.lti_launch import LtiCourse
from retrompi.classroom.lti.lti_platforms import LearningPlatform
from retrompi.classroom.lti.lti_tokens import LtiError

__all__ = ["install"]

COOKIE = "retrompi-lti"
LARGEST_B = 64 << 10
"""Size of a post, bytes: a message of a platform has a few kB."""
_SUBMIT = "document.forms[0].submit()"
_STYLE = ("body{font:1rem/1.5 system-ui,sans-serif;margin:2rem;max-width:44rem;color-scheme:light dark}"
          "a.go,button{display:inline-block;padding:.6rem 1rem;border:1px solid;border-radius:.4rem;font:inherit}"
          "label{display:block;padding:.3rem 0}")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if re.fullmatch(r"[A-Za-z0-9.:\[\]-]+", parts.netloc) else "'none'"


def _framers(platform: LearningPlatform, *pages: object) -> str:
    """Who may frame a page: the platform, whose courses may have another host than its issuer, known from pages that it has named."""
    found = {_origin(url) for url in (platform.issuer, platform.auth_url, *pages) if isinstance(url, str)}
    return " ".join(sorted(found - {"'none'"}))


def _page(title: str, body: str, status: int = 200, *, frames: str = "*", post_to: str = "'none'") -> Response:
    """A page that ``frames`` may frame (any, where there is nothing on it to be misused), and whose forms go only to ``post_to``."""
    policy = (f"default-src 'none'; style-src {_hash(_STYLE)}; script-src {_hash(_SUBMIT)}; form-action {post_to}; base-uri 'none'; "
              f"frame-ancestors {frames}")
    text = (f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, '
            f'initial-scale=1"><title>{escape(title)}</title><style>{_STYLE}</style></head><body><main><h1>{escape(title)}</h1>'
            f"{body}</main></body></html>")
    headers = {"Content-Security-Policy": policy, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
               "X-Content-Type-Options": "nosniff"}
    return Response(text, status, headers, mimetype="text/html")


def _refusal_as_page(function: Callable[[_Addresses], Response]) -> Callable[[_Addresses], Response]:
    """What is refused is one line on a page."""

    @wraps(function)
    def answer(addresses: _Addresses) -> Response:
        try:
            return function(addresses)
        except LtiError as error:
            return _page("This did not work", f"<p>{escape(str(error))}</p>", 403)
        except ImportError:
            said = "LTI needs further packages on the course's machine: pip install 'retrompi[lti]'"
            return _page("This did not work", f"<p>{escape(said)}</p>", 501)

    return answer


def _request_values() -> dict[str, str]:
    if (request.content_length or 0) > LARGEST_B:
        raise LtiError("more was posted than a message of LTI has")
    return {**request.args.to_dict(), **request.form.to_dict()}


class _Addresses:
    """What the addresses answer for a course."""

    def __init__(self, hall: LtiCourse) -> None:
        self.hall = hall

    def _sent_on(self, asked: dict[str, str]) -> Response:
        begun = lti_launch.begin(self.hall, asked, request.cookies.get(COOKIE, ""))
        answer: Response = redirect(begun.url, 302)  # type: ignore[assignment]
        # Sent with a post from another site, in a frame too; each site that frames us has a cookie of its own.
        answer.set_cookie(COOKIE, begun.browser, max_age=1200, httponly=True, secure=True, samesite="None", partitioned=True, path="/lti/")
        answer.headers["Cache-Control"] = "no-store"
        return answer

    @_refusal_as_page
    def login(self) -> Response:
        return self._sent_on(_request_values())

    @_refusal_as_page
    def again(self) -> Response:
        return self._sent_on(lti_launch.again(self.hall, request.args.get("state", "")[:200]))

    @_refusal_as_page
    def launch(self) -> Response:
        told = _request_values()
        state, token, browser = told.get("state", ""), told.get("id_token", ""), request.cookies.get(COOKIE, "")
        if told.get("error"):
            raise LtiError(f"the platform refuses: {told['error'][:80]} {told.get('error_description', '')[:200]}")
        if not state or not token:
            raise LtiError("this page is opened by a link in a course of a learning platform")
        if not browser:
            lti_launch.again(self.hall, state)
            here = f"/lti/again?state={escape(state, quote=True)}"
            return _page("One more step", "<p>This browser keeps no cookies of a page within another one.</p>"
                         f'<p><a class="go" target="_blank" rel="noopener" href="{here}">Open in a new window</a></p>')
        launched = lti_launch.launch(self.hall, state[:200], token, browser)
        if launched.member is None:
            return _choose(self.hall, launched)
        if request.headers.get("Sec-Fetch-Dest", "document") == "document":
            return self.hall.admit(launched.member, launched.path)
        way = lti_launch.ticket(self.hall.engine, "enter", {"member": launched.member, "path": launched.path})
        return _page("Your lab", "<p>The lab opens in a window of its own; your score comes back to this course.</p>"
                     f'<p><a class="go" target="_blank" rel="noopener" href="/lti/enter?ticket={way}">Open the lab</a></p>',
                     frames=_framers(launched.platform, launched.settings.get("return")))

    @_refusal_as_page
    def enter(self) -> Response:
        data = lti_launch.redeem_ticket(self.hall.engine, "enter", request.args.get("ticket", "")[:200])
        return self.hall.admit(int(data["member"]), str(data["path"]))

    @_refusal_as_page
    def choose(self) -> Response:
        told = _request_values()
        data = lti_launch.redeem_ticket(self.hall.engine, "choose", told.get("ticket", "")[:200])
        url, message = lti_launch.choose_lab(self.hall, data, told.get("lab", "")[:80])
        platform = next(p for p in lti_platforms.platforms(self.hall.engine) if p.id == data["platform"])
        body = (f'<form method="post" action="{escape(url, quote=True)}"><input type="hidden" name="JWT" value="{escape(message)}">'
                f"<button>Back to the course</button></form><script>{_SUBMIT}</script>")
        return _page("Chosen", body, frames=_framers(platform, url), post_to=_origin(url))

    @_refusal_as_page
    def keys(self) -> Response:
        return jsonify(lti_platforms.public_keys(self.hall.engine))

    def canvas(self) -> Response:
        return jsonify(lti_platforms.canvas_config(self.hall.base_url))


def _choose(hall: LtiCourse, launched: lti_launch.Launched) -> Response:
    """The page on which a teacher chooses a lab for a link."""
    from retrompi.labs.lab import labs

    way = lti_launch.ticket(hall.engine, "choose", launched.settings)
    rows = "".join(
        f'<label><input type="radio" name="lab" value="{escape(x.name)}" required> Lab {escape(x.key)}: {escape(x.title)} '
        f"<small>({x.minutes} minutes, {x.points:g} points)</small></label>"
        for x in labs()
    )
    body = (f'<form method="post" action="/lti/choose"><input type="hidden" name="ticket" value="{way}">'
            f"<fieldset><legend>Which lab does the link lead to?</legend>{rows}</fieldset>"
            "<p><button>Choose</button></p></form>")
    return _page("Choose a lab", body, frames=_framers(launched.platform, launched.settings["return"]), post_to="'self'")


def install(server: Flask, hall: LtiCourse) -> None:
    """Adds the addresses to the course's server."""
    at = _Addresses(hall)
    for name, function, methods in (
        ("login", at.login, ["GET", "POST"]), ("again", at.again, ["GET"]), ("launch", at.launch, ["GET", "POST"]),
        ("enter", at.enter, ["GET"]), ("choose", at.choose, ["POST"]), ("keys", at.keys, ["GET"]), ("canvas.json", at.canvas, ["GET"]),
    ):
        server.add_url_rule(f"/lti/{name}", f"lti-{name.partition('.')[0]}", function, methods=methods)
