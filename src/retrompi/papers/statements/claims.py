"""The published statements: rows of ``claims.csv`` of the papers' folders, and the only access to them for a fit.

A row's ``use`` defines its purpose: ``calibrate`` rows are available to a fit, ``validate`` rows only to the judging, ``context`` rows
are information, ``exclude`` rows are shown but not judged. `for_fit` is the only function a calibration may call; it returns
``calibrate`` rows only (``tests/test_claims.py`` proves it).
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from retrompi.base import toml as toml_text
from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.base.names import check_name
from retrompi.base.paths import paper_dirs, papers_dir, stamp
from retrompi.papers.statements.tables import line_of, read_rows, text_of

__all__ = ["KINDS", "OPTIONAL", "REQUIRED", "USES", "Checks", "Claim", "SizeRange", "by_paper", "check_files", "checks", "checks_in",
           "claims_in", "excluded_readings", "find", "folders", "for_fit", "judging", "load", "models_of", "paper_key", "papers", "read",
           "read_checks", "state", "version"]

USES = ("calibrate", "validate", "context", "exclude")
KINDS = ("quant", "knee", "trend", "order", "qual")
REQUIRED = ("id", "system", "platform", "configuration", "observable", "value", "unit", "low", "high", "kind", "use")
OPTIONAL = ("group", "section", "also_in", "note", "paper")
"""Columns of claims.csv."""

Checks = Mapping[str, tuple[Mapping[str, Any], ...]]
"""Claim identifier -> its checks."""

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

    def __contains__(self, size: object) -> bool:
        return isinstance(size, int) and (size > self.low if self.above else size >= self.low) and (self.high is None or size <= self.high)

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
    row's place in the file for messages. ``group`` is the row of the verdict matrix, by default the system.
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
    group: str = ""
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
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"column '{column}' has '{text[:60]}'; a number or nothing is right", path, line, code="bad-number")
    return value


def _claim(row: Mapping[str, str], key: str, path: Path, line: int) -> Claim:
    """The claim of a row of the paper ``key``; InputError for a wrong one."""
    try:
        check_name("a claim", row["id"], 40)
    except UsageError as error:
        raise InputError(str(error), path, line, code=error.code) from None
    if re.search(r"[\s,;\"'\[\].]", row["id"]):
        raise InputError(f"the id '{row['id']}' has a character other than letters, digits, _ and -", path, line, code="bad-name")
    for column, valid in (("use", USES), ("kind", KINDS)):
        if row[column] not in valid:
            raise InputError(f"{column} '{row[column][:60]}'{nearest(row[column], valid)}", path, line, code="unknown-name")
    form = row["paper"] or key
    if key and paper_key(form) != key:
        said = f"the column paper has '{form[:60]}'; it is '{key}' or '{key}-long', the forms of this paper, or empty"
        raise InputError(said, path, line, code="bad-value")
    low, high = (_number(row[c], c, path, line) for c in ("low", "high"))
    if low is not None and high is not None and low > high:
        raise InputError(f"low {low:g} is above high {high:g}", path, line)
    text = {n: row[n] for n in (*REQUIRED, *OPTIONAL) if n not in ("low", "high", "paper")}
    return Claim(**text, paper=form, low=low, high=high, line=line)


def read(path: Path, key: str = "") -> tuple[list[Claim], list[InputError]]:
    """The claims of the table ``path`` of the paper ``key``, and what is wrong with its other rows, with file and line."""
    rows, problems = read_rows(path, REQUIRED, OPTIONAL)
    found: dict[str, Claim] = {}
    for line, row in rows:
        try:
            claim = _claim(row, key, path, line)
            if claim.id in found:
                raise InputError(f"claim '{claim.id}' appears twice; it is also in line {found[claim.id].line}", path, line,
                                 code="duplicate-name")
        except InputError as error:
            problems.append(error)
        else:
            found[claim.id] = claim
    return list(found.values()), sorted(problems, key=lambda p: p.line or 0)


def read_checks(folder: Path, known: Iterable[str]) -> tuple[Checks, list[InputError]]:
    """Claim -> its checks, of ``checks.toml`` and ``checks/*.toml`` of a paper's folder, and what is wrong there.

    ``known`` are the ids of its claims; a check of another one, or a claim that two files check, is wrong.
    """
    valid = set(known)
    found: dict[str, tuple[Mapping[str, Any], ...]] = {}
    problems: list[InputError] = []
    for path in check_files(folder):
        try:
            text = text_of(path)
            table = toml_text.parse(text, path, "checks")
        except InputError as error:
            problems.append(error)
            continue
        for claim_id, entries in table.items():
            line = line_of(text, table=claim_id)
            if claim_id not in valid:
                said = f"no claim '{claim_id[:60]}' in claims.csv{nearest(claim_id, valid, limit=3)}"
                problems.append(InputError(said, path, line, code="unknown-claim"))
            elif not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
                problems.append(InputError(f"the checks of a claim are tables [[{claim_id}]]", path, line, code="bad-value"))
            elif claim_id in found:
                problems.append(InputError(f"'{claim_id}' is checked in another file as well", path, line, code="duplicate-name"))
            else:
                found[claim_id] = tuple(entries)
    return found, problems


def check_files(folder: Path) -> list[Path]:
    """The files with the checks of the paper in ``folder``."""
    one = folder / "checks.toml"
    return [*([one] if one.is_file() else []), *sorted((folder / "checks").glob("*.toml"))]


State = tuple[tuple[Path, tuple[int, int] | None], ...]


def state(folder: Path) -> State:
    """The files of a paper at hand and their stamps: what has been read of it is right until one changes. The package's do not: ()."""
    if folder.parent == papers_dir():
        return ()
    code = sorted(file for what in ("experiments", "commands") for file in (folder / what).glob("*.py"))
    return tuple((f, stamp(f)) for f in (folder / "paper.toml", folder / "claims.csv", *check_files(folder), *code))


def version() -> tuple[tuple[Path, State], ...]:
    """A key of the state that `load` and `checks` depend on, for caches of values derived from them."""
    return tuple((folder, state(folder)) for folder in folders())


@lru_cache(maxsize=64)
def _read_paper(folder: Path, _: State) -> tuple[tuple[Claim, ...], Checks]:
    table = folder / "claims.csv"
    found, problems = read(table, folder.name) if os.path.lexists(table) else ([], [])  # a paper may have curves alone
    how, others = read_checks(folder, (c.id for c in found))
    for problem in (*problems, *others):
        raise problem
    return tuple(found), how


def claims_in(folder: Path) -> tuple[Claim, ...]:
    """The claims of the paper in ``folder``; InputError for the first wrong row."""
    return _read_paper(folder, state(folder))[0]


def checks_in(folder: Path) -> Checks:
    """The checks of the paper in ``folder``; raises as `claims_in`."""
    return _read_paper(folder, state(folder))[1]


@cache
def _place(folder: Path) -> tuple[int, str]:
    try:
        table = toml_text.parse(text_of(folder / "paper.toml"), folder / "paper.toml", "paper")
    except InputError:  # told where the paper is read
        table = {}
    order = table.get("order")
    return (order if isinstance(order, int) else 1 << 20, str(table.get("year", "")))


def folders() -> list[Path]:
    """The folders of the package's papers, by ``order`` of their paper.toml, then by year, then by name; then those at hand."""
    known = paper_dirs()
    ours = [f for f in known if f.parent == papers_dir()]
    ours.sort(key=lambda f: (*_place(f), f.name))
    return [*ours, *(f for f in known if f.parent != papers_dir())]


def load(path: Path | None = None) -> list[Claim]:
    """The claims of all papers, of the package and at hand, paper by paper; those of the table ``path`` if one is given.

    A claim of a paper at hand replaces the one of the package with the same id. Raises InputError naming file and line on a malformed row.
    """
    if path is not None:
        found, problems = read(path)
        for problem in problems:
            raise problem
        return found
    return list(_merge_papers(version()))


@lru_cache(maxsize=16)
def _merge_papers(papers_read: tuple[tuple[Path, State], ...]) -> tuple[Claim, ...]:
    found: dict[str, Claim] = {}
    for folder, now in papers_read:
        for claim in _read_paper(folder, now)[0]:
            if claim.id in found and folder.parent == papers_dir():
                raise InputError(f"claim '{claim.id}' is one of '{found[claim.id].paper}' too", folder / "claims.csv", claim.line,
                                 code="duplicate-name")
            found[claim.id] = claim
    return tuple(found.values())


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


def excluded_readings(claim_id: str) -> list[tuple[Claim, Mapping[str, Any]]]:
    """The excluded claims, with their checks, that state the number of the claim ``claim_id`` too (``same`` in a check): the paper
    contradicts itself, and they are other readings of one number. Nothing that is held out is read."""
    visible = [c for c in load() if c.use == "exclude"]
    return [(c, check) for c in visible for check in checks().get(c.id, ()) if check.get("same") == claim_id]


def papers() -> list[str]:
    """Keys of the papers, in the order of `folders`."""
    return [folder.name for folder in folders()]


def by_paper(name: str) -> list[Claim]:
    """The claims of a study, by the key of either form; UsageError for an unknown key."""
    if paper_key(name) not in papers():
        raise UsageError(f"no paper '{name}'{nearest(name, papers())}", code="unknown-paper")
    return [c for c in load() if paper_key(c.paper) == paper_key(name)]


def checks() -> Checks:
    """Claim identifier -> its checks, of all papers of `load`.

    Each check is a table with ``kind`` and, as that kind needs, ``metric``, ``mode``, ``models`` and others; see
    ``validate/papers/README.md``. Raises InputError for an unknown claim, or one that two files check.
    """
    return _merged_checks(version())


@lru_cache(maxsize=16)
def _merged_checks(papers_read: tuple[tuple[Path, State], ...]) -> Checks:
    found: dict[str, tuple[Mapping[str, Any], ...]] = {}
    for folder, now in papers_read:
        own, how = _read_paper(folder, now)
        found = {k: v for k, v in found.items() if k not in {c.id for c in own}} | dict(how)
    return found


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

    The only access to the reference for `retrompi.papers.fit.calibrate`. A claim belongs to a model when its check names the model; a
    variant that no check names uses the claims of its base model. Raises UsageError when no claim at all is marked for the model.
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
