"""A run not yet stored: what `Store.add_run` writes, as plain data that a worker can send to the writing process."""

from __future__ import annotations

import platform as _machine
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any

from retrompi.sim.cautions import stored_cautions
from retrompi.sim.rank_table import RankTable
from retrompi.sim.result import COLUMNS
from retrompi.spec.conditions.network_model import by_simgrid
from retrompi.spec.declare.outcome import Outcome
from retrompi.store.identity import RunSpec, how_stopped

__all__ = ["Kept", "Outbox"]

PART_OF = "part_of"
"""The fact that a run was not asked for itself."""
Rows = list[dict[str, Any]]


def plain(value: Any) -> dict[str, Any]:
    """A dataclass or mapping as a new dict; {} for None."""
    if value is None:
        return {}
    if is_dataclass(value) and not isinstance(value, type):
        # Not asdict, which copies everything below as well.
        named = {f.name: getattr(value, f.name) for f in fields(value)}
        return {k: asdict(v) if is_dataclass(v) and not isinstance(v, type) else v for k, v in named.items()}
    return dict(value)


@dataclass(frozen=True)
class Kept:
    """One run with its points, ranks and stages; ``host`` is the machine it was simulated on."""

    spec: RunSpec
    row: Mapping[str, Any]
    points: Rows = field(default_factory=list)
    ranks: Rows = field(default_factory=list)
    anatomy: Rows = field(default_factory=list)

    def part_of(self, what: str) -> Kept:
        """The same run, made as a part of ``what``: a study, a search or the draws of another run (`Store.runs` may leave it out)."""
        return replace(self, row={**self.row, "facts": {**self.row["facts"], PART_OF: what}})

    @classmethod
    def of(
        cls,
        spec: RunSpec,
        result: Any = None,
        points: Iterable[Mapping[str, Any]] = (),
        ranks: Iterable[Mapping[str, Any]] = (),
        anatomy: Iterable[Mapping[str, Any]] = (),
    ) -> Kept:
        """Built from the engine's Result, or a mapping with the same names, and its rows."""
        given = plain(result)
        if given.get("outcome") == Outcome.LIMIT:
            spec = replace(spec, stopped=how_stopped(str(given.get("detail", ""))))
        if "cautions" in given:
            given["cautions"] = [{"code": c.code, "text": c.text} for c in stored_cautions(given)]
        of_all = given.pop("per_rank", [])
        ranks = [*ranks, *(of_all.some() if isinstance(of_all, RankTable) else of_all)]
        if len(of_all) > len(ranks):
            given["rank_summary"] = of_all.summary()
        anatomy = [*anatomy, *given.pop("anatomy", [])]
        own = {k: given.pop(k) for k in COLUMNS if given.get(k) is not None}
        row = {
            **{f.name: getattr(spec, f.name) for f in fields(spec) if f.name != "stopped"},
            "identity": spec.identity,
            "parameters": spec.parameters,
            "overrides": spec.overrides,
            "host": _machine.node() or "unknown",
            "simgrid_version": _simgrid_version() if by_simgrid(spec.network) or spec.kind == "smpi" else "",
            "outcome": Outcome.COMPLETED,
            "detail": "",
            "wall_s": 0.0,
            **own,
            "facts": {k: v for k, v in given.items() if v not in (None, [], {}, "")},
        }
        return cls(spec, row, [dict(p) for p in points], [dict(r) for r in ranks], [dict(a) for a in anatomy])


def number_rows(rows: Iterable[Mapping[str, Any]]) -> Rows:
    """The rows of an anatomy with their positions."""
    return [{"size_B": row.get("size_B"), "position": i, **row} for i, row in enumerate(rows)]


class Outbox:
    """The interface of a store without a database: collects runs for another process to store (ids count from 1)."""

    read_only = False
    label = "outbox"

    def __init__(self) -> None:
        self.kept: list[Kept] = []

    def find_run(self, run: str | RunSpec) -> int | None:
        """The id of the newest collected run with this identity, or None."""
        identity = run if isinstance(run, str) else run.identity
        return next((i for i in range(len(self.kept), 0, -1) if self.kept[i - 1].spec.identity == identity), None)

    def keep(self, kept: Kept, *, fresh: bool = False) -> int:
        """Collects a run, as `Store.keep`. Whoever stores the collected runs decides whether they are ``fresh``."""
        self.kept.append(kept)
        return len(self.kept)

    def run(self, run_id: int) -> dict[str, Any]:
        """The row of a collected run."""
        return {"id": run_id, **self.kept[run_id - 1].row}

    def points(self, run_id: int) -> Rows:
        """Rows of the curve, as of `Store.points`."""
        return self.kept[run_id - 1].points

    def ranks(self, run_id: int) -> Rows:
        """Rows of the ranks, as of `Store.ranks`."""
        return self.kept[run_id - 1].ranks

    def anatomy(self, run_id: int) -> Rows:
        """Rows of the stages, as of `Store.anatomy`."""
        return number_rows(self.kept[run_id - 1].anatomy)


def _simgrid_version() -> str:
    try:
        from retrompi import _engine  # type: ignore[attr-defined,unused-ignore]
    except ImportError:
        return ""
    version = getattr(_engine, "simgrid_version", "")
    return str(version() if callable(version) else version)
