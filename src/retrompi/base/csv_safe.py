"""Texts of others in a table that a spreadsheet opens."""

from __future__ import annotations

import re

__all__ = ["safe_cell"]


def safe_cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula: what begins like one gets an apostrophe in front; one line, no control characters."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return f"'{plain}" if re.match(r"[=+\-@＝＋－＠|%]", plain) or text.startswith(("\t", "\r", "\n")) else plain
