"""Numbers and their units."""

from __future__ import annotations

import math

import pytest
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from refusals import agrees

from retrompi.base import units
from retrompi.base.errors import UsageError


@for_each(
    "text, unit, value",
    [
        ("16 KiB", "B", 16384),
        ("16KiB", "B", 16384),
        ("1.5 KiB", "B", 1536),
        ("128 kB", "B", 128000),
        ("1 GiB", "B", 2**30),
        ("0", "B", 0),
        ("120 ms", "s", 0.12),
        ("12.5 us", "s", 12.5e-6),
        ("12.5 µs", "s", 12.5e-6),
        ("1e3 ns", "s", 1e-6),
        ("240 ns", "s", 240e-9),
        ("82.5 MB/s", "B/s", 82.5e6),
        ("10 Mbps", "B/s", 1.25e6),
        ("1 KiB/s", "B/s", 1024),
        ("60 ns/B", "s/B", 60e-9),
        ("150 MHz", "Hz", 150e6),
        ("22 Mflop/s", "flop/s", 22e6),
        ("3", "1", 3),
        ("-3", "1", -3),
        ("3", "count", 3),
        ("0.25", "probability", 0.25),
        ("25%", "probability", 0.25),
        ("1_000 B", "B", 1000),
        ("1024", "B", 1024),
    ],
)
def test_parse(text: str, unit: str, value: float) -> None:
    assert units.parse(text, unit) == value


@for_each(
    "text, unit, says",
    [
        ("16 KB", "B", "bad-unit | 1024 B | 1000 B"),
        ("1MB", "B", "bad-unit"),
        ("5 KB/s", "B/s", "bad-unit"),
        ("5 MB/s", "B", "bad-unit | 'MB/s'"),
        ("5 MiB", "s", "bad-unit | 'MiB'"),
        ("3 B", "1", "bad-unit"),
        ("-3 B", "B", "out-of-range"),
        ("-3 ms", "s", "out-of-range"),
        ("1.5", "probability", "out-of-range"),
        ("fast", "B/s", "bad-unit"),
        ("", "B", "bad-unit"),
        ("nan s", "s", "bad-unit"),
        ("inf", "1", "bad-unit"),
        ("1e999 s", "s", "bad-number"),
        ("1 2 s", "s", "bad-unit"),
    ],
)
def test_parse_refuses(text: str, unit: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        units.parse(text, unit)
    agrees(caught.value, says)
    assert "\n" not in str(caught.value)


def test_unknown_base_unit_is_our_mistake() -> None:
    with pytest.raises(ValueError, match="no base unit 'furlong'"):
        units.parse("1 furlong", "furlong")


def test_parse_sizes() -> None:
    assert units.parse_sizes("0,1KiB,4KiB..32KiB:x2") == [0, 1024, 4096, 8192, 16384, 32768]
    assert units.parse_sizes("1B..10B:x3") == [1, 3, 9]
    assert units.parse_sizes("0..4KiB:+1KiB") == [0, 1024, 2048, 3072, 4096]
    assert units.parse_sizes("1KiB, 1KiB ,2KiB") == [1024, 2048]
    assert units.parse_sizes("1KiB..4KiB") == [1024, 2048, 4096]
    assert units.parse_sizes("0,1B..4MiB:x2")[-1] == 4 << 20
    assert units.parse_sizes("0,1,1024") == [0, 1, 1024]  # plain numbers are bytes
    assert units.parse_sizes("1024..4KiB") == units.parse_sizes("1024..4096:x2") == [1024, 2048, 4096]
    assert units.parse_sizes([0, 1, "1KiB"]) == [0, 1, 1024]  # in TOML
    assert units.parse_sizes(64) == [64]
    assert len(units.parse_sizes("0,1B..4MiB:x2")) == 24


@for_each(
    "text",
    ["", "1 s", "1KiB,", "4KiB..1KiB", "0..4KiB", "1KiB..4KiB:x1", "1KiB..4KiB:2", "1KiB..4KiB:+0", "1.5B", "-1KiB", "1MB",
     "0..1GiB:+1B", "1KiB..4KiB:xx", "..", "1KiB.."],
)
def test_parse_sizes_refuses(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        units.parse_sizes(text)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=30), st.sampled_from([*units.UNITS, "count"]))
def test_any_text_is_a_number_or_one_line(text: str, unit: str) -> None:
    try:
        value = units.parse(text, unit)
    except UsageError:
        return
    assert math.isfinite(value)


@given(st.text(alphabet="0123456789KMiB.,:x+ ", max_size=30))
def test_any_text_is_sizes_or_one_line(text: str) -> None:
    try:
        sizes = units.parse_sizes(text)
    except UsageError:
        return
    assert sizes
    assert all(isinstance(s, int) and s >= 0 for s in sizes)


@given(st.integers(0, 2**40))
def test_a_formatted_size_reads_back(size: int) -> None:
    assert units.parse(units.format_bytes(size), "B") == size


@for_each(
    "value, unit, text",
    [
        (65536, "B", "64 KiB"),
        (8760, "B", "8760 B"),
        (0.000175, "s", "175 us"),
        (0.12, "s", "120 ms"),
        (2.4e-7, "s", "240 ns"),
        (3e-12, "s", "3 ps"),
        (0, "s", "0 s"),
        (99999.0, "s", "99999 s"),
        (82.5e6, "B/s", "82.5 MB/s"),
        (1.25e9, "B/s", "1.25 GB/s"),
        (60e-9, "s/B", "60 ns/B"),
        (150e6, "Hz", "150 MHz"),
        (0.25, "probability", "0.25"),
        ("spin", "choice", "spin"),
    ],
)
def test_format(value: float, unit: str, text: str) -> None:
    assert units.format_quantity(value, unit) == text
