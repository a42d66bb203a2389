"""A stored study with its points and runs, read once for display, export and packing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from sys import intern
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import UsageError
from retrompi.spec.declare.outcome import Outcome
from retrompi.studies.define import metrics
from retrompi.studies.define.axes import ABSENT
from retrompi.studies.draws.uncertainty import LEVEL
from retrompi.studies.execute import design
from retrompi.studies.execute.design import DRAW

if TYPE_CHECKING:
    from retrompi.store.database import Details, Store
    from retrompi.studies.read.view import View

__all__ = ["StoredStudy", "read"]

Row = Mapping[str, Any]


class _Pages:
    """Details of runs, in the order ``ids``, of which one page is in memory: whoever goes through them in that order reads each once."""

    def __init__(self, store: Store, ids: Sequence[int]) -> None:
        self.page_of = {run_id: i // _TOGETHER for i, run_id in enumerate(ids)}
        self._store, self._ids = store, ids
        self._page = -1
        self._found: dict[int, Details] = {}

    def __getitem__(self, run_id: int) -> Details:
        page = self.page_of[run_id]
        if page != self._page:
            self._found = self._store.details(self._ids[page * _TOGETHER : (page + 1) * _TOGETHER])
            self._page = page
        return self._found[run_id]


class _Part(Mapping[int, Any]):
    """One attribute of the details, by run."""

    def __init__(self, pages: _Pages, name: str) -> None:
        self._pages, self._name = pages, name

    def __getitem__(self, run_id: int) -> Any:
        return getattr(self._pages[run_id], self._name)

    def __iter__(self) -> Iterator[int]:
        return iter(self._pages.page_of)

    def __len__(self) -> int:
        return len(self._pages.page_of)


@dataclass(frozen=True)
class StoredStudy:
    """A study's row (id, name, hash, definition, created, code_version), the rows of its points, and its runs by id with their
    points and ranks. A run shared by several points is included once. Runs may be read as they are asked for (`read`), quickly only in
    the order of the points.

    ``draws``: of a study with draws, the rows of its draws, which ``rows`` does not have, and ``drawn`` their runs by id. ``versions``:
    the different code_version, network and simgrid_version of all its runs.
    """

    study: Row
    rows: Sequence[Row]
    runs: Mapping[int, Row]
    curves: Mapping[int, Sequence[Row]]
    ranks: Mapping[int, Sequence[Row]]
    draws: Sequence[Row] = ()
    drawn: Mapping[int, Details] = field(default_factory=dict)
    versions: Sequence[Row] = ()

    @property
    def definition(self) -> Mapping[str, Any]:
        """The study's definition."""
        found: Mapping[str, Any] = self.study["definition"]
        return found

    def view(self, metric: str | None = None, level: float = LEVEL) -> View:
        """The study prepared for display, by a metric's name or the study's own; with draws, with intervals at ``level``.

        Raises UsageError for a metric that no run has.
        """
        from retrompi.studies.read import drawn_study
        from retrompi.studies.read.view import metric_of, view

        wanted = metric_of(metric, self.definition, any(len(c) > 1 for c in self.curves.values()))
        made = view(self.definition, self.rows, wanted, self.runs, self.curves, self.ranks)
        done = next((r for r in made.rows if r["outcome"] == Outcome.COMPLETED and r["run_id"] is not None), None)
        if done is not None and all(r["value"] is None for r in made.rows):
            number = wanted.base or wanted
            run_id = done["run_id"]
            number.require(self.runs[run_id], self.curves.get(run_id, ()), self.ranks.get(run_id, ()), what=f"run {run_id} of this study")
        return drawn_study.with_intervals(made, self.draws, self.drawn, level) if self.draws else made


def _row(store: Store, study: int | str) -> Row:

    try:
        return store.study(study)
    except UsageError:
        if study in design.study_names():
            raise UsageError(f"the ready study '{study}' has not been run yet: retrompi study run {study}", code="not-run-yet") from None
        raise


_TOGETHER = 1000
_COUNTED = ("id", "ranks")
"""Columns of every run that views read themselves: an axis may count the ranks."""
_SHOWN = (*_COUNTED, "model", "model_hash", "platform", "platform_hash", "mode", "seed", "fidelity", "network", "simgrid_version",
          "overrides", "trace", "trace_hash", "scenario", "code_version", "identity", "actions", "wall_s")
_SAID = ("cautions",)
"""Columns and facts of a point's run that tables show, besides what metrics read of every run."""
_WHOLE = 20_000
"""Runs of a study that are read with all of their facts and parameters; of more, what tables and figures need."""


def _ids(rows: Sequence[Row]) -> list[int]:
    return sorted({r["run_id"] for r in rows if r["run_id"] is not None})


def _slim(found: Mapping[int, Details], more: Sequence[str], said: Sequence[str]) -> dict[int, Details]:
    """Of each run what metrics read, its columns ``more`` and its facts ``said``: a study may have a hundred thousand draws."""
    columns, facts = {*metrics.columns(), *more}, {*metrics.facts(), *said}

    def run(of: Row) -> dict[str, Any]:
        kept = {k: intern(v) if isinstance(v := of[k], str) else v for k in columns if k in of}
        return {**kept, "facts": {k: v for k, v in (of["facts"] or {}).items() if k in facts}}

    return {i: replace(d, run=run(d.run), anatomy=[]) for i, d in found.items()}


def _many(store: Store, ids: Sequence[int], more: Sequence[str] = _COUNTED, said: Sequence[str] = ()) -> dict[int, Details]:
    """`_slim` of the runs, read in parts."""
    found: dict[int, Details] = {}
    for i in range(0, len(ids), _TOGETHER):
        found |= _slim(store.details(ids[i : i + _TOGETHER]), more, said)
    return found


def read(store: Store, study: int | str, *, together: bool = False) -> StoredStudy:
    """A study by number, name or hash; UsageError if there is none, or none of its points has been run.

    ``together``: draws are points like the others, and runs are read a page at a time, as for export.
    """
    from retrompi.studies.read import results

    with store.hold_connection():
        row = _row(store, study)
        rows = results.rows(store, row["id"])
        if not rows:
            raise UsageError(
                f"nothing of study {row['name']} ({row['id']}) has been run; retrompi study run {row['name']}", code="not-run-yet"
            )
        versions = store.study_versions(row["id"])
        if together:
            pages = _Pages(store, list(dict.fromkeys(r["run_id"] for r in rows if r["run_id"] is not None)))
            return StoredStudy(row, rows, _Part(pages, "run"), _Part(pages, "points"), _Part(pages, "ranks"), versions=versions)
        draws = [r for r in rows if r.get(DRAW, ABSENT) != ABSENT]
        if draws:
            rows = [r for r in rows if r.get(DRAW, ABSENT) == ABSENT]
        ids = _ids(rows)
        found = store.details(ids) if len(ids) <= _WHOLE else _many(store, ids, _SHOWN, _SAID)
        drawn = _many(store, _ids(draws))
        runs, curves, ranks = ({i: getattr(d, name) for i, d in found.items()} for name in ("run", "points", "ranks"))
        return StoredStudy(row, rows, runs, curves, ranks, draws, drawn, versions)
