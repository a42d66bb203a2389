"""What carried the frames of a run: runs.network; SimGrid's version only where it did."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply the change."""
    op.add_column("runs", sa.Column("network", sa.String(32), nullable=False, server_default="native"))
    # Until now every run had the version of the library that the engine is linked with.
    op.execute("UPDATE runs SET simgrid_version = '' WHERE kind <> 'smpi'")


def downgrade() -> None:
    """Revert the change."""
    op.drop_column("runs", "network")
