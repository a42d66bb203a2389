"""The tables that checks and comparisons of posteriors are kept in: a file of rows, each a dataclass of numbers and texts."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from retrompi.base.csv_safe import write_rows
from retrompi.base.errors import InputError

__all__ = ["read_rows", "write_table"]

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

R = TypeVar("R", bound="DataclassInstance")
_TYPES = {"int": int, "float": float, "str": str}


def read_rows(path: Path, kind: type[R], what: str) -> list[R]:
    """The rows of the table of ``what``, of the class ``kind``; none without a file. Raises InputError for a file that cannot be read."""
    if not path.is_file():
        return []
    types: Mapping[str, Callable[[str], Any]] = {f.name: _TYPES[str(f.type)] for f in fields(kind)}
    try:
        with path.open(encoding="utf-8", newline="") as text:
            return [kind(**{k: types[k](v) for k, v in row.items()}) for row in csv.DictReader(text)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"no table of {what}: {error}", path, code="unreadable-file") from None


def write_table(path: Path, kind: type[R], rows: Iterable[R], what: str) -> None:
    """Writes the table. Raises InputError if it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", newline="") as text:
            write_rows(text, [f.name for f in fields(kind)], [asdict(r) for r in rows])
    except OSError as error:
        raise InputError(f"cannot write the table of {what}: {error.strerror}", path, code="unwritable-file") from None
