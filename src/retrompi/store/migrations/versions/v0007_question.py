"""The question of a run as plain JSON: runs.question. Of runs stored before it is unknown."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply the change."""
    op.add_column("runs", sa.Column("question", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Revert the change."""
    op.drop_column("runs", "question")
