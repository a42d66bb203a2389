"""TOML files: reading with the line number of an error, and writing of generated files (fits, platforms)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from retrompi.base.errors import InputError

__all__ = ["quoted", "read", "tables", "value"]


def read(path: Path, what: str) -> tuple[str, dict[str, Any]]:
    """(text, tables) of the file ``path``; ``what`` names its kind in messages. Raises InputError with the file and, if known, the line."""
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
    """``text`` as a TOML basic string; backslashes, quotes and control characters are escaped."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c >= " " and c != "\x7f" else f"\\u{ord(c):04X}" for c in plain) + '"'


def value(v: Any) -> str:
    """``v`` in TOML syntax; a float with eight significant digits, a mapping as an inline table."""
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
    """The text of a file of tables ``[NAME.PART]``, sorted by name; the first line is a comment naming the ``command`` that wrote it."""
    out = [f"# Written by `{command}`; not by hand."]
    for name in sorted(given):
        for part, rows in given[name].items():
            out.append(f"\n[{quoted(name)}.{part}]")
            out += [f"{quoted(k)} = {value(v)}" for k, v in rows.items()]
    return "\n".join(out) + "\n"
