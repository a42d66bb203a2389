"""A simulated run is stored once: duplicates are merged into the newest, and a unique index keeps it so."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_SIMULATED = "kind NOT IN ('native', 'smpi')"
_DUPLICATES = f"""SELECT id, identity FROM runs WHERE {_SIMULATED} AND identity IN
    (SELECT identity FROM runs WHERE {_SIMULATED} GROUP BY identity HAVING count(*) > 1) ORDER BY id"""


def upgrade() -> None:
    """Apply the change. What refers to a duplicate then refers to the one that is kept, with its points, ranks and stages."""
    connection = op.get_bind()
    rows = connection.execute(sa.text(_DUPLICATES)).all()
    kept = {identity: run_id for run_id, identity in rows}  # the last one, which lookups have answered with
    gone = {run_id: kept[identity] for run_id, identity in rows if run_id != kept[identity]}
    if gone:
        _keep_timelines(connection, gone)
        moves = [{"old": old, "new": new} for old, new in gone.items()]
        connection.execute(sa.text("UPDATE study_points SET run_id = :new WHERE run_id = :old"), moves)
        _rename_in_verdicts(connection, gone)
        for table in ("points", "rank_times", "anatomy"):
            connection.execute(sa.text(f"DELETE FROM {table} WHERE run_id = :old"), moves)
        connection.execute(sa.text("DELETE FROM runs WHERE id = :old"), moves)
    where = sa.text(_SIMULATED)
    op.create_index("ux_runs_identity", "runs", ["identity"], unique=True, sqlite_where=where, postgresql_where=where)


def _keep_timelines(connection: Any, gone: dict[int, int]) -> None:
    """A timeline was recorded on request only: the kept run takes over that of a duplicate if it has none."""
    runs = sa.table("runs", sa.column("id"), sa.column("facts", sa.JSON()))
    for old, new in gone.items():
        facts = {run_id: dict(found or {}) for run_id, found in
                 connection.execute(sa.select(runs.c.id, runs.c.facts).where(runs.c.id.in_([old, new])))}
        if facts[old].get("timeline") and not facts[new].get("timeline"):
            more = {**facts[new], "timeline": facts[old]["timeline"]}
            connection.execute(sa.update(runs).where(runs.c.id == new).values(facts=more))


def _rename_in_verdicts(connection: Any, gone: dict[int, int]) -> None:
    batches = sa.table("verdict_batches", sa.column("id"), sa.column("run_ids", sa.JSON()))
    for batch, given in connection.execute(sa.select(batches.c.id, batches.c.run_ids)).all():
        ids = json.loads(given) if isinstance(given, str) else given or []
        renamed = list(dict.fromkeys(gone.get(i, i) for i in ids))
        if renamed != ids:
            connection.execute(sa.update(batches).where(batches.c.id == batch).values(run_ids=renamed))


def downgrade() -> None:
    """Revert the change; merged runs stay merged."""
    op.drop_index("ux_runs_identity", "runs")
