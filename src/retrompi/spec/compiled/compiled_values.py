"""Checks of what a model's `compile` returns: every number is finite, not negative and within `units.WIDEST`.

The media check themselves when they are made (`retrompi.spec.media.Checked`). What is a plain number or a host of the model's own is
checked here, so that a NaN of a user's model is one line with its file and part and not a time that the engine cannot count.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from retrompi.base import units
from retrompi.base.errors import InputError, UsageError
from retrompi.spec.declare.fields import fields_of
from retrompi.spec.host import Host

__all__ = ["check", "check_progress", "place"]

_NUMBERS: Mapping[str, tuple[str, str]] = {
    "send_cpu": ("calls", "s"),
    "recv_cpu": ("calls", "s"),
    "call_lock": ("calls", "s"),
    "lock_system": ("calls", "s"),
    "unexpected_limit": ("calls", "B"),
    "test_cpu": ("probing", "s"),
    "test_system": ("probing", "s"),
    "direct_call": ("within_host", "s"),
    "convert_byte": ("conversion", "s/B"),
    "convert_buffer": ("conversion", "B"),
    "convert_call": ("conversion", "s"),
}
"""Key of the engine's row -> the part that returns it, and its unit."""
_KINDS = ("eager", "rendezvous", "direct")


def place(cls: Any, part: str) -> tuple[Path, int | None]:
    """File and line of the method of a model that makes a part."""
    method = getattr(cls, part, None)
    try:
        return Path(inspect.getsourcefile(method) or ""), inspect.getsourcelines(method)[1]  # type: ignore[arg-type]
    except (OSError, TypeError):
        return cls.folder() / "__init__.py", None


def check(cls: Any, rows: Mapping[str, Any]) -> None:
    """Raises InputError with the model's file and part for the first value of ``rows`` that the engine cannot count with."""
    for part, what, problem in _problems(rows):
        raise InputError(f"{part}: {what} {problem}", *place(cls, part), code="out-of-range")


def check_progress(rows: Mapping[str, Any]) -> None:
    """Refuses what would have processes take turns for ever: quanta that are over before the switch to their process is, and offers of a
    processor in no time at all."""
    for host in rows["hosts"]["kinds"]:
        if host["quantum"] <= host["dispatch"]:
            raise UsageError(
                f"quantum of '{host['name']}' ({host['quantum']:g} s) is not longer than its context switch ({host['dispatch']:g} s): of "
                "processes that share a processor none would ever do anything", code="out-of-range",
            )
    waits = _yielding([rows[key] for key in ("recv_wait", "send_wait", "idle", "same", "same_bulk", "remote")])
    timeless = any(wait["polls"] * (wait["poll_cost"] + wait["poll_call"]) < units.PS for wait in waits)
    for host in rows["hosts"]["kinds"]:
        if timeless and host["dispatch"] < units.PS:
            raise UsageError(
                f"a process that waits offers its processor after polls that take no time, and a context switch (dispatch) of "
                f"'{host['name']}' takes none either: two of them would do so for ever", code="out-of-range",
            )


def _yielding(row: Any) -> Iterator[Mapping[str, Any]]:
    """Every wait in a row that offers the processor."""
    if isinstance(row, Mapping):
        if row.get("kind") == "spin_yield":
            yield row
        row = list(row.values())
    if isinstance(row, list | tuple):
        for part in row:
            yield from _yielding(part)


def _number(value: Any, unit: str) -> str:
    """Why ``value`` is not a number of the engine; "" if it is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"is {value!r} and not a number"
    if value < 0:
        return f"'{value:g}' is negative"
    problem = units.beyond(float(value), unit)
    return problem and f"'{value:g}' {problem}"


_STAGING = {"pack": "count", "unpack": "count", "pack_byte": "s/B", "short_copies": "count", "short_until": "B", "ask": "B"}
"""What a path's `staging` consists of, with units."""


def _problems(rows: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(part, name, problem)."""
    for key, (part, unit) in _NUMBERS.items():
        if problem := _number(rows[key], unit):
            yield part, key, problem
    for role, cost in rows["forward_cost"].items():
        if problem := _number(cost, "s"):
            yield "between_hosts", f"forward_cost of '{role}'", problem
    for key, part in (("staging_same", "within_host"), ("staging_remote", "between_hosts")):
        for name, value, unit in zip(_STAGING, rows[key], _STAGING.values(), strict=True):
            if problem := _number(value, unit):
                yield part, name, problem
    for key, part in (("protocol_same", "within_host"), ("protocol_remote", "between_hosts")):
        for row in rows[key]:
            if problem := _range(row):
                yield part, "protocol", problem
    fields = fields_of(Host)
    for host in rows["hosts"]["kinds"]:
        for name, value in host.items():
            if fields[name].is_quantity and (problem := fields[name].refusal(value)):
                yield "hosts", f"{name} of '{host['name']}'", problem
    for name, points in _points(rows.get("work") or {}):
        for point in points:
            bytes_, ps = point
            if problem := _number(bytes_, "B") or _number(ps * units.PS, "s"):
                yield "calls", f"work of {name}", problem


def _range(row: Any) -> str:
    """Why ``row`` is no range of message sizes with its protocol."""
    try:
        low, high, kind = row
        wrong = not (0 <= low <= high) or math.isinf(low)
    except (TypeError, ValueError):
        return f"{row!r} is not (from, to, kind)"
    if wrong:
        return f"({low!r}, {high!r}) is no range of message sizes (B)"
    return "" if kind in _KINDS else f"'{kind}' is not one of {', '.join(_KINDS)}"


def _points(work: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from work.get("call", {}).items()
    yield "combine", work.get("combine", ())
    for buffer in work.get("buffers", ()):
        yield "buffers", buffer
