"""Errors reported to the user as one line, each with its exit code.

Exit codes: 0 done, 1 a negative verdict or outcome, 2 wrong usage or input, 3 an internal error.
Each error also carries a stable ``code`` (``unknown-model``) for programs and tests; the wording may change (docs/errors.md).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

__all__ = ["EngineError", "InputError", "RetrompiError", "StoreError", "UsageError", "nearest"]


class RetrompiError(Exception):
    """Base of every error the command line prints as one line.

    ``message`` is the line, ``exit_code`` the exit status of the process, ``code`` the kind of error in kebab case (by default
    that of the class).
    """

    exit_code: int = 2
    code: str = "failed"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        # What a user typed may hold line breaks; the error is one line all the same.
        self.message = message if len(message.splitlines()) < 2 else " ".join(message.split())
        super().__init__(self.message)
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return self.message


class UsageError(RetrompiError):
    """A wrong name, unit, option or combination of them (exit 2)."""

    code = "bad-usage"


class InputError(RetrompiError):
    """An error in the contents of a file; ``str`` is ``path:line: message``, as far as path and line are known (exit 2)."""

    code = "bad-input"

    def __init__(self, message: str, path: str | Path | None = None, line: int | None = None, *, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.path = None if path is None else str(path)
        self.line = line

    def __str__(self) -> str:
        if self.path is None:
            return self.message
        where = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{where}: {self.message}"

    # BaseException pickles `args` only; workers send errors through a pipe, and path and line must survive.
    def __reduce__(self) -> tuple[type[InputError], tuple[str, str | None, int | None], dict[str, str]]:
        return type(self), (self.message, self.path, self.line), {"code": self.code}


class StoreError(RetrompiError):
    """The store cannot be opened, read or written (exit 2)."""

    code = "store-failed"


class EngineError(RetrompiError):
    """A simulation worker died; the message ends with the last line it wrote to stderr (exit 3)."""

    exit_code = 3
    code = "engine-died"


def nearest(name: str, names: Iterable[str], limit: int = 12) -> str:
    """The tail of a "no such name" line: ``; did you mean 'x'? valid: a, b, c``.

    At most ``limit`` names are listed, to keep the message short.
    """
    known = sorted(dict.fromkeys(names))
    lowered = {k.lower(): k for k in reversed(known)}
    close = difflib.get_close_matches(name.lower(), list(lowered), n=1, cutoff=0.6)
    shown = ", ".join(known[:limit])
    more = f", … ({len(known) - limit} more)" if len(known) > limit else ""
    tail = f"valid: {shown}{more}" if known else "none exist"
    return f"; did you mean '{lowered[close[0]]}'? {tail}" if close else f"; {tail}"
