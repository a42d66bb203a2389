"""A learning platform for the tests: the reference library ``lti1p3platform``, served on this machine.

The library builds and signs the launches, gives out access tokens against the tool's signed assertions, checks the answers of deep linking
and takes scores; this file gives it a place to keep them and addresses. A browser is a small class that keeps cookies as browsers do.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import requests
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from flask import Flask, jsonify, request
from lti1p3platform.exceptions import LtiException, LtiServiceException
from lti1p3platform.ltiplatform import LTI1P3PlatformConfAbstract
from lti1p3platform.message_launch import LTIAdvantageMessageLaunchAbstract
from lti1p3platform.oidc_login import OIDCLoginAbstract
from lti1p3platform.registration import Registration
from lti1p3platform.request import Request
from lti1p3platform.score import UpdateScoreStatus
from lti1p3platform.service_connector import AssignmentsGradesService
from werkzeug.serving import make_server

CLIENT, DEPLOYMENT = "tool-client-7", "deployment-1"
STUDENT = "http://purl.imsglobal.org/vocab/lis/v2/membership#Learner"
TEACHER = "http://purl.imsglobal.org/vocab/lis/v2/membership#Instructor"


def keys() -> tuple[str, str]:
    """(private, public) key as PEM."""
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = made.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    public = made.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


class _Conf(LTI1P3PlatformConfAbstract):
    def init_platform_config(self, **kwargs: Any) -> None:
        self._registration = kwargs["registration"]

    def get_registration_by_params(self, **kwargs: Any) -> Registration:
        return self._registration


class _Login(OIDCLoginAbstract):
    def set_lti_message_hint(self, **kwargs: Any) -> None:
        self._lti_message_hint = kwargs["hint"]

    def get_redirect(self, url: str) -> str:
        return url


class _Launch(LTIAdvantageMessageLaunchAbstract):
    def render_launch_form(self, launch_data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return launch_data


class _Request(Request):
    def build_metadata(self, request: Any) -> Any:
        return {"method": request.method, "form_data": request.form.to_dict(), "get_data": request.args.to_dict(), "headers": request.headers,
                "content_type": request.content_type, "path": request.path, "json": request.get_json(force=True, silent=True)}


class _Grades(AssignmentsGradesService):
    """Scores by line item and user; one that is not newer than the last is not taken, as the service's specification says."""

    def __init__(self, platform: Platform, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        self._platform = platform

    def update_score(self, line_item_id: str, score: Any) -> UpdateScoreStatus:
        kept = self._platform.scores.setdefault((line_item_id, score["userId"]), [])
        if kept and score["timestamp"] <= kept[-1]["timestamp"]:
            return UpdateScoreStatus.OLD_TIMESTAMP
        kept.append(score)
        return UpdateScoreStatus.SUCCESS

    def _no(self, *args: Any, **values: Any) -> Any:
        raise NotImplementedError

    find_lineitems = find_lineitem = create_lineitem = update_lineitem = delete_lineitem = get_results = _no


for _name in list(getattr(_Grades, "__abstractmethods__", ())):
    raise AssertionError(f"{_name} is not there")


class Platform:
    """The platform at ``url``; ``hint`` -> what is launched: user, roles, kind, custom parameters."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.scores: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self.launches: dict[str, dict[str, Any]] = {}
        self.chosen: list[list[dict[str, Any]]] = []
        self.broken: list[int] = []
        """Statuses that the service of scores answers first."""
        self.asked_for_tokens = 0
        app = Flask("platform")
        self._server = make_server("127.0.0.1", 0, app, threaded=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.private, public = keys()
        self.registration = (
            Registration().set_iss(self.url).set_client_id(CLIENT).set_deployment_id(DEPLOYMENT).set_oidc_login_url(f"{tool}/lti/login")
            .set_launch_url(f"{tool}/lti/launch").set_deeplink_launch_url(f"{tool}/lti/launch").set_platform_private_key(self.private)
            .set_platform_public_key(public).set_tool_key_set_url(f"{tool}/lti/keys")
        )
        self.conf = _Conf(registration=self.registration)
        app.add_url_rule("/auth", "auth", self._auth)
        app.add_url_rule("/jwks", "jwks", lambda: jsonify(self.conf.get_jwks()))
        app.add_url_rule("/token", "token", self._token, methods=["POST"])
        app.add_url_rule("/items/<item>/scores", "scores", self._scores, methods=["POST"])
        app.add_url_rule("/chosen", "chosen", self._chosen, methods=["POST"])
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def message(self, nonce: str, state: str, **what: Any) -> dict[str, Any]:
        """The form that the platform's page posts to the tool."""
        asked = {"nonce": nonce, "state": state, "redirect_uri": f"{self.tool}/lti/launch", "client_id": CLIENT}
        launch = _Launch(type("Asked", (), {"get_data": asked, "form_data": {}})(), self.conf)  # type: ignore[arg-type]
        user = what.get("user", "user-1")
        launch.set_user_data(user, what.get("roles", [STUDENT]), what.get("name", f"Name of {user}"), what.get("email", f"{user}@example.edu"))
        launch.set_launch_context_claim("course-1", context_title="MPI")
        if what.get("kind") == "deep":
            launch.set_dl(f"{self.url}/chosen", "Choose", "", {"ltiResourceLink"}, {"opaque": "data"})  # type: ignore[arg-type]
        else:
            launch.set_resource_link_claim(what.get("resource", "link-1"), title=what.get("title", "A link"))
            item = what.get("item", "item-1")
            launch.set_ags(f"{self.url}/items", f"{self.url}/items/{item}?type_id=3", False)
            if "custom" in what:
                launch.set_custom_parameters_claim(what["custom"])
        launch.set_extra_claims(what.get("claims", {}))
        return dict(launch.lti_launch())

    def _auth(self) -> Any:
        what = self.launches[request.args["lti_message_hint"]]
        assert request.args["response_mode"] == "form_post"
        assert request.args["login_hint"] == what.get("user", "user-1")
        assert request.args["redirect_uri"] == f"{self.tool}/lti/launch"
        return jsonify(self.message(request.args["nonce"], request.args["state"], **what))

    def _token(self) -> Any:
        self.asked_for_tokens += 1
        try:
            return jsonify(self.conf.get_access_token(request.form.to_dict()))
        except LtiException as error:
            return jsonify({"error": str(error)}), 400

    def _scores(self, item: str) -> Any:
        if self.broken:
            return "down for maintenance", self.broken.pop(0)
        service = _Grades(self, _Request(request), self.conf, f"{self.url}/items", f"{self.url}/items/{item}", False)
        try:
            answer = service.handle_update_score(item)  # type: ignore[call-arg, arg-type]
        except LtiServiceException as error:
            return error.message, error.status_code
        return jsonify(answer.result), answer.code

    def _chosen(self) -> Any:
        self.chosen.append(self.conf.validate_deeplinking_resp(request.form.to_dict()))
        return "thanks"

    def begin(self, hint: str, **what: Any) -> str:
        """The address of the tool's login for a launch."""
        self.launches[hint] = what
        login = _Login(None, self.conf)
        login.set_lti_message_hint(hint=hint)
        return str(login.initiate_login(what.get("user", "user-1")))


class Browser:
    """A browser's cookies by host and port, sent with posts from other sites too (SameSite=None), as over https."""

    def __init__(self, cookies: bool = True) -> None:
        self.cookies: dict[str, dict[str, str]] = {}
        self._keeps = cookies

    def ask(self, method: str, url: str, **given: Any) -> requests.Response:
        host = urlsplit(url).netloc
        headers = {**given.pop("headers", {}), "Cookie": "; ".join(f"{k}={v}" for k, v in self.cookies.get(host, {}).items())}
        answer = requests.request(method, url, headers=headers, allow_redirects=False, timeout=30, **given)
        for line in answer.raw.headers.getlist("Set-Cookie") if self._keeps else ():
            name, _, value = line.partition(";")[0].partition("=")
            self.cookies.setdefault(host, {})[name] = value
        return answer

    def launch(self, login: str, *, change: Callable[[dict[str, Any]], None] = lambda form: None, frame: bool = False) -> requests.Response:
        """From a platform's link to the tool's answer to the message; ``change``: of the form that the platform posts."""
        there = self.ask("GET", login)
        if there.status_code != 302:
            return there
        form = dict(self.ask("GET", there.headers["Location"]).json())
        change(form)
        kind = {"Sec-Fetch-Dest": "iframe" if frame else "document", "Origin": "null"}
        return self.ask("POST", form.pop("launch_url"), data=form, headers=kind)

    def submit(self, page: requests.Response, base: str, **given: str) -> requests.Response:
        """Sends the form of a page."""
        action = unescape(re.search(r'<form method="post" action="([^"]*)"', page.text)[1])  # type: ignore[index]
        hidden = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', page.text)
        return self.ask("POST", action if "://" in action else base + action, data={**{k: unescape(v) for k, v in hidden}, **given})


def query(url: str) -> dict[str, str]:
    """The parameters of an address."""
    return dict(parse_qsl(urlsplit(url).query))
