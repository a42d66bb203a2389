"""The installed version, for those inside: the package itself is above all layers."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as _version

__all__ = ["version"]


def version() -> str:
    """The version of the installed package; ``0+source`` for a source tree on PYTHONPATH that was never installed."""
    try:
        return _version("retrompi")
    except PackageNotFoundError:
        return "0+source"
