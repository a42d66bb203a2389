"""retrompi: a simulator of historical MPI environments.

The flow is traces -> models -> platforms -> engine -> store -> validate, report. The names of `retrompi.api` are names of this package
(``retrompi.pingpong(...)``), and are loaded when they are first used: importing it loads nothing heavy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

_API = (
    "Anatomy", "Claim", "Curve", "EngineError", "InputError", "Model", "Options", "Platform", "RetrompiError", "Run", "SimulationEnded",
    "StoreError", "StudyResult", "UsageError", "Verdicts", "claim", "claims", "list_models", "list_platforms", "message", "model",
    "open_store", "pingpong", "platform", "replay", "study", "sweep", "verdicts",
)  # fmt: skip
__all__ = ["__version__", *_API]

if TYPE_CHECKING:
    # Declared, not defined: a module-level __getattr__ would make every wrong import of a submodule look right.
    from retrompi.api import *  # noqa: F403

    __version__: str
else:

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})

    def __getattr__(name: str):
        if name in _API:
            return getattr(importlib.import_module("retrompi.api"), name)
        if name == "__version__":
            from retrompi.base.release import version

            return version()
        raise AttributeError(f"module 'retrompi' has no attribute '{name}'")
