"""Sensitivities along the critical path: equal to finite differences inside the range that they state."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from cases import for_each

from retrompi.base.errors import UsageError
from retrompi.sim import simulate
from retrompi.sim.critical_path import CriticalPath
from retrompi.sim.observe import Observe
from retrompi.spec import registry
from retrompi.studies.compare import compare_runtimes
from retrompi.studies.define import case
from retrompi.studies.define.scenario import Scenario
from retrompi.studies.search import sensitivity

ON = Observe(critical_path=True)
LATENCY, BANDWIDTH = "platform.link.latency", "platform.link.bandwidth"
SEGMENT, CARD, COPY = "platform.host.tcp_segment", "platform.host.nic_rate", "platform.host.copy_mem"
SWITCH = "nt4-p6-200*4@switch-100"
SCALING = Path(__file__).parent / "data" / "traces" / "scaling"
ARGUMENTS = {"halo": ("ranks=4", "reps=3", "size=1000"), "alltoall": ("ranks=4", "reps=2", "size=3000")}


@cache
def _recorded(model: str, platform: str, program: str, fidelity: str = "mechanism") -> tuple[Scenario, CriticalPath | None]:
    text = program if program in ARGUMENTS else str(SCALING / f"npb3.3.1-{program}-4.ti.zst")
    base = compare_runtimes.program(text, ARGUMENTS.get(program, ()), model, platform, "natural", None)
    base = case.apply(base, {"fidelity": fidelity})
    return base, simulate.run(base.question(), ON).critical_path


def _platform(model: str) -> str:
    known = registry.model(model).calibrated
    return known.platforms[0] if known else "nt-pair"


def _agrees(base: Scenario, found: sensitivity.Sensitivity, rounding: float = 0.5) -> None:
    """At both ends of the range, and within; each delay of the path may be rounded, by ``rounding`` ps."""
    at = found.key.value
    assert at is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low <= at <= found.high
    for value in {at + 0.95 * (found.high - at), at + 0.37 * (found.high - at), at - 0.9 * (at - found.low)} - {at}:
        time = sensitivity.time_at(base, found.key, value)
        assert time is not None
        exact = pytest.approx(found.change_ps(value), rel=1e-6, abs=found.pieces * rounding + 2)
        assert time - found.time_ps == exact, (found.key.name, value)


CASES = [
    *(("mpich", SWITCH, program, key) for program in ("halo", "alltoall") for key in (LATENCY, BANDWIDTH, SEGMENT, CARD, COPY)),
    ("mpich", SWITCH, "halo", "platform.host.interrupt"),
    ("lam", SWITCH, "halo", LATENCY),
    ("lam", SWITCH, "alltoall", BANDWIDTH),
    ("wmpi", SWITCH, "halo", "wmpi.daemon"),
    ("wmpi", SWITCH, "alltoall", BANDWIDTH),
    ("pvm", SWITCH, "halo", "platform.host.dispatch"),
]


@for_each("model, platform, program, key", CASES)
def test_a_sensitivity_equals_finite_differences_in_its_range(model: str, platform: str, program: str, key: str) -> None:
    base, path = _recorded(model, platform, program)
    assert path is not None
    found = sensitivity.sensitivity(base, path, key)
    assert not found.simulated
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.high
    _agrees(base, found)


KEYS = (LATENCY, BANDWIDTH, "platform.{}.tcp_segment", "platform.{}.copy_l2", "platform.{}.dispatch", "platform.{}.syscall")


@for_each("program", ["halo", "alltoall", "lu", "cg"])
@for_each("model", [m for m in registry.model_names() if ":" not in m])
def test_every_model_has_a_range_or_a_reason(model: str, program: str) -> None:
    """Three keys that concern the run; where it cannot be followed, one: each is two further simulations."""
    base, path = _recorded(model, _platform(model), program)
    if path is None:
        return
    host = registry.platform(_platform(model)).hosts[0].name
    tried = 0
    for key in KEYS:
        try:
            found = sensitivity.sensitivity(base, path, key.format(host))
        except UsageError:  # the run does not use it
            continue
        tried += 1
        if found.simulated:
            assert (found.low, found.high) == (None, None)
            assert path.unfollowed or "not itemised" in found.simulated or "at one instant" in found.simulated
        else:
            _agrees(base, found)
        if tried >= (1 if path.unfollowed else 3):
            break
    assert tried


NOT_EXPLAINED = pytest.mark.xfail(strict=True, reason="tcp_segment is 37 ps off at a step of 15 ps; rounding explains 32: open")


@pytest.mark.parametrize(
    ("fidelity", "program"),
    [("curve", "halo"), ("curve", "alltoall"), pytest.param("loggp", "halo", marks=NOT_EXPLAINED), ("loggp", "alltoall")],
)
def test_below_mechanism_level_the_curves_carry_the_derivative(fidelity: str, program: str) -> None:
    base, path = _recorded("mpich", SWITCH, program, fidelity)
    assert path is not None
    assert {owner for owner, *_ in path.numbers} <= {"curve remote", "curve same", "host"}
    for key in (LATENCY, SEGMENT):
        found = sensitivity.sensitivity(base, path, key)
        assert not found.simulated
        _agrees(base, found, 2.5)  # sampled numbers are differences of whole picoseconds


def test_a_latency_is_as_often_on_the_path_as_its_slope_says() -> None:
    """A ring of one message each in turn: the path crosses the cable once for each."""
    base = case.apply(_recorded("mpich", SWITCH, "halo")[0], {"trace.reps": "1"})
    path = simulate.run(base.question(), ON).critical_path
    found = sensitivity.sensitivity(base, path, LATENCY)
    assert found.slope == pytest.approx(round(found.slope))
    per_link = (found.key.value or 0) * 1e12
    assert path.by("stage")["latency"] == pytest.approx(found.slope * per_link, abs=2)


def test_a_whole_number_has_no_derivative() -> None:
    base, path = _recorded("mpich", SWITCH, "halo")
    assert path is not None
    with pytest.raises(UsageError, match="whole number"):
        sensitivity.sensitivity(base, path, "platform.host.cores")


@pytest.mark.parametrize(
    ("model", "platform", "key", "reason"),
    [
        ("mpich", SWITCH, "platform.host.quantum", "hosts.kinds.0.quantum, whose delays are not itemised"),
        ("winmpich", "nt-pair", "platform.server.syscall", "(ends of quanta|ticks of the clock) .* acted on the run"),
        ("gm", "", LATENCY, "transfers by a card as one burst"),
    ],
)
def test_what_cannot_be_followed_is_simulated_and_says_why(model: str, platform: str, key: str, reason: str) -> None:
    base, path = _recorded(model, platform or _platform(model), "halo")
    assert path is not None
    found = sensitivity.sensitivity(base, path, key)
    assert (found.low, found.high) == (None, None)
    assert re.search(reason, found.simulated)
    at = found.key.value
    assert at is not None
    times = [sensitivity.time_at(base, found.key, at * (1 + d)) for d in (-1e-3, 1e-3)]
    assert times[0] is not None
    assert times[1] is not None
    assert found.slope * 2e-3 * at == pytest.approx((times[1] - times[0]) * 1e-12)


def test_the_range_of_one_run_is_within_what_simulating_finds() -> None:
    """Simulated, it may hold farther: not every change of order changes a time."""
    base, path = _recorded("mpich", SWITCH, "halo")
    assert path is not None
    found = sensitivity.verify_range(base, sensitivity.sensitivity(base, path, LATENCY))
    assert found.low is not None
    assert found.high is not None
    assert found.checked is not None
    low, high = found.checked
    at = found.key.value or 0.0
    for r in sensitivity.REACHES:
        if at * (1 + r) <= found.high:
            assert high >= at * (1 + r)
        if at * (1 - r) >= found.low:
            assert low <= at * (1 - r)


@pytest.mark.parametrize(("program", "key"), [("halo", LATENCY), ("alltoall", SEGMENT), ("halo", BANDWIDTH)])
def test_the_tolerance_of_one_run_is_that_of_a_search(program: str, key: str) -> None:
    """As far as everything happens in the run's order, the run is slower by just that share there."""
    base, path = _recorded("mpich", SWITCH, program)
    assert path is not None
    found = sensitivity.sensitivity(base, path, key)
    assert found.low is not None
    assert found.high is not None
    end = found.low if found.rate else found.high
    share = 0.8 * found.change_ps(end) / found.time_ps  # within the range
    assert share > 0
    (answer,) = sensitivity.tolerances(base, path, key, (share,))
    assert answer.in_range
    assert answer.value is not None
    time = sensitivity.time_at(base, found.key, answer.value)
    assert time is not None
    assert time - found.time_ps == pytest.approx(share * found.time_ps, rel=1e-5, abs=found.pieces)


def test_far_away_the_order_is_another() -> None:
    base, path = _recorded("mpich", SWITCH, "halo")
    assert path is not None
    (answer,) = sensitivity.tolerances(base, path, LATENCY, (0.5,))
    assert not answer.in_range
