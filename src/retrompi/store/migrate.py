"""Upgrading a store with the migrations shipped in the package."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Connection

__all__ = ["config", "known_revisions", "upgrade"]


def config(connection: Connection | None = None) -> Config:
    """Alembic's configuration without an ini file: the scripts are in a folder beside this module."""
    settings = Config()
    settings.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    settings.attributes["connection"] = connection
    return settings


def known_revisions() -> list[str]:
    """Every revision that this code can upgrade from, newest first."""
    return [script.revision for script in ScriptDirectory.from_config(config()).walk_revisions()]


def upgrade(connection: Connection) -> None:
    """Run the missing migrations inside the transaction of ``connection``."""
    command.upgrade(config(connection), "head")
