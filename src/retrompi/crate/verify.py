"""Verifying a crate, nothing of which is trusted: every byte by the manifest, every derived file made again, every run simulated again.

1. Each file has the SHA-256 of the manifest, and no other file is there; a zip is, byte for byte, the zip of its files.
2. Tables, metadata, provenance, page and manifest are made again from the record, and are the same bytes.
3. The record is made again: all runs are simulated from the crate's inputs into a new store, statements are judged again.

What cannot be made again are the circumstances (who, when, where) and the inputs of somebody's own. Whoever rewrites those, and all that
follows from them, makes another crate that is in itself consistent: only its digest, known from elsewhere, tells it from the first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from retrompi.base import paths, untrusted
from retrompi.base.errors import InputError, RetrompiError, UsageError
from retrompi.base.release import version
from retrompi.base.scratch import folder as scratch_folder
from retrompi.crate import derive, drawn, record
from retrompi.crate.container import MANIFEST, Contents, FileProblem, check_manifest, place, read, sha256, wrong_name
from retrompi.papers.reproduce.agreement import with_agreement
from retrompi.papers.reproduce.reproduction import WORKERS, run_papers
from retrompi.papers.statements.paper import all_papers, working_with
from retrompi.store import open_store
from retrompi.store.identity import code_version
from retrompi.studies.archive.pack import ROWS, reference_rows
from retrompi.studies.archive.pack import write as write_packed
from retrompi.studies.archive.unpack import PYTHON, compare, unpack
from retrompi.studies.execute import design
from retrompi.studies.execute.run import run_study
from retrompi.studies.execute.worker_pool import WorkerPool
from retrompi.studies.read import stored_study

__all__ = ["Rebuild", "Verification", "digest_of", "open_crate", "verify"]

MOST_FINDINGS = 20
_EXPLAINS = ("identity", "code_version", "model_hash", "platform_hash", "workload_hash", "software", "code", "hash", "functions", "source",
             "help", "note", "reading", "line", "sha256", "file")
"""Keys of a record that say which code made it. Another version of retrompi has others; its numbers are compared all the same."""
_NONSENSE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, StopIteration)

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Rebuild:
    """How the runs are simulated again: ``trust`` runs Python that is in the crate, ``workers`` simulate at a time."""

    trust: bool = False
    workers: int = WORKERS
    progress: Progress | None = None


@dataclass
class Verification:
    """The problems found in a crate; empty if it is as it was written. ``runs`` and ``numbers`` are how many were made again and
    compared."""

    digest: str
    files: int
    findings: list[FileProblem] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    runs: int = 0
    numbers: int = 0


@dataclass(frozen=True)
class Opened:
    """A crate's files with its record and circumstances, as JSON."""

    files: Mapping[str, bytes]
    record: Mapping[str, Any]
    circumstances: Mapping[str, Any]

    @property
    def inputs(self) -> dict[str, bytes]:
        """The files that nothing in the crate is made from but which everything is made from."""
        return {n: d for n, d in self.files.items() if n.partition("/")[0] in ("paper", "study", "inputs") and "/" in n}


def digest_of(files: Mapping[str, bytes]) -> str:
    """The digest of a crate: the SHA-256 of its manifest, the same for folder and zip."""
    return sha256(files[MANIFEST])


def open_crate(crate: Path) -> tuple[Opened, list[FileProblem]]:
    """A crate with what is wrong with its files; InputError if it is none."""
    found = read(crate)
    wrong = [*found.findings, *(check_manifest(found.files) if not found.findings else [])]
    return _parse_contents(found, crate, wrong), wrong


def _parse_contents(found: Contents, crate: Path, wrong: Sequence[FileProblem]) -> Opened:
    told: dict[str, Any] = {}
    for name in (derive.RECORD, derive.CIRCUMSTANCES):
        try:
            told[name] = json.loads(found.files[name])
        except (*_NONSENSE, UnicodeDecodeError) as error:
            if wrong:  # the finding about the file says more
                told[name] = {}
                continue
            raise InputError(f"{name} in it is no JSON: {str(error)[:80]}", crate, code="bad-crate") from None
        if not isinstance(told[name], dict):
            raise InputError(f"{name} in it is no table", crate, code="bad-crate")
    about = told[derive.RECORD]
    if not wrong and about.get("format") != record.FORMAT:
        raise InputError(
            f"is of format {str(about.get('format'))[:20]}; this retrompi reads format {record.FORMAT}", crate, code="bad-crate"
        )
    return Opened(found.files, about, told[derive.CIRCUMSTANCES])


def verify(crate: Path, *, digest: str = "", rebuild: Rebuild | None = None) -> Verification:
    """Verify the crate in a folder or a zip; without ``rebuild`` nothing is simulated.

    ``digest``: what `digest_of` gave when the crate was written, known from elsewhere. InputError for what is no crate; UsageError
    (``untrusted-code``) for one with Python of its own that is to be rebuilt and not trusted. What is wrong is in the findings.
    """
    told, wrong = open_crate(crate)
    out = Verification(digest_of(told.files) if MANIFEST in told.files else "", len(told.files), wrong)
    if digest and digest.lower() != out.digest:
        out.findings.append(FileProblem("", f"the digest is {out.digest}, not {digest.lower()[:64]}"))
    if not out.findings:
        _check_derived(told, out)
    if not out.findings and rebuild is not None:
        _rebuilt(told, out, rebuild)
    return out


def _check_derived(told: Opened, out: Verification) -> None:
    """Step 2: what follows from the record, byte for byte."""
    try:
        again = derive.complete(told.record, told.circumstances, told.inputs)
    except (*_NONSENSE, RetrompiError) as error:
        out.findings.append(
            FileProblem(derive.RECORD, f"is no record that a crate can be made from: {type(error).__name__}: {str(error)[:80]}")
        )
        return
    differing = [n for n in again if again[n] != told.files.get(n)] + [n for n in told.files if n not in again]
    software = told.record["software"]
    same = (software.get("version"), software.get("code_version")) == (version(), code_version())
    if differing and not same and software.get("writer") != record.writer():
        out.remarks.append(f"another retrompi wrote it: {len(differing)} files that follow from the record are written otherwise here, "
                           "and only their hashes were compared")
        return
    if len(differing) > 1:  # the manifest differs with any other file
        differing = [n for n in differing if n != MANIFEST]
    out.findings += [FileProblem(n, "does not follow from the record" if n in again else "belongs to no crate") for n in differing]


def _rebuilt(told: Opened, out: Verification, how: Rebuild) -> None:
    """Step 3: the record, made again."""
    same = told.record["software"].get("code_version") == code_version()
    if not same:
        out.remarks.append(f"written by retrompi {str(told.record['software'].get('code_version'))[:60]}; this is {code_version()}: "
                           "numbers and verdicts are compared, the hashes of the code are not")
    _check_installed(told, out, same)
    if out.findings:
        return
    code = [n for n in told.inputs if n.partition("/")[0] != "inputs" and n.lower().endswith(PYTHON)]
    if code and not how.trust and not told.record.get("shipped"):
        raise UsageError(f"the crate contains Python code that its runs need: {', '.join(code[:4])}; read it, then verify with --trust",
                         code="untrusted-code")
    try:
        with scratch_folder("crate") as scratch:
            again = (_paper if told.record["kind"] == "paper" else _study)(told, scratch, out, how)
    except RetrompiError as error:
        if error.exit_code == 3:
            raise
        out.findings.append(FileProblem("", f"cannot be rebuilt: {error}"))
        return
    out.runs = len(again["runs"])
    rebuilt = json.loads(record.as_json(again))
    skipped = () if same else _EXPLAINS
    for where in _differences(told.record, rebuilt, "", skipped, out):
        if len(out.findings) >= MOST_FINDINGS:
            break
        out.findings.append(FileProblem(derive.RECORD, where))


def _check_installed(told: Opened, out: Verification, same: bool) -> None:
    """The copies of retrompi's own files, which the rebuild reads where they are installed, against those."""
    places = {"models": paths.models_dir(), "platforms": paths.platforms_dir(), "scenarios": paths.scenarios_dir(),
              "validate": paths.validate_dir()}
    pairs = {}
    for name in told.inputs:
        first, _, rest = name.partition("/")
        if first == "inputs" and rest.partition("/")[0] in places:
            pairs[name] = places[rest.partition("/")[0]].joinpath(*PurePosixPath(rest.partition("/")[2]).parts)
        elif first == "inputs":
            out.findings.append(FileProblem(name, "is no file of retrompi"))
        elif first == "paper" and told.record.get("shipped"):
            pairs[name] = paths.papers_dir().joinpath(*PurePosixPath(rest).parts)
    for name, file in pairs.items():
        if not file.is_file() or file.read_bytes() != told.files[name]:
            said = "is not the file of this retrompi, by which the numbers would be made again"
            if same or name.startswith("paper/"):
                out.findings.append(FileProblem(name, said))
            else:
                out.remarks.append(f"{name} {said}")


def _paper(told: Opened, scratch: Path, out: Verification, how: Rebuild) -> dict[str, Any]:
    key = str(told.record["name"])
    if wrong_name(key) or "/" in key:
        raise UsageError(f"'{key[:80]}' is no name of a paper", code="bad-name")
    if told.record.get("shipped"):
        if key not in all_papers():
            raise UsageError(f"this retrompi has no paper '{key[:80]}'", code="unknown-paper")
        given = key
    else:
        folder = scratch / "paper" / PurePosixPath(key).name
        mine = {n.removeprefix(f"paper/{key}/"): d for n, d in told.inputs.items() if n.startswith(f"paper/{key}/")}
        place(mine, folder)
        if not how.trust:
            untrusted.mark(folder, "a crate")
            _check_inside(mine, key)
        given = str(folder)
    store, spec = open_store(scratch / "rebuilt.db"), drawn.spec_in(told.record)
    with working_with(given) as plans:
        replayed = run_papers([plans[0].key], store, progress=how.progress, keep=False, workers=how.workers)[0]
        if spec is not None:
            replayed = with_agreement([replayed], store, spec, how.progress, workers=how.workers)[0]
        return record.of_paper(replayed, store).record


def _check_inside(files: Mapping[str, bytes], key: str) -> None:
    """Raises UsageError when a TOML file of an untrusted paper names a file outside of its folder."""
    from retrompi.base.toml import parse

    for name, data in files.items():
        if name.endswith(".toml"):
            for text in _texts(parse(data.decode("utf-8", "replace"), Path(name), "paper")):
                if text.startswith(("/", "~", "\\")) or ".." in text.replace("\\", "/").split("/"):
                    raise UsageError(f"paper/{key}/{name} names '{text[:80]}', which is outside of the crate", code="bad-crate")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(each)


def _study(told: Opened, scratch: Path, out: Verification, how: Rebuild) -> dict[str, Any]:
    files = {n.removeprefix("study/"): d for n, d in told.inputs.items() if n.startswith("study/")}
    packed = scratch / "study.zip"
    write_packed(files, packed)
    package = unpack(packed, scratch / "unpacked")
    if how.trust and untrusted.root_of(package.folder) is not None:
        untrusted.trust(package.folder)
    store = open_store(scratch / "rebuilt.db")
    ran = run_study(store, design.study(str(package.study)), executor=WorkerPool(how.workers), report=how.progress)
    found = stored_study.read(store, ran.study_id, together=True)
    for d in compare(package.rows, reference_rows(found))[:MOST_FINDINGS]:
        where = "" if d.position is None else f"point {d.position}: "
        out.findings.append(FileProblem(f"study/{ROWS}", f"{where}{d.what} {d.packed}, here {d.here}"))
    return record.of_study(found, record.study_intervals(store, ran.study_id)).record


def _differences(before: Any, now: Any, at: str, skipped: Sequence[str], out: Verification) -> Iterator[str]:
    """Where two JSON values differ, a line each; counts the numbers that were compared."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in [*before, *(k for k in now if k not in before)]:
            if key in skipped:
                continue
            if key not in before or key not in now:
                yield f"{at}/{key} is {'missing' if key not in before else 'not made again'}"
            else:
                yield from _differences(before[key], now[key], f"{at}/{key}", skipped, out)
    elif isinstance(before, list) and isinstance(now, list):
        if len(before) != len(now):
            yield f"{at} has {len(before)} entries, made again {len(now)}"
            return
        for i, (a, b) in enumerate(zip(before, now, strict=True)):
            yield from _differences(a, b, f"{at}/{i}", skipped, out)
    else:
        out.numbers += isinstance(before, int | float) and not isinstance(before, bool)
        if type(before) is not type(now) or before != now:
            yield f"{at} is {str(before)[:60]}, made again {str(now)[:60]}"
