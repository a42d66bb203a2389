"""Machines of several kinds, and killed processes, as axes of a study: every point is a row that says how it ended, or why not begun."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrompi.sim.resolved import Resolved
from retrompi.spec import registry
from retrompi.spec.question import Question, Starts
from retrompi.store import open_store
from retrompi.studies.execute import design
from retrompi.studies.execute.run import run_study
from retrompi.studies.read.results import rows

QUICK = {"trace.sizes": "0,1KiB,20KiB", "trace.reps": "3"}
MODELS = [m for m in registry.model_names() if ":" not in m]
ROOMS = ("nt-pair", "nt-unix", "nt-unix-little")
MODES = ("0,1", "0,0", "1,1")


def test_every_runtime_on_every_mixture(tmp_path: Path) -> None:
    store = open_store(tmp_path / "runs.db")
    study = design.from_command("mixed-wmpi", {"model": MODELS, "platform": ROOMS, "mode": MODES}, set_=QUICK)
    told = run_study(store, study)
    found = rows(store, told.study_id)
    assert len(found) == len(MODELS) * len(ROOMS) * len(MODES)
    for row in found:
        room = registry.platform(row["platform"])
        hosts = [room.hosts[int(i)] for i in row["mode"].split(",")]
        apart = Resolved.of(Question(row["model"], row["platform"], Starts(2), row["mode"])).apart
        assert row["outcome"] == ("failed-start" if apart else "completed"), row
        assert row["reason"] == apart
        if row["model"] == "winmpich":
            assert bool(apart) == any(h.family == "unix" for h in hosts)
        elsewhere = all(h.family == "unix" for h in hosts)  # its system is on none of them
        if row["model"] == "hpvm":
            assert bool(apart) == (elsewhere or len({h.byte_order for h in hosts}) > 1)
        if row["model"] == "wmpi":
            assert bool(apart) == elsewhere
    wmpi = {(r["platform"], r["mode"]): r["time_s"] for r in found if r["model"] == "wmpi"}
    # What differs between the two mixed rooms is the byte order, and TCP's timers, of which nothing is seen while nothing is lost.
    assert wmpi["nt-unix", "0,1"] > wmpi["nt-unix-little", "0,1"]
    assert wmpi["nt-unix", "0,0"] == wmpi["nt-unix-little", "0,0"]


def test_keys_of_one_kind_of_host_are_axes(tmp_path: Path) -> None:
    """More of a platform's hosts are copies in turn; a key of one of them changes only what it takes part in."""
    store = open_store(tmp_path / "runs.db")
    vary = {"mode": ["0,1", "2,3", "1,3"], "platform.unix.work": "0.4,0.8"}
    study = design.from_command("mixed-wmpi", vary, set_={**QUICK, "platform": "nt-unix*4"})
    times = {(r["mode"], r["platform.unix.work"]): r for r in rows(store, run_study(store, study).study_id)}
    assert times["0,1", "0.4"]["time_s"] > times["0,1", "0.8"]["time_s"]
    assert times["2,3", "-"]["outcome"] == "completed"  # of a host that has no rank nothing is used


@pytest.mark.parametrize(
    ("scenario", "victims"),
    [
        ("killed-daemon-wmpi", ["daemon on server", "daemon on workstation", "rank 0"]),
        ("killed-proxy-winmpich", ["proxy on server", "proxy on workstation", "rank 1"]),
        ("killed-rank-hpvm", ["rank 0", "rank 1"]),
    ],
)
def test_a_killed_process_is_an_axis_at_any_time(tmp_path: Path, scenario: str, victims: list[str]) -> None:
    times = ["0s", "20us", "3.7ms", "50ms", "1000s"]
    kills = ["none", *(f"{v}@{t}" for v in victims for t in times), f"{victims[0]}@10ms + {victims[1]}@20ms"]
    store = open_store(tmp_path / "runs.db")
    study = design.from_command(scenario, {"kills": kills}, set_={"trace.sizes": "1KiB", "trace.reps": "50"})
    found = {r["kills"]: r for r in rows(store, run_study(store, study).study_id)}
    assert len(found) == len(kills)
    assert found["none"]["outcome"] == "completed"
    for text, row in found.items():
        assert row["outcome"] in ("completed", "deadlock", "aborted"), row
        if text.endswith("@1000s"):
            assert (row["outcome"], row["time_s"]) == ("completed", found["none"]["time_s"])
        elif row["outcome"] != "completed":
            assert "killed: " in row["reason"]
    assert found[f"{victims[-1]}@20us"]["outcome"] != "completed"
