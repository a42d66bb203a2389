"""Opening a course's database: an SQLite file (WAL) or PostgreSQL by URL; its transactions, and the version of its tables."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError

from retrompi.base.errors import StoreError, UsageError
from retrompi.classroom.course.schema import REVISION, VERSION_TABLE, Base
from retrompi.store.database import BUSY_SECONDS, database_url, server_engine, sqlite_engine, without_password

__all__ = ["DEFAULT", "Database", "location"]

DEFAULT = "course.db"
"""The file of a course where none is given: in the current folder."""

ENVIRONMENT = "RETROMPI_COURSE"

if importlib.util.find_spec("retrompi.classroom.lti") is not None:
    importlib.import_module("retrompi.classroom.lti.lti_schema")  # its tables are the course's as well

upgrades: Mapping[str, Callable[[Connection], str]] = {}
"""By version: what brings the tables to the next one, whose name it returns. New tables are made without one."""


def location(given: str | None) -> str:
    """The database meant: as given, else ``$RETROMPI_COURSE``, else course.db here."""
    return given or os.environ.get(ENVIRONMENT) or DEFAULT


class Database:
    """An open course database. `reading` and `transaction` give a connection within one transaction."""

    def __init__(self, engine: Engine, label: str, path: Path | None = None) -> None:
        self.engine, self.label, self.path = engine, label, path

    @classmethod
    def open(cls, where: str | Path | None = None, *, new: bool = False, fill: Callable[[Connection], None] | None = None) -> Database:
        """The database of a course; with ``new`` it is made, and must not hold a course yet. StoreError in one line otherwise.

        ``fill`` fills the new tables, in the transaction that makes them.
        """
        text = location(None if where is None else str(where))
        if "\0" in text:
            raise StoreError(f"the course {text!a} has NUL in its name", code="bad-store")
        if "://" in text and not text.startswith("sqlite:"):
            url = database_url(text)
            found = cls(server_engine(url, pooled=True), without_password(url.render_as_string(hide_password=True)))
        else:
            path = Path((database_url(text).database or "") if "://" in text else text).expanduser()
            if not new and not path.is_file():
                raise StoreError(
                    f"no course at {path}; 'retrompi course new' makes one, --database or {ENVIRONMENT} names another", code="not-found"
                )
            if new and path.exists():
                raise UsageError(f"{path} exists already; give another file by --database", code="exists-already")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                if new:
                    path.touch(mode=0o600, exist_ok=False)  # students' names and answers: nobody else's business
            except OSError as error:
                raise StoreError(f"cannot make the course {path}: {error.strerror}", code="unwritable-file") from None
            if not os.access(path, os.W_OK):
                raise StoreError(f"the course {path} is read-only", code="store-read-only")
            found = cls(sqlite_engine(path, read_only=False), str(path), path)
        found._prepare(new, fill)
        return found

    @contextmanager
    def _connect(self, *, write: bool) -> Iterator[Connection]:
        try:
            with self.engine.connect() as raw:
                connection = raw.execution_options(retrompi_write=write)
                with connection.begin():
                    yield connection
        except (DBAPIError, sqlite3.Error) as error:
            raise StoreError(self._line(error)) from error

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for reading, within one transaction."""
        with self._connect(write=False) as connection:
            yield connection

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A connection for writing: all of the body, or nothing."""
        with self._connect(write=True) as connection:
            yield connection

    def _line(self, error: Exception) -> str:
        said = without_password(str(getattr(error, "orig", None) or error).splitlines()[0].strip())
        if "locked" in said or "busy" in said:
            return f"the course {self.label} is locked by another process (waited {BUSY_SECONDS:g} s); try again"
        if "not a database" in said or "malformed" in said:
            return f"{self.label} is not a course's database ({said})"
        return f"the course {self.label} cannot be used: {said}"

    def _prepare(self, new: bool, fill: Callable[[Connection], None] | None) -> None:
        """Makes the tables, or brings them to this version. StoreError for a database of something else, or of a newer retrompi."""
        with self.transaction() as connection:
            tables = sa.inspect(connection).get_table_names()
            if VERSION_TABLE not in tables:
                taken = sorted(set(tables) & set(Base.metadata.tables)) if self.path is None else tables
                if taken:
                    raise StoreError(f"{self.label} is a database of something else (it has a table '{taken[0]}')", code="store-foreign")
                if not new:
                    raise StoreError(f"there is no course in {self.label}; 'retrompi course new' makes one", code="not-found")
                Base.metadata.create_all(connection)
                connection.execute(sa.text(f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
                connection.execute(sa.text(f"INSERT INTO {VERSION_TABLE} VALUES (:v)"), {"v": REVISION})
                if fill is not None:
                    fill(connection)
                return
            if new:
                raise UsageError(f"there is a course in {self.label} already; give another database", code="exists-already")
            revision = str(connection.scalar(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")))
            if revision != REVISION and revision not in upgrades:
                raise StoreError(f"the course {self.label} was made by a newer retrompi (version {revision}); update", code="store-newer")
            while revision != REVISION:
                revision = upgrades[revision](connection)
                connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = :v"), {"v": revision})
            if set(Base.metadata.tables) - set(tables):
                Base.metadata.create_all(connection)

    def discard(self) -> None:
        """Removes the course: what `new` made and could not fill."""
        with self.transaction() as connection:
            Base.metadata.drop_all(connection)
            connection.execute(sa.text(f"DROP TABLE IF EXISTS {VERSION_TABLE}"))
        self.close()
        if self.path is not None:
            for ending in ("", "-wal", "-shm"):
                Path(f"{self.path}{ending}").unlink(missing_ok=True)

    def close(self) -> None:
        """Closes its connections."""
        self.engine.dispose()
