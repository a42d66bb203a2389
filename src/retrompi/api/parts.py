"""Runtime models and platforms as objects."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from retrompi.api.checking import check_arguments
from retrompi.api.frames import Row, Table
from retrompi.spec import registry
from retrompi.spec.model import RuntimeModel
from retrompi.spec.platform import Platform as PlatformSpec

__all__ = ["Model", "Platform", "list_models", "list_platforms", "model", "platform"]


class Model(Table):
    """A runtime model: a row for each parameter, with its value, unit, range and source.

    >>> packet = next(row for row in retrompi.model("wmpi").rows if row["name"] == "packet")
    >>> packet["text"], packet["unit"], packet["source"]
    ('128 KiB', 'B', 'paper:BF-SM-05')
    """

    def __init__(self, cls: type[RuntimeModel], asked: str) -> None:
        self.spec, self._asked = cls, asked
        """The model's class."""
        self.name, self.version, self.years, self.summary = cls.name, cls.version, cls.years, cls.summary

    @property
    def title(self) -> str:
        """Name, title and years."""
        return f"{self.name}: {self.spec.title}, {self.version} ({self.years})"

    @property
    def rows(self) -> Sequence[Row]:
        """name, value (base unit), text, unit, low, high, choices, cost, source, help of every parameter."""
        rows: list[dict[str, Any]] = self.card()["parameters"]
        return rows

    @property
    def variants(self) -> list[str]:
        """The names of the model and its variants."""
        base = self.name.partition(":")[0]
        return [n for n in registry.model_names() if n.partition(":")[0] == base]

    def card(self) -> dict[str, Any]:
        """The card: what the model stands for, parameters with sources, collectives, fit, posterior, claims that judge it."""
        from retrompi.render.cards.dossier import model_dossier

        return model_dossier(self._asked)

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.summary)}</p>{super()._repr_html_()}"


class Platform(Table):
    """A platform: a row for each number of its hosts and links, with its unit and source.

    >>> next(row["value"] for row in retrompi.platform("nt-pair").rows if row["name"] == "server.quantum")
    '120 ms'
    """

    def __init__(self, spec: PlatformSpec, asked: str) -> None:
        self.spec, self._asked = spec, asked
        """The platform's specification."""
        self.name = spec.name

    @property
    def title(self) -> str:
        """Its name and hosts."""
        return f"{self.name}: {len(self.spec.hosts)} hosts"

    @property
    def hosts(self) -> list[str]:
        """The names of its hosts."""
        return [h.name for h in self.spec.hosts]

    @property
    def rows(self) -> Sequence[Row]:
        """The numbers of hosts and links as texts, with their sources."""
        from retrompi.render.cards.cards import platform_rows

        return platform_rows(self._asked)


@check_arguments
def model(name: str | Path) -> Model:
    """A runtime model by name or folder; its values are in base units (s, B, B/s). UsageError for an unknown name, with the nearest.

    >>> retrompi.model("wmpi").years
    '1996-1998'
    """
    return Model(registry.model(str(name)), str(name))


@check_arguments
def platform(name: str | Path) -> Platform:
    """A platform by name, composition (``"nt4-p6-200*8@switch-100"``) or file. UsageError for an unknown name, with the nearest.

    >>> retrompi.platform("nt-pair").hosts
    ['server', 'workstation']
    """
    return Platform(registry.platform(str(name)), str(name))


@check_arguments
def list_models() -> list[str]:
    """The names of the runtime models and their variants.

    >>> "wmpi" in retrompi.list_models()
    True
    """
    return registry.model_names()


@check_arguments
def list_platforms() -> list[str]:
    """The names of the platforms; hosts and networks of the library can be composed besides.

    >>> "nt-pair" in retrompi.list_platforms()
    True
    """
    return registry.platform_names()
