"""A number that may be varied: its unit, its value, the range in which it lies, and the map of that range to 0..1."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from retrompi.base import units

__all__ = ["Number", "readable_unit"]

_PLAIN: Mapping[str, Sequence[str]] = {
    "B": ("B",), "s": ("s", "ms", "us", "ns", "ps"), "B/s": ("GB/s", "MB/s", "kB/s", "B/s"), "s/B": ("s/B", "us/B", "ns/B", "ps/B"),
    "Hz": ("GHz", "MHz", "kHz", "Hz"), "flop/s": ("Gflop/s", "Mflop/s", "kflop/s", "flop/s"),
}


def readable_unit(unit: str, ends: Sequence[float]) -> str:
    """The unit in which the larger end has one to three digits before the decimal point."""
    base = units.canonical(unit)
    plain = _PLAIN.get(base, ("",))
    return next((s for s in plain if max(ends) >= units.UNITS[base][s] * 0.99995), plain[-1])


@dataclass(frozen=True)
class Number:
    """A number in base units of ``unit``, between ``low`` and ``high``; ``value`` is what it is now, nan if it is not set.

    ``log``: equal parts of 0..1 are equal factors; ``whole``: only whole numbers make sense. Texts have ``digits`` digits, in the unit
    ``spelling`` ("": that in which each reads well), or from one of ``larger`` on in that. ``keys``: the ``--set`` keys that set it in a
    run, each with the factor by which the value there is larger.
    """

    path: str
    unit: str
    low: float = -math.inf
    high: float = math.inf
    log: bool = False
    whole: bool = False
    value: float = math.nan
    source: str = ""
    spelling: str = ""
    larger: str = ""
    digits: int = 9
    keys: Mapping[str, float] = field(default_factory=dict, hash=False)

    @property
    def base_unit(self) -> str:
        """The base unit that ``unit`` names."""
        return units.canonical(self.unit)

    @property
    def key(self) -> str:
        """The first of ``keys``, by which a run knows it; its path without any."""
        return next(iter(self.keys), self.path)

    # -- the map of the range to 0..1 --------------------------------------------------------------------------------------------

    def at(self, u: float) -> float:
        """The value at the share ``u`` in 0..1 of the range; of whole numbers each has an equal part of it."""
        u = min(max(u, 0.0), 1.0)
        if not self.whole:
            return self.between(self.low, self.high, u)
        low, high = math.ceil(self.low), math.floor(self.high)
        if self.log and low > 0:
            return float(min(int(low * math.exp(u * math.log((high + 1) / low))), high))
        return float(min(low + int(u * (high - low + 1)), high))

    def between(self, low: float, high: float, u: float) -> float:
        """The value at the share ``u`` of the way from low to high, whole or not."""
        return float(low * (high / low) ** u if self.log and low > 0 else low + u * (high - low))

    def share(self, value: float) -> float:
        """The share u in 0..1 of the range at which ``value`` is; of a whole number the middle of its part."""
        low, at, end = self.low, value, self.high
        if self.whole:
            low, value = math.ceil(self.low), round(value)
            at, end = value + 0.5, math.floor(self.high) + 1.0
        if self.log and low > 0:
            way, span = math.log(at / low) if value > 0 else 0.0, math.log(end / low)
        else:
            way, span = at - low, end - low
        return min(max(way / span, 0.0), 1.0) if span > 0 else 0.5

    # -- steps in a search -------------------------------------------------------------------------------------------------------

    def snap(self, x: float) -> float:
        """``x`` rounded to the value of its `text`: exactly what is simulated and shown."""
        return units.parse(self.text(x), self.unit)

    def middle(self, low: float, high: float) -> float | None:
        """A value strictly between the two; None if there is none."""
        x = math.sqrt(low * high) if self.log and low > 0 else (low + high) / 2
        if self.whole:
            x = math.floor(x) if low < math.floor(x) else math.ceil(x)
        x = self.snap(x)
        return x if low < x < high else None

    def width(self, low: float, high: float) -> float:
        """The distance of the two, relative to the larger."""
        return (high - low) / max(abs(low), abs(high))

    def spread(self, n: int) -> list[float]:
        """``n`` values from end to end inclusive; fewer if there are fewer integers."""
        low, high = self.low, self.high
        if n < 2 or high <= low:
            raise ValueError("at least two values between two ends")
        if self.log and low > 0:
            inner = [self.between(low, high, i / (n - 1)) for i in range(1, n - 1)]
        else:
            inner = [low + (high - low) * i / (n - 1) for i in range(1, n - 1)]
        return [x for x in sorted({low, *(self.snap(x) for x in inner), high}) if low <= x <= high]

    # -- texts -------------------------------------------------------------------------------------------------------------------

    def text(self, x: float) -> str:
        """``x`` as text, as ``--set`` reads it."""
        if self.base_unit == "B" and (self.whole or not self.spelling):
            return units.format_bytes(round(x)).replace(" ", "") if self.spelling else f"{round(x)}B"
        if self.whole:
            return str(round(x))
        spelling = self.spelling or readable_unit(self.unit, (x,))
        if self.larger and x >= units.UNITS[self.base_unit][self.larger]:
            spelling = self.larger
        return f"{x / units.UNITS[self.base_unit][spelling]:.{self.digits}g}{spelling}"

    @property
    def value_text(self) -> str:
        """The value as tables and cards show it; "" if it is not set."""
        return "" if math.isnan(self.value) else units.format_quantity(self.value, self.unit)

    @property
    def ends(self) -> tuple[str, str]:
        """The two ends as texts."""
        if self.base_unit == "B":
            return units.format_bytes(self.low).replace(" ", ""), units.format_bytes(self.high).replace(" ", "")
        return self.text(self.low), self.text(self.high)

    def sets(self, u: float) -> dict[str, str]:
        """The overrides, ``--set`` key -> text, that give a run the value at the share ``u``."""
        return {key: self.text(self.at(u) * factor) for key, factor in self.keys.items()}

    def in_whole_numbers(self) -> Number:
        """The same, of which only whole numbers make sense."""
        return replace(self, whole=True, spelling="B" if self.base_unit == "B" else self.spelling)
