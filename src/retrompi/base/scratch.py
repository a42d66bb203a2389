"""Temporary folders that only their owner enters, and that the next start removes when their process was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

__all__ = ["folder", "remove_left_over"]

_PREFIX = "retrompi-"
_HELD = ".held"
"""A file in each folder, locked for as long as a process uses it: the kernel drops the lock however the process ends."""


@contextmanager
def folder(name: str) -> Iterator[Path]:
    """A new folder (mode 0700) for the body, called after ``name``; also removed after ``kill -9``, by whoever makes the next one."""
    _sweep()
    place = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{name}-"))
    handle = _hold_lock(place)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        os.close(handle)


def _hold_lock(place: Path) -> int:
    """The descriptor of the lock, which forked children share. The file gets its name when it is locked, lest it be taken for one left."""
    new = place / f"{_HELD}.new"
    handle = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    os.rename(new, place / _HELD)
    return handle


@cache
def _sweep() -> None:
    remove_left_over()


def remove_left_over() -> list[Path]:
    """Removes this user's temporary folders whose processes are gone; returns them."""
    gone = []
    for place in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            told = place.lstat()
            if stat.S_ISDIR(told.st_mode) and told.st_uid == os.geteuid() and _is_left(place):
                shutil.rmtree(place)
                gone.append(place)
    return gone


def _is_left(place: Path) -> bool:
    handle = os.open(place / _HELD, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)  # OSError: none of ours, or being made
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True
