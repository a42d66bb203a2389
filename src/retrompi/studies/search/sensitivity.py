"""How a run's time depends on a number, from one run: along its critical path, and as far as that can be told from all that was beside it.

The engine states for most delays how many units of which declared number they have (seconds of delay to a second of ``tcp_segment``, to
a byte per second of ``bandwidth``, ...). What a key of the scenario does to these numbers is the difference of two compilations, which
simulates no program; the chain rule does the rest (studies/define/declared_numbers.py). A time is linear in a cost, and linear in the
reciprocal of a rate.

That holds while everything happens in the same order and no other path becomes longer. Both can be read off the record of the one run
(engine/record/path_graph.hpp), so a sensitivity has a range. Where something acted on the run whose derivative is not known (ticks, quanta,
numbers whose delays are not itemised), two more runs give a finite difference, which says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING

from retrompi.base.errors import UsageError
from retrompi.base.units import PS
from retrompi.sim import simulate
from retrompi.sim.critical_path import Changes, CriticalPath
from retrompi.sim.observe import Observe
from retrompi.spec.declare.number import Number
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.question import Beside
from retrompi.spec.registry import resolve
from retrompi.studies.define import case
from retrompi.studies.define.declared_numbers import Declared, NotItemised, numbers_of
from retrompi.studies.define.keys import hosts_of, number
from retrompi.studies.define.scenario import Scenario

if TYPE_CHECKING:
    from retrompi.spec.platform import Platform

__all__ = ["REACHES", "Sensitivity", "Tolerated", "sensitivity", "time_at", "tolerances", "verify_range"]

REACHES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Relative changes that `verify_range` tries, until one fails."""
AGREE = 1e-6
"""How closely a change of the time must agree with the predicted one, relative to it; each delay may be rounded besides."""
FARTHEST = 2.0**16
"""A tolerance is looked for up to so many times the key's value, or down to the value divided by it."""
FOLLOWED = 4.0
"""A derivative is followed so far at most."""
_STEP = 1e-4
_STEP_OF_CURVES = 1e-2
"""Relative steps of a derivative; sampled times are whole picoseconds, so that theirs is longer."""
_STEP_SIMULATED = 1e-3


@dataclass(frozen=True)
class Sensitivity:
    """``slope``: seconds of the run for a unit of the key; ``share``: per cent of the time for a per cent of the key.

    ``rate``: the time is linear in the reciprocal of the key. ``pieces``: delays of the path, each rounded to a picosecond. From ``low`` to
    ``high`` the run's record says that this holds; None: it does not say, because the slope is the difference of simulations, ``simulated``
    for this reason. ``checked``: where it was found to hold by simulating it (None: not asked).
    """

    key: Number
    time_ps: int
    slope: float
    rate: bool
    pieces: int
    low: float | None = None
    high: float | None = None
    simulated: str = ""
    checked: tuple[float, float] | None = None

    @property
    def share(self) -> float:
        """The elasticity: d ln(time) / d ln(key)."""
        return self.slope * self.key.value / (self.time_ps * PS) if self.time_ps else 0.0

    @property
    def linear_in(self) -> str:
        """The quantity in which the time is linear: ``key`` or ``1 / key``."""
        return "1 / key" if self.rate else "key"

    def change_ps(self, value: float) -> float:
        """The predicted change of the time, ps, if the key is ``value``."""
        at = self.key.value
        if not self.rate:
            return self.slope * (value - at) / PS
        return -self.slope * at * at * (1 / value - 1 / at) / PS

    def slower_at(self, share: float) -> float | None:
        """The value of the key at which the run is slower by ``share`` (0.05: 5 %) if its path stays the same; None: never.

        Another path can only make it slower still, so that a key that adds time usually reaches it there or before.
        """
        if self.slope == 0:
            return None
        at, more = self.key.value, share * self.time_ps * PS
        if not self.rate:
            return at + more / self.slope
        inverse = 1 / at - more / (self.slope * at * at)
        return 1 / inverse if inverse > 0 else None


@dataclass(frozen=True)
class _Followed:
    """How the declared numbers follow a key: ``by_unit`` of the key at its value, and along which line they go away from it."""

    key: Number
    at: Declared
    by_unit: Changes
    rate: bool

    def amount(self, value: float) -> float:
        """The amount to which the changes are proportional: the key's own change, or for a rate that of its reciprocal in units of the
        key."""
        at = self.key.value
        return -at * at * (1 / value - 1 / at) if self.rate else value - at

    def value(self, amount: float) -> float:
        """The inverse of `amount`."""
        at = self.key.value
        return 1 / (1 / at - amount / (at * at)) if self.rate else at + amount

    def changes(self, amount: float) -> dict[tuple[str, int, str, int], float]:
        """Of the numbers, for this amount."""
        return {n: d * amount for n, d in self.by_unit.items()}


def sensitivity(scenario: Scenario, path: CriticalPath, key: str) -> Sensitivity:
    """The derivative of a run's time by ``key``, along its critical path, and the range in which it holds; where the path does not say, by
    simulating.

    Raises UsageError for a key that is no number, and for one without a derivative: whole numbers.
    """
    told = number(scenario, key)
    if told.whole or not told.value > 0:
        why = "it is a whole number" if told.whole else f"its value is {told.value_text or 'not set'}"
        raise UsageError(f"'{key}' has no derivative: {why}", code="not-a-number")
    try:
        followed = _follow(scenario, path, told)
    except NotItemised as why:
        return _by_simulation(scenario, path, told, str(why))
    slope = path.slope(followed.by_unit)
    low, high = _range(scenario, path, followed)
    return Sensitivity(told, path.took, slope, followed.rate, len(path), low, high)


def _follow(scenario: Scenario, path: CriticalPath, key: Number) -> _Followed:
    """Raises NotItemised with the reason why the key cannot be followed along the path."""
    if path.unfollowed:
        raise NotItemised(" and ".join(f"{what} ({n} times)" for what, n in path.unfollowed.items()) + " acted on the run")
    if scenario.question().beside != Beside():
        raise NotItemised("other jobs, traffic or failures act on the run")
    owner = key.path.removeprefix("platform.").partition(".")[0]
    one_host = key.path.startswith("platform.") and owner not in ("host", "link")
    if one_host and len(hosts_of(scenario, _platform_of(scenario))) > 1 and path.ties:
        raise NotItemised(f"of hosts that act at one instant ({path.ties} times) it changes one: who is first is then another matter")
    step = key.value * (_STEP if scenario.setting("fidelity") == "mechanism" else _STEP_OF_CURVES)
    at = numbers_of(scenario, path.numbers)
    low, high = (numbers_of(_with(scenario, key, key.value + d), path.numbers) for d in (-step, step))
    up, down = high.moved_from(at), low.moved_from(at)
    moved = up.keys() | down.keys()
    if any(field == "copy_line" for _, _, field, _ in path.numbers) and any(field.startswith("copy_") for _, _, field, _ in moved):
        raise NotItemised("it acts through copies of what another processor has written, whose delays are not itemised")
    kinds = {at.is_rate(n) for n in (moved & set(path.numbers)) or moved}
    if len(kinds) > 1:
        raise NotItemised("it is a rate and a time at once")
    line = _Followed(key, at, {}, kinds == {True})
    apart = line.amount(key.value + step) - line.amount(key.value - step)
    return replace(line, by_unit={n: (up.get(n, 0.0) - down.get(n, 0.0)) / apart for n in up.keys() | down.keys()})


def _platform_of(scenario: Scenario) -> Platform:
    return resolve(scenario.model, scenario.platform, scenario.sets)[1]


def _range(scenario: Scenario, path: CriticalPath, followed: _Followed) -> tuple[float, float]:
    """The values of the key between which the run's record says that its time follows the slope."""
    at = followed.key.value
    ends = []
    for far in (at / FOLLOWED, at * FOLLOWED):
        whole = followed.amount(far)
        amount = whole * path.reach(followed.changes(whole), AGREE)
        for _ in range(24):
            value = followed.value(amount)
            if value == at or _as_told(scenario, followed, value, amount):
                break
            amount /= 4
        else:
            value = at
        ends.append(value)
    low, high = ends
    return low, high


def _as_told(scenario: Scenario, followed: _Followed, value: float, amount: float) -> bool:
    """Whether the declared numbers are at this value of the key where their line says: no threshold is between."""
    try:
        there = numbers_of(_with(scenario, followed.key, value), list(followed.at.values))
        moved = there.moved_from(followed.at)
    except (NotItemised, UsageError):
        return False
    expected = followed.changes(amount)
    return all(
        abs(moved.get(n, 0.0) - expected.get(n, 0.0)) <= AGREE * abs(expected.get(n, 0.0)) + followed.at.rounding(n)
        for n in moved.keys() | expected.keys()
    )


def _by_simulation(scenario: Scenario, path: CriticalPath, key: Number, why: str) -> Sensitivity:
    """The slope as the difference of two simulations, with the reason."""
    at = key.value
    values = (at * (1 - _STEP_SIMULATED), at * (1 + _STEP_SIMULATED))
    times = [time_at(scenario, key, value) for value in values]
    if times[0] is None or times[1] is None:
        raise UsageError(f"'{key.path}' has no derivative: beside its value the run does not complete", code="not-a-number")
    slope = (times[1] - times[0]) * PS / (values[1] - values[0])
    return Sensitivity(key, path.took, slope, False, len(path), simulated=why)


def _with(scenario: Scenario, key: Number, value: float) -> Scenario:
    return case.apply(scenario, {key.path: f"{value!r} {key.unit}"})


@dataclass(frozen=True)
class Tolerated:
    """How far a key can move until the run is slower by ``slower``: at ``value`` it is (None: not within 65536 times). ``in_range``: all
    happens in the run's own order up to there; if not, the value is what the recorded order would give."""

    slower: float
    value: float | None
    in_range: bool


def tolerances(scenario: Scenario, path: CriticalPath, key: str, shares: tuple[float, ...], *, down: bool | None = None) -> list[Tolerated]:
    """The tolerance of a run to ``key``, from its record: where the longest of all its paths is longer than the time by each share.

    ``down``: the key decreases (None: a rate does, else it increases). Raises UsageError for a key that the record cannot follow.
    """
    told = number(scenario, key)
    if told.whole or not told.value > 0:
        raise UsageError(
            f"'{key}' has no derivative: its value is {told.value_text or 'not set'}, or it is a whole number", code="not-a-number"
        )
    try:
        followed = _follow(scenario, path, told)
    except NotItemised as why:
        raise UsageError(f"'{key}' cannot be followed along the path: {why}", code="not-a-number") from None
    falling = followed.rate if down is None else down
    far = followed.amount(told.value / FARTHEST if falling else told.value * FARTHEST)

    def longer(part: float) -> tuple[float, bool]:
        return path.time_change(followed.changes(far * part))

    return [_first(longer, share, path.took * PS, lambda part: followed.value(far * part)) for share in shares]


def _first(longer: Callable[[float], tuple[float, bool]], share: float, time: float, value: Callable[[float], float]) -> Tolerated:
    """Bisection of the part of the farthest change at which the run is slower by ``share``: the longest path is convex in it."""
    if longer(1.0)[0] < share * time:
        return Tolerated(share, None, False)
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if longer(middle)[0] >= share * time else (middle, high)
    kept = all(longer(high * i / 16)[1] for i in range(1, 17))
    return Tolerated(share, value(high), kept)


def time_at(scenario: Scenario, key: Number, value: float) -> int | None:
    """The run's time, ps, with the key at ``value``; None: it does not complete."""
    result = simulate.run(_with(scenario, key, value).question(), Observe())
    return result.time_ps if result.outcome == Outcome.COMPLETED else None


def verify_range(scenario: Scenario, found: Sensitivity) -> Sensitivity:
    """With the range about the value in which the predicted time is the simulated one: at every change of `REACHES` up to its ends."""

    def holds(value: float) -> bool:
        time = time_at(scenario, found.key, value)
        if time is None:
            return False
        wanted = found.change_ps(value)
        return abs(time - found.time_ps - wanted) <= AGREE * abs(wanted) + found.pieces / 2

    at = found.key.value
    low, high = ([at, *takewhile(holds, (at * (1 + sign * r) for r in REACHES))][-1] for sign in (-1, 1))
    return replace(found, checked=(low, high))
