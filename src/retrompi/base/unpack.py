"""Decompression of files that others made: in bounded pieces, up to a bound, so that a small file cannot fill memory or disk.

Every reader of compressed data uses it. What is gzip or zstd is recognised by its first bytes.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import BinaryIO

import zstandard

__all__ = ["GZIP", "HEAD", "ZSTD", "Budget", "Damaged", "is_skippable", "pieces", "whole"]

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
HEAD = 512
"""Bytes that identify what a file is."""
_CHUNK = 1 << 20
_FED = 512
"""Bytes of zstd data decompressed at once. A block of 4 bytes can stand for 128 KiB, so that this many are at most 16 MiB."""


class Damaged(ValueError):
    """Compressed data that cannot be unpacked, or too many; the message says why."""


class Budget:
    """How many bytes the files of one trace, pack or other whole may have when they are unpacked, all together.

    A file may be unpacked several times; its largest extent counts.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._total = 0
        self._files: dict[str, int] = {}

    def use(self, name: str, extent: int) -> None:
        """The file ``name`` was unpacked up to ``extent`` bytes. Raises Damaged when all files together are beyond the bound."""
        known = self._files.get(name, 0)
        if extent > known:
            self._files[name] = extent
            self._total += extent - known
            if self._total > self.most:
                raise Damaged(f"unpacks to more than {self.most >> 20} MiB")


def is_skippable(data: bytes) -> bool:
    """Whether a zstd stream begins with a frame of user data (RFC 8878, 3.1.2)."""
    return len(data) >= 4 and data[1:4] == b"\x2a\x4d\x18" and data[0] & 0xF0 == 0x50


def pieces(raw: BinaryIO) -> Iterator[bytes]:
    """The content of a file, which can be rewound, in pieces of bounded size, decompressed if it is gzip or zstd.

    The caller bounds their sum (`Budget`). Raises Damaged for corrupt or truncated data.
    """
    head = raw.read(HEAD)
    raw.seek(0)
    if head.startswith(GZIP):
        yield from _gunzip(raw)
    elif head.startswith(ZSTD) or is_skippable(head):
        yield from _unzstd(raw)
    else:
        while piece := raw.read(_CHUNK):
            yield piece


def whole(raw: BinaryIO, most: int) -> bytes:
    """All of the content, at most ``most`` bytes. Raises Damaged for corrupt or truncated data, and for more."""
    out = bytearray()
    for piece in pieces(raw):
        out += piece
        if len(out) > most:
            raise Damaged(f"unpacks to more than {most >> 20} MiB")
    return bytes(out)


def _gunzip(raw: BinaryIO) -> Iterator[bytes]:
    try:
        with gzip.GzipFile(fileobj=raw) as stream:
            while piece := stream.read(_CHUNK):
                yield piece
    except EOFError:
        raise Damaged("the gzip data end early: the file is truncated") from None
    except (gzip.BadGzipFile, zlib.error, OSError) as e:
        raise Damaged(f"corrupt gzip data: {e}") from None


def _unzstd(raw: BinaryIO) -> Iterator[bytes]:
    # One decompressor per frame: a stream reader would treat a truncated frame as the end of the file.
    early = Damaged("the zstd data end early: the file is truncated")
    rest = b""
    try:
        while rest or (rest := raw.read(_FED)):
            if len(rest) < 8:
                rest += raw.read(8 - len(rest))
            if is_skippable(rest[:4]):
                skip = 8 + int.from_bytes(rest[4:8], "little") - len(rest)
                if len(rest) < 8 or (skip > 0 and not _skip(raw, skip)):
                    raise early
                rest = rest[skip:] if skip < 0 else b""
                continue
            frame = zstandard.ZstdDecompressor().decompressobj()
            while not frame.eof:
                if not rest and not (rest := raw.read(_FED)):
                    raise early
                if piece := frame.decompress(rest):
                    yield piece
                rest = b""
            rest = frame.unused_data
    except zstandard.ZstdError as e:
        raise Damaged(f"corrupt zstd data: {e}") from None


def _skip(raw: BinaryIO, count: int) -> bool:
    while count > 0:
        piece = raw.read(min(count, _CHUNK))
        if not piece:
            return False
        count -= len(piece)
    return True
