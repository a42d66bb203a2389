"""Where a number comes from: its kind, and for a published one the row of the reference that says so."""

from __future__ import annotations

import csv
import re
from functools import cache

from retrompi.base import paths
from retrompi.base.errors import nearest
from retrompi.base.files import read_text

__all__ = ["SOURCE_KINDS", "wrong_source"]

SOURCE_KINDS = ("paper:", "doc:", "code:", "fit:", "assumed:")
_ROW = re.compile(r"[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)+")


@cache
def _rows() -> frozenset[str]:
    """The ids of the rows of the reference: its statements, its machines, and the period's numbers outside the papers."""
    found: set[str] = set()
    for name in ("claims.csv", "hardware.csv", "period/evidence.csv"):
        found |= {row["id"] for row in csv.DictReader(read_text(paths.reference_dir() / name).splitlines())}
    return frozenset(found)


def wrong_source(source: object) -> str:
    """Why ``source`` is no source, as the end of a sentence; empty for a good one.

    After ``paper:`` comes the id of a row, or, for a paper that is not in the reference, its name in words.
    """
    if not isinstance(source, str) or not source.startswith(SOURCE_KINDS) or not source.partition(":")[2].strip():
        return f"must begin {' '.join(SOURCE_KINDS)} and say more"
    kind, _, text = source.partition(":")
    first = re.split(r"[\s,;:.]", text.strip(), maxsplit=1)[0]
    if kind == "paper" and _ROW.fullmatch(first) and first not in _rows():
        return f"names '{first}', which is no row of the reference{nearest(first, _rows(), 4)}"
    return ""
