"""Running a program natively and on a model: building, repeating, outcomes, profiles, the store.

No test asks how long anything took. Those that need an MPI skip, with the reason, where it is missing.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Outcome, need
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from retrompi import traces
from retrompi.base.errors import UsageError
from retrompi.measure import launch, record
from retrompi.measure.launch import (
    CallProfile,
    Execution,
    NativeMachine,
    backend_model,
    build,
    executions,
    machine_load,
    mpi_job,
    mpiexec,
    profile,
    stats,
)
from retrompi.measure.record.run import Launcher
from retrompi.sim import simulate
from retrompi.sim.observe import Observe
from retrompi.spec.declare.calls import function_of
from retrompi.spec.question import Question, Replay, pingpong
from retrompi.store import Store, open_store
from retrompi.store.lookup import answer

pytestmark = pytest.mark.usefixtures("here")

PROGRAMS = Path(__file__).parent / "data" / "programs"
SECTIONS = PROGRAMS / "sections.c"
FAMILIES = ("mpich", "openmpi")


def need_mpi(family: str) -> None:
    need(f"mpicc.{family}", f"mpiexec.{family}")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "runs.db")


# --- statistics -------------------------------------------------------------------------------------------------------------

TIMES = st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=40)
SHARES = st.floats(0, 1)


@given(TIMES, SHARES, SHARES)
def test_quantiles_grow_and_stay_within_the_samples(samples: list[float], a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert min(samples) <= stats.quantile(samples, low) <= stats.quantile(samples, high) <= max(samples)


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=40))
def test_quartiles_are_those_of_the_standard_library(samples: list[int]) -> None:
    ours = [stats.quantile(samples, q) for q in (0.25, 0.5, 0.75)]
    assert ours == pytest.approx(statistics.quantiles(samples, n=4, method="inclusive"), rel=1e-12)


@given(TIMES, st.floats(1e-3, 1e3), st.randoms(use_true_random=False))
def test_quantiles_know_no_order_and_scale_with_the_unit(samples: list[float], factor: float, chance: object) -> None:
    mixed = samples.copy()
    chance.shuffle(mixed)  # type: ignore[attr-defined]
    assert stats.summary(mixed) == stats.summary(samples)
    scaled = [s * factor for s in samples]
    assert stats.spread(scaled) == pytest.approx(stats.spread(samples), rel=1e-6, abs=1e-9)
    assert stats.quantile(scaled, 0.5) == pytest.approx(stats.quantile(samples, 0.5) * factor, rel=1e-9)


def test_quantiles_of_nothing_and_of_no_share_are_refused() -> None:
    with refused(UsageError, "out-of-range"):
        stats.quantile([], 0.5)
    with refused(UsageError, "out-of-range"):
        stats.quantile([1.0], 1.5)


@given(TIMES, TIMES, SHARES, st.floats(0, 10))
def test_a_machine_is_loaded_exactly_when_something_was_taken_from_it(
    samples: list[float], probes: list[float], stolen: float, waiting: float
) -> None:
    noise = stats.judge_noise(samples, probes, stolen, waiting, 0.0, [45.0, 46.0])
    slow = stats.quantile(probes, 0.5) / min(probes) - 1 >= stats.BUSY_PROBE
    assert noise.loaded == (slow or stolen >= stats.BUSY_STOLEN or waiting >= stats.BUSY_WAITING)
    assert bool(noise.why) == (noise.loaded or noise.spread >= stats.NOISY_SPREAD)


def test_processors_that_were_moved_are_told_from_a_busy_machine() -> None:
    noise = stats.judge_noise([1.0, 1.0], [1.0], 0.0, 0.0, 0.0, [45.0, 200.0])
    assert not noise.loaded
    assert noise.why == "a cache line between two cores took 45 ns before and 200 ns after: they were moved"
    longest = [45.0, 45.0 * stats.MOVED]
    assert "were moved" in stats.judge_noise([1.0, 1.0], [1.0], 0.0, 0.0, 0.0, longest).why
    assert not stats.judge_noise([1.0, 1.0], [1.0], 0.0, 0.0, 0.0, [longest[0], 0.99 * longest[1]]).why


# --- profiles ---------------------------------------------------------------------------------------------------------------


def test_sections_are_those_of_the_slowest_rank_by_occurrence(tmp_path: Path) -> None:
    lines = {
        0: ["section 8 2 2000000000000", "section 8 2 4000000000000", "section 1 1 5"],
        1: ["section 8 2 6000000000000", "section 8 2 1000000000000", "section 1 1 3"],
    }
    for rank, sections in lines.items():
        text = ["retrompi profile 1", f"rank {rank} 2", "how finalized", f"time {rank + 1}000000000000", *sections]
        (tmp_path / f"rank-{rank}.profile").write_text("\n".join(text) + "\n")
    (tmp_path / "rank-7.profile").write_text("retrompi pro")  # killed while it wrote
    read = profile.read(tmp_path)
    assert [p.rank for p in read] == [0, 1]
    assert profile.elapsed_seconds(read) == 2.0
    assert profile.sections(read) == ({"8": [3.0, 2.0], "1": [5e-12]}, {"8": 2, "1": 1})


def test_names_of_libraries_and_of_calls() -> None:
    assert profile.library_name("MPICH Version:\t4.0.2 MPICH Release date: Thu Apr  7") == "MPICH 4.0.2"
    assert profile.library_name("Open MPI v4.1.4, package: Debian OpenMPI") == "Open MPI 4.1.4"
    names = {
        "send": "MPI_Send",
        "ISsend": "MPI_Issend",
        "waitAny": "MPI_Waitany",
        "reducescatter": "MPI_Reduce_scatter",
        "Rput": "MPI_Rput",
    }
    assert {a: function_of(a) for a in names} == names


def table(calls: list[CallProfile], *, timing: bool) -> Counter[tuple[str, int, str]]:
    """Calls by name, size and section. Without ``timing`` those whose number hangs on when messages come are left out, and such as the
    trace has under another name or in another number (a wait for what was complete before)."""
    skip = () if timing else ("MPI_Wait", "MPI_Test", "MPI_Iprobe", "MPI_Probe", "MPI_Improbe", "MPI_Mprobe", "MPI_Request_")
    out: Counter[tuple[str, int, str]] = Counter()
    for c in calls:
        if not c.call.startswith(skip or ("-",)):
            out[c.call.replace("_replace", ""), c.size_B, c.section] += c.count
    return out


@pytest.mark.parametrize("family", [*FAMILIES, "smpi"])
@pytest.mark.parametrize("name", ["sections", "collectives", "nonblocking", "persistent", "rowcol", "onesided"])
def test_the_recorders_profile_is_that_of_the_replay_of_the_trace_it_recorded(
    name: str, family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if family == "smpi":
        need("smpicc", "smpirun")
    else:
        need_mpi(family)
    ranks = 2
    built = build.build(str(PROGRAMS / f"{name}.c"), family)
    folder = tmp_path / "profiles"
    folder.mkdir()
    monkeypatch.setenv("RETROMPI_PROFILE_DIR", str(folder))
    smpi = family == "smpi"
    words = built.command if smpi else mpiexec.command_line(mpiexec.find_mpiexec(family), ranks, built.command, ranks)
    done = record.record(list(words), tmp_path / "trace", use_smpi=smpi, ranks=ranks if smpi else None)
    assert done.exit_code == 0
    seen = profile.calls(profile.read(folder))
    result = simulate.run(Question("craympt", "cray-j90", Replay(traces.read(tmp_path / "trace")), "shared"), Observe(profile=True))
    assert result.outcome == "completed"
    replayed = profile.calls(profile.of_replay(result.marks, result.profile, ranks))
    timing = name in ("sections", "collectives", "rowcol")
    told, again = table(seen, timing=timing), table(replayed, timing=timing)
    renamed = {"MPI_Win_allocate": "MPI_Win_create"}
    told = Counter({(renamed.get(c, c), s, label): n for (c, s, label), n in told.items()})
    assert told == again
    assert all(c.bytes == c.size_B * c.count and c.seconds >= 0 for c in (*seen, *replayed))


NOTHING = """#include <mpi.h>
int main(int argc, char** argv) {
  int me, at, x = 0, y[2];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Request q[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
  MPI_Waitany(2, q, &at, MPI_STATUS_IGNORE);
  MPI_Wait(q, MPI_STATUS_IGNORE);
  MPI_Sendrecv(&x, 1, MPI_INT, 0, 1, y, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  MPI_Irecv(y, 2, MPI_INT, 1 - me, 2, MPI_COMM_WORLD, q);
  MPI_Isend(&me, 1, MPI_INT, 1 - me, 2, MPI_COMM_WORLD, q + 1);
  MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
  MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
  MPI_Comm alone;
  MPI_Group all, one;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 1, &me, &one);
  MPI_Comm_create_group(MPI_COMM_WORLD, one, me, &alone);
  MPI_Barrier(alone);
  MPI_Finalize();
}
"""


@pytest.mark.parametrize("family", ["mpich", "smpi"])
def test_calls_that_complete_nothing_are_counted_by_neither(family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is MPI_COMM_SELF a call, which a trace makes where it is first used: all rows are those of the replay."""
    if family == "smpi":
        need("smpicc", "smpirun")
    else:
        need_mpi(family)
    source = tmp_path / "nothing.c"
    source.write_text(NOTHING)
    built = build.build(str(source), family)
    folder = tmp_path / "profiles"
    folder.mkdir()
    monkeypatch.setenv("RETROMPI_PROFILE_DIR", str(folder))
    smpi = family == "smpi"
    words = built.command if smpi else mpiexec.command_line(mpiexec.find_mpiexec(family), 2, built.command, 2)
    record.record(list(words), tmp_path / "trace", use_smpi=smpi, ranks=2 if smpi else None)
    result = simulate.run(Question("craympt", "cray-j90", Replay(traces.read(tmp_path / "trace")), "shared"), Observe(profile=True))
    told = {(c.call, c.size_B): c.count for c in profile.calls(profile.read(folder))}
    assert told == {(c.call, c.size_B): c.count for c in profile.calls(profile.of_replay(result.marks, result.profile, 2))}
    assert told["MPI_Waitall", 0] == 2
    assert "MPI_Comm_create_group" not in {call for call, _ in told}


def test_a_profile_changes_no_time_of_a_replay() -> None:
    from retrompi.traces import generate

    trace = generate.alltoall(4, 1000)
    plain, profiled = (simulate.run(Question("wmpi", "nt-pair", Replay(trace)), Observe(profile=p)) for p in (False, True))
    assert (plain.time_ps, plain.per_rank, plain.marks, plain.events) == (
        profiled.time_ps,
        profiled.per_rank,
        profiled.marks,
        profiled.events,
    )
    assert plain.profile == {}
    inside = sum(ps for *_, ps in profiled.profile["calls"]) * 1e-12
    assert inside == pytest.approx(sum(r["mpi_s"] for r in profiled.per_rank), rel=1e-6)


# --- building ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_a_source_is_compiled_once_and_again_when_its_header_changes(family: str, tmp_path: Path) -> None:
    need_mpi(family)
    (tmp_path / "a.h").write_text("#define CODE 0\n")
    source = tmp_path / "a.c"
    source.write_text('#include "a.h"\n#include <mpi.h>\nint main(int c, char **v) { MPI_Init(&c, &v); MPI_Finalize(); return CODE; }\n')
    first = build.build(str(source), family)
    made = Path(first.command[0]).stat().st_mtime_ns
    assert first.family == family
    assert build.build(str(source), family) == first
    assert Path(first.command[0]).stat().st_mtime_ns == made
    (tmp_path / "a.h").write_text("#define CODE 3\n")
    assert build.build(str(source), family).digest != first.digest


ERRORS = {
    "a.c": ("#include <mpi.h>\nint main(void) {\n  return nothing;\n}\n", r"a\.c:3: .*nothing.*\(mpicc"),
    "a.cpp": ("#include <mpi.h>\nint main() {\n  return nothing;\n}\n", r"a\.cpp:3: .*nothing.*\(mpicxx"),
    "a.f90": ("program a\n  use mpi\n  implicit none\n  nothing = 1\nend program\n", r"a\.f90:4: .*nothing.*\(mpif90"),
    "b.c": ("int nothing(void);\nint main(void) { return nothing(); }\n", r"b\.c does not compile: .*nothing"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_the_compilers_first_error_is_one_line_with_its_place(name: str, tmp_path: Path, retrompi: Callable[..., Outcome]) -> None:
    need_mpi("mpich")
    if name.endswith("f90"):
        need("gfortran")
    text, expected = ERRORS[name]
    (tmp_path / name).write_text(text)
    got = retrompi("run", "-b", "native", "--mpi", "mpich", name)
    assert got.code == 2
    assert got.err.count("\n") == 1
    assert re.search(expected, got.err), got.err


def test_a_missing_tool_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for family, package in (("mpich", "libmpich-dev"), ("openmpi", "libopenmpi-dev"), ("smpi", "libsimgrid-dev")):
        with refused(launch.BackendError, f"missing-tool | {package}"):
            build.build(str(SECTIONS), family)
    for family, package in (("mpich", "mpich"), ("openmpi", "openmpi-bin")):
        with refused(launch.BackendError, f"missing-tool | {package}"):
            mpiexec.find_mpiexec(family)


def test_what_cannot_run_is_refused_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("from mpi4py import MPI\n")
    cases = [
        (("nothing.c", None), UsageError, "not-found | nothing.c"),
        (("nothing", None), UsageError, "not-found | nothing"),
        (("nothing.c", "mpihc"), UsageError, "unknown-name | 'mpich'"),
        (("/bin/sh", None), launch.BackendError, "wrong-mpi"),
        (("x.py", "smpi"), launch.BackendError, "cannot-launch | x.py | SMPI"),
    ]
    for arguments, error, said in cases:
        with refused(error, said):
            build.build(*arguments)


def test_a_binary_is_run_by_the_mpi_that_it_links() -> None:
    for family in FAMILIES:
        need_mpi(family)
    made = {f: build.build(str(SECTIONS), f).command[0] for f in FAMILIES}
    assert {f: build.build(p).family for f, p in made.items()} == dict(zip(FAMILIES, FAMILIES, strict=True))
    with refused(launch.BackendError, "wrong-mpi | MPICH | Open MPI"):
        build.build(made["mpich"], "openmpi")
    with refused(launch.BackendError, "wrong-mpi"):
        build.build(made["mpich"], "smpi")


def test_ranks_are_bound_where_they_fit() -> None:
    hydra, orte = Launcher("/usr/bin/mpiexec.hydra", "hydra"), Launcher("/usr/bin/orterun", "openmpi")
    for launcher, option in ((hydra, "-bind-to"), (orte, "--bind-to")):
        fits, half, over = (mpiexec.command_line(launcher, n, ["./a"], 2, 4) for n in (2, 3, 5))
        assert fits[fits.index(option) + 1] == "core"
        assert half[half.index(option) + 1] == "hwthread"
        assert over[over.index(option) + 1] == "none"
        assert fits[-3:] == ["-n", "2", "./a"]


def test_threads_of_a_core_are_not_cores(tmp_path: Path) -> None:
    for processor, siblings in enumerate(("0,2", "1,3", "0,2", "1,3")):
        (tmp_path / f"cpu{processor}" / "topology").mkdir(parents=True)
        (tmp_path / f"cpu{processor}" / "topology" / "thread_siblings_list").write_text(siblings + "\n")
    assert [mpi_job.whole_cores(allowed, tmp_path) for allowed in ([0, 1, 2, 3], [0, 2], [1, 2], [7, 8])] == [2, 1, 2, 2]


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e6))
def test_what_went_elsewhere_is_a_share(total: float, busy: float, steal: float, ours: float) -> None:
    zero = machine_load.CpuTimes(0.0, 0.0, 0.0, 0.0)
    share = machine_load.elsewhere(zero, machine_load.CpuTimes(total, busy, steal, ours))
    assert 0 <= share <= 1
    if total >= 0.5 and busy <= ours:
        assert share == pytest.approx(min(steal / total, 1))


def test_the_machine_is_looked_at_without_changing_where_we_run() -> None:
    before = mpi_job.cores()
    assert len(machine_load.probe()) % len(before) == 0
    assert mpi_job.cores() == before
    here = machine_load.machine()
    assert here.cores == len(before)
    assert here.cpu
    first, second = machine_load.CpuTimes.now(), machine_load.CpuTimes.now()
    assert second.total >= first.total
    assert second.ours >= first.ours


# --- natively ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_a_measurement_has_every_repetition_and_the_programs_sections(family: str, store: Store) -> None:
    need_mpi(family)
    told: list[str] = []
    done = launch.run(
        store, "native", str(SECTIONS), (), 2, mpi=family, repetitions=3, report=lambda _done, _total, what: told.append(what)
    )
    assert done.completed, done.detail
    assert told == ["profile", "warm-up 1", "repetition 1", "repetition 2", "repetition 3"]
    assert done.mpi.startswith(mpiexec.TITLES[family])
    assert done.output == "sum 1\n"
    assert len(done.samples_s) == 3
    assert {k: len(v) for k, v in done.sections.items()} == {"0": 3, "8": 3, "1000": 3, "100000": 3}
    assert set(done.parts.values()) == {40}
    assert all(0 < part * 40 < whole for whole, part in zip(done.samples_s, done.sections["8"], strict=True))
    counts = table(done.calls, timing=True)
    assert counts["MPI_Send", 1000, "1000"] == counts["MPI_Recv", 1000, "1000"] == 40
    assert counts["MPI_Allreduce", 8, ""] == 2
    assert counts["MPI_Barrier", 0, ""] == 8
    assert done.noise is not None
    assert done.machine is not None
    assert done.machine.cores == len(mpi_job.cores())
    assert done.mode == ("pinned" if done.machine.cores >= 2 else "oversubscribed")
    assert launch.load(store, done.run_id or 0) == done
    row = store.run(done.run_id or 0)
    assert (row["kind"], row["model"], row["outcome"]) == ("native", done.mpi, "completed")
    assert row["time_s"] == statistics.median(done.samples_s)
    points = store.points(done.run_id or 0)
    assert [p["size_B"] for p in points] == [0, 8, 1000, 100000]
    assert points[2]["time_us"] == statistics.median(done.sections["1000"]) * 1e6
    again = launch.run(store, "native", str(SECTIONS), (), 2, mpi=family, repetitions=1, warmup=0, profile=False)
    assert again.run_id != done.run_id
    assert again.calls == []


def test_more_ranks_than_cores_are_said_to_compare_with_nothing(store: Store) -> None:
    need_mpi("mpich")
    ranks = len(mpi_job.cores()) + 1
    done = launch.run(store, "native", str(SECTIONS), (), ranks, mpi="mpich", repetitions=1, warmup=0, profile=False)
    assert done.completed, done.detail
    assert done.mode == "oversubscribed"
    assert any(n.startswith("oversubscribed:") and "compare with no model" in n for n in done.notes)


def left(program: str) -> list[int]:
    """Living processes whose command line names ``program``, but for our own."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words and words[0].decode(errors="replace").endswith(program):
            found.append(int(entry.name))
    return found


OUTCOMES = {
    "hang": ("timeout", r"not finished after 1 s: rank . stopped in MPI_Recv, rank . stopped in MPI_Recv"),
    "kill": ("killed", "SIGKILL"),
    "abort": ("aborted", "MPI_Abort, exit code 5"),
    "fail": ("failed", "exit code 7"),
}


@pytest.mark.parametrize(("family", "how"), [*(("mpich", how) for how in OUTCOMES), ("openmpi", "hang"), ("openmpi", "kill")])
def test_however_a_program_ends_it_is_an_outcome_and_nothing_is_left(family: str, how: str, store: Store, tmp_path: Path) -> None:
    need_mpi(family)
    source = tmp_path / f"ends_{family}_{how}_{os.getpid()}.c"  # a name of its own, to be found among the processes of all who test
    shutil.copy(SECTIONS, source)
    done = launch.run(store, "native", str(source), [how], 2, mpi=family, repetitions=1, timeout_s=1.0 if how == "hang" else 60.0)
    outcome, said = OUTCOMES[how]
    assert done.outcome == outcome
    assert re.search(said, done.detail), done.detail
    assert done.samples_s == []
    assert left(source.stem) == []
    assert store.run(done.run_id or 0)["outcome"] == outcome


@pytest.mark.parametrize(("family", "number"), [("mpich", signal.SIGINT), ("mpich", signal.SIGKILL), ("openmpi", signal.SIGTERM)])
def test_who_is_interrupted_leaves_nothing_running(family: str, number: signal.Signals, tmp_path: Path) -> None:
    need_mpi(family)
    source = tmp_path / f"left_{family}_{number.name}_{os.getpid()}.c"
    shutil.copy(SECTIONS, source)
    words = [
        sys.executable,
        "-m",
        "retrompi.cli.main",
        "--store",
        "s.db",
        "run",
        "-b",
        "native",
        "--mpi",
        family,
        source.name,
        "--",
        "hang",
    ]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 300
    while len(left(source.stem)) < 2 and time.monotonic() < until:
        time.sleep(0.02)
    assert len(left(source.stem)) >= 2
    process.send_signal(number)
    _, err = process.communicate(timeout=300)
    until = time.monotonic() + 300  # after SIGKILL it is the launcher that ends its ranks
    while left(source.stem) and time.monotonic() < until:
        time.sleep(0.02)
    assert left(source.stem) == []
    if number != signal.SIGKILL:
        assert process.returncode == 130
        assert err.splitlines()[-1] == "error: interrupted"


def test_an_mpi_of_no_program_is_no_measurement(tmp_path: Path, store: Store) -> None:
    need_mpi("mpich")
    (tmp_path / "no.c").write_text("#include <mpi.h>\nint main(void) { int flag; MPI_Initialized(&flag); return 0; }\n")
    with refused(launch.BackendError, "wrong-mpi | MPI_Init"):
        launch.run(store, "native", "no.c", (), 2, mpi="mpich", repetitions=1)


# --- on a model -------------------------------------------------------------------------------------------------------------


def test_a_trace_is_recorded_once_and_replayed_at_every_rung(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    need_mpi("mpich")
    options = {"model": "wmpi", "platform": "nt-pair", "mode": "shared", "mpi": "mpich"}
    first = launch.run(store, "model", str(SECTIONS), (), 2, **options)
    assert first.completed, first.detail
    assert not first.found
    assert first.output == "sum 1\n"
    assert (first.exit_code, first.fidelity, first.mode) == (0, "mechanism", "shared")
    assert first.parts == {"0": 40, "8": 40, "1000": 40, "100000": 40}
    assert len(first.samples_s) == 1
    assert sum(v[0] * 40 for v in first.sections.values()) < first.samples_s[0]

    def never(*_args: object, **_options: object) -> None:
        raise AssertionError("recorded again")

    monkeypatch.setattr(backend_model, "record", never)
    monkeypatch.setattr(machine_load, "waiting", lambda: 9.0)  # a busy machine's trace is recorded anew on one that is not
    again = launch.run(store, "model", str(SECTIONS), (), 2, **options)
    assert again.found
    assert replace(again, found=False) == first
    curve = launch.run(store, "model", str(SECTIONS), (), 2, **options, fidelity="curve")
    assert curve.sections["1000"][0] == pytest.approx(first.sections["1000"][0], rel=0.05)
    assert table(curve.calls, timing=True) == table(first.calls, timing=True)
    given = launch.run(store, "model", str(SECTIONS), (), 2, **options, trace=first.trace)
    assert given.samples_s == first.samples_s
    with refused(UsageError, "wrong-ranks"):
        launch.run(store, "model", str(SECTIONS), (), 3, **options, trace=first.trace)


def test_a_programs_sections_are_the_generators_curve(store: Store, tmp_path: Path) -> None:
    """The same PingPong as a program, without what it computes between its calls, and as a generated trace."""
    need_mpi("mpich")

    options = {"model": "wmpi", "platform": "nt-pair", "mode": "shared", "mpi": "mpich"}
    kept = Path(launch.run(store, "model", str(SECTIONS), (), 2, **options).trace)
    idle = shutil.copytree(kept, tmp_path / "idle")
    for file in idle.glob("rank-*.txt"):
        file.write_text("".join(row for row in file.read_text().splitlines(keepends=True) if " compute " not in row))
    done = launch.run(store, "model", str(SECTIONS), (), 2, **options, trace=str(idle))
    for point in answer(store, Question("wmpi", "nt-pair", pingpong([8, 1000, 100000], reps=20), "shared")).rows:
        # Of 20 round trips the first one begins while the barrier before it is still being answered.
        assert done.sections[str(point["size_B"])][0] * 1e6 == pytest.approx(point["time_us"], rel=0.05)


def test_a_program_that_fails_while_recorded_is_an_outcome(store: Store) -> None:
    need_mpi("mpich")
    for how, said in (("fail", "exit code 7"), ("kill", "SIGKILL"), ("hang", "not finished after 1 s: rank")):
        done = launch.run(store, "model", str(SECTIONS), [how], 2, model="wmpi", mpi="mpich", recording_limit_s=1.0)
        assert done.outcome == "failed"
        assert said in done.detail
        assert store.run(done.run_id or 0)["outcome"] == "failed"


def test_what_works_here_may_deadlock_on_a_model(retrompi: Callable[..., Outcome]) -> None:
    need_mpi("mpich")
    words = ("run", "-b", "model", "--mpi", "mpich", str(SECTIONS))
    fine = retrompi("--store", "s.db", *words, "-m", "wmpi", "--", "cross")
    assert fine.code == 0, fine.err
    stuck = retrompi("--store", "s.db", *words, "-m", "mpibip", "-p", "myrinet-piii", "--", "cross")
    assert stuck.code == 1
    assert "deadlock" in stuck.err
    assert re.search(r"\(rank-0\.txt:\d+ send to 1 tag 8 8000 B\) -> rank 1", stuck.err), stuck.err


def test_the_trace_of_a_busy_machine_is_recorded_anew_when_it_rests(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    need_mpi("mpich")
    if len(mpi_job.cores()) < 2:
        pytest.skip("computation is measured by CPU time: ranks share a core")
    monkeypatch.setattr(machine_load, "elsewhere", lambda before, after: 0.0)

    def at(waiting: float) -> tuple[Execution, bool]:
        made: list[object] = []
        real = record.record
        monkeypatch.setattr(machine_load, "waiting", lambda: waiting)
        monkeypatch.setattr(backend_model, "record", lambda *words, **options: made.append(words) or real(*words, **options))
        done = launch.run(store, "model", str(SECTIONS), ["busy"], 2, model="wmpi", mode="shared", mpi="mpich", fidelity="loggp")
        return done, bool(made)

    busy, first = at(4.0)
    _, again = at(4.0)
    rested, anew = at(0.0)
    _, last = at(0.0)
    assert (first, again, anew, last) == (True, False, True, False)
    assert any("this machine was busy then (4.0 other processes wanted a core)" in n for n in busy.notes)
    assert not any("busy" in n for n in rested.notes)


# --- storing and telling ----------------------------------------------------------------------------------------------------

AN_EXECUTION = Execution(
    "native", "a.c", ["1"], 2, "MPICH 4.0.2", NativeMachine("host", "cpu", 2, 0.0), mode="pinned", exit_code=0, output="x" * 10, wall_s=1.5,
    samples_s=[1.0, 3.0, 2.0], sections={"8": [2e-6, 1e-6]}, parts={"8": 4}, calls=[CallProfile("MPI_Send", 8, "8", 3, 0.5, 24)],
    profile_s=1.2, noise=stats.judge_noise([1.0, 3.0, 2.0], [1.0, 1.1], 0.0, 0.0, 0.1), notes=["the times scatter"],
)


def test_an_execution_comes_back_from_the_store(store: Store) -> None:
    kept = executions.save(store, executions.measured_spec(AN_EXECUTION, "abc"), AN_EXECUTION)
    assert launch.load(store, kept.run_id or 0) == kept
    assert store.points(kept.run_id or 0) == [{"size_B": 8, "time_us": 1.5, "bandwidth_MBps": 8 / 1.5, "repetitions": 4}]
    other = store.add_run(replace(executions.measured_spec(AN_EXECUTION, "abc"), kind="pingpong"), {})
    with refused(UsageError, "wrong-kind"):
        launch.load(store, other)


def test_the_command_line_prints_times_sections_and_calls(retrompi: Callable[..., Outcome]) -> None:
    need_mpi("mpich")
    words = ("run", "-b", "native", "--mpi", "mpich", "-r", "2", str(SECTIONS))
    plain = retrompi("--store", "s.db", *words)
    assert plain.code == 0
    assert plain.out.startswith("sum 1\n")
    assert "2 repetitions" in plain.out
    assert "MPI_Allreduce" in plain.out
    once = ("run", "-b", "native", "--mpi", "mpich", "-r", "1", "--warm-up", "0", str(SECTIONS))
    told = json.loads(retrompi("--store", "s.db", *once, "--json").out)
    assert told["summary"]["n"] == 1
    assert [s["section"] for s in told["section_summaries"]] == ["0", "8", "1000", "100000"]
    rows = retrompi("--store", "s.db", *once, "--csv").out.splitlines()
    assert len(rows) == 6
    assert rows[0].startswith("backend,program,ranks,mpi")
    listed = json.loads(retrompi("--store", "s.db", "runs", "list", "--kind", "native", "--json").out)
    assert len(listed) == 3
    shown = retrompi("--store", "s.db", "runs", "show", str(listed[-1]["id"]), "--part", "points", "--json")
    assert [p["size_B"] for p in json.loads(shown.out)] == [0, 8, 1000, 100000]


def test_a_failed_program_ends_the_command_with_one(retrompi: Callable[..., Outcome]) -> None:
    need_mpi("mpich")
    got = retrompi("--store", "s.db", "run", "-b", "native", "--mpi", "mpich", str(SECTIONS), "--", "fail")
    assert got.code == 1
    assert got.err.splitlines()[-1].startswith("failed: exit code 7")


def test_options_that_a_backend_does_not_read_are_refused(retrompi: Callable[..., Outcome]) -> None:
    for words, said in (
        (("-b", "native", "--model", "wmpi", "a.c"), "--model does not apply to --backend native"),
        (("-b", "model", "-m", "wmpi", "--repetitions", "3", "a.c"), "--repetitions does not apply to --backend model"),
        (("-b", "smpi", "-m", "wmpi", "--mpi", "mpich", "a.c"), "--mpi does not apply to --backend smpi"),
        (("-b", "native", "--set", "wmpi.pool=1MiB", "a.c"), "--set does not apply to --backend native"),
        (("-b", "model", "a.c"), "a model is needed"),
        (("-b", "native", "--wall-limit", "0s", "a.c"), "--wall-limit"),
        (("-b", "native", "--time-limit", "1s", "a.c"), "--time-limit does not apply to --backend native"),
        (("-b", "smpi", "-m", "wmpi", "--event-limit", "9", "a.c"), "--event-limit does not apply to --backend smpi"),
        (("-b", "real", "a.c"), "'real' is not one of"),
        (("-m", "wmpi", "--repetitions", "3", "a.c"), "--repetitions does not apply to --backend model"),  # inferred from --model
        (("--set", "wmpi.pool=1MiB", "a.c"), "--set does not apply to --backend native"),
    ):
        got = retrompi("--store", "s.db", "run", *words)
        assert got.code == 2, got
        assert said in got.err
        assert got.err.count("\n") == 1
