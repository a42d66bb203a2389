"""Signed messages: those of platforms are verified by their published keys, those of this tool are signed by its own.

Only RS256 is taken, whatever a token's head says. Answers of a platform are bounded in size and time.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from typing import Any

from sqlalchemy.engine import Engine

from retrompi.base.errors import RetrompiError
from retrompi.classroom.lti.lti_platforms import LearningPlatform, checked_url, key

__all__ = ["LtiError", "access_token", "call", "forget_keys", "sign_claims", "verify_token"]

LEEWAY_S = 30
"""Allowance for clocks that differ."""
LIFE_S = 300
"""Life of what this tool signs."""
MOST_B = 1 << 20
TIMEOUT_S = 10.0
KEYS_S = 3600.0
AGAIN_S = 30.0
"""For how long a platform's keys are kept; and how soon they are fetched again for a key that is not among them."""

_known: dict[str, tuple[float, dict[str, Any]]] = {}
_tokens: dict[tuple[str, str, str], tuple[float, str]] = {}
_lock = threading.Lock()


class LtiError(RetrompiError):
    """A message of a platform that is refused, or a platform that does not answer: one line for the person at the browser."""

    code = "lti-refused"


def call(method: str, url: str, *, headers: dict[str, str] | None = None, data: Any = None) -> tuple[int, bytes]:
    """(status, content) of a request to a platform; LtiError where it does not answer. Redirections are not followed."""
    import requests

    try:
        checked_url("platform", url)
        with requests.request(
            method, url, headers=headers, data=data, timeout=TIMEOUT_S, allow_redirects=False, stream=True
        ) as answer:
            content = b"".join(_limit_size(answer.iter_content(1 << 14), url))
            return int(answer.status_code), content
    except requests.RequestException as error:
        raise LtiError(f"the platform does not answer at {url[:120]}: {type(error).__name__}") from None
    except RetrompiError as error:
        raise LtiError(str(error)) from None


def _limit_size(pieces: Any, url: str) -> Any:
    size, until = 0, time.monotonic() + TIMEOUT_S
    for piece in pieces:
        size += len(piece)
        if size > MOST_B or time.monotonic() > until:
            raise LtiError(f"the platform's answer at {url[:120]} is too long")
        yield piece


def forget_keys() -> None:
    """Drops what is kept of platforms: their keys, and tokens for their services."""
    with _lock:
        _known.clear()
        _tokens.clear()


def _keys(platform: LearningPlatform, kid: str) -> dict[str, Any]:
    """Key id -> key of a platform, fetched anew for an unknown one."""
    now = time.monotonic()
    with _lock:
        at, found = _known.get(platform.keys_url, (-KEYS_S, {}))
    if now - at < (KEYS_S if kid in found else AGAIN_S):
        return found
    import jwt

    status, content = call("GET", platform.keys_url)
    try:
        sets = json.loads(content)["keys"]
        found = {str(k["kid"]): jwt.PyJWK(k, "RS256") for k in sets if k.get("kty") == "RSA" and "kid" in k}
    except (ValueError, KeyError, TypeError, AttributeError, jwt.PyJWTError):
        raise LtiError(f"the platform '{platform.name}' gives no keys at {platform.keys_url[:120]} (status {status})") from None
    with _lock:
        _known[platform.keys_url] = (now, found)
    return found


def verify_token(token: str, platform: LearningPlatform) -> dict[str, Any]:
    """The claims of a platform's message for this tool; LtiError in one line if it is not one, not in time, or for another."""
    import jwt

    try:
        head = jwt.get_unverified_header(token)
        if head.get("alg") != "RS256":
            raise LtiError(f"the message is signed by '{str(head.get('alg'))[:20]}'; only RS256 is taken")
        kid = str(head.get("kid", ""))
        found = _keys(platform, kid)
        if kid not in found:
            raise LtiError(f"the message is signed by a key that the platform '{platform.name}' does not publish")
        claims = jwt.decode(
            token, found[kid].key, algorithms=["RS256"], audience=platform.client_id, issuer=platform.issuer, leeway=LEEWAY_S,
            options={"require": ["exp", "iat", "iss", "aud", "nonce"]},
        )
    except jwt.ExpiredSignatureError:
        raise LtiError("the message is too old; open the link in your course again") from None
    except jwt.InvalidAudienceError:
        raise LtiError("the message is for another tool (its client id is not this one's)") from None
    except jwt.InvalidIssuerError:
        raise LtiError("the message is of another platform") from None
    except jwt.InvalidSignatureError:
        raise LtiError("the message's signature is not the platform's") from None
    except (jwt.PyJWTError, ValueError, RecursionError) as error:
        raise LtiError(f"not a message of LTI 1.3: {str(error)[:120]}") from None
    audience = claims["aud"]
    if isinstance(audience, list) and len(audience) > 1 and claims.get("azp") != platform.client_id:
        raise LtiError("the message is for several tools, and not authorised for this one")
    result: dict[str, Any] = claims
    return result


def sign_claims(engine: Engine, claims: dict[str, Any]) -> str:
    """``claims`` signed by this tool, with times and a nonce."""
    import jwt

    kid, private = key(engine)
    now = int(time.time())
    told = {"iat": now, "exp": now + LIFE_S, "nonce": secrets.token_urlsafe(18), **claims}
    return str(jwt.encode(told, private, algorithm="RS256", headers={"kid": kid}))


def access_token(engine: Engine, platform: LearningPlatform, scope: str) -> str:
    """A token for a service of the platform, kept for as long as it is good."""
    known = (platform.token_url, platform.client_id, scope)
    with _lock:
        until, token = _tokens.get(known, (0.0, ""))
    if time.monotonic() < until:
        return token
    assertion = sign_claims(engine, {"iss": platform.client_id, "sub": platform.client_id, "aud": platform.token_url,
                                "jti": secrets.token_urlsafe(18)})
    status, content = call("POST", platform.token_url, data={
        "grant_type": "client_credentials", "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "client_assertion": assertion, "scope": scope,
    })
    try:
        answer = json.loads(content)
        token, life = str(answer["access_token"]), float(answer.get("expires_in", 60))
    except (ValueError, KeyError, TypeError):
        raise LtiError(f"the platform '{platform.name}' gives no access to its grades (status {status})") from None
    with _lock:
        _tokens[known] = (time.monotonic() + max(life - 30, 0), token)
    return token


def forget_token(platform: LearningPlatform) -> None:
    """A token was not taken: the next one is asked for anew."""
    with _lock:
        for known in [k for k in _tokens if k[0] == platform.token_url]:
            del _tokens[known]
