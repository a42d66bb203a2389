"""Wrong entries, told beside their controls: the one way in which every page of the studio does it.

`check_controls` (the controls of a page) and `beside_control` (whatever else can be wrong with one of them) raise `WrongEntries`.
`parts.register_job` catches it for a page's job; another callback calls `tell` itself. In the browser assets/entries.js writes each line
under its control, and connects both for screen readers. What is wrong with a link is told above the page: the field has its default.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, dcc, set_props

from retrompi.base.errors import RetrompiError, UsageError
from retrompi.studio.requests.state import Control

__all__ = ["WrongEntries", "beside_control", "blame_values", "check_controls", "element", "register", "store", "tell"]

Name = str | Mapping[str, Any]
_MOST = 280
"""Characters of a line."""


class WrongEntries(UsageError):
    """``lines``: what is wrong, by the id of the control's element (see `element`)."""

    code = "bad-value"

    def __init__(self, lines: Mapping[str, str]) -> None:
        super().__init__("; ".join(lines.values()))
        self.lines = dict(lines)

    @classmethod
    def of(cls, control: str | Mapping[str, Any], error: RetrompiError) -> WrongEntries:
        """An error that is one control's."""
        return cls({element(control): _line(error)})


def element(control: str | Mapping[str, Any]) -> str:
    """The id that a component's element has in the page: Dash writes one that is an object as JSON with sorted keys."""
    return control if isinstance(control, str) else json.dumps(control, sort_keys=True, separators=(",", ":"))


@contextmanager
def beside_control(control: str | Mapping[str, Any]) -> Iterator[None]:
    """Whatever is refused within is told beside this control. Raises WrongEntries."""
    try:
        yield
    except WrongEntries:
        raise
    except RetrompiError as error:
        raise WrongEntries.of(control, error) from error


def _line(error: RetrompiError) -> str:
    """Its line, short enough for a field: where it names the nearest one, without the list of all others."""
    told = " ".join(str(error).split())
    near, valid, _others = told.partition("? valid: ")
    told = f"{near}?" if valid and "did you mean" in near else told
    return told if len(told) <= _MOST else f"{told[: _MOST - 1].rpartition(' ')[0]} …"


def check_controls(controls: Iterable[Control], values: Mapping[str, Any]) -> dict[str, Any]:
    """Key -> value of every control, from what the page has (by id). Raises WrongEntries for all that are wrong together."""
    found: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for control in controls:
        value = values.get(control.id)
        try:
            with beside_control(control.id):
                found[control.key] = control.parse("" if value is None else str(value))
        except WrongEntries as error:
            wrong |= error.lines
    if wrong:
        raise WrongEntries(wrong)
    return found


def blame_values(error: str, values: Mapping[str, Any]) -> dict[str, str]:
    """What only a run found wrong, beside the controls (element -> value) whose value, or one of whose overrides, the line quotes; {} if
    it quotes none."""

    def quoted_texts(value: str) -> set[str]:
        items = [part.strip() for part in value.replace(";", ",").split(",")]
        keys = [item.partition("=")[0].strip() for item in items if "=" in item]
        told = {value.strip(), *items, *(item.partition("=")[2].strip() for item in items)}
        return {f"'{t}'" for t in told if t} | {k for k in keys if len(k) > 2}

    return {at: error for at, value in values.items() if any(t in error for t in quoted_texts(str(value or "")))}


def _id(name: Name) -> Any:
    return f"{name}-entries" if isinstance(name, str) else dict(name)


def store(name: Name, lines: Mapping[str, str] | None = None) -> dcc.Store:
    """Where a callback's wrong entries go, with those that a page begins with; its id is NAME-entries, or the name itself if that is one
    of many (a pattern's)."""
    return dcc.Store(id=_id(name), data=dict(lines or {}))


def tell(name: Name, lines: Mapping[str, str]) -> None:
    """The lines beside their controls, instead of those told under this ``name`` before; {} for none. Only within a callback."""
    set_props(_id(name), {"data": dict(lines)})


def register(app: Dash, name: Name) -> None:
    """Connects the `store` of this name with the page, or all those of a pattern (with MATCH)."""
    app.clientside_callback(
        ClientsideFunction("retrompi_entries", "tell"), Output(_id(name), "clear_data"), Input(_id(name), "data"), State(_id(name), "id"),
    )
