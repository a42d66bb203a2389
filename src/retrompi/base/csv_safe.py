"""The one way to write CSV: no cell that a spreadsheet would run as a formula (CSV injection), whoever gave its text."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

__all__ = ["safe_cell", "write_back", "write_rows"]

_HARMLESS = re.compile(r"[-%]|[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)? ?[A-Za-zµ/]{0,8}")
"""A dash for no value, percent as a unit, and numbers with a unit."""


class _Writable(Protocol):
    def write(self, text: str, /) -> object: ...


def safe_cell(text: str) -> str:
    """``text`` on one line without control characters; text that a spreadsheet would read as a formula is prefixed with an apostrophe."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if _HARMLESS.fullmatch(plain):
        return plain
    return f"'{plain}" if re.match(r"[=+\-@＝＋－＠|%]", plain) or text.startswith(("\t", "\r", "\n")) else plain


def _cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        return safe_cell(value)
    # repr keeps every digit of a float.
    return "" if value is None else repr(value) if isinstance(value, float) else value


def write_rows(out: _Writable, names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """A line of ``names``, then a line for each row; None is an empty field, a list or a table is JSON."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([safe_cell(name) for name in names])
    writer.writerows([_cell(row.get(name)) for name in names] for row in rows)


def write_back(out: _Writable, lines: Iterable[Sequence[str]]) -> None:
    """Lines of a table that another program wrote and will read again, cell for cell as they were; what was filled in is safe already."""
    csv.writer(out, lineterminator="\n").writerows(lines)
