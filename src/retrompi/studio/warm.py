"""Imported by the process that jobs are forked from: everything a PingPong needs is there before the first is asked for."""

from __future__ import annotations

import gc

from retrompi import _engine, experiment, registry, simulate  # noqa: F401
from retrompi.errors import RetrompiError
from retrompi.store import code_version, database, migrate  # noqa: F401
from retrompi.studies import case, forking  # noqa: F401
from retrompi.traces import generate

try:
    registry.models()
    registry.platforms()
    code_version()
    generate.made("pingpong", {"sizes": generate.DEFAULT_SIZES, "reps": None})
except RetrompiError:  # the job that needs it says what is wrong
    pass
gc.collect()
gc.freeze()
