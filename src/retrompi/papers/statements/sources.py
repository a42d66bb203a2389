"""Citations in models and platforms: the rows of the papers' claims, ``hardware.csv`` or ``period/evidence.csv`` that a source names."""

from __future__ import annotations

import csv
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from retrompi.base.errors import InputError
from retrompi.base.paths import reference_dir
from retrompi.papers.statements.claims import load, version

__all__ = ["Citation", "citations_in", "rows"]

_WORD = re.compile(r"[A-Z][\w-]*\w")


@dataclass(frozen=True)
class Citation:
    """One row of the reference: its statement (``text``, published value with its unit), where it is printed, and its reliability."""

    id: str
    text: str
    where: str
    note: str = ""
    use: str = ""

    def row(self) -> dict[str, str]:
        """A flat object for JSON."""
        return {"id": self.id, "text": self.text, "where": self.where, "note": self.note, "use": self.use}


def _join(*parts: str) -> str:
    return ": ".join(p for p in (" ".join(part.split()) for part in parts) if p and p != "-")


def rows() -> Mapping[str, Citation]:
    """Every claim and every row of the two tables by its id; InputError if one cannot be read."""
    return _rows(version())


@lru_cache(maxsize=4)
def _rows(_: Hashable) -> Mapping[str, Citation]:
    out = {}
    for c in load():
        unit = "" if c.unit in ("", "-", "qual") else f" {c.unit}"
        use = "held out: no fit sees it" if c.held_out else c.use
        out[c.id] = Citation(c.id, _join(c.observable, f"{c.value}{unit}"), c.source, c.note, use)
    for r in _table("hardware.csv"):
        unit = "" if r["unit"] in ("", "-", "qual") else f" {r['unit']}"
        trust = "" if r["verified"] == "yes" else "a recollection, not verified"
        out[r["id"]] = Citation(r["id"], _join(r["system"], r["observable"], f"{r['value']}{unit}"), r["source"], r["note"], trust)
    for r in _table("period/evidence.csv"):
        what = ", ".join(dict.fromkeys(r[k] for k in ("system", "version", "machine", "os", "network") if r[k]))
        told = "held out: no fit sees it" if r["use"] == "validate" else ""
        out[r["id"]] = Citation(r["id"], _join(what, r["observable"], f"{r['value']} {r['unit']}"), r["source"], r["note"], told)
    return out


def _table(name: str) -> list[dict[str, str]]:
    path = reference_dir() / name
    try:
        with path.open(newline="", encoding="utf-8") as handle:
            return list(csv.DictReader(handle))
    except OSError as error:
        raise InputError(f"cannot read the reference: {error.strerror}", path, code="unreadable-file") from None


def citations_in(*texts: str) -> list[Citation]:
    """The distinct rows named in the texts, in order; unknown names are ignored."""
    found = dict.fromkeys(name for text in texts for name in _WORD.findall(text))
    return [rows()[name] for name in found if name in rows()]
