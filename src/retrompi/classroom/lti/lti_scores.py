"""Scores for learning platforms: an outbox in the course's database, and the thread that empties it.

A score is put there in the transaction that changed it, so that none is lost; of several for one link the newest is sent. What a platform
does not take is tried again, later and later; what it refuses for good is said in `pending`.
"""

from __future__ import annotations

import json
import logging
import threading
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from retrompi.classroom.course.schema import Member
from retrompi.classroom.lti.lti_platforms import platforms, writing
from retrompi.classroom.lti.lti_schema import LtiLink, LtiScore, LtiSeat
from retrompi.classroom.lti.lti_tokens import LtiError, access_token, call, forget_token

__all__ = ["Sender", "outbox", "record", "send_due", "waiting"]

log = logging.getLogger("retrompi.course")

SCOPE = "https://purl.imsglobal.org/spec/lti-ags/scope/score"
FIRST_S, LONGEST_S = 20.0, 3600.0
"""Time until the second try; it doubles up to the longest."""
EVERY_S = 5.0
MOST_TRIES = 60
"""About two days."""
AT_ONCE = 50


def record(connection: Connection, member: int, lab: str, points: float, of: float, pending: bool, at: datetime) -> None:
    """Puts a student's score into the outbox, for every link to the lab by which the student has come. Nothing for others."""
    query = sa.select(LtiSeat.link_id).join(LtiLink, LtiLink.id == LtiSeat.link_id)
    for link in connection.scalars(query.where(LtiSeat.member_id == member, LtiLink.lab == lab, LtiLink.lineitem.is_not(None))).all():
        same = (LtiScore.link_id == link, LtiScore.member_id == member)
        known = connection.execute(sa.select(LtiScore.at, LtiScore.points, LtiScore.of, LtiScore.pending).where(*same)).first()
        if known is not None and (known.points, known.of, known.pending) == (points, of, pending):
            continue
        # A platform drops a score that is not newer than the last: times of one student's scores only rise.
        when = at if known is None else max(at, known.at + timedelta(milliseconds=1))
        row = {"points": points, "of": of, "pending": pending, "at": when, "due": at, "tries": 0, "sent": None, "error": ""}
        if known is None:
            connection.execute(sa.insert(LtiScore), [{"link_id": link, "member_id": member, **row}])
        else:
            connection.execute(sa.update(LtiScore).where(*same).values(**row))


def outbox(engine: Engine) -> list[dict[str, Any]]:
    """Scores that still have to be sent to the platforms, with the number of attempts and the last error."""
    query = sa.select(LtiScore.__table__).where(LtiScore.sent.is_(None)).order_by(LtiScore.due)
    with engine.connect() as connection:
        return [dict(row) for row in connection.execute(query).mappings()]


def waiting(engine: Engine) -> list[dict[str, Any]]:
    """The outbox for display: student, lab, points, of, tries, due (UTC), error."""
    query = (
        sa.select(Member.student, LtiLink.lab, LtiScore.points, LtiScore.of, LtiScore.tries, LtiScore.due, LtiScore.error)
        .join(LtiLink, LtiLink.id == LtiScore.link_id).join(Member, Member.id == LtiScore.member_id)
        .where(LtiScore.sent.is_(None)).order_by(LtiScore.due)
    )
    with engine.connect() as connection:
        return [{**row, "due": row["due"].strftime("%Y-%m-%d %H:%M:%S")} for row in connection.execute(query).mappings()]


def send_due(engine: Engine, now: datetime | None = None) -> tuple[int, int]:
    """(sent, failed): sends what is due, one attempt each."""
    now = now or datetime.now(UTC)
    query = (
        sa.select(LtiScore.__table__, LtiLink.lineitem, LtiLink.platform_id, LtiSeat.sub)
        .join(LtiLink, LtiLink.id == LtiScore.link_id)
        .join(LtiSeat, sa.and_(LtiSeat.link_id == LtiScore.link_id, LtiSeat.member_id == LtiScore.member_id))
        .where(LtiScore.sent.is_(None), LtiScore.due <= now, LtiScore.tries < MOST_TRIES)
        .order_by(LtiScore.due).limit(AT_ONCE)
    )
    with engine.connect() as connection:
        rows = [dict(row) for row in connection.execute(query).mappings()]
    known = {p.id: p for p in platforms(engine)} if rows else {}
    sent = failed = 0
    for row in rows:
        error = _send_score(engine, known[row["platform_id"]], row)
        wait = min(FIRST_S * 2 ** row["tries"], LONGEST_S)
        values: dict[str, Any] = {"sent": now, "error": ""}
        if error:
            values = {"tries": row["tries"] + 1, "due": now + timedelta(seconds=wait), "error": error[:500]}
        # Only if no newer score has taken its place meanwhile.
        same = (LtiScore.link_id == row["link_id"], LtiScore.member_id == row["member_id"], LtiScore.at == row["at"])
        with writing(engine) as connection:
            connection.execute(sa.update(LtiScore).where(*same).values(**values))
        sent, failed = sent + (not error), failed + bool(error)
    return sent, failed


def _send_score(engine: Engine, platform: Any, row: dict[str, Any]) -> str:
    """Sends a score; returns why it was not taken, or ""."""
    parts = urlsplit(row["lineitem"])
    url = urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/scores"))  # before a query, which Moodle's addresses have
    score = {
        "userId": row["sub"], "scoreGiven": round(row["points"], 4), "scoreMaximum": row["of"],
        "timestamp": row["at"].astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "activityProgress": "Submitted" if row["pending"] else "Completed",
        "gradingProgress": "PendingManual" if row["pending"] else "FullyGraded",
    }
    try:
        for attempt in range(2):
            token = access_token(engine, platform, SCOPE)
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/vnd.ims.lis.v1.score+json"}
            status, content = call("POST", url, headers=headers, data=json.dumps(score))
            if status != 401 or attempt:
                break
            forget_token(platform)  # the token was withdrawn
    except LtiError as error:
        return str(error)
    if status < 300 or status == 409:  # 409: the platform has a newer one
        return ""
    return f"the platform answers {status}: {' '.join(content[:200].decode('utf-8', 'replace').split())}"


class Sender:
    """Empties the outbox while the course is served."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lti scores", daemon=True)

    def start(self) -> None:
        """Begins to send."""
        self._thread.start()

    def stop(self) -> None:
        """Ends; what is not sent is sent the next time."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join(timeout=15)

    def _run(self) -> None:
        while not self._ending.wait(EVERY_S):
            try:
                send_due(self._engine)
            except Exception as error:  # the thread has to outlive whatever a platform or the database does
                log.warning("scores were not sent: %s", type(error).__name__)
