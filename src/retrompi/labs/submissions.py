"""A class's submissions: folders and zip files, as exported from a mailbox or a learning platform. Their contents are untrusted.

A download of Moodle or Canvas is a zip with a folder or a file for each account, in which a student's own zip lies: zips in a zip are
unpacked once. What is wrong with one account's files is said for that one; the others are collected.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from retrompi.base.zips import UNREADABLE
from retrompi.labs import accounts
from retrompi.labs.accounts import Account
from retrompi.labs.student import STATE

__all__ = ["LARGEST_ALL", "LARGEST_ZIP", "MOST_MEMBERS", "Submission", "find", "unpack"]

MOST_MEMBERS = 2000
LARGEST_MEMBER = 8 << 20
LARGEST_ZIP = 256 << 20
"""Maximum unpacked size of a zip, bytes. A nested zip has its own limit."""
LARGEST_ALL = 2 << 30
"""Maximum unpacked size of all zips of one call, bytes."""
DEPTH = 4
"""Maximum depth of folders between an argument and a submission."""
NESTED = 1
"""How deep zips may lie in zips."""
MOST = 2000
"""Maximum number of submissions of one call."""
NO_LAB = "no lab in it: the hidden file .lab.toml is missing (was the whole folder handed in?)"


@dataclass(frozen=True)
class Submission:
    """A folder to grade; ``source`` is the name shown to the teacher. ``broken`` is the one-line reason if there is no folder."""

    source: str
    folder: Path | None
    broken: str = ""
    account: Account | None = None
    """Whose it is by the learning platform from which it was downloaded."""


def find(arguments: Sequence[str], place: Path) -> list[Submission]:
    """The submissions of ``arguments``, each a folder of one or many submissions or a zip of such; zips are unpacked below ``place``."""
    found: list[Submission] = []
    search = _Search(place)
    for argument in arguments:
        path, source = Path(argument), _printable(str(argument))
        named = accounts.of_file(path.name)
        if path.is_dir():
            found += search.folder(path, source, _account(path.name))
        elif path.is_file() and zipfile.is_zipfile(path):
            found += search.submissions_in_zip(path, source, named[0] if named else None)
        else:
            why = "no such file or folder" if not path.exists() else "neither a folder nor a zip file"
            found.append(Submission(source, None, why))
    return found[:MOST]


def _printable(source: str) -> str:
    """A name for display: those in a zip may hold anything, such as characters that turn the direction of writing."""
    return "".join(c if c.isprintable() else "?" for c in source)


def _account(name: str) -> Account | None:
    found = accounts.of_folder(name)
    return found[0] if found else None


@dataclass
class _Search:
    """One call's search: where zips are unpacked, and how many bytes may still be."""

    place: Path
    rest: int = field(default_factory=lambda: LARGEST_ALL)
    made: int = field(default=0, init=False)

    def new(self) -> Path:
        """A path for another folder, which is not made."""
        self.made += 1
        return self.place / str(self.made)

    def folder(self, folder: Path, source: str, account: Account | None, zips: int = 0, depth: int = 0) -> list[Submission]:
        """One submission, or those in the folders and zips below; a folder without any counts as a broken one."""
        if (folder / STATE).is_file() and not (folder / STATE).is_symlink():
            return [Submission(source, folder, account=account)]
        found: list[Submission] = []
        loose: dict[Account, list[tuple[str, Path]]] = {}
        for entry in _entries(folder) if depth < DEPTH else ():
            name = f"{source.rstrip('/')}/{_printable(entry.name)}"
            if entry.is_dir():
                below = self.folder(entry, name, account or _account(entry.name), zips, depth + 1)
                # Every folder directly in a class's folder is a submission; deeper ones without a lab are ignored.
                found += below if depth == 0 or any(b.folder for b in below) else []
                continue
            named = accounts.of_file(entry.name) if account is None else None
            whose = named[0] if named else account
            if entry.suffix.lower() == ".zip":
                found += self.submissions_in_zip(entry, name, whose, zips, depth + 1)
            elif named is not None:
                loose.setdefault(named[0], []).append((named[1], entry))
        found += [self._together(files, source, whose) for whose, files in loose.items()]
        return _best(found) or [Submission(source, None, NO_LAB, account)]

    def submissions_in_zip(self, file: Path, source: str, account: Account | None, zips: int = 0, depth: int = 0) -> list[Submission]:
        """The submissions of a zip, unpacked into a new folder."""
        if zips > NESTED:
            return [Submission(source, None, "a zip in a zip in a zip is not unpacked", account)]
        if not zipfile.is_zipfile(file):
            return [Submission(source, None, "a file that ends in .zip and is none", account)]
        place = self.new()
        # A class's zip holds the files of many, of whom one must not keep the others from being graded.
        problem, spoilt, size = _unpack(file, place, min(LARGEST_ZIP, self.rest), by_entry=zips == 0 and account is None)
        self.rest -= size
        if problem:
            return [Submission(source, None, problem, account)]
        out = [Submission(f"{source}/{_printable(name)}", None, why, _whose(name)) for name, why in spoilt.items()]
        # A zip holds one folder or many; the folders of a student's own are no class.
        below = self.folder(place, source, account, zips + 1, depth if account is None else max(depth, 1))
        return out + [b for b in below if b.folder or b.broken != NO_LAB or not out]

    def _together(self, files: Sequence[tuple[str, Path]], source: str, account: Account) -> Submission:
        """The loose files that an account handed in, in a folder."""
        names = {name: file for name, file in files if name == PurePosixPath(name).name and name not in (".", "..")}
        where = f"{source.rstrip('/')}/{_printable(files[0][1].name)}"
        if STATE not in names:
            told = ", ".join(_quoted_name(n) for n in sorted(names)[:4])
            return Submission(where, None, f"neither a zip nor a lab's files with .lab.toml: {told}", account)
        place = self.new()
        try:
            place.mkdir(parents=True)
            for name, file in names.items():
                shutil.copyfile(file, place / name)
        except OSError as error:
            return Submission(where, None, f"cannot be copied: {error.strerror or error}", account)
        return Submission(where, place, account=account)


def _whose(name: str) -> Account | None:
    named = accounts.of_file(name)
    return _account(name) or (named[0] if named else None)


def _best(found: list[Submission]) -> list[Submission]:
    """Without what an account handed in besides a lab: a text typed into the platform, another file."""
    good = {s.account for s in found if s.folder is not None and s.account is not None}
    return [s for s in found if s.folder is not None or s.account not in good]


def _entries(folder: Path) -> Iterator[Path]:
    """Plain folders and files of a folder, by name; links and hidden ones are skipped."""
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        if not entry.is_symlink() and not entry.name.startswith((".", "__MACOSX")) and (entry.is_dir() or entry.is_file()):
            yield entry


def unpack(file: Path, place: Path) -> str:
    """Unpack ``file`` into the new folder ``place``; returns the error in one line, or "". Limits apply to the actual content."""
    return _unpack(file, place, LARGEST_ZIP, by_entry=False)[0]


def _unpack(file: Path, place: Path, most: int, *, by_entry: bool) -> tuple[str, dict[str, str], int]:
    """(error in one line, first part of a path -> why nothing of it is used, bytes written); ``by_entry``: a member that is too large or
    cannot be written is an error of the first part of its path only, if there is another."""
    spoilt: dict[str, str] = {}
    rest = most
    try:
        with zipfile.ZipFile(file) as archive:
            members = [m for m in archive.infolist() if not m.is_dir()]
            if len(members) > MOST_MEMBERS:
                return f"a zip of {len(members)} files; at most {MOST_MEMBERS} are unpacked", {}, 0
            targets = [(m, _target(m, place)) for m in members]
            for member, target in targets:
                if target is None:
                    return f"a zip with a member that leads out of it or is a link: {_quoted_name(member.filename)}", {}, 0
                if member.flag_bits & 1:
                    return "a zip with a password", {}, 0
            place.mkdir(parents=True)
            parts = {_first(t, place) for _, t in targets if t}
            alone = len(parts) < 2 or STATE in parts or not by_entry
            for member, target in targets:
                assert target is not None
                first = _first(target, place)
                if first in spoilt:
                    continue
                size, why = _write_member(archive, member, target, min(LARGEST_MEMBER, rest))
                rest -= size
                if why and alone:
                    return why, {}, most - rest
                if why:
                    spoilt[first] = why
                    _remove(place / first)
    except UNREADABLE as error:
        return f"a zip that cannot be read: {' '.join(str(error).split())[:120] or type(error).__name__}", {}, most - rest
    except OSError as error:
        return f"a zip that cannot be unpacked: {error.strerror or error}", {}, most - rest
    return "", spoilt, most - rest


def _first(target: Path, place: Path) -> str:
    return target.relative_to(place).parts[0]


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _quoted_name(name: str) -> str:
    return repr(name[:60])


def _target(member: zipfile.ZipInfo, place: Path) -> Path | None:
    """The target path of a member; None for one outside ``place`` or not a plain file."""
    name = member.filename.replace("\\", "/")
    parts = PurePosixPath(name).parts
    mode = member.external_attr >> 16
    if not parts or name.startswith("/") or ".." in parts or re.match(r"[A-Za-z]:", name) or "\0" in name:
        return None
    if mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode):
        return None
    target = place.joinpath(*parts)
    return target if target.resolve().is_relative_to(place.resolve()) else None


def _write_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, most: int) -> tuple[int, str]:
    """Write a member of at most ``most`` bytes; returns its size and "", or what was written and why it is not all."""
    size = 0
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # "x": a duplicate name must not overwrite, or write through, the first file.
        with archive.open(member) as source, open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            while block := source.read(1 << 16):
                size += len(block)
                if size > most:
                    limit = f"at most {LARGEST_MEMBER >> 20} MiB, {LARGEST_ZIP >> 20} in all"
                    return size, f"a zip whose member is too large: {_quoted_name(member.filename)} ({limit})"
                out.write(block)
    except UNREADABLE as error:
        return size, f"a zip that cannot be read: {' '.join(str(error).split())[:120] or type(error).__name__}"
    except OSError as error:
        return size, f"a zip that cannot be unpacked: {error.strerror or error}"
    return size, ""
