"""Lab 09 runs a student's program: right ones of every pattern pass, and what is wrong with others is said; nothing outlives its time."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cases import sampled
from refusals import refused

from retrompi.base.errors import RetrompiError
from retrompi.labs import grade, start, student
from retrompi.labs import lab as _lab
from retrompi.labs.bench import Bench
from retrompi.measure.launch import build
from retrompi.store import open_store

LAB = _lab.lab("09")
STUDENTS = [f"student {i}" for i in range(10)]
needs_smpi = pytest.mark.skipif(shutil.which("smpicc") is None, reason="smpicc is not installed: apt-get install libsimgrid-dev")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    opened = open_store(tmp_path_factory.mktemp("program") / "labs.db")
    with opened.hold_connection():
        yield opened


def begun(who: str, place: Path, store: Any, may_run: bool = True) -> tuple[Path, student.Parameters, Bench]:
    folder = start.start(LAB, who, place / "mine")
    return folder, student.draw(LAB, who), Bench(store, folder, may_run=may_run)


def with_body(folder: Path, p: student.Parameters, body: str) -> None:
    LAB.reference._program(folder, body, p)


def of_pattern(pattern: str) -> str:
    return next(f"pupil {i}" for i in range(200) if student.draw(LAB, f"pupil {i}")["pattern"] == pattern)


@needs_smpi
@pytest.mark.parametrize("who", sampled(STUDENTS, 3))
def test_the_reference_program_is_compiled_run_and_right(who: str, tmp_path: Path, store: Any) -> None:
    folder, p, bench = begun(who, tmp_path, store)
    LAB.reference.solve(folder, p, bench)
    assert LAB.reference.inspect("program", folder, p, bench) == ""
    assert LAB.reference.inspect("trace", folder, p, bench) == ""


@pytest.mark.skipif(build.default_family() is None, reason="no MPI is installed: apt-get install mpich")
@pytest.mark.parametrize("pattern", ["line", "star"])
def test_without_smpi_the_program_runs_natively(pattern: str, tmp_path: Path, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    which = shutil.which
    monkeypatch.setattr(LAB.reference.shutil, "which", lambda name, *a, **k: None if name.startswith("smpi") else which(name, *a, **k))
    folder, p, bench = begun(of_pattern(pattern), tmp_path, store)
    LAB.reference.solve(folder, p, bench)
    assert LAB.reference.inspect("program", folder, p, bench) == ""


SEND_FIRST = """  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  MPI_Send(out, NUMBERS, MPI_DOUBLE, right, TAG, MPI_COMM_WORLD);
  MPI_Recv(in, NUMBERS, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  long wrong = round < 0;"""
WRONG = {
    "only where the library buffers": SEND_FIRST,
    "have not the asked length": SEND_FIRST.replace("NUMBERS, MPI_DOUBLE", "NUMBERS / 2, MPI_DOUBLE"),
    "another tag": SEND_FIRST.replace("TAG", "TAG + 1"),
    "fewer messages than one a round": "  if (round == 1) return 0;\n" + SEND_FIRST,
    "which the pattern does not have": SEND_FIRST.replace("rank + 1", "rank + 2").replace("size - 1", "size - 2"),
}


@needs_smpi
@pytest.mark.parametrize("said", WRONG)
def test_what_is_wrong_with_a_ring_is_said(said: str, tmp_path: Path, store: Any) -> None:
    folder, p, bench = begun(of_pattern("ring"), tmp_path, store)
    with_body(folder, p, WRONG[said])
    assert said in LAB.reference.inspect("program", folder, p, bench)


@needs_smpi
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("  this is no C;\n  long wrong = 0; MPI_Send;", "cannot compile it: exchange.c"),
        ("  for (volatile int i = 0;;) if (size > 99) MPI_Barrier(MPI_COMM_WORLD);\n  long wrong = 0; MPI_Send;", "did not end by itself"),
        ("  MPI_Ssend(out, 1, MPI_INT, (rank + 1) % size, TAG, MPI_COMM_WORLD);\n  long wrong = 0;", "MPI_Finalize"),
        ("  long wrong = 1; if (size > 99) MPI_Send(in, 0, MPI_INT, 0, 0, MPI_COMM_WORLD);", "failed"),
    ],
    ids=["no C", "for ever", "deadlock", "wrong numbers"],
)
def test_a_program_that_does_not_work_is_told_and_ended(
    body: str, said: str, tmp_path: Path, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "by itself" in said:  # the others end, and a compiler on a busy machine may take its time
        monkeypatch.setattr(LAB.reference, "SECONDS", 8)
    folder, p, bench = begun(of_pattern("ring"), tmp_path, store)
    with_body(folder, p, body)
    try:
        found = LAB.reference.inspect("program", folder, p, bench)
    except RetrompiError as error:
        found = str(error)
    assert said in found


def test_nothing_is_run_unless_it_may_be(tmp_path: Path, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a process was begun")

    folder, p, bench = begun("student 1", tmp_path, store, may_run=False)
    LAB.reference.solve(folder, p, bench)
    monkeypatch.setattr(LAB.reference.mpi_job, "run", refuse)
    assert LAB.reference.inspect("program", folder, p, bench) == ""
    assert LAB.reference.inspect("trace", folder, p, bench) == ""
    graded = grade.grade(LAB, folder, student.read_state(folder), bench)
    assert "exchange.c was not compiled and run: its points are open" in graded.flags


def test_a_program_without_a_compiler_is_told(tmp_path: Path, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, p, bench = begun("student 1", tmp_path, store)
    LAB.reference.solve(folder, p, bench)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(build, "default_family", lambda: None)
    with refused(RetrompiError, "missing-tool | smpicc | mpicc"):
        LAB.reference.inspect("program", folder, p, bench)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t[:-1], "out of range"),
        (lambda t: [x.replace("finalize\n", "") for x in t], "truncated"),
        (lambda t: [x.replace("isend", "send").replace("irecv", "recv") for x in t], "only where the library buffers"),
        (lambda t: [x.replace(" allreduce 1 0", " barrier") for x in t], "MPI_Allreduce"),
    ],
    ids=["ranks", "cut", "blocking", "no allreduce"],
)
def test_what_is_wrong_with_a_trace_is_said(change: Any, said: str, tmp_path: Path, store: Any) -> None:
    folder, p, bench = begun(of_pattern("line"), tmp_path, store)
    LAB.reference._pack(change(LAB.reference.trace_of(p)), folder / "trace.tar.zst")
    try:
        found = LAB.reference.inspect("trace", folder, p, bench)
    except RetrompiError as error:
        found = str(error)
    assert said in found


def test_a_trace_that_unpacks_to_too_much_is_refused(tmp_path: Path, store: Any) -> None:
    import zstandard

    folder, p, bench = begun("student 1", tmp_path, store)
    (folder / "trace.tar.zst").write_bytes(zstandard.ZstdCompressor().compress(b"0" * (40 << 20)))
    with refused(RetrompiError, "too-large"):
        LAB.reference.inspect("trace", folder, p, bench)


@pytest.mark.parametrize("packed", [True, False])
def test_a_list_of_other_files_is_not_followed(packed: bool, tmp_path: Path, store: Any) -> None:
    import zstandard

    folder, p, bench = begun("student 1", tmp_path, store)
    secret = tmp_path / "secret"
    secret.write_text("0 init\nnobody's business\n")
    data = f"{secret}\n{secret}\n".encode()
    (folder / "trace.tar.zst").write_bytes(zstandard.ZstdCompressor().compress(data) if packed else data)
    with refused(RetrompiError, "damaged-file") as caught:
        LAB.reference.inspect("trace", folder, p, bench)
    assert "business" not in str(caught.value)


def test_an_unsafe_trace_is_found_by_its_replay(tmp_path: Path, store: Any) -> None:
    folder, p, bench = begun(of_pattern("mirror"), tmp_path, store)
    LAB.reference._pack(LAB.reference.trace_of(p, safe=False), folder / "trace.tar.zst")
    assert "only where the library buffers" in LAB.reference.inspect("trace", folder, p, bench)
