"""The definition of a studio page, and the list of pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from dash import ALL

from retrompi.studio.requests.inputs import EVERYWHERE, Check, for_each, of_control
from retrompi.studio.requests.state import Control

__all__ = ["Page", "checks_of", "modules", "pages"]


@dataclass(frozen=True)
class Page:
    """A page: its address, its name and position in the navigation, one line of help, and the controls kept in its address.

    ``inputs`` are checks of the other values that its callbacks take, by ``id.property`` (see `retrompi.studio.requests.inputs`).

    Its module also has ``layout(query: Query, resources: Resources) -> Component`` and
    ``register(app: Dash, resources: Resources) -> None``.
    """

    path: str
    title: str
    order: int
    help: str
    controls: Sequence[Control] = field(default=())
    inputs: Mapping[str, Check] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The prefix of the page's ids: ``curves`` for ``/curves``, ``start`` for ``/``."""
        return self.path.strip("/") or "start"


@cache
def modules() -> dict[str, ModuleType]:
    """Path -> module of every page, in the order of the navigation."""
    folder = Path(__file__).parents[1] / "pages"
    names = sorted(file.stem for file in folder.glob("*.py") if not file.name.startswith("_"))
    found = [import_module(f"retrompi.studio.pages.{name}") for name in names]
    return {m.PAGE.path: m for m in sorted(found, key=lambda m: (m.PAGE.order, m.PAGE.path))}


def pages() -> list[Page]:
    """Every page, in the order of the navigation."""
    return [module.PAGE for module in modules().values()]


@cache
def _of_pages() -> dict[str, Check]:
    found: dict[str, Check] = {}
    for page in pages():
        found |= {f"{c.id}.{c.property}": of_control(c) for c in page.controls}
        found |= page.inputs
    return found


def checks_of(inputs: Iterable[tuple[Any, str]]) -> list[Check]:
    """The checks of (id, property) in order; a pattern is declared by its ``type``. Raises LookupError for one that is not: our defect."""
    out = []
    for component, prop in inputs:
        full = f"{component['type'] if isinstance(component, dict) else component}.{prop}"
        check = _of_pages().get(full) or EVERYWHERE.get(full) or EVERYWHERE.get(prop)
        if check is None:
            raise LookupError(f"the callbacks' input {full} is not declared: add it to the controls or the inputs of its page")
        many = isinstance(component, dict) and any(value is ALL for value in component.values())
        out.append(for_each(check) if many else check)
    return out
