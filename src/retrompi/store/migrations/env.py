"""Alembic's entry point; it works on the connection `retrompi.store.migrate` hands over, in its transaction."""

from __future__ import annotations

from alembic import context
from sqlalchemy.engine import Connection

from retrompi.base.errors import StoreError
from retrompi.store.schema import METADATA, VERSION_TABLE


def run() -> None:
    """Run the migrations on the given connection."""
    connection: Connection | None = context.config.attributes.get("connection")
    if connection is None:
        raise StoreError("migrations run when a store is opened; there is nothing to call by hand")
    context.configure(
        connection=connection,
        target_metadata=METADATA,
        version_table=VERSION_TABLE,
        render_as_batch=connection.dialect.name == "sqlite",  # SQLite cannot alter a column in place
        transactional_ddl=False,  # the caller's transaction is the only one
    )
    context.run_migrations()


run()
