"""Merging stores: the runs and the studies of several files into one store, and what of the studies is still missing.

Merging again changes nothing: a simulated run is known by its identity, a measurement by its identity and its time, a point of a study by
its position.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from retrompi.base.errors import InputError, RetrompiError, StoreError
from retrompi.store import open_store
from retrompi.studies.define import catalogue
from retrompi.studies.execute import design

if TYPE_CHECKING:
    from collections.abc import Callable

    from retrompi.store.database import Store
    from retrompi.studies.execute.design import Study

__all__ = ["Gap", "Merged", "command_of", "merge"]

_TOGETHER = 1000


@dataclass(frozen=True)
class Gap:
    """Points of a study that are not stored, all of one shard: how many, and the command that simulates them."""

    shard: int
    shards: int
    points: int
    command: str


@dataclass
class Merged:
    """A study of the merged files: its points (None for a definition that this version cannot read), those stored, and the gaps."""

    study_id: int
    name: str
    points: int | None = None
    stored: int = 0
    errors: int = 0
    added: int = 0
    gaps: list[Gap] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    """The versions of the code that its runs come from."""

    @property
    def missing(self) -> int:
        """Points that are not stored."""
        return sum(gap.points for gap in self.gaps)


def merge(store: Store, files: Sequence[Path], report: Callable[[int, int, str], None] | None = None) -> tuple[list[Merged], int, int]:
    """Copies all runs and studies of ``files`` into ``store``: the studies, and how many runs were new and how many known.

    Raises StoreError for a file that is no store, and for a run that is stored in both with another result.
    """
    sources = [_source(store, file) for file in files]
    found: dict[str, Merged] = {}
    new = known = 0
    for number, source in enumerate(sources):
        if report is not None:
            report(number, len(sources), source.label)
        ids: dict[int, int] = {}
        for part in source.raw_runs(_TOGETHER):
            targets, added = store.put_raw_runs(part, source.label)
            ids |= targets
            new += added
            known += len(targets) - added
        for row in source.studies():
            study_id = store.add_study(row["name"], row["hash"], row["definition"])
            one = found.setdefault(row["hash"], Merged(study_id, row["name"]))
            one.name = row["name"]
            for points in source.raw_study_points(row["id"], _TOGETHER):
                moved = [{**p, "run_id": ids.get(p["run_id"])} for p in points]
                one.added += store.add_study_points(study_id, moved)
            store.put_shards(study_id, source.shards(row["id"]))
    if report is not None:
        report(len(sources), len(sources), "")
    for digest, one in found.items():
        _look(store, digest, one)
    return list(found.values()), new, known


def _source(store: Store, file: Path) -> Store:
    if not file.is_file():
        raise InputError("there is no such file", file, code="not-found")
    if store.path is not None and store.path.exists() and file.samefile(store.path):
        raise StoreError(f"{file} is the store that is merged into; name another with --store", code="bad-usage")
    return open_store(file, write=False)


def _look(store: Store, digest: str, one: Merged) -> None:
    """Fills in the parts of a study that are present, and those that are missing."""
    done = store.study_done(one.study_id)
    rows = next(row for row in store.studies() if row["id"] == one.study_id)
    one.stored, one.errors = rows["done"], rows["errors"]
    one.versions = sorted({str(r["code_version"]) for r in store.study_versions(one.study_id)})
    try:
        study = design.from_definition(rows["definition"])
    except RetrompiError:  # of another version
        return
    one.points = design.count(study)
    if study.hash != digest or len(done) == one.points:
        return
    shards = max((n for _, n in store.shards(one.study_id)), default=1)
    for shard in range(1, shards + 1):
        mine = study.part(shard, shards)
        missing = sum(1 for position in design.positions(mine) if position not in done)
        if missing:
            one.gaps.append(Gap(shard, shards, missing, command_of(mine, store)))


def command_of(study: Study, store: Store) -> str:
    """The command that runs a study, or a shard of it: `retrompi sweep` where a scenario of that name has the same content, else from
    the merged store, which holds its definition."""
    shard, shards = study.shard
    words = ["--shard", f"{shard}/{shards}"] if shards > 1 else []
    own = ["--store", f"shard-{shard}.db"] if shards > 1 else ["--store", store.label]
    try:
        known = catalogue.scenario(study.base.name).hash == study.base.hash and not study.draws
    except RetrompiError:
        known = False
    if not known:
        return shlex.join(["retrompi", "study", "run", study.name, *words, "--store", store.label])
    axes = [word for group in study.groups if len(group) == 1 for word in ("--vary", f"{group[0].key}={_text(group[0].given)}")]
    zips = [w for g in study.groups if len(g) > 1 for w in ("--zip", ";".join(f"{a.key}={_text(a.given)}" for a in g))]
    sets = [word for key, value in study.fixed.items() for word in ("--set", f"{key}={value}")]
    drawn = ["--sample", f"lhs:{study.samples}", "--sample-seed", str(study.seed)] if study.sampling == "lhs" else []
    name = ["--name", study.name] if study.name != study.base.name else []
    metric = ["--metric", study.metric] if study.metric else []
    return shlex.join(["retrompi", "sweep", study.base.name, *axes, *zips, *sets, *drawn, *name, *metric, *words, *own])


def _text(given: str | Sequence[str]) -> str:
    return given if isinstance(given, str) else ",".join(f'"{item}"' if "," in item or ".." in item else item for item in given)
