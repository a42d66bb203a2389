"""Every reader of files with mutated files: what comes out is a value or one line of an error, and nothing else.

    python tests/fuzz_readers.py [--inputs N] [--seed S] [READER]...      N mutated inputs each

No traceback, no exception that is not a `RetrompiError`, no defect of ours (exit code 3), no signal, nothing over 60 s or 2 GB. Inputs are
made of valid files by a seeded generator and tried in a process of their own, so that a crash is a finding; a finding is printed with the
reader, its number and the seed, and its input kept in the folder that is printed at the end. The suite runs a share (test_fuzz_readers.py);
the C++ parser has its own twin under the sanitizers (src/retrompi/engine/trace/fuzz_trace.cpp, benchmarks/sanitize.sh).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import sys
import tarfile
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import zstandard

from retrompi.base.errors import RetrompiError
from retrompi.base.paths import models_dir, platforms_dir, scenarios_dir

HERE = Path(__file__).parent
SECONDS = 60
MEMORY = 2 << 30

Files = dict[str, bytes]
"""The files of one input by name."""


@dataclass(frozen=True)
class Reader:
    """``seeds``: valid inputs; ``read(folder)`` reads one that was written there; ``mutable(name)``: which files are mutated."""

    seeds: Callable[[], list[Files]]
    read: Callable[[Path], object]
    mutable: Callable[[str], bool] = lambda name: True
    binary: bool = False


# --- mutation ----------------------------------------------------------------------------------------------------------------

NUMBERS = [b"0", b"-1", b"1", b"2147483648", b"9223372036854775807", b"9223372036854775808", b"99999999999999999999999", b"1e308", b"1e999",
           b"nan", b"inf", b"-inf", b"0.5", b"-0", b"00", b"0x10", b"1_000", b"1" * 5000]
WORDS = [b"", b" ", b"\n", b"\0", b"\xff\xfe", b"\x1b[31m", "é😀".encode(), b"a" * 300,
         b"true", b"[]", b"{}", b'""', b"'", b'"', b"[[", b"=", b"#",
         b"1979-05-27", b"[1, 'a']", b"{a = 1}", b"../../etc/passwd", b"/dev/zero", b"%s%n",
         b"\r\n", b",", b":", b";"]
DEEP = [b"[" * 3000, b"{a=" * 500, b"(" * 3000]


def mutated(rng: random.Random, data: bytes, others: Sequence[bytes], *, binary: bool) -> bytes:
    """The bytes with one to six changes."""
    out = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        kind = rng.random()
        at = rng.randrange(len(out) + 1)
        if (binary and kind < 0.6) or kind < 0.15:
            _bytes(rng, out, at)
        elif kind < 0.55:
            _token(rng, out, at)
        elif kind < 0.8:
            _line(rng, out, at)
        elif kind < 0.9 and others:
            other = rng.choice(others)
            cut = rng.randrange(len(other) + 1)
            out[at:] = other[cut:]
        elif kind < 0.93:
            out[at:at] = rng.choice(DEEP)
        else:
            del out[at:]
    return bytes(out)


def _bytes(rng: random.Random, out: bytearray, at: int) -> None:
    how = rng.randrange(4)
    if how == 0 and at < len(out):
        out[at] ^= 1 << rng.randrange(8)
    elif how == 1:
        out[at : at + rng.randrange(9)] = rng.randbytes(rng.randrange(9))
    elif how == 2:
        value = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
        width = rng.choice([1, 2, 4, 8])
        out[at : at + width] = bytes([value]) * width
    else:
        piece = bytes(out[at : at + rng.randrange(1, 64)])
        out[at:at] = piece * rng.randrange(1, 4)


def _token(rng: random.Random, out: bytearray, at: int) -> None:
    """A word or number around a place becomes another."""
    stops = b" \t\n\r,;:=\"'[]{}()<>|/"
    first = at
    while first > 0 and out[first - 1] not in stops:
        first -= 1
    last = at
    while last < len(out) and out[last] not in stops:
        last += 1
    out[first:last] = rng.choice(NUMBERS if rng.random() < 0.6 else WORDS)


def _line(rng: random.Random, out: bytearray, at: int) -> None:
    first = out.rfind(b"\n", 0, at) + 1
    last = out.find(b"\n", at) + 1 or len(out)
    line = bytes(out[first:last])
    how = rng.randrange(4)
    if how == 0:
        del out[first:last]
    elif how == 1:
        out[first:first] = line
    elif how == 2:
        del out[first:last]
        place = rng.randrange(len(out) + 1)
        place = out.rfind(b"\n", 0, place) + 1
        out[place:place] = line
    else:
        out[first:last] = line.strip() + rng.choice(WORDS) + b"\n"


# --- the readers -------------------------------------------------------------------------------------------------------------


def _cut(data: bytes, most: int = 20_000) -> bytes:
    return data[: data.rfind(b"\n", 0, most) + 1] if len(data) > most else data


def _trace_texts() -> list[bytes]:
    from extended_traces import everything

    from retrompi import traces
    from retrompi.traces import generate

    found = ["".join(everything()).encode()]
    sort = traces.read(HERE.parent / "examples/traces/sort-4.tar.zst")
    for trace in (generate.pingpong([0, 8], 2), generate.halo2d(2, 2, 64, flops=1e5), sort):
        found.append("".join(trace.to_ti(r, shared=True) for r in range(trace.ranks)).encode())
    return [_cut(text) for text in found]


def _ranks() -> list[Files]:
    from retrompi import traces

    found: list[Files] = []
    for name in ("sort-4", "overlap-2"):
        trace = traces.read(HERE.parent / f"examples/traces/{name}.tar.zst")
        files = {f"rank-{r}.txt": _cut(trace.to_ti(r).encode(), 4000) for r in range(trace.ranks)}
        found.append({"index.txt": "".join(f"{n}\n" for n in files).encode(), **files})
    # As SMPI's tracer writes: no req=, waits by key, -333.
    found.append({
        "index.txt": b"rank-0.txt\nrank-1.txt\n",
        "rank-0.txt": b"0 init\n0 irecv 1 5 100 0\n0 isend 1 6 100 0\n0 wait 1 0 5\n0 wait 0 1 6\n0 comm_split\n0 gatherv 4 4 4 0 0 0\n"
                      b"0 alltoallv 8 4 4 8 4 4 0 0\n0 recv -333 4 1 0\n0 finalize\n",
        "rank-1.txt": b"1 init\n1 irecv 0 6 100 0\n1 isend 0 5 100 0\n1 waitall 2\n1 comm_split\n1 gatherv 4 4 4 0 0 0\n"
                      b"1 alltoallv 8 4 4 8 4 4 0 0\n1 send 0 4 1 0\n1 finalize\n",
    })
    return found


def _packed() -> list[Files]:
    import gzip

    found: list[Files] = [{"x": zstandard.compress(t)} for t in _trace_texts()] + [{"x": gzip.compress(t)} for t in _trace_texts()]
    for files in _ranks():
        for inner in (lambda d: d, zstandard.compress):
            buffer = io.BytesIO()
            with tarfile.open(fileobj=buffer, mode="w") as tar:
                for name, data in files.items():
                    packed = inner(data) if name != "index.txt" else data
                    member = tarfile.TarInfo(f"t/{name}")
                    member.size = len(packed)
                    tar.addfile(member, io.BytesIO(packed))
            found += [{"x": buffer.getvalue()}, {"x": zstandard.compress(buffer.getvalue())}]
    return found


def _read_trace(folder: Path, name: str = "x") -> None:
    from retrompi import traces

    trace = traces.read(folder / name if name else folder, partial=True)
    assert all(reason for *_, reason in [*trace.unsupported(), *trace.warnings])


def _otf2() -> list[Files]:
    from otf2_writer import OPS, Writer

    from retrompi import traces
    from retrompi.convert import timelines
    from retrompi.sim import simulate
    from retrompi.sim.observe import Observe
    from retrompi.sim.timeline import TimelineRequest
    from retrompi.spec.question import Question, Replay

    found = []
    with tempfile.TemporaryDirectory() as place:
        lines = ["0 init\n0 isend 1 0 8 6 req=1\n0 wait req=1\n0 barrier\n0 finalize\n", "1 init\n1 recv 0 0 8 6\n1 barrier\n1 finalize\n"]
        trace = traces.parse(lines)
        asked = Question("winmpich", "nt-cluster", Replay(trace), "distributed", fidelity="curve")
        timeline = simulate.run(asked, Observe(timeline=TimelineRequest())).timeline
        timelines.write(timeline, Path(place) / "a.otf2")
        timeline.program = None
        timelines.write(timeline, Path(place) / "b.otf2")
        w = Writer(Path(place) / "c", 2, {"pair": [1, 0]}).everywhere("MPI_Init")
        for rank in range(2):
            w.call(rank, "MPI_Comm_split", w.coll(OPS.CREATE_HANDLE, 0, 0), w.make("pair"))
            w.call(rank, "MPI_Irecv", w.irecv(1)).call(rank, "MPI_Isend", w.isend(1 - rank, 1, 64, 2))
            w.call(rank, "MPI_Waitall", w.sent(2), w.received(1 - rank, 1, 64, 1))
            w.call(rank, "MPI_Bcast", w.coll(OPS.BCAST, 0, 8, 1, "pair"))
        w.everywhere("MPI_Finalize").close()
        for folder in sorted(Path(place).iterdir()):
            found.append({p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()})
    return found


def _dumpi() -> list[Files]:
    from dumpi_writer import DOUBLE, INT, SUM, WORLD, Rank, b, h, i, write

    def build(r: Rank, me: int) -> Rank:
        r.call("Comm_rank", h(WORLD) + i(me))
        if me == 0:
            r.send("Send", 10, INT, 1, 7).send("Isend", 3, DOUBLE, 1, 8, request=5).wait(5)
        else:
            r.recv(16, INT, 0, 7, [(40, 0, 7)]).send("Irecv", 3, DOUBLE, 0, 8, request=9).waitall([9, 1], (24, 0, 8), (0, -1, -1))
        r.call("Comm_split", h(WORLD) + i(0, me) + h(4)).call("Bcast", i(2) + h(DOUBLE) + i(1) + h(4))
        return r.call("Allreduce", i(4) + h(INT) + b(SUM) + h(WORLD))

    found = []
    for options in ({}, {"statuses": False}, {"clocks": "wall"}):
        with tempfile.TemporaryDirectory() as place:
            write(Path(place), [build(Rank(**options).init(), me).finalize() for me in range(2)])  # type: ignore[arg-type]
            found.append({p.name: p.read_bytes() for p in sorted(Path(place).iterdir())})
    return found


def _convert(folder: Path, name: str) -> None:
    from retrompi import convert

    convert.load(folder / name)


GOALS = [
    b"num_ranks 2\nrank 0 {\nl1: calc 1000\nl2: send 64b to 1 tag 3\nl2 requires l1\n"
    b"l3: recv 8b from 1 tag 4 cpu 1 nic 0\nl3 irequires l2\n}\n"
    b"rank 1 {\nl1: recv 64b from 0 tag 3\nl2: send 8b to 0 tag 4\nl2 requires l1\n}\n",
    b"/* a ring */\nnum_ranks 3\n" + b"".join(
        b"rank %d {\na: send 10b to %d\nb: recv 10b from %d\nc: calc 5 // end\nc requires a\nc requires b\n}\n"
        % (r, (r + 1) % 3, (r - 1) % 3)
        for r in range(3)),
]


def _files_of(folder: Path, pattern: str, name: str, most: int = 12) -> list[Files]:
    return [{name: p.read_bytes()} for p in sorted(folder.glob(pattern))[:most]]


def _platform(folder: Path) -> None:
    from retrompi.spec import registry

    registry.platform(str(folder / "x.toml"))


def _scenario(folder: Path) -> None:
    from retrompi.studies.define import catalogue

    catalogue.scenario(str(folder / "x.toml"))


def _study(folder: Path) -> None:
    from retrompi.studies.execute import design

    study = design.load(folder / "x.toml")
    design.check(study, 10_000)


def _definitions(*, studies: bool) -> list[Files]:
    """The scenarios of the project, or its studies."""
    found = [*_files_of(scenarios_dir(), "**/*.toml", "x.toml", 100), *_files_of(HERE / "data", "*.toml", "x.toml")]
    found = [f for f in found if b"../" not in f["x.toml"]]  # a trace beside it would be missing
    return [f for f in found if (b"[vary]" in f["x.toml"] or b"[[zip]]" in f["x.toml"]) is studies][:25]


def _model_seeds() -> list[Files]:
    found = []
    for folder in sorted(p for p in models_dir().iterdir() if (p / "fit.toml").is_file()):
        inside = (p for p in sorted(folder.rglob("*")) if p.is_file() and "__pycache__" not in p.parts)
        files = {p.relative_to(folder.parent).as_posix(): p.read_bytes() for p in inside}
        files.setdefault(f"{folder.name}/evidence.toml", EVIDENCE)
        found.append(files)
    return found


EVIDENCE = b"""
[[claim]]
id = "POST-01"
observable = "start-up latency, two ranks on one machine"
value = "200"
unit = "microseconds"
low = 190
high = 210
use = "calibrate"
kind = "quant"
source = "laboratory notebook, page 12"
note = "by hand"
check = { kind = "range", mode = "shared", metric = "startup" }

[[claim]]
id = "POST-02"
observable = "largest bandwidth, two ranks on one machine"
value = "70"
unit = "MByte/s"
low = 63
high = 77
use = "validate"
source = "laboratory notebook, page 13"
check = { kind = "range", mode = "shared", metric = "peak", sizes = "1KiB..1MiB" }
"""


def _model(folder: Path) -> None:
    from retrompi.papers.judging import evidence
    from retrompi.spec import registry
    from retrompi.spec.model import model_values

    (inside,) = folder.iterdir()
    registry.forget(inside)
    cls = registry.model(str(inside))
    wrong: list[RetrompiError] = []
    for read in (lambda: model_values(cls, []), lambda: evidence.evidence(cls)):
        try:
            read()
        except RetrompiError as error:
            wrong.append(error)
    if wrong:
        raise wrong[0]


def _curves(folder: Path) -> None:
    import retrompi.measure.launch  # noqa: F401
    from retrompi.measure import curves

    curves.read(folder / "x.txt")


def _machine_seeds() -> list[Files]:
    whole = zstandard.ZstdDecompressor().decompress((HERE / "data/machine/epyc-mpich.json.zst").read_bytes(), max_output_size=1 << 26)
    data = json.loads(whole)
    data["rows"] = {k: v[:20] for k, v in data["rows"].items()}
    text = json.dumps(data).encode()
    return [{"x.json": text}, {"x.json": zstandard.compress(text)}]


def _machine(folder: Path) -> None:
    import retrompi.measure.launch  # noqa: F401
    from retrompi.measure.this_machine import recording

    recording.load(folder / "x.json")


@cache
def _pack_and_store() -> tuple[list[Files], list[Files]]:
    """A packed study, and the store that it was run in."""
    from retrompi.store import open_store
    from retrompi.studies.archive.pack import pack
    from retrompi.studies.execute import design, run
    from retrompi.studies.read import stored_study

    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "study.toml").write_bytes((HERE / "data/study-example.toml").read_bytes())
        study = design.load(Path(place) / "study.toml")
        store = open_store(Path(place) / "s.db")
        run.run_study(store, study)
        pack(stored_study.read(store, study.name), Path(place) / "x.zip")
        with contextlib.closing(sqlite3.connect(Path(place) / "s.db")) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return [{"x.zip": (Path(place) / "x.zip").read_bytes()}], [{"s.db": (Path(place) / "s.db").read_bytes()}]


def _unpack(folder: Path) -> None:
    from retrompi.studies.archive import unpack

    unpack.unpack(folder / "x.zip", folder / "out")


def _repacked(rng: random.Random, data: bytes) -> bytes:
    """The zip with one member's content mutated and its sums right, so that what is behind them is reached."""
    import hashlib
    import zipfile

    with zipfile.ZipFile(io.BytesIO(data)) as old:
        members = {n: old.read(n) for n in old.namelist()}
    name = rng.choice(list(members))
    members[name] = mutated(rng, members[name], [], binary=False)
    for other in list(members):
        with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
            manifest = json.loads(members[other])
            for n, about in manifest["files"].items():
                about["sha256"] = hashlib.sha256(members[n]).hexdigest()
            members[other] = json.dumps(manifest).encode()
    if rng.random() < 0.2:
        members[rng.choice(["../x", "/x", "a\\b", "x\x1b", "models/x/__init__.py"])] = b"x"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", rng.choice([0, 8])) as new:
        for n, content in members.items():
            new.writestr(n, content)
    return out.getvalue()


def _store(folder: Path) -> None:
    from retrompi.store import open_store
    from retrompi.studies.read import stored_study

    store = open_store(folder / "s.db")
    for row in store.runs():
        for look in (store.run, store.points, store.ranks, store.anatomy):
            look(row["id"])
    store.verdicts()
    for study in store.studies():
        stored_study.read(store, study["id"])


def _spoiled_cell(rng: random.Random, data: bytes) -> bytes:
    """The store with one value replaced by one of another kind: a database that opens and holds nonsense."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "s.db"
        file.write_bytes(data)
        with contextlib.closing(sqlite3.connect(file)) as db:
            tables = [r[0] for r in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]
            table = rng.choice(tables)
            columns = [r[1] for r in db.execute(f'PRAGMA table_info("{table}")')]
            odd = [None, "", "x", b"\xff\xfe", -1, 2**62, 1.5, "[1", '{"a": [1]}', "NaN", "2026-99-99", "\x1b[31m", "9" * 400, "null"]
            value: Any = rng.choice(odd)
            with contextlib.suppress(sqlite3.Error):
                db.execute(f'UPDATE "{table}" SET "{rng.choice(columns)}" = ?', (value,))
                db.commit()
        return file.read_bytes()


LINKS = [
    b"model=wmpi&platform=nt-pair&mode=shared&set=platform.host.cores=2&set=wmpi.packet=64KiB&sizes=1KiB,64KiB",
    b"model=nemesis&platform=abe&mode=n1,n2&seed=3&set=platform.link.latency=10us&run=1&paper=baker-fox&page=2&sort=model",
]


def _link_seeds() -> list[Files]:
    others = (b"/", b"/anatomy", b"/models", b"/studies", b"/platforms")
    return [{"x": b"/whatif?" + text} for text in LINKS] + [{"x": p + b"?" + LINKS[1]} for p in others]


@cache
def _resources() -> Any:
    from retrompi.studio.jobs.queue import Jobs
    from retrompi.studio.jobs.resources import Resources

    return Resources(Jobs(), str(Path(tempfile.mkdtemp(prefix="fuzz-studio-")) / "store.db"))


@cache
def _flask() -> Any:
    import flask

    return flask.Flask("fuzz")


def _link(folder: Path) -> None:
    from retrompi.studio.app import page_content

    path, _, query = (folder / "x").read_bytes().decode("utf-8", "replace").partition("?")
    with _flask().test_request_context("/"):
        page_content(path or "/", query, _resources())


@cache
def _lab_seeds() -> list[Files]:
    from retrompi.labs import lab, start

    found = []
    with tempfile.TemporaryDirectory() as place:
        for name in lab.lab_names()[:4]:
            folder = Path(place) / name
            start.start(lab.lab(name), "Ann", folder)
            found.append({p.name: p.read_bytes() for p in sorted(folder.iterdir()) if p.is_file()})
    return found


def _answers(folder: Path) -> None:
    from retrompi.labs import answers, grade, student

    found = grade.lab_of(student.read_state(folder), folder)
    for task, given in ((t, answers.read(folder, found).get(t.id)) for t in found.tasks):
        if given is not None and given.text:
            with contextlib.suppress(RetrompiError, ValueError):
                answers.value(task, given)


READERS: dict[str, Reader] = {
    "ti": Reader(lambda: [{"x": t} for t in _trace_texts()], _read_trace),
    "ti-packed": Reader(_packed, _read_trace, binary=True),
    "ti-folder": Reader(_ranks, partial(_read_trace, name="")),
    "otf2": Reader(_otf2, partial(_convert, name="traces.otf2"), binary=True),
    "dumpi": Reader(_dumpi, partial(_convert, name="job.meta"), binary=True),
    "goal": Reader(lambda: [{"x.goal": g} for g in GOALS], partial(_convert, name="x.goal")),
    "platform": Reader(lambda: _files_of(platforms_dir(), "*.toml", "x.toml"), _platform),
    "scenario": Reader(lambda: _definitions(studies=False), _scenario),
    "study": Reader(lambda: _definitions(studies=True), _study),
    "model": Reader(_model_seeds, _model, lambda n: n.endswith(("/fit.toml", "/evidence.toml"))),
    "measured": Reader(lambda: _files_of(HERE / "data/measured", "*", "x.txt", 40), _curves),
    "machine": Reader(_machine_seeds, _machine),
    "pack": Reader(lambda: _pack_and_store()[0], _unpack, binary=True),
    "store": Reader(lambda: _pack_and_store()[1], _store, binary=True),
    "link": Reader(_link_seeds, _link),
    "answers": Reader(_lab_seeds, _answers, lambda n: n in ("answers.toml", ".lab.toml")),
}
FULL = {
    "ti": 20_000, "ti-packed": 15_000, "ti-folder": 15_000, "otf2": 3_000, "dumpi": 10_000, "goal": 15_000, "platform": 6_000,
    "scenario": 6_000, "study": 4_000, "model": 4_000, "measured": 10_000, "machine": 5_000,
    "pack": 5_000, "store": 2_000, "link": 2_000, "answers": 6_000,
}
"""Inputs of a full run, 128,000 in all."""
SPECIAL: dict[str, tuple[str, Callable[[random.Random, bytes], bytes]]] = {"pack": ("x.zip", _repacked), "store": ("s.db", _spoiled_cell)}
"""Mutations that keep the container valid, for half of the inputs."""


def made(name: str, seeds: Sequence[Files], number: int, seed: int) -> Files:
    """The input of that number."""
    rng = random.Random(f"{name} {seed} {number}")
    reader = READERS[name]
    files = dict(rng.choice(seeds))
    if name in SPECIAL and rng.random() < 0.5:
        file, spoil = SPECIAL[name]
        files[file] = spoil(rng, files[file])
        return files
    file = rng.choice([n for n in files if reader.mutable(n)])
    others = [s[n] for s in seeds for n in s if reader.mutable(n)]
    files[file] = mutated(rng, files[file], others, binary=reader.binary)
    return files


# --- trying ------------------------------------------------------------------------------------------------------------------


class TooLong(BaseException):
    """An input took longer than `SECONDS`."""


@dataclass
class Finding:
    """What an input did that none may do."""

    reader: str
    number: int
    what: str

    def __str__(self) -> str:
        return f"{self.reader} #{self.number}: {self.what}"


@dataclass
class Outcome:
    """Of one reader: inputs tried, how many were read and how many refused, findings, and the longest and largest input."""

    tried: int = 0
    read: int = 0
    refused: int = 0
    findings: list[Finding] = field(default_factory=list)
    longest: float = 0.0
    peak: int = 0


def _written(files: Files, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, data in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def _one(read: Callable[[Path], object], folder: Path) -> tuple[str, str]:
    """("read" | "refused" | "finding", what)."""

    def late(*_: object) -> None:
        raise TooLong

    signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        read(folder)
        return "read", ""
    except RetrompiError as error:
        if error.exit_code == 3:
            return "finding", f"exit code 3: {error}"
        if "\n" in str(error).strip() or "Traceback" in str(error):
            return "finding", f"not one line: {str(error)[:300]!r}"
        return "refused", ""
    except TooLong:
        return "finding", f"longer than {SECONDS} s"
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return "finding", f"{type(error).__name__}: {str(error)[:160]} at {Path(place.filename).name}:{place.lineno}"
    finally:
        signal.alarm(0)


def _child(name: str, seeds: Sequence[Files], numbers: range, seed: int, place: Path, out: int) -> None:
    """Tries the inputs of ``numbers``; a JSON line for each is written to ``out``."""
    said = place / "stderr"
    with said.open("wb") as sink:
        os.dup2(sink.fileno(), 2)
    os.chdir(place)
    before = 0
    for number in numbers:
        _written(made(name, seeds, number, seed), place / "in")
        begin = time.perf_counter()
        kind, what = _one(READERS[name].read, place / "in")
        seconds = time.perf_counter() - begin
        size = said.stat().st_size
        if kind != "finding" and size > before and b"Traceback" in said.read_bytes()[before:]:
            kind, what = "finding", f"a traceback on stderr: {said.read_bytes()[before:].splitlines()[-1][:160]!r}"
        before = size
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        os.write(out, json.dumps([number, kind, what, seconds, peak]).encode() + b"\n")


def _batch(name: str, seeds: Sequence[Files], numbers: range, seed: int, kept: Path) -> Iterator[tuple[int, str, str, float, int]]:
    """The answers of a process that tries ``numbers``; one that dies, grows or hangs is a finding, and the next goes on behind it."""
    at = numbers.start
    while at < numbers.stop:
        place = Path(tempfile.mkdtemp(prefix="fuzz-"))
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.close(reading)
                _child(name, seeds, range(at, numbers.stop), seed, place, writing)
                status = 0
            finally:
                os._exit(status)
        os.close(writing)
        grown = False
        with os.fdopen(reading, "rb") as pipe:
            watch = _Watch(pid)
            for line in pipe:
                watch.alive()
                number, kind, what, seconds, peak = json.loads(line)
                at = number + 1
                if peak > MEMORY and kind != "finding":
                    kind, what, grown = "finding", f"{peak >> 20} MiB", True
                yield number, kind, what, seconds, peak
                if grown:
                    os.kill(pid, signal.SIGKILL)
                    break
            watch.end()
        _, status = os.waitpid(pid, 0)
        if at < numbers.stop and not grown:
            # An exit status below 0 is a signal.
            why = f"hangs beyond {SECONDS} s" if watch.hung else f"the process ended with {os.waitstatus_to_exitcode(status)}"
            yield at, "finding", why, 0.0, 0
            at += 1
        shutil.rmtree(place, ignore_errors=True)


class _Watch:
    """Kills a process that says nothing for twice `SECONDS`, for example in native code."""

    def __init__(self, pid: int) -> None:
        import threading

        self.hung = False
        self._pid = pid
        self._last = time.monotonic()
        self._done = threading.Event()
        threading.Thread(target=self._look, daemon=True).start()

    def alive(self) -> None:
        self._last = time.monotonic()

    def end(self) -> None:
        self._done.set()

    def _look(self) -> None:
        while not self._done.wait(1):
            if time.monotonic() - self._last > 2 * SECONDS:
                self.hung = True
                os.kill(self._pid, signal.SIGKILL)
                return


def fuzz(name: str, inputs: int, seed: int = 0, kept: Path | None = None, first: int = 0) -> Outcome:
    """Tries that many mutated inputs of a reader. The inputs of findings are written to ``kept``."""
    seeds = READERS[name].seeds()
    out = Outcome()
    for number, kind, what, seconds, peak in _batch(name, seeds, range(first, first + inputs), seed, kept or Path()):
        out.tried += 1
        out.read += kind == "read"
        out.refused += kind == "refused"
        out.longest, out.peak = max(out.longest, seconds), max(out.peak, peak)
        if kind == "finding":
            out.findings.append(Finding(name, number, what))
            if kept is not None:
                _written(made(name, seeds, number, seed), kept / f"{name}-{number}")
    return out


def main() -> int:
    """Prints a row a reader; exit code 1 if there are findings."""
    parser = argparse.ArgumentParser()
    parser.add_argument("readers", nargs="*", default=[])
    parser.add_argument("--inputs", type=int, help="of each reader (default: a full run, more of what is quick)")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    kept = Path(tempfile.mkdtemp(prefix="fuzz-findings-"))
    total = findings = 0
    print(f"{'reader':10} {'inputs':>8} {'read':>8} {'refused':>8} {'findings':>8} {'longest':>8} {'peak':>8} {'seconds':>8}", flush=True)
    for name in given.readers or READERS:
        begin = time.monotonic()
        out = fuzz(name, given.inputs or FULL[name], given.seed, kept, given.first)
        total, findings = total + out.tried, findings + len(out.findings)
        print(f"{name:10} {out.tried:8} {out.read:8} {out.refused:8} {len(out.findings):8} {out.longest:6.2f} s {out.peak >> 20:4} MiB "
              f"{time.monotonic() - begin:8.1f}", flush=True)
        alike: dict[str, list[Finding]] = {}
        for found in out.findings:
            alike.setdefault(found.what, []).append(found)
        for what, some in list(alike.items())[:40]:
            print(f"    {len(some)} x {what} (first: #{some[0].number})", flush=True)
    print(f"{total} inputs, {findings} findings" + (f", kept in {kept}" if findings else ""))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
