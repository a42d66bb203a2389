"""What the scripts that look through a checkout share: its files, and where something stands in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, order=True)
class Place:
    """Where something stands, and what."""

    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


def sources(root: Path, folders: Sequence[str], *endings: str) -> Iterator[tuple[str, str]]:
    """(path from the root, text) of the files in these folders with these endings."""
    for folder in folders:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in endings and file.is_file():
                yield file.relative_to(root).as_posix(), file.read_text(encoding="utf-8")
