"""What a database can hold, checked before it is asked, so that SQLite and PostgreSQL take and refuse the same."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import sqlalchemy as sa

from retrompi.base.errors import UsageError

__all__ = ["fitted"]

_UNHEARD_OF = re.compile("[\0\ud800-\udfff]")


def fitted(table: Any, row: Mapping[str, Any]) -> dict[str, Any]:
    """The row as both databases hold it. NUL and what is not Unicode (a file's name in another encoding) become their escapes.

    Raises UsageError for a text longer than its column: PostgreSQL refuses it, SQLite would not.
    """
    out = dict(row)
    for name, most in _texts(table).items():
        value = out.get(name)
        if isinstance(value, str):
            out[name] = value = _plain(value)
            if most is not None and len(value) > most:
                raise UsageError(f"{name} '{value[:40]}…' has {len(value)} characters; the store holds {most}", code="bad-name")
    for name in _objects(table):
        # A pair of escapes that is one character has been told apart by json: it leaves none with ensure_ascii=False.
        if isinstance(out.get(name), dict | list) and _UNHEARD_OF.search(_json(out[name])):
            out[name] = _clean(out[name])
    return out


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
def _texts(table: Any) -> dict[str, int | None]:
    """Column -> its longest text; None for one without a limit."""
    columns = sa.inspect(table).local_table.columns
    return {c.name: c.type.length for c in columns if isinstance(c.type, sa.String)}


@cache
def _objects(table: Any) -> tuple[str, ...]:
    return tuple(c.name for c in sa.inspect(table).local_table.columns if isinstance(c.type, sa.JSON))
