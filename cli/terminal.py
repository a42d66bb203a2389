"""The edge where text is printed: no control character of a name, a file or a program reaches a terminal.

Names in a zip, lines of a trace, texts of a model or a store may hold ESC and other characters that a terminal obeys: they could
rewrite what is on the screen, or turn the direction of writing. `no_raw_control_characters` puts `_Escaping` around stdout and stderr
while a command runs; only `paint` text and `raw` streams get past it.
"""

from __future__ import annotations

import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import click

__all__ = ["escape_controls", "no_raw_control_characters", "paint", "raw"]

_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
"""C0 without tab and line feed, DEL, C1, marks of the direction of writing, line separators, and bytes that are no UTF-8."""

_OURS = f"\ue000{secrets.token_hex(8)}"
"""Stands for ESC in `paint` text. Drawn anew in every process, so that nobody else's text can hold it."""


def escape_controls(text: str) -> str:
    r"""``text`` with every character that a terminal would obey, but for tab and line feed, as ``\u001b``: also in JSON the same text."""
    return _OBEYED.sub(lambda m: f"\\u{ord(m[0]):04x}", text)


def paint(text: str, **style: Any) -> str:
    """`click.style`, in a form that reaches the terminal; ``text`` itself is escaped."""
    return click.style(escape_controls(text), **style).replace("\x1b", _OURS)


def raw(stream: Any) -> Any:
    """The stream below the escaping one, for output that moves the cursor."""
    return stream.raw if isinstance(stream, _Escaping) else stream


class _Escaping:
    """A text stream whose text is escaped; also what its encoding has no code for."""

    def __init__(self, stream: Any) -> None:
        self.raw = stream
        found = getattr(stream, "encoding", None) or "utf-8"
        self._lacks = None if found.lower().replace("-", "") == "utf8" else found
        # click writes past a stream that says ascii.
        self.encoding = "utf-8" if found.lower() in ("ascii", "us-ascii", "ansi_x3.4-1968") else found

    def write(self, text: str) -> int:
        plain = escape_controls(text)
        if self._lacks is not None:
            plain = plain.encode(self._lacks, "backslashreplace").decode(self._lacks)
        self.raw.write(plain.replace(_OURS, "\x1b"))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


@contextmanager
def no_raw_control_characters() -> Iterator[None]:
    """In the body, what is printed on stdout and stderr is escaped."""
    out, err = (s if s is None or isinstance(s, _Escaping) else _Escaping(s) for s in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        yield
