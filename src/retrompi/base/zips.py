"""Checks on a zip file of unknown origin: damage, and entries whose names are paths."""

from __future__ import annotations

import lzma
import re
import zipfile
import zlib
from collections.abc import Iterable

__all__ = ["UNREADABLE", "is_plain"]

UNREADABLE = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, lzma.LZMAError,
    NotImplementedError, RuntimeError, EOFError, ValueError, OverflowError,
)
"""Exceptions of zipfile for a damaged or encrypted file, or an unknown compression method."""
_PART = re.compile(r"[A-Za-z0-9_.+@=,()\[\] -]{1,200}")


def is_plain(parts: Iterable[str]) -> bool:
    """Whether every part of a path has only letters, digits and a few signs that are plain on every system, and is no ``.`` or ``..``."""
    return all(_PART.fullmatch(part) and part.strip(". ") for part in parts)
