"""TOML files: read with the line of a mistake, and written for what programs make and people read (fits, platforms)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from retrompi.base.errors import InputError

__all__ = ["quoted", "read", "tables", "value"]


def read(path: Path, what: str) -> tuple[str, dict[str, Any]]:
    """(text, tables) of the file ``path``, which is a ``what``; raises InputError with file and, where it is known, line."""
    try:
        text = path.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        raise InputError(f"not valid TOML: {error}", path, int(found[1]) if found else None, code="unreadable-file") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError(f"cannot read this {what}: {reason}", path, code="unreadable-file") from None


def quoted(text: str) -> str:
    """A basic string of TOML; what it may not hold as it is (control characters) is escaped."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c >= " " and c != "\x7f" else f"\\u{ord(c):04X}" for c in plain) + '"'


def value(v: Any) -> str:
    """A value as TOML writes it; a float with eight digits, a mapping as an inline table."""
    if isinstance(v, Mapping):
        return "{ " + ", ".join(f"{quoted(str(k))} = {value(x)}" for k, x in v.items()) + " }"
    if isinstance(v, list | tuple):
        return "[" + ", ".join(value(x) for x in v) + "]"
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, int):
        return str(v)
    if isinstance(v, float):
        return f"{v:.8g}"
    return quoted(str(v))


def tables(command: str, given: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """The text of a file of tables ``[NAME.PART]``, sorted by name; its first line says that ``command`` wrote it."""
    out = [f"# Written by `{command}`; not by hand."]
    for name in sorted(given):
        for part, rows in given[name].items():
            out.append(f"\n[{quoted(name)}.{part}]")
            out += [f"{quoted(k)} = {value(v)}" for k, v in rows.items()]
    return "\n".join(out) + "\n"
