"""The tables of LTI 1.3: platforms, keys, logins under way, whose account is which member, links to labs, scores to be sent.

States, nonces and tickets are kept as hashes, like the course's other secrets.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Boolean, Double, ForeignKey, Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from retrompi.classroom.course.schema import Base, Id, Utc, of_member

__all__ = ["LtiAccount", "LtiKey", "LtiLink", "LtiLogin", "LtiPlatform", "LtiScore", "LtiSeat", "LtiTicket"]


def of_platform(*, primary_key: bool = False) -> Mapped[int]:
    """A reference to a platform, whose deletion deletes the row."""
    return mapped_column(Id, ForeignKey("lti_platforms.id", ondelete="CASCADE"), index=not primary_key, primary_key=primary_key)


class LtiPlatform(Base):
    """A learning platform that may send students here."""

    __tablename__ = "lti_platforms"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(80), unique=True)
    issuer: Mapped[str] = mapped_column(String(500))
    client_id: Mapped[str] = mapped_column(String(200))
    auth_url: Mapped[str] = mapped_column(String(1000))
    token_url: Mapped[str] = mapped_column(String(1000))
    keys_url: Mapped[str] = mapped_column(String(1000))
    deployments: Mapped[list[str]] = mapped_column(JSON)
    created: Mapped[datetime] = mapped_column(Utc)

    __table_args__ = (UniqueConstraint("issuer", "client_id"),)


class LtiKey(Base):
    """A key of this tool: platforms verify by its public half what is signed here."""

    __tablename__ = "lti_keys"

    kid: Mapped[str] = mapped_column(String(64), primary_key=True)
    private: Mapped[str] = mapped_column(Text)
    created: Mapped[datetime] = mapped_column(Utc)


class LtiLogin(Base):
    """A login that was begun: what must come back, once, from the same browser."""

    __tablename__ = "lti_logins"

    state: Mapped[str] = mapped_column(String(64), primary_key=True)
    nonce: Mapped[str] = mapped_column(String(64), unique=True)
    browser: Mapped[str] = mapped_column(String(64))
    platform_id: Mapped[int] = of_platform()
    asked: Mapped[dict[str, Any]] = mapped_column(JSON)
    expires: Mapped[datetime] = mapped_column(Utc)
    used: Mapped[datetime | None] = mapped_column(Utc)


class LtiAccount(Base):
    """Whose account at a platform is which member."""

    __tablename__ = "lti_accounts"

    platform_id: Mapped[int] = of_platform(primary_key=True)
    sub: Mapped[str] = mapped_column(String(255), primary_key=True)
    member_id: Mapped[int] = of_member()


class LtiLink(Base):
    """A link in a platform's course, the lab that it leads to, and where its scores go."""

    __tablename__ = "lti_links"

    id: Mapped[int] = mapped_column(Id, primary_key=True)
    platform_id: Mapped[int] = of_platform()
    deployment: Mapped[str] = mapped_column(String(255))
    resource: Mapped[str] = mapped_column(String(255))
    lab: Mapped[str] = mapped_column(String(80), index=True)
    lineitem: Mapped[str | None] = mapped_column(String(2000))
    """The address of its column in the platform's gradebook; None: it takes no scores."""

    __table_args__ = (UniqueConstraint("platform_id", "deployment", "resource"),)


class LtiSeat(Base):
    """A student who came by a link: the scores in its lab go there."""

    __tablename__ = "lti_seats"

    link_id: Mapped[int] = mapped_column(Id, ForeignKey("lti_links.id", ondelete="CASCADE"), primary_key=True)
    member_id: Mapped[int] = of_member(primary_key=True)
    sub: Mapped[str] = mapped_column(String(255))


class LtiTicket(Base):
    """A way on from a page within the platform's frame, used once: into a new window, or the choice of a lab."""

    __tablename__ = "lti_tickets"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    data: Mapped[dict[str, Any]] = mapped_column(JSON)
    expires: Mapped[datetime] = mapped_column(Utc)


class LtiScore(Base):
    """The newest score of a student for a link; ``sent`` is None until the platform has it. A newer one replaces it."""

    __tablename__ = "lti_scores"

    link_id: Mapped[int] = mapped_column(Id, ForeignKey("lti_links.id", ondelete="CASCADE"), primary_key=True)
    member_id: Mapped[int] = of_member(primary_key=True)
    points: Mapped[float] = mapped_column(Double)
    of: Mapped[float] = mapped_column(Double)
    pending: Mapped[bool] = mapped_column(Boolean)
    """Whether a teacher has answers to mark yet."""
    at: Mapped[datetime] = mapped_column(Utc)
    due: Mapped[datetime] = mapped_column(Utc)
    tries: Mapped[int] = mapped_column(Integer)
    sent: Mapped[datetime | None] = mapped_column(Utc)
    error: Mapped[str] = mapped_column(Text)
