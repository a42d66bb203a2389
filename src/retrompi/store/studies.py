"""The part of the store for studies: their definitions, their points, and the lock of a running study."""

from __future__ import annotations

import fcntl
import os
import platform as _machine
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from retrompi.base.errors import StoreError, UsageError, nearest
from retrompi.store.schema import RUN, STUDY, STUDY_POINT
from retrompi.store.texts import fit_row

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Engine

__all__ = ["Studies", "this_process", "time_text"]

Rows = list[dict[str, Any]]
_FOUR_BYTES = 1 << 32
_FEW = ("outcome", "reason")
"""Columns that have the same few texts in a million rows."""
_STUDY_LOCK = 78360175
_HOLDER = """SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'advisory' AND l.granted AND l.classid = :class AND l.objid = CAST(:key AS oid) AND a.datname = current_database()"""


class Studies:
    """The methods of `Store` for studies."""

    label: str
    read_only: bool
    _engine: Engine
    _connect: Callable[..., AbstractContextManager[Connection]]
    _line: Callable[[Exception], str]

    def add_study(self, name: str, digest: str, definition: Mapping[str, Any]) -> int:
        """The id of the study with this hash; the study is created or renamed if necessary."""
        from retrompi.store.identity import code_version

        with self._connect(write=True) as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(78360174)"))
            known = connection.scalar(sa.select(STUDY.c.id).where(STUDY.c.hash == digest))
            texts = fit_row(STUDY, {"name": name, "definition": dict(definition), "code_version": code_version()})
            if known is not None:
                connection.execute(sa.update(STUDY).where(STUDY.c.id == known).values(**texts))
                return int(known)
            row = {**texts, "hash": digest, "created": datetime.now(UTC)}
            return int(connection.execute(sa.insert(STUDY).returning(STUDY.c.id), [row]).scalar_one())

    def find_study(self, digest: str) -> int | None:
        """The id of the study with this hash, or None."""
        with self._connect() as connection:
            return connection.scalar(sa.select(STUDY.c.id).where(STUDY.c.hash == digest))

    def studies(self) -> Rows:
        """Rows id, name, hash, created, code_version, definition, done (points that have a row) and errors, oldest first."""
        counts = (
            sa.select(
                STUDY_POINT.c.study_id,
                sa.func.count().label("done"),
                sa.func.sum(sa.case((STUDY_POINT.c.outcome == "error", 1), else_=0)).label("errors"),
            )
            .group_by(STUDY_POINT.c.study_id)
            .subquery()
        )
        told = [sa.func.coalesce(counts.c[name], 0).label(name) for name in ("done", "errors")]
        query = (
            sa.select(*STUDY.columns, *told)
            .outerjoin(counts, counts.c.study_id == STUDY.c.id)
            .order_by(STUDY.c.id)
        )
        with self._connect() as connection:
            rows = [dict(r) for r in connection.execute(query).mappings()]
        for row in rows:
            row["created"] = time_text(row["created"])
            row["errors"] = int(row["errors"])
        return rows

    def study(self, which: int | str) -> dict[str, Any]:
        """One row of `studies`: by its number, its name (the newest of that name) or a prefix of its hash (at least 4 digits)."""
        rows = self.studies()
        text = str(which)
        for fits in (
            lambda r: str(r["id"]) == text,
            lambda r: r["name"] == text,
            lambda r: len(text) >= 4 and r["hash"].startswith(text),
        ):
            found = [r for r in rows if fits(r)]
            if found:
                return found[-1]
        names = [str(r["name"]) for r in rows]
        raise UsageError(f"no study '{text}' in {self.label}{nearest(text, names) if names else ': it has none'}", code="unknown-study")

    def study_versions(self, study_id: int) -> Rows:
        """The different rows code_version, network, simgrid_version of a study's runs, in that order."""
        columns = (RUN.c.code_version, RUN.c.network, RUN.c.simgrid_version)
        query = sa.select(*columns).join(STUDY_POINT, STUDY_POINT.c.run_id == RUN.c.id).where(STUDY_POINT.c.study_id == study_id)
        with self._connect() as connection:
            return [dict(r) for r in connection.execute(query.distinct().order_by(*columns)).mappings()]

    def delete_study(self, study_id: int) -> int:
        """Deletes a study and keeps its runs. Returns the number of its points."""
        with self._connect(write=True) as connection:
            count = connection.execute(sa.delete(STUDY_POINT).where(STUDY_POINT.c.study_id == study_id)).rowcount
            connection.execute(sa.delete(STUDY).where(STUDY.c.id == study_id))
        return int(count)

    def put_study_points(self, study_id: int, rows: Iterable[Mapping[str, Any]]) -> None:
        """Rows position, axes, identity, run_id, outcome, reason, wall_s; existing rows are replaced."""
        values = [fit_row(STUDY_POINT, {"study_id": study_id, **row}) for row in rows]
        if not values:
            return
        with self._connect(write=True) as connection:
            connection.execute(_upsert(connection.dialect.name), values)

    def add_study_points(self, study_id: int, rows: Iterable[Mapping[str, Any]]) -> int:
        """`put_study_points`, but a point without a run does not take the place of another; returns how many were new."""
        given = {int(row["position"]): row for row in rows}
        query = sa.select(STUDY_POINT.c.position, STUDY_POINT.c.run_id).where(
            STUDY_POINT.c.study_id == study_id, STUDY_POINT.c.position.between(min(given, default=0), max(given, default=0))
        )
        with self._connect() as connection:
            known = {int(position): run_id for position, run_id in connection.execute(query)}
        better = [row for position, row in given.items() if position not in known or row["run_id"] not in (None, known[position])]
        self.put_study_points(study_id, better)
        return len(given.keys() - known.keys())

    def study_points(self, study_id: int) -> Rows:
        """Rows position, axes, identity, run_id, outcome, reason, wall_s, and of its run time_s, ranks and messages; by position."""
        names = ("position", "axes", "identity", "run_id", "outcome", "reason", "wall_s")
        columns = [STUDY_POINT.c[name] for name in names]
        query = (
            sa.select(*columns, RUN.c.time_s, RUN.c.ranks, RUN.c.messages)
            .outerjoin(RUN, RUN.c.id == STUDY_POINT.c.run_id)
            .where(STUDY_POINT.c.study_id == study_id)
            .order_by(STUDY_POINT.c.position)
        )
        with self._connect() as connection:
            found = connection.execute(query.execution_options(yield_per=1000)).mappings()
            return [{k: intern(v) if isinstance(v, str) and k in _FEW else v for k, v in r.items()} for r in found]

    def study_done(self, study_id: int) -> dict[int, str]:
        """Position -> identity of the completed points: all that have a row with a run."""
        query = sa.select(STUDY_POINT.c.position, STUDY_POINT.c.identity)
        query = query.where(STUDY_POINT.c.study_id == study_id, STUDY_POINT.c.run_id.is_not(None))
        with self._connect() as connection:
            return {int(position): identity for position, identity in connection.execute(query)}

    def study_cautions(self, study_id: int) -> list[Any]:
        """The stored cautions of the runs of a study's points, for each point that has some."""
        query = sa.select(RUN.c.facts["cautions"]).join(STUDY_POINT, STUDY_POINT.c.run_id == RUN.c.id)
        query = query.where(STUDY_POINT.c.study_id == study_id, RUN.c.facts["cautions"].as_string().is_not(None))
        with self._connect() as connection:
            return [some for (some,) in connection.execute(query)]

    @contextmanager
    def study_lock(self, digest: str) -> Iterator[None]:
        """Lock of the process that runs the study; StoreError when another holds it. Released whenever the process exits."""
        if self._engine.dialect.name == "postgresql":
            with self._server_lock(int(digest[:8], 16) - _FOUR_BYTES // 2):
                yield
            return
        path = Path(f"{self.label}.study-{digest[:12]}.lock")
        with _lock(path):
            yield

    @contextmanager
    def _server_lock(self, key: int) -> Iterator[None]:
        """A lock held by a separate session, which the server releases with the session."""
        try:
            connection = self._engine.connect()
            with connection.begin():  # the lock is the session's, not the transaction's
                free = connection.scalar(sa.text("SELECT pg_try_advisory_lock(:class, :key)"), {"class": _STUDY_LOCK, "key": key})
                who = None if free else connection.scalar(sa.text(_HOLDER), {"class": _STUDY_LOCK, "key": key % _FOUR_BYTES})
        except DBAPIError as error:
            raise StoreError(self._line(error)) from error
        try:
            if not free:
                raise StoreError(_busy(str(who or "").removeprefix("retrompi, ")), code="store-busy")
            yield
        finally:
            # A lost server has released the lock; SQLAlchemy would report the failed cleanup on stderr.
            if not connection.closed:
                connection.invalidate()
                connection.close()


def time_text(made: datetime) -> str:
    """A stored time as JSON can carry it: text in UTC (SQLite drops the time zone, so it is added here)."""
    return (made.replace(tzinfo=UTC) if made.tzinfo is None else made.astimezone(UTC)).isoformat(timespec="seconds")


def this_process() -> str:
    """Description of this process for others waiting on its lock."""
    return f"process {os.getpid()} on {_machine.node() or 'this host'}"


def _busy(who: str) -> str:
    return f"this study is being run by another process{f' ({who})' if who else ''}; wait for it, or stop it"


@cache
def _upsert(dialect: str) -> sa.Insert:
    insert: Any = import_module(f"sqlalchemy.dialects.{dialect}").insert(STUDY_POINT)
    new = {k: insert.excluded[k] for k in ("axes", "identity", "run_id", "outcome", "reason", "wall_s")}
    statement: sa.Insert = insert.on_conflict_do_update(index_elements=["study_id", "position"], set_=new)
    return statement


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """An exclusive lock on a file that exists only while the lock is held."""
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(f"cannot lock the study by {path}: {error.strerror}") from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            who = os.read(handle, 400).decode(errors="replace").strip()
            os.close(handle)
            raise StoreError(_busy(who), code="store-busy") from None
        # The previous holder may have removed the file between our open and our lock.
        with suppress(OSError):
            if os.stat(path).st_ino == os.fstat(handle).st_ino:
                break
        os.close(handle)
    try:
        os.ftruncate(handle, 0)
        os.write(handle, this_process().encode())
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)
