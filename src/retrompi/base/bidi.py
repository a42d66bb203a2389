"""Controls of the direction of writing in what others wrote."""

from __future__ import annotations

import re

__all__ = ["plain_direction"]

_CONTROLS = re.compile("[\u202a-\u202e\u2066-\u2069]")


def plain_direction(text: str) -> str:
    """``text`` with its embeddings, overrides and isolates made visible, as in ``⟨U+202E⟩``: they show an answer as another than it is.

    Letters that are written from right to left keep their direction, and so do the marks that keep them apart from others.
    """
    return _CONTROLS.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", text)
