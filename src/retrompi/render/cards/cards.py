"""Model cards: what a runtime's model assumes, where each number comes from, and how well its fit is determined."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from retrompi.base.units import format_quantity
from retrompi.render.cards import determined
from retrompi.spec import registry
from retrompi.spec.machine import named_host
from retrompi.spec.model import fit_tables, resolve
from retrompi.spec.platform import Platform

__all__ = ["Card", "fit_rows", "model_card", "platform_rows"]


@dataclass(frozen=True)
class Card:
    """A runtime's card. ``rows``: name, value, unit, range, source, help; ``fit``: what, name, text of its fit.toml; ``posterior``: of
    `retrompi.render.cards.determined.card`, None without one."""

    name: str
    title: str
    version: str
    years: str
    summary: str
    rows: tuple[dict[str, str], ...]
    fit: tuple[dict[str, str], ...]
    variants: tuple[tuple[str, str], ...]
    posterior: Mapping[str, Any] | None = None


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


def fit_rows(tables: Mapping[str, Any]) -> tuple[dict[str, str], ...]:
    """A model's tables of ``fit.toml`` except its values, as text rows what, name, text.

    Residuals and identifiability are spelled out; all other notes of `retrompi calibrate` are passed through, so that a new note appears on
    the card without a change here.
    """
    out: list[dict[str, str]] = []
    for what, table in tables.items():
        if what == "values":
            continue
        for name, entry in table.items() if isinstance(table, Mapping) else [(what, table)]:
            if what == "residuals" and isinstance(entry, list) and len(entry) == 5:
                observed, low, high, unit, residual = entry
                text = f"{_plain(observed)} {unit}, published {_plain(low)} – {_plain(high)}: {residual:+.2f} half ranges from the middle"
                out.append({"what": "residual", "name": name, "text": text})
            elif what == "bounds" and isinstance(entry, list) and len(entry) == 2:
                out.append({"what": "range", "name": name, "text": f"{entry[0]} – {entry[1]}"})
            elif name == "identifiability" and isinstance(entry, Mapping):
                out += [{"what": "identifiability", "name": k, "text": _plain(v)} for k, v in entry.items()]
            else:
                out.append({"what": what, "name": name, "text": _plain(entry)})
    return tuple(out)


def _here(row: Mapping[str, Any], platform: Platform, factors: Mapping[str, float]) -> str:
    """The host on which a cost is stated, and what it is on the first host of ``platform``; empty for other parameters."""
    on = row["cost"].partition(" on ")[2]
    if not on:
        return ""
    host = platform.hosts[0]
    here = named_host.seconds_on(host, row["value"], factors.get(row["name"], 1.0), row["cost"])
    if f"{platform.name}:{host.name}" == on or math.isclose(here, row["value"], rel_tol=1e-6):
        return f" on {on}"
    return f" on {on} ({_text(here, row['unit'])} on {platform.name}:{host.name})"


def model_card(model: str, platform: str, sets: tuple[str, ...] = ()) -> Card:
    """The card of ``model`` on ``platform``, with the overrides ``sets`` applied."""
    cls = registry.model(model)
    values, loaded = resolve(cls, registry.platform(platform), list(sets))
    factors = named_host.factors(cls.params(), cls.folder())
    rows = tuple(
        {
            "name": r["name"],
            "value": r["text"] if isinstance(r["value"], str) else _text(r["value"], r["unit"]) + _here(r, loaded, factors),
            "range": _range(r["low"], r["high"], r["unit"]),
            "source": r["source"] + (" (overridden)" if r["overridden"] else ""),
            "help": r["help"],
        }
        for r in values.describe()
    )
    fit = fit_rows(fit_tables(cls.folder()).get(cls.name, {}))
    variants = tuple((name, c.variant_note) for name, c in registry.models().items() if c.variant_of == cls.name)
    return Card(cls.name, cls.title, cls.version, cls.years, cls.summary, rows, fit, variants, determined.of_model(cls))


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
