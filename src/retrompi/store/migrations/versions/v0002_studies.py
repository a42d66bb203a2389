"""Studies: studies, study_points."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Apply the change."""
    op.create_table(
        "studies",
        sa.Column("id", _ID, nullable=False),
        sa.Column("name", sa.String(80), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("definition", sa.JSON(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("code_version", sa.String(80), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_studies"),
    )
    op.create_index("ix_studies_name", "studies", ["name"])
    op.create_index("ix_studies_hash", "studies", ["hash"], unique=True)
    op.create_table(
        "study_points",
        sa.Column("id", _ID, nullable=False),
        sa.Column("study_id", _ID, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("axes", sa.JSON(), nullable=False),
        sa.Column("identity", sa.String(64), nullable=False),
        sa.Column("run_id", _ID, nullable=True),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("wall_s", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_study_points"),
        sa.ForeignKeyConstraint(["study_id"], ["studies.id"], name="fk_study_points_study_id_studies", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_study_points_run_id_runs", ondelete="SET NULL"),
    )
    op.create_index("ix_study_points_run_id", "study_points", ["run_id"])
    op.create_index("ix_study_points_study_id_position", "study_points", ["study_id", "position"], unique=True)


def downgrade() -> None:
    """Revert the change."""
    op.drop_table("study_points")
    op.drop_table("studies")
