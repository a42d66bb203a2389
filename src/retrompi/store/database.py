"""Opening, upgrading, reading and writing the store (SQLAlchemy 2; SQLite in WAL mode, PostgreSQL by URL)."""

from __future__ import annotations

import json
import logging
import os
import re
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypedDict, Unpack
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from retrompi.base.errors import RetrompiError, StoreError, UsageError
from retrompi.spec.declare.outcome import Outcome
from retrompi.store.copies import Copies
from retrompi.store.identity import RunSpec
from retrompi.store.ids import free_ids, once_at_a_time
from retrompi.store.kept import PART_OF, Kept, number_rows, plain
from retrompi.store.location import default_path
from retrompi.store.schema import ANATOMY, MEASURED, POINT, RANK_TIME, REVISION, RUN, VERDICT, VERDICT_BATCH, VERSION_TABLE
from retrompi.store.studies import Studies, this_process, time_text
from retrompi.store.tags import Tags
from retrompi.store.texts import JsonText, fit_row, to_json

__all__ = ["BUSY_SECONDS", "Details", "Store", "database_url", "open_store", "server_engine",
           "sqlite_engine", "without_password"]

BUSY_SECONDS = 5.0
"""How long to wait for a locked SQLite store before reporting it."""

_CACHE_KIB = 256 << 10
"""Most memory for the pages of an SQLite store, used as far as the store is large."""
_CHECKPOINT_PAGES = 16384
"""Pages of the journal beside an SQLite store (64 MiB), before they are written into it."""

CONNECT_SECONDS = 5
"""Time limit for a database server's answer."""

Rows = list[dict[str, Any]]

_ONE_AT_A_TIME = threading.Lock()
"""Alembic keeps what it works on in globals, so that two threads cannot create stores at once."""
OPENED: deque[Store] = deque(maxlen=4)
"""The stores opened last, which are looked at when an error has no known cause."""


def open_store(location: str | Path | None = None, *, write: bool = True) -> Store:
    """Open (and on first use create, and after an update upgrade) the store.

    ``location`` is a path, a database URL (``postgresql+psycopg://...``) or None for ``$RETROMPI_STORE`` and then
    the default path. With ``write`` False a store that cannot be written is still opened for reading. Raises
    StoreError with one line when the store is missing, read-only, locked, not a store, or newer than this code.
    """
    chosen = location if location is not None else os.environ.get("RETROMPI_STORE") or None
    text = str(chosen) if chosen is not None else str(default_path())
    if "\0" in text:
        raise StoreError(f"the store {text!a} has NUL in its name; choose another with --store", code="bad-store")
    if "://" in text:
        url = database_url(text)
        if url.get_backend_name() != "sqlite":
            return Store(server_engine(url), without_password(url.render_as_string(hide_password=True)))
        if not url.database or url.database == ":memory:":
            raise StoreError(f"the store {without_password(text)} has no file; give sqlite:///PATH or a plain path", code="bad-store")
        text = url.database
    path = Path(text).expanduser()
    if not write and chosen is not None and not path.exists():
        raise StoreError(f"no store at {path}; a run makes one", code="not-found")
    if path.exists() and not path.is_file() and not path.is_dir():
        raise StoreError(f"the store {path} is no file, but a device, a socket or a named pipe", code="bad-store")
    if path.is_dir():
        raise StoreError(f"the store {path} is a folder; give the path of a file in it", code="unreadable-file")
    writable = _writable(path)
    if write or not path.exists():
        if not writable:
            raise StoreError(
                f"the store {path} is read-only; choose another with --store or RETROMPI_STORE, or allow writing to it",
                code="store-read-only",
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot make the folder of the store {path}: {error.strerror}", code="unwritable-file") from None
    return Store(sqlite_engine(path, read_only=not writable), str(path), read_only=not writable, path=path)


def database_url(text: str) -> URL:
    """The URL in a text; StoreError in one line if it is none."""
    try:
        url = make_url(text)
        if any("@" in part for part in (url.host or "", url.database or "", url.username or "")):
            raise StoreError(f"the store {without_password(text)}: an @, a : or a / of a user or a password is written %40, %3A or %2F",
                             code="bad-store")
        return url
    except (ArgumentError, ValueError):
        raise StoreError(f"the store {without_password(text)} is neither a path nor a database URL", code="bad-store") from None


def without_password(text: str) -> str:
    """A store's URL, well formed or not, without what may be a password: between the user and the last ``@``, and in its query."""
    head, slashes, rest = text.partition("://")
    if not slashes:
        return text
    who, at, where = rest.rpartition("@")
    user, colon, _ = who.partition(":")
    where = re.sub(r"(?i)([?&;][^=&;]*(?:pass|secret|token|key)[^=&;]*=)[^&;]*", r"\1***", where)
    return f"{head}{slashes}{user}{colon and ':***'}{at}{where}"


def _writable(path: Path) -> bool:
    """Whether the file, or the nearest existing parent folder, is writable.

    Mode bits are respected even for root, who could write anyway: a read-only mode is intentional.
    """
    place = path
    while not place.exists():
        if place.parent == place:
            return False
        place = place.parent
    # WAL creates files beside the store, so the folder must be writable as well.
    places = [place, place.parent] if place.is_file() else [place]
    try:
        return all(os.access(p, os.W_OK) and p.stat().st_mode & 0o222 for p in places)
    except OSError:
        return False


def sqlite_engine(path: Path, *, read_only: bool) -> Engine:
    """The engine of a database in a file: WAL, foreign keys on; a transaction with the option ``retrompi_write`` takes the lock at once."""
    def connect() -> sqlite3.Connection:
        # isolation_level None: Python's own implicit transactions leave schema changes outside of them.
        mode = "mode=ro&immutable=1" if read_only else "mode=rwc"
        target = f"file:{quote(str(path.resolve()))}?{mode}"
        connection = sqlite3.connect(target, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        connection.execute("PRAGMA foreign_keys = ON")
        if not read_only:
            _write_ahead(connection)
            connection.execute("PRAGMA synchronous = NORMAL")
            # Of a million runs: identities are written all over their index, whose pages should neither be read nor written each time.
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        return connection

    # No pool: an open connection would be carried into forked workers.
    engine = sa.create_engine("sqlite://", creator=connect, poolclass=NullPool, json_serializer=to_json)

    def begin(connection: Connection) -> None:
        immediate = connection.get_execution_options().get("retrompi_write", False)
        # A writer takes the lock at once: upgrading a read lock later can fail without waiting.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    event.listen(engine, "begin", begin)
    return engine


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Put a SQLite store into WAL mode, which stays with the file."""
    deadline = time.monotonic() + BUSY_SECONDS
    while connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return  # a file system without WAL support keeps its mode, which is slower but equally safe
        except sqlite3.OperationalError as error:
            # SQLite does not wait for this lock by itself: another process is creating the same store.
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def server_engine(url: URL, *, pooled: bool = False) -> Engine:
    """The engine of a database server; ``pooled`` keeps connections open, for a process that serves many requests and does not fork."""
    if url.get_backend_name() != "postgresql":  # SQLAlchemy supports others, whose drivers are not installed
        raise StoreError(f"no database kind '{url.drivername}'; valid: sqlite, postgresql+psycopg", code="bad-store")
    if url.drivername.endswith("+psycopg"):
        # It also logs on stderr what it raises; the error is reported in one line by us.
        logging.getLogger("psycopg").addHandler(logging.NullHandler())
        # The name identifies the holder of a lock to others; PostgreSQL keeps 63 bytes of it.
        ours = {"connect_timeout": str(CONNECT_SECONDS), "application_name": f"retrompi, {this_process()}"[:63]}
        url = url.update_query_dict({name: value for name, value in ours.items() if name not in url.query})
    try:
        more: dict[str, Any] = {"pool_pre_ping": True, "pool_size": 16} if pooled else {"poolclass": NullPool}
        return sa.create_engine(url, json_serializer=to_json, **more)
    except NoSuchModuleError:
        raise StoreError(f"no database kind '{url.drivername}'; valid: sqlite, postgresql+psycopg", code="bad-store") from None
    except ModuleNotFoundError as error:
        raise StoreError(f"a store at '{url.drivername}' needs the package {error.name}: pip install it", code="missing-tool") from None


def _while_converting(error: BaseException, *, callers: bool) -> bool:
    """Whether an error arose where a database's values become ours: the innermost frame has no code of this project; in a body that is
    not the store's (``callers``), which may raise anything, SQLAlchemy is under way as well."""
    under_way, innermost = False, ""
    trace = error.__traceback__
    while trace is not None:
        innermost = trace.tb_frame.f_globals.get("__name__", "")
        under_way = innermost.startswith("sqlalchemy.") or (under_way and not innermost.startswith("retrompi."))
        trace = trace.tb_next
    return under_way if callers else not innermost.startswith("retrompi.")


@dataclass(frozen=True)
class Details:
    """A run's row (`Store.run`), with what `Store.points`, `Store.ranks` and `Store.anatomy` give."""

    run: dict[str, Any]
    points: Rows = field(default_factory=list)
    ranks: Rows = field(default_factory=list)
    anatomy: Rows = field(default_factory=list)


_TOGETHER = 500
"""Maximum number of values in one query; SQLite's own limit is 999 in old versions."""


def _parts(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (values[i : i + _TOGETHER] for i in range(0, len(values), _TOGETHER))


class Matching(TypedDict, total=False):
    """Search criteria for runs; None, or left out, matches everything."""

    model: str | None
    platform: str | None
    mode: str | None
    kind: str | None
    outcome: str | None


class Store(Studies, Tags, Copies):
    """An open store. Every method is one transaction; rows come back as dicts, oldest first."""

    def __init__(self, engine: Engine, label: str, *, read_only: bool = False, path: Path | None = None) -> None:
        self.label = label
        self.path = path
        """The file of an SQLite store."""
        self.read_only = read_only
        self._engine = engine
        self._own = threading.local()
        self._upgrade()
        OPENED.append(self)

    # -- opening ---------------------------------------------------------------------------------------------------

    @contextmanager
    def _connect(self, *, write: bool = False) -> Iterator[Connection]:
        if write and self.read_only:
            raise StoreError(f"the store {self.label} is read-only; choose another with --store or RETROMPI_STORE", code="store-read-only")
        joined: Connection | None = getattr(self._own, "transaction", None)
        if joined is not None:
            yield joined
            return
        held: Connection | None = getattr(self._own, "held", None)
        try:
            with nullcontext(held) if held is not None else self._engine.connect() as raw:
                assert raw is not None
                connection = raw.execution_options(retrompi_write=write)
                with connection.begin():
                    yield connection
        except RetrompiError:
            raise
        except (DBAPIError, sqlite3.Error) as error:
            raise StoreError(self._line(error)) from error
        except SQLAlchemyError as error:
            raise StoreError(f"the store {self.label} failed: {str(error).splitlines()[0]}") from error
        except (ValueError, TypeError, LookupError, ArithmeticError) as error:
            if not _while_converting(error, callers=error is getattr(self._own, "of_body", None)):
                raise
            raise self.find_damage() or StoreError(f"the store {self.label} holds a value that cannot be read: {error}") from error

    def find_damage(self) -> StoreError | None:
        """Damage of this store's file, where it does not agree with the schema; for errors of unknown cause, since all is read."""
        if self.path is None:
            return None
        from retrompi.store.damage import first_damage

        found = first_damage(self.path)
        return StoreError(f"the store {self.label} is damaged: {found}", code="damaged-store") if found else None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All store operations of this thread in the body form one atomic write transaction."""
        with self._connect(write=True) as connection:
            self._own.transaction = connection
            try:
                yield
            except Exception as error:
                self._own.of_body = error
                raise
            finally:
                self._own.transaction = None

    @contextmanager
    def hold_connection(self) -> Iterator[None]:
        """Keeps one connection for this thread in the body: opening one takes longer than a small transaction. Do not fork in the body."""
        try:
            connection = self._engine.connect()
        except (DBAPIError, sqlite3.Error) as error:
            raise StoreError(self._line(error)) from error
        with connection:
            self._own.held = connection
            try:
                yield
            finally:
                self._own.held = None

    def _line(self, error: Exception) -> str:
        said = str(getattr(error, "orig", None) or error).splitlines()[0].strip()
        if "locked" in said or "busy" in said:
            return f"the store {self.label} is locked by another process (waited {BUSY_SECONDS:g} s); try again"
        said = without_password(said)
        if "not a database" in said or "malformed" in said:
            return f"{self.label} is not a retrompi store ({said}); choose another with --store"
        if "readonly" in said or "read-only" in said:
            return f"the store {self.label} is read-only; choose another with --store or RETROMPI_STORE"
        if "is full" in said or "No space left" in said:
            return f"the store {self.label} has no room left: {said}"
        if "disk I/O error" in said:
            return f"the store {self.label} cannot be written: {said} (a limit on the size of files, or a broken disk)"
        return f"the store {self.label} cannot be used: {said}"

    def _revision(self, connection: Connection) -> str | None:
        """The migration the store is at; None for an empty database. Raises StoreError for a foreign database."""
        tables = sa.inspect(connection).get_table_names()
        if VERSION_TABLE in tables:
            found = connection.scalar(sa.text(f"SELECT version_num FROM {VERSION_TABLE}"))
            return None if found is None else str(found)
        if tables and connection.dialect.name == "sqlite":
            raise StoreError(f"{self.label} is a database of something else (it has a table '{tables[0]}')", code="store-foreign")
        return None

    def _upgrade(self) -> None:
        with self._connect() as connection:
            revision = self._revision(connection)
        if revision == REVISION:
            return
        if self.read_only:
            state = "empty" if revision is None else f"of an older version ({revision})"
            raise StoreError(f"the store {self.label} is {state} and read-only; allow writing to it once", code="store-read-only")
        if revision is not None:
            from retrompi.store.migrate import known_revisions

            if revision not in known_revisions():
                raise StoreError(f"the store {self.label} was made by a newer retrompi (revision {revision}); update", code="store-newer")
        with _ONE_AT_A_TIME, self._connect(write=True) as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(78360172)"))
            revision = self._revision(connection)  # another process may have done it while this one waited for the lock
            if revision == REVISION:
                return
            if revision is None and self.path is not None:
                for statement in _NEW_STORE.read_text(encoding="utf-8").split(";\n"):
                    connection.exec_driver_sql(statement)
            else:
                from retrompi.store.migrate import upgrade

                upgrade(connection)

    # -- runs ------------------------------------------------------------------------------------------------------

    def find_run(self, run: str | RunSpec) -> int | None:
        """The id of the newest run with this identity or specification, or None."""
        identity = run if isinstance(run, str) else run.identity
        with self._connect() as connection:
            found: int | None = connection.scalar(_NEWEST, {"identity": identity})
        return found

    def find_runs(self, identities: Sequence[str]) -> dict[str, int]:
        """`find_run` for many identities in one transaction: identity -> id; those that are not stored are left out."""
        with self._connect() as connection:
            return _newest(connection, identities)

    def endings(self, run_ids: Sequence[int]) -> dict[int, tuple[str, str]]:
        """Id -> outcome and, of runs that did not complete, the reason."""
        found: dict[int, tuple[str, str]] = {}
        with self._connect() as connection:
            for some in _parts(run_ids):
                query = sa.select(RUN.c.id, RUN.c.outcome, RUN.c.detail).where(RUN.c.id.in_(some))
                found |= {int(i): (o, "" if o == Outcome.COMPLETED else d) for i, o, d in connection.execute(query)}
        return found

    def details(self, run_ids: Sequence[int]) -> dict[int, Details]:
        """Id -> row, points, ranks and stages of many runs, in one transaction; ids without a run are left out."""
        found: dict[int, Details] = {}
        with self._connect() as connection:
            for some in _parts(run_ids):
                rows = connection.execute(sa.select(*RUN.columns).where(RUN.c.id.in_(some))).mappings()
                found |= {int(row["id"]): Details(_readable(row)) for row in rows}
                for table, name in ((POINT, "points"), (RANK_TIME, "ranks"), (ANATOMY, "anatomy")):
                    columns = [c for c in table.columns if c.name != "id"]
                    query = sa.select(*columns).where(table.c.run_id.in_(some)).order_by(table.c.id)
                    for row in connection.execute(query).mappings():
                        hanging = dict(row)
                        getattr(found[hanging.pop("run_id")], name).append(hanging)
        return found

    def add_run(
        self,
        spec: RunSpec,
        result: Any = None,
        *,
        points: Iterable[Mapping[str, Any]] = (),
        ranks: Iterable[Mapping[str, Any]] = (),
        anatomy: Iterable[Mapping[str, Any]] = (),
        fresh: bool = False,
    ) -> int:
        """Store one run with its points, ranks and stages in one transaction, as `keep` does; returns its id.

        ``result`` is the engine's Result or a mapping with the same names; values without a column (marks,
        waits, start-up steps) are kept in ``facts``. A row of ``anatomy`` also has the ``size_B`` of its message.
        """
        return self.keep(Kept.of(spec, result, points, ranks, anatomy), fresh=fresh)

    def keep(self, kept: Kept, *, fresh: bool = False) -> int:
        """Like `add_run`, for a collected run. A simulated run is stored once: when another process has stored an identical one
        meanwhile, the id of that one is returned; with ``fresh``, this run takes its place under the same id. Every measurement
        (`MEASURED`) is stored.
        """
        return self.keep_all([kept], fresh=fresh)[0]

    def keep_all(self, runs: Sequence[Kept], *, fresh: bool = False) -> list[int]:
        """`keep` for many runs in one transaction, with a statement for each table rather than for each row; the id of each."""
        if not runs:
            return []
        now = datetime.now(UTC)
        texts: dict[int, tuple[Any, JsonText]] = {}
        rows = [fit_row(RUN, {**_NOT_KNOWN, **kept.row, "created": now}, texts) for kept in runs]
        with self._connect(write=True) as connection:
            once = list({row["identity"] for row in rows if row["kind"] not in MEASURED})
            if once:
                once_at_a_time(connection)
            known = _newest(connection, once)
            free = free_ids(connection, len(rows))
            ids: list[int] = []
            new: list[dict[str, Any]] = []
            written: list[tuple[int, Kept]] = []
            for row, kept in zip(rows, runs, strict=True):
                run_id = known.get(row["identity"]) if row["kind"] not in MEASURED else None
                if run_id is None:
                    run_id = next(free)
                    new.append({**row, "id": run_id})
                    written.append((run_id, kept))
                    if row["kind"] not in MEASURED:
                        known[row["identity"]] = run_id
                elif fresh:
                    _insert_runs(connection, new)  # it may be one of them
                    new = []
                    _replace_run(connection, run_id, row)
                    written = [*((i, k) for i, k in written if i != run_id), (run_id, kept)]
                ids.append(run_id)
            _insert_runs(connection, new)
            _insert(connection, POINT, ((run_id, kept.points) for run_id, kept in written))
            _insert(connection, RANK_TIME, ((run_id, kept.ranks) for run_id, kept in written))
            _insert(connection, ANATOMY, ((run_id, number_rows(kept.anatomy)) for run_id, kept in written))
        return ids

    def alike(self, spec: RunSpec, limit: int = 100) -> tuple[float, int]:
        """(mean, number) of the wall times, seconds, of the newest runs of the same program and model, with any overrides."""
        same = (RUN.c.kind == spec.kind, RUN.c.model == spec.model, RUN.c.mode == spec.mode, RUN.c.fidelity == spec.fidelity,
                RUN.c.trace_hash == spec.trace_hash)
        newest = sa.select(RUN.c.wall_s).where(*same).order_by(RUN.c.id.desc()).limit(limit).subquery()
        with self._connect() as connection:
            mean, count = connection.execute(sa.select(sa.func.avg(newest.c.wall_s), sa.func.count())).one()
        return float(mean or 0.0), int(count)

    def run(self, run_id: int) -> dict[str, Any]:
        """One run's row; raises UsageError when there is none."""
        with self._connect() as connection:
            row = connection.execute(_RUN, {"run_id": run_id}).mappings().first()
            if row is not None:
                return _readable(row)
            known = connection.execute(sa.select(sa.func.min(RUN.c.id), sa.func.max(RUN.c.id))).one()
        some = f"ids run from {known[0]} to {known[1]}" if known[0] is not None else "the store is empty"
        raise UsageError(f"no run {run_id} in {self.label}; {some}", code="unknown-run")

    def runs(self, *, limit: int | None = None, parts: bool = True, **matching: Unpack[Matching]) -> Rows:
        """The matching runs, newest last; ``limit`` is the maximum number of runs, the newest. Without ``parts``: those that were asked for
        themselves, and not made as parts of studies, searches and draws."""
        query = sa.select(*RUN.columns).order_by(RUN.c.id.desc())
        for column, value in matching.items():
            if value is not None:
                query = query.where(RUN.c[column] == value)
        if not parts:
            query = query.where(RUN.c.facts[PART_OF].as_string().is_(None), RUN.c.kind != "sample")
        if limit is not None:
            query = query.limit(limit)
        with self._connect() as connection:
            return [_readable(r) for r in reversed(connection.execute(query).mappings().all())]

    def cautions(self, run_ids: Sequence[int]) -> dict[int, Any]:
        """The cautions that these runs kept, as stored; runs without any are left out."""
        found: dict[int, Any] = {}
        with self._connect() as connection:
            for part in _parts(run_ids):
                cautions = RUN.c.facts["cautions"]
                query = sa.select(RUN.c.id, cautions).where(RUN.c.id.in_(part), cautions.as_string().is_not(None))
                found |= {int(i): some for i, some in connection.execute(query)}
        return found

    # -- details of a run ------------------------------------------------------------------------------------------

    def points(self, run_id: int) -> Rows:
        """Rows size_B, time_us, bandwidth_MBps, repetitions, in the order they were simulated."""
        return self._hanging(POINT, run_id)

    def ranks(self, run_id: int) -> Rows:
        """Rows rank, host, time_s, mpi_s, compute_s, cpu_s, sent, received, bytes_sent, bytes_received."""
        return self._hanging(RANK_TIME, run_id)

    def anatomy(self, run_id: int) -> Rows:
        """Rows size_B, position, stage, process, seconds, ps."""
        return self._hanging(ANATOMY, run_id)

    def _hanging(self, table: sa.Table, run_id: int) -> Rows:
        columns = [c for c in table.columns if c.name not in ("id", "run_id")]
        query = sa.select(*columns).where(table.c.run_id == run_id).order_by(table.c.id)
        with self._connect() as connection:
            return [dict(r) for r in connection.execute(query).mappings()]

    # -- verdicts --------------------------------------------------------------------------------------------------

    def add_verdicts(self, paper: str, verdicts: Iterable[Any], run_ids: Sequence[int] = ()) -> int:
        """Store one judging of a paper (rows id, system, use, verdict, observed, low, high, unit, note).

        ``verdicts`` are mappings, dataclasses or have a ``row()``; ``run_ids`` the runs they were judged from.
        Returns the batch id.
        """
        from retrompi.store.identity import code_version

        rows = [v.row() if hasattr(v, "row") else plain(v) for v in verdicts]
        head = fit_row(VERDICT_BATCH, {
            "created": datetime.now(UTC),
            "paper": paper,
            "code_version": code_version(),
            "run_ids": list(run_ids),
        })
        with self._connect(write=True) as connection:
            batch = int(connection.execute(sa.insert(VERDICT_BATCH).returning(VERDICT_BATCH.c.id), [head]).scalar_one())
            claims = [str(r["id"]) for r in rows]
            connection.execute(sa.update(VERDICT).where(VERDICT.c.claim.in_(claims)).values(latest=False))
            keys = ("system", "use", "verdict", "observed", "low", "high", "unit", "note")
            if rows:
                connection.execute(
                    sa.insert(VERDICT),
                    [
                        fit_row(VERDICT, {
                            "batch_id": batch,
                            "claim": str(r["id"]),
                            "latest": True,
                            **{k: r.get(k) for k in keys},
                            "unit": r.get("unit") or "",
                            "note": r.get("note") or "",
                        })
                        for r in rows
                    ],
                )
        return batch

    def verdicts(self, paper: str | None = None, batch: int | None = None) -> Rows:
        """The verdicts of a batch, or the newest of every claim (of one paper), with the keys of the public interface."""
        query = (
            sa.select(
                VERDICT.c.claim.label("id"),
                *(c for c in VERDICT.columns if c.name not in ("id", "claim", "latest")),
            )
            .join(VERDICT_BATCH, VERDICT_BATCH.c.id == VERDICT.c.batch_id)
            .order_by(VERDICT.c.id)
        )
        query = query.where(VERDICT.c.latest.is_(True) if batch is None else VERDICT.c.batch_id == batch)
        if paper is not None:
            query = query.where(VERDICT_BATCH.c.paper == paper)
        with self._connect() as connection:
            return [dict(r) for r in connection.execute(query).mappings()]

    def verdict_batches(self) -> dict[int, dict[str, Any]]:
        """Id of a judging -> paper, time (created), version of the code, and number of runs."""
        query = sa.select(*VERDICT_BATCH.columns)
        with self._connect() as connection:
            found = [dict(r) for r in connection.execute(query.order_by(VERDICT_BATCH.c.id)).mappings()]
        return {r["id"]: {"paper": r["paper"], "created": time_text(r["created"]), "code_version": r["code_version"],
                          "runs": len(r["run_ids"] or ())} for r in found}


_NEW_STORE = Path(__file__).parent / "new_store.sql"
"""What the migrations make of an empty SQLite database: a new store needs neither them nor Alembic, half a second of a first command."""

# Built once: building a statement takes longer than executing it.
_NEWEST = sa.select(RUN.c.id).where(RUN.c.identity == sa.bindparam("identity")).order_by(RUN.c.id.desc()).limit(1)
_NEWEST_OF = (
    sa.select(RUN.c.identity, sa.func.max(RUN.c.id))
    .where(RUN.c.identity.in_(sa.bindparam("some", expanding=True)))
    .group_by(RUN.c.identity)
)
_RUN = sa.select(*RUN.columns).where(RUN.c.id == sa.bindparam("run_id"))
_INSERT_RUN = sa.insert(RUN)
_NOT_KNOWN = {c.name: None for c in RUN.columns if c.nullable}


def _insert_runs(connection: Connection, rows: list[dict[str, Any]]) -> None:
    if rows:
        connection.execute(_INSERT_RUN, rows)


def _newest(connection: Connection, identities: Sequence[str]) -> dict[str, int]:
    if len(identities) == 1:
        run_id = connection.scalar(_NEWEST, {"identity": identities[0]})
        return {} if run_id is None else {identities[0]: int(run_id)}
    found: dict[str, int] = {}
    for some in _parts(identities):
        found |= {str(identity): int(run_id) for identity, run_id in connection.execute(_NEWEST_OF, {"some": list(some)})}
    return found


def _replace_run(connection: Connection, run_id: int, row: Mapping[str, Any]) -> None:
    """Puts the row in the place of run ``run_id``, whose points, ranks and stages are deleted; a timeline, made on request only, stays."""
    before = connection.scalar(sa.select(RUN.c.facts).where(RUN.c.id == run_id)) or {}
    facts = {**{k: before[k] for k in ("timeline",) if k in before}, **json.loads(row["facts"])}
    connection.execute(sa.update(RUN).where(RUN.c.id == run_id).values(**{**row, "facts": facts}))
    for table in (POINT, RANK_TIME, ANATOMY):
        connection.execute(sa.delete(table).where(table.c.run_id == run_id))


def _insert(connection: Connection, table: sa.Table, hanging: Iterable[tuple[int, Iterable[Mapping[str, Any]]]]) -> None:
    names, statement = _hanging_insert(table)
    # Known columns only: keys added to the engine's rows later must not break an older store.
    values = [fit_row(table, {"run_id": run_id, **{n: row.get(n) for n in names}}) for run_id, rows in hanging for row in rows]
    if values:
        connection.execute(statement, values)


@cache
def _hanging_insert(table: sa.Table) -> tuple[list[str], sa.Insert]:
    return [c.name for c in table.columns if c.name not in ("id", "run_id")], sa.insert(table)


def _readable(row: Mapping[Any, Any]) -> dict[str, Any]:
    return {**row, "created": time_text(row["created"])}
