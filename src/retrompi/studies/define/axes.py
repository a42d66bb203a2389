"""Axes of a study: the values of one key, written as a list, a range or (for a Latin hypercube) a continuous range.

    a,b,c            a list; "a,b" in quotes is one value
    A..B:xF          from A to B, each F times the one before
    A..B:+S          from A to B in steps of S
    A..B             consecutive integers; in a Latin hypercube, the continuous range
    A..B:log         in a Latin hypercube: the continuous range, uniform in the logarithm

Ranges are counted exactly and never expanded, so that a study of 10^9 points is rejected at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from retrompi.base import units
from retrompi.base.errors import UsageError
from retrompi.spec.declare.number import Number

__all__ = ["ABSENT", "Axis", "Steps", "Text", "parse", "split"]

ABSENT = "-"
"""The value of a key that does not apply to a point, such as a parameter of another model."""

_NUMBER = r"[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_LOW = re.compile(rf"({_NUMBER})\s*([^\s\d]\S*)?")
_HIGH = re.compile(rf"({_NUMBER})\s*([^\s\d:][^\s:]*)?\s*(?::\s*(\S.*))?")
_STEP = re.compile(rf"({_NUMBER})\s*([^\s\d]\S*)?")
_LISTED = 1100
"""Maximum number of values of a geometric range: a double has no more powers of two."""

Text = str | tuple[str, ...]
"""An axis as given: a text to be parsed, or a list of values."""


@dataclass(frozen=True)
class _Amount:
    """A number as written: exact, in ``unit``, a multiple of the base unit ``base``."""

    number: Fraction
    unit: str
    base: str

    @property
    def value(self) -> Fraction:
        """The amount in base units."""
        return self.number * _factor(self.base, self.unit)


def _factor(base: str, unit: str) -> Fraction:
    return Fraction(repr(units.UNITS[base][unit]))


def _text(value: Fraction, base: str, unit: str) -> str:
    """``value`` (base units) as text: sizes in the largest unit that gives an integer, all else in ``unit``."""
    if base == "B" and value.denominator == 1:
        return units.format_bytes(int(value)).replace(" ", "")
    number = value / _factor(base, unit)
    plain = str(number.numerator) if number.denominator == 1 else f"{float(number):.12g}"
    return plain + unit


@dataclass(frozen=True)
class Steps(Sequence[str]):
    """``length`` values from ``first`` on, ``step`` apart, computed on access."""

    first: Fraction
    step: Fraction
    length: int
    base: str
    unit: str

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> str:  # type: ignore[override]
        if not -self.length <= index < self.length:
            raise IndexError(index)
        return _text(self.first + (index % self.length) * self.step, self.base, self.unit)


@dataclass(frozen=True)
class Axis:
    """One key and its values; a continuous axis (``span``) has no list of values. ``given`` is its text.

    Of a key that varies about a base: ``base``, its text there, and ``source``, that of the range.
    """

    key: str
    values: Sequence[str]
    span: Number | None = None
    given: Text = field(default=(), compare=False)
    base: str = field(default="", compare=False)
    source: str = field(default="", compare=False)

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def ends(self) -> tuple[str, ...]:
        """A range's ends, or every value of a list."""
        return self.span.ends if self.span is not None else tuple(self.values)

    def at(self, share: float) -> str:
        """The value at a share in 0..1 of the range; each value of a list has an equal part."""
        if self.span is not None:
            return self.span.text(self.span.at(share))
        return self.values[min(int(share * len(self)), len(self) - 1)]


def split(text: str) -> list[tuple[str, bool]]:
    """The items of a list separated by commas, and whether each was in double quotes (then it is one literal value).

    Raises UsageError for an unclosed quote.
    """
    items, item, quoted, inside = [], "", False, False
    for letter in text:
        if letter == '"':
            inside, quoted = not inside, True
        elif letter == "," and not inside:
            items.append((item.strip(), quoted))
            item, quoted = "", False
        else:
            item += letter
    if inside:
        raise UsageError(f"'{text}' has a quote that does not end", code="bad-range")
    return [*items, (item.strip(), quoted)]


def parse(key: str, given: Text, *, continuous: bool = False, repeats: bool = False) -> Axis:
    """The axis that ``given`` describes. ``continuous`` allows ranges without a step (a Latin hypercube); ``repeats`` keeps equal
    values (zipped axes). Raises UsageError for an empty or descending range and for incompatible units."""
    if not isinstance(given, str):
        if not given:
            raise UsageError(f"'{key}' has no values", code="bad-range")
        return Axis(key, tuple(given) if repeats else tuple(dict.fromkeys(given)), given=given)
    parts: list[Sequence[str]] = []
    for item, quoted in split(given):
        if not item:
            raise UsageError(f"'{key}={given}' has an empty value; example: {key}=A,B or {key}=A..B:xF", code="bad-range")
        found = None if quoted else _parse_range(key, item, continuous)
        if isinstance(found, Number):
            if item != given.strip():
                raise UsageError(
                    f"'{key}={given}': a continuous range stands alone; write :xF or :+S for values of a list", code="bad-range"
                )
            return Axis(key, (), found, given=given)
        parts.append([item] if found is None else found)
    values = parts[0] if len(parts) == 1 else [v for part in parts for v in _few(part, key, given)]
    if not isinstance(values, Steps):
        values = tuple(values) if repeats else tuple(dict.fromkeys(values))
    return Axis(key, values, given=given)


def _few(values: Sequence[str], key: str, given: str) -> Sequence[str]:
    if len(values) > 1_000_000:
        raise UsageError(f"'{key}={given}' has {len(values)} values in a list; write such a range alone", code="bad-range")
    return values


def _parse_range(key: str, item: str, continuous: bool) -> Sequence[str] | Number | None:
    """The values of ``A..B...``; None if it is not a range."""
    left, dots, right = item.partition("..")
    first = _LOW.fullmatch(left.strip())
    if not dots or first is None:
        return None
    last = _HIGH.fullmatch(right.strip())
    if last is None:
        raise UsageError(f"the range '{item}' is not understood; write A..B:xF, A..B:+S or A..B", code="bad-range")
    low, high = _pair(item, (first[1], first[2] or ""), (last[1], last[2] or ""))
    unit = first[2] or last[2] or ""
    if high.value < low.value:
        raise UsageError(f"the range '{item}' is empty: it falls; write the smaller end first", code="bad-range")
    step = (last[3] or "").strip()
    if step.startswith("x"):
        return _geometric(item, low, high, unit, step[1:])
    if step.startswith("+"):
        return _linear(item, low, high, unit, step[1:])
    if continuous and step in ("", "log"):
        if step == "log" and low.value <= 0:
            raise UsageError(f"the range '{item}' has no logarithm: it begins at {low.number}", code="bad-range")
        spelling = unit if low.base != "B" else ""
        return Number(key, low.base, float(low.value), float(high.value), step == "log", spelling=spelling, digits=12)
    if step == "log":
        raise UsageError(
            f"the range '{item}' is continuous, for a Latin hypercube (--sample lhs:N); on a grid write A..B:xF", code="bad-range"
        )
    if step:
        raise UsageError(f"the step '{step}' of '{item}' is not understood; write :xF or :+S", code="bad-range")
    if low.unit or high.unit or low.number.denominator != 1 or high.number.denominator != 1:
        raise UsageError(f"the range '{item}' needs a step, :xF or :+S; only whole numbers go one by one", code="bad-range")
    return Steps(low.value, Fraction(1), int(high.number - low.number) + 1, low.base, "")


def _pair(item: str, *ends: tuple[str, str]) -> list[_Amount]:
    """Both ends in one base unit; a zero without a unit fits any unit, a plain number beside a size is bytes."""
    if any("B" in _bases(unit) for _, unit in ends if unit):
        ends = tuple((number, unit or "B") for number, unit in ends)
    known = [_bases(u) for number, u in ends if u or Fraction(number.replace("_", ""))] or [["1"]]
    for (_, unit), bases in zip([e for e in ends if e[1] or Fraction(e[0].replace("_", ""))], known, strict=False):
        if not bases:
            raise UsageError(f"the range '{item}' has an unknown unit '{unit}'", code="bad-range")
    common = [b for b in known[0] if all(b in bases for bases in known)]
    if not common:
        raise UsageError(
            f"the range '{item}' mixes the units '{ends[0][1]}' and '{ends[-1][1]}', which do not go together", code="bad-range"
        )
    out = []
    for number, unit in ends:
        spelled = unit if unit in units.UNITS[common[0]] else next(iter(units.UNITS[common[0]]))
        out.append(_Amount(Fraction(number.replace("_", "")), spelled if unit or common[0] != "1" else "", common[0]))
    return out


def _bases(unit: str) -> list[str]:
    return [base for base, spellings in units.UNITS.items() if unit in spellings]


def _geometric(item: str, low: _Amount, high: _Amount, unit: str, text: str) -> tuple[str, ...]:
    try:
        factor = Fraction(text)
    except (ValueError, ZeroDivisionError):
        factor = Fraction(0)
    if factor <= 1:
        raise UsageError(f"the step 'x{text}' of '{item}' is no factor above 1; example: 1KiB..4MiB:x2", code="bad-range")
    if low.value <= 0:
        raise UsageError(f"the range '{item}' multiplies from {low.number}; begin above zero", code="bad-range")
    out, value = [], low.value
    while value <= high.value:
        out.append(_text(value, low.base, unit))
        value *= factor
        if len(out) > _LISTED * 100:
            raise UsageError(f"the range '{item}' has more than {_LISTED * 100} values", code="bad-range")
        if value.denominator > 1 << 60:
            value = Fraction(float(value))
    return tuple(out)


def _linear(item: str, low: _Amount, high: _Amount, unit: str, text: str) -> Steps:
    found = _STEP.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"the step '+{text}' of '{item}' is not understood; example: 1..9:+2", code="bad-range")
    step = _pair(item, (found[1], found[2] or ""), ("1", high.unit) if high.unit else ("1", ""))[0]
    if step.base != low.base:
        raise UsageError(f"the step '+{text}' of '{item}' has another unit than the range", code="bad-range")
    if step.value <= 0:
        raise UsageError(f"the step '+{text}' of '{item}' is not above zero", code="bad-range")
    return Steps(low.value, step.value, int((high.value - low.value) / step.value) + 1, low.base, unit)
