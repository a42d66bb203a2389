"""The part of the store that copies rows from one store to another, as they are: their JSON is not read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from retrompi.base.errors import StoreError
from retrompi.store.ids import free_ids, once_at_a_time
from retrompi.store.schema import ANATOMY, MEASURED, POINT, RANK_TIME, RUN, RUN_TAG, STUDY_POINT, STUDY_SHARD
from retrompi.store.texts import JsonText

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

__all__ = ["Copies", "RawRuns"]

Rows = list[dict[str, Any]]
_JSON = {c.name for table in (RUN, STUDY_POINT) for c in table.columns if isinstance(c.type, sa.JSON)}
HANGING = (POINT, RANK_TIME, ANATOMY, RUN_TAG)


@dataclass
class RawRuns:
    """Runs as rows of their table, and the rows of other tables that hang on them."""

    runs: Rows
    hanging: dict[Any, Rows] = field(default_factory=dict)


class Copies:
    """The methods of `Store` for copying."""

    label: str
    _connect: Callable[..., AbstractContextManager[Connection]]

    def raw_runs(self, together: int) -> Iterator[RawRuns]:
        """All runs, oldest first, in parts."""
        last = 0
        while True:
            with self._connect() as connection:
                query = sa.select(*_raw(RUN)).where(RUN.c.id > last).order_by(RUN.c.id).limit(together)
                runs = _rows(connection.execute(query))
                if not runs:
                    return
                first, last = runs[0]["id"], runs[-1]["id"]
                part = RawRuns(runs)
                for table in HANGING:
                    query = sa.select(*_raw(table)).where(table.c.run_id.between(first, last))
                    part.hanging[table] = _rows(connection.execute(query if table is RUN_TAG else query.order_by(table.c.id)))
            yield part

    def put_raw_runs(self, part: RawRuns, where: str) -> tuple[dict[int, int], int]:
        """Stores the runs that are not stored yet: their ids there -> here, and how many were new.

        StoreError for a run of the same identity that has another result: one of the two stores is wrong.
        """
        ids: dict[int, int] = {}
        with self._connect(write=True) as connection:
            once_at_a_time(connection)
            known = _runs_by_identity(connection, [row["identity"] for row in part.runs])
            free = free_ids(connection, len(part.runs))
            new: Rows = []
            for row in part.runs:
                measured = row["kind"] in MEASURED
                key = row["identity"], row["created"] if measured else None
                mine = known.get(key)
                if mine is None:
                    mine = known[key] = _Mine(next(free), row["outcome"], row["time_s"])
                    new.append({**row, "id": mine.run_id})
                elif (mine.outcome, mine.time_s) != (row["outcome"], row["time_s"]):
                    ours, theirs = _outcome_text(mine.outcome, mine.time_s), _outcome_text(row["outcome"], row["time_s"])
                    raise StoreError(f"run {row['id']} of {where} is run {mine.run_id} of {self.label}, which {ours} instead of {theirs}; "
                                     "one of the two stores is wrong", code="runs-differ")
                ids[row["id"]] = mine.run_id
            added = {row["id"] for row in new}
            if new:
                connection.execute(sa.insert(RUN), new)
            for table, rows in part.hanging.items():
                moved = [{**{k: v for k, v in row.items() if k != "id"}, "run_id": ids[row["run_id"]]} for row in rows]
                if table is RUN_TAG:
                    query = sa.select(RUN_TAG.c.run_id, RUN_TAG.c.tag).where(RUN_TAG.c.run_id.in_([m["run_id"] for m in moved]))
                    have = {(t.run_id, t.tag) for t in connection.execute(query)}
                    moved = [m for m in moved if (m["run_id"], m["tag"]) not in have]
                else:
                    moved = [m for m in moved if m["run_id"] in added]
                if moved:
                    connection.execute(sa.insert(table), moved)
        return ids, len(new)

    def raw_study_points(self, study_id: int, together: int) -> Iterator[Rows]:
        """The rows of a study's points by position, in parts, without id and study."""
        last = -1
        columns = [c for c in _raw(STUDY_POINT) if c.name not in ("id", "study_id")]
        while True:
            query = sa.select(*columns).where(STUDY_POINT.c.study_id == study_id, STUDY_POINT.c.position > last)
            with self._connect() as connection:
                rows = _rows(connection.execute(query.order_by(STUDY_POINT.c.position).limit(together)))
            if not rows:
                return
            last = rows[-1]["position"]
            yield rows

    def shards(self, study_id: int) -> list[tuple[int, int]]:
        """(shard, of how many) for each shard of the study that was run."""
        query = sa.select(STUDY_SHARD.c.shard, STUDY_SHARD.c.shards).where(STUDY_SHARD.c.study_id == study_id)
        with self._connect() as connection:
            return sorted((int(i), int(n)) for i, n in connection.execute(query))

    def put_shards(self, study_id: int, shards: Iterable[tuple[int, int]]) -> None:
        """Notes that these shards of the study have been run."""
        wanted = set(shards) - set(self.shards(study_id))
        if wanted:
            with self._connect(write=True) as connection:
                connection.execute(sa.insert(STUDY_SHARD), [{"study_id": study_id, "shard": i, "shards": n} for i, n in sorted(wanted)])



@dataclass(frozen=True)
class _Mine:
    run_id: int
    outcome: str
    time_s: float | None


def _runs_by_identity(connection: Connection, identities: Sequence[str]) -> dict[tuple[str, Any], _Mine]:
    found: dict[tuple[str, Any], _Mine] = {}
    for at in range(0, len(identities), 500):
        query = sa.select(RUN.c.id, RUN.c.identity, RUN.c.kind, RUN.c.created, RUN.c.outcome, RUN.c.time_s)
        for r in connection.execute(query.where(RUN.c.identity.in_(identities[at : at + 500])).order_by(RUN.c.id)):
            found[r.identity, _utc(r.created) if r.kind in MEASURED else None] = _Mine(int(r.id), r.outcome, r.time_s)
    return found


def _outcome_text(outcome: str, time_s: float | None) -> str:
    return f"{outcome} in {time_s:g} s" if time_s is not None else outcome


def _raw(table: sa.Table) -> list[Any]:
    """The columns of a table, JSON as text."""
    return [sa.cast(c, sa.Text).label(c.name) if isinstance(c.type, sa.JSON) else c for c in table.columns]


def _rows(found: Any) -> Rows:
    texts = {k for k in found.keys() if k in _JSON}  # noqa: SIM118  the columns of a result
    rows: Rows = [{k: JsonText(v) if k in texts and v is not None else v for k, v in row.items()} for row in map(dict, found.mappings())]
    for row in rows:
        if "created" in row:
            row["created"] = _utc(row["created"])
    return rows


def _utc(made: datetime) -> datetime:
    """SQLite drops the time zone."""
    return made.replace(tzinfo=UTC) if made.tzinfo is None else made
