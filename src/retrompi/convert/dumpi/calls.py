"""DUMPI sends and collectives as trace actions: the arguments of a record in the order of the call's form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrompi.convert.script import BYTE
from retrompi.spec.declare.calls import CALLS, Family, Form

__all__ = ["COLLECTIVES", "SENDS", "SEVERAL", "Bytes", "collective_line"]

Bytes = Callable[[int, int], int]
"""(count, type handle) -> bytes"""

SENDS = {call.mpi: call.name for call in CALLS if call.form is Form.SEND}
SEVERAL = {call.mpi: call.name for call in CALLS if call.form is Form.ALL}
"""Calls on several requests."""
COLLECTIVES = {call.mpi: call for call in CALLS if call.family is Family.COLLECTIVE}


def collective_line(name: str, record: dict[str, Any], size: Bytes, members: int) -> tuple[str, list[object]]:
    """Action and arguments of a collective's record. ``size``: bytes of a count of a type; ``members``: ranks on the other side."""
    call = COLLECTIVES[name]
    sent, received = _amounts(record, "send", size), _amounts(record, "recv", size)
    # A record has both sides at the root alone; all ranks send, or receive, the same as that.
    one = _amounts(record, "", size) or sent or received
    of_means: dict[str, list[object]] = {"flops": [0], "root": [record.get("root", 0)], "type": [BYTE]}
    words: list[object] = []
    for argument in call.form.arguments:
        if argument.means in ("sent", "received"):
            amounts = sent if argument.means == "sent" else received
            words += amounts or ([0] * members if argument.many else one)
        elif argument.word in ("SBUF", "RBUF"):
            words.append(sum(sent if argument.word == "SBUF" else received))
        elif argument.means != "displacement":
            words += of_means[argument.means]
    return call.name, words


def _amounts(record: dict[str, Any], side: str, size: Bytes) -> list[int]:
    """The amounts of one side of a record, in bytes: nothing, a number, or one for each rank."""
    each, one = record.get(f"{side}counts"), record.get(f"{side}count")
    kind: int = record.get(f"{side}type", record.get("datatype", 0))
    if each is not None:
        return [size(count, k) for count, k in zip(each, record.get(f"{side}types", [kind] * len(each)), strict=False)]
    return [] if one is None else [size(one, kind)]
