"""Why a run did not complete, as text: the lines that the command line prints and a page shows.

The engine's diagnosis (`Result.diagnosis`, stored with the run) has ``summary`` (one line), ``told`` (further lines) and tables:
``cycle`` (process, file, line, action, waits_for, what, alternatives; ``closed``: it is a cycle, else a chain to the process that all wait
for), ``collectives`` (the members that have not entered, and where they are), ``near_misses`` (messages that differ only in tag, source
or communicator), ``unreceived`` (messages sent but not received, with their send line; the oldest 50 of ``unreceived_total``), and for
an exhausted ``resource`` also ``held`` (its largest messages: source, destination, tag, bytes, held, held_s, file and line of
the send; 20 of ``held_total``) and ``pairs`` (the same by source and destination).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retrompi.base.units import format_bytes, format_time

__all__ = ["lines", "of_run"]

_HELD = 5


def _held_text(row: Mapping[str, Any]) -> str:
    tag = "of a collective" if row["collective"] else f"tag {row['tag']}"
    amount = format_bytes(row["held"]) if row["unit"] == "B" else f"{row['held']} {row['unit']}"
    message = f"rank {row['source']} -> rank {row['destination']}, {tag}, {format_bytes(row['bytes'])}"
    return f"    {message}: {amount} for {format_time(row['held_s'])}, sent at {row['file']}:{row['line']}"


def lines(outcome: str, detail: str, waits: list[dict[str, Any]], diagnosis: Mapping[str, Any]) -> list[str]:
    """How a run ended and why, one fact per line: the outcome, the diagnosis, the contents of a full resource, every waiting rank."""
    out = [f"outcome {outcome}: {detail or 'no detail'}"]
    out += [f"  {line}" for line in diagnosis.get("told", ())]
    held = diagnosis.get("held", ())
    if held:
        out.append(f"  {diagnosis['resource']} holds, largest first:")
        out += [_held_text(row) for row in held[:_HELD]]
        if diagnosis["held_total"] > _HELD:
            out.append(f"    and {diagnosis['held_total'] - _HELD} more")
        for row in diagnosis["pairs"][:_HELD]:
            amount = format_bytes(row["held"]) if row["unit"] == "B" else f"{row['held']} {row['unit']}"
            out.append(f"    by pair: rank {row['source']} -> rank {row['destination']}: {row['messages']} messages, {amount}")
    for wait in waits:
        place = f"{wait.get('file')}:{wait.get('line')}" if wait.get("file") else f"line {wait.get('line')}"
        out.append(f"  rank {wait.get('rank')} at {place} waits in {wait.get('action')} for {wait.get('on')}")
    return out


def of_run(run: Mapping[str, Any]) -> list[str]:
    """`lines` for a stored run with its ``outcome``, ``detail`` and ``facts``."""
    facts = run["facts"]
    return lines(run["outcome"], run["detail"], facts.get("waits", []), facts.get("diagnosis", {}))
