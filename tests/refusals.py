"""How tests of errors are written: by class, code and the facts of the line, so that its wording is free to improve."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from retrompi.base.errors import RetrompiError


@contextmanager
def refused(kind: type[RetrompiError], code: str, *facts: str) -> Iterator[Any]:
    """``with refused(UsageError, "unknown-model", "wmpj", "'wmpi'"):`` expects the error with that code whose line holds every fact:
    the name that was given, the place, the nearest name, a bound."""
    with pytest.raises(kind) as caught:
        yield caught
    assert caught.value.code == code, str(caught.value)
    missing = [fact for fact in facts if fact not in str(caught.value)]
    assert not missing, f"{missing} not in: {caught.value}"
