"""The first schema: runs, points, rank_times, anatomy, verdict_batches, verdicts."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _col(name: str, kind: sa.types.TypeEngine[Any], *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=null)


def _hanging(table: str, parent: str, key: str, *columns: sa.Column[Any]) -> None:
    op.create_table(
        table,
        sa.Column("id", _ID, nullable=False),
        sa.Column(key, _ID, nullable=False),
        *columns,
        sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
        sa.ForeignKeyConstraint([key], [f"{parent}.id"], name=f"fk_{table}_{key}_{parent}", ondelete="CASCADE"),
    )
    op.create_index(f"ix_{table}_{key}", table, [key])


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "runs",
        sa.Column("id", _ID, nullable=False),
        _col("identity", sa.String(64)),
        _col("created", sa.DateTime(timezone=True)),
        _col("kind", sa.String(16)),
        _col("model", sa.String(80)),
        _col("model_hash", sa.String(64)),
        _col("platform", sa.String(80)),
        _col("platform_hash", sa.String(64)),
        _col("mode", sa.Text()),
        _col("parameters", sa.JSON()),
        _col("overrides", sa.JSON()),
        _col("seed", sa.BigInteger()),
        _col("fidelity", sa.String(16)),
        _col("trace", sa.Text()),
        _col("trace_hash", sa.String(64)),
        _col("scenario", sa.String(80)),
        _col("scenario_hash", sa.String(64)),
        _col("code_version", sa.String(80)),
        _col("simgrid_version", sa.String(32)),
        _col("host", sa.String(255)),
        _col("wall_s", sa.Double()),
        _col("outcome", sa.String(16)),
        _col("detail", sa.Text()),
        _col("time_s", sa.Double(), null=True),
        _col("ranks", sa.Integer(), null=True),
        _col("actions", sa.BigInteger(), null=True),
        _col("messages", sa.BigInteger(), null=True),
        _col("bytes", sa.BigInteger(), null=True),
        _col("packets", sa.BigInteger(), null=True),
        _col("facts", sa.JSON()),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
    )
    for column in ("identity", "kind", "model", "platform", "outcome"):
        op.create_index(f"ix_runs_{column}", "runs", [column])
    _hanging(
        "points",
        "runs",
        "run_id",
        _col("size_B", sa.BigInteger()),
        _col("time_us", sa.Double()),
        _col("bandwidth_MBps", sa.Double()),
        _col("repetitions", sa.Integer()),
    )
    _hanging(
        "rank_times",
        "runs",
        "run_id",
        _col("rank", sa.Integer()),
        _col("host", sa.String(80)),
        _col("time_s", sa.Double()),
        _col("mpi_s", sa.Double()),
        _col("compute_s", sa.Double()),
        _col("cpu_s", sa.Double(), null=True),
        _col("sent", sa.BigInteger()),
        _col("received", sa.BigInteger()),
        _col("bytes_sent", sa.BigInteger()),
        _col("bytes_received", sa.BigInteger()),
    )
    _hanging(
        "anatomy",
        "runs",
        "run_id",
        _col("size_B", sa.BigInteger(), null=True),
        _col("position", sa.Integer()),
        _col("stage", sa.String(80)),
        _col("process", sa.String(80)),
        _col("seconds", sa.Double()),
        _col("ps", sa.BigInteger(), null=True),
    )
    op.create_table(
        "verdict_batches",
        sa.Column("id", _ID, nullable=False),
        _col("created", sa.DateTime(timezone=True)),
        _col("paper", sa.String(80)),
        _col("code_version", sa.String(80)),
        _col("run_ids", sa.JSON()),
        sa.PrimaryKeyConstraint("id", name="pk_verdict_batches"),
    )
    op.create_index("ix_verdict_batches_paper", "verdict_batches", ["paper"])
    _hanging(
        "verdicts",
        "verdict_batches",
        "batch_id",
        _col("claim", sa.String(40)),
        _col("system", sa.Text()),
        _col("use", sa.String(16)),
        _col("verdict", sa.String(16)),
        _col("observed", sa.JSON(), null=True),
        _col("low", sa.Double(), null=True),
        _col("high", sa.Double(), null=True),
        _col("unit", sa.String(40)),
        _col("note", sa.Text()),
        _col("latest", sa.Boolean()),
    )
    op.create_index("ix_verdicts_claim", "verdicts", ["claim"])


def downgrade() -> None:
    """Revert the change."""
    for table in ("verdicts", "verdict_batches", "anatomy", "rank_times", "points", "runs"):
        op.drop_table(table)
