"""How a run's time depends on a number, from one run: the sum over the delays of its critical path.

The engine states for most delays how many units of which declared number they have (seconds of delay to a second of ``tcp_segment``, to
a byte per second of ``bandwidth``, ...). What a key of the scenario does to these numbers is the difference of two compilations, which
simulates nothing; the chain rule does the rest. Where the path stays the same, a time is linear in a cost, and linear in the
reciprocal of a rate.

How far the path stays the same, no single run tells: `verified` simulates growing changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from retrompi.base.errors import UsageError
from retrompi.base.units import PS
from retrompi.sim import simulate
from retrompi.sim.critical_path import CriticalPath
from retrompi.sim.observe import Observe
from retrompi.sim.resolved import Resolved
from retrompi.studies import case
from retrompi.studies.keys import Key, number
from retrompi.studies.scenario import Scenario
from retrompi.traces.calls import calls_of

__all__ = ["REACHES", "Sensitivity", "measured", "sensitivity", "verified"]

Number = tuple[str, int, str]
"""A declared number of the compiled run: owner, index, field."""

_HOST = ("interrupt", "tcp_segment", "tcp_byte", "loopback_segment", "dispatch", "nic_rate", "nic_rate_in", "nic_latency")
_LINK = ("bandwidth", "latency")
_HOP = ("send_cpu", "recv_cpu")
_STREAM = ("message_cpu", "call", "calls_out", "calls_in")
_JOB = ("send_cpu", "recv_cpu", "test_cpu", "call_lock")
RATES = ("bandwidth", "nic_rate", "nic_rate_in")
REACHES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Relative changes that `verified` tries, until one fails."""
AGREE = 1e-6
"""How closely a change of the time must agree with the predicted one, relative to it; each delay may be rounded besides."""
_STEP = 1e-4


@dataclass(frozen=True)
class Sensitivity:
    """``slope``: seconds of the run for a unit of the key; ``share``: per cent of the time for a per cent of the key.

    ``rate``: the time is linear in the reciprocal of the key. ``pieces``: delays of the path, each rounded to a picosecond. ``low`` to
    ``high``: where this was found to hold by simulating it (None: not asked).
    """

    key: Key
    time_ps: int
    slope: float
    rate: bool
    pieces: int
    low: float | None = None
    high: float | None = None

    @property
    def share(self) -> float:
        """The elasticity: d ln(time) / d ln(key)."""
        return self.slope * (self.key.value or 0.0) / (self.time_ps * PS) if self.time_ps else 0.0

    @property
    def linear_in(self) -> str:
        """What the time is linear in: ``key`` or ``1 / key``."""
        return "1 / key" if self.rate else "key"

    def change_ps(self, value: float) -> float:
        """The predicted change of the time, ps, if the key is ``value``."""
        at = self.key.value or 0.0
        if not self.rate:
            return self.slope * (value - at) / PS
        return -self.slope * at * at * (1 / value - 1 / at) / PS

    def slower_at(self, share: float) -> float | None:
        """The value of the key at which the run is slower by ``share`` (0.05: 5 %) if its path stays the same; None: never.

        Another path can only make it slower still, so that a key that adds time usually reaches it there or before.
        """
        if self.slope == 0:
            return None
        at, more = self.key.value or 0.0, share * self.time_ps * PS
        if not self.rate:
            return at + more / self.slope
        inverse = 1 / at - more / (self.slope * at * at)
        return 1 / inverse if inverse > 0 else None


def _leaves(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(value, Mapping):
        for k, v in value.items():
            yield from _leaves(v, (*at, k))
    elif isinstance(value, list | tuple):
        for i, v in enumerate(value):
            yield from _leaves(v, (*at, i))
    else:
        yield at, value


def _compiled(scenario: Scenario) -> dict[tuple[str | int, ...], Any]:
    asked = Resolved.of(scenario.question())
    rows = simulate.compile_question(asked, calls_of(asked.trace, asked.question)).rows
    return dict(_leaves(rows))


def _number(at: Sequence[Any], rows: Mapping[tuple[str | int, ...], Any]) -> Number | None:
    """The declared number at a place of the compiled rows; None: the engine does not state its delays."""
    match at:
        case ("hosts", "kinds", int(k), str(field)) if field in _HOST:
            return "host", k, field
        case ("link", str(field)) if field in _LINK:
            return "link", 0, field
        case ("same" | "same_bulk" | "remote" as route, int(i), str(field)):
            stream = rows.get((route, i, "medium")) == "stream" and rows.get((route, i, "io")) != "signal"
            if field in _HOP or (stream and field in _STREAM):
                return route, i, field
        case ("forward_cost", str(role)):
            return f"forward {role}", 0, "forward_cost"
        case (str(field),) if field in _JOB:
            return "job", 0, field
    return None


def sensitivity(scenario: Scenario, path: CriticalPath, key: str) -> Sensitivity:
    """The derivative of a run's time by ``key``, along its critical path.

    Raises UsageError for a key that is no number, and for one without a derivative: whole numbers, and what acts through something whose
    delays are not stated.
    """
    told = number(scenario, key)
    if scenario.fidelity != "mechanism":
        why = f"at fidelity '{scenario.fidelity}' its curves are sampled; use mechanism"
        raise UsageError(f"'{key}' has no derivative: {why}", code="needs-mechanism")
    if told.whole or told.value is None or told.value <= 0:
        why = "it is a whole number" if told.whole else f"its value is {told.text or 'not set'}"
        raise UsageError(f"'{key}' has no derivative: {why}", code="not-a-number")
    step = told.value * _STEP
    low, high = (_compiled(_with(scenario, told, told.value + d)) for d in (-step, step))
    slope, rates = 0.0, set()
    for at in sorted({*low, *high}, key=str):
        a, b = low.get(at), high.get(at)
        if a == b:
            continue
        found = _number(at, high)
        if found is None or not isinstance(a, int | float) or not isinstance(b, int | float):
            raise UsageError(
                f"'{key}' has no derivative along the path: it acts through {'.'.join(map(str, at))}, whose delays are not stated",
                code="not-a-number",
            )
        rates.add(found[2] in RATES)
        slope += path.slope(found) * (b - a) / (2 * step)
    if len(rates) > 1:
        raise UsageError(f"'{key}' has no derivative along the path: it is a rate and a time at once", code="not-a-number")
    return Sensitivity(told, path.took, slope, rates == {True}, len(path))


def _with(scenario: Scenario, key: Key, value: float) -> Scenario:
    return case.apply(scenario, {key.name: f"{value!r} {key.unit}"})


def measured(scenario: Scenario, key: Key, value: float) -> int | None:
    """The run's time, ps, with the key at ``value``; None: it does not complete."""
    result = simulate.run(_with(scenario, key, value).question(), Observe())
    return result.time_ps if result.outcome == "completed" else None


def verified(scenario: Scenario, found: Sensitivity) -> Sensitivity:
    """With the range about the value in which the predicted time is the simulated one: at every change of `REACHES` up to its ends."""

    def holds(value: float) -> bool:
        time = measured(scenario, found.key, value)
        if time is None:
            return False
        wanted = found.change_ps(value)
        return abs(time - found.time_ps - wanted) <= AGREE * abs(wanted) + found.pieces / 2

    at = found.key.value or 0.0
    low, high = ([at, *takewhile(holds, (at * (1 + sign * r) for r in REACHES))][-1] for sign in (-1, 1))
    return replace(found, low=low, high=high)
