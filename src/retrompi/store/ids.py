"""Numbers for new runs, which are stored many at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from retrompi.store.schema import RUN

__all__ = ["free_ids", "once_at_a_time"]

_ONCE_LOCK = 78360173
_LAST_RUN = sa.select(sa.func.coalesce(sa.func.max(RUN.c.id), 0))
_NEXT_RUNS = sa.text("SELECT nextval(pg_get_serial_sequence('runs', 'id')) FROM generate_series(1, :n)")


def once_at_a_time(connection: Connection) -> None:
    """No other process looks up and stores runs until the end of this transaction."""
    if connection.dialect.name == "postgresql":  # SQLite allows only one writer
        connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({_ONCE_LOCK})"))


def free_ids(connection: Connection, most: int) -> Iterator[int]:
    """Ids for up to ``most`` new runs, in ascending order: a writer of SQLite is alone, PostgreSQL counts for all of them."""
    if connection.dialect.name == "postgresql":
        return iter(sorted(int(i) for i in connection.scalars(_NEXT_RUNS, {"n": most})))
    return count(int(connection.execute(_LAST_RUN).scalar_one()) + 1)
