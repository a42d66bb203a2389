"""Checks before a run: the contents of a trace, and how far each runtime supports it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from retrompi.sim import simulate
from retrompi.sim.resolved import Resolved
from retrompi.spec.declare.calls import BY_NAME, MPI3, Call, Family, is_of_mpi3, names
from retrompi.spec.layout import Layout
from retrompi.spec.question import Question, pingpong
from retrompi.spec.runtime.users_code import users_code

if TYPE_CHECKING:
    from retrompi._engine import Trace

__all__ = ["ONE_SIDED", "estimate", "messages", "summary", "support"]

ONE_SIDED = names(Family.TRANSFER, Family.WINDOW, Family.EPOCH)
"""Calls that need a runtime with one-sided operations."""
TRANSFERS = names(Family.TRANSFER)
PROBE_MESSAGES = 400
"""Messages of the short run that `estimate` times."""


def messages(info: Mapping[str, Any], communicators: Sequence[Mapping[str, Any]]) -> int:
    """Approximate number of messages sent by a replay: point-to-point as counted, collectives by the usual trees and rings.

    ``info`` is `Trace.info`, ``communicators`` is `Trace.communicators`.
    """
    once = sum(int(info["calls"].get(c, 0)) for c in TRANSFERS)
    fences = int(info["calls"].get("Win_fence", 0)) * max(int(info["ranks"]) - 1, 0).bit_length()
    return int(info["sends"]) + once + round(fences + sum(_of_collectives(c) for c in communicators))


def _of_collectives(comm: Mapping[str, Any]) -> float:
    n = int(comm["size"]) + int(comm["remote_size"])
    tree, everybody, rounds = 1 - 1 / max(n, 1), max(n - 1, 0), max(n - 1, 0).bit_length()
    neighbours = int(comm["neighbours"]) / max(n, 1)

    def per_call(call: Call) -> float:
        if call.family is Family.NEIGHBOUR:
            return neighbours
        if call.name == "barrier":
            return rounds
        if call.root or call.operation in ("Scan", "Exscan"):
            return tree
        return 2 * tree if call.computes else everybody

    return sum(int(count) * per_call(BY_NAME[name]) for name, count in comm["calls"].items())


def summary(trace: Trace) -> dict[str, Any]:
    """The facts of `Trace.info`, `Trace.traffic` and `Trace.communicators`, with the messages of a replay and two shares.

    ``wildcard_share`` is the share of receives from any source, ``matched_share`` the share of these with a recorded match.
    """
    info, traffic, comms = trace.info(), trace.traffic(), trace.communicators()
    return {
        **info,
        **traffic,
        "communicators": comms,
        "messages": messages(info, comms),
        "wildcard_share": traffic["wildcards"] / max(traffic["receives"], 1),
        "matched_share": traffic["matched"] / max(traffic["wildcards"], 1),
    }


def support(question: Question | Resolved) -> dict[str, Any]:
    """The support level of a trace on a runtime: ``simulated``, ``approximated`` or ``refused``, and why, with file and line.

    Refused: actions that no runtime simulates (`Trace.unsupported`), and one-sided calls on a runtime without them. Approximated: lines
    that are accepted but ignored, collectives that differ between ranks, and MPI-3 calls on an older runtime, which are composed of its
    own operations. ``lines`` counts the lines concerned, for a kind of call only the first.
    """
    asked = Resolved.of(question)
    trace, model = asked.trace, asked.question.model
    why = [f"{file}:{line}: {action}: {reason}" for file, line, action, reason in trace.unsupported()]
    first = trace.first_lines()
    one_sided = ONE_SIDED & first.keys()
    if one_sided:
        hosts = [0, min(1, len(asked.platform.hosts) - 1)]
        with users_code(asked.model.folder()):
            transfers = asked.model().one_sided(asked.values, Layout(asked.platform, hosts))
        if transfers == (None, None):
            name = min(one_sided, key=lambda c: _order(trace, first[c]))
            why.append(f"{_place(first[name])}: {name}: this runtime has no one-sided operations")
    if why:
        return {"model": model, "support": "refused", "lines": len(why), "why": why[0]}
    notes = [f"{file}:{line}: {action}: {reason}" for file, line, action, reason in trace.warnings]
    if _ended_before(asked.model.years, MPI3):
        new = [c for c in first if is_of_mpi3(c)]
        notes += [f"{_place(first[c])}: {c}: a call of MPI-3, which this runtime is older than: made of what it has" for c in new]
    if notes:
        return {"model": model, "support": "approximated", "lines": len(notes), "why": notes[0]}
    return {"model": model, "support": "simulated", "lines": 0, "why": ""}


def _place(at: tuple[str, int]) -> str:
    return f"{at[0]}:{at[1]}"


def _order(trace: Trace, at: tuple[str, int]) -> tuple[int, int]:
    return trace.files.index(at[0]), at[1]


def _ended_before(years: str, year: int) -> bool:
    """Whether a runtime's years, ``1996-1998`` or ``1983-``, end before ``year``."""
    last = years.rpartition("-")[2]
    return last.isdigit() and int(last) < year


def estimate(told: Mapping[str, Any], question: Question | Resolved) -> dict[str, float]:
    """Estimated memory and wall-clock time of a replay; ``told`` is the `summary` of the trace.

    Keys: memory_B (the columns of the trace in both processes), seconds, messages_per_s. The rate is that of a short PingPong with the
    mean message size of the trace on the same runtime; the program may have more contention.
    """
    asked = Resolved.of(question)
    sent = max(sum(count for _, count in told["sizes"]), 1)
    size = int(told["bytes_sent"] // sent)
    probe = asked.with_fields(workload=pingpong([size], PROBE_MESSAGES // 2))
    simulate.run(asked.with_fields(workload=pingpong([0], 1)))  # start the server before timing
    began = time.perf_counter()
    result = simulate.run(probe)
    simulate.require_completed(result, f"a short PingPong of {size} B")
    each = (time.perf_counter() - began) / PROBE_MESSAGES
    return {"memory_B": 2.0 * float(told["memory_B"]), "seconds": each * float(told["messages"]), "messages_per_s": 1 / each}
