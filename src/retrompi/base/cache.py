"""The user's cache: what can be made again at any time."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_dir"]


def cache_dir(what: str) -> Path:
    """``$XDG_CACHE_HOME/retrompi/WHAT``, by default ``~/.cache/retrompi/WHAT``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache") / "retrompi" / what
