"""The compiled question as the specification reads it: numbers in the engine's units, by the declarations they come from.

A compiled question is a dictionary of rows (`retrompi.spec.compiled.compile`). Each row belongs to a declared struct (`Host`, `Link`, the
media, `WaitPolicy`), and the declaration says the unit. Here a time becomes whole picoseconds, an amount whole bytes, a flag a truth value;
everything else stays what it is. What the specification does not cover is refused here, before anything runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from retrompi.spec.declare.fields import fields_of
from retrompi.spec.host import Host
from retrompi.spec.machine.link import Link
from retrompi.spec.media import MEDIA, OneSided, WaitPolicy

__all__ = [
    "ANY_SOURCE",
    "ANY_TAG",
    "NEVER",
    "PROC_NULL",
    "PS",
    "NotCovered",
    "Values",
    "hop_values",
    "host_values",
    "link_values",
    "nearest",
    "one_sided_values",
    "picoseconds",
    "policy_values",
]

Values = Any
"""The fields of one row, as attributes."""
PS = 1e12
"""Picoseconds in a second."""
NEVER = 2**63 - 1
ANY_SOURCE, ANY_TAG, PROC_NULL = -555, -444, -666


class NotCovered(Exception):
    """The question needs a rule that the specification does not have yet."""


def picoseconds(seconds: float) -> int:
    """Seconds in whole picoseconds, rounded half up."""
    return int(seconds * PS + 0.5)


def nearest(ps: float) -> int:
    """A number of picoseconds as a whole one, halves up. What is half a picosecond before a whole one, to the precision of a double, is
    that one: an end is never told of in the past."""
    return int(ps + 0.5)


def _read(cls: type, row: Mapping[str, Any]) -> SimpleNamespace:
    """The fields of a declared struct. Times of a host are picoseconds; those of a library are picoseconds on the reference host."""
    found = {}
    for name, field in fields_of(cls).items():
        if not field.cpp:
            continue
        given = row[name]
        match field.cpp:
            case "Ps" | "Work" | "Service":
                found[name] = picoseconds(given)
            case "PsPerByte":
                found[name] = given * PS
            case "int64_t" | "int" | "size_t":
                found[name] = math.floor(given + 0.5)
            case "bool":
                found[name] = given != 0
            case "WaitPolicy":
                found[name] = policy_values(given)
            case _:
                found[name] = given
    return SimpleNamespace(**found)


def policy_values(row: Mapping[str, Any]) -> Values:
    """How a process waits (`retrompi.spec.media.WaitPolicy`)."""
    return _read(WaitPolicy, row)


def one_sided_values(row: Mapping[str, Any] | None) -> Values | None:
    """One-sided operations between two ranks; None where the runtime has none."""
    return None if row is None else _read(OneSided, row)


def hop_values(row: Mapping[str, Any]) -> Values:
    """One hop of a message's path, by its medium."""
    found = _read(MEDIA[row["medium"]], row)
    found.medium = row["medium"]
    return found


def link_values(row: Mapping[str, Any]) -> Values:
    """What joins the hosts."""
    return _read(Link, row)


def host_values(row: Mapping[str, Any]) -> Values:
    """One kind of host."""
    return _read(Host, row)
