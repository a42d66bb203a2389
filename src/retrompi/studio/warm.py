"""Imported by the process from which jobs are forked: loads everything a PingPong needs before the first job."""

from __future__ import annotations

import gc
from contextlib import suppress
from pathlib import Path

from retrompi.base.errors import RetrompiError
from retrompi.base.scratch import folder as temporary
from retrompi.sim import simulate  # noqa: F401
from retrompi.spec import registry
from retrompi.store import code_version, database, migrate, open_store  # noqa: F401
from retrompi.studies import pool_worker
from retrompi.traces import generate


def _once() -> None:
    """Performs a what-if in this process, so that its imports, files and caches are available to every job."""
    from retrompi.sim import worker
    from retrompi.studio import message, runs

    registry.models()
    registry.platforms()
    code_version()
    generate.made("pingpong", {"sizes": generate.DEFAULT_SIZES, "reps": None})
    with temporary("warm") as folder:
        store = Path(folder) / "warm.db"
        open_store(store)
        worker.adopt(pool_worker.Forking())
        message.travel(lambda *_: None, [{"model": "wmpi", "platform": "nt-pair", "mode": "shared", "size": "1 KiB", "set": ""}], "there")
        runs.curves(lambda *_: None, (str(store), str(store)), [("wmpi", "nt-pair", "shared")], [0, 1024], [])
    worker.adopt(None)


with suppress(RetrompiError, OSError):  # reported by the job that needs it
    _once()
gc.collect()
gc.freeze()
