"""Checks of every request, and headers of every response: hosts, origins, tokens, sizes, routes."""

from __future__ import annotations

import gzip
import hashlib
import hmac
import json
import logging
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import zstandard
from flask import Flask, Response, g, redirect, request
from werkzeug.exceptions import HTTPException

from retrompi.base.errors import RetrompiError, nearest
from retrompi.studio.requests.first_answer import nowhere
from retrompi.studio.requests.page import modules

if TYPE_CHECKING:
    from dash import Dash

    from retrompi.studio.jobs.resources import Resources

__all__ = ["AddressRule", "Guard", "cookie", "install", "keep_session", "line_response"]

log = logging.getLogger("retrompi.studio")

_ADDRESS = re.compile(r"\d{1,3}(\.\d{1,3}){3}|\[[0-9A-Fa-f:.]+\]")
_HOST = re.compile(r"(?P<name>.*?)(:(?P<port>[0-9]{1,5}))?")
_SESSION = re.compile(r"[A-Za-z0-9_-]{22,64}")
_ASSETS = ("/_dash-component-suites/", "/assets/")
_ICON = "/_favicon.ico"
_DASH = ("/_dash-layout", "/_dash-dependencies", _ICON)
_UPDATE = "/_dash-update-component"
_LOGIN = "/login"
_ANY_PAGE = "/<path:path>"
"""Dash's rule for every address that has no other: it answers with the frame of the studio."""
_ALONE = ("X-Frame-Options", "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy")
"""Headers that keep a page out of others' frames and windows."""
_PACE_S = 2.0
_YEAR = 365 * 24 * 3600
_HOUR = 3600


@dataclass(frozen=True)
class AddressRule:
    """Addresses beside the pages, by their beginning; what they answer is up to whoever registered them with Flask."""

    prefix: str
    open: bool = False
    """Whether everybody is answered, also those who are not let in."""
    foreign: bool = False
    """Whether pages of other origins may post here, and show what is answered in a frame: what is posted has to prove itself, and answers
    say themselves who may frame them."""


@dataclass
class Guard:
    """Access rules. ``names``: further host names of this machine; ``token`` is None if none is needed."""

    token: str | None = None
    names: frozenset[str] = frozenset()
    public: bool = False
    """Whether other machines have access: then by any address of this one, not only the loopback's."""
    ways: tuple[AddressRule, ...] = ()
    """Addresses beside the pages; the first whose beginning fits counts."""
    command: str = "retrompi studio"
    """What the user runs, for messages."""
    tries: dict[str, list[float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def host(self, header: str) -> bool:
        """Whether a Host header names this studio: a foreign name that resolves to this machine (DNS rebinding) does not."""
        found = _HOST.fullmatch(header)
        if found is None or int(found["port"] or 0) > 65535:
            return False
        name = found["name"].lower().rstrip(".")
        if name in ("localhost", "127.0.0.1", "[::1]") or name in self.names:
            return True
        return self.public and _ADDRESS.fullmatch(name) is not None

    def proof(self) -> str:
        """The cookie value that proves knowledge of the token, without containing it."""
        return hmac.new((self.token or "").encode(), b"retrompi studio", hashlib.sha256).hexdigest()

    def knows(self, cookie: str | None) -> bool:
        """Whether a request with this cookie is authorised."""
        return self.token is None or (cookie is not None and hmac.compare_digest(cookie.encode(), self.proof().encode()))

    def way(self, path: str) -> AddressRule | None:
        """The rules of an address beside the pages; None if there is none."""
        return next((w for w in self.ways if path == w.prefix.rstrip("/") or path.startswith(w.prefix)), None)

    def lets_in(self) -> bool:
        """Whether the present request is of somebody who may use the studio."""
        return self.knows(request.cookies.get(cookie("token")))

    def client(self, session: str) -> str:
        """Who shares the turns of a session's jobs: those at the same address."""
        return request.remote_addr or ""

    def admits(self, given: str, address: str) -> bool | None:
        """Whether ``given`` is the token; None when this address has guessed too often within a minute."""
        return self.try_secret(address, lambda: self.token is not None and hmac.compare_digest(given.encode(), self.token.encode()))

    def try_secret(self, address: str, right: Callable[[], bool], most: int = 10, *, random: bool = False) -> bool | None:
        """Whether a secret is ``right``; None when this address, which a whole class may share, has guessed ``most`` times within a minute.

        A ``random`` secret, which nobody guesses at any rate, is looked at all the same, lest one who guesses shut the others out. Of those
        that people make up one is looked at every `_PACE_S` seconds then.
        """
        now = time.monotonic()
        with self._lock:
            if len(self.tries) > 10_000:
                self.tries.clear()
            recent = [t for t in self.tries.get(address, ()) if now - t < 60]
            self.tries[address] = recent
            shut = len(recent) >= most
            if shut and not random and now - recent[-1] < _PACE_S:
                return None
            if right():
                return True
            if shut and random:
                return None
            recent.append(now)
            return False

    def login(self) -> Response:
        """The page where a browser that is not let in comes in."""
        if self.token is None:
            return redirect("/")  # type: ignore[return-value]
        if request.method != "POST":
            return Response(_FORM, mimetype="text/html")
        return _enter(self, request.form.get("token", "")[:500], "/")


def install(app: Dash, resources: Resources, guarded: Guard) -> None:
    """Enforces the rules for every request of ``app``."""
    server: Flask = app.server
    server.config["MAX_CONTENT_LENGTH"] = resources.limits.body_B
    server.config["PROPAGATE_EXCEPTIONS"] = False
    server.debug = False
    known = dict.fromkeys(modules())
    pressed = Pressed()

    @server.before_request
    def admit() -> Response | None:
        found = request.cookies.get(cookie("session"), "")
        g.new_session = _SESSION.fullmatch(found) is None
        g.session = secrets.token_urlsafe(24) if g.new_session else found
        g.client = guarded.client(g.session)
        refused = _refusal(guarded, known, app)
        if refused is not None:
            g.new_session = False  # who is refused gets no session
            return refused
        if g.new_session and request.path == _UPDATE:
            return line_response(403, "open a page of the studio first (this browser sends no cookie)")
        return None

    # Ours run before those that Dash installed with its app: refused requests must not reach Dash at all.
    first = server.before_request_funcs[None]
    first.insert(0, first.pop())

    @server.after_request
    def seal_response(response: Response) -> Response:
        way = guarded.way(request.path)
        for name, value in _headers(app).items():
            if way is None or not way.foreign:
                response.headers[name] = value
            elif name not in _ALONE:
                response.headers.setdefault(name, value)
        response.headers["Cache-Control"] = _keeping(response)
        if g.get("new_session") and request.path in known:
            keep_session(response, g.session)
        return pressed.press(response)

    server.add_url_rule(_LOGIN, "login", guarded.login, methods=["GET", "POST"])

    @server.errorhandler(Exception)
    def one_line(error: Exception) -> Response:
        if isinstance(error, HTTPException):
            return line_response(error.code or 500, error.name.lower())
        if isinstance(error, RetrompiError):
            return line_response(400, " ".join(str(error).split()))
        if request.path.startswith(_ASSETS):  # Dash's response for a file that it does not serve
            return line_response(404, "no such file")
        log.error("a request of the studio failed", exc_info=error)
        return line_response(500, f"internal error; see the terminal of '{guarded.command}' for details")


def keep_session(response: Response, session: str, lasts_s: int | None = None) -> None:
    """Gives the browser its session, until it is closed or for a time; over HTTPS it never sends it without."""
    response.set_cookie(cookie("session"), session, httponly=True, samesite="Lax", path="/", secure=request.is_secure, max_age=lasts_s)


def _keeping(response: Response) -> str:
    """The Cache-Control value: files with a version in their name indefinitely, other files for a while, pages never."""
    # The icon as well: a browser asks for it again whenever the address changes, which it does with every control.
    if not request.path.startswith((*_ASSETS, _ICON)) or response.status_code not in (200, 304):
        return "no-store"
    versioned = b"m=" in request.query_string or re.search(r"\.v\w+m\d+\.", request.path) is not None
    return f"private, max-age={_YEAR}, immutable" if versioned else f"private, max-age={_HOUR}"


class Pressed:
    """Compresses what is sent, each file once: by zstd for browsers that read it, else by gzip."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, str], bytes] = {}

    def press(self, response: Response) -> Response:
        """The response, compressed if that helps."""
        accepted = request.headers.get("Accept-Encoding", "")
        how = next((name for name in ("zstd", "gzip") if name in accepted), "")
        if not how or response.status_code != 200 or request.method not in ("GET", "POST") or "Content-Encoding" in response.headers:
            return response
        if response.is_streamed and not request.path.startswith(_ASSETS):
            return response
        if not (response.mimetype or "").endswith(("javascript", "css", "json", "html", "svg+xml")):
            return response
        is_file = request.path.startswith(_ASSETS)
        data = self._files.get((how, request.full_path)) if is_file else None
        if data is None:
            response.direct_passthrough = False
            whole = response.get_data()
            if len(whole) < _SMALL:
                return response
            data = _compress(whole, how, thoroughly=is_file)
            if is_file and len(self._files) < 128:
                self._files[how, request.full_path] = data
        response.direct_passthrough = False
        response.set_data(data)
        response.headers["Content-Encoding"] = how
        response.headers.add("Vary", "Accept-Encoding")
        return response


_SMALL = 1000


def _compress(data: bytes, how: str, *, thoroughly: bool) -> bytes:
    if how == "gzip":
        return gzip.compress(data, 9 if thoroughly else 4)
    return zstandard.ZstdCompressor(level=12 if thoroughly else 3).compress(data)


def cookie(what: str) -> str:
    """The name of a cookie, with the port: browsers share cookies between all ports of a host, which may run several studios."""
    port = urlsplit(f"//{request.host}").port or 80
    return f"retrompi-{what}-{port}"


def line_response(status: int, line: str) -> Response:
    """An answer of one line."""
    return Response(line + "\n", status=status, mimetype="text/plain")


def _refusal(guarded: Guard, known: Mapping[str, None], app: Dash) -> Response | None:
    """The response to a refused request; None if it is permitted."""
    if not guarded.host(request.headers.get("Host", "")):
        return line_response(403, f"this studio is not known by that name; use the address that '{guarded.command}' printed")
    path = request.path
    way = guarded.way(path)
    if request.method == "POST":
        if path not in (_UPDATE, _LOGIN) and way is None:
            return line_response(405, "nothing to post here")
        if not (way is not None and way.foreign) and not _same_origin():
            return line_response(403, "a page of another origin may not post here")
        if path == _UPDATE and request.mimetype != "application/json":
            return line_response(415, "a callback is JSON")
    elif request.method not in ("GET", "HEAD"):
        return line_response(405, "GET, HEAD and POST are understood here")
    elif path == _UPDATE:
        return line_response(405, "a callback is posted")
    stray = way is not None and path not in known and request.url_rule is not None and request.url_rule.rule == _ANY_PAGE
    if way is not None and way.open and stray:
        return _nowhere(path, known)
    if path == _LOGIN or (way is not None and way.open):
        return None
    if not guarded.lets_in():
        if path in known and guarded.token is not None and "token" in request.args:
            return _enter(guarded, request.args["token"], path)
        if request.method != "POST" and (path in known or way is not None):
            return redirect(_LOGIN)  # type: ignore[return-value]
        return line_response(401, f"open the address that '{guarded.command}' printed first")
    if way is not None:
        return _nowhere(path, known) if stray else None
    if path in known:
        # Redirect, so that the token does not stay in the address, where it could be shared.
        return _clean(path) if "token" in request.args else None
    if path == _UPDATE:
        return _bad_callback(app)
    if path in _DASH or path.startswith(_ASSETS):
        return None
    return _nowhere(path, known)


def _nowhere(path: str, known: Mapping[str, None]) -> Response:
    line = f"there is no page '{_plain(path)}'{nearest(path[:60], known)}"
    return nowhere(line) if "text/html" in request.headers.get("Accept", "") else line_response(404, line)


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text[:80])


def _same_origin() -> bool:
    origin = request.headers.get("Origin")
    if origin is not None:
        return urlsplit(origin).netloc == request.host and origin.startswith(("http://", "https://"))
    return request.headers.get("Sec-Fetch-Site", "same-origin") in ("same-origin", "none")


def _clean(path: str) -> Response:
    rest = "&".join(p for p in request.query_string.decode("latin-1").split("&") if not p.startswith("token="))
    return redirect(path + (f"?{rest}" if rest else ""), 303)  # type: ignore[return-value]


def _enter(guarded: Guard, given: str, path: str) -> Response:
    admitted = guarded.admits(given, request.remote_addr or "")
    if admitted is None:
        return line_response(429, "too many wrong tokens; wait a minute")
    if not admitted:
        return line_response(403, "that is not this studio's token")
    answer = _clean(path)
    answer.set_cookie(cookie("token"), guarded.proof(), httponly=True, samesite="Lax", path="/")
    return answer


_FORM = """<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>retrompi studio</title></head><body><main><h1>retrompi studio</h1><form method="post" action="/login">
<label for="token">Token that 'retrompi studio' printed</label> <input id="token" name="token" type="password" autocomplete="off" autofocus>
<button>Enter</button></form></main></body></html>
"""


def _bad_callback(app: Dash) -> Response | None:
    """The response to a post that is not a callback of the studio's pages; None if it is one."""
    try:
        body = json.loads(request.get_data(cache=True))
    except (ValueError, RecursionError):
        return line_response(400, "this is not JSON")
    if not isinstance(body, dict) or not isinstance(body.get("output"), str):
        return line_response(400, "not a callback: an object with an 'output' is expected")
    if body["output"] not in app.callback_map and not app._got_first_request["setup_server"]:
        app._setup_server()
    if body["output"] not in app.callback_map:
        return line_response(404, "no page has such a callback")
    declared = app.callback_map[body["output"]]
    for key in ("inputs", "state"):
        given = body.get(key, [])
        if not isinstance(given, list) or len(given) != len(declared[key]):
            return line_response(400, f"this callback has other {key}")
        if not all(_is_declared(*pair) for pair in zip(given, declared[key], strict=True)):
            return line_response(400, f"this callback has other {key}")
    changed = body.get("changedPropIds", [])
    if not isinstance(changed, list) or not all(isinstance(c, str) and _is_input(c, declared["inputs"]) for c in changed):
        return line_response(400, "changedPropIds is a list of this callback's inputs")
    if not _named_outputs(body["output"], body.get("outputs")):
        return line_response(400, "this callback has other outputs")
    return None


def _is_input(changed: str, inputs: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the text names one of the inputs (``id.property``), or a component that the pattern of one stands for."""
    component, _, name = changed.rpartition(".")
    return any(name == i["property"] and _same(component, i["id"]) for i in inputs)


def _same(given: Any, declared: str) -> bool:
    """Whether an id, as an object or as written, is the declared one, or one that its pattern stands for."""
    if not declared.startswith("{"):
        return bool(given == declared)
    try:
        found = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        return False
    pattern = json.loads(declared)
    if not isinstance(found, dict) or set(found) != set(pattern):
        return False
    return all(isinstance(v, str) and (isinstance(pattern[k], list) or v == pattern[k]) for k, v in found.items())


def _named_outputs(output: str, given: Any) -> bool:
    """Whether a post has as many outputs as the callback's name, each with an id and a property."""
    many = output.startswith("..")
    found = given if many else [given]
    if not isinstance(found, list) or len(found) != (output.count("...") + 1 if many else 1):
        return False
    return all(isinstance(o, dict) and isinstance(o.get("id"), (str, dict)) and isinstance(o.get("property"), str) for o in found)


def _is_declared(given: Any, declared: Mapping[str, Any]) -> bool:
    """Whether an input is the declared one: a list for a pattern of many (ALL), one component for any other (MATCH)."""
    many = str(declared["id"]).startswith("{") and ["ALL"] in json.loads(declared["id"]).values()
    if isinstance(given, list):
        return many and all(isinstance(one, dict) and _is(one, declared) for one in given)
    return isinstance(given, dict) and not many and _is(given, declared)


def _is(given: Mapping[str, Any], declared: Mapping[str, Any]) -> bool:
    return given.get("property") == declared["property"] and _same(given.get("id"), str(declared["id"]))


def _headers(app: Dash) -> dict[str, str]:
    """Headers of every response. Inline styles are allowed (React and Plotly write them), inline scripts only to start Dash."""
    policy = getattr(app, "_retrompi_policy", None)
    if policy is None:
        scripts = " ".join(["'self'", *app.csp_hashes()])
        policy = app._retrompi_policy = "; ".join(
            [
                "default-src 'none'", f"script-src {scripts}", "style-src 'self' 'unsafe-inline'", "img-src 'self' data: blob:",
                "font-src 'self'", "connect-src 'self'",
                "frame-src 'self'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'",
                "object-src 'none'",
            ]
        )
    return {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        # "no-referrer" would make the Origin of our own forms "null", and they would be refused.
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    }
