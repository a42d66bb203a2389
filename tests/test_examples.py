"""The example programs: right on every MPI, wrong when a message is damaged, recorded alike by MPICH and SMPI, replayed on every model.

Every test skips, with the reason, where the tool it needs is missing.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from cases import sampled
from conftest import need
from test_record import communication

from retrompi import traces
from retrompi.measure import record
from retrompi.sim import simulate
from retrompi.spec import registry
from retrompi.spec.question import Question, Replay

pytestmark = pytest.mark.usefixtures("here", "open_mpi_runs")

EXAMPLES = Path(__file__).parents[1] / "examples"
SPOIL = Path(__file__).parent / "data" / "programs" / "spoil.c"
SMALL = {
    "pingpong": ("--sizes", "0,100,65536", "--scale", "0.003", "--warm-up", "1"),
    "half_to_half": ("--sizes", "0,100,65536", "--scale", "0.02"),
    "broadcast": ("--sizes", "0,100,65536", "--scale", "0.02"),
    "overlap": ("--sizes", "100,65536", "--tests", "0", "--reps", "2", "--work", "50"),
    "jacobi": ("--size", "37", "--sweeps", "12", "--every", "5"),
    "matmul": ("--size", "50", "--panel", "7", "--reps", "1"),
    "sort": ("--keys", "500", "--reps", "2"),
    "collectives": ("--operation", "bcast", "--sizes", "800,65536", "--scale", "0.002"),
    "heat": ("--size", "100", "--steps", "10", "--every", "4"),
}
"""Each compiled example with arguments for a run of a moment."""
RUNS = [(name, ranks) for name in SMALL for ranks in (2, 4) if (name, ranks) != ("pingpong", 4)]
"""PingPong is of two processes."""
MODELS = registry.model_names()
ROOMS = {"nemesis": "abe", "craympt": "cray-t3e", "mpibip": "myrinet-piii"}
"""Machines of the runtime's papers; the others run on the NT machines."""

Build = Callable[[str, str], Path]


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """``example("jacobi", "mpich")``: compiled once a session, with every warning an error."""
    folder = tmp_path_factory.mktemp("examples")

    def build(name: str, family: str) -> Path:
        source = next(p for p in (EXAMPLES / f"{name}.c", EXAMPLES / f"{name}.f90") if p.exists())
        kind = "cc" if source.suffix == ".c" else "f90"
        compiler = f"smpi{kind}" if family == "smpi" else f"mpi{kind}.{family}"
        need(compiler, *(["gfortran"] if kind == "f90" else []))
        target = folder / f"{name}-{family}"
        if not target.exists():
            command = [compiler, "-O1", "-Wall", "-Wextra", "-Werror", "-o", str(target), str(source), "-lm"]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        return target

    return build


def run(family: str, ranks: int, *words: str | Path, variables: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    need(f"mpiexec.{family}")
    given = [w for k, v in (variables or {}).items() for w in (("-genv", k, v) if family == "mpich" else ("-x", f"{k}={v}"))]
    return subprocess.run([f"mpiexec.{family}", *given, "-n", str(ranks), *map(str, words)], capture_output=True, text=True, timeout=300)


def recorded(family: str, program: Path, ranks: int, name: str, *arguments: str) -> record.Recording:
    if family == "smpi":
        need("smpirun")
        return record.record([str(program), *arguments], name, use_smpi=True, ranks=ranks)
    need(f"mpiexec.{family}")
    return record.record([f"mpiexec.{family}", "-n", str(ranks), str(program), *arguments], name)


@functools.cache
def python_with_mpi4py() -> tuple[str, str]:
    """An interpreter that has mpi4py, and the family of its MPI."""
    asked = "from mpi4py import MPI; print(MPI.Get_library_version())"
    for python in (sys.executable, shutil.which("python3", path=os.defpath)):
        if python is not None:
            found = subprocess.run([python, "-c", asked], capture_output=True, text=True)
            if found.returncode == 0:
                return python, "openmpi" if "Open MPI" in found.stdout else "mpich"
    pytest.skip("mpi4py is not installed (Debian: python3-mpi4py)")


# --- the result -------------------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "ranks"), RUNS)
def test_open_mpi_gives_the_right_result(name: str, ranks: int, example: Build) -> None:
    done = run("openmpi", ranks, example(name, "openmpi"), *SMALL[name])
    assert done.returncode == 0, done.stdout
    assert ": correct" in done.stdout


@pytest.mark.parametrize(("name", "ranks"), sampled(RUNS, 6))
def test_mpich_and_smpi_are_asked_the_same(
    name: str, ranks: int, example: Build, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Both give the right result (else the exit code is 1), and the traces differ in nothing but computation."""
    for family in ("mpich", "smpi"):
        done = recorded(family, example(name, family), ranks, family, *SMALL[name])
        assert (done.exit_code, done.partial, done.notes) == (0, False, [])
        assert ": correct" in capfd.readouterr().out
        assert traces.unsupported_lines(done.trace) == []
    mine = communication(tmp_path / "mpich")
    assert mine == communication(tmp_path / "smpi")
    assert any("finalize" in row for row in mine)


def test_looks_at_messages_are_recorded(example: Build, tmp_path: Path) -> None:
    """What MPI_Testall says depends on the clock, and once it has said yes there is nothing left to ask for; the messages are the same."""
    for family in ("mpich", "smpi"):
        recorded(family, example("overlap", family), 2, family, "--sizes", "65536", "--tests", "7", "--reps", "3")
        calls = Counter(row.split()[1] for row in communication(tmp_path / family))
        assert 2 * 3 <= calls["testall"] <= 2 * 3 * 7
        assert calls["isend"] == calls["irecv"] == 2 * 2 * 3 * 4  # ranks, alone and with computation, repetitions, messages
        assert 2 * 3 <= calls["waitall"] <= 2 * 2 * 3


@pytest.mark.parametrize("name", SMALL)
def test_a_damaged_message_is_a_wrong_result(name: str, example: Build, tmp_path: Path) -> None:
    program = example(name, "mpich")
    spoiler = tmp_path / "spoil.so"
    subprocess.run(["mpicc.mpich", "-shared", "-fPIC", "-o", str(spoiler), str(SPOIL)], check=True, capture_output=True)
    done = run("mpich", 2, program, *SMALL[name], variables={"LD_PRELOAD": str(spoiler)})
    assert done.returncode == 1
    assert ": WRONG in " in done.stdout


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("jacobi", ("--sise", "3"), "no option '--sise'; there are: --size --sweeps --every --help"),
        ("jacobi", ("--size", "3x"), "--size must be a number from 1 to 30000, not '3x'"),
        ("jacobi", ("--size",), "--size needs a value: inner grid points a side"),
        ("broadcast", ("--sizes", "3,,4"), "--sizes takes bytes from 0 to 1073741824, separated by commas, not ',4'"),
        ("sort", ("--keys", "3"), "sort: needs at least 4 keys a process to sample 2 processes, not 3"),
        ("pingpong", ("--max", "1e10"), "--max must be a number from 0 to 1073741824, not '1e10'"),
        ("heat", ("--steps", "-1"), "heat: --steps must be a number of at least 1, not '-1'"),
    ],
)
def test_a_wrong_option_is_one_line(name: str, arguments: tuple[str, ...], message: str, example: Build) -> None:
    done = run("mpich", 2, example(name, "mpich"), *arguments)
    assert (done.returncode, done.stderr.strip(), done.stdout) == (2, message, "")


# --- the trace --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMALL)
def test_every_model_replays_it(name: str, example: Build) -> None:
    trace = recorded("mpich", example(name, "mpich"), 2, "t", *SMALL[name]).trace
    marks = [action for r in range(trace.ranks) for _, action, *_ in trace.rank_actions(r) if action.startswith("mark pcontrol ")]
    assert len(marks) > 0
    for model in MODELS:
        platform = ROOMS.get(model.partition(":")[0], "nt-cluster")
        mode = "shared" if registry.model(model)().joins(registry.platform(platform), [0, 1]) else "distributed"
        for fidelity in ("mechanism", "curve") if ":" not in model else ("curve",):
            result = simulate.run(Question(model, platform, Replay(trace), mode, fidelity=fidelity))
            assert result.outcome == "completed", (model, fidelity, result.detail)


# --- Python -----------------------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
@pytest.mark.parametrize("ranks", [2, 3])
def test_life_in_python(ranks: int) -> None:
    python, family = python_with_mpi4py()
    arguments = [EXAMPLES / "life.py", "--size", "24", "--generations", "9", "--every", "5"]
    done = run(family, ranks, python, *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("# board: correct\n")
    need(f"mpicc.{family}")
    result = record.record([f"mpiexec.{family}", "-n", str(ranks), python, *map(str, arguments)], "t")
    calls = Counter(action for _, action, *_ in result.trace.rank_actions(0))
    # 9 generations are rounded up to 12, in three parts; every part ends with a sum, and the check is one more.
    assert (calls["sendRecv"], calls["allreduce"], calls["mark pcontrol 5"], calls["mark pcontrol -5"]) == (24, 4, 1, 2)
    assert simulate.run(Question("wmpi", "nt-cluster", Replay(result.trace))).outcome == "completed"


@pytest.mark.exhaustive
def test_life_notices_a_damaged_message(tmp_path: Path) -> None:
    python, family = python_with_mpi4py()
    need(f"mpicc.{family}")
    spoiler = tmp_path / "spoil.so"
    subprocess.run([f"mpicc.{family}", "-shared", "-fPIC", "-o", str(spoiler), str(SPOIL)], check=True, capture_output=True)
    done = run(family, 2, python, EXAMPLES / "life.py", "--size", "16", "--generations", "4", variables={"LD_PRELOAD": str(spoiler)})
    assert done.returncode == 1
    assert ": WRONG in " in done.stdout
    wrong = run(family, 2, python, EXAMPLES / "life.py", "--size", "7")
    assert wrong.returncode == 2
    assert "life: --size must be a multiple of 8 and at least the number of processes, not 7" in wrong.stderr


# --- the traces that come with them -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("archive", sorted(p.name for p in (EXAMPLES / "traces").glob("*.tar.zst")))
def test_recorded_traces_are_replayed(archive: str) -> None:
    trace = traces.read(EXAMPLES / "traces" / archive)
    name, _, ranks = archive.removesuffix(".tar.zst").rpartition("-")
    assert trace.ranks == int(ranks)
    assert any((EXAMPLES / f"{name}{suffix}").exists() for suffix in (".c", ".f90", ".py"))
    assert traces.unsupported_lines(trace) == []
    assert any(action.startswith("mark pcontrol ") for _, action, *_ in trace.rank_actions(0))
    for model in ("wmpi", "nemesis"):
        result = simulate.run(Question(model, ROOMS.get(model, "nt-cluster"), Replay(trace), fidelity="curve"))
        assert result.outcome == "completed", result.detail
