"""Pieces of texts and programs, for the comparison of submissions."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

__all__ = ["normal_source", "passages", "pieces", "shapes"]

WORDS = 5
"""Length of a piece of a text."""
TOKENS = 20
"""Length of a piece of a program."""
_KEPT = frozenset((
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern", "float", "for",
    "goto", "if", "inline", "int", "long", "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef",
    "union", "unsigned", "void", "while", "def", "import", "lambda", "class",
))
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|#(?!\s*(?:include|define|if|else|endif|pragma)\b)[^\n]*", re.DOTALL)
_TOKEN = re.compile(
    r"""(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|(?P<number>\d[\w.]*)|(?P<name>[^\W\d]\w*)|(?P<sign>[-+*/%&|^=!<>]=?|\S)"""
)


def pieces(words: Sequence[str]) -> set[tuple[str, ...]]:
    """Every sequence of `WORDS` words."""
    return {tuple(words[i : i + WORDS]) for i in range(len(words) - WORDS + 1)}


def passages(words: Sequence[str], common: Collection[tuple[str, ...]]) -> list[list[str]]:
    """The longest stretches of ``words`` whose every piece is one of ``common``."""
    out, begun = [], None
    for i in range(len(words) - WORDS + 2):
        inside = i <= len(words) - WORDS and tuple(words[i : i + WORDS]) in common
        if inside and begun is None:
            begun = i
        elif not inside and begun is not None:
            out.append(list(words[begun : i - 1 + WORDS]))
            begun = None
    return out


def normal_source(text: str) -> str:
    """A program or table without comments, blanks and case."""
    plain = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    plain = re.sub(r"(//|#)(?!\s*(include|define)\b).*", "", plain)
    return "".join(plain.split())


def shapes(text: str) -> set[tuple[str, ...]]:
    """Every sequence of `TOKENS` tokens of a program, in which names, numbers and texts are only that: renaming and layout change nothing.

    Keywords and the names of MPI stay.
    """
    tokens = []
    for found in _TOKEN.finditer(_COMMENT.sub(" ", text)):
        kind, token = found.lastgroup or "", found[0]
        if kind == "name":
            token = token if token in _KEPT or token.startswith("MPI_") else "name"
        elif kind in ("text", "number"):
            token = kind
        tokens.append(token)
    return {tuple(tokens[i : i + TOKENS]) for i in range(len(tokens) - TOKENS + 1)}
