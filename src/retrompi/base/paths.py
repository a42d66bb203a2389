"""Where the editable folders are, in a source tree, an editable install and a wheel alike."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from pathlib import Path

from retrompi.base.errors import RetrompiError

__all__ = ["data_dir", "labs_dir", "models_dir", "platforms_dir", "reference_dir", "scenarios_dir", "source_root", "stamp",
           "user_labs_dir", "user_models_dir", "user_platforms_dir", "validate_dir"]  # fmt: skip


def stamp(file: Path) -> tuple[int, int] | None:
    """(modification time in ns, size in bytes) of ``file``, used as a cache key; None if it cannot be read."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def source_root() -> Path | None:
    """The checkout this package runs from, or None in a wheel."""
    root = Path(__file__).resolve().parents[3]
    return root if (root / "pyproject.toml").is_file() and (root / "models").is_dir() else None


@cache
def _folder(name: str, package: str = "") -> Path:
    # The folders are mapped into the package by the wheel, so the import system is asked for them first.
    try:
        locations = list(import_module(f"retrompi.{package or name}").__path__)
    except ModuleNotFoundError:
        locations = []
    root = source_root()
    if root is not None:
        locations.append(str(root / name))
    for location in locations:
        if Path(location).is_dir():
            return Path(location)
    raise RetrompiError(f"the folder '{name}' is missing from this installation of retrompi; install it again", code="not-found")


def models_dir() -> Path:
    """The folder with one folder per runtime model."""
    return _folder("models")


def platforms_dir() -> Path:
    """The folder with one TOML file per platform."""
    return _folder("platforms")


def scenarios_dir() -> Path:
    """The folder with one TOML file per experiment."""
    return _folder("scenarios")


def labs_dir() -> Path:
    """The folder with one folder per teaching lab; the package ``retrompi.labs`` is the code that runs them."""
    return _folder("labs", "course.labs")


def validate_dir() -> Path:
    """The folder with the papers' claims, checks and experiments as data."""
    return _folder("validate")


def reference_dir() -> Path:
    """The folder with claims.csv and hardware.csv."""
    return validate_dir() / "reference"


def data_dir() -> Path:
    """Where a user's own data goes: ``$XDG_DATA_HOME/retrompi``, by default ``~/.local/share/retrompi``."""
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base and Path(base).is_absolute() else Path.home() / ".local" / "share") / "retrompi"


def user_models_dir() -> Path:
    """Where the user's own models are found by name (``retrompi fit`` puts them there); it need not exist."""
    return data_dir() / "models"


def user_labs_dir() -> Path:
    """Where a teacher's own labs are found by name; it need not exist."""
    return data_dir() / "labs"


def user_platforms_dir() -> Path:
    """Where the user's own platforms are found by name; it need not exist."""
    return data_dir() / "platforms"
