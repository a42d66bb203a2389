"""The error for a malformed trace, in a separate module from which the native parser imports it."""

from __future__ import annotations

from retrompi.base.errors import InputError

__all__ = ["TraceError"]


class TraceError(InputError):
    """A trace that cannot be read; ``str`` is ``file:line: message`` (exit 2)."""

    code = "bad-trace"
