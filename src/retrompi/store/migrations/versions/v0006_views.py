"""The shards of a study that were run; views for people who open the store with SQL: names with units, times in UTC, the keys of JSON
columns as rows.

What the columns mean is in `retrompi.store.views`. A later change of a table that a view reads drops the view before and makes it
again after.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_TAGS = {
    "sqlite": "(SELECT group_concat(tag, ' ') FROM (SELECT tag FROM run_tags t WHERE t.run_id = r.id ORDER BY tag))",
    "postgresql": "(SELECT string_agg(tag, ' ' ORDER BY tag) FROM run_tags t WHERE t.run_id = r.id)",
}
_UTC = {
    "sqlite": "substr({0}, 1, 19)",
    "postgresql": "to_char({0} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')",
}
_TEXT = {"sqlite": "json_extract({0}, '$.{1}')", "postgresql": "({0} ->> '{1}')"}
_EACH = {"sqlite": "json_each({0})", "postgresql": "json_each_text({0})"}
_REAL = {"sqlite": "CAST({0} AS REAL)", "postgresql": "CAST({0} AS double precision)"}

# A name with a capital is quoted: PostgreSQL folds the others.
_RUN = "r.model, r.platform, r.mode AS placement, r.seed, r.fidelity, r.network, r.outcome"

VIEWS = {
    "runs_v": """SELECT r.id AS run_id, {stored} AS stored_utc, r.kind, r.model, r.platform, r.mode AS placement, r.scenario, r.trace,
        r.seed, r.fidelity, r.network, r.outcome, r.detail AS reason, r.time_s, r.ranks, r.messages, r.bytes AS "payload_B", r.packets,
        r.actions AS mpi_calls, r.wall_s AS simulating_took_s, {tags} AS tags, r.overrides AS overrides_json,
        r.parameters AS parameters_json, r.identity, r.code_version, r.host AS simulated_on
        FROM runs r""",
    "points_v": """SELECT p.run_id, {run}, p."size_B" AS "size_B", {size} / 1024 AS "size_KiB", p.time_us AS one_way_us,
        p."bandwidth_MBps" AS "bandwidth_MBps", p.repetitions
        FROM points p JOIN runs r ON r.id = p.run_id""",
    "ranks_v": """SELECT t.run_id, {run}, t.rank, t.host, t.time_s, t.mpi_s, t.compute_s, t.cpu_s,
        CASE WHEN t.time_s > 0 THEN 100 * t.mpi_s / t.time_s END AS mpi_percent, t.sent AS messages_sent,
        t.received AS messages_received, t.bytes_sent AS "sent_B", t.bytes_received AS "received_B"
        FROM rank_times t JOIN runs r ON r.id = t.run_id""",
    "stages_v": """SELECT a.run_id, {run}, a."size_B" AS "size_B", a.position, a.stage, a.process, 1e6 * a.seconds AS time_us
        FROM anatomy a JOIN runs r ON r.id = a.run_id""",
    "overrides_v": """SELECT r.id AS run_id, j.key AS parameter, j.value AS value FROM runs r, {overrides} j""",
    "parameters_v": """SELECT r.id AS run_id, r.model, j.key AS parameter, j.value AS value FROM runs r, {parameters} j""",
    "studies_v": """SELECT s.id AS study_id, s.name, {title} AS title, {question} AS question, {created} AS first_run_utc,
        (SELECT count(*) FROM study_points p WHERE p.study_id = s.id) AS points,
        (SELECT count(*) FROM study_points p WHERE p.study_id = s.id AND p.outcome = 'completed') AS completed,
        (SELECT count(*) FROM study_points p WHERE p.study_id = s.id AND p.outcome = 'error') AS errors,
        s.hash, s.code_version
        FROM studies s""",
    "study_points_v": """SELECT p.study_id, s.name AS study, p.position, p.outcome, p.reason, p.run_id, r.model, r.platform,
        r.mode AS placement, r.seed, r.fidelity, r.time_s, r.messages, p.wall_s AS simulating_took_s, p.axes AS axes_json
        FROM study_points p JOIN studies s ON s.id = p.study_id LEFT JOIN runs r ON r.id = p.run_id""",
    "study_axes_v": """SELECT p.study_id, s.name AS study, p.position, p.run_id, j.key AS axis, j.value AS value
        FROM study_points p JOIN studies s ON s.id = p.study_id, {axes} j""",
    "verdicts_v": """SELECT v.claim, b.paper, v.system, v.verdict, {observed} AS observed, v.low, v.high, v.unit, v.note,
        {judged} AS judged_utc, b.code_version
        FROM verdicts v JOIN verdict_batches b ON b.id = v.batch_id WHERE v.latest""",
}


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "study_shards",
        sa.Column("study_id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("shards", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(["study_id"], ["studies.id"], name="fk_study_shards_study_id_studies", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("study_id", "shards", "shard", name="pk_study_shards"),
    )
    kind = op.get_bind().dialect.name
    words = {
        "run": _RUN,
        "tags": _TAGS[kind],
        "size": _REAL[kind].format('p."size_B"'),
        "stored": _UTC[kind].format("r.created"),
        "created": _UTC[kind].format("s.created"),
        "judged": _UTC[kind].format("b.created"),
        "title": _TEXT[kind].format("s.definition", "title"),
        "question": _TEXT[kind].format("s.definition", "question"),
        "overrides": _EACH[kind].format("r.overrides"),
        "parameters": _EACH[kind].format("r.parameters"),
        "axes": _EACH[kind].format("p.axes"),
        "observed": "v.observed" if kind == "sqlite" else "CAST(v.observed AS text)",
    }
    for name, query in VIEWS.items():
        # As it is: a colon in it is no parameter.
        op.get_bind().exec_driver_sql(f"CREATE VIEW {name} AS {query.format(**words)}")


def downgrade() -> None:
    """Revert the change."""
    for name in reversed(VIEWS):
        op.execute(f"DROP VIEW {name}")
    op.drop_table("study_shards")
