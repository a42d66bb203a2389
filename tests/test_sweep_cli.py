"""``retrompi sweep`` and ``retrompi study``: what they print, and with what they end."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from refusals import agrees

from retrompi.store import open_store

EXAMPLE = Path(__file__).parent / "data" / "study-example.toml"
SMALL = ("sweep", "bf-wmpi-shared", "--vary", "seed=1..4", "--set", "trace.sizes=1KiB", "--set", "trace.reps=2", "--jobs", "1")


@pytest.fixture(autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETROMPI_STORE", str(tmp_path / "runs.db"))


def test_a_sweep_says_what_it_did(retrompi: Callable[..., Any]) -> None:
    told = retrompi(*SMALL)
    assert (told.code, told.err) == (0, "")
    assert re.match(r"4 points, 4 simulated, 0 found, 4 completed in .*, [\d.]+ runs/s\n\ntime: ", told.out)
    assert retrompi(*SMALL).out.startswith("4 points, 0 simulated, 4 found in ")
    assert retrompi(*SMALL, "--fresh").out.startswith("4 points, 4 simulated, 0 found, 4 completed in ")


def test_rows_for_scripts(retrompi: Callable[..., Any]) -> None:
    rows = json.loads(retrompi(*SMALL, "--json").out)
    assert [(r["position"], r["seed"], r["outcome"]) for r in rows] == [(i, str(i + 1), "completed") for i in range(4)]
    table = list(csv.DictReader(io.StringIO(retrompi(*SMALL, "--csv").out)))
    assert [{k: str(v) for k, v in r.items() if k != "warnings"} for r in rows] == table  # a table has no lists
    assert retrompi(*SMALL, "--csv", "--json").code == 2


def test_a_study_file_and_its_overrides(retrompi: Callable[..., Any]) -> None:
    assert retrompi("sweep", str(EXAMPLE), "-j", "1").out.startswith("12 points, 12 simulated")
    assert retrompi("study", "run", str(EXAMPLE), "-j", "1").out.startswith("12 points, 0 simulated, 12 found")
    assert retrompi("study", "run", "example", "-j", "1").out.startswith("12 points, 0 simulated, 12 found")
    assert retrompi("sweep", str(EXAMPLE), "--set", "reps=1", "-j", "1").out.startswith("12 points, 12 simulated")
    told = retrompi("sweep", str(EXAMPLE), "--vary", "seed=1")
    agrees(told, "unused-option | --vary")
    listed = json.loads(retrompi("study", "list", "--json").out)
    assert [(r["id"], r["name"], r["points"], r["done"], r["errors"]) for r in listed if r["id"]] == [
        (1, "example", 12, 12, 0),
        (2, "example", 12, 12, 0),
    ]
    assert listed[0]["axes"] == ["model", "wmpi.header", "platform.host.dispatch", "mode", "seed"]
    assert retrompi("study", "delete", "2").code == 0
    assert retrompi("study", "delete", "2").code == 2
    assert len(open_store().runs()) == 24


def test_the_dry_run_runs_nothing_for_the_store(retrompi: Callable[..., Any]) -> None:
    told = retrompi(*SMALL, "--dry-run")
    first, second = told.out.splitlines()
    assert first == "4 points, 4 different runs, 0 in the store, 4 to simulate"
    assert re.fullmatch(r"about .* on 1 process \(from timing \d of its points now\)", second)
    assert open_store().runs() == []
    row = json.loads(retrompi(*SMALL, "--dry-run", "--json").out)[0]
    assert {k: row[k] for k in ("points", "runs", "found", "to_simulate", "refused", "jobs")} == {
        "points": 4, "runs": 4, "found": 0, "to_simulate": 4, "refused": 0, "jobs": 1,
    }
    retrompi(*SMALL)
    assert retrompi(*SMALL, "--dry-run").out == "4 points, 4 different runs, 4 in the store, 0 to simulate\n"


def test_a_point_that_is_no_run_ends_with_1_and_others_are_results(retrompi: Callable[..., Any]) -> None:
    made = ("--set", "trace.sizes=1KiB", "--set", "trace.reps=2", "--jobs", "1")
    told = retrompi("sweep", "bf-wmpi-shared", "--vary", "mode=shared,distributed", "--vary", "kills=daemon on server@1s", *made)
    assert told.code == 1
    assert "1 error" in told.out
    assert re.search(r"^warning: cannot be run: .*no process 'daemon on server'", told.err)
    # What a point does not use is said before anything runs, and the point runs without it; what no point uses is refused.
    mixed = ("--vary", 'mode="0,0","0,1"', "--set", "platform.workstation.cores=2")
    told = retrompi("sweep", "bf-wmpi-shared", *mixed, *made)
    assert (told.code, told.err.splitlines()[0]) == (
        0, "note: platform.workstation.cores applies to 1 of 2 points: "
        "platform.workstation.cores is not used; no rank of this run is on 'workstation'",
    )
    told = retrompi("sweep", "bf-wmpi-shared", "--vary", "wmpi.udp_timeout=1s,2s", *made)
    assert (told.code, told.out) == (2, "")
    assert told.err.strip() == "error: wmpi.udp_timeout belongs to the path between machines; this run is on one machine"
    told = retrompi("sweep", "bf-wmpi-shared", "--vary", "kills=none,rank 1@1us", *made)
    assert told.code == 0
    assert "1 completed" in told.out
    assert "error" not in told.out


def test_what_is_outside_the_calibrated_range_is_one_warning(retrompi: Callable[..., Any]) -> None:
    told = retrompi("sweep", "bf-wmpi-shared", "--vary", "hosts=2..5", "--set", "trace.sizes=1KiB", "--set", "trace.reps=1", "-j", "1")
    assert told.code == 0
    assert told.err == ""
    assert "[outside calibration: 1 of 4 points: platform nt-pair*2" in " ".join(told.out.split())


@for_each(
    "arguments, says",
    [
        (["--vary", "wmpi.pakket=1KiB"], "unknown-parameter | 'wmpi.packet'"),
        (["--vary", "seed=1..1000000000"], "too-many | --max-points | 1000000000"),
        (["--vary", "seed=1", "--vary", "seed=2"], "duplicate-name | 'seed'"),
        (["--vary", "seed=1,9223372036854775808"], "out-of-range | 9223372036854775807"),
        (["--zip", "seed=1..3;mode=shared,distributed"], "bad-usage"),
        (["--sample", "lhs"], "bad-syntax"),
        (["--vary", "seed"], "bad-syntax | KEY | VALUES"),
        (["--vary", "seed=1", "--scheduler", "tcp://x:1", "--executor", "pool"], "unused-option | --scheduler | --executor"),
        (["--vary", "seed=1", "--metric", "tyme"], "unknown-metric"),
        (["--vary", "seed=1", "--name", "5"], "bad-name | '5'"),
        (["--vary", "seed=1", "--name", "a/b"], "bad-name | 'a/b'"),
        (["--vary", "seed=1", "--name", " "], "bad-name"),
        (["--vary", "seed=1", "--store", "postgresql+nodriver://h/db"], "bad-store"),
    ],
)
def test_a_bad_study_is_one_line_and_nothing_runs(retrompi: Callable[..., Any], tmp_path: Path, arguments: list[str], says: str) -> None:
    told = retrompi("sweep", "bf-wmpi-shared", *arguments)
    assert told.code == 2
    agrees(told, says)
    assert told.err.count("\n") == 1
    assert not (tmp_path / "runs.db").exists() or open_store(tmp_path / "runs.db").runs() == []


def test_names_are_completed_with_the_nearest(retrompi: Callable[..., Any]) -> None:
    assert "did you mean 'bf-wmpi-shared'" in retrompi("sweep", "bf-wmpi-share").err
    assert retrompi("study", "run", "nothing").code == 2


def test_a_sampled_study_can_be_run_again(retrompi: Callable[..., Any]) -> None:
    lhs = ("sweep", "bf-wmpi-shared", "--vary", "platform.host.quantum=10ms..200ms", "--sample", "lhs:3", "--sample-seed", "5", "-j", "1")
    assert retrompi(*lhs, "--set", "sizes=1KiB", "--set", "reps=1").out.startswith("3 points, 3 simulated")
    assert retrompi("study", "run", "1", "-j", "1").out.startswith("3 points, 0 simulated, 3 found")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_has_come_in_and_leaves_no_process(number: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "retrompi.cli.main", "sweep", "bf-wmpi-shared", "--vary", "seed=1..100000", "-j", "2"]
    process = subprocess.Popen(command, env=dict(os.environ), stderr=subprocess.PIPE, text=True)
    path = tmp_path / "runs.db"
    while process.poll() is None and not (path.exists() and open_store(path, write=False).runs(limit=1)):
        time.sleep(0.05)
    children = _children(process.pid)
    assert children
    process.send_signal(number)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 130
    kept = open_store(path).runs()
    assert f"{len(kept)} of 100000 points are stored; run the same command again to continue" in said
    assert said.splitlines()[-1] == "error: interrupted"
    for pid in children:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert not list(tmp_path.glob("*.lock"))


def _children(pid: int) -> list[int]:
    return [int(p) for task in Path(f"/proc/{pid}/task").iterdir() for p in (task / "children").read_text().split()]


def test_a_sweep_ends_with_its_table_its_name_and_the_next_step(retrompi: Callable[..., Any], tmp_path: Path) -> None:
    few = ("--set", "trace.sizes=1KiB", "--set", "trace.reps=2", "-j", "1", "--name", "packets")
    told = retrompi("--store", str(tmp_path / "s.db"), "sweep", "bf-wmpi-shared", "--vary", "wmpi.packet=64KiB,128KiB", *few).out
    lines = told.splitlines()
    assert [line.split()[0] for line in lines if line.startswith(("wmpi.packet", "64KiB", "128KiB"))] == ["wmpi.packet", "64KiB", "128KiB"]
    assert lines[0].startswith("2 points, 2 simulated")
    assert "study packets; next: retrompi study show packets" in lines[-2]
    assert "retrompi study figure packets -o" in lines[-1]


def test_the_list_of_runs_says_which_trace(retrompi: Callable[..., Any], tmp_path: Path) -> None:
    trace = tmp_path / "mine.ti"
    trace.write_text("0 init\n0 send 1 0 8 6\n0 finalize\n1 init\n1 recv 0 0 8 6\n1 finalize\n")
    assert retrompi("--store", str(tmp_path / "s.db"), "replay", str(trace), "-m", "wmpi", "-p", "nt-cluster").code == 0
    head, row = retrompi("--store", str(tmp_path / "s.db"), "runs", "list").out.splitlines()
    assert "trace" in head.split()
    assert "mine.ti" in row.split()
