"""Wrong entries, told beside their controls: the one way in which every page of the studio does it.

`checked` (the controls of a page) and `entered` (whatever else can be wrong with one of them) raise `WrongEntries`.
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
from retrompi.studio.state import Control

__all__ = ["WrongEntries", "checked", "element", "entered", "register", "store", "tell"]


class WrongEntries(UsageError):
    """``lines``: what is wrong, by the id of the control's element (see `element`)."""

    code = "bad-value"

    def __init__(self, lines: Mapping[str, str]) -> None:
        super().__init__("; ".join(lines.values()))
        self.lines = dict(lines)


def element(control: str | Mapping[str, Any]) -> str:
    """The id that a component's element has in the page: Dash writes one that is an object as JSON with sorted keys."""
    return control if isinstance(control, str) else json.dumps(control, sort_keys=True, separators=(",", ":"))


@contextmanager
def entered(control: str | Mapping[str, Any]) -> Iterator[None]:
    """Whatever is refused within is told beside this control. Raises WrongEntries."""
    try:
        yield
    except WrongEntries:
        raise
    except RetrompiError as error:
        raise WrongEntries({element(control): " ".join(str(error).split())}) from error


def checked(controls: Iterable[Control], values: Mapping[str, Any]) -> dict[str, Any]:
    """Key -> value of every control, from what the page has (by id). Raises WrongEntries for all that are wrong together."""
    found: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for control in controls:
        value = values.get(control.id)
        try:
            with entered(control.id):
                found[control.key] = control.parse("" if value is None else str(value))
        except WrongEntries as error:
            wrong |= error.lines
    if wrong:
        raise WrongEntries(wrong)
    return found


def store(name: str) -> dcc.Store:
    """Where a callback's wrong entries go; its id is NAME-entries."""
    return dcc.Store(id=f"{name}-entries")


def tell(name: str, lines: Mapping[str, str]) -> None:
    """The lines beside their controls, instead of those told under this ``name`` before; {} for none. Only within a callback."""
    set_props(f"{name}-entries", {"data": dict(lines)})


def register(app: Dash, name: str) -> None:
    """Connects the `store` of this name with the page."""
    app.clientside_callback(
        ClientsideFunction("retrompi_entries", "tell"), Output(f"{name}-entries", "clear_data"), Input(f"{name}-entries", "data"),
        State(f"{name}-entries", "id"), prevent_initial_call=True,
    )  # fmt: skip
