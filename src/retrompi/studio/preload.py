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
from retrompi.studies.execute import pool_worker
from retrompi.traces import generate


def _once() -> None:
    """Performs a what-if and a lab's commands in this process, so that their imports, files and caches are available to every job: in a
    class, importing what draws a figure took ten times as long as the command."""
    from retrompi.sim import worker
    from retrompi.studio.anatomy import anatomy_job
    from retrompi.studio.curves import runs
    from retrompi.studio.labs import lab_commands, lab_jobs  # noqa: F401

    registry.models()
    registry.platforms()
    code_version()
    generate.make_trace("pingpong", {"sizes": generate.DEFAULT_SIZES, "reps": None})
    with temporary("warm") as folder:
        store = Path(folder) / "warm.db"
        open_store(store)
        worker.adopt(pool_worker.Forking())
        asked = {"model": registry.FIRST_MODEL, "platform": registry.FIRST_PLATFORM, "mode": "shared"}
        anatomy_job.travel(lambda *_: None, [{**asked, "size": "1 KiB", "set": ""}], "there")
        runs.curves(lambda *_: None, (str(store), str(store)), [(registry.FIRST_MODEL, registry.FIRST_PLATFORM, "shared")], [0, 1024], [])
        for kind, given in (("pingpong", {"sizes": "0,1KiB"}), ("explain", {"size": "1 KiB"})):
            lab_commands.run(lambda *_: None, str(store), kind, {**asked, **given}, {}, {})
    worker.adopt(None)


with suppress(RetrompiError, OSError):  # reported by the job that needs it
    _once()
gc.collect()
gc.freeze()
