"""TI out for SMPI: what its replay knows, and what is left out."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Outcome
from engine_runs import job

from retrompi import traces

Run = Callable[..., Outcome]
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="n" suffix="" radical="0-3" speed="1Gf" bw="12.5MBps" lat="50us"/>
</platform>
"""
GOAL = """num_ranks 4
rank 0 { a: calc 1000; b: send 4096b to 1 tag 3; b requires a; c: recv 8b from 3 tag 1; c requires b }
rank 1 { a: recv 4096b from 0 tag 3; b: send 8b to 2; b requires a; c: calc 5000; d: send 8b to 2 tag 1; d requires c }
rank 2 { a: recv 8b from 1; b: recv 8b from 1 tag 1; c: send 8b to 3; c requires a; c requires b }
rank 3 { a: recv 8b from 2; b: send 8b to 0 tag 1; b requires a }
"""


def converted(retrompi: Run, source: Path, out: Path) -> list[dict[str, object]]:
    told = retrompi("trace", "convert", str(source), str(out), "--to", "smpi", "--json")
    assert told.code == 0
    losses: list[dict[str, object]] = json.loads(told.out)["losses"]
    return losses


def test_what_smpi_does_not_know_is_left_out_and_reported(tmp_path: Path, retrompi: Run) -> None:
    lines = ["init", "comm_split 1 0,1", "bcast 8 0 6 comm=1", "bcast 16 0 6", "{}", "finalize"]
    texts = ["".join(f"{r} {line}\n" for line in lines).format("Ssend 1 0 8 6" if r == 0 else "recv 0 0 8 6") for r in (0, 1)]
    (tmp_path / "in.ti").write_text("".join(texts))
    losses = converted(retrompi, tmp_path / "in.ti", tmp_path / "out")
    assert {(x["call"], x["count"]) for x in losses} >= {("comm_split", 2), ("Ssend", 1)}
    read = traces.read(tmp_path / "out")
    assert set(read.info()["calls"]) <= {"init", "finalize", "bcast", "send", "recv"}
    assert read.info()["sends"] == 1


def test_a_number_is_another_request_once_its_call_without_one_is_over() -> None:
    """A wait by peers and tag completes the request that is called 1; that of MPI_PROC_NULL, called 1 then, is not in what SMPI replays."""
    lines = ("isend 1 7 64 6 req=1; wait 0 1 7; irecv -666 3 8 6 req=1; test req=1 flag=0; test req=1 flag=1", "recv 0 7 64 6")
    assert job(*lines).to_smpi(0).splitlines() == ["0 init", "0 isend 1 7 64 6", "0 wait 0 1 7", "0 finalize"]


def test_a_test_that_succeeded_is_a_wait() -> None:
    """SMPI's replay takes a test for a look, after which the wait of the same request comes: that of the next one would not wait."""
    told = job(2 * "irecv 1 5 8 6; test 1 0 5 flag=1; ", 2 * "send 0 5 8 6; ").to_smpi(0).splitlines()
    assert told == ["0 init", *["0 irecv 1 5 8 6", "0 wait 1 0 5"] * 2, "0 finalize"]


@pytest.mark.skipif(shutil.which("smpirun") is None, reason="SimGrid's smpirun replays what is written for it")
def test_smpi_replays_a_converted_schedule(tmp_path: Path, retrompi: Run) -> None:
    (tmp_path / "in.goal").write_text(GOAL)
    converted(retrompi, tmp_path / "in.goal", tmp_path / "out")
    (tmp_path / "platform.xml").write_text(PLATFORM)
    (tmp_path / "hosts").write_text("n0\nn1\nn2\nn3\n")
    command = ["smpirun", "-np", "4", "-platform", "../platform.xml", "-hostfile", "../hosts", "-replay", "index.txt"]
    ran = subprocess.run(command, cwd=tmp_path / "out", capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "Simulation time" in ran.stderr + ran.stdout
