"""One numeric key as a search coordinate: texts and numbers, integer or not, logarithmic or linear."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from retrompi.base import units
from retrompi.base.errors import UsageError

__all__ = ["LEAST_TOLERANCE", "Scale", "scale_of"]

LEAST_TOLERANCE = 1e-4
"""Relative rounding of the values tried, so that exactly the printed value is simulated."""


@dataclass(frozen=True)
class Scale:
    """Values of ``key`` in base units of ``unit``, written in the unit ``spelling`` (or, from one of ``larger`` on, in
    ``larger``) with ``digits`` digits; ``whole``: integers only; ``log``: steps are factors."""

    key: str
    unit: str
    spelling: str
    whole: bool = False
    log: bool = False
    digits: int = 6
    larger: str = ""

    def text(self, x: float) -> str:
        """``x`` as text, as simulated and shown."""
        base = units.canonical(self.unit)
        if self.whole:
            return units.format_bytes(round(x)).replace(" ", "") if base == "B" else str(round(x))
        spelling = self.larger if self.larger and x >= units.UNITS[base][self.larger] else self.spelling
        return f"{x / units.UNITS[base][spelling]:.{self.digits}g}{spelling}"

    def snap(self, x: float) -> float:
        """``x`` rounded to the value of its `text`."""
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

    def spread(self, low: float, high: float, n: int) -> list[float]:
        """``n`` values from low to high inclusive; fewer if there are fewer integers."""
        if n < 2 or high <= low:
            raise ValueError("at least two values between two ends")
        if self.log and low > 0:
            inner = [low * (high / low) ** (i / (n - 1)) for i in range(1, n - 1)]
        else:
            inner = [low + (high - low) * i / (n - 1) for i in range(1, n - 1)]
        found = sorted({low, *(self.snap(x) for x in inner), high})
        return [x for x in found if low <= x <= high]


def scale_of(key: str, unit: str, texts: Sequence[str], *, whole: bool, log: bool | None = None) -> tuple[Scale, list[float]]:
    """The scale that ``texts`` (a range's ends) are written on, and their values; ``log`` None: logarithmic if they are a factor 8 apart.

    Raises UsageError for a wrong unit, ends that are not whole where the key takes whole numbers, or a logarithm from zero.
    """
    values = []
    for text in texts:
        try:
            values.append(units.parse(text, unit))
        except UsageError as error:
            raise UsageError(f"{key}: {error}", code=error.code) from None
        if whole and values[-1] != int(values[-1]):
            raise UsageError(f"{key}: '{text}' is not a whole number", code="bad-value")
    spellings = [m[1] for t in texts if (m := re.fullmatch(r"[\d._+eE-]+\s*(\S*)\s*", t.strip())) and m[1]]
    base = units.canonical(unit)
    known = sorted((s for s in dict.fromkeys(spellings) if s in units.UNITS[base]), key=units.UNITS[base].__getitem__)
    small, large = (known[0], known[-1]) if known else (min(units.UNITS[base], key=len),) * 2
    low = min(values)
    if log is None:
        log = low > 0 and max(values) >= 8 * low
    if log and low <= 0:
        raise UsageError(
            f"{key}: '{texts[values.index(low)]}' has no logarithm; begin above zero or take a linear scale", code="out-of-range"
        )
    return Scale(key, unit, small, whole, log, larger=large if large != small else ""), values
