"""The values that callbacks take from a browser: one declaration for each component's property, checked before a callback is called.

A post can contain any JSON. The controls of a page are declared by `retrompi.studio.requests.state.Control`, other inputs by the page's
``inputs`` or, where a property means the same everywhere (clicks, ticks, files), here. Registering a callback with an undeclared input is
an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from retrompi.base.errors import UsageError
from retrompi.studio.requests.state import MOST_CHARACTERS, Control, OneOf

__all__ = ["EVERYWHERE", "Check", "count", "for_each", "mapping", "number", "of_control", "text", "texts", "texts_by_name"]

Check = Callable[[Any], None]
"""Raises UsageError, in one line, for a value that no page of the studio sends."""

_UNWRITABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
MOST_TEXTS = 100
LARGEST = 1 << 53


def _refuse(wanted: str) -> UsageError:
    return UsageError(f"{wanted} is wanted here", code="out-of-range")


def text(most: int = 500) -> Check:
    """A text of at most ``most`` characters, without control characters and halves of surrogate pairs; or None."""

    def check(value: Any) -> None:
        if value is not None and (not isinstance(value, str) or len(value) > most):
            raise _refuse(f"a text of at most {most} characters")
        if value and _UNWRITABLE.search(value):
            raise _refuse("a text without control characters")

    return check


def texts(most: int = MOST_TEXTS, each: Check | None = None) -> Check:
    """A list of at most ``most`` texts, or None."""
    one = each or text()

    def check(value: Any) -> None:
        if value is not None and (not isinstance(value, list) or len(value) > most or not all(isinstance(v, str) for v in value)):
            raise _refuse(f"a list of at most {most} texts")
        for v in value or ():
            one(v)

    return check


def number(value: Any) -> None:
    """A number within what a browser counts exactly, or None."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= LARGEST):
        raise _refuse("a number")


def count(value: Any) -> None:
    """A whole number from 0, or None: clicks, ticks."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST):
        raise _refuse("a whole number")


def texts_by_name(value: Any) -> None:
    """Texts by name, or None."""
    if value is not None and (not isinstance(value, dict) or len(value) > MOST_TEXTS):
        raise _refuse(f"at most {MOST_TEXTS} texts by name")
    for k, v in (value or {}).items():
        text(200)(k)
        if not isinstance(v, str):
            raise _refuse("a text by name")
        text(200)(v)


def mapping(**fields: Check) -> Check:
    """An object with these fields, each of which may be absent, or None."""

    def check(value: Any) -> None:
        if value is not None and not isinstance(value, dict):
            raise _refuse(f"an object with {', '.join(fields)}")
        for name, of in fields.items():
            of((value or {}).get(name))

    return check


def for_each(check: Check) -> Check:
    """For a pattern of components: a list of values."""

    def check_each(value: Any) -> None:
        if not isinstance(value, list) or len(value) > 10_000:
            raise _refuse("a list of values")
        for v in value:
            check(v)

    return check_each


EVERYWHERE: Mapping[str, Check] = {
    "n_clicks": count,
    "n_intervals": count,
    "pathname": text(),
    "search": text(MOST_CHARACTERS),
    "contents": text(64 << 20),
    "filename": text(4096),
    "studio-tab.data": text(60),
    "studio-letters.data": number,
}
"""By property, or by id and property."""


def of_control(control: Control) -> Check:
    """The check of a control's property, by its default and its parser. A menu's value is one of its choices; what a user types may be
    wrong, which the callback tells."""
    if control.named:
        return texts_by_name
    menu = control.parse if isinstance(control.parse, OneOf) else None

    def one(value: Any) -> None:
        text(MOST_CHARACTERS)(value)
        if menu is not None and value:
            menu(value)

    if control.listed:
        return texts(each=one)
    if isinstance(control.default, (int, float)):
        return number
    return one
