"""Backup of a course while it is served, and its restoring, into a database of either kind.

A backup is a zip: a JSON line for each row of each table, read in one transaction, and a manifest with the number of rows and a hash of
each. It holds no way in: links and sessions are hashes in the database already.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, BinaryIO

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from retrompi.base.errors import InputError, StoreError, UsageError
from retrompi.base.release import version
from retrompi.base.zips import UNREADABLE
from retrompi.classroom.course.database import Database, location
from retrompi.classroom.course.schema import REVISION, Base, Utc

__all__ = ["backup", "restore"]

FORMAT = 1
_AT_ONCE = 200
LARGEST_LINE = 64 << 20
"""Bytes of one row in a backup."""


def _out(column: sa.Column[Any], value: Any) -> Any:
    if value is None or isinstance(column.type, sa.JSON):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return value.isoformat() if isinstance(value, date) else value


def _in(column: sa.Column[Any], value: Any) -> Any:
    if value is None or isinstance(column.type, sa.JSON):
        return value
    if isinstance(column.type, sa.LargeBinary):
        return base64.b64decode(value, validate=True)
    if isinstance(column.type, Utc):
        return datetime.fromisoformat(value)
    return date.fromisoformat(value) if isinstance(column.type, sa.Date) else value


def _lines(connection: Connection, table: sa.Table) -> Iterator[bytes]:
    """The rows of a table in the order of its primary key, one line each."""
    query = sa.select(table).order_by(*table.primary_key.columns)
    for row in connection.execution_options(yield_per=_AT_ONCE).execute(query):
        told = {c.name: _out(c, value) for c, value in zip(table.c, row, strict=True)}
        yield json.dumps(told, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


@contextmanager
def _snapshot(db: Database) -> Iterator[Connection]:
    """A transaction that sees the database as it is now, whatever is written meanwhile."""
    with db.engine.connect() as raw:
        connection = raw.execution_options(isolation_level="REPEATABLE READ") if db.path is None else raw
        with connection.begin():
            yield connection


def backup(db: Database, file: Path) -> dict[str, int]:
    """Writes a backup; table -> number of rows. The file is there whole or not at all. InputError if it cannot be written."""
    beside = file.with_name(f".{file.name}.{os.getpid()}.new")
    try:
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            counts = _write(db, out)
            out.flush()
            os.fsync(out.fileno())
        os.replace(beside, file)
    except OSError as error:
        raise InputError(f"cannot write the backup: {error.strerror}", file, code="unwritable-file") from None
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
    return counts


def _write(db: Database, out: BinaryIO) -> dict[str, int]:
    tables: dict[str, dict[str, Any]] = {}
    with _snapshot(db) as connection, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for table in Base.metadata.sorted_tables:
            known, rows = hashlib.sha256(), 0
            with packed.open(f"tables/{table.name}.jsonl", "w", force_zip64=True) as file:
                for line in _lines(connection, table):
                    file.write(line)
                    known.update(line)
                    rows += 1
            tables[table.name] = {"rows": rows, "sha256": known.hexdigest()}
        about = {"format": FORMAT, "revision": REVISION, "retrompi": version(), "made": datetime.now(UTC).isoformat(), "tables": tables}
        packed.writestr("manifest.json", json.dumps(about, indent=1))
    return {name: row["rows"] for name, row in tables.items()}


def restore(file: Path, where: str | None) -> dict[str, int]:
    """Makes a course from a backup; table -> number of rows. The database must not hold a course: nothing is overwritten.

    All is verified: the backup before it is read, the database afterwards. Killed in between, no course is left behind. InputError for a
    file that is no backup, or damaged.
    """
    try:
        with zipfile.ZipFile(file) as packed:
            about = _manifest(packed, file)
            target = location(where)
            if "://" in target and not target.startswith("sqlite:"):
                db = Database.open(target, new=True, fill=lambda connection: _fill(connection, packed, about, file))
                db.close()
                return _verify(Database.open(target), about, target)
            final = Path(target.removeprefix("sqlite:///")).expanduser()
            if final.exists():
                raise UsageError(f"{final} exists already; give another file by --database", code="exists-already")
            beside = final.with_name(f".{final.name}.{os.getpid()}.new")
            try:
                db = Database.open(str(beside), new=True, fill=lambda connection: _fill(connection, packed, about, file))
                counts = _verify(db, about, str(final))
                with db.engine.connect() as connection:
                    connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
                db.close()
                os.link(beside, final)  # unlike a rename, this does not replace what another process has made meanwhile
            finally:
                for ending in ("", "-wal", "-shm"):
                    Path(f"{beside}{ending}").unlink(missing_ok=True)
            return counts
    except FileExistsError:
        raise UsageError(f"{where} exists already; give another file by --database", code="exists-already") from None
    except UNREADABLE as error:
        raise InputError(f"not a backup of a course, or damaged: {error}", file, code="damaged-file") from None
    except OSError as error:
        raise InputError(f"cannot read the backup: {error.strerror}", file, code="unreadable-file") from None


def _manifest(packed: zipfile.ZipFile, file: Path) -> dict[str, Any]:
    """The manifest, after every table was compared with it."""
    try:
        about = json.loads(packed.read("manifest.json"))
        tables = {str(name): (int(row["rows"]), str(row["sha256"])) for name, row in about["tables"].items()}
        kind = (about["format"], about["revision"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError("not a backup of a course: its manifest is missing or damaged", file, code="damaged-file") from None
    if kind != (FORMAT, REVISION):
        raise InputError(f"the backup is of version {kind[1]} of the tables, this retrompi has {REVISION}", file, code="wrong-version")
    unknown = sorted(set(tables) - set(Base.metadata.tables))
    if unknown:
        raise InputError(f"the backup has a table '{unknown[0][:60]}' that this retrompi does not know", file, code="wrong-version")
    for name, (rows, wanted) in tables.items():
        known, found = hashlib.sha256(), 0
        for line in _read(packed, name):
            known.update(line)
            found += 1
        if (found, known.hexdigest()) != (rows, wanted):
            raise InputError(f"the backup is damaged: table {name} is not as its manifest says", file, code="damaged-file")
    return dict(about)


def _read(packed: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    inside = f"tables/{name}.jsonl"
    if inside not in packed.NameToInfo:
        raise ValueError(f"it has no {inside}")
    with packed.open(inside) as raw:
        reader = io.BufferedReader(raw)  # type: ignore[type-var]
        while line := reader.readline(LARGEST_LINE + 1):
            if len(line) > LARGEST_LINE:
                raise ValueError(f"a row of {name} is longer than {LARGEST_LINE >> 20} MiB")
            yield line


def _fill(connection: Connection, packed: zipfile.ZipFile, about: dict[str, Any], file: Path) -> None:
    """Inserts all rows, parents first."""
    for table in Base.metadata.sorted_tables:
        if table.name not in about["tables"]:
            continue
        rows: list[dict[str, Any]] = []
        for line in _read(packed, table.name):
            try:
                told = json.loads(line)
                rows.append({c.name: _in(c, told[c.name]) for c in table.c})
            except (KeyError, TypeError, ValueError, RecursionError):
                raise InputError(f"the backup is damaged: a row of {table.name} cannot be read", file, code="damaged-file") from None
            if len(rows) == _AT_ONCE:
                connection.execute(sa.insert(table), rows)
                rows = []
        if rows:
            connection.execute(sa.insert(table), rows)
        if connection.dialect.name == "postgresql" and "id" in table.c and isinstance(table.c.id.type, sa.BigInteger):
            # The rows brought their ids; the next one is drawn after them.
            connection.execute(sa.text(f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), "
                                       f"(SELECT coalesce(max(id), 0) + 1 FROM {table.name}), false)"))


def _verify(db: Database, about: dict[str, Any], label: str) -> dict[str, int]:
    """Table -> number of rows of the restored database. StoreError if it does not hold what the backup does."""
    with _snapshot(db) as connection:
        for table in Base.metadata.sorted_tables:
            wanted = about["tables"].get(table.name)
            known = hashlib.sha256()
            for line in _lines(connection, table):
                known.update(line)
            if wanted is not None and known.hexdigest() != wanted["sha256"]:
                raise StoreError(f"{label}: table {table.name} was not restored as it was", code="damaged-store")
    return {name: row["rows"] for name, row in about["tables"].items()}
