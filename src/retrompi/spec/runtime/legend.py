"""How a runtime is called and drawn in figures: ``legend.json`` in its model's folder.

    {"short": "WMPI", "colour": 0}

It changes no result, so it is in a file that no hash of a model covers, and no model is imported to read it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from retrompi.base.errors import InputError
from retrompi.base.files import read_text
from retrompi.base.paths import stamp
from retrompi.spec import registry

__all__ = ["COLOURS", "Legend", "legend"]

COLOURS = 3
"""The places in the palette, from the first, that a runtime may have in every figure."""


@dataclass(frozen=True)
class Legend:
    """``short``: a runtime's name in legends ("": the model's); ``colour``: its place in the palette, if it is always the same."""

    short: str = ""
    colour: int | None = None


def legend(model: str) -> Legend:
    """The legend of a model of the package, of a paper at hand or of the user, by its name; an empty one for any other name.

    Raises InputError for a file that is not as above.
    """
    folder = None if "/" in model or "\\" in model else registry.folder_of(model)
    return Legend() if folder is None else _read(folder / "legend.json", stamp(folder / "legend.json"))


@lru_cache(maxsize=256)
def _read(file: Path, changed: tuple[int, int] | None) -> Legend:
    if changed is None:
        return Legend()
    try:
        found = Legend(**json.loads(read_text(file)))
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"no legend: {error}", file, code="bad-value") from None
    if not isinstance(found.short, str) or (found.colour is not None and found.colour not in range(COLOURS)):
        raise InputError(f"'short' is a text, 'colour' one of 0 to {COLOURS - 1}", file, code="bad-value")
    return found
