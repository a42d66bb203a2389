"""The declared numbers of a scenario's compiled run, as the critical path names them, and how they change from one scenario to another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retrompi.base.units import PS
from retrompi.sim import simulate
from retrompi.sim.critical_path import Number
from retrompi.sim.resolved import Resolved
from retrompi.studies.define.scenario import Scenario

__all__ = ["Declared", "NotItemised", "numbers_of"]

_HOST = ("interrupt", "tcp_segment", "tcp_byte", "loopback_segment", "dispatch", "nic_rate", "nic_rate_in", "nic_latency",
         "copy_l1", "copy_l2", "copy_mem", "flops")
_LINK = ("bandwidth", "latency")
_HOP = ("send_cpu", "recv_cpu")
_STREAM = ("message_cpu", "call", "calls_out", "calls_in")
_JOB = ("send_cpu", "recv_cpu", "test_cpu", "call_lock")
_RATES = ("bandwidth", "nic_rate", "nic_rate_in", "copy_l1", "copy_l2", "copy_mem", "flops")
_OF_CURVES = ("send", "transit", "recv", "gap", "port", "both", "wire")
_SCHEDULED = ("flops", "quantum", "tick", "cores")
"""What a coarser level of detail still takes from a host: computation, and how processes share a processor."""

Place = tuple[str | int, ...]


class NotItemised(Exception):
    """A number acts through something whose delays the critical path does not itemise."""


@dataclass(frozen=True)
class Declared:
    """``values``: the declared numbers in base units; ``rest``: everything else that the engine is given, by its place."""

    values: Mapping[Number, float]
    rest: Mapping[Place, Any]

    def is_rate(self, number: Number) -> bool:
        """Whether delays are linear in its reciprocal."""
        return number[2] in _RATES and not number[0].startswith("curve")

    def rounding(self, number: Number) -> float:
        """How exactly it is known: sampled times are whole picoseconds."""
        return 2 * PS if number[0].startswith("curve") else 1e-12 * abs(self.values.get(number, 0.0))

    def moved_from(self, other: Declared) -> dict[Number, float]:
        """The changes since ``other``: a rate's is that of its reciprocal, in units of the rate there. Raises NotItemised if anything
        else differs."""
        for place in sorted(self.rest.keys() | other.rest.keys(), key=str):
            if self.rest.get(place) != other.rest.get(place):
                raise NotItemised(f"it acts through {'.'.join(map(str, place))}, whose delays are not itemised")
        told = {}
        for number in self.values.keys() | other.values.keys():
            a, b = other.values.get(number), self.values.get(number)
            if a is None or b is None:
                raise NotItemised(f"{number[0]}.{number[2]} is there at one value and not at another")
            if a != b:
                told[number] = -a * a * (1 / b - 1 / a) if self.is_rate(number) else b - a
        return told


def numbers_of(scenario: Scenario, wanted: Iterable[Number]) -> Declared:
    """The compiled run of a scenario. ``wanted``: of the sampled curves, the sizes of these."""
    asked = Resolved.of(scenario.question())
    rows = simulate.engine_rows(asked)
    leaves = dict(_leaves(rows))
    coarse = scenario.setting("fidelity") != "mechanism"
    values: dict[Number, float] = {}
    rest: dict[Place, Any] = {}
    for at, value in leaves.items():
        number = _number(at, leaves)
        if coarse and _not_of_curves(at):
            continue
        if number is not None and isinstance(value, int | float):
            values[number] = float(value)
        else:
            rest[at] = value
    for number in wanted:
        owner, table, field, size = number
        if owner.startswith("curve "):
            (hop,) = rows[owner.removeprefix("curve ")]
            points, _, _ = hop["curve"]["tables"][table]
            values[number] = _point(points, size)[_OF_CURVES.index(field)] * PS
    return Declared(values, rest)


def _leaves(value: Any, at: Place = ()) -> Iterator[tuple[Place, Any]]:
    if isinstance(value, Mapping):
        for k, v in value.items():
            yield from _leaves(v, (*at, k))
    elif isinstance(value, list | tuple):
        for i, v in enumerate(value):
            yield from _leaves(v, (*at, i))
    else:
        yield at, value


def _not_of_curves(at: Place) -> bool:
    """Numbers that the coarser levels of fidelity do not read, or read as points of a curve."""
    match at:
        case ("hosts", "kinds", _, field):
            return field not in _SCHEDULED
        case ("link", *_):
            return True
        case (_, _, "curve", "tables", *_):
            return True
        case (_, _, "connect"):
            return False
    return False


def _number(at: Sequence[Any], rows: Mapping[Place, Any]) -> Number | None:
    """The declared number at a place of the compiled rows; None: the engine does not state its delays."""
    match at:
        case ("hosts", "kinds", int(k), str(field)) if field in _HOST:
            return "host", k, field, 0
        case ("link", str(field)) if field in _LINK:
            return "link", 0, field, 0
        case ("same" | "same_bulk" | "remote" as route, int(i), str(field)):
            stream = rows.get((route, i, "medium")) == "stream" and rows.get((route, i, "io")) != "signal"
            if field in _HOP or (stream and field in _STREAM):
                return route, i, field, 0
        case ("forward_cost", str(role)):
            return f"forward {role}", 0, "forward_cost", 0
        case (str(field),) if field in _JOB:
            return "job", 0, field, 0
    return None


def _point(points: Sequence[Sequence[int]], size: int) -> list[float]:
    """The numbers of a curve at a size: straight lines between its points, as engine/channel/curve_law.hpp."""
    after = next((i for i, p in enumerate(points) if p[0] >= size), len(points))
    if after < len(points) and (points[after][0] == size or after == 0):
        return [float(x) for x in points[after][1:]]
    if len(points) == 1:
        return [float(x) for x in points[-1][1:]]
    after = min(after, len(points) - 1)
    a, b = points[after - 1], points[after]
    x = (size - a[0]) / (b[0] - a[0])
    return [max(0.0, u + x * (v - u)) for u, v in zip(a[1:], b[1:], strict=True)]
