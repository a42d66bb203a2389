"""The verdicts that the package comes with (``validate/judged.json``), for a store in which a statement has not been judged yet.

``make judged`` writes them: it simulates every paper, and notes by which code, and what the runtimes, platforms, statements and checks
were. A statement that has been changed since, or its check, has no verdict; of a runtime or platform that has, the reader is told.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from retrompi.base.errors import RetrompiError
from retrompi.base.files import read_text
from retrompi.base.paths import validate_dir
from retrompi.papers.statements.claims import Claim, checks, load, models_of, paper_key, version
from retrompi.spec import registry
from retrompi.spec.question import canonical_hash

__all__ = ["AdvanceVerdict", "ShippedVerdicts", "document", "file", "in_advance", "shipped_verdicts"]

_TOLD = ("id", "verdict", "observed", "low", "high", "unit", "note")
"""What is kept of a verdict."""
_DIGITS = 16


@dataclass(frozen=True)
class ShippedVerdicts:
    """The verdicts as they are shipped: ``code`` and ``judged`` (a day) say by what and when.

    ``verdicts``: claim -> its row, with the keys of a store's verdicts and ``stated``, the hash of the statement and its checks. ``models``
    and ``platforms``: name -> hash; ``papers``: key -> the names of both that its runs used.
    """

    code: str
    judged: str
    models: Mapping[str, str]
    platforms: Mapping[str, str]
    papers: Mapping[str, Mapping[str, list[str]]]
    verdicts: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class AdvanceVerdict:
    """A statement's verdict in advance, with the keys of a store's verdicts, and the runtimes and platforms changed since."""

    row: Mapping[str, Any]
    changed: tuple[str, ...]


def file() -> Path:
    """The file of the stored verdicts."""
    return validate_dir() / "judged.json"


@cache
def shipped_verdicts() -> ShippedVerdicts:
    """They are not looked at again while the program runs: nobody edits them."""
    data = json.loads(read_text(file()))
    return ShippedVerdicts(**data | {"verdicts": {row["id"]: row for row in data["verdicts"]}})


@lru_cache(maxsize=4)
def _claim_hashes(_: object) -> Mapping[str, str]:
    """Claim -> the hash of all that is published and of how it is checked, not of the row's place in its file; for `claims.version`."""
    how = checks()
    return {c.id: canonical_hash([asdict(c) | {"line": 0}, list(how.get(c.id, ()))])[:_DIGITS] for c in load()}


def _model(name: str) -> str:
    return registry.model(name).hash()[:_DIGITS]


def _platform(name: str) -> str:
    return registry.platform(name).hash[:_DIGITS]


def document(code: str, judged: str, studies: Iterable[tuple[str, Iterable[Mapping[str, Any]], Iterable[tuple[str, str]]]]) -> str:
    """The text of the file. ``studies``: for each paper its key, its verdicts as of `Verdict.row`, and (model, platform) of its runs."""
    papers: dict[str, dict[str, list[str]]] = {}
    rows: list[dict[str, Any]] = []
    stated = _claim_hashes(version())
    for key, verdicts, runs in studies:
        pairs = list(runs)
        papers[key] = {"models": sorted({m for m, _ in pairs}), "platforms": sorted({p for _, p in pairs})}
        rows += [{k: v[k] for k in _TOLD} | {"stated": stated[v["id"]]} for v in verdicts if v["id"] in stated]
    models = sorted({m for p in papers.values() for m in p["models"]})
    platforms = sorted({p for found in papers.values() for p in found["platforms"]})
    head = {"code": code, "judged": judged, "models": {m: _model(m) for m in models}, "platforms": {p: _platform(p) for p in platforms}}
    lines = [f'"{k}": {json.dumps(v, indent=1, ensure_ascii=False)}' for k, v in head.items()]
    lines.append('"papers": {\n' + ",\n".join(f' "{k}": {json.dumps(v)}' for k, v in papers.items()) + "\n}")
    order = {name: i for i, name in enumerate(stated)}
    ordered = sorted(rows, key=lambda row: order[row["id"]])
    lines.append('"verdicts": [\n' + ",\n".join(" " + json.dumps(row, ensure_ascii=False) for row in ordered) + "\n]")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def in_advance() -> dict[str, AdvanceVerdict]:
    """Claim -> its verdict, for the statements that are as they were when they were judged."""
    there, stated = shipped_verdicts(), _claim_hashes(version())
    other = {name for name, was in there.models.items() if _now(_model, name) != was}
    other |= {name for name, was in there.platforms.items() if _now(_platform, name) != was}
    found = {}
    for claim in load():
        row = there.verdicts.get(claim.id)
        if row is not None and row["stated"] == stated[claim.id]:
            found[claim.id] = AdvanceVerdict(row, tuple(sorted(other & _models_and_platforms(claim))))
    return found


def _now(of: Any, name: str) -> str:
    try:
        return str(of(name))
    except RetrompiError:  # removed, or in the middle of an edit
        return ""


def _models_and_platforms(claim: Claim) -> set[str]:
    """The runtimes that its checks name, or all of its paper where one names none; and the paper's platforms."""
    used = shipped_verdicts().papers[paper_key(claim.paper)]
    named = [models_of(c) & {*used["models"]} for c in checks().get(claim.id, ())]
    return {*(set().union(*named) if named and all(named) else used["models"]), *used["platforms"]}
