"""A study in one zip: its definition, the traces, models and platforms that are not part of retrompi, and its results.

    retrompi-study.json     manifest: definition, versions, hashes, and every other file with its SHA-256
    rows.json               the results, for comparison with a repetition
    traces/N/...  models/NAME/...  platforms/NAME.toml

Inside, names that lie in the zip are written ``zip:PATH`` and traces of retrompi itself ``retrompi:NAME``. A packed study is
untrusted input: see `retrompi.studies.archive.unpack`.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from retrompi.base import paths
from retrompi.base.errors import InputError, UsageError
from retrompi.base.files import open_regular
from retrompi.sim.result import NUMBERS
from retrompi.spec import registry
from retrompi.spec.machine import platform_file
from retrompi.spec.machine.composition import without_size
from retrompi.studies.define.axes import split
from retrompi.studies.define.case import proper
from retrompi.studies.read.stored_study import StoredStudy

__all__ = ["FORMAT", "MANIFEST", "ROWS", "content", "named_alike", "names_in", "pack", "reference_rows", "rewritten", "sha256_of", "write"]

FORMAT = 1
MANIFEST = "retrompi-study.json"
ROWS = "rows.json"
INSIDE, OURS = "zip:", "retrompi:"
_TIMES = (1980, 1, 1, 0, 0, 0)
"""Time stamp of every file in the zip, fixed so that the same study gives the same bytes."""
_LARGEST_TRACE = 256 << 20
"""A larger trace (bytes) is recorded by its hash only."""
_SKIPPED = ("__pycache__", ".git", ".mypy_cache", ".ruff_cache")


@dataclass
class _Collected:
    """The zip's contents: path inside -> file; and what was left out."""

    folder: str = ""
    """Folder that the study's trace paths are relative to."""
    files: dict[str, Path] = field(default_factory=dict)
    traces: dict[str, dict[str, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def trace(self, text: str) -> str:
        """A trace: its name in the zip, or ``retrompi:NAME`` for one of this package."""
        path = Path(self.folder, text)
        if not path.exists():
            raise UsageError(f"the trace {text} of this study is gone: there is nothing to pack", code="not-found")
        reference = paths.reference_dir() / "traces"
        if path.resolve().parent == reference.resolve():
            self.traces[f"{OURS}{path.name}"] = {"sha256": sha256_of(path)}
            return f"{OURS}{path.name}"
        for known, facts in self.traces.items():
            if facts.get("from") == str(path.resolve()):
                return known
        number = sum(k.startswith(INSIDE) for k in self.traces) + 1
        inside = f"traces/{number}/{path.name}"
        members = _members(path)
        total = sum(f.stat().st_size for f in members.values())
        facts = {"from": str(path.resolve()), "sha256": sha256_of(path) if path.is_file() else ""}
        if total > _LARGEST_TRACE:
            facts["left_out"] = "yes"
            self.notes.append(f"trace {path.name} ({total >> 20} MiB) goes by its hash alone; put it at {inside} after unpacking")
        else:
            self.files |= {f"traces/{number}/{name}": f for name, f in members.items()}
        self.traces[f"{INSIDE}{inside}"] = facts
        return f"{INSIDE}{inside}"

    def model(self, text: str) -> str:
        """A model: unchanged if it is part of this package, else the path of its folder in the zip."""
        folder = Path(inspect.getfile(registry.model(text))).parent
        if registry.origin(folder) == "retrompi":
            return text
        variant = text.rpartition(":")[2] if ":" in Path(text).name else ""
        for file in sorted(folder.rglob("*")):
            if file.is_file() and not set(file.relative_to(folder).parts) & set(_SKIPPED):
                self.files[f"models/{folder.name}/{file.relative_to(folder).as_posix()}"] = file
        return f"{INSIDE}models/{folder.name}{f':{variant}' if variant else ''}"

    def platform(self, text: str) -> str:
        """A platform: unchanged if it is part of this package, else the path of its file in the zip; ``*N`` is kept.

        Raises UsageError for a composition of the user's own hosts or networks, which is no file.
        """
        registry.platform(text)  # raises for an unknown name
        if registry.shipped_platform(text):
            return text
        base = without_size(text)
        own = paths.user_platforms_dir() / f"{base}.toml"
        file = own if own.is_file() else Path(base)
        if not file.is_file():
            raise UsageError(
                f"the platform '{text}' names hosts or a network of your own: to pack it, write a platform file with hosts and network"
            )
        for source in platform_file.sources(file):
            if registry.origin(source) != "retrompi":
                folder = f"{source.parent.name}/" if source.parent.name in ("hosts", "networks") and source != file else ""
                self.files[f"platforms/{folder}{source.name}"] = source
        return f"{INSIDE}platforms/{file.name}{text.removeprefix(base)}"


def _members(path: Path) -> dict[str, Path]:
    """Every file of a trace by its name relative to ``path``: those of a folder, or those named by an index."""
    from retrompi import traces

    if path.is_dir():
        return {f"{path.name}/{f.relative_to(path).as_posix()}": f for f in sorted(path.rglob("*")) if f.is_file()}
    found = {path.name: path}
    root = path.parent.resolve()
    for name in traces.read(path).files:
        member = Path(name)
        if member.is_file() and member.resolve() != path.resolve():
            if not member.resolve().is_relative_to(root):
                raise UsageError(f"the trace {path} names files outside of its folder ({name}); put them together before packing")
            found[member.resolve().relative_to(root).as_posix()] = member
    return found


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's content."""
    digest = hashlib.sha256()
    with open_regular(path) as handle:
        while piece := handle.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


NAMED: Mapping[str, str] = {"model": "model", "platform": "platform", "trace.file": "trace"}
"""Keys of a study whose values name a file that may have to be packed -> what they name."""


def rewritten(definition: Mapping[str, Any], changed: Mapping[str, Callable[[str], str]]) -> dict[str, Any]:
    """The definition with every name of a model, platform or trace changed by its function (keys model, platform, trace).

    The keys of the tables are those that a study goes by (`case.proper`), so that no spelling of a key hides a name. UsageError when
    the definition has not the types that `Study.definition` gives it.
    """
    out: dict[str, Any] = json.loads(json.dumps(definition))
    scenario = _table(out.get("base"), "base")
    for part in (scenario, *(_table(j, "job") for j in _list(scenario.get("job", []), "job"))):
        for key in ("model", "platform"):
            if key in part:
                part[key] = changed[key](_text(part[key], key))
        trace = _table(part.get("trace", {}), "trace")
        if "file" in trace:
            trace["file"] = changed["trace"](_text(trace["file"], "file"))
    out["vary"] = _proper(out.get("vary", {}), "vary", changed, _each)
    out["zip"] = [_proper(table, "zip", changed, _each) for table in _list(out.get("zip", []), "zip")]
    out["set"] = _proper(out.get("set", {}), "set", changed, lambda given, change: change(_text(given, "set").strip()))
    return out


def _proper(table: Any, name: str, changed: Mapping[str, Callable[[str], str]], change: Callable[[Any, Callable[[str], str]], Any]) -> Any:
    """A table of keys and values by the full names of its keys, with its names changed."""
    out: dict[str, Any] = {}
    for written, given in _table(table, name).items():
        key = proper(written)
        if key in out:
            raise UsageError(f"'{written}' stands twice in '{name}'", code="duplicate-name")
        out[key] = change(given, changed[NAMED[key]]) if key in NAMED else given
    return out


def _each(given: Any, change: Callable[[str], str]) -> Any:
    """Every value of an axis changed; a text whose values stay as they are stays as it is."""
    if isinstance(given, list):
        return [change(_text(v, "an axis").strip()) for v in given]
    before = [text for text, _ in split(_text(given, "an axis"))]
    after = [change(t) for t in before]
    return given if after == before else after


def _table(given: Any, name: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise UsageError(f"'{name}' is not a table", code="bad-value")
    return given


def _list(given: Any, name: str) -> list[Any]:
    if not isinstance(given, list):
        raise UsageError(f"'{name}' is not a list of tables", code="bad-value")
    return given


def _text(given: Any, name: str) -> str:
    if not isinstance(given, str):
        raise UsageError(f"'{str(given)[:40]}' of '{name}' is not a text", code="bad-value")
    return given


def names_in(definition: Mapping[str, Any]) -> dict[str, list[str]]:
    """The names in a definition: model, platform, trace -> the distinct names."""
    found: dict[str, dict[str, None]] = {"model": {}, "platform": {}, "trace": {}}

    def note(kind: str) -> Callable[[str], str]:
        return lambda text: found[kind].setdefault(text) or text

    rewritten(definition, {kind: note(kind) for kind in found})
    return {k: list(v) for k, v in found.items()}


def named_alike(axis: str, value: Any) -> Any:
    """The value of an axis; a model, a platform or a trace given by its path is called as the file is, wherever it was."""
    return PurePath(value).name if axis in NAMED and isinstance(value, str) and "/" in value else value


def reference_rows(found: StoredStudy) -> list[dict[str, Any]]:
    """The stored result of every point, without the fields that differ between machines (ids, wall times, paths)."""
    keys = ("model", "platform", "mode", "seed", "fidelity", *NUMBERS, "model_hash", "platform_hash", "trace_hash", "code_version",
            "simgrid_version")
    beside = ("position", "outcome", "reason", "run_id", "time_s", "wall_s", "identity")
    out = []
    for r in found.rows:
        run = found.runs.get(r["run_id"], {}) if r["run_id"] is not None else {}
        section = ((run.get("facts") or {}).get("section") or {}).get("seconds")
        out.append({
            "position": r["position"],
            "axes": {k: named_alike(k, v) for k, v in r.items() if k not in beside},
            "outcome": r["outcome"],
            **{k: run.get(k) for k in keys},
            "section_s": section,
            "points": [dict(p) for p in found.curves.get(r["run_id"], ())] if run else [],
            "rank_times": [dict(p) for p in found.ranks.get(r["run_id"], ())] if run else [],
        })
    return out


def content(found: StoredStudy) -> tuple[dict[str, bytes], list[str]]:
    """The files of a packed study by their paths in the zip, the manifest and the rows first; and remarks on what was left out."""
    from retrompi.store import code_version

    collected = _Collected(str(found.definition.get("folder", "")))
    change = {"model": collected.model, "platform": collected.platform, "trace": collected.trace}
    definition = {k: v for k, v in rewritten(found.definition, change).items() if k != "folder"}
    rows = json.dumps(reference_rows(found), indent=0, ensure_ascii=False).encode()
    files = {name: file.read_bytes() for name, file in sorted(collected.files.items())}
    listed = {name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)} for name, data in [*files.items(), (ROWS, rows)]}
    manifest = {
        "format": FORMAT,
        "name": found.study["name"],
        "definition": definition,
        "code_version": code_version(),
        "code_versions_of_rows": sorted({str(r["code_version"]) for r in found.runs.values()}),
        "models": {r["model"]: r["model_hash"] for r in found.runs.values()},
        "platforms": sorted({str(r["platform"]) for r in found.runs.values()}),
        "traces": {k: {n: v for n, v in facts.items() if n != "from"} for k, facts in collected.traces.items()},
        "files": listed,
    }
    text = json.dumps(manifest, indent=1, ensure_ascii=False).encode()
    return {MANIFEST: text, ROWS: rows, **files}, collected.notes


def pack(found: StoredStudy, target: Path) -> list[str]:
    """Write the study to ``target``; returns remarks on what was left out. InputError when it cannot be written."""
    files, notes = content(found)
    write(files, target)
    return notes


def write(files: Mapping[str, bytes], target: Path) -> None:
    """Write the files of a packed study to the zip ``target``. InputError when it cannot be written."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
            for name, data in files.items():
                out.writestr(_entry(name), data)
    except OSError as error:
        raise InputError(f"cannot write the zip: {error.strerror or error}", target, code="unwritable-file") from error


def _entry(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _TIMES)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    return info
