"""Lab 12: a program of four ranks, its critical path, and what a faster rank gains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from retrompi import traces
from retrompi.api.paths import CriticalPath
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
    run = f"-m {MODEL} -p {PLATFORM} --what-if-hardware --mode distributed {options(SETS)}"
    return told | {"size_bytes": str(int(p["size"])), "options": run}


def _program(p: Parameters, divided: dict[str, float] | None = None) -> Any:
    """The program's trace, with some ranks' operations divided."""
    text = (HERE / "program.ti").read_text(encoding="utf-8")
    for rank in RANKS:
        text = text.replace(f"{{{rank}_flop}}", f"{p[rank] * FLOPS / (divided or {}).get(rank, 1.0):.0f}")
    return traces.parse(text.replace("{size_bytes}", str(int(p["size"]))))


def _time(p: Parameters, bench: Bench, divided: dict[str, float] | None = None, **sets: str) -> float:
    given = SETS | {k.replace("__", "."): v for k, v in sets.items()}
    run = bench.replay(_program(p, divided), "program.ti", MODEL, "distributed", platform=PLATFORM, sets=given)
    return float(run["time_s"])


def _path(p: Parameters, bench: Bench, divided: dict[str, float] | None = None) -> CriticalPath:
    """What `retrompi why` shows."""
    return bench.path(_program(p, divided), "program.ti", MODEL, "distributed", platform=PLATFORM, sets=SETS)


def _computing(path: CriticalPath) -> dict[str, float]:
    """Process -> seconds of its computation on the path."""
    return {r["who"]: r["seconds"] for r in path.rows if r["stage"] == "compute"}


def _slack(path: CriticalPath, rank: str) -> float:
    """The slack of a rank's computation, as the table has it."""
    return float(next(r["least_slack_ps"] for r in path.slacks if (r["stage"], r["who"]) == ("compute", rank)) * 1e-12)


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
    now = _computing(_path(p, bench, {"a": p["factor"]}))
    return {
        "time": time,
        "on-path": sum(_computing(_path(p, bench)).values()),
        "share-path": p["a"] / time,
        "share-total": p["b"] / sum(p[r] for r in RANKS),
        "which": min(variants, key=lambda k: variants[k]),
        "slack": p["a"] - p["b"],
        "amdahl": _law(p["a"] / time, p["factor"]),
        "gain": time / faster,
        "new-path": next((r for r in ("rank 0", "rank 1", "rank 2") if r in now), "none: the network"),
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
        "slack": {"rank-2": p["a"] - p["c"], "computation": p["b"], "table": _slack(_path(p, bench), "rank 1")},
        "amdahl": {"total": _law(p["a"] / total, p["factor"]), "limit": 1 / (1 - p["a"] / time)},
        "gain": {"law": law},
        "limit": {"law": 1 / (1 - p["a"] / time)},
    }


def statements(p: Parameters, bench: Bench) -> dict[str, bool]:
    """Sentence of the lab -> whether it is true for the student."""
    time, right, variants = _time(p, bench), expected(p, bench), _variants(p, bench)
    path, after = _path(p, bench), _path(p, bench, {"a": p["factor"]})
    whole = {who: sum(r["seconds"] for r in path.rows if r["who"] == who) for who in {r["who"] for r in path.rows}}
    wire = sum(r["seconds"] for r in path.rows if r["stage"] == "wire")
    shown, by_hand = _slack(path, "rank 1"), p["a"] - p["b"]
    later = {s: _time(p, bench, {"b": p["b"] / (p["b"] + s)}) for s in (shown - 1e-3, by_hand)}
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
        "They add up to the time of the run, to the picosecond.": (
            sum(r["ps"] for r in path.rows) == path.took and abs(path.took * 1e-12 - time) < 1e-12
        ),
        "(The row of rank 0 in the table 'who' also holds its library and system calls.)": whole["rank 0"] > 1.01 * p["a"],
        "Making rank 1 faster gains nothing: it is not on the critical path.": (
            "rank 1" not in whole and set(_computing(path)) == {"rank 0", "rank 3"} and abs(right["on-path"] - p["a"] - p["d"]) < 1e-6
        ),
        "Rank 0 became so fast that the path through rank 1 is longer now": (
            set(_computing(after)) == {"rank 1", "rank 3"} and right["new-path"] == "rank 1"
        ),
        "The table of `retrompi why` shows less slack for rank 1, by the time that one message takes on the line to rank 3": (
            abs((by_hand - shown) / wire - 1) < 0.02
        ),
        "Any later, and rank 0's message has to wait for it there.": (
            abs(later[shown - 1e-3] - time) < 1e-3 and later[by_hand] > time + 0.2 * wire
        ),
        "rank 2, which has nothing to do most of the time": p["c"] < 0.3 * time,
    }
