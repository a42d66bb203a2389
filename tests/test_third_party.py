"""Unmodified third-party benchmarks, natively and on the SMPI backend (docs/third-party.md).

Their code is not in this repository: RETROMPI_THIRD_PARTY names a folder with the folders mpich, openmpi and smpi, in which (at any
depth) the programs are that were built with that MPI.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from retrompi.measure import curves, launch
from retrompi.sim import simulate
from retrompi.spec.question import Question, pingpong
from retrompi.store import open_store

FOLDER = os.environ.get("RETROMPI_THIRD_PARTY", "")
OSU = {
    "osu_latency": ("pingpong", 2),
    "osu_bw": ("bw", 2),
    "osu_bibw": ("bibw", 2),
    "osu_multi_lat": ("multi_lat", 2),
    "osu_mbw_mr": ("mbw_mr", 2),
    "osu_barrier": ("barrier", 2),
    "osu_bcast": ("bcast", 2),
    "osu_reduce": ("reduce", 2),
    "osu_allreduce": ("allreduce", 2),
    "osu_gather": ("gather", 2),
    "osu_scatter": ("scatter", 2),
    "osu_allgather": ("allgather", 2),
    "osu_alltoall": ("alltoall", 2),
}
"""Program -> what the reader calls its curve, ranks."""
FAMILIES = ("mpich", "openmpi", "smpi")
MODEL, PLATFORM = "nemesis", "abe"

pytestmark = [
    pytest.mark.skipif(not FOLDER, reason="RETROMPI_THIRD_PARTY names no folder of third-party programs (docs/third-party.md)"),
    pytest.mark.usefixtures("here", "open_mpi_runs"),
]


def executed(family: str, name: str, ranks: int, *arguments: str) -> launch.Execution:
    found = sorted(p for p in Path(FOLDER, family).rglob(name) if p.is_file()) or sorted(Path(FOLDER, family).glob(f"*/**/{name}"))
    if not found:
        pytest.skip(f"there is no {name} in {Path(FOLDER, family).name}/")
    needed = "smpirun" if family == "smpi" else f"mpiexec.{family}"
    if shutil.which(needed) is None:
        pytest.skip(f"{needed} is not installed")
    store = open_store("sqlite:///runs.db")
    if family == "smpi":
        done = launch.run(store, "smpi", str(found[0]), arguments, ranks, model=MODEL, platform=PLATFORM)
    else:
        done = launch.run(store, "native", str(found[0]), arguments, ranks, repetitions=1, warmup=0)
    assert done.outcome == "completed", done.detail
    return done


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", OSU)
def test_osu_runs_and_is_read(name: str, family: str, tmp_path: Path) -> None:
    what, ranks = OSU[name]
    done = executed(family, name, ranks, "-i", "2", "-x", "1")
    (tmp_path / "said.txt").write_text(done.output)
    curve = curves.read(tmp_path / "said.txt")
    assert (curve.what, curve.provenance.tool) == (what, "OSU Micro-Benchmarks")
    assert len(curve.points) == 1 if name == "osu_barrier" else len(curve.points) > 15
    if name == "osu_latency" and family == "smpi":
        sizes = [1024, 65536, 1048576]
        told = {p.size_B: p.time_us for p in curve.points if p.time_us is not None}
        for row in simulate.benchmark(Question(MODEL, PLATFORM, pingpong(sizes, reps=3), "distributed", fidelity="curve"))[1:]:
            # the program computes between its calls as well, which SMPI measures here: under 1 us
            assert told[row["size_B"]] == pytest.approx(row["time_us"], rel=0.02, abs=1)


@pytest.mark.parametrize("family", FAMILIES)
def test_netpipe_runs_and_is_read(family: str, tmp_path: Path) -> None:
    executed(family, "NPmpi", 2, "-u", "4096", "-n", "5", "-o", str(tmp_path / "np.out"))
    curve = curves.read(tmp_path / "np.out")
    assert (curve.what, curve.provenance.tool) == ("pingpong", "NetPIPE")
    assert curve.points[-1].size_B >= 4096
