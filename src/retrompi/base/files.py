"""Opening files whose names others gave: never blocks, and reads nothing but regular files."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["LARGEST_TEXT", "exists", "folder_handle", "is_dir", "is_file", "open_own", "open_regular", "read_bytes", "read_text"]

LARGEST_TEXT = 64 << 20
"""Bytes of a text that is read as a whole, at most."""

_KINDS = {
    stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFDIR: "a folder",
}


def exists(path: str | Path) -> bool:
    """Whether there is such a file or folder; False for a text that can name none (too long, with NUL), of which pathlib raises OSError."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def is_file(path: str | Path) -> bool:
    """`exists`, for a regular file."""
    return exists(path) and Path(path).is_file()


def is_dir(path: str | Path) -> bool:
    """`exists`, for a folder."""
    return exists(path) and Path(path).is_dir()


def open_regular(path: str | Path) -> BinaryIO:
    """The regular file ``path``, links followed, open for reading. OSError, whose ``strerror`` says what it is, for anything else.

    A named pipe without a writer would block its opener for ever, and a device may never end.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind != stat.S_IFREG:
        os.close(descriptor)
        raise OSError(errno.EINVAL, f"it is {_KINDS.get(kind, 'something else')}, not a file", str(path))
    return os.fdopen(descriptor, "rb")


@contextmanager
def folder_handle(path: str | Path) -> Iterator[int]:
    """A handle of the folder ``path`` for the body; what its name stands for later does not matter then."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)


def open_own(name: str, folder: int, *, write: bool = False) -> BinaryIO:
    """The regular file called ``name`` (no path) directly in the folder with this handle, open for reading or for both, where others may
    have put anything under that name.

    OSError, whose ``strerror`` says what it is, for a link, for a file that has another name too, and for what is no file.
    """
    if "/" in name:
        raise OSError(errno.EINVAL, "it is a path, not a name", name)
    flags = (os.O_RDWR if write else os.O_RDONLY) | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a symbolic link, not a file", name) from None
        raise
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        os.close(descriptor)
        what = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        raise OSError(errno.EINVAL, "it has another name too" if stat.S_ISREG(found.st_mode) else f"it is {what}, not a file", name)
    return os.fdopen(descriptor, "r+b" if write else "rb")


def read_bytes(path: str | Path, most: int | None = None) -> bytes:
    """The content of a regular file; OSError as of `open_regular`, and for one of more than ``most`` bytes."""
    with open_regular(path) as handle:
        data = handle.read(-1 if most is None else most + 1)
    if most is not None and len(data) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MiB", str(path))
    return data


def read_text(path: str | Path) -> str:
    """The content of a regular file as UTF-8; UnicodeDecodeError when it is not, OSError as of `open_regular` or beyond `LARGEST_TEXT`."""
    return read_bytes(path, LARGEST_TEXT).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
