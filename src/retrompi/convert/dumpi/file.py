"""Reading DUMPI files: the calls of one rank as recorded.

Written from the description of the format (sst-dumpi, ``docs/traceformat.dox``): big-endian, a lead-in magic, the stream of calls, a
header, a footer, tables of key values, counters, functions and type sizes, and an index of these at the end of the file.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from retrompi.base.files import read_bytes
from retrompi.convert.dumpi.layout import layouts
from retrompi.traces.errors import TraceError

__all__ = ["MAGIC", "DumpiCall", "DumpiFile", "Status", "bin_files", "is_meta", "read_meta"]

MAGIC = b"\xff\xaa\xddDUMPI"
FOOT_MAGIC = 0xF007FEE7
SECOND = 1_000_000_000
END_OF_STREAM = 293
STATUS_MASK, CPU_MASK, WALL_MASK, THREAD_MASK, COUNTER_MASK = 3, 4, 8, 64, 128
MAX_ARRAY = 1 << 24
"""A longer array indicates a corrupt file (MPI's own counts of ranks and requests are far below it)."""
MAX_TYPES = 1 << 15


class Status(NamedTuple):
    """A recorded MPI_Status: bytes, source (rank of the communicator) and tag (-1 before version 0.6.3)."""

    bytes: int
    source: int
    tag: int


@dataclass(slots=True)
class DumpiCall:
    """One recorded call: its name without ``MPI_``, byte offset, thread, CPU and wall clock at entry and exit (ns from a per-rank origin;
    None when not recorded) and its named arguments."""

    name: str
    offset: int
    thread: int
    cpu: tuple[int, int] | None
    wall: tuple[int, int] | None
    args: dict[str, Any]


class DumpiFile:
    """A ``.bin`` file. ``version``: of the library that wrote it; ``type_sizes``: bytes by type handle; `calls` streams the records.

    Raises ``TraceError`` with the byte offset for a truncated or corrupt file.
    """

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        try:
            self.data = read_bytes(path)
        except OSError as e:
            raise TraceError(f"cannot be read: {e.strerror or e}", self.name, code="unreadable-file") from e
        if not self.data.startswith(MAGIC):
            raise TraceError("is not a DUMPI file: it does not begin with the DUMPI magic", self.name)
        self._index()
        self._header()
        self.type_sizes = self._type_sizes()

    def fail(self, at: int, what: str, code: str | None = None) -> TraceError:
        """An error at a byte offset."""
        return TraceError(f"byte {at}: {what}", self.name, code=code)

    def _unpack(self, layout: str, at: int) -> tuple[Any, ...]:
        try:
            return struct.unpack_from(layout, self.data, at)
        except struct.error:
            raise self.fail(min(max(at, 0), len(self.data)), "the file ends here: it is truncated", code="damaged-file") from None

    def _index(self) -> None:
        # The index is at the very end and begins with the magic; later versions have more offsets before the first four.
        for extra in (3, 2, 1, 0):
            at = len(self.data) - 8 * (5 + extra)
            if at >= len(MAGIC) and self.data[at : at + 8] == MAGIC:
                offsets = self._unpack(f">{4 + extra}Q", at + 8)
                break
        else:
            raise self.fail(
                len(self.data), "no index at the end of the file: it is truncated, or the program was killed", code="damaged-file"
            )
        self._sizes = offsets[0] if extra == 3 else 0
        self._head, self._body, self._foot = offsets[extra : extra + 3]
        for what, offset in (("header", self._head), ("calls", self._body), ("footer", self._foot), ("type sizes", self._sizes)):
            if offset > at or (offset < len(MAGIC) and (offset or what in ("header", "calls"))):
                raise self.fail(at, f"the index places the {what} at byte {offset}, outside the file")

    def _header(self) -> None:
        self.version: tuple[int, int, int] = self._unpack(">3B", self._head)

    def _type_sizes(self) -> list[int]:
        if not self._sizes:
            return []
        (count,) = self._unpack(">i", self._sizes)
        if not 0 <= count <= MAX_TYPES:
            raise self.fail(self._sizes, f"{count} sizes of types; corrupt", code="damaged-file")
        return list(self._unpack(f">{count}i", self._sizes + 4))

    def counts(self) -> dict[str, int] | None:
        """Calls by name as counted in the footer, to check the reading; None when there is no footer."""
        if not self._foot:
            return None
        if self._unpack(">Q", self._foot)[0] != FOOT_MAGIC:
            raise self.fail(self._foot, "the footer does not begin with its magic; corrupt", code="damaged-file")
        names = {number: name for number, (name, _) in layouts().items()}
        values = self._unpack(f">{291 * 2}I", self._foot + 8)
        return {names[i]: values[i] - values[291 + i] for i in range(290) if values[i] > values[291 + i]}

    def calls(self) -> Iterator[DumpiCall]:
        """The recorded calls in order, without records of the program's own functions."""
        data, version = self.data, self.version
        self._unpack(">ii", self._body)  # the seconds subtracted from all clocks; only differences matter here
        at = self._body + 8
        end = min(x for x in (self._head, self._foot, len(data)) if x > self._body)
        readers = _readers(version)
        head, clock = struct.Struct(">HB"), struct.Struct(">HIHI")
        finalized = False
        try:
            while at < end:
                start = at
                number, mask = head.unpack_from(data, at)
                at += 3
                if number == END_OF_STREAM or (finalized and number == 0):
                    return
                known = readers.get(number)
                if known is None:
                    raise self.fail(start, f"no call has the number {number}; corrupt, or written by a later version", code="damaged-file")
                name, fields = known
                thread = 0
                if mask & THREAD_MASK:
                    (thread,) = struct.unpack_from(">H", data, at)
                    at += 2
                cpu = wall = None
                if mask & CPU_MASK:
                    s, ns, s2, ns2 = clock.unpack_from(data, at)
                    cpu, at = (s * SECOND + ns, s2 * SECOND + ns2), at + 12
                if mask & WALL_MASK:
                    s, ns, s2, ns2 = clock.unpack_from(data, at)
                    wall, at = (s * SECOND + ns, s2 * SECOND + ns2), at + 12
                if mask & COUNTER_MASK:
                    at += 1 + 16 * data[at]
                args: dict[str, Any] = {"_mask": mask}
                for reader, field, root_only in fields:
                    if root_only and args.get("commrank") != args.get("root"):
                        continue
                    value, at = reader(data, at, args)
                    if field:
                        args[field] = value
                if at > end:
                    raise self.fail(start, f"the record of MPI_{name} runs beyond the stream of calls; corrupt", code="damaged-file")
                finalized = finalized or name == "Finalize"
                if not name.startswith("Function_"):
                    yield DumpiCall(name, start, thread, cpu, wall, args)
        except (struct.error, IndexError):
            raise self.fail(at, "the stream of calls ends within a record: truncated or corrupt", code="damaged-file") from None
        except _TooLongError as e:
            raise self.fail(at, f"an array of {e} elements; corrupt", code="damaged-file") from None


class _TooLongError(Exception):
    pass


Reader = Callable[[bytes, int, dict[str, Any]], tuple[Any, int]]


def _length(data: bytes, at: int) -> int:
    (n,) = struct.unpack_from(">i", data, at)
    if not 0 <= n <= min(MAX_ARRAY, len(data)):
        raise _TooLongError(n)
    return int(n)


def _scalar(code: str) -> Reader:
    one = struct.Struct(">" + code)

    def read(data: bytes, at: int, args: dict[str, Any]) -> tuple[Any, int]:
        return one.unpack_from(data, at)[0], at + one.size

    return read


def _array(code: str, size: int) -> Reader:
    def read(data: bytes, at: int, args: dict[str, Any]) -> tuple[Any, int]:
        n = _length(data, at)
        return struct.unpack_from(f">{n}{code}", data, at + 4), at + 4 + n * size

    return read


def _characters(data: bytes, at: int, args: dict[str, Any]) -> tuple[Any, int]:
    n = _length(data, at)
    if at + 4 + n > len(data):
        raise IndexError
    return data[at + 4 : at + 4 + n], at + 4 + n


def _array_of(inner: Reader) -> Reader:
    def read(data: bytes, at: int, args: dict[str, Any]) -> tuple[Any, int]:
        n = _length(data, at)
        at += 4
        out = []
        for _ in range(n):
            value, at = inner(data, at, args)
            out.append(value)
        return out, at

    return read


def _statuses(with_tag: bool) -> Reader:
    one = struct.Struct(">iiBBi" if with_tag else ">iiBB")

    def read(data: bytes, at: int, args: dict[str, Any]) -> tuple[Any, int]:
        if not args["_mask"] & STATUS_MASK:
            return [], at
        n = _length(data, at)
        at += 4
        out = []
        for _ in range(n):
            values = one.unpack_from(data, at)
            out.append(Status(values[0], values[1], values[4] if with_tag else -1))
            at += one.size
        return out, at

    return read


def _init_arguments(doubled: bool) -> Reader:
    strings = _array_of(_characters)

    def read(data: bytes, at: int, args: dict[str, Any]) -> tuple[Any, int]:
        return strings(data, at + 4 if doubled else at, args)

    return read


def _readers(version: tuple[int, int, int]) -> dict[int, tuple[str, list[tuple[Reader, str, bool]]]]:
    one, ints = _scalar("i"), _array("i", 4)
    kinds: dict[str, Reader] = {
        "i": one, "h": _scalar("h"), "b": _scalar("b"), "q": _scalar("q"), "I": ints, "H": _array("h", 2), "B": _array("b", 1),
        "C": _characters, "K": _array_of(_characters), "L": _array_of(_array_of(_characters)), "J": _array_of(ints),
        "S": _statuses(version >= (0, 6, 3)), "A": _init_arguments(version < (0, 6, 2)),
        "X": ints if version >= (0, 6, 9) else one, "Y": ints if version >= (0, 6, 8) else one,
    }
    table: dict[int, tuple[str, list[tuple[Reader, str, bool]]]] = {}
    for number, (name, fields) in layouts().items():
        if fields is not None:
            # an argument recorded only on the root has the name "?name", or just "?"
            table[number] = name, [(kinds[kind], field.lstrip("?"), field.startswith("?")) for field, kind in fields]
    return table


# --- the files of a job ----------------------------------------------------------------------------------------------------

_BIN = re.compile(r"(.*)-(\d{4,})\.bin")


def is_meta(data: bytes) -> bool:
    """Whether a file's first bytes are a DUMPI meta file's: key=value lines that include numprocs and fileprefix."""
    text = data[:4096]
    return re.search(rb"^numprocs=\d", text, re.M) is not None and re.search(rb"^fileprefix=", text, re.M) is not None


def read_meta(path: Path) -> list[Path]:
    """The ``.bin`` files of a meta file in rank order. Raises ``TraceError`` when one is missing."""
    try:
        text = read_bytes(path).decode("utf-8", "replace")
    except OSError as e:
        raise TraceError(f"cannot be read: {e.strerror or e}", str(path), code="unreadable-file") from e
    values: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        key, equals, value = line.partition("=")
        if line.strip() and not equals:
            raise TraceError(f"expected KEY=VALUE, found {line[:60]!r}", str(path), number, code="bad-syntax")
        values[key.strip()] = value.strip()
    try:
        ranks, prefix = int(values["numprocs"]), values["fileprefix"]
    except (KeyError, ValueError):
        raise TraceError("a DUMPI meta file must have numprocs=NUMBER and fileprefix=NAME", str(path)) from None
    if not 1 <= ranks <= 1 << 22:
        raise TraceError(f"numprocs={ranks} is not a valid number of ranks", str(path), code="bad-syntax")
    # A prefix in another folder is where the files were written, not where they are now.
    prefix = Path(prefix).name
    found: list[Path] = []
    for rank in range(ranks):
        file = path.parent / f"{prefix}-{rank:04d}.bin"
        try:
            there = file.is_file()
        except (OSError, ValueError) as e:  # a name that is too long, or holds NUL
            why = getattr(e, "strerror", None) or str(e)
            raise TraceError(f"fileprefix={prefix[:40]!r}… names no file: {why}", str(path), code="not-found") from None
        if not there:
            raise TraceError(f"{file.name} is missing, the file of rank {rank} of {ranks}", str(path), code="not-found")
        found.append(file)
    return found


def bin_files(path: Path) -> list[Path]:
    """All ``PREFIX-NNNN.bin`` in the folder of one of them, in rank order; the file alone when its name has another form."""
    match = _BIN.fullmatch(path.name)
    if match is None:
        return [path]
    beside = [(_BIN.fullmatch(p.name), p) for p in path.parent.iterdir()]
    ranks = {int(m[2]): p for m, p in beside if m is not None and m[1] == match[1]}
    missing = next((r for r in range(len(ranks)) if r not in ranks), None)
    if missing is not None:
        raise TraceError(f"{match[1]}-{missing:04d}.bin is missing among {len(ranks)} files of ranks", str(path), code="not-found")
    return [ranks[r] for r in range(len(ranks))]
