"""Checks that a text or number fits into a database, so that SQLite and PostgreSQL accept and refuse the same."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import sqlalchemy as sa

from retrompi.base.errors import UsageError

__all__ = ["JsonText", "fit_row", "to_json"]

_UNHEARD_OF = re.compile("[\0\ud800-\udfff]")


_ESCAPED = re.compile(r"\\u(0000|d[89a-f])")
"""In JSON of ASCII: what may be `_UNHEARD_OF`."""


class JsonText(str):
    """A value of a JSON column, already as text: of many rows with the same value it is written once."""

    __slots__ = ()


def to_json(value: Any) -> str:
    """How every JSON column is written."""
    return value if isinstance(value, JsonText) else json.dumps(value)


def fit_row(table: sa.Table, row: Mapping[str, Any], known: dict[int, tuple[Any, JsonText]] | None = None) -> dict[str, Any]:
    """The row as both databases hold it. NUL and what is not Unicode (a file's name in another encoding) become their escapes. Of rows
    that share objects, and ``known``, those are written once.

    Raises UsageError for a text longer than its column: PostgreSQL refuses it, SQLite would not.
    """
    out = dict(row)
    for name, most in _texts(table).items():
        value = out.get(name)
        if isinstance(value, str):
            if not value.isascii() or "\0" in value:
                out[name] = value = _plain(value)
            if most is not None and len(value) > most:
                raise UsageError(f"{name} '{value[:40]}…' has {len(value)} characters; the store holds {most}", code="bad-name")
    for name in _objects(table):
        if isinstance(out.get(name), dict | list):
            out[name] = _as_json(out[name], known)
    return out


def _as_json(value: Any, known: dict[int, tuple[Any, JsonText]] | None) -> JsonText:
    if known is not None and (found := known.get(id(value))) is not None:
        return found[1]
    text = json.dumps(value)
    # A pair of escapes that is one character has been told apart by json: it leaves none with ensure_ascii=False.
    if _ESCAPED.search(text) and _UNHEARD_OF.search(_json(value)):
        text = json.dumps(_clean(value))
    if known is not None:
        known[id(value)] = value, JsonText(text)
    return JsonText(text)


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("\\u0000", "\0") if "\\u0000" in text else text


def _plain(text: str) -> str:
    return _UNHEARD_OF.sub(lambda m: f"\\x{ord(m[0]):02x}" if m[0] == "\0" else f"\\u{ord(m[0]):04x}", text)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return _plain(value)
    if isinstance(value, Mapping):
        return {_plain(str(k)): _clean(v) for k, v in value.items()}
    return [_clean(v) for v in value] if isinstance(value, list | tuple) else value


@cache
def _texts(table: sa.Table) -> dict[str, int | None]:
    """Column -> its longest text; None for one without a limit."""
    return {c.name: c.type.length for c in table.columns if isinstance(c.type, sa.String)}


@cache
def _objects(table: sa.Table) -> tuple[str, ...]:
    return tuple(c.name for c in table.columns if isinstance(c.type, sa.JSON))
