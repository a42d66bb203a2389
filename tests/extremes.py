"""Extreme values of every parameter, alone and two at a time: nothing wraps, nothing hangs, nothing takes all memory.

    python tests/extremes.py [TRIES] [SEED]        # the full size, with figures; tests/test_extremes.py runs a small share

A try is a PingPong of one model in one mode with one or two parameters at a value drawn from the whole range of their unit and beyond.
How a wrapped time is found, independently of the engine's own checks: the run's slope in each parameter is measured at two harmless
values (in 1/value for a rate), which gives an estimate of the time at the extreme in double precision. A completed run must be neither
much faster nor much slower than the estimate where that is dominated by the extreme, never end before a run without it, and its marks
must not run backwards; where the estimate is beyond the 106 days that can be counted, the run must not complete.
"""

from __future__ import annotations

import math
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any

from retrompi.base import units
from retrompi.base.errors import EngineError, RetrompiError
from retrompi.base.units import WIDEST
from retrompi.sim import simulate
from retrompi.sim.resolved import Resolved
from retrompi.sim.worker import ForkServer
from retrompi.spec import registry
from retrompi.spec.conditions.bounds import Bounds
from retrompi.spec.declare.fields import fields_of
from retrompi.spec.host import Host
from retrompi.spec.machine.link import Link
from retrompi.spec.question import Message, Question, pingpong

WALL_S = 2.0
MEMORY_B = 1 << 30
SIZES = (0, 1024, 300_000)
COUNTED_S = 2**63 * 1e-12
RATES = ("B/s", "flop/s", "Hz")
MODES = ("shared", "distributed")
FIDELITIES = ("mechanism", "mechanism", "mechanism", "mechanism", "curve", "loggp")
TIMERS = ("quantum", "tick", "boost", "timeout", "rto", "delayed_ack", "poll", "period", "wait", "charge", "skip", "window", "yield")
"""Names of times that a run waits for rarely, or whose rise may save time: they have no slope."""
HARMLESS = {"s": (1e-3, 2e-3), "s/B": (1e-6, 2e-6), "B/s": (1e5, 5e4)}
"""Two values, the first the cheaper one."""


@dataclass
class Figures:
    """What the tries came to."""

    tries: int = 0
    estimated: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    longest_s: float = 0.0
    most_B: float = 0.0
    faults: list[str] = field(default_factory=list)


def platform_of(model: str) -> str:
    """A platform on which the model runs in both modes."""
    calibrated = registry.model(model).calibrated
    names = tuple(getattr(calibrated, "platforms", ())) or ("nt-pair",)
    return next((n for n in names if len(registry.platform(n).hosts) > 1), names[0])


@lru_cache(maxsize=256)
def _ran(question: Question) -> Any:
    return simulate.run(question, server=_SERVER)


_SERVER = ForkServer()


def unit_of(model: str, name: str) -> str:
    """The base unit of a parameter in the form of ``--set``; "" for a choice."""
    if name.startswith("platform."):
        owner, _, key = name.removeprefix("platform.").rpartition(".")
        f = fields_of(Link if owner == "link" else Host).get(key)
        return units.canonical(f.unit) if f is not None and f.is_quantity else ""
    param = registry.model(model).params().get(name.rpartition(".")[2])
    return "" if param is None or param.choices else units.canonical(param.unit)


def values(unit: str, draw: random.Random) -> str:
    """A value of the whole range of a unit, its ends and beyond them included, as text."""
    least, most = WIDEST[unit]
    inside = 10 ** draw.uniform(math.log10(least or {"s": 1e-6, "B": 1.0}.get(unit, 1e-9)), math.log10(most))
    beyond = draw.choice((most * 10, 1e7, 1e13, 1e18, 2.0**63 - 1, 1e300, least / 10, 1e-12))
    number = draw.choice((inside, inside, inside, most, most, least, most / 10, 0.0, beyond))
    if unit in ("1", "B"):
        number = float(round(number)) if number >= 1 else number
    return f"{number:.17g}{'' if unit in ('1', 'probability') else unit}"


def is_cost(name: str, unit: str) -> bool:
    """Whether a run can only become slower with more of it (with less, for a rate)."""
    return unit in HARMLESS and not any(word in name for word in TIMERS)


@lru_cache(maxsize=4096)
def slope(base: Question, name: str, unit: str) -> float | None:
    """Seconds of the run per second of the parameter, per s/B, or per s/B of a rate; None where two harmless values show none."""
    low, high = HARMLESS[unit]
    times = []
    for value in (low, high):
        try:
            r = _ran(base.with_(overrides={name: f"{value!r}{unit}"}))
        except RetrompiError:
            return None
        if r.outcome != "completed":
            return None
        times.append(r.time_s)
    inverse = unit in RATES
    step = (1 / high - 1 / low) if inverse else high - low
    found = (times[1] - times[0]) / step
    return found if found * step > 0.02 * times[0] else None


def estimate(base: Question, name: str, unit: str, text: str) -> float | None:
    """The time of the run with one parameter set, in double precision; None where it is not known."""
    value = units.parse(text, unit)
    if value == 0 or not is_cost(name, unit):
        return None
    k = slope(base, name, unit)
    return None if k is None else k * (1 / value if unit in RATES else value)


def judged(base: Question, sets: dict[str, str], figures: Figures) -> None:
    """Tries ``sets`` and notes every fault."""
    figures.tries += 1
    began = time.monotonic()
    asked = base.with_(overrides=sets, bounds=Bounds(wall_s=WALL_S, memory_B=MEMORY_B))
    title = f"{base.model} {base.where} {base.fidelity} {sets}"
    try:
        r = simulate.run(asked, server=_SERVER)
    except RetrompiError as error:
        figures.codes[error.exit_code] += 1
        if error.exit_code == 3 or "\n" in str(error):
            figures.faults.append(f"exit {error.exit_code}: {title}: {error}")
        if isinstance(error, EngineError):
            _SERVER.close()
        return
    except Exception as error:
        figures.codes[3] += 1
        figures.faults.append(f"exit 3: {title}: {type(error).__name__}: {error}")
        return
    finally:
        took = time.monotonic() - began
        figures.longest_s = max(figures.longest_s, took)
    figures.most_B = max(figures.most_B, _SERVER.spent.get("peak_B", 0.0))
    figures.codes[0 if r.outcome == "completed" else 1] += 1
    figures.outcomes[r.outcome] += 1
    if r.outcome == "limit" and "within one event" in r.detail:
        figures.faults.append(f"hang: {title}: {r.detail}")
    for rank in {m["rank"] for m in r.marks}:
        times = [m["time_ps"] for m in r.marks if m["rank"] == rank]
        if any(a > b for a, b in pairwise(times)) or min(times) < 0:
            figures.faults.append(f"wrap: {title}: marks run backwards")
    if r.time_ps < 0 or any(row["time_s"] < 0 or row["cpu_s"] < 0 or row["mpi_s"] < 0 for row in r.per_rank):
        figures.faults.append(f"wrap: {title}: a negative time")
    if r.outcome != "completed":
        return
    kinds = {name: unit_of(base.model, name) for name in sets}
    if any(word in name for name in sets for word in TIMERS):
        return
    told = [estimate(base, name, kinds[name], text) for name, text in sets.items()]
    known = [t for t in told if t is not None]
    if known and max(known) > COUNTED_S:
        figures.faults.append(f"wrap: {title}: {r.time_s:g} s, estimated {max(known):g} s, which cannot be counted")
        return
    plain = _ran(base).time_s
    costs = all(is_cost(name, unit) for name, unit in kinds.items())
    if known and costs and max(known) > 3 * plain:
        figures.estimated += 1
        low, high = 0.2 * max(known), 5 * (sum(known) + plain) if len(known) == len(sets) else math.inf
        if not (low <= r.time_s <= high):
            figures.faults.append(f"wrap: {title}: {r.time_s:g} s, estimated {sum(known):g} s")


def configurations(models: list[str]) -> Iterator[tuple[Question, list[str]]]:
    """(question without overrides, the parameters that it uses)."""
    for model in models:
        for mode in MODES:
            base = Question(model, platform_of(model), pingpong(SIZES, 1), mode, idle_overrides=True)
            try:
                Resolved.of(base)
                r = _ran(base)
            except RetrompiError:
                continue
            if r.outcome == "completed":
                yield base, [n for n in r.used if unit_of(model, n)]


def tried(tries: int, seed: int = 1, models: list[str] | None = None) -> Figures:
    """The figures of ``tries`` draws."""
    draw = random.Random(seed)
    figures = Figures()
    all_of = list(configurations(models or registry.model_names()))
    every = [(base, name) for base, used in all_of for name in used]
    draw.shuffle(every)
    for i in range(tries):
        base, name = every[i % len(every)]  # every parameter of every model in every mode comes up
        sets = {name: values(unit_of(base.model, name), draw)}
        if draw.random() < 0.5:
            other = draw.choice([n for b, n in every if b is base])
            sets[other] = values(unit_of(base.model, other), draw)
        judged(base.with_(fidelity=draw.choice(FIDELITIES)), sets, figures)
        if draw.random() < 0.1:
            _explained(base, sets, figures)
    return figures


def _explained(base: Question, sets: dict[str, str], figures: Figures) -> None:
    """The closed sums of `simulate.explain` hold at extremes as well."""
    asked = base.with_(overrides=sets, workload=Message(1024), bounds=Bounds(wall_s=WALL_S, memory_B=MEMORY_B))
    try:
        told = simulate.explain(asked)
    except RetrompiError as error:
        if error.exit_code == 3:
            figures.faults.append(f"exit 3: explain {base.model} {base.where} {sets}: {error}")
        return
    if sum(s["ps"] for s in told["stages"]) != told["total_ps"] or any(s["ps"] < 0 for s in told["stages"]):
        figures.faults.append(f"wrap: explain {base.model} {base.where} {sets}: stages do not add up")


def main() -> None:
    """Prints the figures; exit code 1 if there is a fault."""
    tries, seed = (int(a) for a in [*sys.argv[1:], "2000", "1"][:2]) if len(sys.argv) < 3 else map(int, sys.argv[1:3])
    f = tried(tries, seed)
    print(f"{f.tries} tries, {f.estimated} compared with an estimate; exit codes {dict(f.codes)}; outcomes {dict(f.outcomes)}")
    print(f"longest try {f.longest_s:.1f} s, most memory {f.most_B / 2**20:.0f} MiB; {len(f.faults)} faults")
    for fault in f.faults:
        print(fault)
    sys.exit(bool(f.faults))


if __name__ == "__main__":
    main()
