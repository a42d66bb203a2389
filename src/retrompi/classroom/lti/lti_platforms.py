"""Registrations: which learning platforms a course trusts, and the key by which they know this tool."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from retrompi.base.errors import UsageError, nearest
from retrompi.classroom.lti.lti_schema import LtiKey, LtiPlatform

__all__ = ["CANVAS", "LearningPlatform", "add", "canvas_config", "digest", "find", "key", "of_moodle", "platforms", "public_keys",
           "remove", "writing"]

CANVAS = {
    "issuer": "https://canvas.instructure.com", "auth_url": "https://sso.canvaslms.com/api/lti/authorize_redirect",
    "token_url": "https://sso.canvaslms.com/login/oauth2/token", "keys_url": "https://sso.canvaslms.com/api/lti/security/jwks",
}
"""Canvas as its maker runs it; one that a university runs itself has its own host, with the same paths."""
KEYS = ("issuer", "client_id", "auth_url", "token_url", "keys_url")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class LearningPlatform:
    """A registered platform."""

    id: int
    name: str
    issuer: str
    client_id: str
    auth_url: str
    token_url: str
    keys_url: str
    deployments: tuple[str, ...]


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A connection for writing: all of the body, or nothing."""
    with engine.connect() as raw:
        connection = raw.execution_options(retrompi_write=True)
        with connection.begin():
            yield connection


def digest(secret: str) -> str:
    """The form in which a state, nonce or ticket is kept."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def checked_url(name: str, url: str) -> str:
    """An address of a platform: https, or http on this machine. UsageError otherwise."""
    parts = urlsplit(url.strip())
    if not parts.hostname or parts.scheme not in ("https", "http") or (parts.scheme == "http" and parts.hostname not in _LOOPBACK):
        raise UsageError(f"{name}: '{url[:120]}' is no https address", code="bad-address")
    return url.strip()


def add(engine: Engine, name: str, given: Mapping[str, str], deployments: list[str]) -> int:
    """Registers a platform and returns its id; one of the same name is replaced. UsageError for a missing or wrong value."""
    missing = [k for k in KEYS if not str(given.get(k, "")).strip()]
    if missing:
        raise UsageError(f"the platform '{name}' needs {', '.join(missing)}", code="missing-key")
    if not [d for d in deployments if d.strip()]:
        raise UsageError(f"the platform '{name}' needs a deployment id", code="missing-key")
    for url in ("auth_url", "token_url", "keys_url"):
        checked_url(url, given[url])
    row = {k: str(given[k]).strip() for k in KEYS} | {"deployments": sorted({d.strip() for d in deployments if d.strip()})}
    with writing(engine) as connection:
        same = sa.select(LtiPlatform.name).where(LtiPlatform.issuer == row["issuer"], LtiPlatform.client_id == row["client_id"])
        other = connection.scalar(same.where(LtiPlatform.name != name))
        if other is not None:
            raise UsageError(f"issuer and client id are those of the platform '{other}'", code="exists-already")
        known = connection.scalar(sa.select(LtiPlatform.id).where(LtiPlatform.name == name))
        if known is not None:  # changed, not made anew: its accounts and links stay
            connection.execute(sa.update(LtiPlatform).where(LtiPlatform.id == known).values(**row))
            return int(known)
        made = sa.insert(LtiPlatform).returning(LtiPlatform.id)
        return int(connection.execute(made, [{"name": name, "created": datetime.now(UTC), **row}]).scalar_one())


def platforms(engine: Engine) -> list[LearningPlatform]:
    """Every registered platform, by name."""
    with engine.connect() as connection:
        rows = connection.execute(sa.select(LtiPlatform.__table__).order_by(LtiPlatform.name)).mappings()
        return [_platform_of(dict(row)) for row in rows]


def _platform_of(row: Mapping[str, Any]) -> LearningPlatform:
    texts = {k: str(row[k]) for k in KEYS}
    return LearningPlatform(id=int(row["id"]), name=str(row["name"]), deployments=tuple(row["deployments"]), **texts)


def of_moodle(address: str) -> dict[str, str]:
    """Issuer and services of a Moodle by its address."""
    base = checked_url("--moodle", address).rstrip("/")
    return {"issuer": base, "auth_url": f"{base}/mod/lti/auth.php", "token_url": f"{base}/mod/lti/token.php",
            "keys_url": f"{base}/mod/lti/certs.php"}


def find(engine: Engine, issuer: str, client_id: str = "") -> LearningPlatform | None:
    """The platform of an issuer (and client id, where it sends one); None if there is none, or no way to say which."""
    same = [p for p in platforms(engine) if p.issuer == issuer and client_id in ("", p.client_id)]
    return same[0] if len(same) == 1 else None


def remove(engine: Engine, name: str) -> None:
    """Forgets a platform, its accounts, links and scores; members stay."""
    with writing(engine) as connection:
        if connection.execute(sa.delete(LtiPlatform).where(LtiPlatform.name == name)).rowcount:
            return
        known = [str(n) for n in connection.scalars(sa.select(LtiPlatform.name))]
    raise UsageError(f"no platform '{name[:80]}'{nearest(name[:80], known)}", code="bad-name")


def key(engine: Engine) -> tuple[str, str]:
    """(id, private key as PEM) of this tool; made when it is first asked for."""
    with engine.connect() as connection:
        row = connection.execute(sa.select(LtiKey.kid, LtiKey.private).order_by(LtiKey.created.desc())).first()
    if row is not None:
        return str(row.kid), str(row.private)
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = made.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    with writing(engine) as connection:
        if connection.scalar(sa.select(sa.func.count()).select_from(LtiKey)) == 0:
            connection.execute(sa.insert(LtiKey), [{"kid": digest(pem)[:24], "private": pem, "created": datetime.now(UTC)}])
    return key(engine)


def public_keys(engine: Engine) -> dict[str, Any]:
    """The tool's public keys, as a JSON Web Key Set."""
    import json

    from cryptography.hazmat.primitives import serialization
    from jwt.algorithms import RSAAlgorithm

    key(engine)
    keys = []
    with engine.connect() as connection:
        for row in connection.execute(sa.select(LtiKey.kid, LtiKey.private)):
            private: Any = serialization.load_pem_private_key(row.private.encode(), None)
            told = json.loads(RSAAlgorithm.to_jwk(private.public_key()))
            keys.append({k: v for k, v in told.items() if k in ("kty", "n", "e")} | {"kid": row.kid, "alg": "RS256", "use": "sig"})
    return {"keys": keys}


def canvas_config(base_url: str) -> dict[str, Any]:
    """The configuration that Canvas reads by its address when a developer key is made."""
    ags = "https://purl.imsglobal.org/spec/lti-ags/scope/"
    message = {"target_link_uri": f"{base_url}/lti/launch", "text": "retrompi"}
    return {
        "title": "retrompi", "description": "Labs on historical MPI environments", "target_link_uri": f"{base_url}/lti/launch",
        "oidc_initiation_url": f"{base_url}/lti/login", "public_jwk_url": f"{base_url}/lti/keys",
        "scopes": [f"{ags}score", f"{ags}lineitem", f"{ags}lineitem.readonly", f"{ags}result.readonly"],
        "extensions": [{
            "platform": "canvas.instructure.com", "privacy_level": "public",
            "settings": {"platform": "canvas.instructure.com", "placements": [
                {"placement": "assignment_selection", "message_type": "LtiDeepLinkingRequest", **message},
                {"placement": "link_selection", "message_type": "LtiDeepLinkingRequest", **message},
            ]},
        }],
        "custom_fields": {},
    }
