"""The state of a page as the query of its address: a link that is shared gives the same view.

A page lists its `Control`s. The application keeps the address bar in step (assets/studio.js follows the rules of `encode`), and a page's
layout sets its controls by `read`. Values at their default are omitted, unless the link would mean another one without them.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote

from retrompi.base.errors import RetrompiError, UsageError, nearest
from retrompi.base.translate import _

__all__ = ["Control", "OneOf", "Parse", "Query", "choice", "encode", "flag", "link", "number", "read", "text"]

MOST_CHARACTERS = 8192
_MOST_VALUES = 200

Parse = Callable[[str], Any]


class Query(Mapping[str, str]):
    """The query of an address: the last value of a key by ``query["model"]``, all of them by ``query.all("set")``."""

    def __init__(self, search: str = "") -> None:
        self.too_long = len(search) > MOST_CHARACTERS
        pairs = [] if self.too_long else parse_qsl(search.lstrip("?"), keep_blank_values=True, errors="replace")
        self._found: dict[str, list[str]] = {}
        for key, value in pairs[:_MOST_VALUES]:
            self._found.setdefault(key, []).append(value)

    def __getitem__(self, key: str) -> str:
        return self._found[key][-1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def also(self, key: str, value: str) -> Query:
        """The query with one more value."""
        more = Query()
        more.too_long, more._found = self.too_long, {**self._found, key: [*self.all(key), value]}
        return more

    def all(self, key: str) -> list[str]:
        """Every value of a key, in order; [] without one."""
        return list(self._found.get(key, ()))


@dataclass(frozen=True)
class Control:
    """A control kept in the address.

    ``id`` and ``property`` are Dash's; ``key`` is the name in the query; ``parse`` converts a text to its value and raises a
    `RetrompiError` for an invalid one. A control whose default is a list keeps a list (the key is repeated); one whose default is a dict
    keeps texts by name (a dcc.Store's data), written ``key=NAME=VALUE``, and ``parse`` receives ``NAME=VALUE``.

    ``follows`` is the key of a control that moves this one in a link that names only that
    (`retrompi.studio.components.menus.with_platforms`): then the default is written, too, unless both are at theirs.
    """

    id: str
    property: str
    key: str
    default: Any
    parse: Parse = str
    follows: str = ""

    @builtins.property
    def named(self) -> bool:
        """Whether its value is a dict of texts by name."""
        return isinstance(self.default, dict)

    @builtins.property
    def listed(self) -> bool:
        """Whether its value is a list."""
        return isinstance(self.default, (list, tuple))


def text(most: int = 200) -> Parse:
    """A parser for texts of at most ``most`` characters, without unprintable ones."""

    def parse(value: str) -> str:
        if len(value) > most:
            raise UsageError(f"is longer than {most} characters")
        if not value.isprintable():
            raise UsageError("has characters that cannot be printed")
        return value

    return parse


@dataclass(frozen=True)
class OneOf:
    """A parser for one of the ``valid`` values, given as a list or by a function that is called on each use, and for what ``also`` is."""

    valid: Callable[[], Iterable[str]] | Sequence[str]
    what: str = "value"
    also: Callable[[str], bool] | None = None

    def __call__(self, value: str) -> str:
        """The value. Raises UsageError for any other."""
        known = list(self.valid() if callable(self.valid) else self.valid)
        if value not in known and not (self.also is not None and self.also(value)):
            raise UsageError(f"no {self.what} '{_printable(value)}'{nearest(value[:60], known)}", code="unknown-name")
        return value


choice = OneOf


def number(low: float, high: float, *, whole: bool = False) -> Parse:
    """A parser for numbers from ``low`` to ``high``."""

    def parse(value: str) -> float | int:
        try:
            found = int(value) if whole else float(value)
        except ValueError:
            raise UsageError(f"'{value[:60]}' is no {'whole ' if whole else ''}number", code="bad-value") from None
        if not low <= found <= high:
            raise UsageError(f"{value[:60]} is not in {low:g}..{high:g}", code="out-of-range")
        return found

    return parse


def flag(value: str) -> bool:
    """``1`` or ``0``."""
    if value not in ("0", "1"):
        raise UsageError(f"'{value[:60]}' is neither 0 nor 1", code="bad-value")
    return value == "1"


def _texts(control: Control, value: Any) -> list[str]:
    """The texts by which a value is written."""
    if control.named:
        return [f"{name}={v}" for name, v in (value or {}).items() if v not in (None, "")]
    if control.listed:
        return [_one(v) for v in value or ()] or [""]
    return [_one(value)]


def _one(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    return repr(value) if isinstance(value, float) and not value.is_integer() else str(int(value) if isinstance(value, float) else value)


def encode(controls: Iterable[Control], values: Mapping[str, Any]) -> str:
    """The query (with its ``?``; empty if all are at their default) of ``values``, named by the controls' keys; others are default."""
    some = list(controls)
    given = {c.key: values.get(c.key, c.default) for c in some}
    other = {c.key for c in some if (list(given[c.key] or ()) != list(c.default) if c.listed else given[c.key] != c.default)}
    parts = []
    for control in some:
        if control.key in other or control.follows in other:
            parts += [f"{quote(control.key, safe='')}={quote(t, safe='')}" for t in _texts(control, given[control.key])]
    return f"?{'&'.join(parts)}" if parts else ""


def link(path: str, controls: Iterable[Control], **values: Any) -> str:
    """The address of a page in a state."""
    return path + encode(controls, values)


def read(controls: Sequence[Control], query: Query) -> tuple[dict[str, Any], list[str]]:
    """(values by key, notices): every control has a value; invalid values in the query are replaced by the default and reported."""
    values: dict[str, Any] = {}
    notices = [_("this link is longer than a link of the studio can be: shown without it")] if query.too_long else []
    for control in controls:
        given = query.all(control.key)
        if control.named:
            values[control.key] = _overrides_of(control, given, notices) if given else dict(control.default)
        elif control.listed:
            values[control.key] = list(control.default) if not given else _list(control, given, notices)
        else:
            values[control.key] = control.default
            if given:
                values[control.key] = _parse(control, given[-1], control.default, notices)
    known = [c.key for c in controls]
    for key in query:
        if key not in known and key != "lang":  # the language, see `retrompi.studio.requests.language`
            other = nearest(key[:60], known)
            notices.append(_("'{key}' in this link means nothing here{nearest}").format(key=_printable(key), nearest=other))
    return values, notices


def _printable(value: str) -> str:
    short = value if len(value) <= 60 else value[:59] + "…"
    return "".join(c if c.isprintable() else "?" for c in short)


def _parse(control: Control, value: str, otherwise: Any, notices: list[str]) -> Any:
    try:
        return control.parse(value)
    except RetrompiError as error:
        notices.append(_("{key}={value} in this link: {error}").format(key=control.key, value=_printable(value), error=error))
        return otherwise


def _list(control: Control, given: list[str], notices: list[str]) -> list[Any]:
    nothing = object()
    found = [_parse(control, value, nothing, notices) for value in given if value != ""]
    good = [v for v in dict.fromkeys(found) if v is not nothing]
    return good or (list(control.default) if any(given) else [])


def _overrides_of(control: Control, given: list[str], notices: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name or not value:
            notices.append(_("{key}={item} in this link is not NAME=VALUE").format(key=control.key, item=_printable(item)))
            continue
        got = _parse(control, item, None, notices)
        if got is not None:
            found[name] = value
    return found
