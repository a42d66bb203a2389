"""TOML files: reading with the line number of an error, and writing of generated files (fits, platforms)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from retrompi.base.errors import InputError, RetrompiError
from retrompi.base.files import read_text

__all__ = ["parse", "quote", "read", "tables", "taken_apart", "value"]


def read(path: Path, what: str) -> tuple[str, dict[str, Any]]:
    """(text, tables) of the file ``path``; ``what`` names its kind in messages. Raises InputError with the file and, if known, the line."""
    try:
        text = read_text(path)
    except (OSError, ValueError) as error:  # ValueError: no UTF-8, a name with NUL
        raise _unreadable(path, what, error) from None
    return text, parse(text, path, what)


def parse(text: str, path: Path, what: str) -> dict[str, Any]:
    """The tables of the ``text`` of the file ``path``; raises as `read`."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        raise InputError(f"not valid TOML: {error}", path, int(found[1]) if found else None, code="unreadable-file") from None
    except (ValueError, RecursionError) as error:  # ValueError: a number of too many digits
        raise _unreadable(path, what, error) from None


def _unreadable(path: Path, what: str, error: Exception) -> InputError:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return InputError(f"cannot read this {what}: {reason}", path, code="unreadable-file")


@contextmanager
def taken_apart(what: str, path: str | Path | None) -> Iterator[None]:
    """In the body, the tables of a user's file are taken apart: a value of a type that no check there names is an error of the file.

    Such an exception becomes an InputError that names ``path`` and ``what`` the file was to be.
    """
    try:
        yield
    except RetrompiError:
        raise
    except (TypeError, AttributeError, LookupError, ValueError, ArithmeticError, RecursionError) as error:
        missing = f"'{error.args[0]}' is missing" if isinstance(error, KeyError) and error.args else str(error)
        raise InputError(f"this is no {what}: a value has a wrong type or shape ({missing})", path, code="bad-value") from error


def quote(text: str) -> str:
    """``text`` as a TOML basic string; backslashes, quotes and control characters are escaped."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c >= " " and c != "\x7f" else f"\\u{ord(c):04X}" for c in plain) + '"'


def value(v: Any) -> str:
    """``v`` in TOML syntax; a float with eight significant digits, a mapping as an inline table."""
    if isinstance(v, Mapping):
        return "{ " + ", ".join(f"{quote(str(k))} = {value(x)}" for k, x in v.items()) + " }"
    if isinstance(v, list | tuple):
        return "[" + ", ".join(value(x) for x in v) + "]"
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, int):
        return str(v)
    if isinstance(v, float):
        return f"{v:.8g}"
    return quote(str(v))


def tables(command: str, given: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """The text of a file of tables ``[NAME.PART]``, sorted by name; the first line is a comment naming the ``command`` that wrote it."""
    out = [f"# Written by `{command}`; not by hand."]
    for name in sorted(given):
        for part, rows in given[name].items():
            out.append(f"\n[{quote(name)}.{part}]")
            out += [f"{quote(k)} = {value(v)}" for k, v in rows.items()]
    return "\n".join(out) + "\n"
