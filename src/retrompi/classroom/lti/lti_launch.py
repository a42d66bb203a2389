"""A launch by LTI 1.3: a login begun, the platform's message checked, whose it is and where it leads.

A login is bound to the browser by a cookie and to the message by a nonce; both come back once. Nothing in a message counts before its
signature, times, audience, nonce and deployment are right.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit

import sqlalchemy as sa
from flask import Response
from sqlalchemy.engine import Connection, Engine

from retrompi.base.errors import RetrompiError
from retrompi.classroom.lti import lti_platforms
from retrompi.classroom.lti.lti_platforms import LearningPlatform, digest, writing
from retrompi.classroom.lti.lti_schema import LtiAccount, LtiLink, LtiLogin, LtiSeat, LtiTicket
from retrompi.classroom.lti.lti_tokens import LtiError, sign_claims, verify_token

__all__ = ["CLAIM", "Begun", "Launched", "LtiCourse", "again", "begin", "choose_lab", "launch", "redeem_ticket", "ticket"]

CLAIM = "https://purl.imsglobal.org/spec/lti/claim/"
DEEP = "https://purl.imsglobal.org/spec/lti-dl/claim/"
AGS = "https://purl.imsglobal.org/spec/lti-ags/claim/endpoint"
ROLES = "http://purl.imsglobal.org/vocab/lis/v2/"
LOGIN = timedelta(minutes=10)
TICKET = timedelta(minutes=10)
MOST_LOGINS = 20_000
"""Logins under way that are kept; beyond, the oldest are dropped."""


class LtiCourse(Protocol):
    """The interface of a course for launches from a platform (`retrompi.classroom.serve.ServedCourse`)."""

    engine: Engine
    course: int

    @property
    def base_url(self) -> str:
        """The course's address as members see it, without a slash at its end."""

    def newcomer(self, name: str, email: str, role: str) -> int:
        """Makes a member."""

    def rename_member(self, member: int, name: str, email: str, role: str) -> None:
        """A later launch tells another name, address or role."""

    def admit(self, member: int, path: str) -> Response:
        """Lets the browser in as a member."""


@dataclass(frozen=True)
class Begun:
    """A login that was begun: where the browser goes, and the secret that it keeps as a cookie."""

    url: str
    browser: str


@dataclass(frozen=True)
class Launched:
    """A checked message: the platform, the member (None for a choice of a lab), the lab, and for a choice where it is sent to."""

    platform: LearningPlatform
    member: int | None
    path: str
    settings: Mapping[str, Any]


def _now() -> datetime:
    return datetime.now(UTC)


def begin(hall: LtiCourse, asked: Mapping[str, str], browser: str = "") -> Begun:
    """Begins a login that a platform asks for; LtiError for an unknown platform."""
    issuer, client = asked.get("iss", "")[:500], asked.get("client_id", "")[:200]
    hint = asked.get("login_hint", "")[:4000]
    if not issuer or not hint:
        raise LtiError("this is not a login that a platform begins: iss and login_hint are missing")
    platform = lti_platforms.find(hall.engine, issuer, client)
    if platform is None:
        raise LtiError(f"the platform {issuer[:120]} (client id '{client[:60]}') is not registered for this course")
    deployment = asked.get("lti_deployment_id", "")
    if deployment and deployment not in platform.deployments:
        raise LtiError(f"the deployment '{deployment[:60]}' of the platform '{platform.name}' is not registered for this course")
    state, nonce, browser = secrets.token_urlsafe(24), secrets.token_urlsafe(24), browser or secrets.token_urlsafe(24)
    kept = {k: asked[k][:4000] for k in ("iss", "client_id", "login_hint", "lti_message_hint", "target_link_uri") if asked.get(k)}
    row = {"state": digest(state), "nonce": digest(nonce), "browser": digest(browser), "platform_id": platform.id, "asked": kept,
           "expires": _now() + LOGIN}
    with writing(hall.engine) as connection:
        _tidy(connection)
        connection.execute(sa.insert(LtiLogin), [row])
    told = {
        "scope": "openid", "response_type": "id_token", "response_mode": "form_post", "prompt": "none", "client_id": platform.client_id,
        "redirect_uri": f"{hall.base_url}/lti/launch", "login_hint": hint, "state": state, "nonce": nonce,
    } | ({"lti_message_hint": asked["lti_message_hint"][:4000]} if asked.get("lti_message_hint") else {})
    joint = "&" if urlsplit(platform.auth_url).query else "?"
    return Begun(f"{platform.auth_url}{joint}{urlencode(told)}", browser)


def _tidy(connection: Connection) -> None:
    """Drops what is too old to be used, and of too many logins the oldest."""
    connection.execute(sa.delete(LtiLogin).where(LtiLogin.expires < _now()))
    connection.execute(sa.delete(LtiTicket).where(LtiTicket.expires < _now()))
    if int(connection.scalar(sa.select(sa.func.count()).select_from(LtiLogin)) or 0) > MOST_LOGINS:
        oldest = sa.select(LtiLogin.state).order_by(LtiLogin.expires).limit(MOST_LOGINS // 10)
        connection.execute(sa.delete(LtiLogin).where(LtiLogin.state.in_(connection.scalars(oldest).all())))


def again(hall: LtiCourse, state: str) -> dict[str, str]:
    """The parameters of a login under way, to begin it anew in another window."""
    with hall.engine.connect() as connection:
        query = sa.select(LtiLogin.asked).where(LtiLogin.state == digest(state), LtiLogin.expires >= _now(), LtiLogin.used.is_(None))
        found = connection.scalar(query)
    if found is None:
        raise LtiError("this login is too old; open the link in your course again")
    return {str(k): str(v) for k, v in found.items()}


def launch(hall: LtiCourse, state: str, token: str, browser: str) -> Launched:
    """Checks what the platform has sent, and uses the login up. LtiError says what is wrong with it."""
    with hall.engine.connect() as connection:
        row = connection.execute(sa.select(LtiLogin.__table__).where(LtiLogin.state == digest(state))).mappings().first()
    if row is None or row["expires"] < _now():
        raise LtiError("this login was not begun here, or it is too old; open the link in your course again")
    if not secrets.compare_digest(row["browser"], digest(browser)):
        raise LtiError("this login was begun in another browser; open the link in your course again")
    platform = next((p for p in lti_platforms.platforms(hall.engine) if p.id == row["platform_id"]), None)
    if platform is None:
        raise LtiError("the platform is no longer registered for this course")
    claims = verify_token(token, platform)
    if not secrets.compare_digest(row["nonce"], digest(str(claims["nonce"]))):
        raise LtiError("the message does not belong to this login; open the link in your course again")
    with writing(hall.engine) as connection:
        # Two posts of the same message at once: only one of them changes the row.
        used = connection.execute(sa.update(LtiLogin).where(LtiLogin.state == row["state"], LtiLogin.used.is_(None)).values(used=_now()))
        if used.rowcount != 1:
            raise LtiError("this message has been used already; open the link in your course again")
    deployment = str(claims.get(f"{CLAIM}deployment_id", ""))
    if deployment not in platform.deployments:
        raise LtiError(f"the deployment '{deployment[:60]}' of the platform '{platform.name}' is not registered for this course")
    if claims.get(f"{CLAIM}version") != "1.3.0":
        raise LtiError("the message is not one of LTI 1.3")
    kind = claims.get(f"{CLAIM}message_type")
    if kind == "LtiDeepLinkingRequest":
        return _choice(platform, deployment, claims)
    if kind == "LtiResourceLinkRequest":
        return _link(hall, platform, deployment, claims)
    raise LtiError(f"a message of the kind '{str(kind)[:60]}' is not understood here")


def _role(claims: Mapping[str, Any]) -> str:
    """The role in the platform's course: teaching assistants are instructors by a sub-role."""
    told = claims.get(f"{CLAIM}roles")
    roles = {str(r).removeprefix(ROLES) for r in told} if isinstance(told, list) else set()
    if roles & {"membership/Instructor#TeachingAssistant", "membership#TeachingAssistant"}:
        return "assistant"
    return "teacher" if roles & {"membership#Instructor", "Instructor"} else "student"


def _choice(platform: LearningPlatform, deployment: str, claims: Mapping[str, Any]) -> Launched:
    """A teacher wants to choose a lab for a link."""
    settings = claims.get(f"{DEEP}deep_linking_settings")
    if not isinstance(settings, dict) or not str(settings.get("deep_link_return_url", "")).startswith(("https://", "http://")):
        raise LtiError("the platform does not say where the choice of a lab is to be sent")
    if _role(claims) == "student":
        raise LtiError("only a teacher of the platform's course may choose a lab")
    if "ltiResourceLink" not in settings.get("accept_types", ["ltiResourceLink"]):
        raise LtiError("the platform takes no links to labs here")
    kept = {"return": settings["deep_link_return_url"], "data": settings.get("data"), "deployment": deployment, "platform": platform.id}
    return Launched(platform, None, "", kept)


def _text(claims: Mapping[str, Any], key: str, most: int) -> str:
    told = claims.get(key)
    return " ".join(told.split())[:most] if isinstance(told, str) else ""


def _link(hall: LtiCourse, platform: LearningPlatform, deployment: str, claims: Mapping[str, Any]) -> Launched:
    """Somebody follows a link: the account's member, the link's lab, and where its scores go."""
    sub = _text(claims, "sub", 255)
    resource = claims.get(f"{CLAIM}resource_link")
    if not sub:
        raise LtiError("the platform does not say whose account it is (anonymous launches are not taken)")
    if not isinstance(resource, dict) or not isinstance(resource.get("id"), str) or not resource["id"]:
        raise LtiError("the message names no resource link")
    role = _role(claims)
    member = _member(hall, platform, sub, (_text(claims, "name", 200), _text(claims, "email", 320), role))
    lab = _lab(claims, resource)
    if lab is None:
        return Launched(platform, member, "/course" if role != "student" else "/labs", _shown_in(claims))
    endpoint = claims.get(AGS)
    lineitem = endpoint.get("lineitem") if isinstance(endpoint, dict) else None
    scopes = endpoint.get("scope", []) if isinstance(endpoint, dict) else []
    gives = isinstance(lineitem, str) and any(str(s).endswith("/scope/score") for s in scopes)
    values = {"lab": lab, "lineitem": lineitem[:2000] if gives and isinstance(lineitem, str) else None}
    where = {"platform_id": platform.id, "deployment": deployment[:255], "resource": resource["id"][:255]}
    with writing(hall.engine) as connection:
        same = sa.select(LtiLink.id).where(*(getattr(LtiLink, k) == v for k, v in where.items()))
        link = connection.scalar(same)
        if link is None:
            link = connection.execute(sa.insert(LtiLink).returning(LtiLink.id), [where | values]).scalar_one()
        else:
            connection.execute(sa.update(LtiLink).where(LtiLink.id == link).values(**values))
        seat = {"link_id": link, "member_id": member, "sub": sub}
        known = sa.select(LtiSeat.sub).where(LtiSeat.link_id == link, LtiSeat.member_id == member)
        if role == "student" and connection.scalar(known) is None:
            connection.execute(sa.insert(LtiSeat), [seat])
    return Launched(platform, member, f"/labs/{lab}", _shown_in(claims))


def _shown_in(claims: Mapping[str, Any]) -> dict[str, Any]:
    """``return``: the page of the platform from which a link was followed, if it says so."""
    told = claims.get(f"{CLAIM}launch_presentation")
    return {"return": told.get("return_url")} if isinstance(told, dict) else {}


def _lab(claims: Mapping[str, Any], resource: Mapping[str, Any]) -> str | None:
    """The lab of a link: its custom parameter ``lab``, else the target's ``?lab=``, else a title such as "Lab 1"; None for the course."""
    import re
    from urllib.parse import parse_qs

    from retrompi.labs.lab import lab_names

    custom = claims.get(f"{CLAIM}custom")
    told = [str(custom.get("lab", ""))] if isinstance(custom, dict) else []
    told += parse_qs(urlsplit(str(claims.get(f"{CLAIM}target_link_uri", ""))).query).get("lab", [])
    found = re.search(r"\blab\s*0*(\d{1,2})\b", str(resource.get("title", "")), re.IGNORECASE)
    told += [found[1]] if found else []
    known = lab_names()
    for name in told:
        wanted = name.strip()
        same = [n for n in known if n == wanted or (wanted.isdigit() and n[:2] == f"{int(wanted):02d}")]
        if same:
            return str(same[0])
    return None


def _member(hall: LtiCourse, platform: LearningPlatform, sub: str, told: tuple[str, str, str]) -> int:
    """The member of an account, made at its first launch."""
    query = sa.select(LtiAccount.member_id).where(LtiAccount.platform_id == platform.id, LtiAccount.sub == sub)
    name, email, role = told
    with hall.engine.connect() as connection:
        known = connection.scalar(query)
    if known is not None:
        hall.rename_member(int(known), name, email, role)
        return int(known)
    made = hall.newcomer(name or email or f"{platform.name} {sub[:40]}", email, role)
    with writing(hall.engine) as connection:
        connection.execute(sa.insert(LtiAccount), [{"platform_id": platform.id, "sub": sub, "member_id": made}])
    return made


def ticket(engine: Engine, kind: str, data: Mapping[str, Any]) -> str:
    """The secret of a way on that is good once, and for ten minutes."""
    secret = secrets.token_urlsafe(24)
    with writing(engine) as connection:
        connection.execute(sa.insert(LtiTicket), [{"digest": digest(secret), "kind": kind, "data": dict(data), "expires": _now() + TICKET}])
    return secret


def redeem_ticket(engine: Engine, kind: str, secret: str) -> dict[str, Any]:
    """Redeems a single-use ticket and returns what it was issued for. LtiError for an unknown or used one."""
    with writing(engine) as connection:
        same = (LtiTicket.digest == digest(secret), LtiTicket.kind == kind)
        row = connection.execute(sa.select(LtiTicket.data, LtiTicket.expires).where(*same)).first()
        if row is None or row.expires < _now() or connection.execute(sa.delete(LtiTicket).where(*same)).rowcount != 1:
            raise LtiError("this way in has been used or is too old; open the link in your course again")
        return dict(row.data)


def choose_lab(hall: LtiCourse, data: Mapping[str, Any], lab: str) -> tuple[str, str]:
    """(where to, signed message): the answer to a choice, a link to ``lab`` with its column in the gradebook. LtiError for another lab."""
    from retrompi.labs.lab import lab as find

    try:
        found = find(lab)
    except RetrompiError as error:
        raise LtiError(str(error)) from None
    platform = next((p for p in lti_platforms.platforms(hall.engine) if p.id == data["platform"]), None)
    if platform is None:
        raise LtiError("the platform is no longer registered for this course")
    item = {
        "type": "ltiResourceLink", "title": f"Lab {found.key}: {found.title}", "text": found.summary,
        "url": f"{hall.base_url}/lti/launch", "custom": {"lab": found.name},
        "lineItem": {"scoreMaximum": found.points, "label": f"Lab {found.key}: {found.title}", "resourceId": found.name},
    }
    claims: dict[str, Any] = {
        "iss": platform.client_id, "aud": platform.issuer, "azp": platform.issuer, f"{CLAIM}deployment_id": data["deployment"],
        f"{CLAIM}message_type": "LtiDeepLinkingResponse", f"{CLAIM}version": "1.3.0", f"{DEEP}content_items": [item],
    }
    if data.get("data") is not None:
        claims[f"{DEEP}data"] = data["data"]
    return str(data["return"]), sign_claims(hall.engine, claims)
