"""One question by the engine and by the specification, and what differs."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from retrompi.base.errors import InputError
from retrompi.reference.simulation import BESIDE, refuse, simulate
from retrompi.reference.values import NotCovered
from retrompi.sim.resolved import Resolved
from retrompi.sim.simulate import engine_rows
from retrompi.spec.question import Question

__all__ = ["by_engine", "compare_question", "compare_rows", "difference"]

COUNTERS = ("messages", "bytes", "packets", "frames", "delivered", "delivered_bytes", "retransmissions", "duplicates", "lost", "own_bytes",
            "contended")
RANK_COLUMNS = ("host", "time_ps", "mpi_ps", "compute_ps", "cpu_ps", "sent", "received", "bytes_sent", "bytes_received")

UNOBSERVED = {"anatomy": False, "anatomy_rank": 0, "anatomy_from": "", "anatomy_to": ""}
"""What the engine is given besides a compiled question: nothing is recorded."""


def _column(data: bytes, size: int) -> list[int]:
    return [n for (n,) in struct.iter_unpack("<i" if size == 4 else "<q", data)]


def by_engine(rows: Mapping[str, Any], trace: Any) -> dict[str, Any]:
    """The engine's answer twice: as every run is simulated, repetitions left out; and with a timeline, which has every call and message.

    ``state_incomplete`` is of the first: it found a state that was there before and went on otherwise, so that the state leaves something
    out. The run is then simulated anew and its times are right (`retrompi.sim.repetitions`), but the engine has a fault."""
    from retrompi import _engine

    asked = {**UNOBSERVED, **rows}
    try:
        fast = _engine.simulate({**asked, "repetitions": 1}, trace)
        full = _engine.simulate({**asked, "timeline_limit": 1 << 40, "timeline_from": 0.0, "timeline_until": 4e6}, trace)
    except _engine.ConfigError as error:
        raise InputError(str(error)) from None
    if "limit" in (fast["outcome"], full["outcome"]):  # the one may need fewer events than the other
        return {"outcome": "limit"}
    for got in (fast, full):
        columns = [_column(got["per_rank"][name], 8) for name in RANK_COLUMNS]
        got["per_rank"] = [dict(zip(RANK_COLUMNS, row, strict=True)) for row in zip(*columns, strict=True)]
    for what in ("outcome", "time_ps", "per_rank", *COUNTERS):
        if fast[what] != full[what] and not fast["unconfirmed"]:  # else it is simulated in full
            full[what] = f"{full[what]} in full, {fast[what]} with repetitions left out"
    full["state_incomplete"] = fast["state_incomplete"]
    calls, messages = full["timeline"]["calls"], full["timeline"]["messages"]
    full["calls"] = [row[:4] for row in zip(_column(calls["rank"], 4), _column(calls["line"], 4), _column(calls["begin"], 8),
                                            _column(calls["end"], 8), calls["open"], strict=True) if not row[4]]
    names = (("source", 4), ("destination", 4), ("tag", 4), ("bytes", 8), ("line", 4), ("receive_line", 4), ("sent", 8), ("received", 8))
    full["messages_of"] = list(zip(*(_column(messages[name], size) for name, size in names), strict=True))
    full["waits"] = [(row["rank"], row["line"]) for row in full["waits"]]
    return full


def difference(engine: Mapping[str, Any], rule: Mapping[str, Any]) -> str:
    """The first thing that differs, as a line; "" for nothing. Calls come first: the earliest one that differs is the nearest to the
    cause."""
    calls = sorted(set(engine["calls"]) ^ set(rule["calls"]), key=lambda c: (c[3], c))
    if calls:
        rank, line = calls[0][:2]
        both = [[c[2:] for c in side["calls"] if c[:2] == (rank, line)] for side in (engine, rule)]
        return f"rank {rank} line {line}: (begin, end) {both[0]} by the engine, {both[1]} by the specification"
    for what in ("outcome", "time_ps", "per_rank", "messages_of", "marks", "waits", "traffic", *COUNTERS):
        mine, theirs = engine[what], rule[what]
        if mine == theirs:
            continue
        if isinstance(mine, list) and isinstance(theirs, list):
            pairs = [(a, b) for a, b in zip(mine, theirs, strict=False) if a != b]
            mine, theirs = pairs[0] if pairs else (len(mine), len(theirs))
        return f"{what}: {mine} by the engine, {theirs} by the specification"
    if rule["detail"] and not engine["detail"].startswith(rule["detail"]):
        return f"detail: {engine['detail']!r} by the engine, {rule['detail']!r} by the specification"
    return "a state of the engine came back and took another course" if engine["state_incomplete"] else ""


def compare_rows(rows: Mapping[str, Any], trace: Any) -> tuple[dict[str, Any], dict[str, Any], str]:
    """What the engine is given, and a parsed trace: (by the engine, by the specification, what differs).

    Raises NotCovered for what is beyond the specification, and for a run that the bound of events in ``rows`` ends.
    """
    refuse(rows)
    engine = by_engine(rows, trace)
    if engine["outcome"] == "limit":
        raise NotCovered("runs that are ended by a bound")
    rule = simulate(rows, trace)
    return engine, rule, difference(engine, rule)


def compare_question(question: Question) -> tuple[dict[str, Any], dict[str, Any], str]:
    """The same of a question; raises NotCovered for one beyond the specification."""
    for what, told in BESIDE.items():
        if getattr(question.beside, what):
            raise NotCovered(told)
    asked = Resolved.of(question)
    return compare_rows(engine_rows(asked), asked.trace)
