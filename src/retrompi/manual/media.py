"""A page of the media: every field with its unit, default, bounds and meaning, as declared."""

from __future__ import annotations

import inspect
from dataclasses import is_dataclass

from retrompi.manual.markdown import ManualPage, escape, table
from retrompi.spec.declare.fields import Field, fields_of
from retrompi.spec.media import MEDIA, Broadcast, Medium, OneSided, WaitPolicy

__all__ = ["media_page"]


def _default(f: Field) -> str:
    if not f.optional:
        return "required"
    if is_dataclass(f.default):
        return f"`{getattr(f.default, 'kind', '')}`"
    return f"`{f.default:g}`" if f.is_quantity else f"`{f.default}`"


def _fields(cls: type, without: type | None = None) -> str:
    inherited = fields_of(without) if without is not None else {}
    rows = [[f"`{f.name}`", escape(f.unit if f.is_quantity else ""), _default(f), escape(f.bounds), f.scale, escape(f.help)]
            for f in fields_of(cls).values() if f.name not in inherited]
    return table(["field", "unit", "default", "values", "cost", "what it is"], rows)


def _section(cls: type, title: str, base: type | None = None) -> list[str]:
    text = " ".join(inspect.cleandoc(cls.__doc__ or "").split())
    return [f"## {title}", escape(text), _fields(cls, base)]


def _bases(cls: type[Medium]) -> list[type[Medium]]:
    """The declarations that a medium extends, the most general first."""
    return [c for c in reversed(cls.__mro__[1:]) if isinstance(c, type) and issubclass(c, Medium)]


def media_page() -> ManualPage:
    """One page: what all media have in common, every medium, wait policies, one-sided operations and broadcasts."""
    shared = list(dict.fromkeys(base for cls in MEDIA.values() for base in _bases(cls)))
    out = [
        "# Media",
        "What a model can state of a hop of its path ([adding a runtime](../add-a-runtime.md)), from the declarations in "
        "`retrompi.spec.media`. Times are "
        "seconds on the reference host, sizes bytes, rates bytes per second. A medium takes the fields of its own table and of those it "
        "extends; any other is a `TypeError`, a value outside its bounds an error. "
        "[Adding a parameter or a medium](../add-a-parameter.md).",
    ]
    for base in shared:
        parent = _bases(base)[-1] if _bases(base) else None
        out += _section(base, base.__name__, parent)
    for name, cls in MEDIA.items():
        out += _section(cls, cls.__name__, _bases(cls)[-1])
        out.append(f"`{name}` in messages. Extends {', '.join(f'[{b.__name__}](#{b.__name__.lower()})' for b in _bases(cls))}.")
    for other, title in ((WaitPolicy, "WaitPolicy"), (OneSided, "OneSided"), (Broadcast, "Broadcast")):
        out += _section(other, title)
    return ManualPage("reference/media.md", "Media", "Media", "\n\n".join(out) + "\n")
