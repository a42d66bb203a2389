"""Reading the files of a paper's folder: CSV tables row by row, and the line of a TOML file where something stands.

Whatever a user's file holds becomes an `InputError` with file and line; the functions collect them, so that all can be shown at once.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from retrompi.base.errors import InputError, nearest
from retrompi.base.files import open_regular

__all__ = ["LARGEST", "Rows", "line_of", "read_rows", "text_of"]

LARGEST = 8 << 20
"""Bytes of a file of a paper, at most: a table of every claim ever printed is smaller."""

Rows = list[tuple[int, dict[str, str]]]
"""(line, column -> text) of every row."""


def text_of(path: Path) -> str:
    """The text of a file, at most `LARGEST`. Raises InputError with the line of the first byte that is not UTF-8."""
    try:
        with open_regular(path) as handle:
            data = handle.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError(f"cannot read this file: {reason}", path, code="unreadable-file") from None
    if len(data) > LARGEST:
        raise InputError(f"the file is larger than {LARGEST >> 20} MiB", path, code="too-large")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError("the text is not UTF-8; save the file as UTF-8", path, line, code="unreadable-file") from None


def read_rows(path: Path, required: Sequence[str], optional: Sequence[str] | None = ()) -> tuple[Rows, list[InputError]]:
    """The rows of a CSV file that have every column, and what is wrong with the others.

    ``optional`` None allows any further column; a missing optional one is "". A row that is empty is skipped.
    """
    try:
        reader = csv.reader(io.StringIO(text_of(path), newline=""))
        head = [name.strip() for name in next(reader, [])]
    except csv.Error as error:
        return [], [InputError(f"not a CSV table: {error}", path, 1, code="unreadable-file")]
    except InputError as error:
        return [], [error]
    problems = _of_head(path, head, required, optional)
    if any(p.code == "missing-key" for p in problems):
        return [], problems
    found: Rows = []
    last = reader.line_num
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            problems.append(InputError(f"not a CSV table: {error}", path, last + 1, code="unreadable-file"))
            break
        if row is None:
            break
        line, last = last + 1, reader.line_num  # a quoted text may go over several lines; the row begins at the first
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(head):
            more = "more" if len(row) > len(head) else "fewer"
            quote = "; a text with a comma stands in double quotes" if len(row) > len(head) else ""
            said = f"the row has {len(row)} columns, {more} than the {len(head)} of the first line{quote}"
            problems.append(InputError(said, path, line, code="missing-key"))
            continue
        found.append((line, {**dict.fromkeys(optional or (), ""), **dict(zip(head, row, strict=True))}))
    return found, problems


def _of_head(path: Path, head: list[str], required: Sequence[str], optional: Sequence[str] | None) -> list[InputError]:
    problems = []
    if missing := [name for name in required if name not in head]:
        problems.append(InputError(f"columns missing: {', '.join(missing)}", path, 1, code="missing-key"))
    known = [*required, *(optional or ())]
    if optional is not None:
        unknown = [name for name in head if name not in known]
        problems += [InputError(f"no column '{name[:60]}'{nearest(name, known, 20)}", path, 1, code="unknown-key") for name in unknown]
    twice = sorted({name for name in head if head.count(name) > 1})
    problems += [InputError(f"the column '{name[:60]}' is given twice", path, 1, code="duplicate-name") for name in twice]
    return problems


def line_of(text: str, key: str = "", table: str = "", index: int = 0) -> int | None:
    """The line of ``key`` in a TOML text, or of the header of the ``index``-th ``[[table]]`` (or ``[table]``); None if neither is found.

    ``key`` is looked for below that header, or above all headers without a ``table``.
    """
    lines, heads = _headers(text)
    start, end = 0, len(lines)
    if table:
        mine = [n for n, name in heads if name == table]
        if index >= len(mine):
            return None
        start = mine[index]
        end = next((n for n, _ in heads if n > start), end)
    elif heads:
        end = heads[0][0]
    if key:
        wanted = re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*[=.]""")
        return next((n + 1 for n in range(start, end) if wanted.match(lines[n])), start + 1 if table else None)
    return start + 1


@lru_cache(maxsize=64)
def _headers(text: str) -> tuple[list[str], list[tuple[int, str]]]:
    """The lines of a TOML text, and (index, name) of those that are the header of a table."""
    lines = text.splitlines()
    found = ((n, re.match(r"""\s*\[\[?\s*["']?(.*?)["']?\s*(?:\]|$)""", line)) for n, line in enumerate(lines))
    return lines, [(n, head[1]) for n, head in found if head]
