"""``retrompi why`` on stored runs, the path in the Python interface, and the tolerance of one run beside the search."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import retrompi as package
from retrompi import traces

TRACE = "examples/traces/jacobi-4.tar.zst"


def test_two_stored_runs_are_compared_by_their_numbers(tmp_path: Path, retrompi: Callable[..., Any]) -> None:
    store = str(tmp_path / "store.db")
    a = package.replay(TRACE, "wmpi", "nt-cluster", store=store)
    b = package.replay(TRACE, "mpich", "nt-cluster", store=store)
    told = json.loads(retrompi("why", str(a.run_id), str(b.run_id), "--store", store, "--json").out)
    assert told["a"]["time_ps"] == a.row["facts"]["time_ps"]
    assert told["difference_ps"] == sum(part["ps"] for part in told["parts"]) == b.row["facts"]["time_ps"] - a.row["facts"]["time_ps"]
    alone = json.loads(retrompi("why", str(b.run_id), "--store", store, "--json").out)
    assert alone["time_ps"] == b.row["facts"]["time_ps"] == sum(s["on_path_ps"] for s in alone["slacks"])


def test_a_stored_curve_and_its_overrides(tmp_path: Path, retrompi: Callable[..., Any]) -> None:
    store = str(tmp_path / "store.db")
    curve = package.pingpong("wmpi", mode="shared", sizes=["1 KiB", "3 KiB"], reps=4, set={"wmpi.pool": "2 MiB"}, store=store)
    told = json.loads(retrompi("why", str(curve.run_id), "--store", store, "--json").out)
    assert told["time_ps"] == curve.row["facts"]["time_ps"] == curve.path().took


def test_a_run_that_cannot_be_asked_again_says_why(tmp_path: Path, retrompi: Callable[..., Any]) -> None:
    store, copy = str(tmp_path / "store.db"), tmp_path / "jacobi.tar.zst"
    copy.write_bytes(Path(TRACE).read_bytes())
    section = package.replay(copy, "wmpi", "nt-cluster", section="1-20", store=store)
    again = json.loads(retrompi("why", str(section.run_id), "--store", store, "--json").out)
    assert again["time_ps"] == section.row["facts"]["time_ps"]
    copy.write_bytes(Path("examples/traces/sort-4.tar.zst").read_bytes())
    refused = retrompi("why", str(section.run_id), "--store", store)
    assert refused.code == 2
    assert f"run 1 cannot be asked again: the trace '{copy}' is not what the run had" in refused.err
    in_memory = package.replay(traces.read(TRACE), "wmpi", "nt-cluster", section="1-20", store=str(tmp_path / "other.db"))
    assert "made in memory" in retrompi("why", str(in_memory.run_id), "--store", str(tmp_path / "other.db")).err
    assert retrompi("why", "77", "--store", store).code == 2
    assert "leave out --model" in retrompi("why", "1", "2", "-m", "wmpi", "--store", store).err


def test_the_path_of_a_result(tmp_path: Path) -> None:
    run = package.replay(TRACE, "mpich", "nt-cluster", store=str(tmp_path / "store.db"))
    path, other = run.path(), package.replay(TRACE, "lam", "nt-cluster", store=str(tmp_path / "store.db")).path()
    assert path.took == sum(row["ps"] for row in path.rows) == run.row["facts"]["time_ps"]
    assert {row["least_slack_ps"] is None for row in path.slacks} == {True, False}
    assert sum(row["ps"] for row in path.difference(other)) == other.took - path.took


SCENARIO = """name = "ring"
title = "A ring"
summary = "four ranks"
reproduces = "nothing"
expect = "nothing"
model = "mpich"
platform = "nt4-p6-200*4@switch-100"
what_if_hardware = true
mode = "distributed"

[trace]
generator = "halo"
ranks = 4
reps = 3
size = 1000
"""


def test_the_tolerance_of_one_run_is_shown_beside_the_search(tmp_path: Path, retrompi: Callable[..., Any]) -> None:
    file = tmp_path / "ring.toml"
    file.write_text(SCENARIO, encoding="utf-8")
    store = str(tmp_path / "s.db")
    given = ("tolerance", str(file), "--add", "platform.link.latency", "--slower", "0.0001%", "--one-run", "--store", store)
    found = retrompi(*given, "--json")
    assert found.code == 0, found.err
    (answer,) = json.loads(found.out)["answers"]
    assert answer["one_run_in_order"]
    assert answer["within"] <= answer["one_run"] * (1 + 1e-6)
    assert answer["one_run"] <= answer["beyond"] * (1 + 1e-6)
    assert "by one run" in retrompi(*given).out
    assert retrompi(*given, "--metric", "messages").code == 2
