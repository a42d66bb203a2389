"""What a source in a model or a platform points at: the row of ``claims.csv`` or ``hardware.csv`` that it names."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from retrompi.base.errors import InputError
from retrompi.base.paths import reference_dir
from retrompi.papers.claims import load

__all__ = ["Citation", "cited", "rows"]

_WORD = re.compile(r"[A-Z][\w-]*\w")


@dataclass(frozen=True)
class Citation:
    """One row of the reference: what it says (``text``, published value with its unit), where that is printed, and how far to trust it."""

    id: str
    text: str
    where: str
    note: str = ""
    use: str = ""

    def row(self) -> dict[str, str]:
        """A flat object for JSON."""
        return {"id": self.id, "text": self.text, "where": self.where, "note": self.note, "use": self.use}


def _said(*parts: str) -> str:
    return ": ".join(p for p in (" ".join(part.split()) for part in parts) if p and p != "-")


@cache
def rows() -> Mapping[str, Citation]:
    """Every row of both tables by its id."""
    out = {}
    for c in load():
        unit = "" if c.unit in ("", "-", "qual") else f" {c.unit}"
        use = "held out: no fit sees it" if c.held_out else c.use
        out[c.id] = Citation(c.id, _said(c.observable, f"{c.value}{unit}"), c.source, c.note, use)
    path = reference_dir() / "hardware.csv"
    try:
        with path.open(newline="", encoding="utf-8") as handle:
            for r in csv.DictReader(handle):
                unit = "" if r["unit"] in ("", "-", "qual") else f" {r['unit']}"
                trust = "" if r["verified"] == "yes" else "a recollection, not verified"
                out[r["id"]] = Citation(r["id"], _said(r["system"], r["observable"], f"{r['value']}{unit}"), r["source"], r["note"], trust)
    except OSError as error:
        raise InputError(f"cannot read the reference: {error.strerror}", path, code="unreadable-file") from None
    return out


def cited(*texts: str) -> list[Citation]:
    """The rows that the texts name, in their order, each once; names that are no row's are left out."""
    found = dict.fromkeys(name for text in texts for name in _WORD.findall(text))
    return [rows()[name] for name in found if name in rows()]
