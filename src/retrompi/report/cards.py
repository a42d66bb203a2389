"""Model cards: what a runtime's model assumes, where each number comes from, and how well its fit is determined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from retrompi import registry
from retrompi.runtime import fit_tables, resolve
from retrompi.units import format_quantity

__all__ = ["Card", "model_card", "platform_rows"]


@dataclass(frozen=True)
class Card:
    """A runtime's card. ``rows``: name, value, unit, range, source, help; ``fit``: what, name, text of its fit.toml."""

    name: str
    title: str
    version: str
    years: str
    summary: str
    rows: tuple[dict[str, str], ...]
    fit: tuple[dict[str, str], ...]
    variants: tuple[tuple[str, str], ...]


def _text(value: Any, unit: str) -> str:
    return "" if value is None else format_quantity(value, unit)


def _range(low: Any, high: Any, unit: str) -> str:
    return "" if low is None and high is None else f"{_text(low, unit) or '…'} – {_text(high, unit) or '…'}"


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{k} {_plain(v)}" for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(_plain(v) for v in value)
    return str(value)


def model_card(model: str, platform: str, sets: tuple[str, ...] = ()) -> Card:
    """The card of ``model`` as it stands on ``platform``, with ``sets`` applied.

    The fit's tables other than its values (bounds, residuals by claim, identifiability and what else `retrompi calibrate`
    noted) are passed through as text, so that a new note appears here without a change.
    """
    cls = registry.model(model)
    values, _ = resolve(cls, registry.platform(platform), list(sets))
    rows = tuple(
        {
            "name": r["name"],
            "value": r["text"] if isinstance(r["value"], str) else _text(r["value"], r["unit"]),
            "range": _range(r["low"], r["high"], r["unit"]),
            "source": r["source"] + (" (overridden)" if r["overridden"] else ""),
            "help": r["help"],
        }
        for r in values.describe()
    )
    tables = fit_tables(cls.folder()).get(cls.name, {})
    fit = tuple(
        {"what": what, "name": name, "text": _plain(entry)}
        for what, table in tables.items()
        if what != "values"
        for name, entry in (table.items() if isinstance(table, dict) else [(what, table)])
    )
    variants = tuple((name, c.variant_note) for name, c in registry.models().items() if c.variant_of == cls.name)
    return Card(cls.name, cls.title, cls.version, cls.years, cls.summary, rows, fit, variants)


def platform_rows(platform: str) -> list[dict[str, str]]:
    """The platform's numbers as text rows: path, value, range, source, help."""
    return [
        {
            "name": r["path"],
            "value": _text(r["value"], r["unit"]),
            "range": _range(r["low"], r["high"], r["unit"]),
            "source": r["source"],
            "help": r["help"],
        }
        for r in registry.platform(platform).describe()
    ]
