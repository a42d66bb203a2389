"""Before a run: what a trace holds, and what each runtime will do with it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from retrompi._engine import Trace

__all__ = ["ONE_SIDED", "estimate", "fate", "messages", "summary"]

ONE_SIDED = ("Put", "Get", "Accumulate", "Win_fence", "Win_flush_all")
"""Calls that need a runtime with one-sided operations."""
PROBE_MESSAGES = 400
"""Messages of the short run that `estimate` times."""


def messages(info: Mapping[str, Any]) -> int:
    """Messages that a replay sends, about: point-to-point as counted, collectives by the trees and rings that the runtimes use."""
    n, calls = int(info["ranks"]), info["calls"]
    tree, everybody, rounds = 1 - 1 / max(n, 1), max(n - 1, 0), max(n - 1, 0).bit_length()
    per_call = {
        "bcast": tree, "reduce": tree, "gather": tree, "gatherv": tree, "scatter": tree, "scatterv": tree,
        "scan": tree, "exscan": tree,
        "allreduce": 2 * tree, "reducescatter": 2 * tree, "barrier": rounds, "Win_fence": rounds,
        "allgather": everybody, "allgatherv": everybody, "alltoall": everybody, "alltoallv": everybody,
    }  # fmt: skip
    once = sum(int(calls.get(c, 0)) for c in ("Put", "Get", "Accumulate"))
    return int(info["sends"]) + once + round(sum(int(calls.get(c, 0)) * k for c, k in per_call.items()))


def summary(trace: Trace) -> dict[str, Any]:
    """What `Trace.info` and `Trace.traffic` tell, with the messages of a replay and the share of receives that name no source."""
    info, traffic = trace.info(), trace.traffic()
    return {**info, **traffic, "messages": messages(info), "wildcard_share": traffic["wildcards"] / max(traffic["receives"], 1)}


def fate(trace: Trace, model: str, platform: str) -> dict[str, Any]:
    """What becomes of the trace on a runtime: ``simulated``, ``approximated`` or ``refused``, and why, with file and line.

    Refused is what no runtime simulates (`Trace.unsupported`) and one-sided calls on a runtime without them. Approximated: lines that are
    accepted and ignored, and collectives, which run the runtime's own algorithms on all ranks.
    """
    from retrompi import registry
    from retrompi.runtime import resolve

    why = [f"{file}:{line}: {action}: {reason}" for file, line, action, reason in trace.unsupported()]
    calls = trace.info()["calls"]
    one_sided = [c for c in ONE_SIDED if c in calls]
    if one_sided:
        values, room = resolve(model, platform)
        hosts = list(range(min(2, len(room.hosts))))
        rows = registry.model(model)().compile(values, room, [hosts[0], hosts[-1]])
        if not (rows["one_sided_same"] or rows["one_sided_remote"]):
            where = _first(trace, one_sided)
            why.append(f"{where}: {one_sided[0]}: this runtime has no one-sided operations")
    if why:
        return {"model": model, "fate": "refused", "lines": len(why), "why": why[0]}
    notes = [f"{file}:{line}: {action}: {reason}" for file, line, action, reason in trace.warnings]
    if notes:
        return {"model": model, "fate": "approximated", "lines": len(notes), "why": notes[0]}
    return {"model": model, "fate": "simulated", "lines": 0, "why": ""}


def _first(trace: Trace, actions: Sequence[str]) -> str:
    for rank in range(trace.ranks):
        for line, action, *_ in trace.rank_actions(rank):
            if action in actions:
                return f"{trace.files[rank]}:{line}"
    return trace.files[0]


def estimate(told: Mapping[str, Any], model: str, platform: str, mode: str, sets: Sequence[str] = ()) -> dict[str, float]:
    """Memory and time that a replay will take: memory_B of the trace's columns in both processes, seconds from a short run.

    A PingPong of messages of the trace's mean length is replayed on the runtime and timed; the simulated program may contend more.
    """
    from retrompi import simulate
    from retrompi.traces import generate

    sent = max(sum(count for _, count in told["sizes"]), 1)
    size = int(told["bytes_sent"] // sent)
    trace = generate.pingpong([size], PROBE_MESSAGES // 2)
    simulate.run(model, platform, generate.pingpong([0], 1), mode=mode, sets=sets)  # the server is up before the clock runs
    began = time.perf_counter()
    result = simulate.run(model, platform, trace, mode=mode, sets=sets)
    simulate.require_completed(result, f"a short PingPong of {size} B")
    each = (time.perf_counter() - began) / PROBE_MESSAGES
    return {"memory_B": 2.0 * float(told["memory_B"]), "seconds": each * float(told["messages"]), "messages_per_s": 1 / each}
