"""Tags of runs: run_tags."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "run_tags",
        sa.Column("run_id", _ID, nullable=False),
        sa.Column("tag", sa.String(80), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "tag", name="pk_run_tags"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_run_tags_run_id_runs", ondelete="CASCADE"),
    )
    op.create_index("ix_run_tags_tag", "run_tags", ["tag"])


def downgrade() -> None:
    """Revert the change."""
    op.drop_table("run_tags")
