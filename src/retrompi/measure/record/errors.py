"""The error of a recording that cannot begin or has nothing to show."""

from __future__ import annotations

from retrompi.base.errors import RetrompiError

__all__ = ["RecordError"]


class RecordError(RetrompiError):
    """A recording that cannot be made: a missing compiler, launcher or program, or one that is no MPI program (exit 2)."""

    code = "cannot-record"
