"""Programs of students on a server: compiled, run and recorded in a box. What a box holds is in test_box_attacks.py."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from retrompi.base.errors import InputError
from retrompi.labs import lab as _lab
from retrompi.labs import sandbox, student, work
from retrompi.labs.bench import Bench
from retrompi.store import open_store
from retrompi.studio.labs import lab_programs

needs_box = pytest.mark.skipif(bool(sandbox.missing()), reason=f"no box here: {sandbox.missing()}")
needs_smpi = pytest.mark.skipif(shutil.which("smpicc") is None, reason="smpicc is not installed: apt-get install libsimgrid-dev")
HELLO = """#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Barrier(MPI_COMM_WORLD);
  printf("rank %d of %d\\n", rank, size);
  MPI_Finalize();
  return 0;
}
"""


@needs_box
@pytest.mark.parametrize(("backend", "compiler"), [("smpi", "smpicc"), ("native", "mpicc")])
def test_a_program_runs_in_a_box(backend: str, compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    (tmp_path / "exchange.c").write_text(HELLO)
    said = lab_programs.execute({"ranks": "4", "backend": backend}, tmp_path)["lines"]
    assert sorted(line for line in said if line.startswith("rank")) == [f"rank {r} of 4" for r in range(4)]
    assert "exit code 0" in said[0]
    (tmp_path / "exchange.c").write_text("int main(void) { return oops; }\n")
    with pytest.raises(InputError, match=r"exchange\.c:1:\d+: error: .oops"):
        lab_programs.execute({"ranks": "4", "backend": backend}, tmp_path)


@needs_box
@pytest.mark.skipif(shutil.which("mpicc") is None, reason="no MPI")
def test_a_program_is_recorded_in_a_box_without_smpi_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, *rest, **more: None if name == "smpicc" else found(name, *rest, **more))
    (tmp_path / "exchange.c").write_text(HELLO)
    (tmp_path / "work").mkdir()
    trace = _lab.lab("09").reference.recorded(tmp_path / "exchange.c", 3, tmp_path / "work", True)
    assert (trace.ranks, trace.info()["calls"]["barrier"]) == (3, 3)


@needs_box
@needs_smpi
def test_lab_9_is_right_in_a_box_and_open_without_one(tmp_path: Path) -> None:
    lab = _lab.lab("09")
    begun = work.begin(lab, "Ann")
    p, store = student.draw(lab, "Ann"), open_store(tmp_path / "labs.db")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "exchange.c").write_bytes(begun.files["exchange.c"])
    lab.reference.solve(tmp_path / "mine", p, Bench(store))
    done = begun
    for file in (tmp_path / "mine").iterdir():
        done = work.put(done, file.name, file.read_bytes())
    boxed = {r.task: r for r in work.grade_work(done, lab, Bench(store, may_run=True, boxed=True)).results}
    assert (boxed["program"].status, boxed["trace"].status) == ("right", "right"), boxed["program"].says
    without = {r.task: r for r in work.grade_work(done, lab, Bench(store)).results}
    assert (without["program"].status, without["program"].open) == ("open", boxed["program"].of)
