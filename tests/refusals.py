"""How tests of errors are written: by class, code and the facts of the line, so that its wording is free to improve.

What is wanted is one text, ``"CODE | FACT | FACT"``: the error's code (docs/errors.md), then what its line must hold: the name that was
given, the place, the nearest name, a bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import pytest

from retrompi.base.errors import RetrompiError


class Ended(Protocol):
    """What a command line ended with (`conftest.Outcome`)."""

    err: str
    error: str


def agrees(what: RetrompiError | Ended, wanted: str) -> None:
    """Asserts that an error, or what ended a command, has the code, and that its line holds every fact."""
    code, *facts = wanted.split(" | ")
    had, line = (what.code, str(what)) if isinstance(what, RetrompiError) else (what.error, what.err)
    assert had == code, f"'{had}', not '{code}': {line}"
    missing = [fact for fact in facts if fact not in line]
    assert not missing, f"{missing} not in: {line}"


@contextmanager
def refused(kind: type[RetrompiError], wanted: str) -> Iterator[Any]:
    """``with refused(UsageError, "unknown-model | 'wmpj' | 'wmpi'"):`` expects that error; yields what `pytest.raises` does."""
    with pytest.raises(kind) as caught:
        yield caught
    agrees(caught.value, wanted)
