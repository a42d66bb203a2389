"""The store: a database of runs, each with everything needed to repeat it, and their points, verdicts and anatomies.

    store = open_store()                                  # or a path, or a database URL
    spec = specification(Question("wmpi", "nt-pair", Benchmark("pingpong"), "shared"))
    run_id = store.find_run(spec)                         # None if this has not been simulated yet
    if run_id is None:
        run_id = store.add_run(spec, {"outcome": "completed", "wall_s": 0.4}, points=rows)
    store.points(run_id)

Signatures:
    open_store(location: str | Path | None = None, *, write: bool = True) -> Store
    Store.find_run(spec or identity) -> int | None
    Store.add_run(spec, result, *, points=(), ranks=(), anatomy=()) -> int     one transaction
    Store.points(run_id) / anatomy(run_id) / ranks(run_id) -> list[dict]
    Store.run(run_id) -> dict;  Store.runs(model=, platform=, mode=, kind=, limit=) -> list[dict]
    Store.add_verdicts(paper, verdicts, run_ids=()) -> int;  Store.verdicts(paper=None, batch=None) -> list[dict]

Names are loaded on first use, because importing SQLAlchemy takes a noticeable time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from retrompi.store.location import default_path

if TYPE_CHECKING:
    from retrompi.store.database import Store, open_store
    from retrompi.store.identity import RunSpec, code_version, specification

__all__ = ["RunSpec", "Store", "code_version", "default_path", "open_store", "specification"]


def __getattr__(name: str) -> Any:
    if name in ("Store", "open_store"):
        from retrompi.store import database

        return getattr(database, name)
    if name in ("RunSpec", "code_version", "specification"):
        from retrompi.store import identity

        return getattr(identity, name)
    raise AttributeError(f"module 'retrompi.store' has no attribute '{name}'")
