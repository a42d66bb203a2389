"""Works kept as folders, those that ``retrompi lab start`` makes: the text, answers.toml, .lab.toml and the student's files."""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import zipfile
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import InputError
from retrompi.base.scratch import folder as temporary
from retrompi.labs import answers as _answers
from retrompi.labs import grade, submissions
from retrompi.labs.student import ANSWERS, STATE, folder_name, normal_id, read_state, read_text, state_text
from retrompi.labs.work import (
    LARGEST_FILE,
    LARGEST_FILES,
    MOST_FILES,
    OWN,
    CheckRequest,
    Conflict,
    Last,
    Ran,
    Work,
    begin,
    folder_files,
    sheet,
)

if TYPE_CHECKING:
    from retrompi.labs.grade import Grading
    from retrompi.labs.lab import Lab

__all__ = ["FolderShelf", "Remembered", "pack", "read_folder", "unpack", "write_folder"]


_RESULT = ".result-"
"""Begin of the names of kept results."""


def read_folder(folder: Path, lab: Lab | None = None) -> tuple[Lab, Work]:
    """(lab, work) of a student's folder. InputError with file and line when the sheet or .lab.toml is invalid.

    Files beyond the limits of a work stay in the folder and are no part of it.
    """
    state = read_state(folder)
    found = lab if lab is not None and lab.name == state.lab and lab.version == state.version else grade.lab_of(state, folder)
    given = _answers.read(folder, found)
    answered = {i: _answers.plain(g.raw) for i, g in given.items() if not g.empty}
    lines = {i: g.line for i, g in given.items() if g.line is not None}
    return found, Work(state, answered, _files(folder), _revision(folder), lines)


def _files(folder: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    left = LARGEST_FILES
    for file in sorted(folder.iterdir()):
        if file.name in OWN or file.name.startswith(".") or file.is_symlink() or not file.is_file():
            continue
        size = file.stat().st_size
        if size <= min(LARGEST_FILE, left) and len(files) < MOST_FILES:
            files[file.name] = file.read_bytes()
            left -= size
    return files


def _revision(folder: Path) -> int:
    """A number of what the folder holds: an edit in a text editor makes another one, too."""
    told = hashlib.sha256()
    for name in (STATE, ANSWERS):
        told.update((folder / name).read_bytes() + b"\0")
    for file in sorted(folder.iterdir()):
        if file.name not in OWN and not file.name.startswith(".") and file.is_file():
            found = file.stat()
            told.update(f"{file.name}\0{found.st_size}\0{found.st_mtime_ns}\0".encode(errors="surrogateescape"))
    return int.from_bytes(told.digest()[:8], "big") >> 1 or 1


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes files of a student's folder, each atomically, the state last. InputError if one cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the lab's folder: {error.strerror}", folder, code="unwritable-file") from None
    for name in sorted(files, key=lambda n: n == STATE):
        beside = folder / f".{name}.new"
        try:
            beside.write_bytes(files[name])
            os.replace(beside, folder / name)
        except OSError as error:
            what = "the lab's own file" if name == STATE else name
            raise InputError(f"cannot write {what}: {error.strerror}", folder / name, code="unwritable-file") from None


class Remembered:
    """Results of the newest checks, kept in memory: a folder stores only the work. Thread-safe."""

    MOST = 2000
    """Works whose last check is remembered."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], dict[str, tuple[int, Any]]] = OrderedDict()
        self._lock = Lock()

    def put(self, asked: CheckRequest, student: str, **said: Any) -> None:
        """Remembers the ``row`` or the ``error`` of a check, unless a newer one has said it before."""
        place = (asked.lab, normal_id(student))
        with self._lock:
            kept = self._kept.setdefault(place, {})
            for what, value in said.items():
                kept[what] = max(kept.get(what, (0, None)), (asked.number, value), key=lambda one: one[0])
            self._kept.move_to_end(place)
            while len(self._kept) > self.MOST:
                self._kept.popitem(last=False)

    def get(self, lab: str, student: str) -> Last:
        """The remembered result."""
        with self._lock:
            kept = self._kept.get((lab, normal_id(student)), {})
            (checked, row), (failed, error) = kept.get("row", (0, {})), kept.get("error", (0, ""))
        return Last(row, error if failed > checked else "")


class FolderShelf:
    """The works of ``student`` in the folders directly below ``root``; ``last``: where the last checks are remembered."""

    def __init__(self, root: Path, student: str, last: Remembered | None = None) -> None:
        self.root, self.student = root, student
        self._last = last or Remembered()
        self._one: Path | None = None

    @classmethod
    def of(cls, folder: Path) -> FolderShelf:
        """The shelf with one work only, that of ``folder``."""
        shelf = cls(folder.parent, read_state(folder).student)
        shelf._one = folder
        return shelf

    def place(self, lab: Lab) -> Path:
        """The folder of a lab's work."""
        return self._one if self._one is not None else self.root / folder_name(lab, self.student)

    def labs(self) -> list[str]:
        """The labs with a folder of this student's; one that cannot be read counts for none."""
        found = []
        for file in [self._one / STATE] if self._one is not None else sorted(self.root.glob(f"*/{STATE}")):
            try:
                state = read_state(file.parent)
            except InputError:
                continue
            if normal_id(state.student) == normal_id(self.student) and state.lab not in found:
                found.append(state.lab)
        return found

    def offers(self, lab: str) -> bool:
        """Every lab."""
        return True

    def open(self, lab: Lab) -> Work:
        """The work in the lab's folder, which is made if it is missing."""
        place = self.place(lab)
        with self._lock(place):
            if not (place / STATE).exists():
                write_folder(place, folder_files(begin(lab, self.student), lab))
            return read_folder(place, lab)[1]

    def save(self, work: Work) -> Work:
        """Writes what is new. The sheet keeps its comments; a file that the work no longer has is removed."""
        from retrompi.labs.lab import lab as named

        lab = named(work.state.lab)
        place = self.place(lab)
        with self._lock(place):
            _, kept = read_folder(place, lab)
            if kept.revision != work.revision:
                raise Conflict(f"lab {lab.key} was changed elsewhere in the meantime; look at it again")
            new = {n: c for n, c in work.files.items() if kept.files.get(n) != c}
            if work.answers != kept.answers:
                new[ANSWERS] = sheet(work, lab, read_text(place / ANSWERS, "the sheet of answers")).encode()
            if work.state != kept.state:
                new[STATE] = state_text(work.state).encode()
            write_folder(place, new)
            for name in kept.files.keys() - work.files.keys():
                (place / name).unlink(missing_ok=True)
            return replace(work, revision=_revision(place), lines=_answers.lines(place, lab))

    def ask(self, work: Work) -> CheckRequest:
        """A check of the folder as it is."""
        return CheckRequest.now(work)

    def keep_check(self, asked: CheckRequest, grading: Grading) -> None:
        """Remembers what a check said; the folder keeps the work alone."""
        self._last.put(asked, self.student, row=grading.row())

    def keep_failure(self, asked: CheckRequest, error: str) -> None:
        """Remembers why a check could not be graded."""
        if error:
            self._last.put(asked, self.student, error=error)

    def last(self, lab: str) -> Last:
        """The result of the last check, as long as the program runs."""
        return self._last.get(lab, self.student)

    def ran(self, lab: Lab) -> dict[str, Ran]:
        """The last results of the lab's forms: hidden files of the folder, which are no part of the work."""
        out = {}
        for file in sorted(self.place(lab).glob(f"{_RESULT}*")):
            with suppress(InputError, OSError):  # it can be run again
                found = Ran.unpack(file.read_bytes())
                out[found.key] = found
        return out

    def keep(self, lab: Lab, ran: Ran) -> None:
        """Keeps a form's result in the place of its last one."""
        if ran.key.isalnum():
            write_folder(self.place(lab), {f"{_RESULT}{ran.key}": ran.pack()})

    @contextmanager
    def _lock(self, place: Path) -> Iterator[None]:
        """One process at a time reads or writes a folder."""
        if not place.parent.is_dir():
            place.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(place.parent, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise InputError(f"cannot read the lab's folder: {error.strerror}", place, code="unreadable-file") from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


# -- as a zip --------------------------------------------------------------------------------------------------------------


def pack(work: Work, lab: Lab) -> bytes:
    """A zip of the student's folder, as handed in."""
    out = io.BytesIO()
    folder = folder_name(lab, work.state.student)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(folder_files(work, lab).items()):
            archive.writestr(f"{folder}/{name}", content)
    return out.getvalue()


def unpack(data: bytes) -> tuple[Lab, Work]:
    """(lab, work) of a zip of one student's folder. InputError in one line for anything else; the contents are untrusted."""
    with temporary("lab") as place:
        file = place / "work.zip"
        file.write_bytes(data)
        if not zipfile.is_zipfile(file):
            raise InputError("not a zip; hand in the zip of a lab's folder, with its hidden file .lab.toml", code="damaged-file")
        found = submissions.find([str(file)], place / "unpacked")
        if len(found) != 1:
            raise InputError(f"a zip of {len(found)} labs; bring them one by one", code="bad-value")
        (one,) = found
        if one.folder is None:
            raise InputError(one.broken, code="damaged-file")
        try:
            return read_folder(one.folder)
        except InputError as error:
            where = Path(error.path).name if error.path else None
            raise InputError(error.message.replace(f"{place}/", ""), where, error.line, code=error.code) from None
