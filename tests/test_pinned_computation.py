"""Computation that a scenario states in seconds is of one machine: elsewhere it scales by the hosts, and the answer says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Outcome, Watched
from refusals import refused

from retrompi.base.errors import UsageError
from retrompi.sim import cautions, simulate
from retrompi.sim.resolved import Resolved
from retrompi.spec import registry
from retrompi.spec.conditions.timed_section import Program
from retrompi.studies.define import case, catalogue
from retrompi.studies.define.scenario import Scenario

Run = Callable[..., Outcome]
OWN, SLOW, FAST = "myrinet-piii", "linux-p54-150*8@myrinet-lanai9", "p4-1800*8@myrinet-lanai9"


def _factor(scenario: Scenario) -> float:
    """What the amounts of the trace are multiplied by."""
    return simulate._timed_trace(Resolved.of(scenario.question()))[1]


def _rate(platform: str) -> float:
    return registry.platform(platform).hosts[0].flops


def test_seconds_stated_for_one_machine_take_longer_on_a_slower_one() -> None:
    scenario = catalogue.scenario("lw-nas-is-a-8")
    assert scenario.program.compute_s is not None
    at_home = _factor(scenario)
    for platform in (SLOW, FAST):
        moved = case.apply(scenario, {"platform": platform})
        asked = Resolved.of(moved.question())
        assert _factor(moved) == pytest.approx(at_home)  # the same operations, at another rate
        assert asked.program.compute_flops == _rate(OWN) != _rate(platform)
        (said,) = [c for c in cautions.of_question(asked) if c.code == "computation-carried"]
        assert "for which that is stated" in said.text


def test_a_comparison_of_machines_says_so_for_each_that_is_another(retrompi: Run, engine: Watched) -> None:
    engine.fails = UsageError("not simulated here", code="bad-usage")  # what is asked, not what it takes
    told = retrompi("compare", "lw-nas-is-a-8", "--models", "mpibip", "--platforms", f"{OWN},{SLOW},{FAST}", "-j", "1")
    assert "internal error" not in told.out + told.err
    assert {c.compute_flops for c in map(_asked, (OWN, SLOW, FAST))} == {None, _rate(OWN)}


def _asked(platform: str) -> Program:
    return Resolved.of(case.apply(catalogue.scenario("lw-nas-is-a-8"), {"platform": platform}).question()).program


def test_so_they_do_at_another_rate_of_the_same_machine() -> None:
    scenario = catalogue.scenario("lw-nas-is-a-8")
    slower = case.apply(scenario, {"platform.host.flops": "40 Mflop/s"})
    assert Resolved.of(slower.question()).program.compute_flops == _rate(OWN)
    same = case.apply(scenario, {"platform.link.latency": "1 us"})
    assert Resolved.of(same.question()).program.compute_flops is None


def test_at_home_nothing_changes_and_a_time_that_is_given_is_of_the_platform_in_question() -> None:
    scenario = catalogue.scenario("lw-nas-is-a-8")
    program = Resolved.of(scenario.question()).program
    assert program.compute_flops is None
    assert "compute_flops" not in program.row()
    given = case.apply(scenario, {"platform": SLOW, "trace.compute": "100 s"})
    assert Resolved.of(given.question()).program == Program(program.section, 100.0, program.memory_share)


def test_hosts_of_several_rates_state_no_seconds(tmp_path: Path) -> None:
    scenario = catalogue.scenario("lw-nas-is-a-8")
    assert scenario.path is not None
    text = scenario.path.read_text().replace('platform = "myrinet-piii"', 'platform = "p4-1800*4+linux-piii-933*4@myrinet-lanai9"')
    (tmp_path / "mixed.toml").write_text(text.replace('file = "', f'file = "{scenario.path.parent}/'))
    mixed = catalogue.scenario(str(tmp_path / "mixed.toml"))
    assert Resolved.of(mixed.question()).program.compute_flops is None
    with refused(UsageError, "no-rate | trace.compute"):
        case.apply(mixed, {"platform": SLOW}).question()


def test_a_scenario_shows_what_it_states(retrompi: Run) -> None:
    shown = retrompi("scenarios", "show", "lw-nas-lu-a-4").out
    assert "1494 s on myrinet-piii" in shown or "1493.5 s on myrinet-piii" in shown, shown
    assert "section" in shown
    assert "memory_share" in shown
