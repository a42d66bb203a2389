"""`retrompi runs list` shows what was asked for, not what studies, searches and draws have simulated on the way."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

Run = Callable[..., Any]


def test_runs_of_studies_searches_and_draws_are_left_out_unless_asked_for(retrompi: Run) -> None:
    def listed(*more: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(retrompi("runs", "list", "--csv", "--last", "200", *more).out)))

    short = ("--set", "trace.sizes=1KiB", "--set", "trace.reps=1", "-j", "1")
    asked = retrompi("pingpong", "-m", "wmpi", "-p", "nt-pair", "--mode", "shared", "--sizes", "8B", "--reps", "2")
    assert "(run 1)" in asked.out
    assert [row["id"] for row in listed()] == ["1"]
    assert retrompi("tolerance", "bf-wmpi-shared", "--add", "platform.host.quantum", *short).code == 0
    assert retrompi("sweep", "bf-wmpi-shared", "--vary", "wmpi.packet=64KiB,128KiB", *short).code == 0
    drawn = ("pingpong", "-m", "wmpi", "-p", "nt-pair", "--mode", "shared", "--sizes", "8B", "--reps", "2", "--uncertainty", "50%")
    assert retrompi(*drawn, "--draws", "4").code == 0
    assert [row["id"] for row in listed()] == ["1"]
    assert len(listed("--all")) > 10
    compared = retrompi("compare", "ring", "--models", "wmpi,hpvm", "-p", "nt-pair", "-n", "2", "-j", "1", "--", "size=8")
    assert compared.code == 0
    assert len(listed()) == 3  # its table has their numbers
