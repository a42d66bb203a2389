"""Markdown from data rows and docstrings: data are escaped, so that no asterisk or angle bracket of a source is taken for markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["ManualPage", "anchor", "cite", "escape", "link", "slug", "table"]

_SPECIAL = re.compile(r"([\\`*_\[\]|<>#])")
_ROW = re.compile(r"\b[A-Z][A-Z0-9]*(?:-[A-Za-z0-9_]+)+")


@dataclass(frozen=True)
class ManualPage:
    """One page: ``path`` below the site's root (``reference/models/wmpi.md``), its ``section`` in the navigation, title and text."""

    path: str
    section: str
    title: str
    text: str


def escape(text: object) -> str:
    """``text`` on one line, escaped so that Markdown shows it literally."""
    return _SPECIAL.sub(lambda m: "&lt;" if m[1] == "<" else "&gt;" if m[1] == ">" else "\\" + m[1], " ".join(str(text).split()))


def slug(name: str) -> str:
    """A file name for a name: ``wmpi:absorbed`` -> ``wmpi-absorbed``."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()


def anchor(name: str) -> str:
    """A heading attribute that sets the identifier ``name``."""
    return f"{{ #{slug(name)} }}"


def link(text: str, path: str) -> str:
    """A link that shows ``text``."""
    return f"[{escape(text)}]({path})"


def cite(text: str, known: Mapping[str, Any], root: str) -> str:
    """``text`` escaped, with every reference row it names linked to its entry in ``sources.md`` below ``root``."""
    out, at = [], 0
    for found in _ROW.finditer(text):
        if found[0] in known:
            out += [escape_inside(text[at : found.start()]), link(found[0], f"{root}sources.md#{slug(found[0])}")]
            at = found.end()
    return " ".join("".join([*out, escape_inside(text[at:])]).split())


def escape_inside(text: str) -> str:
    """`escape` that keeps a blank at either end."""
    return f"{' ' if text[:1].isspace() else ''}{escape(text)}{' ' if text[-1:].isspace() else ''}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table of cells that already are Markdown; empty columns are left out."""
    body = [list(r) for r in rows]
    kept = [i for i in range(len(heads)) if any(r[i] for r in body)]
    lines = [[heads[i] for i in kept], ["---"] * len(kept), *([r[i] for i in kept] for r in body)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
