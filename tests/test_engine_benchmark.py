"""The benchmark runs and the sanitizers find nothing; neither judges a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
MODELS = ("winmpich", "wmpi", "hpvm", "nemesis", "craympt", "mpibip")


def figures(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, str(BENCHMARKS / "bench.py"), "--rounds", "1", "--scale", "0.002", "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_the_benchmark_runs() -> None:
    told = figures("--case", "pingpong")
    assert [(r["model"], r["fidelity"]) for r in told["rows"]] == [(m, f) for m in MODELS for f in ("mechanism", "curve", "loggp")]
    for row in told["rows"]:
        assert row["outcome"] == "completed"
        assert row["messages"] == row["actions"] / 2 - 2  # send and receive, beside init and finalize of two ranks
        assert row["packets"] >= row["messages"]
        assert row["messages_per_cpu_s"] == pytest.approx(row["messages"] / row["cpu_s"])
        assert row["peak_B"] > 1 << 20
        assert (row["speed"] is None) == (row["smpi"] != "replayed")


def test_the_benchmark_shows_growth() -> None:
    rows = figures("--case", "growth", "--quick")["growth"]
    assert [(r["grows"], r["ranks"]) for r in rows] == [*(("ranks", n) for n in (16, 64, 256)), *[("actions", 16)] * 3]
    assert all(r["messages"] == r["ranks"] * 4 * ((r["actions"] - 2 * r["ranks"]) // r["ranks"] // 9) for r in rows)


def test_the_benchmark_goes_on_without_smpi() -> None:
    command = [sys.executable, str(BENCHMARKS / "bench.py"), "--rounds", "1", "--scale", "0.002", "--case", "pingpong", "--model", "wmpi"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env={"PATH": ""})
    assert done.returncode == 0, done.stderr
    assert "SMPI was not measured: smpirun is not installed" in done.stdout
    assert "completed" not in done.stdout.splitlines()[-1]
    wrong = subprocess.run([*command[:2], "--case", "halo"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "no case 'halo'; there are pingpong, halo-64" in wrong.stderr


@pytest.mark.skipif(os.environ.get("RETROMPI_SANITIZE") != "1", reason="RETROMPI_SANITIZE=1 builds and runs the C++ parts under sanitizers")
def test_the_sanitizers_find_nothing() -> None:
    command, env = [str(BENCHMARKS / "sanitize.sh")], os.environ | {"SECONDS_EACH": "5"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "runtime error" not in done.stderr
    assert done.stdout.count("no fault") == 14
