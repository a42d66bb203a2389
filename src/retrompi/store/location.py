"""Where the store is if nobody says; known without SQLAlchemy."""

from __future__ import annotations

from pathlib import Path

from retrompi.base.paths import data_dir

__all__ = ["default_path"]


def default_path() -> Path:
    """The default path of the store: ``~/.local/share/retrompi/retrompi.db``."""
    return data_dir() / "retrompi.db"
