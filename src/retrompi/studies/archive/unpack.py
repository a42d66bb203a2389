"""Opening a packed study from an untrusted source, and comparing a repetition with its results.

Nothing in the zip is trusted: names may not lead out of the target folder and links are rejected; sizes are counted while unpacking,
whatever the zip declares; the definition may name files in the zip and those shipped with retrompi, and no other path of this machine.
What is checked is the study as it will run: the definition's keys get their full names (`retrompi.studies.define.case.proper`), its names
become paths, it is written, and the study read back from that file may name nothing else. Python in the zip is written to disk under
the mark of an untrusted folder (`retrompi.base.untrusted`), below which nothing is run and no trace names a file outside.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import stat
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from retrompi.base import paths, untrusted
from retrompi.base.errors import InputError, RetrompiError, UsageError
from retrompi.base.files import open_regular
from retrompi.base.toml import quote, value
from retrompi.base.zips import UNREADABLE, is_plain
from retrompi.sim.result import NUMBERS
from retrompi.spec import registry
from retrompi.spec.machine.composition import without_size
from retrompi.studies.archive.pack import FORMAT, INSIDE, MANIFEST, OURS, ROWS, rewritten, sha256_of

__all__ = ["Package", "PointDifference", "compare", "default_folder", "unpack"]

MOST_FILES = 10_000
MOST_BYTES = 1 << 30
MOST_TEXT = 256 << 20
"""Maximum size (bytes) of the manifest and of the rows, which are read into memory."""
_FOLDERS = ("traces", "models", "platforms")
PYTHON = (".py", ".pyc", ".pyo", ".pyd", ".pyw", ".pyx", ".pth", ".so", ".dll", ".dylib")
"""Endings of files that Python would run, or run from."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
"""A plain name of a model or a platform."""
STUDY = "study.toml"
_KEYS = ("name", "title", "question", "summary", "metric", "base", "vary", "zip", "set", "sampling", "samples", "seed", "draws")
"""Keys of the definition in a zip: those of `Study.definition`, but for its folder."""


@dataclass(frozen=True)
class Package:
    """An unpacked study: its folder, its name, the file to run it by, the names of its models written in Python, and its rows.

    ``code`` maps every file that may be run to what for, by its path in the folder.
    """

    folder: Path
    name: str
    study: Path
    models: tuple[str, ...]
    code: Mapping[str, str]
    manifest: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class PointDifference:
    """A difference between a repetition and the packed results; ``position`` is None for the study as a whole."""

    position: int | None
    what: str
    packed: str
    here: str


def default_folder(zip_file: Path) -> Path:
    """The default target of `unpack`: a folder of the user's data, named by the zip's name and content."""
    try:
        digest = sha256_of(zip_file)[:12]
    except OSError as error:
        raise InputError(f"cannot read this zip: {error.strerror or error}", zip_file, code="unreadable-file") from None
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", zip_file.stem).strip(".-") or "study"
    return paths.data_dir() / "packs" / f"{stem[:80]}-{digest}"


def unpack(zip_file: Path, folder: Path | None = None) -> Package:
    """Unpack a study to ``folder`` (new or empty; an existing `default_folder` is replaced).

    Raises InputError in one line for a file that is not a packed study, is damaged, too large, or names a forbidden path.
    """
    where = folder if folder is not None else default_folder(zip_file)
    try:
        with open_regular(zip_file) as handle, zipfile.ZipFile(handle) as opened:
            entries = _entries(opened, zip_file)
            manifest = _json(_content(opened, entries, MANIFEST, zip_file, MOST_TEXT), MANIFEST, zip_file)
            _check_manifest(manifest, zip_file)
            files = manifest["files"]
            if set(entries) - {MANIFEST} != set(files):
                raise InputError("holds other files than it lists", zip_file, code="damaged-file")
            rows = _json(_content(opened, entries, ROWS, zip_file, MOST_TEXT, files[ROWS]["sha256"]), ROWS, zip_file)
            if not isinstance(rows, list) or not all(isinstance(r, dict) and isinstance(r.get("position"), int) for r in rows):
                raise InputError(f"{ROWS} in it is no list of points", zip_file, code="bad-packed-study")
            definition, absent = _resolve_names(manifest, where, zip_file)
            made = _empty(where, made_anew=folder is None, zip_file=zip_file)
            study = where / STUDY
            with _or_nothing(made):
                untrusted.mark(where, zip_file.name)
                left = MOST_BYTES
                for name in sorted(set(files) - {ROWS}):
                    data = _content(opened, entries, name, zip_file, left, files[name]["sha256"])
                    left -= len(data)
                    target = where.joinpath(*PurePosixPath(name).parts)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(data)
                study.write_text(_toml(definition, manifest), encoding="utf-8")
                with _stood_in_for(absent):
                    _check_read_back(study, zip_file)
    except UNREADABLE as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"is no zip that can be read: {str(error) or type(error).__name__}", zip_file, code="bad-packed-study") from None
    except OSError as error:
        raise InputError(f"cannot be unpacked: {error.strerror or error}", zip_file, code="unreadable-file") from None
    models = sorted({PurePosixPath(n).parts[1] for n in manifest["files"] if n.startswith("models/")})
    return Package(where, str(manifest["name"]), study, tuple(models), _code(files), manifest, rows)


def _code(files: Iterable[str]) -> dict[str, str]:
    """The files that Python may run -> what for."""
    found = {}
    for name in sorted(files):
        parts = PurePosixPath(name).parts
        if parts[0] == "models" and (len(parts) == 2 or name.lower().endswith(PYTHON)):
            found[name] = f"the model {parts[1]}"
        elif name.lower().endswith(PYTHON):
            found[name] = f"nothing that the study names; it lies beside its {parts[0]}"
    return found


@contextmanager
def _stood_in_for(files: Iterable[Path]) -> Iterator[None]:
    """While in the body, empty files at the places of traces that were too large for the zip."""
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    try:
        yield
    finally:
        for file in files:
            file.unlink()


@contextmanager
def _or_nothing(made: Sequence[Path]) -> Iterator[None]:
    """When the body fails, the folders ``made`` for it, inner ones first, are removed with all that is in them."""
    try:
        yield
    except BaseException:
        for folder in made:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _check_read_back(file: Path, zip_file: Path) -> None:
    """Raises InputError unless the study in ``file``, as it will be run, names nothing but what is beside it and what is retrompi's."""
    from retrompi.studies.execute import design

    def wrong(what: str) -> InputError:
        return InputError(f"its definition {what}", zip_file, code="bad-packed-study")

    try:
        study = design.load(file)
    except RetrompiError as error:
        raise wrong(f"is no study: {getattr(error, 'message', error)}") from None
    root = file.parent.resolve()
    ours = {"model": (paths.models_dir(), "/__init__.py"), "platform": (paths.platforms_dir(), ".toml")}
    named: dict[str, list[str]] = {"model": [study.base.model, *(j.model for j in study.base.jobs)], "platform": [study.base.platform]}
    traces = [t for t in (study.base.trace, *(j.trace for j in study.base.jobs)) if t is not None]
    for key, values in [*((a.key, a.values) for a in study.axes), *((k, (v,)) for k, v in study.fixed.items())]:
        if key in named:
            named[key] += values
        elif key == "trace.file":
            traces += [file.parent / v for v in values]
    for kind, texts in named.items():
        folder, ending = ours[kind]
        for text in texts:
            if kind == "platform" and registry.shipped_platform(text):
                continue
            base = without_size(text) if kind == "platform" else text.partition(":")[0]
            if not (_NAME.fullmatch(base) and Path(f"{folder}/{base}{ending}").is_file()) and untrusted.outside(Path(base), root):
                raise wrong(f"names the {kind} '{text[:80]}', which is neither in it nor retrompi's")
    shipped = (paths.reference_dir() / "traces").resolve()
    for trace in traces:
        if untrusted.outside(trace, root) and trace.resolve().parent != shipped:
            raise wrong(f"names the trace '{str(trace)[-80:]}', which is neither in it nor retrompi's")


def _entries(opened: zipfile.ZipFile, zip_file: Path) -> dict[str, zipfile.ZipInfo]:
    found: dict[str, zipfile.ZipInfo] = {}
    infos = opened.infolist()
    if len(infos) > MOST_FILES:
        raise InputError(f"holds {len(infos)} files; {MOST_FILES} are the most", zip_file, code="damaged-file")
    for info in infos:
        name = info.filename
        parts = PurePosixPath(name).parts
        placed = len(parts) >= 2 and parts[0] in _FOLDERS and "/".join(parts) == name
        safe = name in (MANIFEST, ROWS) or (placed and is_plain(parts))
        kind = stat.S_IFMT(info.external_attr >> 16)
        if not safe or kind not in (0, stat.S_IFREG):
            raise InputError(f"holds '{name[:80]}', which no packed study has", zip_file, code="damaged-file")
        if info.flag_bits & 1:
            raise InputError("is encrypted", zip_file, code="damaged-file")
        # Some file systems ignore case.
        if name.lower() in {n.lower() for n in found}:
            raise InputError(f"holds '{name[:80]}' twice", zip_file, code="duplicate-name")
        found[name] = info
    if MANIFEST not in found or ROWS not in found:
        raise InputError(
            f"is no packed study: {MANIFEST if MANIFEST not in found else ROWS} is not in it", zip_file, code="bad-packed-study"
        )
    return found


def _content(
    opened: zipfile.ZipFile, entries: Mapping[str, zipfile.ZipInfo], name: str, zip_file: Path, most: int, sha256: str | None = None
) -> bytes:
    """The content of a file of the zip; at most ``most`` bytes are decompressed."""
    with opened.open(entries[name]) as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise InputError(f"holds more than {most >> 20} MiB in '{name[:80]}'", zip_file, code="damaged-file")
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise InputError(f"is damaged: '{name[:80]}' is not what was packed", zip_file, code="damaged-file")
    return data


def _json(data: bytes, name: str, zip_file: Path) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} in it is no JSON: {error}", zip_file, code="bad-packed-study") from None


def _check_manifest(manifest: Any, zip_file: Path) -> None:
    def wrong(what: str) -> InputError:
        return InputError(f"{MANIFEST} in it {what}", zip_file, code="bad-packed-study")

    if not isinstance(manifest, dict):
        raise wrong("is no table")
    if manifest.get("format") != FORMAT:
        raise wrong(f"is of format {str(manifest.get('format'))[:20]}; this retrompi reads format {FORMAT}")
    for key, kind in (("name", str), ("definition", dict), ("files", dict), ("traces", dict), ("models", dict), ("code_version", str)):
        if not isinstance(manifest.get(key), kind):
            raise wrong(f"has no '{key}'")
    files = manifest["files"]
    if not all(isinstance(f, dict) and isinstance(f.get("sha256"), str) for f in files.values()) or ROWS not in files:
        raise wrong("does not say what the files are")
    if not isinstance(manifest["definition"].get("base"), dict):
        raise wrong("has no scenario in its definition")


class _Names:
    """What a definition names, by its paths after unpacking. InputError for what is neither in the zip nor retrompi's."""

    def __init__(self, manifest: Mapping[str, Any], folder: Path, zip_file: Path) -> None:
        self.manifest, self.root, self.zip_file = manifest, folder.resolve(), zip_file
        self.files: Mapping[str, Any] = manifest["files"]
        self.absent: set[Path] = set()
        """The traces that were left out of the zip."""

    def _refuse(self, text: str) -> InputError:
        return InputError(f"its definition names '{text[:80]}', which is neither in it nor retrompi's", self.zip_file,
                          code="bad-packed-study")

    def _inside(self, text: str, holder: str) -> str:
        name = text.removeprefix(INSIDE)
        if not name.startswith(f"{holder}/") or ".." in name or not is_plain(name.split("/")):
            raise self._refuse(text)
        return name

    def _plain(self, text: str) -> str:
        if not _NAME.fullmatch(text) or ".." in text:
            raise self._refuse(text)
        return text

    def model(self, text: str) -> str:
        if not text.startswith(INSIDE):
            base, colon, variant = text.partition(":")
            if not (paths.models_dir() / self._plain(base) / "__init__.py").is_file() or (colon and not self._plain(variant)):
                raise self._refuse(text)
            return text
        base, colon, variant = text.removeprefix(INSIDE).partition(":")
        name = self._inside(f"{INSIDE}{base}", "models")
        if f"{name}/__init__.py" not in self.files or name.count("/") != 1:
            raise self._refuse(text)
        return f"{self.root / name}{colon}{self._plain(variant) if colon else ''}"

    def platform(self, text: str) -> str:
        base = without_size(text)
        if not base.startswith(INSIDE):
            for name in re.split("[*+@]", base):
                self._plain(name)
            if not registry.shipped_platform(text):
                raise self._refuse(text)
            return text
        name = self._inside(base, "platforms")
        if name not in self.files or not name.endswith(".toml") or name.count("/") != 1:
            raise self._refuse(text)
        return f"{self.root / name}{text.removeprefix(base)}"

    def trace(self, text: str) -> str:
        known = self.manifest["traces"].get(text)
        if not isinstance(known, dict):
            raise self._refuse(text)
        if text.startswith(OURS):
            path = paths.reference_dir() / "traces" / self._plain(text.removeprefix(OURS))
            if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != known.get("sha256"):
                raise InputError(
                    f"needs the trace {path.name[:80]} of retrompi, which is missing or another one here", self.zip_file, code="not-found"
                )
            return str(path)
        name = self._inside(text, "traces")
        if not any(f == name or f.startswith(f"{name}/") for f in self.files):
            if known.get("left_out") != "yes" or name.count("/") != 2:
                raise self._refuse(text)
            self.absent.add(self.root / name)
        return str(self.root / name)


def _resolve_names(manifest: Mapping[str, Any], folder: Path, zip_file: Path) -> tuple[dict[str, Any], set[Path]]:
    """The definition with its names replaced by their paths after unpacking, and the traces of it that were left out of the zip."""
    names = _Names(manifest, folder, zip_file)
    for key in manifest["definition"]:
        if key not in _KEYS:
            raise InputError(f"its definition has '{key[:80]}', which no packed study has", zip_file, code="bad-packed-study")
    try:
        found = rewritten(manifest["definition"], {"model": names.model, "platform": names.platform, "trace": names.trace})
    except UsageError as error:
        raise InputError(f"its definition is no study: {error}", zip_file, code="bad-packed-study") from None
    return found, names.absent


def _empty(folder: Path, *, made_anew: bool, zip_file: Path) -> list[Path]:
    """Makes ``folder`` empty; returns the folders that were made for it, the outermost last."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        if not made_anew or not folder.is_dir():
            raise InputError(f"would be unpacked into {folder}, which is not empty; name a new folder", zip_file, code="exists-already")
        shutil.rmtree(folder)
    made = [f for f in (folder, *folder.parents) if not f.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return made or [folder]


def _toml(definition: Mapping[str, Any], manifest: Mapping[str, Any]) -> str:
    """The definition as a study's file."""
    kept = {k: v for k, v in definition.items() if v not in ("", {}, [], None)}
    if kept.get("sampling") == "grid":
        kept.pop("samples", None)
    lines = [f"# Unpacked by `retrompi study unpack`; packed by {' '.join(str(manifest['code_version']).split())[:80]}."]
    tables = ("base", "vary", "set")
    lines += [f"{quote(k)} = {value(v)}" for k, v in kept.items() if k not in (*tables, "zip")]
    for name in tables:
        if name in kept:
            lines += [f"\n[{name}]", *(f"{quote(k)} = {value(v)}" for k, v in kept[name].items())]
    for table in kept.get("zip", ()):
        lines += ["\n[[zip]]", *(f"{quote(k)} = {value(v)}" for k, v in table.items())]
    return "\n".join(lines) + "\n"


_WHY = ("code_version", "simgrid_version", "model_hash", "platform_hash", "trace_hash")
_NUMBERS = ("outcome", *NUMBERS, "section_s", "points", "rank_times")


def compare(packed: Sequence[Mapping[str, Any]], here: Sequence[Mapping[str, Any]]) -> list[PointDifference]:
    """The differences between the rows of a repetition (`pack.reference_rows`) and the packed ones; [] if all numbers are equal.

    Possible causes (another version of the code, a changed model) are reported once for the study, and only if numbers differ.
    """
    mine = {r["position"]: r for r in here}
    numbers: list[PointDifference] = []
    why: dict[tuple[str, str, str], None] = {}
    for row in packed:
        other = mine.pop(row["position"], None)
        if other is None:
            numbers.append(PointDifference(row["position"], "point", str(row["outcome"]), "missing"))
            continue
        found = [k for k in _NUMBERS if row.get(k) != other.get(k)]
        if not found:
            continue
        first = found[0]
        numbers.append(PointDifference(row["position"], *_difference_text(first, row.get(first), other.get(first))))
        for key in _WHY:
            if row.get(key) != other.get(key):
                why[key, str(row.get(key)), str(other.get(key))] = None
    numbers += [PointDifference(position, "point", "missing", str(row["outcome"])) for position, row in sorted(mine.items())]
    return [*(PointDifference(None, *w) for w in why), *numbers]


def _difference_text(key: str, packed: Any, here: Any) -> tuple[str, str, str]:
    """The first difference, in words; for lists, the first differing number of the first differing entry."""
    if key in ("points", "rank_times") and isinstance(packed, list) and isinstance(here, list):
        if len(packed) != len(here):
            return f"number of {key.replace('_', ' ')}", str(len(packed)), str(len(here))
        for i, (a, b) in enumerate(zip(packed, here, strict=True)):
            if a != b and isinstance(a, dict) and isinstance(b, dict):
                name = next((k for k in a if a.get(k) != b.get(k)), "")
                return f"{key.removesuffix('s').replace('_', ' ')} {i}, {name}", str(a.get(name)), str(b.get(name))
    return key, str(packed)[:60], str(here)[:60]
