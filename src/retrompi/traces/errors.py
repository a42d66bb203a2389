"""The error of a malformed trace. A module of its own: the native parser looks the class up here when it fails."""

from __future__ import annotations

from retrompi.base.errors import InputError

__all__ = ["TraceError"]


class TraceError(InputError):
    """A trace that cannot be read; ``str`` is ``file:line: message`` (exit 2)."""

    code = "bad-trace"
