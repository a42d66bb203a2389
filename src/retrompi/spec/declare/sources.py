"""The source of a number: its kind, and for a published one the row of the reference that states it."""

from __future__ import annotations

import csv
import re
from functools import lru_cache
from pathlib import Path

from retrompi.base import paths
from retrompi.base.errors import nearest
from retrompi.base.files import read_text

__all__ = ["SOURCE_KINDS", "wrong_source"]

SOURCE_KINDS = ("paper:", "doc:", "code:", "fit:", "assumed:")
_ROW = re.compile(r"[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)+")


@lru_cache(maxsize=64)
def _ids(file: Path, state: tuple[int, int] | None) -> frozenset[str]:
    try:
        return frozenset(row.get("id") or "" for row in csv.DictReader(read_text(file).splitlines()))
    except (OSError, ValueError, csv.Error):  # what is wrong with a paper's table is told where the paper is read
        return frozenset()


def _rows() -> frozenset[str]:
    """The ids of the rows of the reference: the papers' claims, the machines, and the period's numbers outside the papers."""
    tables = [paths.reference_dir() / name for name in ("hardware.csv", "period/evidence.csv")]
    tables += [folder / "claims.csv" for folder in paths.paper_dirs()]
    return frozenset().union(*(_ids(file, paths.stamp(file)) for file in tables))


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
