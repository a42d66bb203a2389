"""Opening files whose names others gave: never blocks, and reads nothing but regular files."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

__all__ = ["exists", "is_dir", "is_file", "open_regular", "read_bytes", "read_text"]

_KINDS = {
    stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFDIR: "a folder",
}  # fmt: skip


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


def read_bytes(path: str | Path) -> bytes:
    """The content of a regular file; OSError as of `open_regular`."""
    with open_regular(path) as handle:
        return handle.read()


def read_text(path: str | Path) -> str:
    """The content of a regular file as UTF-8; UnicodeDecodeError when it is not, OSError as of `open_regular`."""
    return read_bytes(path).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
