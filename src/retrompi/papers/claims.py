"""The published statements: rows of ``validate/reference/claims.csv``, and the only access to them for a fit.

A row's ``use`` defines its purpose: ``calibrate`` rows are available to a fit, ``validate`` rows only to the judging, ``context`` rows
are information, ``exclude`` rows are shown but not judged. `for_fit` is the only function a calibration may call; it returns
``calibrate`` rows only (``tests/test_claims.py`` proves it).
"""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.base.paths import reference_dir, validate_dir

__all__ = ["USES", "Claim", "SizeRange", "by_paper", "checks", "find", "for_fit", "judging", "load", "models_of", "paper_key",
           "papers"]  # fmt: skip

USES = ("calibrate", "validate", "context", "exclude")
KINDS = ("quant", "knee", "trend", "order", "qual")

_K = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20}
_SIZE = r"(\d+)\s*(K|M|B)?\b"


@dataclass(frozen=True)
class SizeRange:
    """Message sizes that a statement applies to, in bytes; ``high`` None means "and above".

    ``above`` excludes ``low`` itself ("> 64K").
    """

    low: int
    high: int | None
    above: bool = False

    def __contains__(self, size: int) -> bool:
        return (size > self.low if self.above else size >= self.low) and (self.high is None or size <= self.high)

    def __str__(self) -> str:
        def k(size: int) -> str:
            return f"{size >> 20}M" if size >= 1 << 20 else f"{size >> 10}K" if size >= 1 << 10 else f"{size}"

        if self.high is None:
            return f"{'>' if self.above else '>='} {k(self.low)}"
        return k(self.low) if self.low == self.high else f"{k(self.low)}-{k(self.high)}"


def _bytes(number: str, unit: str | None) -> int:
    return int(number) * _K[unit or ""]


def parse_size_range(text: str) -> SizeRange | None:
    """The message sizes that a phrase of the reference names, or None.

    Understood: ``up to 32K``, ``<= 4K``, ``> 64K``, ``64K-256K``, ``512K -> 4M``, ``0-64K``, ``(0 B) to 121 (64K)``
    and a size alone such as ``4M``. K is 1024, as everywhere in the reference.
    """
    if m := re.search(rf"(?:up to|<=)\s*{_SIZE}", text):
        return SizeRange(0, _bytes(m[1], m[2]))
    if m := re.search(rf"(?<![-=])>\s*{_SIZE}", text):
        return SizeRange(_bytes(m[1], m[2]), None, above=True)
    if m := re.search(rf"\b{_SIZE}\s*(?:->|-)\s*{_SIZE}", text):
        return SizeRange(_bytes(m[1], m[2]), _bytes(m[3], m[4]))
    if m := re.fullmatch(r"\s*(\d+)\s*(K|M)\s*", text):
        size = _bytes(m[1], m[2])
        return SizeRange(size, size)
    return None


@dataclass(frozen=True)
class Claim:
    """One row of ``claims.csv``; the fields are its columns, in its words.

    ``low`` and ``high`` are the reading tolerance in ``unit`` (None where the paper gives words only); ``line`` is the
    row's place in the file for messages.
    """

    id: str
    system: str
    platform: str
    configuration: str
    observable: str
    value: str
    unit: str
    low: float | None
    high: float | None
    kind: str
    paper: str
    section: str
    also_in: str
    note: str
    use: str
    line: int = 0

    @property
    def held_out(self) -> bool:
        """Whether this row is withheld from every fit."""
        return self.use == "validate"

    @property
    def source(self) -> str:
        """The source: paper key and section."""
        return f"{self.paper} {self.section}"

    def sizes(self, column: str = "configuration") -> SizeRange | None:
        """The sizes it applies to, from ``configuration``'s last part, from the words of ``value``, or ``low``..``high``."""
        if column == "range":
            return None if self.low is None or self.high is None else SizeRange(int(self.low), int(self.high))
        if column == "value":
            return parse_size_range(self.value)
        return parse_size_range(self.configuration.rpartition(",")[2])

    def row(self) -> dict[str, Any]:
        """A flat object of the columns, for JSON and tables."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "line"}


def _number(text: str, column: str, path: Path, line: int) -> float | None:
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        raise InputError(f"column '{column}' has '{text}'; a number or nothing is right", path, line) from None


def _read(path: Path) -> tuple[Claim, ...]:
    try:
        handle = path.open(newline="", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read the reference: {error.strerror}", path, code="unreadable-file") from error
    names = [f.name for f in fields(Claim) if f.name != "line"]
    out: list[Claim] = []
    with handle:
        reader = csv.DictReader(handle)
        missing = set(names) - set(reader.fieldnames or ())
        if missing:
            raise InputError(f"columns missing: {', '.join(sorted(missing))}", path, 1, code="missing-key")
        seen: set[str] = set()
        for row in reader:
            line = reader.line_num
            if any(row[n] is None for n in names):
                raise InputError(f"the row has fewer than {len(names)} columns", path, line, code="missing-key")
            for column, valid in (("use", USES), ("kind", KINDS)):
                if row[column] not in valid:
                    raise InputError(f"{column} '{row[column]}'{nearest(row[column], valid)}", path, line, code="unknown-name")
            if row["id"] in seen:
                raise InputError(f"claim '{row['id']}' appears twice", path, line, code="duplicate-name")
            seen.add(row["id"])
            low, high = (_number(row[c], c, path, line) for c in ("low", "high"))
            if low is not None and high is not None and low > high:
                raise InputError(f"low {low:g} is above high {high:g}", path, line)
            text = {n: row[n] for n in names if n not in ("low", "high")}
            out.append(Claim(**text, low=low, high=high, line=line))
    return tuple(out)


@cache
def _shipped(path: Path) -> tuple[Claim, ...]:
    return _read(path)


def load(path: Path | None = None) -> list[Claim]:
    """All rows of the reference (the shipped one by default), in file order.

    Raises InputError naming file and line on a malformed row.
    """
    return list(_read(path) if path is not None else _shipped(reference_dir() / "claims.csv"))


def find(claim_id: str, among: Iterable[Claim] | None = None) -> Claim:
    """The claim of that identifier; UsageError names the nearest."""
    known = {c.id: c for c in (load() if among is None else among)}
    if claim_id not in known:
        near = [k for k in known if k.rpartition("-")[0] == claim_id.rpartition("-")[0]] or list(known)
        raise UsageError(f"no claim '{claim_id}'{nearest(claim_id, near, limit=8)}", code="unknown-claim")
    return known[claim_id]


def paper_key(name: str) -> str:
    """The study that a paper's key belongs to; the long and the short form of a paper are one study."""
    return name.removesuffix("-long")


def papers() -> list[str]:
    """Keys of the studies in the reference, in file order."""
    return list(dict.fromkeys(paper_key(c.paper) for c in load()))


def by_paper(name: str) -> list[Claim]:
    """The claims of a study, by the key of either form; UsageError for an unknown key."""
    if paper_key(name) not in papers():
        raise UsageError(f"no paper '{name}'{nearest(name, papers())}", code="unknown-paper")
    return [c for c in load() if paper_key(c.paper) == paper_key(name)]


@cache
def checks() -> Mapping[str, tuple[Mapping[str, Any], ...]]:
    """Claim identifier -> its checks, from ``checks/*.toml``; every identifier exists in the reference.

    Each check is a table with ``kind`` and, as that kind needs, ``metric``, ``mode``, ``models`` and others; see
    ``checks/README.md``. Raises InputError for an unknown claim, or one that two files check.
    """
    known = {c.id for c in load()}
    out: dict[str, tuple[Mapping[str, Any], ...]] = {}
    for path in sorted((validate_dir() / "checks").glob("*.toml")):
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise InputError(str(error), path) from error
        for claim_id, entries in table.items():
            if claim_id not in known:
                raise InputError(f"no claim '{claim_id}' in the reference{nearest(claim_id, known, limit=3)}", path, code="unknown-claim")
            if claim_id in out:
                raise InputError(f"'{claim_id}' is checked in another file as well", path)
            out[claim_id] = tuple(entries)
    return out


def models_of(check: Mapping[str, Any]) -> set[str]:
    """The models that a check concerns: by name, as one of two curves, or in the path of a fact (startup.wmpi.failures)."""
    facts = [str(check.get("path", "")), *map(str, check.get("paths", {}).values())]
    curves = [check[k][0] for k in ("better", "worse") if k in check]
    return {*check.get("models", ()), *curves, *(word for p in facts for word in p.split(".")[1:2])}


def judging(model: str) -> list[Claim]:
    """The claims whose checks concern ``model``; for a variant that no claim names, those of its base model."""
    by: dict[str, set[str]] = {i: set().union(*map(models_of, entries)) for i, entries in checks().items()}
    name = model if any(model in ms for ms in by.values()) else model.partition(":")[0]
    return [c for c in load() if name in by.get(c.id, ())]


def for_fit(model: str) -> list[Claim]:
    """The claims available to a calibration of ``model``: those marked ``calibrate``, in file order.

    The only access to the reference for `retrompi.papers.calibrate`. A claim belongs to a model when its check names the model; a variant
    that no check names uses the claims of its base model. Raises UsageError when no claim at all is marked for the model.
    """
    base = model.partition(":")[0]
    owners: dict[str, set[str]] = {
        claim_id: {m for entry in entries for m in entry.get("models", ())} for claim_id, entries in checks().items()
    }
    # The filter on `use` comes first, so that nothing of a held-out row is read after it.
    visible = [c for c in load() if c.use == "calibrate"]
    mine = [c for c in visible if model in owners.get(c.id, ())] or [c for c in visible if base in owners.get(c.id, ())]
    if not mine:
        names = sorted(set().union(*(owners.get(c.id, set()) for c in visible)))
        raise UsageError(f"no claim to calibrate '{model}' by{nearest(base, names)}", code="no-claims")
    return mine
