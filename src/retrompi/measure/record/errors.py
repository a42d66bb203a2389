"""The error for a recording that cannot start or has no result."""

from __future__ import annotations

from retrompi.base.errors import RetrompiError

__all__ = ["RecordError"]


class RecordError(RetrompiError):
    """A recording that cannot be made: a missing compiler, launcher or program, or one that is no MPI program (exit 2)."""

    code = "cannot-record"
