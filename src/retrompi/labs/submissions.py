"""A class's submissions: folders and zip files, as exported from a mailbox or a learning platform. Their contents are untrusted."""

from __future__ import annotations

import os
import re
import stat
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from retrompi.base.zips import UNREADABLE
from retrompi.labs.student import STATE

__all__ = ["LARGEST_ZIP", "MOST_MEMBERS", "Submission", "find"]

MOST_MEMBERS = 2000
LARGEST_MEMBER = 8 << 20
LARGEST_ZIP = 256 << 20
"""Maximum unpacked size of a zip, bytes. A nested zip has its own limit."""
DEPTH = 4
"""Maximum depth of folders between an argument and a submission."""
MOST = 2000
"""Maximum number of submissions of one call."""


@dataclass(frozen=True)
class Submission:
    """A folder to grade; ``source`` is the name shown to the teacher. ``broken`` is the one-line reason if there is no folder."""

    source: str
    folder: Path | None
    broken: str = ""


def find(arguments: Sequence[str], place: Path) -> list[Submission]:
    """The submissions of ``arguments``, each a folder of one or many submissions or a zip of such; zips are unpacked below ``place``."""
    found: list[Submission] = []
    for number, argument in enumerate(arguments):
        path = Path(argument)
        if path.is_dir():
            found += _in_folder(path, str(argument), place / str(number))
        elif path.is_file() and zipfile.is_zipfile(path):
            found += _in_zip(path, str(argument), place / str(number), 0)
        else:
            why = "no such file or folder" if not path.exists() else "neither a folder nor a zip file"
            found.append(Submission(str(argument), None, why))
    return found[:MOST]


def _in_folder(folder: Path, source: str, place: Path, depth: int = 0) -> list[Submission]:
    """One submission, or those in the folders and zips below; a folder without any counts as a broken one."""
    if (folder / STATE).is_file() and not (folder / STATE).is_symlink():
        return [Submission(source, folder)]
    found: list[Submission] = []
    if depth < DEPTH:
        for number, entry in enumerate(_entries(folder)):
            name = f"{source.rstrip('/')}/{entry.name}"
            if entry.is_dir():
                below = _in_folder(entry, name, place / str(number), depth + 1)
                # Every folder directly in a class's folder is a submission; deeper ones without a lab are ignored.
                found += below if depth == 0 or any(b.folder for b in below) else []
            elif entry.suffix.lower() == ".zip" and zipfile.is_zipfile(entry):
                found += _in_zip(entry, name, place / str(number), depth + 1)
    return found or [Submission(source, None, "no lab in it: the hidden file .lab.toml is missing (was the whole folder handed in?)")]


def _entries(folder: Path) -> Iterator[Path]:
    """Plain folders and files of a folder, by name; links and hidden ones are skipped."""
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        if not entry.is_symlink() and not entry.name.startswith((".", "__MACOSX")) and (entry.is_dir() or entry.is_file()):
            yield entry


def _in_zip(file: Path, source: str, place: Path, depth: int) -> list[Submission]:
    """The submissions of a zip, unpacked into ``place``."""
    if depth > 1:
        return []
    problem = unpack(file, place)
    if problem:
        return [Submission(source, None, problem)]
    return _in_folder(place, source, place.with_name(place.name + "-zips"), depth)


def unpack(file: Path, place: Path) -> str:
    """Unpack ``file`` into the new folder ``place``; returns the error in one line, or "". Limits apply to the actual content."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = [m for m in archive.infolist() if not m.is_dir()]
            if len(members) > MOST_MEMBERS:
                return f"a zip of {len(members)} files; at most {MOST_MEMBERS} are unpacked"
            place.mkdir(parents=True)
            rest = LARGEST_ZIP
            for member in members:
                target = _target(member, place)
                if target is None:
                    return f"a zip with a member that leads out of it or is a link: {_named(member.filename)}"
                if member.flag_bits & 1:
                    return "a zip with a password"
                size = _written(archive, member, target, min(LARGEST_MEMBER, rest))
                if size is None:
                    most = f"at most {LARGEST_MEMBER >> 20} MiB, {LARGEST_ZIP >> 20} in all"
                    return f"a zip whose member is too large: {_named(member.filename)} ({most})"
                rest -= size
    except UNREADABLE as error:
        return f"a zip that cannot be read: {' '.join(str(error).split())[:120] or type(error).__name__}"
    except OSError as error:
        return f"a zip that cannot be unpacked: {error.strerror or error}"
    return ""


def _named(name: str) -> str:
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


def _written(archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, most: int) -> int | None:
    """Write a member of at most ``most`` bytes; returns its size, None if it is larger."""
    target.parent.mkdir(parents=True, exist_ok=True)
    size = 0
    # "x": a duplicate name must not overwrite, or write through, the first file.
    with archive.open(member) as source, open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        while block := source.read(1 << 16):
            size += len(block)
            if size > most:
                return None
            out.write(block)
    return size
