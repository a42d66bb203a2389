"""retrompi: a simulator of historical MPI environments.

The flow is traces -> models -> platforms -> engine -> store -> validate, report. Importing this package
loads nothing heavy; the version is looked up when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["__version__"]

if TYPE_CHECKING:
    # Declared, not defined: a module-level __getattr__ would make every wrong import of a submodule look right.
    __version__: str
else:

    def __getattr__(name: str) -> str:
        if name == "__version__":
            from importlib.metadata import PackageNotFoundError, version

            try:
                return version("retrompi")
            except PackageNotFoundError:  # a source tree on PYTHONPATH, never installed
                return "0+source"
        raise AttributeError(f"module 'retrompi' has no attribute '{name}'")
