"""Tables as the text of a TOML file, for what programs write and people read: fits and platforms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["quoted", "tables", "value"]


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
