"""Common parts of the evaluators: their data, their findings, and the published units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from retrompi.base import units
from retrompi.base.errors import UsageError
from retrompi.papers.statements.claims import Claim, SizeRange
from retrompi.spec.declare.curve import NotOnCurve, TimeCurve

__all__ = ["UNITS", "Check", "Data", "Finding", "Observed", "Unavailable", "base_value", "in_range", "number_of", "one_size", "part_of",
           "residual", "sizes_of", "to_unit", "unit_of"]

Check = Mapping[str, Any]
Observed = float | str | None

UNITS: Mapping[str, float] = {
    "microseconds": 1e6,
    "us": 1e6,
    "ms": 1e3,
    "s": 1.0,
    "MByte/s": 1e-6,
    "KByte/s": 1e-3,
    "kB/s": 1e-3,
    "Mbps": 8e-6,
    "GByte/s": 1e-9,
    "MB/s": 1e-6,
    "Mflop/s": 1e-6,
    "ns": 1e9,
    "MByte": 1e-6,
    "MB": 1e-6,
    "bytes": 1.0,
    "B": 1.0,
    "kB": 1e-3,
    "KiB": 2.0**-10,
    "MiB": 2.0**-20,
    "ratio": 1.0,
    "x": 1.0,
    "%": 1.0,
    "probability": 1.0,
    "crashes": 1.0,
    "windows": 1.0,
    "processes": 1.0,
    "processors": 1.0,
    "programs": 1.0,
}
"""Published unit -> how many of it one base unit (s, B/s, B, 1) makes. The papers' K of a rate is 1000."""


class Unavailable(Exception):
    """Data required by a check is missing; the message says which."""


@dataclass(frozen=True)
class Finding:
    """The result of one check: ``ok`` None means undecided; ``low``/``high`` are the limits applied."""

    ok: bool | None
    observed: Observed
    note: str = ""
    low: float | None = None
    high: float | None = None
    unit: str = ""


@dataclass
class Data:
    """The data for verdicts: curves by (model, mode) and a nested dict of facts.

    ``stand_in`` substitutes a rival variant for a model: ``{"wmpi": "wmpi:additive-stall"}``.
    """

    points: Mapping[tuple[str, str], TimeCurve] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    stand_in: Mapping[str, str] = field(default_factory=dict)

    @property
    def layers_below(self) -> Mapping[str, str]:
        """Curve -> the curve of the layer below it."""
        told = self.facts.get("layers_below", {})
        return told if isinstance(told, Mapping) else {}

    def curve(self, model: str, mode: str) -> TimeCurve:
        """The curve of a model in a mode; Unavailable if it was not simulated."""
        key = (self.stand_in.get(model, model), mode)
        if key not in self.points:
            raise Unavailable(f"no points of {key[0]} in {mode} mode (not simulated yet)")
        return self.points[key]

    def fact(self, path: str) -> Any:
        """The fact at a dotted path; Unavailable if no simulation produced it."""
        here: Any = self.facts
        for i, name in enumerate(path.split(".")):
            name = self.stand_in.get(name, name) if i == 1 else name
            if not isinstance(here, Mapping) or name not in here:
                raise Unavailable(f"no simulated fact '{path}'")
            here = here[name]
        return here


def residual(observed: float, low: float, high: float) -> float:
    """Signed distance of ``observed`` outside low..high: negative below, 0 inside, positive above."""
    return observed - low if observed < low else observed - high if observed > high else 0.0


def sizes_of(claim: Claim, check: Check) -> SizeRange | None:
    """The message sizes of a check, from the column it names; None without one."""
    column = check.get("sizes")
    if column is None:
        return None
    found = claim.sizes(column)
    if found is None:
        raise ValueError(f"{claim.id}: no message size in the column '{column}'")
    return found


def one_size(claim: Claim, check: Check) -> int:
    """The size in bytes that a check gives itself, ``size = "1 KiB"``; ValueError if it is none."""
    try:
        found = units.parse_sizes(check["size"])
    except UsageError as error:
        raise ValueError(f"{claim.id}: size: {error}") from None
    if len(found) != 1:
        raise ValueError(f"{claim.id}: size is '{check['size']}'; one size is right")
    return found[0]


def part_of(curve: TimeCurve, claim: Claim, check: Check, least: int = 1) -> TimeCurve:
    """The part of a curve that a check applies to; Unavailable with fewer than ``least`` sizes."""
    sizes = sizes_of(claim, check)
    part = curve.within(sizes)
    if len(part.sizes) < least:
        raise Unavailable(f"needs {least} or more simulated sizes in {sizes if sizes is not None else 'the sweep'}")
    return part


def number_of(curve: TimeCurve, name: str, *sizes: int) -> float:
    """A number of a curve (`TimeCurve.number`); Unavailable if it has none."""
    try:
        return curve.number(name, *sizes)
    except NotOnCurve as error:
        raise Unavailable(str(error)) from None


def unit_of(claim: Claim, check: Check) -> str:
    """The unit a claim is judged in."""
    return str(check.get("unit", claim.unit))


def to_unit(value: float, unit: str) -> float:
    """A value in base units converted to the published unit; ValueError for an unknown unit."""
    if unit not in UNITS:
        raise ValueError(f"no conversion to the published unit '{unit}'")
    return value * UNITS[unit]


def base_value(value: float, unit: str) -> float:
    """A value in the published unit converted to base units; ValueError for an unknown unit."""
    return value / to_unit(1.0, unit)


def in_range(values: Mapping[str, float], claim: Claim, unit: str, note: str = "") -> Finding:
    """All of ``values`` (name -> number in ``unit``) in low..high; the one furthest out is the observed one.

    Raises ValueError for a claim without low..high.
    """
    if claim.low is None or claim.high is None:
        raise ValueError(f"{claim.id}: no low..high to judge a number by")
    low, high = claim.low, claim.high
    worst = max(values, key=lambda k: (abs(residual(values[k], low, high)), abs(values[k] - (low + high) / 2)))
    told = ", ".join(f"{k} {v:.4g}" for k, v in values.items()) if len(values) > 1 else ""
    ok = all(low <= v <= high for v in values.values())
    return Finding(ok, values[worst], "; ".join(t for t in (told, note) if t), low, high, unit)


