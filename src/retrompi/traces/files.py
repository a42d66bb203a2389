"""Finding, unpacking and writing the files of a trace.

A trace is one file of all ranks, or one file per rank, listed in an index (a text file with one file name per line) or found in a
folder (``index.txt``, or ``rank-0.txt``, ``rank-1.txt``, …). Each file may be plain, gzip or zstd, and a folder may be a tar
archive. The type of a file is determined by its first bytes, not by its name.
"""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import tempfile
import weakref
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal, cast

import zstandard

from retrompi._engine import Trace
from retrompi.base import untrusted
from retrompi.base.files import open_regular
from retrompi.base.paths import stamp
from retrompi.base.unpack import GZIP, HEAD, ZSTD, Budget, Damaged, is_skippable, pieces

from .errors import TraceError

__all__ = ["folders", "parse", "read", "read_alone", "read_folders", "read_once", "write"]

UndefinedSource = Literal["refuse", "any", "null"]

# Limit against decompression bombs, for all files of a trace together; the largest trace in use is 83 MB.
MAX_UNPACKED = 2 << 30
_LONGEST_NAME = 1 << 20
_IN_MEMORY = 32 << 20  # larger archives are unpacked to disk


# The lines that are neither blank nor a comment.
_CONTENT = re.compile(rb"^[ \t\r\f\v]*+([^\s#][^\n]*)", re.M)


class _File:
    """The content of a file, unpacked in chunks on each iteration, and its name in messages."""

    def __init__(self, opened: Callable[[], BinaryIO], name: str, budget: Budget, *, bounded: bool = False) -> None:
        self.opened = opened
        self.name = name
        self.budget = budget
        """Maximum size of all files of the trace, unpacked."""
        self.bounded = bounded
        """Whether it holds for a plain file as well, which somebody else made and whose size need not be that on disk."""

    def __iter__(self) -> Iterator[bytes]:
        extent = 0
        try:
            with self.opened() as raw:
                counts = self.bounded or _is_packed(raw.read(HEAD))
                raw.seek(0)
                for piece in pieces(raw):
                    extent += len(piece)
                    if counts:
                        self.budget.use(self.name, extent)
                    yield piece
        except Damaged as e:
            raise TraceError(str(e), self.name, code="damaged-file") from None
        except (OSError, ValueError) as e:
            raise TraceError(f"cannot be read: {getattr(e, 'strerror', None) or e}", self.name, code="unreadable-file") from e

    def head(self, size: int) -> bytes:
        """The first ``size`` bytes, or all if there are fewer."""
        found = b""
        for piece in self:
            found += piece
            if len(found) >= size:
                break
        return found[:size]

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """The number and text of the lines that are neither blank nor a comment, without blanks around them."""
        rest, number = b"", 1
        for piece in self:
            text = rest + piece
            whole = text.rfind(b"\n") + 1
            at = 0
            if not text.strip():  # quicker than the pattern: a small file may hold a thousand million blank lines
                number, rest = number + text.count(b"\n"), b""
                continue
            for found in _CONTENT.finditer(text, 0, whole):
                number += text.count(b"\n", at, found.start())
                at = found.start()
                yield number, found[0].rstrip()
            number += text.count(b"\n", at, whole)
            rest = text[whole:]
            if len(rest) > _LONGEST_NAME:  # too long for a file name or the start of an action
                break
        if (rest := rest.strip()) and not rest.startswith(b"#"):
            yield number, rest


def read(
    path: str | Path,
    np: int | None = None,
    *,
    undefined_source: UndefinedSource = "refuse",
    partial: bool = False,
) -> Trace:
    """Read a trace.

    ``path`` is a trace file of all ranks, an index, a folder or a tar archive, each plain, ``.gz`` or ``.zst``; of an archive
    that holds several folders, ``ARCHIVE:FOLDER`` names one. ``np`` is the number of ranks, needed only if a shared file does
    not determine it. ``undefined_source`` is the meaning of a receive from -333 (which SMPI's tracer writes both for a wildcard and for
    MPI_PROC_NULL): ``refuse`` lists such lines as unsupported, ``any`` or ``null`` selects one. ``partial`` accepts ranks without
    ``finalize``.

    Raises ``TraceError`` if it cannot be read. Lines that cannot be simulated do not raise: see ``unsupported``.
    """
    if np is not None and np < 1:
        raise TraceError(f"the number of ranks must be at least 1, not {np}", str(path), code="out-of-range")
    found = Path(path)
    budget = Budget(MAX_UNPACKED)
    inside: str | None = None
    if ":" in str(path) and not _is(found, Path.exists):
        archive, _, folder = str(path).rpartition(":")
        if _is(Path(archive), Path.is_file):
            found, inside = Path(archive), folder
    if _is(found, Path.is_dir):
        sources = _from_folder(_Disk(found, budget), np)
    else:
        file = _load(found, budget)
        if _is_tar(file):
            sources = _from_archive(_Archive(file), inside, np)
        elif inside is not None:
            raise TraceError(f"is not a tar archive, so there is no folder {inside!r} in it", file.name, code="not-found")
        else:
            sources = _from_file(file, _Disk(found.parent, budget), np)
    return Trace.parse(sources, ranks=np or 0, undefined_source=undefined_source, partial=partial)


def read_alone(path: Path, name: str, *, most: int) -> Trace:
    """Read an untrusted file, called ``name`` in messages, without opening any other file that it names.

    A trace of all ranks or an archive (tar or zip) of files of ranks, plain, gzip or zstd; at most ``most`` bytes unpacked. Raises
    TraceError.
    """
    budget = Budget(most)
    file = _File(lambda: open_regular(path), name, budget, bounded=True)
    if file.head(4).startswith(b"PK\x03\x04"):
        return Trace.parse(_from_folder(_Zipped(path, name, budget), None), ranks=0, undefined_source="refuse", partial=False)
    sources = _from_archive(_Archive(file), None, None) if _is_tar(file) else _from_file(file, _Nowhere(), None)
    return Trace.parse(sources, ranks=0, undefined_source="refuse", partial=False)


_KEPT = 2
_ARCHIVES: OrderedDict[tuple[Path, int | None], tuple[tuple[int, int] | None, Trace]] = OrderedDict()
"""Cache of archives: (path, np) -> (stamp, trace), since the points of a study share few programs."""


def read_once(path: Path, np: int | None = None) -> Trace:
    """`read` with a cache of the last archives, invalidated when they change; folders and indexes are always read.

    Traces are immutable, so the cached object can be shared.
    """
    if ".tar" not in path.suffixes:
        return read(path, np)
    key, now = (path, np), stamp(path)
    known = _ARCHIVES.get(key)
    if known is None or known[0] != now:
        known = now, read(path, np)
    _ARCHIVES[key] = known
    _ARCHIVES.move_to_end(key)
    while len(_ARCHIVES) > _KEPT:
        _ARCHIVES.popitem(last=False)
    return known[1]


def parse(
    text: str | bytes | Sequence[str | bytes],
    np: int | None = None,
    *,
    name: str = "trace",
    undefined_source: UndefinedSource = "refuse",
    partial: bool = False,
) -> Trace:
    """Parse a trace from memory: the text of a file of all ranks, or a sequence with one text per rank.

    ``name`` is its name in messages (``NAME:LINE`` or ``NAME/rank-K.txt:LINE``). Otherwise as ``read``.
    """
    if isinstance(text, (str, bytes)):
        sources = [(_bytes(text), name, -1)]
    else:
        sources = [(_bytes(t), f"{name}/rank-{i}.txt", i) for i, t in enumerate(text)]
    return Trace.parse(sources, ranks=np or 0, undefined_source=undefined_source, partial=partial)


def folders(path: str | Path) -> list[str]:
    """The folders of a tar archive that hold a trace, i.e. an ``index.txt`` (or ``rank-0.txt``); ``.`` is its root."""
    return _trace_folders(_archive(Path(path)).names)


def read_folders(path: str | Path) -> Iterator[tuple[str, Trace]]:
    """(folder, trace) for every trace in a tar archive, which is unpacked once; folders as returned by `folders`."""
    archive = _archive(Path(path))
    for folder in _trace_folders(archive.names):
        yield folder, Trace.parse(_from_folder(_Members(archive, folder), None))


def write(trace: Trace, path: str | Path, *, shared: bool = False, smpi: bool = False) -> None:
    """Write a trace as a folder of ``index.txt`` and ``rank-K.txt``, or (``shared``) as one file of all ranks.

    Sizes are written in bytes, so that SMPI's replay can read them. A shared file with suffix ``.gz`` or ``.zst`` is
    compressed. Reading it back gives an equal trace. ``smpi`` writes only the actions that SMPI's replay supports; `smpi_losses` lists
    the others. Raises ``TraceError`` if it cannot be written.
    """
    text = trace.to_smpi if smpi else trace.to_ti
    target = Path(path)
    try:
        if shared:
            data = "".join(text(r, shared=True) for r in range(trace.ranks)).encode()
            if target.suffix == ".gz":
                data = gzip.compress(data, mtime=0)  # reproducible output
            elif target.suffix == ".zst":
                data = zstandard.ZstdCompressor(write_content_size=True, write_checksum=True).compress(data)
            target.write_bytes(data)
            return
        target.mkdir(parents=True, exist_ok=True)
        names = [f"rank-{r}.txt" for r in range(trace.ranks)]
        for r, name in enumerate(names):
            # A file without a line is taken for a lost one; a rank that does nothing gets a line that is read and ignored.
            (target / name).write_text(text(r) or f"{r} comm_size {trace.ranks}\n", encoding="utf-8")
        # With one rank, the single line denotes a file shared by all ranks, which is equivalent.
        (target / "index.txt").write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    except OSError as e:
        raise TraceError(f"cannot be written: {e.strerror or e}", str(target), code="unwritable-file") from e


# --- where files come from -------------------------------------------------------------------------------------------------


class _Nowhere:
    """No files: an untrusted trace must not name local ones."""

    def load(self, name: str) -> _File | None:
        return None

    def names(self) -> list[str]:
        return []

    def label(self) -> str:
        return ""


class _Zipped:
    """The files of a zip archive, read from it without extraction."""

    def __init__(self, path: Path, name: str, budget: Budget) -> None:
        self.name = name
        self.budget = budget
        try:
            self.zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as e:
            raise TraceError(f"corrupt or truncated zip archive: {e}", name, code="damaged-file") from None
        self.files = {str(PurePosixPath(m.filename)): m for m in self.zip.infolist() if not m.is_dir()}
        if any(m.flag_bits & 1 for m in self.files.values()):
            raise TraceError("the zip archive is encrypted", name, code="damaged-file")
        if sum(m.file_size for m in self.files.values()) > budget.most:
            raise TraceError(f"unpacks to more than {budget.most >> 20} MiB", name, code="damaged-file")
        inside = _trace_folders(self.files)
        if len(inside) != 1:
            what = f"{len(inside)} traces; one is read" if inside else "no index.txt and no rank-0.txt"
            raise TraceError(f"the archive holds {what}", name)
        self.folder = inside[0]

    def _open_member(self, path: str) -> BinaryIO:
        try:
            return io.BytesIO(self.zip.read(self.files[path]))  # zipfile rejects data longer than the declared size
        except (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, EOFError, OSError) as e:
            raise TraceError(f"corrupt zip archive: {e}", f"{self.name}:{path}", code="damaged-file") from None

    def load(self, name: str) -> _File | None:
        path = _join(self.folder, name)
        return _File(lambda: self._open_member(path), f"{self.name}:{path}", self.budget, bounded=True) if path in self.files else None

    def names(self) -> list[str]:
        prefix = "" if self.folder == "." else self.folder + "/"
        return sorted(n[len(prefix) :] for n in self.files if n.startswith(prefix) and "/" not in n[len(prefix) :])

    def label(self) -> str:
        return self.name


class _Disk:
    """Files beside an index, or (SMPI's own rule) below the current directory; of an untrusted folder, only those inside it."""

    def __init__(self, folder: Path, budget: Budget) -> None:
        self.folder = folder
        self.budget = budget
        self.root = untrusted.root_of(folder)

    def find(self, name: str) -> Path | None:
        places = (p for p in (self.folder / name, Path(name)) if _is(p, Path.is_file))
        return next((p for p in places if not untrusted.outside(p, self.root)), None)

    def load(self, name: str) -> _File | None:
        path = self.find(name)
        return None if path is None else _load(path, self.budget)

    def names(self) -> list[str]:
        return sorted(p.name for p in self.folder.iterdir() if p.is_file())

    def label(self) -> str:
        return str(self.folder)


class _Members:
    """Files in a folder of an archive, or else relative to its root."""

    def __init__(self, archive: _Archive, folder: str) -> None:
        self.archive = archive
        self.folder = folder

    def load(self, name: str) -> _File | None:
        for full in (_join(self.folder, name), _join(".", name)):
            if full in self.archive.names:
                return self.archive.file(full)
        return None

    def names(self) -> list[str]:
        prefix = "" if self.folder == "." else self.folder + "/"
        return sorted(n[len(prefix) :] for n in self.archive.names if n.startswith(prefix) and "/" not in n[len(prefix) :])

    def label(self) -> str:
        return self.archive.name if self.folder == "." else f"{self.archive.name}:{self.folder}"


Place = _Disk | _Members | _Nowhere | _Zipped
Source = tuple[bytes | Iterable[bytes], str, int]


def _from_file(file: _File, place: Place, np: int | None) -> list[Source]:
    first = _first_line(file)
    if first is None:
        raise TraceError("is empty: no action and no file name in it", file.name, code="empty-file")
    number, words = first
    # An action has at least two words, the first being its rank; anything else should be a file name.
    if len(words) >= 2 and re.fullmatch(rb"[+-]?\d+", words[0]):
        return [(file, file.name, -1)]
    name = b" ".join(words).decode("utf-8", "replace")
    if place.load(name) is not None:
        return _from_index(file, place, np)
    what = _quote(name)
    if isinstance(place, _Nowhere):
        wanted = "expected an action ('RANK ACTION …') of a trace of all ranks, or an archive of files of ranks"
        raise TraceError(f"{wanted}; found {what}", file.name, number)
    raise TraceError(f"expected an action ('RANK ACTION …') or the name of an existing trace file, found {what}", file.name, number)


def _from_index(index: _File, place: Place, np: int | None) -> list[Source]:
    files: list[_File] = []
    for number, raw in index.lines():
        name = raw.decode("utf-8", "replace")
        file = place.load(name)
        if file is None:
            why = "is not in this unpacked study" if isinstance(place, _Disk) and place.root is not None else "does not exist"
            raise TraceError(f"names {_quote(name)}, which {why}", index.name, number, code="not-found")
        files.append(file)
    if len(files) == 1:
        return [(files[0], files[0].name, -1)]
    if np is not None and np != len(files):
        raise TraceError(f"names {len(files)} files, one a rank, but {np} ranks are asked for", index.name, code="wrong-ranks")
    return [(f, f.name, rank) for rank, f in enumerate(files)]


_RANK_FILE = re.compile(r"rank-(\d{1,7})\.txt(?:\.gz|\.zst)?")


def _from_folder(place: Place, np: int | None) -> list[Source]:
    for name in ("index.txt", "index.txt.gz", "index.txt.zst"):
        index = place.load(name)
        if index is not None:
            return _from_index_or_fail(index, place, np)
    ranks = {int(m[1]): m[0] for m in map(_RANK_FILE.fullmatch, place.names()) if m}
    if not ranks:
        raise TraceError("no index.txt and no rank-0.txt in it", place.label(), code="not-found")
    missing = next((r for r in range(len(ranks)) if r not in ranks), None)
    if missing is not None:
        raise TraceError(f"rank-{missing}.txt is missing among {len(ranks)} files of ranks", place.label(), code="not-found")
    if np is not None and np != len(ranks):
        raise TraceError(f"holds {len(ranks)} files, one a rank, but {np} ranks are asked for", place.label(), code="wrong-ranks")
    files = [_require(place.load(ranks[r]), place) for r in range(len(ranks))]
    return [(f, f.name, rank) for rank, f in enumerate(files)]


def _from_index_or_fail(index: _File, place: Place, np: int | None) -> list[Source]:
    sources = _from_index(index, place, np) if _first_line(index) else []
    if not sources:
        raise TraceError("is empty: no file name in it", index.name, code="empty-file")
    return sources


def _require(file: _File | None, place: Place) -> _File:
    if file is None:  # it was listed before
        raise TraceError("a file vanished while the trace was read", place.label(), code="unreadable-file")
    return file


def _from_archive(archive: _Archive, folder: str | None, np: int | None) -> list[Source]:
    inside = _trace_folders(archive.names)
    if not inside:
        raise TraceError("no index.txt and no rank-0.txt in the archive", archive.name, code="not-found")
    if folder is not None:
        wanted = _join(folder.rstrip("/"), "")
        # The innermost name suffices: archives often have a top folder with their own name.
        matches = [f for f in inside if f == wanted] or [f for f in inside if PurePosixPath(f).name == wanted]
        if not matches:
            from retrompi.base.errors import nearest

            raise TraceError(f"no folder {_quote(folder)} in the archive{nearest(folder, inside)}", archive.name, code="unknown-name")
        inside = matches
    if len(inside) > 1:
        raise TraceError(
            f"holds {len(inside)} traces; name one as {Path(archive.name).name}:{inside[0]}", archive.name, code="several-traces"
        )
    return _from_folder(_Members(archive, inside[0]), np)


def _trace_folders(files: Iterable[str]) -> list[str]:
    roots = re.compile(r"(?:(.*)/)?(?:index|rank-0)\.txt(?:\.gz|\.zst)?")
    return sorted({m[1] or "." for m in map(roots.fullmatch, files) if m})


def _join(folder: str, name: str) -> str:
    """The normalized path of a member, without ``./``; ``..`` is kept, so that it matches no member."""
    return str(PurePosixPath(folder) / name)


# --- unpacking -------------------------------------------------------------------------------------------------------------


def _load(path: Path, budget: Budget) -> _File:
    name = str(path)
    try:
        with open_regular(path) as raw:
            head = raw.read(HEAD)
    except FileNotFoundError:
        raise TraceError("no such trace file", name, code="not-found") from None
    except (OSError, ValueError) as e:
        raise TraceError(f"cannot be read: {getattr(e, 'strerror', None) or e}", name, code="unreadable-file") from e
    for suffix, magic, what in ((".zst", ZSTD, "zstd"), (".gz", GZIP, "gzip"), (".tgz", GZIP, "gzip")):
        if path.name.endswith(suffix) and not head.startswith(magic) and not (magic == ZSTD and is_skippable(head)):
            raise TraceError(f"is not {what} data although it is called {suffix}: corrupt, or misnamed", name, code="damaged-file")
    return _File(lambda: open_regular(path), name, budget)


def _is_packed(head: bytes) -> bool:
    return head.startswith((GZIP, ZSTD)) or is_skippable(head)


def _is_tar(file: _File) -> bool:
    head = file.head(HEAD)
    return len(head) >= HEAD and head[257:262] == b"ustar"


def _archive(path: Path) -> _Archive:
    file = _load(path, Budget(MAX_UNPACKED))
    if not _is_tar(file):
        raise TraceError("is not a tar archive", file.name)
    return _Archive(file)


class _Archive:
    """A tar archive and the paths of its regular files.

    It is unpacked into an unlinked temporary file, or in memory if it is small; members are never written under their own
    names, which prevents path traversal.
    """

    def __init__(self, file: _File) -> None:
        self.name = file.name
        self.budget = file.budget
        self.names: dict[str, tarfile.TarInfo] = {}
        spool = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115  it stays open as long as the archive is used
        weakref.finalize(self, spool.close)
        try:
            for piece in file:
                spool.write(piece)
            size = spool.tell()
            spool.seek(0)
        except OSError as e:
            raise TraceError(
                f"cannot be unpacked into {tempfile.gettempdir()}: {e.strerror or e}", file.name, code="unreadable-file"
            ) from None
        try:
            self.tar = tarfile.open(fileobj=spool, mode="r:")  # noqa: SIM115
            for member in self.tar:
                if not member.isfile():
                    continue
                if member.issparse():
                    raise TraceError(f"{_quote(member.name)} is a sparse file; a trace has none", file.name, code="damaged-file")
                if member.offset_data + member.size > size:
                    raise TraceError(f"the archive ends inside {_quote(member.name)}: it is truncated", file.name, code="damaged-file")
                self.names[str(PurePosixPath(member.name))] = member
        except (tarfile.TarError, ValueError, OverflowError, OSError, EOFError) as e:
            raise TraceError(f"corrupt or truncated tar archive: {e}", file.name, code="damaged-file") from None

    def file(self, path: str) -> _File:
        """A member by its path."""
        return _File(lambda: self._open_member(path), f"{self.name}:{path}", self.budget)

    def _open_member(self, path: str) -> BinaryIO:
        try:
            stream = self.tar.extractfile(self.names[path])
        except (tarfile.TarError, KeyError, OSError) as e:
            raise TraceError(f"corrupt or truncated tar archive: {e}", self.name, code="damaged-file") from None
        return cast(BinaryIO, stream or io.BytesIO())


# --- helpers ---------------------------------------------------------------------------------------------------------------


def _first_line(file: _File) -> tuple[int, list[bytes]] | None:
    """Number and words of the first line that is neither empty nor a comment."""
    return next(((number, text.split()) for number, text in file.lines()), None)


def _is(path: Path, test: Callable[[Path], bool]) -> bool:
    try:
        return test(path)
    except (OSError, ValueError):  # a name that is too long or contains NUL; reading it reports the error
        return False


def _quote(text: str, limit: int = 60) -> str:
    shown = text if len(text) <= limit else text[:limit] + "…"
    return repr(shown)


def _bytes(text: str | bytes) -> bytes:
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
