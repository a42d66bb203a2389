"""The terms of the labs: ``labs/glossary.toml``, an entry each with its source, linked where a lab's text first uses it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from retrompi.base import toml as toml_text
from retrompi.base import translate
from retrompi.base.errors import InputError
from retrompi.base.paths import labs_dir

__all__ = ["Term", "link_terms", "section", "terms"]

_KEYS = {"term", "match", "text", "source"}
_NO_TEXT = re.compile(r"(```[\s\S]*?```|^    .*$|`[^`\n]*`|\[[^\]\n]*\]\([^)\n]*\)|^\|.*$|^#.*$|^>.*$)", re.MULTILINE)
"""Where a text has no running words: code, links, tables, headings, quotations."""


@dataclass(frozen=True)
class Term:
    """A term: its name in an address, how it is called, how a text writes it, what it is, and where that comes from."""

    name: str
    term: str
    match: tuple[str, ...]
    text: str
    source: str
    language: str = translate.ENGLISH

    @property
    def place(self) -> str:
        """The id of its entry on a page."""
        return f"term-{self.name}"


@cache
def terms(language: str = translate.ENGLISH) -> tuple[Term, ...]:
    """Every term, in English where it has no entry in ``language``. Raises InputError for a file that does not say what is needed."""
    file = labs_dir() / "glossary.toml"
    _text, data = toml_text.read(file, "the labs' glossary")
    found = []
    for name, row in data.items():
        if not isinstance(row, dict) or not row.keys() >= _KEYS:
            raise InputError(f"[{name}] lacks one of {', '.join(sorted(_KEYS))}", file, code="missing-key")
        own: dict[str, Any] = row.get(language, {})
        said: dict[str, Any] = {k: own.get(k, row[k]) for k in _KEYS}
        spoken = language if own else translate.ENGLISH
        found.append(Term(name, said["term"], tuple(said["match"]), said["text"], row["source"], spoken))
    return tuple(found)


def link_terms(text: str, among: Sequence[Term], seen: set[str]) -> tuple[str, list[Term]]:
    """A Markdown text with a link at the first use of each term that is not in ``seen`` yet (which grows); and those terms."""
    text, used = _link(text, tuple(term for term in among if term.name not in seen))
    seen.update(term.name for term in used)
    return text, list(used)


@lru_cache(maxsize=4096)  # a class reads each student's texts again and again: a fifth of its server's time
def _link(text: str, among: tuple[Term, ...]) -> tuple[str, tuple[Term, ...]]:
    used = []
    for term in among:
        parts = _NO_TEXT.split(text)
        for i in range(0, len(parts), 2):
            at = _first(parts[i], term)
            if at is not None:
                begin, end = at
                parts[i] = f"{parts[i][:begin]}[{parts[i][begin:end]}](#{term.place}){parts[i][end:]}"
                used.append(term)
                break
        text = "".join(parts)
    return text, tuple(used)


def _first(text: str, term: Term) -> tuple[int, int] | None:
    """The first place of the term in a text, as a word of its own (with an ending such as a plural's)."""
    return min((found.span() for word in term.match if (found := _pattern(word).search(text))), default=None)


@cache
def _pattern(word: str) -> re.Pattern[str]:
    # A blank may be the end of a line, and a mark of emphasis belongs to the word.
    pattern = re.escape(word).replace(r"\ ", r"\s+")
    return re.compile(rf"(?<![\w*]){pattern}(?:s|es|n|en)?(?![\w*])" if word[0].isalnum() else pattern)


def section(used: Sequence[Term], title: str) -> str:
    """The entries as Markdown, for a text that stands alone."""
    return f"## {title}\n\n" + "\n".join(f"- **{t.term}**: {t.text} ({t.source})" for t in used) + "\n"
