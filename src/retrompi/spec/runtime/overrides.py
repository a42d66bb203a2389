"""Overrides in the form of the command line: ``--set KEY=VALUE``, with absolute values and with such as ``x2`` or ``50%``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction

from retrompi.base import units
from retrompi.base.errors import UsageError

__all__ = ["absolute", "merge", "parse_sets", "tell", "telling"]

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


@contextmanager
def telling(listener: Callable[[str], None]) -> Iterator[None]:
    """Within the context, ``listener`` is called with a line for each relative override, when it is known what it comes to."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(line: str) -> None:
    """Passes ``line`` to the listener of `telling`, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(line)


def parse_sets(sets: Mapping[str, str] | Sequence[str]) -> dict[str, str]:
    """``["wmpi.pool=10MiB", ...]`` -> ``{"wmpi.pool": "10MiB"}``; the last of equal keys wins, a relative one changes the one before it.

    Raises UsageError for an item that is not KEY=VALUE.
    """
    if isinstance(sets, Mapping):
        return {str(k).strip(): str(v).strip() for k, v in sets.items()}
    pairs: dict[str, str] = {}
    for item in sets:
        key, equals, text = item.partition("=")
        if not equals or not key.strip() or not text.strip():
            raise UsageError(f"'--set {item}' is not KEY=VALUE; example: --set wmpi.pool=10MiB", code="bad-syntax")
        pairs = merge(pairs, {key.strip(): text.strip()})
    return pairs


def absolute(text: str, unit: str, before: str, key: str) -> str:
    """``text`` if it is a value of its own; if it is a factor, the text of that times ``before``, the value in force, in ``unit``.

    Raises UsageError, beginning with ``key``, where no factor changes ``before``: it is zero or not a number.
    """
    factor = units.parse_factor(text, unit)
    if factor is None:
        return text
    try:
        changes = units.parse(before, unit) != 0
    except UsageError:
        changes = False
    if not changes:
        raise UsageError(f"{key}: '{text}' is relative, and the value here is {before}, which no factor changes; give a value",
                         code="bad-value")
    return units.scale_text(before, factor, unit)


def merge(sets: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """``sets`` with ``more`` applied after them: ``x2`` doubles what ``sets`` already gives that key, and waits for its value if none does.

    Raises UsageError for a percentage after a plain number, which may be a part of it or a probability.
    """
    found = dict(sets)
    for key, text in more.items():
        found[key] = _after(key, found[key], text) if key in found else text
    return found


_NUMBER = re.compile(r"([x×]?\s*)(\d[\d_]*\.?\d*(?:[eE][+-]?\d+)?|\.\d+)(\s*\S*)")


def _after(key: str, before: str, text: str) -> str:
    """The override ``text`` of ``key`` applied after the override ``before``: a factor multiplies its number, which may be a factor too."""
    factor, found = units.parse_factor(text, "1"), _NUMBER.fullmatch(before)
    if factor is None or found is None:
        return text
    if text.endswith("%") and not found[1] and found[3].strip() in ("", "%"):
        raise UsageError(f"{key}: '{text}' after '{before}' may be a part of it or a probability; write x{float(factor):g}, or a value",
                         code="bad-value")
    return f"{found[1]}{float(Fraction(found[2].replace('_', '')) * factor):.12g}{found[3]}"
