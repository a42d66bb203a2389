"""Names of runtimes, platforms and modes on the pages; their names on the command line stand beside or are shown by the pointer."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from retrompi.base.translate import _
from retrompi.render.figures.figures import name_of
from retrompi.spec import registry
from retrompi.studio.components import menus

__all__ = ["in_a_legend", "mode", "modes", "of_curve", "of_run", "platform", "runtime"]

_LINE = 40
"""The most characters of a legend's line: as many as a phone has space for."""
_LINES = 3


def runtime(name: str) -> str:
    """A runtime as legends and lines name it: as the field writes it, else its title where that is short; of one that there is not, as a
    stored run may have, its name. (Menus have the whole title.)"""
    known, written = registry.models().get(name), name_of(name)
    if known is None or (":" not in name and written != name):
        return written
    return known.title if len(known.title) <= _LINE else written.replace("-", " ")


def platform(name: str) -> str:
    """A platform's title; its name for one that there is not, or that is a file."""
    return registry.platform(name).title if menus.is_platform(name) else name


def mode(name: str) -> str:
    """Where the ranks run, in words."""
    if name in ("shared", "distributed"):
        return _("on one host") if name == "shared" else _("on two hosts")
    a, comma, b = name.partition(",")
    if not comma or "," in b:
        return name.replace("-", " ")
    return _("both on {host}").format(host=a) if a == b else _("{host} to {other}").format(host=a, other=b)


def modes(names: Sequence[str]) -> menus.Options:
    """The options of a menu of modes, those of every platform as in the other menus."""
    always = {o["value"]: o for o in menus.modes(_("both ranks on one host"), _("on two hosts"))}
    return [always.get(name) or {"value": name, "label": f"{mode(name)} ({name})"} for name in names]


def of_curve(curve: Mapping[str, Any], several_modes: bool = True) -> str:
    """A curve among others of a page."""
    return ", ".join([runtime(curve["model"]), *([mode(curve["mode"])] if several_modes else [])])


def of_run(model: str, changed: str, where: str, on: str) -> str:
    """A run on its own: its runtime with what was ``changed``, its mode ``where``, its platform ``on``; the longest last."""
    return ", ".join([runtime(model), *([changed] if changed else []), mode(where), platform(on)])


def in_a_legend(text: str) -> str:
    """A name for a figure: lines of a legend, at most three, with Plotly's markup (such as links) and template fields escaped."""
    lines = textwrap.wrap(" ".join(text.split()), _LINE, max_lines=_LINES, placeholder=" …")
    return "<br>".join(escape(line, quote=False).replace("%{", "&#37;{") for line in lines)
