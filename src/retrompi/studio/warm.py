"""Imported by the process that jobs are forked from: everything a PingPong needs is there before the first is asked for."""

from __future__ import annotations

import gc
import tempfile
from contextlib import suppress
from pathlib import Path

from retrompi.base.errors import RetrompiError
from retrompi.sim import simulate  # noqa: F401
from retrompi.spec import registry
from retrompi.store import code_version, database, migrate, open_store  # noqa: F401
from retrompi.studies import pool_worker
from retrompi.traces import generate


def _once() -> None:
    """Does what a what-if does, in this very process: what is imported, read and remembered by it is there for every job."""
    from retrompi.sim import worker
    from retrompi.studio import message, runs

    registry.models()
    registry.platforms()
    code_version()
    generate.made("pingpong", {"sizes": generate.DEFAULT_SIZES, "reps": None})
    with tempfile.TemporaryDirectory(prefix="retrompi-warm-") as folder:
        store = Path(folder) / "warm.db"
        open_store(store)
        worker.adopt(pool_worker.Forking())
        message.travel(lambda *_: None, [{"model": "wmpi", "platform": "nt-pair", "mode": "shared", "size": "1 KiB", "set": ""}], "there")
        runs.curves(lambda *_: None, (str(store), str(store)), [("wmpi", "nt-pair", "shared")], [0, 1024], [])
    worker.adopt(None)


with suppress(RetrompiError, OSError):  # the job that needs it says what is wrong
    _once()
gc.collect()
gc.freeze()
