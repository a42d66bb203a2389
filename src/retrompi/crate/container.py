"""A crate as a folder or a zip: reading one from an untrusted source, writing one, and the manifest with the SHA-256 of every file.

Files of a zip are stored, not compressed, with fixed times and modes: the zip is then a function of the files in it, so that reading it
compares every byte, headers included, with the zip that those files make. It also means that no small zip becomes large.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import stat
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from retrompi.base.errors import InputError
from retrompi.base.files import open_regular
from retrompi.base.zips import UNREADABLE, is_plain

__all__ = [
    "MANIFEST",
    "METADATA",
    "Contents",
    "FileProblem",
    "check_manifest",
    "manifest_of",
    "place",
    "read",
    "sha256",
    "write",
    "wrong_name",
    "zip_files",
]

METADATA = "ro-crate-metadata.json"
MANIFEST = "manifest-sha256.txt"
MOST_FILES = 20_000
MOST_BYTES = 1 << 30
_DEEPEST = 12
_TIMES = (1980, 1, 1, 0, 0, 0)
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


@dataclass(frozen=True)
class FileProblem:
    """A problem with one file of a crate; ``file`` is its path in the crate, or "" for the crate as a whole."""

    file: str
    what: str


@dataclass
class Contents:
    """The files of a crate by their paths in it, and what is wrong with what they were read from."""

    files: dict[str, bytes]
    findings: list[FileProblem] = field(default_factory=list)


def sha256(data: bytes) -> str:
    """SHA-256 of ``data``, in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def wrong_name(name: str) -> str:
    """Why no file of a crate may have this path; "" for one that may: letters, digits and a few signs that are plain on every system."""
    parts = PurePosixPath(name).parts
    if "/".join(parts) != name or not parts or len(parts) > _DEEPEST or not is_plain(parts):
        return "the path of a file in a crate has letters, digits and _.+@=,()[]- and no '..'"
    return ""


def manifest_of(files: Mapping[str, bytes]) -> bytes:
    """The manifest of ``files``, in the form of ``sha256sum``, sorted by path."""
    return "".join(f"{sha256(files[name])}  {name}\n" for name in sorted(files) if name != MANIFEST).encode()


def zip_files(files: Mapping[str, bytes]) -> bytes:
    """The zip of ``files``: the metadata first, then by path."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as made:
        for name in sorted(files, key=lambda n: (n != METADATA, n)):
            info = zipfile.ZipInfo(name, _TIMES)
            info.external_attr = 0o644 << 16
            info.create_system = 3
            made.writestr(info, files[name])
    return out.getvalue()


def write(files: Mapping[str, bytes], target: Path) -> None:
    """Write ``files`` to ``target``: a zip if its name ends in .zip, else a folder, which must be new or empty. InputError if it cannot."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.suffix.lower() == ".zip":
            target.write_bytes(zip_files(files))
            return
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise InputError("is no empty folder; name a new one", target, code="exists-already")
        for name, data in files.items():
            file = target.joinpath(*PurePosixPath(name).parts)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    except OSError as error:
        raise InputError(f"cannot write the crate: {error.strerror or error}", target, code="unwritable-file") from error


def read(crate: Path) -> Contents:
    """The files of the crate in a folder or a zip, none of which is trusted.

    InputError for what is no crate at all, is too large, or holds links, devices, paths out of it or compressed files. A file of a zip
    whose bytes do not agree with the zip's own checksum is a finding.
    """
    try:
        found = _of_folder(crate) if crate.is_dir() else _of_zip(crate)
    except UNREADABLE as error:
        raise InputError(f"is no zip that can be read: {str(error) or type(error).__name__}", crate, code="bad-crate") from None
    except OSError as error:
        raise InputError(f"cannot read this crate: {error.strerror or error}", crate, code="unreadable-file") from None
    for name in (MANIFEST, METADATA):
        if name not in found.files and not any(f.file == name for f in found.findings):
            raise InputError(f"is no crate of retrompi: {name} is not in it", crate, code="bad-crate")
    return found


def _check_names(names: Iterable[str], crate: Path) -> None:
    seen: set[str] = set()
    for number, name in enumerate(names):
        if number >= MOST_FILES:
            raise InputError(f"holds more than {MOST_FILES} files", crate, code="bad-crate")
        if wrong := wrong_name(name):
            raise InputError(f"holds '{name[:80]}': {wrong}", crate, code="bad-crate")
        if name.lower() in seen:  # some file systems ignore case
            raise InputError(f"holds '{name[:80]}' twice", crate, code="duplicate-name")
        seen.add(name.lower())


def _of_folder(crate: Path) -> Contents:
    found: dict[str, Path] = {}
    for place, folders, names in os.walk(crate):
        folders.sort()
        for name in (*folders, *sorted(names)):
            file = Path(place, name)
            mode = file.lstat().st_mode
            inside = file.relative_to(crate).as_posix()
            if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                raise InputError(f"holds '{inside[:80]}', which is a link or a device; a crate has files alone", crate, code="bad-crate")
            if stat.S_ISREG(mode):
                found[inside] = file
        if len(found) > MOST_FILES:
            break
    _check_names(found, crate)
    files: dict[str, bytes] = {}
    left = MOST_BYTES
    for name, file in found.items():
        with open_regular(file) as handle:
            files[name] = handle.read(left + 1)
        left -= len(files[name])
        if left < 0:
            raise InputError(f"holds more than {MOST_BYTES >> 20} MiB", crate, code="bad-crate")
    return Contents(files)


def _of_zip(crate: Path) -> Contents:
    with open_regular(crate) as handle:
        whole = handle.read(MOST_BYTES + 1)
    if len(whole) > MOST_BYTES:
        raise InputError(f"holds more than {MOST_BYTES >> 20} MiB", crate, code="bad-crate")
    out = Contents({})
    with zipfile.ZipFile(io.BytesIO(whole)) as opened:
        infos = opened.infolist()
        _check_names((i.filename for i in infos), crate)
        for info in infos:
            if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG) or info.flag_bits & 1:
                raise InputError(f"holds '{info.filename[:80]}', which is a link or encrypted", crate, code="bad-crate")
            if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
                raise InputError(f"holds '{info.filename[:80]}' compressed, which a crate's zip has not: unpack it, verify the folder",
                                 crate, code="bad-crate")
        if (total := sum(i.file_size for i in infos)) > len(whole):
            raise InputError(f"promises {total} B in {len(whole)} B", crate, code="bad-crate")
        for info in infos:
            try:
                out.files[info.filename] = opened.read(info)
            except zipfile.BadZipFile:
                out.findings.append(FileProblem(info.filename, "is not what the zip's own checksum says"))
    if not out.findings and (made := zip_files(out.files)) != whole:
        at = next((i for i, (a, b) in enumerate(zip(made, whole, strict=False)) if a != b), min(len(made), len(whole)))
        before = [i for i in infos if i.header_offset <= at]
        near = max(before, key=lambda i: i.header_offset).filename if before and at < _directory(whole, infos) else ""
        out.findings.append(FileProblem(near, f"the zip's own record of it differs at byte {at}" if near
                                    else f"the zip's directory differs at byte {at} from that of these files"))
    return out


def _directory(whole: bytes, infos: Iterable[zipfile.ZipInfo]) -> int:
    """The offset (bytes) at which the last file of a zip ends and its directory begins."""
    return max((i.header_offset + 30 + len(i.filename.encode()) + i.compress_size for i in infos), default=0)


def check_manifest(files: Mapping[str, bytes]) -> list[FileProblem]:
    """How the files differ from the manifest among them; [] if every file is listed with its SHA-256 and none is missing."""
    listed: dict[str, str] = {}
    text = files[MANIFEST].decode("utf-8", "replace")
    for number, line in enumerate(text.split("\n")[:-1], 1):
        told = _LINE.fullmatch(line)
        if told is None or told[2] in listed:
            return [FileProblem(MANIFEST, f"line {number} is no SHA-256 and path" if told is None else f"line {number} names a file again")]
        listed[told[2]] = told[1]
    out = [FileProblem(name, "is missing") for name in listed if name not in files]
    out += [FileProblem(name, "is not in the manifest") for name in files if name not in listed and name != MANIFEST]
    out += [FileProblem(name, "is not what was written: another SHA-256 than in the manifest") for name in listed
            if name in files and sha256(files[name]) != listed[name]]
    if not out and manifest_of(files) != files[MANIFEST]:
        out.append(FileProblem(MANIFEST, "is not as retrompi writes it"))
    return out


def place(files: Mapping[str, bytes], folder: Path) -> None:
    """Write checked ``files`` below ``folder``, anew; OSError when that fails."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    for name, data in files.items():
        file = folder.joinpath(*PurePosixPath(name).parts)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
