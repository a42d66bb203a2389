"""The benchmark runs and the sanitizers find nothing; neither judges a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def test_the_benchmark_runs() -> None:
    command = [sys.executable, str(BENCHMARKS / "bench.py"), "--rounds", "1", "--scale", "0.002", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert len(figures["rows"]) == 18
    assert [row["fidelity"] for row in figures["nas"]] == ["mechanism", "curve", "loggp"]
    for row in figures["rows"]:
        assert row["messages"] > 0
        assert row["packets"] >= row["messages"]
        assert row["messages_per_s"] > 0
        assert (row["ratio"] is None) == (figures["smpi"] != "replayed")


@pytest.mark.skipif(os.environ.get("RETROMPI_SANITIZE") != "1", reason="RETROMPI_SANITIZE=1 builds and runs the C++ parts under sanitizers")
def test_the_sanitizers_find_nothing() -> None:
    command, env = [str(BENCHMARKS / "sanitize.sh")], os.environ | {"SECONDS_EACH": "5"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "runtime error" not in done.stderr
    assert done.stdout.count("no fault") == 14
