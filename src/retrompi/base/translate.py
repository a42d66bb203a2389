"""Translation of texts: gettext with a language that belongs to the context (a request, a command) instead of the process.

``_("Whole sentence with {name}.").format(name=...)`` where a text is shown; English is its own key. A text of a module is made before
anybody's language is known: it is marked with `lazy` and translated where it is shown, ``_(page.title)``. Catalogues are the .po files
of ``locale/``: one a language, read when the language is first asked for (docs/translating.md).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from gettext import GNUTranslations, NullTranslations
from io import BytesIO
from pathlib import Path
from typing import Any

from retrompi.base.errors import InputError, UsageError, nearest

__all__ = ["ENGLISH", "NAMES", "PSEUDO", "_", "among", "catalogue", "check_language", "count", "language", "languages", "lazy", "ngettext",
           "of_environment", "of_scripts", "pgettext", "speaking", "use"]

ENGLISH = "en"
NAMES = {"en": "English", "de": "Deutsch", "fr": "Français"}
"""Language -> its name in itself: those that a person may choose."""
PSEUDO = "qps"
"""A language for tests only, in which every translated text stands in ⟦⟧: what has none was not translated."""
_PLURALS = 200
_LOCALE = Path(__file__).resolve().parent.parent / "locale"
_current: ContextVar[str] = ContextVar("language", default=ENGLISH)


class _Pseudo(NullTranslations):
    """Every text of the catalogues in brackets: what is asked for and in none stays bare, as it would in any language."""

    def __init__(self, known: str) -> None:
        super().__init__()
        self._known = {(e.msgctxt or "", e.msgid) for e in _entries(known)}

    def gettext(self, message: str) -> str:
        return self.pgettext("", message)

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        said = msgid1 if n == 1 else msgid2
        return f"⟦{said}⟧" if ("", msgid1) in self._known else said

    def pgettext(self, context: str, message: str) -> str:
        return f"⟦{message}⟧" if (context, message) in self._known else message

    @staticmethod
    def plural(n: int) -> int:
        return int(n != 1)


def catalogue(which: str) -> Path:
    """The file with a language's texts."""
    return _LOCALE / which / "LC_MESSAGES" / "retrompi.po"


@cache
def _entries(which: str) -> Any:
    """A language's catalogue. Raises InputError where it cannot be read."""
    import polib

    file = catalogue(which)
    try:
        return polib.pofile(str(file), encoding="utf-8", wrapwidth=0)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the texts of '{which}': {error}", file, code="unreadable-file") from None


def _any() -> str:
    """A language with a catalogue: all have the same texts."""
    return next(k for k in NAMES if k != ENGLISH and catalogue(k).is_file())


@cache
def _texts(which: str) -> NullTranslations:
    """A language's texts. Raises InputError for a catalogue that cannot be read."""
    if which == ENGLISH:
        return NullTranslations()
    return _Pseudo(_any()) if which == PSEUDO else GNUTranslations(BytesIO(_entries(which).to_binary()))


@cache
def _of_scripts(which: str, place: str) -> dict[str, str | list[str]]:
    texts, known = _texts(which), _any() if which == PSEUDO else which
    form: Callable[[int], int] = getattr(texts, "plural")  # noqa: B009 - typeshed's translations have none
    rule = "".join(str(form(n)) for n in range(_PLURALS))
    found: dict[str, str | list[str]] = {"": rule}
    for entry in _entries(known):
        if any(file.endswith(".js") and place in file for file, _line in entry.occurrences):
            one, many = entry.msgid, entry.msgid_plural
            found[one] = [texts.ngettext(one, many, rule.index(d)) for d in sorted(set(rule))] if many else texts.gettext(one)
    return found


def of_scripts(place: str) -> dict[str, str | list[str]]:
    """The texts of the scripts in ``place``, a part of their path, for `retrompiWordsOf` (render/document/words.js); nothing in English.

    By the English text, the plural forms of those that have some; "" -> the digit of the form for 0 .. 199 things: no language's rule
    looks at more than the last two digits of a number from 100 on.
    """
    return {} if _current.get() == ENGLISH else _of_scripts(_current.get(), place)


def languages() -> list[str]:
    """The languages that a person may choose, English first."""
    return [which for which in NAMES if which == ENGLISH or catalogue(which).is_file()]


def language() -> str:
    """The language of the context, as in the lang attribute of HTML."""
    return _current.get()


def use(which: str) -> None:
    """Sets the language of the context, until it is set again. Raises UsageError for one that there is not."""
    _current.set(check_language(which))


def check_language(which: str) -> str:
    """A language's code; UsageError for one that there is not."""
    if which != PSEUDO and which not in languages():
        raise UsageError(f"no language '{which[:40]}'{nearest(which[:40], languages())}", code="unknown-name")
    return which


@contextmanager
def speaking(which: str) -> Iterator[None]:
    """The language of the context within a block."""
    token = _current.set(check_language(which))
    try:
        yield
    finally:
        _current.reset(token)


def lazy(text: str) -> str:
    """Marks a text for the catalogue without translating it: ``_(text)`` where it is shown does."""
    return text


def _(text: str) -> str:
    """``text`` in the language of the context; itself where it has no translation."""
    return _texts(_current.get()).gettext(text) if text else text


def ngettext(one: str, many: str, n: int) -> str:
    """The text for ``n`` things: some languages have more or other plurals than English."""
    return _texts(_current.get()).ngettext(one, many, n)


def pgettext(context: str, text: str) -> str:
    """``text`` where one English word has several translations: ``context`` says which is meant."""
    return _texts(_current.get()).pgettext(context, text)


def count(n: int) -> str:
    """A whole number: a comma between its thousands would be read as a decimal one wherever that is not a point."""
    return f"{n:,}".replace(",", "," if _current.get() == ENGLISH else "\u202f")


def among(wanted: str) -> str | None:
    """The language of a tag such as ``de-AT``, ``fr_CA.UTF-8`` or ``C``; None when there is none of it."""
    plain = wanted.partition(".")[0].partition("@")[0].replace("_", "-").casefold()
    if plain in ("c", "posix"):
        return ENGLISH
    found = plain.partition("-")[0]
    return found if found in languages() else None


def of_environment(environ: Mapping[str, str] | None = None) -> str:
    """The language of a terminal, by gettext's rules: LC_ALL, LC_MESSAGES or LANG, and LANGUAGE (a list) unless that is C."""
    given = os.environ if environ is None else environ
    locale = next((given[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if given.get(name)), "C")
    wanted = [locale] if among(locale) == ENGLISH and locale[:2] != "en" else [*given.get("LANGUAGE", "").split(":"), locale]
    return next((found for tag in wanted if tag and (found := among(tag)) is not None), ENGLISH)
