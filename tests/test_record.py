"""Recording real programs: natively with MPICH and Open MPI and through SMPI, whole ones and such as are killed.

Every test skips, with the reason, where the tool it needs is missing.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cases import sampled
from conftest import Outcome, need
from refusals import agrees, refused

from retrompi import traces
from retrompi.measure import record
from retrompi.measure.record.assemble import without_cancelled
from retrompi.measure.record.library import find_compiler, library
from retrompi.sim import simulate
from retrompi.spec.question import Question, Replay

pytestmark = pytest.mark.usefixtures("here", "open_mpi_runs")

PROGRAMS = Path(__file__).parent / "data" / "programs"
NAMES = ("ring", "halo", "wildcard", "rowcol", "collectives", "nonblocking", "persistent", "onesided", "derived", "topology", "exchange")
MAKERS = re.compile(
    r"^(\d+ (?:comm_split|comm_dup|comm_create|comm_create_group|cart_create|graph_create|intercomm_create|intercomm_merge) )(\d+)"
)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """``built("ring", "mpich")``: the program compiled, once a session."""
    folder = tmp_path_factory.mktemp("programs")

    def build(name: str, family: str, *flags: str) -> Path:
        source = next(PROGRAMS.glob(f"{name}.[cf]*"))
        kind = "cc" if source.suffix == ".c" else "f90"
        compiler = f"smpi{kind}" if family == "smpi" else f"mpi{kind}.{family}"
        need(compiler)
        if kind == "f90":
            need("gfortran")
        target = folder / "-".join([name, family, *(f.strip("-") for f in flags)])
        if not target.exists():
            subprocess.run([compiler, "-w", "-O1", *flags, "-o", str(target), str(source)], check=True, capture_output=True)
        return target

    return build


def recorded(program: Path, family: str, ranks: int, out: str, *arguments: str) -> record.Recording:
    if family == "smpi":
        need("smpirun", "smpicc")
        return record.record([str(program), *arguments], out, use_smpi=True, ranks=ranks)
    need(f"mpiexec.{family}", f"mpicc.{family}")
    return record.record([f"mpiexec.{family}", "-n", str(ranks), str(program), *arguments], out)


def lines(folder: Path, rank: int) -> list[str]:
    """A rank's lines without comments and computation."""
    rows = (folder / f"rank-{rank}.txt").read_text().splitlines()
    return [r for r in rows if not r.startswith("#") and r.split()[1] != "compute"]


def communication(folder: Path) -> list[str]:
    """All lines of all ranks without computation; communicators numbered in the order in which they are met.

    Their numbers are free (each MPI hands them out as it likes); everything else must be the same word for word.
    """
    numbers: dict[str, str] = {}

    def number(found: re.Match[str]) -> str:
        return f"{found[1]}{numbers.setdefault(found[2], f'c{len(numbers) + 1}')}"

    rows = []
    for rank in range(len(list(folder.glob("rank-*.txt")))):
        for row in lines(folder, rank):
            rows.append(re.sub(r"( comm=)(\d+)", number, MAKERS.sub(number, row)))
    return rows


# --- the same program, recorded by three libraries --------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "ranks"), sampled([(name, ranks) for name in NAMES for ranks in (2, 3, 4)], 11))
def test_native_and_smpi_recordings_have_the_same_communication(name: str, ranks: int, built: Callable[..., Path], tmp_path: Path) -> None:
    native = recorded(built(name, "mpich"), "mpich", ranks, "native")
    simulated = recorded(built(name, "smpi"), "smpi", ranks, "simulated")
    for result in (native, simulated):
        assert result.exit_code == 0
        assert not result.partial
        assert result.notes == []
        assert traces.unsupported_lines(result.trace) == []
    mine = communication(tmp_path / "native")
    assert mine == communication(tmp_path / "simulated")
    assert len(mine) >= 3 * ranks


@pytest.mark.parametrize("name", [*NAMES, "intercomm"])
@pytest.mark.exhaustive  # Open MPI
def test_mpich_and_open_mpi_recordings_have_the_same_communication(name: str, built: Callable[..., Path], tmp_path: Path) -> None:
    flags = () if name == "exchange" else ("-DCOLLECTIVES", "-DNEIGHBOURS")
    for family in ("mpich", "openmpi"):
        result = recorded(built(name, family, *flags), family, 4, family)
        assert (result.exit_code, result.partial, result.notes) == (0, False, [])
    assert communication(tmp_path / "mpich") == communication(tmp_path / "openmpi")


@pytest.mark.parametrize("family", ["mpich", "openmpi"])
def test_the_modern_fortran_interface_is_recorded_once(family: str, built: Callable[..., Path], tmp_path: Path) -> None:
    recorded(built("modern", family), family, 2, "t")
    assert lines(tmp_path / "t", 1) == [
        "1 init",
        "1 irecv 0 1 10 0 req=1",
        "1 isend 0 1 10 0 req=2",
        "1 waitall 2 reqs=1,2",
        "1 sendRecv 10 0 10 -555 0 0 stag=2 rtag=2 from=0 mtag=2",
        "1 comm_dup 1 0,1",
        "1 allreduce 10 0 0 comm=1",
        "1 comm_free comm=1",
        "1 finalize",
    ]


def test_a_source_file_is_compiled_for_smpi(tmp_path: Path) -> None:
    need("smpirun", "smpicc")
    result = record.record([str(PROGRAMS / "ring.c")], "t", use_smpi=True, ranks=3)
    assert result.ranks == 3
    assert not result.partial


# --- what the lines say -----------------------------------------------------------------------------------------------------


def test_a_ring_has_the_messages_of_a_ring(built: Callable[..., Path], tmp_path: Path) -> None:
    n = 4
    trace = recorded(built("ring", "mpich"), "mpich", n, "t").trace
    # three tokens of 4 B round the ring, 128 B and 64 B from everybody, 32 B along a line with open ends
    assert trace.ranks == n
    assert trace.bytes_sent == 3 * n * 4 + n * (128 + 64) + (n - 1) * 32
    assert "1 sendRecv 4 2 4 0 0 0 stag=1 rtag=1" in lines(tmp_path / "t", 1)
    assert "3 sendRecv 4 -666 4 2 0 0 stag=1 rtag=1" in lines(tmp_path / "t", 3)


def test_wildcards_carry_what_matched(built: Callable[..., Path], tmp_path: Path) -> None:
    recorded(built("wildcard", "mpich"), "mpich", 3, "t")
    mine = lines(tmp_path / "t", 0)
    assert mine[2] == "0 recv -555 -444 1 1 from=1 mtag=11"
    assert mine[4] == "0 probe -555 12 from=1 mtag=12"
    assert "0 waitall 2 reqs=1,2 from=1:1,2:1 mtag=1:13,2:15" in mine
    assert "0 wait -555 0 13 req=3 from=2 mtag=13" in mine
    assert "0 wait 2 0 -444 req=4 from=2 mtag=16" in mine


def test_derived_types_are_their_bytes(built: Callable[..., Path], tmp_path: Path) -> None:
    recorded(built("derived", "mpich"), "mpich", 2, "t")
    mine = lines(tmp_path / "t", 0)
    assert "0 send 1 1 80 6" in mine  # ten doubles
    assert "0 bcast 28 0 6" in mine  # an int and three doubles, without the gap


def test_parts_of_communicators_are_named(built: Callable[..., Path], tmp_path: Path) -> None:
    trace = recorded(built("rowcol", "mpich"), "mpich", 4, "t").trace
    groups = {tuple(trace.communicator(c["id"])["group"]) for c in trace.communicators()}
    mine = lines(tmp_path / "t", 3)
    assert any(re.fullmatch(r"3 comm_split \d+ 2,3", row) for row in mine)
    assert any(re.fullmatch(r"3 comm_split \d+ 3,1", row) for row in mine)  # in reverse order of rank
    assert "0 comm_split -1" in lines(tmp_path / "t", 0)
    assert groups == {(0, 1, 2, 3), (0, 1), (2, 3), (2, 0), (3, 1), (1, 2, 3), (0, 3), (0,), (1,), (2,), (3,)}


def test_computation_is_recorded_and_a_threshold_accumulates_it(built: Callable[..., Path], tmp_path: Path) -> None:
    def computed(folder: str) -> list[float]:
        rows = (tmp_path / folder / "rank-0.txt").read_text().splitlines()
        return [float(r.split()[2]) for r in rows if r.split()[1:2] == ["compute"]]

    program = built("halo", "mpich")
    need("mpiexec.mpich")
    command = ["mpiexec.mpich", "-n", "2", str(program)]
    record.record(command, "all", clock=record.Clock("cpu", 1e9, 0))
    record.record(command, "none", clock=record.Clock("cpu", 1e9, 10**15))
    record.record(command, "wall", clock=record.Clock("wall", 97e6, 1000))
    assert sum(computed("all")) > 5 * 200000 * 0.1  # five loops of 200000 dependent additions: none takes a tenth of a ns
    assert all(amount > 0 for amount in computed("all"))
    assert computed("none") == []
    assert computed("wall")
    header = (tmp_path / "wall" / "rank-0.txt").read_text().splitlines()[:9]
    assert any("clock: wall time, 97000000 flop/s" in row for row in header)


def test_counters_are_counted_or_refused_in_one_line(built: Callable[..., Path], retrompi: Callable[..., Outcome], tmp_path: Path) -> None:
    program = built("ring", "mpich")
    done = retrompi("trace", "record", "--clock", "instructions", "-o", "t", "--", "mpiexec.mpich", "-n", "2", str(program))
    if done.code == 0:
        assert "clock: instructions" in (tmp_path / "t" / "rank-0.txt").read_text()
    else:
        assert done.code == 2
        agrees(done, "cannot-record | --clock")
        assert done.err.count("\n") == 1


def test_the_header_has_no_folders_of_the_user(built: Callable[..., Path], tmp_path: Path) -> None:
    program = built("ring", "mpich")
    recorded(program, "mpich", 2, "t", "/home/somebody/input.dat", "--x=1")
    head = [r for r in (tmp_path / "t" / "rank-0.txt").read_text().splitlines() if r.startswith("#")]
    assert f"# command: mpiexec.mpich -n 2 {program.name} input.dat --x=1" in head
    for word in ("library: MPICH", "processor: ", "clock: cpu time, ", "mark about rate ", "overhead: ", "rank 0 of 2"):
        assert any(word in row for row in head), word


def test_a_recording_can_be_replayed(built: Callable[..., Path]) -> None:
    trace = recorded(built("halo", "mpich"), "mpich", 4, "t").trace
    result = simulate.run(Question("hpvm", "nt-cluster", Replay(trace)))
    assert result.outcome == "completed"


def test_one_file(built: Callable[..., Path], retrompi: Callable[..., Outcome], tmp_path: Path) -> None:
    program = built("ring", "mpich")
    need("mpiexec.mpich")
    done = retrompi("trace", "record", "--json", "-o", "t.tar.zst", "--", "mpiexec.mpich", "-n", "2", str(program))
    told = json.loads(done.out)
    assert (told["ranks"], told["partial"], told["exit_code"], len(told["per_rank"])) == (2, False, 0, 2)
    assert traces.read("t.tar.zst").ranks == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.tar.zst"]


# --- what is not in the format ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["mpich", "openmpi"])
@pytest.mark.parametrize(
    ("what", "reason"),
    [("io", "MPI-IO is not simulated"), ("threads", "several threads called MPI at once, so the order of the calls is lost")],
    ids=["io", "threads"],
)
def test_what_cannot_be_replayed_is_refused_with_its_line(family: str, what: str, reason: str, built: Callable[..., Path]) -> None:
    result = recorded(built("odd", family, "-pthread"), family, 2, "t", what)
    assert result.exit_code == 0
    assert any(reason in note and "rank-" in note for note in result.notes)
    assert any(entry[3] == reason for entry in traces.unsupported_lines(result.trace))


def test_a_cancelled_receive_is_taken_out(built: Callable[..., Path], tmp_path: Path) -> None:
    result = recorded(built("odd", "mpich", "-pthread"), "mpich", 2, "t", "cancel")
    assert lines(tmp_path / "t", 0) == ["0 init", "0 irecv 1 98 1 1 req=2", "0 send 1 98 1 1", "0 wait 1 0 98 req=2", "0 finalize"]
    assert any("MPI_Cancel" in note for note in result.notes)


def test_cancelled_requests_leave_lists_and_tests() -> None:
    rows = [
        "0 irecv -555 9 4 6 req=1",
        "0 irecv 1 8 4 6 req=2",
        "0 testany 2 reqs=1,2 done=none",
        "0 testany 1 reqs=1 done=none",
        "0 test -555 0 9 req=1 flag=0",
        "# cancelled req=1",
        "0 wait 1 0 8 req=2",
        "0 recvInit 1 3 4 6 req=3",
        "0 start 1 0 3 req=3",
        "# cancelled req=3",
        "0 start 1 0 3 req=3",
        "0 wait 1 0 3 req=3",
    ]
    assert list(without_cancelled([r + "\n" for r in rows])) == [
        r + "\n"
        for r in (
            "0 irecv 1 8 4 6 req=2",
            "0 testany 2 reqs=2 done=none",
            "0 wait 1 0 8 req=2",
            "0 recvInit 1 3 4 6 req=3",
            "0 start 1 0 3 req=3",
            "0 wait 1 0 3 req=3",
        )
    ]


def test_probed_messages_sleep_and_epochs(built: Callable[..., Path], tmp_path: Path) -> None:
    program = built("odd", "mpich", "-pthread")
    recorded(program, "mpich", 2, "probes", "mprobe")
    assert lines(tmp_path / "probes", 0)[1:3] == ["0 probe -555 5 from=1 mtag=5", "0 recv 1 5 1 1"]
    recorded(program, "mpich", 2, "sleeps", "sleep")
    assert lines(tmp_path / "sleeps", 1)[2:4] == ["1 sleep 0.020000000", "1 sleep 0.005000000"]
    recorded(program, "mpich", 2, "epochs", "epochs")
    words = [" ".join(row.split()[1:]) for row in lines(tmp_path / "epochs", 0)]
    assert words[2:7] == ["Win_post 1 win=1", "Win_start 1 win=1", "Put 1 0 8 0 win=1", "Win_complete win=1", "Win_wait win=1"]
    assert "Rput 1 0 1 0 win=1 req=1" in words


# --- programs that end badly ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["mpich", "openmpi"])
def test_a_killed_program_leaves_all_it_did(
    family: str, built: Callable[..., Path], retrompi: Callable[..., Outcome], tmp_path: Path
) -> None:
    need(f"mpiexec.{family}", f"mpicc.{family}")
    program = built("odd", family, "-pthread")
    done = retrompi("trace", "record", "-o", "t", "--", f"mpiexec.{family}", "-n", "2", str(program), "kill")
    assert done.code == 1
    assert "PARTIAL" in done.out
    assert re.search(r"rank 1 stopped after 501 calls", done.err)
    assert "the program failed with" in done.err
    # kill -9 after 501 barriers: every one of them is there
    assert lines(tmp_path / "t", 1) == ["1 init"] + ["1 barrier"] * 501
    assert (tmp_path / "t" / "rank-0.txt").read_text().splitlines()[-1].startswith("# partial: rank 0 ")
    assert traces.read("t").ranks == 2


@pytest.mark.parametrize(("how", "word"), [("abort", "called MPI_Abort"), ("segv", "stopped after 1 calls")])
def test_a_crash_is_told(how: str, word: str, built: Callable[..., Path], tmp_path: Path) -> None:
    result = recorded(built("odd", "mpich", "-pthread"), "mpich", 2, "t", how)
    assert result.partial
    assert result.exit_code not in (0, None)
    assert any("rank 1" in note and word in note for note in result.notes)
    assert lines(tmp_path / "t", 1) == ["1 init", "1 barrier"]


def test_a_failing_program_that_finalizes_is_whole(built: Callable[..., Path], retrompi: Callable[..., Outcome]) -> None:
    need("mpiexec.mpich")
    done = retrompi("trace", "record", "-o", "t", "--", "mpiexec.mpich", "-n", "2", str(built("odd", "mpich", "-pthread")), "three")
    assert done.code == 1
    assert "the program failed with exit code 3; its trace is kept" in done.err
    assert "PARTIAL" not in done.out


def test_a_recording_whose_command_line_was_killed_can_be_finished(
    built: Callable[..., Path], retrompi: Callable[..., Outcome], tmp_path: Path
) -> None:
    need("mpiexec.mpich")
    program = built("odd", "mpich", "-pthread")
    command = [sys.executable, "-c", "import sys; from retrompi.cli.main import main; main()", "trace", "record", "-o", "t", "--"]
    process = subprocess.Popen([*command, "mpiexec.mpich", "-n", "2", str(program), "hang"], start_new_session=True)
    states = [tmp_path / "t.part" / f"rank-{r}.state" for r in range(2)]
    for _ in range(1200):
        if all(s.exists() and b"MPI_Recv" in s.read_bytes() for s in states):
            break
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    again = retrompi("trace", "record", "-o", "t", "--", "mpiexec.mpich", "-n", "2", str(program), "three")
    assert again.code == 2
    agrees(again, "exists-already | --finish")
    done = retrompi("trace", "record", "--finish", "t.part")
    assert done.code == 1
    assert "stopped in MPI_Recv" in done.out
    assert traces.read("t").ranks == 2


# --- what is refused before a run -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "missing-option"),
        (("--", "mpiexec.nosuch", "-n", "2", "true"), "missing-tool"),
        (("--", "./nosuch"), "not-found"),
        (("--smpi", "--", "./nosuch"), "bad-usage"),
        (("--smpi", "-n", "2", "--", "./nosuch"), "not-found"),
        (("--smpi", "-n", "2", "--", "nosuch.c"), "not-found"),
        (("-n", "2", "--", "true"), "bad-usage | --smpi"),
        (("--rate", "3 apples", "--", "true"), "bad-unit"),
        (("--mpicc", "nosuchcc", "--", "true"), "cannot-record | --mpicc"),
        (("--finish", ".", "--", "true"), "unused-option | --finish"),
    ],
)
def test_errors_are_one_line(arguments: tuple[str, ...], message: str, retrompi: Callable[..., Outcome]) -> None:
    done = retrompi("trace", "record", "-o", "t", *arguments)
    assert done.code == 2
    agrees(done, message)
    assert done.err.count("\n") == 1
    assert not Path("t.part").exists()


def test_a_missing_compiler_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with refused(record.RecordError, "missing-tool | apt-get | libmpich-dev"):
        find_compiler("mpich")
    with refused(record.RecordError, "missing-tool | apt-get | libsimgrid-dev"):
        find_compiler("smpi")


def test_a_program_without_mpi_is_told(retrompi: Callable[..., Outcome]) -> None:
    need("mpiexec.mpich", "mpicc.mpich")
    done = retrompi("trace", "record", "-o", "t", "--", "mpiexec.mpich", "-n", "2", "true")
    assert done.code == 2
    agrees(done, "wrong-mpi | MPI_Init")
    assert not Path("t").exists()
    assert not Path("t.part").exists()


@pytest.mark.exhaustive  # Open MPI
def test_mixed_libraries_are_refused(built: Callable[..., Path]) -> None:
    need("mpiexec.mpich", "mpiexec.openmpi", "smpicc")
    with refused(record.RecordError, "wrong-mpi | openmpi | mpich"):
        record.record(["mpiexec.mpich", "-n", "2", str(built("ring", "openmpi"))], "t")
    with refused(record.RecordError, "wrong-mpi | smpicc"):
        record.record(["mpiexec.mpich", "-n", "2", str(built("ring", "smpi"))], "t")
    with refused(record.RecordError, "wrong-mpi | smpicc"):
        record.record([str(built("ring", "mpich"))], "t", use_smpi=True, ranks=2)


def test_nothing_is_written_over(built: Callable[..., Path], retrompi: Callable[..., Outcome]) -> None:
    Path("t").mkdir()
    done = retrompi("trace", "record", "-o", "t", "--", "true")
    assert done.code == 2
    agrees(done, "exists-already")


def test_the_library_is_compiled_once() -> None:
    need("mpicc.mpich")
    compiler = find_compiler("mpich")
    first = library(compiler)
    made = first.stat().st_mtime_ns
    assert library(compiler) == first
    assert first.stat().st_mtime_ns == made


# --- Python -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["mpich", "openmpi"])
def test_mpi4py_programs_are_recorded(family: str, tmp_path: Path) -> None:
    need(f"mpiexec.{family}", f"mpicc.{family}")
    found = subprocess.run([sys.executable, "-c", "import mpi4py.MPI as m; print(m.Get_library_version())"], capture_output=True, text=True)
    if found.returncode != 0:
        pytest.skip("mpi4py not installed")
    if ("MPICH" in found.stdout) != (family == "mpich"):
        pytest.skip(f"mpi4py here is not {family}'s")
    script = tmp_path / "program.py"
    script.write_text(
        "from mpi4py import MPI\nimport array\nc = MPI.COMM_WORLD\na = array.array('d', [1.0] * 50)\n"
        "if c.rank == 0:\n    c.Send(a, dest=1, tag=4)\nelse:\n    c.Recv(a, source=0, tag=4)\nc.Barrier()\n"
    )
    record.record([f"mpiexec.{family}", "-n", "2", sys.executable, str(script)], "t")
    assert lines(tmp_path / "t", 0) == ["0 init", "0 send 1 4 50 0", "0 barrier", "0 finalize"]
    assert lines(tmp_path / "t", 1) == ["1 init", "1 recv 0 4 50 0", "1 barrier", "1 finalize"]


GROUPS = """
#include <mpi.h>
int main(int argc, char **argv) {
  int rank, sets[3][4] = {{2, 0, 1}, {2, 0, 2}, {3, 0, 1, 2}};
  MPI_Group world, group;
  MPI_Comm comm;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  for (int k = 0; k < 3; k++) {
    int in = 0;
    for (int i = 1; i <= sets[k][0]; i++) in |= sets[k][i] == rank;
    if (!in) continue;
    MPI_Group_incl(world, sets[k][0], &sets[k][1], &group);
    MPI_Comm_create_group(MPI_COMM_WORLD, group, 0, &comm);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
  }
  for (int k = 0; k < 2000; k++) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_free(&comm);
  }
  MPI_Finalize();
  return 0;
}
"""


@pytest.mark.parametrize("family", ["mpich", "smpi"])
def test_groups_that_begin_with_the_same_rank_are_told_apart(family: str, tmp_path: Path) -> None:
    source = tmp_path / "groups_apart.c"
    source.write_text(GROUPS)
    if family == "smpi":
        need("smpirun", "smpicc")
        record.record([str(source)], str(tmp_path / "t"), use_smpi=True, ranks=3)
    else:
        need("mpiexec.mpich", "mpicc.mpich")
        program = tmp_path / "groups_apart"
        subprocess.run(["mpicc.mpich", str(source), "-o", str(program)], check=True)
        record.record(["mpiexec.mpich", "-n", "3", str(program)], str(tmp_path / "t"))
    trace = traces.read(tmp_path / "t")
    assert trace.unsupported() == []
    made = trace.communicators()
    assert len(made) == 1 + 3 + 2000
    assert sorted(c["size"] for c in made if c["made_by"] == "comm_create_group") == [2, 2, 3]
