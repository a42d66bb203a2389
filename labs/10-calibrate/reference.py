"""Lab 10: a curve of a machine with hidden numbers and declared noise, and what a fit of it should say."""

from __future__ import annotations

import hashlib
import math
import random
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

from retrompi.labs.bench import Bench
from retrompi.labs.student import Parameters
from retrompi.measure.fit.make import held_out
from retrompi.measure.fit.segments import SegmentFit, fit
from retrompi.sim import simulate
from retrompi.spec.question import Question, pingpong

MODEL, PLATFORM = "mpibip", "myrinet-piii"
LARGEST = 4 << 20
SIZES = (0, *sorted({int(m * (1 << k)) for k in range(2, 23) for m in (1, 1.5) if m * (1 << k) <= LARGEST}))
HIDDEN = {
    "mpibip.short": ("768 B", "1 KiB", "1536 B", "2 KiB"),
    "mpibip.pin": ("35 us", "38 us", "41 us", "44 us", "47 us", "50 us"),
    "mpibip.pio_rate": ("80 MB/s", "95 MB/s", "110 MB/s", "125 MB/s"),
    "mpibip.library": ("1 us", "1.25 us", "1.5 us", "1.75 us", "2 us"),
    "platform.link.bandwidth": ("130 MB/s", "160 MB/s", "190 MB/s", "220 MB/s", "250 MB/s"),
}
"""What the machines differ in, within the ranges of the model's card (the wire: slower and faster ones)."""
PIECES = 10


def _drawn(machine: int) -> random.Random:
    """The machine's own draws: not the student's seed, so that nothing printed about the student shows them."""
    return random.Random(int.from_bytes(hashlib.sha256(f"lab 10, machine {machine}".encode()).digest()[:8], "big"))


def hidden(machine: int) -> dict[str, str]:
    """The machine's numbers."""
    rng = _drawn(machine)
    return {name: rng.choice(values) for name, values in HIDDEN.items()}


@lru_cache(maxsize=64)
def truth(machine: int, sizes: tuple[int, ...]) -> dict[int, float]:
    """Size -> one-way time without noise, s."""
    rows = simulate.benchmark(Question(MODEL, PLATFORM, pingpong(list(sizes), reps=20), "distributed", hidden(machine)))
    return {int(r["size_B"]): float(r["time_us"]) * 1e-6 for r in rows}


def measured(p: Parameters) -> dict[int, float]:
    """What curve.csv holds: size -> one-way time with noise, in microseconds as they are written."""
    machine = int(p["machine"])
    rng = _drawn(machine + 10_000)
    true = truth(machine, (*SIZES, *BEYOND))
    noisy = {s: round(true[s] * 1e6 * (1 + p["noise"] * max(-2.5, min(2.5, rng.gauss(0, 1)))), 4) for s in SIZES}
    return {s: t for s, t in noisy.items() if s != p["missing"]}


BEYOND = (6 << 20, 8 << 20, 12 << 20, 16 << 20)


def prepare(folder: Path, p: Parameters) -> None:
    """The student's curve."""
    lines = [f"# source: machine {p.text('machine')} of lab 10", f"# noise: {p.text('noise')} of each time", "# way: one way"]
    lines += ["size_B,time_us"]
    lines += [f"{s},{t:.4f}" for s, t in measured(p).items()]
    (folder / "curve.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _fit(times: dict[int, float], sizes: list[int] | None = None, segments: int | None = None) -> SegmentFit:
    seen = sizes if sizes is not None else list(times)
    return fit(seen, [times[s] for s in seen], segments=segments)


def _held(times: dict[int, float], segments: int | None) -> tuple[float, float]:
    """Median error (at the sizes seen, at those held out), as `retrompi fit --hold-out` has it."""
    seen, out = held_out(list(times))
    found = _fit(times, seen, segments)
    others = found.residuals_of(out, [times[s] for s in out], seen=False)
    return median(abs(r.error) for r in found.residuals), median(abs(r.error) for r in others)


def _all(p: Parameters, bench: Bench) -> dict[str, Any]:
    """The curve in seconds and its fits, made once."""

    def work() -> dict[str, Any]:
        times = {s: t * 1e-6 for s, t in measured(p).items()}
        true = truth(int(p["machine"]), (*SIZES, *BEYOND))
        one = _fit(times, segments=1)
        return {"times": times, "true": true, "fit": _fit(times), "one": one, "own": _held(times, None), "ten": _held(times, PIECES)}

    found: dict[str, Any] = bench.once(("lab 10", tuple(sorted(p.texts.items()))), work)
    return found


def step(p: Parameters, times: dict[int, float]) -> tuple[int, int]:
    """The measured sizes on either side of the machine's change of protocol."""
    from retrompi.base import units

    limit = units.parse(hidden(int(p["machine"]))["mpibip.short"], "B")
    return max(s for s in times if s <= limit), min(s for s in times if s > limit)


def expected(p: Parameters, bench: Bench) -> dict[str, Any]:
    """Task -> answer: what a fit of the curve says; of the size held out, the step and its place what the machine really does."""
    a = _all(p, bench)
    true, found = a["true"], a["fit"]
    below, above = step(p, a["times"])
    return {
        "segments": len(found.segments),
        "startup": found.segments[0].latency_s,
        "rate": found.segments[-1].rate_Bps,
        "step": (below * above) ** 0.5,
        "height": a["times"][above] / a["times"][below],
        "missing": true[p["missing"]],
        "beyond": found.segments[-1].time(p["beyond"]),
        "noise": found.noise,
        "one-piece": median(abs(r.error) for r in a["one"].residuals),
        "held-own": a["own"][1],
        "held-ten": a["ten"][1],
        "why": "noise",
    }


def mistakes(p: Parameters, bench: Bench) -> dict[str, dict[str, Any]]:
    """Task -> mistake -> the value that it leads to."""
    a = _all(p, bench)
    right, found, times = expected(p, bench), a["fit"], a["times"]
    first, last = found.segments[0], found.segments[-1]
    slope = (times[LARGEST] - times[0]) / LARGEST
    errors = [abs(r.error) for r in found.residuals]
    return {
        "segments": {},
        "startup": {"last": last.latency_s},
        "rate": {"first": first.rate_Bps},
        "step": {},
        "height": {"difference": right["height"] - 1},
        "missing": {"one-line": times[0] + p["missing"] * slope, "first": first.latency_s + p["missing"] / first.rate_Bps},
        "beyond": {"first": first.latency_s + p["beyond"] / first.rate_Bps},
        "noise": {"worst": max(errors), "median": median(errors)},
        "one-piece": {"worst": max(abs(r.error) for r in a["one"].residuals)},
        "held-own": {},
        "held-ten": {},
    }


def statements(p: Parameters, bench: Bench) -> dict[str, bool]:
    """Sentence of the lab -> whether it is true for the student."""
    a, noise, right = _all(p, bench), float(p["noise"]), expected(p, bench)
    found, times = a["fit"], a["times"]
    below, above = step(p, times)
    largest = max(found.thresholds, key=lambda t: t.step)
    errors = [r.error for r in found.residuals]
    above_it = sum(e > 0 for e in errors) / len(errors)
    seen, _ = held_out(list(times))
    ten = _fit(times, seen, PIECES)
    inner = found.segment(p["missing"])
    return {
        "the residuals are pure noise: of both signs, without a pattern over the sizes,": 0.25 < above_it < 0.75,
        "and of the known magnitude of the measurement error.": max(map(abs, errors)) < 3.5 * noise and 0.4 < found.noise / noise < 1.6,
        "where is the largest upward step?": below < largest.size <= above,
        "a message there can take more than half as long again, or several times as long, as predicted": right["height"] > 1.5,
        "Twenty parameters for twenty-one sizes leave nothing from which the noise could be estimated": (
            len(seen) in (20, 21) and all(not math.isfinite(s.latency_interval[1]) for s in ten.segments)
        ),
        "With ten segments the median error nearly vanishes at the sizes the fit used, but not at the held-out sizes.": (
            a["ten"][0] < 0.1 * noise and a["ten"][1] > 0.25 * noise
        ),
        "the medians at the held-out sizes are about as large as the noise, whatever the number of segments": (
            all(0.25 * noise < a[k][1] < 2.6 * noise for k in ("own", "ten"))
        ),
        "sizes that the fit had not seen were met within about twice the noise in the median": a["own"][1] < 2.6 * noise,
        "it lies between measured sizes of the same segment": inner.low <= p["missing"] < (inner.high or LARGEST),
        "above it the memory is pinned": found.segment(below).time(below) < found.segment(above).time(above),
    }
