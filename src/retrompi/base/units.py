"""Quantities with units: the only conversion between text and numbers.

Base units: ``B`` bytes, ``s`` seconds, ``B/s``, ``s/B``, ``Hz``, ``flop/s``, ``1`` (a plain number) and
``probability``. All other modules use floats in base units.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

from retrompi.base.errors import UsageError

__all__ = [
    "LARGEST_SEED",
    "NO_LIMIT",
    "PS",
    "UNITS",
    "WIDEST",
    "beyond",
    "canonical",
    "check_unit",
    "format_bytes",
    "format_quantity",
    "format_rate",
    "format_span",
    "format_time",
    "parse",
    "parse_factor",
    "parse_sizes",
    "scale_text",
]

PS = 1e-12
"""The engine's unit of time (a picosecond) in seconds."""

LARGEST_SEED = 2**63 - 1
"""Engine and store keep a seed in 64 bits; the store's integer is signed."""

_BYTES: Mapping[str, float] = {"B": 1, "kB": 1e3, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}

UNITS: Mapping[str, Mapping[str, float]] = {
    "B": _BYTES,
    "s": {"s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9, "ps": 1e-12},
    "B/s": {
        "B/s": 1,
        "kB/s": 1e3,
        "KiB/s": 2.0**10,
        "MB/s": 1e6,
        "MiB/s": 2.0**20,
        "GB/s": 1e9,
        "GiB/s": 2.0**30,
        "bps": 1 / 8,
        "kbps": 1e3 / 8,
        "Mbps": 1e6 / 8,
        "Gbps": 1e9 / 8,
    },
    "s/B": {"s/B": 1, "us/B": 1e-6, "µs/B": 1e-6, "ns/B": 1e-9, "ps/B": 1e-12},
    "Hz": {"Hz": 1, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9},
    "flop/s": {"flop/s": 1, "kflop/s": 1e3, "Mflop/s": 1e6, "Gflop/s": 1e9},
    "1": {"": 1},
    "probability": {"": 1, "%": 1e-2},
}
"""Base unit -> spelling -> its value in base units."""

WIDEST: Mapping[str, tuple[float, float]] = {
    "s": (0.0, 1e6),
    "B": (0.0, 2.0**50),
    "B/s": (1e-3, 1e15),
    "s/B": (0.0, 1.0),
    "Hz": (1e-3, 1e15),
    "flop/s": (1e-3, 1e18),
    "1": (1e-9, 1e9),
    "probability": (0.0, 1.0),
}
"""Base unit -> the least value above zero and the largest that a parameter may have: far beyond any machine, and so that no product of
a few of them leaves what is computed with (11 days, 1 PiB, a byte in a quarter of an hour up to 1 PB/s)."""

_SYNONYMS = {"count": "1"}

# The papers use these for both 1000 and 1024, so they are rejected.
_AMBIGUOUS = {
    "KB": "write KiB (1024 B) or kB (1000 B)",
    "K": "write KiB (1024 B) or kB (1000 B)",
    "MB": "write MiB (1048576 B); a decimal size is written in kB",
    "M": "write MiB (1048576 B)",
    "GB": "write GiB (1073741824 B); a decimal size is written in kB",
    "KB/s": "write KiB/s (1024 B/s) or kB/s (1000 B/s)",
}

# `parse` accepts negative values for plain numbers only: a negative time or size is always a mistake.
_TEXT = re.compile(r"\s*([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S*)\s*")


def canonical(unit: str) -> str:
    """The base unit that ``unit`` names; raises ValueError (a programming error) if there is none."""
    base = _SYNONYMS.get(unit, unit)
    if base not in UNITS:
        raise ValueError(f"no base unit '{unit}'; valid: {', '.join(UNITS)}")
    return base


NO_LIMIT = 1e18
"""A message size (B) that is never reached: no upper limit."""


def check_unit(unit: str) -> bool:
    """Whether ``unit`` names a base unit."""
    return _SYNONYMS.get(unit, unit) in UNITS


def beyond(value: float, unit: str) -> str:
    """Why ``value`` is no parameter's value in the base unit ``unit``: it is not finite, or not within `WIDEST`; "" if it is."""
    if not math.isfinite(value):
        return "is not a finite number"
    base = canonical(unit)
    least, most = WIDEST[base]
    shown = "" if base in ("1", "probability") else f" {base}"
    if abs(value) > most:
        return f"is more than {most:g}{shown}, the most that can be simulated"
    if 0 < abs(value) < least:
        return f"is less than {least:g}{shown}, the least that can be simulated"
    return ""


def _accepted_units(base: str) -> str:
    spellings = [s for s in UNITS[base] if s and not s.startswith(("µ", "μ"))]
    if base == "1":
        return "a plain number"
    if base == "probability":
        return "a number in 0..1 or a percentage"
    return ", ".join(spellings)


def parse(text: str, unit: str) -> float:
    """``"16 KiB", "B"`` -> 16384.0: the value of ``text`` in the base unit ``unit``.

    Raises UsageError naming the accepted spellings when the unit is wrong or missing. A bare number is
    accepted for plain numbers and probabilities, and is bytes where a size is read, as in every benchmark's
    list of sizes; a bare zero is accepted everywhere since 0 ms is 0 s.
    """
    base = canonical(unit)
    found = _TEXT.fullmatch(text)
    if found is None:
        raise UsageError(f"'{text}' is not a number with a unit; accepted: {_accepted_units(base)}", code="bad-unit")
    number, spelling = float(found[1].replace("_", "")), found[2]
    factor = UNITS[base].get(spelling or ("B" if base == "B" else ""))
    if factor is None:
        if spelling == "" and number == 0:
            return 0.0
        if spelling in _AMBIGUOUS and base in ("B", "B/s"):
            raise UsageError(f"'{text}': the unit '{spelling}' is ambiguous; {_AMBIGUOUS[spelling]}", code="bad-unit")
        problem = f"'{text}' has no unit" if spelling == "" else f"'{text}' has the wrong unit '{spelling}'"
        raise UsageError(f"{problem}; accepted: {_accepted_units(base)}", code="bad-unit")
    # Powers of ten below one are applied by division: 120 / 1e3 is the double nearest 0.12, 120 * 1e-3 is not.
    value = number / round(1 / factor) if 0 < factor < 1 else number * factor
    if not math.isfinite(value):
        raise UsageError(f"'{text}' is not a finite number", code="bad-number")
    if value < 0 and base != "1":
        raise UsageError(f"'{text}' is negative; a value in {unit} is zero or more", code="out-of-range")
    if base == "probability" and value > 1:
        raise UsageError(f"'{text}' is not a probability; accepted: {_accepted_units(base)}", code="out-of-range")
    return value


_FACTOR = re.compile(r"[x×]\s*(\d+\.?\d*|\.\d+)|(\d+\.?\d*|\.\d+)\s*%")


def parse_factor(text: str, unit: str) -> Fraction | None:
    """``x2``, ``x0.5`` or ``50%`` -> what the value in force is multiplied by, exactly; None for any other text.

    Where the unit is a probability, ``50%`` is a value itself; only ``x0.5`` is relative.
    """
    found = _FACTOR.fullmatch(text.strip())
    if found is None or (found[2] is not None and canonical(unit) == "probability"):
        return None
    return Fraction(found[1]) if found[1] is not None else Fraction(found[2]) / 100


def scale_text(text: str, factor: Fraction, unit: str) -> str:
    """``factor`` times the quantity ``text``, in its own unit as far as `parse` reads it: ``"120 ms"`` by 1/2 is ``"60 ms"``.

    Sizes are rounded to whole bytes. Raises UsageError if ``text`` is not a number in ``unit``.
    """
    value, found = parse(text, unit), _TEXT.fullmatch(text)
    if canonical(unit) == "B":
        return format_bytes(round(Fraction(value) * factor))
    assert found is not None  # parsed above
    number = Fraction(found[1].replace("_", "")) * factor
    written = str(number.numerator) if number.denominator == 1 else f"{float(number):.12g}"
    return f"{written} {found[2]}".rstrip()


def _size(text: str) -> int:
    value = parse(text, "B")
    if value != int(value):
        raise UsageError(f"'{text.strip()}' is not a whole number of bytes", code="bad-number")
    return int(value)


def parse_sizes(given: str | int | Sequence[str | int]) -> list[int]:
    """``"0,1KiB,4KiB..4MiB:x2"`` -> message sizes in bytes, in the order given, without duplicates.

    ``A..B:xN`` multiplies from A to B, ``A..B:+S`` adds S; ``A..B`` alone doubles. A and B are both included
    when the steps reach B. A TOML file may also give a number, or a list of numbers and texts.
    Raises UsageError for an empty list, a descending range or a size with a wrong unit; a plain number is bytes.
    """
    if not isinstance(given, str | int | list | tuple) or isinstance(given, bool):
        raise UsageError(f"'{given}' is not a list of sizes; example: 0,1KiB,4KiB..4MiB:x2", code="bad-size")
    text = given if isinstance(given, str) else ",".join(str(item) for item in given) if isinstance(given, list | tuple) else str(given)
    sizes: list[int] = []
    for item in text.split(","):
        if not item.strip():
            raise UsageError(f"'{text}' has an empty size; example: 0,1KiB,4KiB..4MiB:x2", code="bad-size")
        low_text, dots, rest = item.partition("..")
        if not dots:
            sizes.append(_size(item))
            continue
        high_text, _, step = rest.partition(":")
        low, high, step = _size(low_text), _size(high_text), step.strip() or "x2"
        if high < low:
            raise UsageError(f"the range '{item.strip()}' is descending; write the smaller size first", code="bad-size")
        sizes += _range(item.strip(), low, high, step)
    return list(dict.fromkeys(sizes))


def _range(item: str, low: int, high: int, step: str) -> list[int]:
    if step.startswith("x"):
        if not step[1:].isdigit() or int(step[1:]) < 2:
            raise UsageError(f"the step '{step}' of '{item}' is not a factor; example: 1KiB..4MiB:x2", code="bad-size")
        if low == 0:
            raise UsageError(f"the range '{item}' multiplies from zero; write 0,1B..{item.split('..')[1]}", code="bad-size")
        out, value = [], low
        while value <= high:
            out.append(value)
            value *= int(step[1:])
        return out
    if step.startswith("+"):
        width = _size(step[1:])
        if width == 0:
            raise UsageError(f"the step '{step}' of '{item}' is zero", code="bad-size")
        if (high - low) // width > 100_000:
            raise UsageError(f"the range '{item}' has more than 100000 sizes", code="bad-size")
        return list(range(low, high + 1, width))
    raise UsageError(f"the step '{step}' of '{item}' is not understood; write :x2 or :+1KiB", code="bad-size")


def _short(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"


def format_bytes(size: float) -> str:
    """A size that ``parse`` reads back: ``65536`` -> ``64 KiB``, ``1000`` -> ``1000 B`` (never rounded)."""
    for spelling in ("GiB", "MiB", "KiB"):
        factor = _BYTES[spelling]
        if size >= factor and size % factor == 0:
            return f"{size / factor:.0f} {spelling}"
    return f"{size:.0f} B" if size == int(size) else f"{size!r} B"


def format_time(seconds: float) -> str:
    """A time in the unit that leaves one to four digits before the point: ``0.000175`` -> ``175 us``."""
    if seconds == 0:
        return "0 s"
    for spelling, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)):
        if abs(seconds) * factor >= 0.99995:
            return f"{_short(seconds * factor)} {spelling}"
    return f"{_short(seconds * 1e12)} ps"


def format_rate(rate: float) -> str:
    """A rate in decimal bytes per second: ``8.25e7`` -> ``82.5 MB/s``."""
    for spelling, factor in (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)):
        if abs(rate) >= factor * 0.99995:
            return f"{_short(rate / factor)} {spelling}"
    return f"{_short(rate)} B/s"


def format_quantity(value: float | str, unit: str) -> str:
    """``value`` (in base unit ``unit``) as text for tables and cards; a string is returned unchanged."""
    if isinstance(value, str):
        return value
    base = canonical(unit)
    if base == "B":
        return format_bytes(value)
    if base == "s":
        return format_time(value)
    if base == "B/s":
        return format_rate(value)
    if base == "s/B":
        return f"{_short(value * 1e9)} ns/B"
    if base in ("Hz", "flop/s"):
        for prefix, factor in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
            if value >= factor:
                return f"{_short(value / factor)} {prefix}{base}"
        return f"{_short(value)} {base}"
    return f"{value:.6g}"


def format_span(low: float, high: float, unit: str) -> str:
    """``1.08 .. 3.93 ms``: a range or an interval with three digits, and the unit once where it is the same.

    ``unit`` is a base unit; numbers without one have none. Sizes that are no round number of bytes are rounded too.
    """
    ends = [_size_text(v) if canonical(unit) == "B" else format_quantity(float(f"{v:.3g}"), unit) for v in (low, high)]
    (a, _, unit_a), (b, _, unit_b) = (e.partition(" ") for e in ends)
    if ends[0] == ends[1]:
        return ends[0]
    return f"{a} .. {b} {unit_b}".rstrip() if unit_a == unit_b or low == 0 else f"{ends[0]} .. {ends[1]}"


def _size_text(size: float) -> str:
    exact = format_bytes(round(size))
    name, factor = next(((n, f) for n, f in (("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10)) if size >= f), ("B", 1.0))
    return exact if not exact.endswith(" B") or factor == 1 else f"{size / factor:.3g} {name}"
