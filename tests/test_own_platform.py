"""What a question without a platform is about: the model's own, in every command, in Python and in the studio; and what the answer says."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable

import pytest
from conftest import Outcome
from refusals import refused

import retrompi
from retrompi.base.errors import UsageError
from retrompi.spec import registry

pytestmark = pytest.mark.usefixtures("here")
Run = Callable[..., Outcome]

OWN = {"mpichgm": "p4-1800*2@myrinet-pci64a", "craympt": "cray-j90", "lam": "p4-1800*2@ge-ga620", "wmpi": "nt-pair"}


@pytest.fixture
def command(retrompi: Run) -> Run:
    """The command line, under a name that leaves the package its own."""
    return retrompi


def test_a_model_s_own_platform_is_one_that_it_is_calibrated_on() -> None:
    for name, cls in registry.models().items():
        assert registry.own_platform(name) in registry.own_platforms(cls), name
        registry.platform(registry.own_platform(name))


def test_commands_without_a_platform_take_the_model_s_own_and_say_so(command: Run) -> None:
    for model, own in OWN.items():
        assert f"on {own}" in command("pingpong", "-m", model, "--sizes", "8B", "--reps", "2").out.splitlines()[0], model
        assert f"on {own}" in command("explain", "-m", model, "--size", "8B").out.splitlines()[0], model
    stored = json.loads(command("runs", "list", "--json").out)
    assert {r["platform"] for r in stored} == set(OWN.values())
    command("fidelity", "-m", "mpichgm", "--sizes", "8B", "--reps", "2")
    assert {r["platform"] for r in json.loads(command("runs", "list", "--json").out)} == set(OWN.values())
    assert f"on {OWN['mpichgm']}" in command("why", "ring", "-m", "mpichgm", "--", "size=8", "reps=2").out


def test_python_takes_the_model_s_own_platform() -> None:
    for model, own in OWN.items():
        curve = retrompi.pingpong(model, sizes=[8], reps=2)
        assert curve.question.platform == own
        assert own in curve.title
        assert retrompi.message(model, size=8).question.platform == own
    for function in (retrompi.pingpong, retrompi.message, retrompi.replay):
        assert inspect.signature(function).parameters["platform"].default is None


def test_the_studio_takes_the_model_s_own_platform() -> None:
    from retrompi.studio.components import menus
    from retrompi.studio.labs import lab_commands
    from retrompi.studio.pages import curves

    for model, own in OWN.items():
        assert menus.own_platforms(model)[0] == own == curves._where(model, curves.OWN)
    form = lab_commands.form_of("retrompi pingpong -m craympt --sizes 8B")
    assert form is not None
    assert "platform=cray-j90" in lab_commands.view_of(form)


def test_a_form_of_a_lab_takes_what_a_run_may_be_given() -> None:
    """By the question's declaration; where a page of the studio cannot show the same, no link claims it."""
    from retrompi.studio.labs import lab_commands

    line = "retrompi pingpong -m wmpi --mode distributed --sizes 1KiB --fidelity curve --seed 7"
    form = lab_commands.form_of(f"{line} --traffic 'any 2Mbps 1500B' --traffic 'any 1Mbps 64B'")
    assert form is not None
    assert lab_commands.view_of(form) == ""
    assert lab_commands._options(form.given, {"wmpi.packet": "64KiB"}, None) == {
        "mode": "distributed", "seed": 7, "fidelity": "curve", "traffic": ("any 2Mbps 1500B", "any 1Mbps 64B"),
        "set": {"wmpi.packet": "64KiB"}, "store": None,
    }
    assert lab_commands.form_of("retrompi fit curve.csv --fidelity curve") is None
    with refused(UsageError, "out-of-range | --seed"):
        lab_commands._options({"seed": "x"}, {}, None)


def test_a_network_is_no_platform_and_the_error_says_how_it_becomes_one(command: Run) -> None:
    bad = command("pingpong", "-m", "wmpi", "-p", "hub-100", "--sizes", "8B")
    assert bad.code == 2
    assert "is a network" in bad.err
    assert "@hub-100" in bad.err
    assert bad.err.count("\n") == 1


def test_the_platform_of_p_is_the_first_of_those_compared(command: Run) -> None:
    told = json.loads(command("compare", "ring", "--models", "wmpi", "-p", "nt-pair", "--platforms", "nt-cluster,nt-pair", "--json", "--",
                          "size=1KiB", "reps=2").out)
    assert sorted(r["platform"] for r in told["rows"]) == ["nt-cluster", "nt-pair"]
