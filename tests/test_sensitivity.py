"""Sensitivities along the critical path: equal to finite differences inside the range that they state."""

from __future__ import annotations

import pytest

from retrompi.base.errors import UsageError
from retrompi.sim import simulate
from retrompi.sim.observe import Observe
from retrompi.studies import case, compare_runtimes, sensitivity
from retrompi.studies.scenario import Scenario

ON = Observe(critical_path=True)
LATENCY, BANDWIDTH = "platform.link.latency", "platform.link.bandwidth"
SWITCH = "nt4-p6-200*4@switch-100"

CASES = [
    ("mpich", SWITCH, "halo", LATENCY),
    ("mpich", SWITCH, "halo", BANDWIDTH),
    ("mpich", SWITCH, "halo", "platform.host.tcp_segment"),
    ("mpich", SWITCH, "halo", "platform.host.interrupt"),
    ("mpich", SWITCH, "alltoall", LATENCY),
    ("mpich", SWITCH, "alltoall", "platform.host.nic_rate"),
    ("lam", SWITCH, "halo", LATENCY),
    ("lam", SWITCH, "alltoall", BANDWIDTH),
    ("wmpi", SWITCH, "halo", LATENCY),
    ("wmpi", SWITCH, "halo", "wmpi.daemon"),
    ("wmpi", SWITCH, "alltoall", BANDWIDTH),
]


def _scenario(model: str, platform: str, program: str) -> Scenario:
    arguments = {"halo": ["ranks=4", "reps=3", "size=1000"], "alltoall": ["ranks=4", "reps=2", "size=3000"]}[program]
    return compare_runtimes.program(program, arguments, model, platform, "distributed", None)


@pytest.mark.parametrize(("model", "platform", "program", "key"), CASES)
def test_a_sensitivity_equals_finite_differences_in_its_range(model: str, platform: str, program: str, key: str) -> None:
    base = _scenario(model, platform, program)
    path = simulate.run(base.question(), ON).critical_path
    found = sensitivity.verified(base, sensitivity.sensitivity(base, path, key))
    assert found.low is not None
    assert found.high is not None
    at = found.key.value
    assert at is not None
    assert found.low < found.high, "no range"  # one-sided where two paths are equally long
    for value in (at + 0.37 * (found.high - at), at + 0.83 * (found.high - at), at - 0.45 * (at - found.low)):
        time = sensitivity.measured(base, found.key, value)
        assert time is not None
        assert time - found.time_ps == pytest.approx(found.change_ps(value), rel=1e-6, abs=4)  # 4 ps: the delays are whole picoseconds


def test_a_latency_is_as_often_on_the_path_as_its_slope_says() -> None:
    """A ring of one message each in turn: the path crosses the cable once for each."""
    base = _scenario("mpich", SWITCH, "halo")
    base = case.apply(base, {"trace.reps": "1"})
    path = simulate.run(base.question(), ON).critical_path
    found = sensitivity.sensitivity(base, path, LATENCY)
    assert found.slope == pytest.approx(round(found.slope))
    per_link = (found.key.value or 0) * 1e12
    assert path.by("stage")["latency"] == pytest.approx(found.slope * per_link, abs=2)


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("platform.host.cores", "whole number"),
        ("platform.host.quantum", "hosts.kinds.0.quantum"),
        ("platform.host.copy_mem", "hosts.kinds.0.copy_mem"),
    ],
)
def test_what_has_no_derivative_says_so(key: str, told: str) -> None:
    base = _scenario("mpich", SWITCH, "halo")
    path = simulate.run(base.question(), ON).critical_path
    with pytest.raises(UsageError, match=told):
        sensitivity.sensitivity(base, path, key)


def test_sampled_curves_have_no_derivative() -> None:
    base = case.apply(_scenario("mpich", SWITCH, "halo"), {"fidelity": "loggp"})
    path = simulate.run(base.question(), ON).critical_path
    with pytest.raises(UsageError, match="sampled"):
        sensitivity.sensitivity(base, path, LATENCY)
