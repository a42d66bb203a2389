"""Escaping of untrusted text in tables that may be opened in a spreadsheet (CSV injection)."""

from __future__ import annotations

import re

__all__ = ["safe_cell"]


def safe_cell(text: str) -> str:
    """``text`` on one line without control characters; text that a spreadsheet would read as a formula is prefixed with an apostrophe."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return f"'{plain}" if re.match(r"[=+\-@＝＋－＠|%]", plain) or text.startswith(("\t", "\r", "\n")) else plain
