"""Reading what comes out of a box: an archive (POSIX.1-1988 ``ustar``) of files that were asked for, made by whoever ran in there.

Python's `tarfile` reads many dialects; here one is read, and anything else is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from retrompi.base.errors import InputError

__all__ = ["read_files"]

_BLOCK = 512
_NAME, _SIZE, _SUM, _TYPE, _MAGIC, _PREFIX = slice(0, 100), slice(124, 136), slice(148, 156), 156, slice(257, 265), slice(345, 500)


def read_files(data: bytes, wanted: Collection[str]) -> dict[str, bytes]:
    """Name -> content of the regular files in an archive, each ``wanted`` and there once at most. InputError for any other archive."""
    found: dict[str, bytes] = {}
    at = 0
    while at + _BLOCK <= len(data):
        head = data[at : at + _BLOCK]
        if not any(head):
            return found
        name, size = _header(head)
        at += _BLOCK
        if name not in wanted or name in found:
            raise _refusal(f"has a file that was not asked for, {ascii(name)[:60]}")
        if size > len(data) - at:
            raise _refusal("ends within a file")
        found[name] = data[at : at + size]
        at += -(-size // _BLOCK) * _BLOCK
    raise _refusal("has no end")


def _header(head: bytes) -> tuple[str, int]:
    """(name, size) of a regular file by its header block."""
    if head[_MAGIC] != b"ustar\x0000" or any(head[_PREFIX]):
        raise _refusal("is of another format")
    told = re.fullmatch(rb"([0-7]{6,7})[ \0]{1,2}", head[_SUM])
    if told is None or int(told[1], 8) != sum(head) - sum(head[_SUM]) + 8 * ord(" "):
        raise _refusal("is damaged")
    name, _, rest = head[_NAME].partition(b"\0")
    if any(rest) or not re.fullmatch(rb"[!-~]+", name):
        raise _refusal("has a file of an unusual name")
    if head[_TYPE : _TYPE + 1] != b"0":
        raise _refusal(f"has {name.decode()!a}, which is not a regular file of its own")
    size = re.fullmatch(rb"([0-7]{11})[ \0]", head[_SIZE])
    if size is None:
        raise _refusal("has a file of an impossible size")
    return name.decode(), int(size[1], 8)


def _refusal(what: str) -> InputError:
    return InputError(f"what the program left {what}", code="damaged-file")
