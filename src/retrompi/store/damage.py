"""Finding what in a store is not as `retrompi.store.schema` says, after reading it has failed: a file changed by something else."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from retrompi.store.schema import METADATA

__all__ = ["first_damage"]

_TABLES = ("runs", "studies", "study_points", "verdict_batches", "verdicts", "rank_times", "anatomy", "points")
"""Small ones first."""
_LISTS = {("verdict_batches", "run_ids")}
_ANYTHING = {("verdicts", "observed")}


def first_damage(path: Path) -> str:
    """The first damage found in the SQLite store ``path``, with table, row and column, as the end of a sentence; empty without any."""
    try:
        connection = sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True, timeout=1)
    except (sqlite3.Error, OSError, UnicodeError):
        return ""
    connection.text_factory = bytes  # text that is no UTF-8 is to be found, not to end the search
    try:
        found = next(_find_damage(connection), "")
    except (sqlite3.Error, OverflowError) as error:
        found = str(error)
    finally:
        connection.close()
    return found


def _find_damage(connection: sqlite3.Connection) -> Iterator[str]:
    for name in sorted(METADATA.tables, key=lambda n: _TABLES.index(n) if n in _TABLES else -1):
        table = METADATA.tables[name]
        have = {row[1].decode() for row in connection.execute(f'PRAGMA table_info("{name}")')}
        if missing := [c.name for c in table.columns if c.name not in have]:
            yield f"it has no table '{name}'" if not have else f"its table '{name}' has no column '{missing[0]}'"
            return
        columns = list(table.columns)
        listed = ", ".join(f'"{c.name}"' for c in columns)
        for row in connection.execute(f'SELECT rowid, {listed} FROM "{name}"'):
            for column, value in zip(columns, row[1:], strict=True):
                if problem := _problem(column, value):
                    yield f"row {row[0]} of its table '{name}' has {problem} in '{column.name}'"
    (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if said != b"ok":
        yield said.decode(errors="replace")


def _problem(column: sa.Column[Any], value: Any) -> str:
    if value is None:
        return "" if column.nullable else "nothing"
    kind = column.type
    if isinstance(kind, sa.JSON):
        return _json(column, value)
    if isinstance(value, bytes):
        try:
            value = value.decode("utf-8")
        except UnicodeDecodeError:
            return "text that is no UTF-8"
    if isinstance(kind, sa.DateTime):
        try:
            datetime.fromisoformat(value)
        except (TypeError, ValueError):
            return f"the time {str(value)[:30]!r}"
        return ""
    if isinstance(kind, sa.String):
        return "" if isinstance(value, str) else f"{str(value)[:30]!r}"
    wanted = (int,) if isinstance(kind, sa.Integer | sa.Boolean) else (int, float)
    return "" if isinstance(value, wanted) else f"{str(value)[:30]!r}"


def _json(column: sa.Column[Any], value: Any) -> str:
    try:
        found = json.loads(value if isinstance(value, bytes) else str(value))  # SQLite keeps a JSON number as a number
    except (TypeError, ValueError, RecursionError):
        return "no JSON"
    place = (column.table.name, column.name)
    if place in _ANYTHING:
        return ""
    return "" if isinstance(found, list if place in _LISTS else dict) else f"a {type(found).__name__}"
