"""Paths of the folders that users edit; the same functions in a source tree, an editable install and a wheel."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path

from retrompi.base.errors import RetrompiError

__all__ = ["at_hand", "data_dir", "labs_dir", "models_dir", "paper_dirs", "papers_dir", "places", "platforms_dir", "reference_dir",
           "scenarios_dir", "source_root", "stamp", "user_labs_dir", "user_models_dir", "user_platforms_dir", "validate_dir",
           "working_with"]


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
    """The folder with hardware.csv, the period's evidence and the traces."""
    return validate_dir() / "reference"


def papers_dir() -> Path:
    """The folder with one folder per paper of the package."""
    return validate_dir() / "papers"


@cache
def _papers_in(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(f for f in folder.iterdir() if (f / "paper.toml").is_file())) if folder.is_dir() else ()


_AT_HAND: list[Path] = []
_CHANGING = threading.Lock()


def at_hand() -> tuple[Path, ...]:
    """The folders of the papers that are worked with now, whose models, platforms and scenarios are found by name."""
    return tuple(dict.fromkeys(_AT_HAND))


def paper_dirs() -> tuple[Path, ...]:
    """The folders of the package's papers, by name, then those at hand."""
    return tuple(dict.fromkeys((*_papers_in(papers_dir()), *_AT_HAND)))


@contextmanager
def working_with(*folders: Path) -> Iterator[None]:
    """In the body these papers are at hand, in every thread: what simulates a paper runs its jobs in several."""
    with _CHANGING:
        _AT_HAND.extend(folders)
    try:
        yield
    finally:
        with _CHANGING:
            for folder in folders:
                _AT_HAND.remove(folder)


def places(what: str) -> list[Path]:
    """Folders that are searched for ``models``, ``platforms`` or ``scenarios`` by name, in this order: the package, the papers at hand, the
    user's.

    A folder listed need not exist.
    """
    own = {"models": [models_dir, user_models_dir], "platforms": [platforms_dir, user_platforms_dir], "scenarios": [scenarios_dir]}[what]
    return [own[0](), *(folder / what for folder in at_hand()), *(place() for place in own[1:])]


def data_dir() -> Path:
    """The folder of a user's own data: ``$XDG_DATA_HOME/retrompi``, by default ``~/.local/share/retrompi``."""
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base and Path(base).is_absolute() else Path.home() / ".local" / "share") / "retrompi"


def user_models_dir() -> Path:
    """The folder in which the user's own models are found by name (``retrompi fit`` puts them there); it need not exist."""
    return data_dir() / "models"


def user_labs_dir() -> Path:
    """The folder in which a teacher's own labs are found by name; it need not exist."""
    return data_dir() / "labs"


def user_platforms_dir() -> Path:
    """The folder in which the user's own platforms are found by name; it need not exist."""
    return data_dir() / "platforms"
