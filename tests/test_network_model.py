"""What carries the frames: its names, what is stored of it, and SimGrid's own models."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cases import for_each
from refusals import refused

from retrompi import _engine
from retrompi.base.errors import InputError, UsageError
from retrompi.sim import simulate
from retrompi.sim.resolved import Resolved
from retrompi.spec.conditions import network_model
from retrompi.spec.question import Message, Question, Replay, Starts, pingpong
from retrompi.store import open_store, specification
from retrompi.store.lookup import answer
from retrompi.traces import generate

MODELS = [m for m in network_model.MODELS if m in _engine.simgrid_network_models()]
APART = Question("wmpi", "nt-cluster", pingpong([0, 65536], 3), network="simgrid")


def seconds(network: str, platform: str = "nt-cluster") -> float:
    return simulate.run(Question("wmpi", platform, Replay(generate.pingpong([65536], 3)), network=network)).time_s


@for_each("text, meant", [
    ("simgrid:smpi", "simgrid:SMPI"), ("simgird", "simgrid"), ("nativ", "native"), ("simgrid:LV8", "simgrid:LV08"), ("flow", ""),
])
def test_an_unknown_network_names_the_nearest(text: str, meant: str) -> None:
    near = f"did you mean '{meant}'?" if meant else "valid: fluid, native, simgrid"
    with refused(UsageError, f"unknown-name | no network '{text}' | {near}"):
        Question("wmpi", "nt-pair", pingpong([0]), network=text)


def test_a_command_decides_once_for_all_its_questions() -> None:
    asked = Question("wmpi", "nt-pair", pingpong([0]))
    with network_model.using("simgrid:LV08"):
        assert Question("wmpi", "nt-pair", pingpong([0])).network == "simgrid:LV08"
        assert asked.network == "native"
        with network_model.using("fluid"):
            assert network_model.network_in_use("simgrid") == "fluid"
    assert Question("wmpi", "nt-pair", pingpong([0])) == asked
    assert network_model.network_in_use("simgrid") == "simgrid"


def test_a_job_on_one_host_has_no_network() -> None:
    """So that it is the same run, found again, whatever carries what crosses a network."""
    for workload in (pingpong([0]), Message(0), Replay(generate.pingpong([0], 1))):
        apart = Question("wmpi", "nt-pair", workload, network="simgrid")
        assert Resolved.of(apart).network == "simgrid"
        together = apart.with_(placement="shared")
        assert Resolved.of(together).network == "native"
        assert specification(together).identity == specification(together.with_(network="native")).identity
    assert Resolved.of(Question("wmpi", "nt-pair", Starts(2), network="simgrid")).network == "native"


def test_simgrid_is_named_where_it_carried_something(tmp_path: str) -> None:
    store = open_store(f"{tmp_path}/s.db")
    rows = {n: store.run(answer(store, APART.with_(network=n)).run_id) for n in ("native", "fluid", "simgrid", "simgrid:LV08")}
    assert {n: r["network"] for n, r in rows.items()} == {n: n for n in rows}
    version = _engine.simgrid_version()
    assert {n: r["simgrid_version"] for n, r in rows.items()} == {"native": "", "fluid": "", "simgrid": version, "simgrid:LV08": version}
    assert len({r["identity"] for r in rows.values()}) == 4


@for_each("platform", ["nt-cluster", "cray-t3e", "nt-fat-tree", "nt-wan", "nt-pair"])
@for_each("model", MODELS)
def test_every_model_of_simgrid_carries_every_kind_of_link(model: str, platform: str) -> None:
    ask = Question("wmpi", platform, Replay(generate.pingpong([1024], 2)), idle_overrides=True, network=f"simgrid:{model}")
    result = simulate.run(ask)
    assert result.outcome == "completed"
    assert result.time_s > 0


def test_the_models_of_simgrid_differ_as_they_say() -> None:
    """LV08 multiplies the latency by 13.01 and the bandwidth by 0.97; CM02 has factors of one."""
    plain = seconds("simgrid")
    assert seconds("fluid") == pytest.approx(plain, rel=1e-6)
    assert seconds("simgrid:CM02") >= plain
    assert seconds("simgrid:LV08") > 1.03 * plain


def test_the_names_are_those_of_the_installed_simgrid() -> None:
    """As its own programs list them."""
    library = next(line.split(maxsplit=5)[5] for line in Path("/proc/self/maps").read_text().splitlines() if "libsimgrid" in line)
    code = """
import ctypes, sys
given = (ctypes.c_char_p * 3)(b"x", b"--help-models", None)
ctypes.CDLL(sys.argv[1]).simgrid_init(ctypes.byref(ctypes.c_int(2)), given)
"""
    told = subprocess.run([sys.executable, "-c", code, library], capture_output=True, text=True, check=False).stdout
    part = told.partition("the network model")[2].partition("Long description")[0]
    listed = {line.partition(":")[0].strip() for line in part.splitlines()[1:] if line.startswith("  ")}
    assert listed - {"ns-3", "Constant"} == set(_engine.simgrid_network_models())
    assert set(_engine.simgrid_network_models()) <= set(network_model.MODELS)


def test_a_model_that_this_simgrid_lacks_is_refused() -> None:
    lacking = sorted(set(network_model.MODELS) - set(_engine.simgrid_network_models()))
    for model in lacking:
        with pytest.raises(InputError, match=f"SimGrid {_engine.simgrid_version()} has no network model '{model}'; valid: "):
            simulate.run(APART.with_(workload=Replay(generate.pingpong([0], 1)), network=f"simgrid:{model}"))
