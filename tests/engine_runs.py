"""What the engine's tests share: small jobs written as lines of a trace, and runs of them."""

from __future__ import annotations

from typing import Any

from asking import ask

from retrompi import traces
from retrompi.sim import simulate
from retrompi.sim.result import Result
from retrompi.spec.question import Question, pingpong

MODELS = ("winmpich", "wmpi", "hpvm")
MODES = ("shared", "distributed")
PATHS = [(model, mode) for model in MODELS for mode in MODES]
ANY_SOURCE, ANY_TAG, PROC_NULL = -555, -444, -666


def job(*ranks: str) -> Any:
    """A trace from one text a rank: lines separated by ``;``, without rank, init and finalize."""
    sources = []
    for rank, text in enumerate(ranks):
        lines = [line.strip() for line in text.split(";") if line.strip()]
        said = [line if line.startswith("#") else f"{rank} {line}" for line in ("init", *lines, "finalize")]
        sources.append(("\n".join(said) + "\n", f"rank-{rank}.txt", rank))
    return traces.Trace.parse([(text.encode(), name, rank) for text, name, rank in sources])


def run(trace: Any, model: str = "hpvm", mode: Any = "shared", platform: str | None = None, **options: Any) -> Result:
    """Runs on the pair of the study, or on the cluster when more than two machines are needed."""
    if platform is None:
        platform = "nt-pair" if trace.ranks <= 2 or mode == "shared" else "nt-cluster"
    return ask(model, platform, trace, mode, **options)


def completed(trace: Any, model: str, mode: Any, **options: Any) -> Result:
    """Runs; every message that was sent must have been delivered, once."""
    result = run(trace, model, mode, **options)
    assert result.outcome == "completed", (result.outcome, result.detail, result.waits)
    assert result.messages == result.delivered
    assert result.bytes == result.delivered_bytes
    assert sum(r["sent"] for r in result.per_rank) == sum(r["received"] for r in result.per_rank) == result.messages
    assert sum(r["bytes_sent"] for r in result.per_rank) == sum(r["bytes_received"] for r in result.per_rank) == result.bytes
    assert result.time_ps >= 0
    return result


def one_way(model: str, mode: Any, size: int, *, platform: str = "nt-pair", sets: Any = (), reps: int = 4) -> float:
    """Seconds of a message of ``size`` bytes, one way, in a short PingPong."""
    rows = simulate.benchmark(Question(model, platform, pingpong([size], reps=reps), mode, sets))
    return float(rows[0]["time_us"]) * 1e-6
