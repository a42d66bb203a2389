"""Lab 12: a program of four ranks, its critical path, and what a faster rank gains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from retrompi import traces
from retrompi.labs.bench import Bench, options
from retrompi.labs.student import Parameters

HERE = Path(__file__).parent
FLOPS = 20e6
MODEL, PLATFORM = "mpich", "nt-cluster"
SETS = {"platform.host.flops": "20 Mflop/s", "platform.link.kind": "switch"}
RANKS = "abcd"


def derive(p: Parameters) -> dict[str, str]:
    """Operations of each rank, bytes of a message, and the options of every command."""
    told = {f"{rank}_flop": f"{p[rank] * FLOPS:.0f}" for rank in RANKS}
    return told | {"size_bytes": str(int(p["size"])), "options": f"-m {MODEL} -p {PLATFORM} --mode distributed {options(SETS)}"}


def _run(p: Parameters, bench: Bench, divided: dict[str, float] | None = None, **sets: str) -> dict[str, Any]:
    """The run of the program with some ranks' operations divided."""
    text = (HERE / "program.ti").read_text(encoding="utf-8")
    for rank in RANKS:
        text = text.replace(f"{{{rank}_flop}}", f"{p[rank] * FLOPS / (divided or {}).get(rank, 1.0):.0f}")
    text = text.replace("{size_bytes}", str(int(p["size"])))
    given = SETS | {k.replace("__", "."): v for k, v in sets.items()}
    return bench.replay(traces.parse(text), "program.ti", MODEL, "distributed", platform=PLATFORM, sets=given)


def _time(p: Parameters, bench: Bench, divided: dict[str, float] | None = None, **sets: str) -> float:
    return float(_run(p, bench, divided, **sets)["time_s"])


def _law(share: float, factor: float) -> float:
    return 1 / (1 - share + share / factor)


def _variants(p: Parameters, bench: Bench) -> dict[str, float]:
    """The time with one thing twice as fast."""
    halved = {f"rank {i}": _time(p, bench, {"abc"[i]: 2.0}) for i in range(3)}
    return halved | {"the network": _time(p, bench, platform__link__bandwidth="20 Mbps")}


def expected(p: Parameters, bench: Bench) -> dict[str, Any]:
    """The right answers."""
    time = _time(p, bench)
    variants = _variants(p, bench)
    faster = _time(p, bench, {"a": p["factor"]})
    left = {"rank 0": p["a"] / p["factor"], "rank 1": p["b"], "rank 2": p["c"]}
    return {
        "time": time,
        "on-path": p["a"] + p["d"],
        "share-path": p["a"] / time,
        "share-total": p["b"] / sum(p[r] for r in RANKS),
        "which": min(variants, key=lambda k: variants[k]),
        "slack": p["a"] - p["b"],
        "amdahl": _law(p["a"] / time, p["factor"]),
        "gain": time / faster,
        "new-path": max(left, key=lambda k: left[k]),
        "limit": time / (time - (p["a"] - p["b"])),
    }


def mistakes(p: Parameters, bench: Bench) -> dict[str, dict[str, Any]]:
    """Where the usual mistakes lead."""
    time, total = _time(p, bench), sum(p[r] for r in RANKS)
    law = _law(p["a"] / time, p["factor"])
    return {
        "time": {"all": total, "computing": p["a"] + p["d"]},
        "on-path": {"all": total, "rank-0": p["a"]},
        "share-path": {"total": p["a"] / total},
        "share-total": {"run": p["b"] / time},
        "slack": {"rank-2": p["a"] - p["c"], "computation": p["b"]},
        "amdahl": {"total": _law(p["a"] / total, p["factor"]), "limit": 1 / (1 - p["a"] / time)},
        "gain": {"law": law},
        "limit": {"law": 1 / (1 - p["a"] / time)},
    }


def statements(p: Parameters, bench: Bench) -> dict[str, bool]:
    """Sentence of the lab -> whether it is true for the student."""
    time, right, variants = _time(p, bench), expected(p, bench), _variants(p, bench)
    longer = {r: _time(p, bench, {r: p[r] / (p[r] + 0.45 * (p["a"] - p[r]))}) for r in "bc"}
    return {
        "Making rank 1 or rank 2 faster changes nothing, and a faster network changes little.": (
            all(abs(variants[r] / time - 1) < 0.001 for r in ("rank 1", "rank 2")) and 0.9 * time < variants["the network"] < time
        ),
        "so it could even compute a good deal longer without delaying anybody": all(t < 1.02 * time for t in longer.values()),
        "lists rank 1 as the second largest consumer": p["a"] > p["b"] > max(p["c"], p["d"]),
        "The law promised more than the run gained.": right["amdahl"] > 1.02 * right["gain"] > 1.1,
        "The run can become shorter by no more than the slack of the path that takes over.": right["gain"] < 1.02 * right["limit"],
        "from there on a faster rank 0 gains nothing": (
            abs(_time(p, bench, {"a": 2 * p["factor"]}) / _time(p, bench, {"a": p["factor"]}) - 1) < 0.01
        ),
    }
