"""The NAS study: computation and memory share of each program, their fit, and the comparison with the
published times.

A cell is a benchmark, a class, a system and a number of processes, named as in the claims: ``LUA``, ``L16``.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from retrompi import traces
from retrompi.base import units
from retrompi.base.errors import InputError, UsageError
from retrompi.base.paths import reference_dir
from retrompi.papers.statements.claims import Claim, by_paper, for_fit
from retrompi.papers.statements.draw import apply_draw, factor
from retrompi.sim import simulate
from retrompi.sim.resolved import Resolved
from retrompi.spec import registry
from retrompi.spec.conditions.timed_section import Program
from retrompi.spec.question import Experiment, Question, Replay
from retrompi.store.identity import specification
from retrompi.store.lookup import facts_of

if TYPE_CHECKING:
    from retrompi._engine import Trace
    from retrompi.papers.statements.draw import Draw
    from retrompi.spec.host import Host
    from retrompi.store.database import Store

__all__ = ["FIT_FILE", "PAPER", "SYSTEMS", "Cell", "Fit", "calibrate", "cell", "fits", "memory_share", "published", "summary", "table"]

FOLDER = Path(__file__).parents[1]
PAPER = FOLDER.name
SYSTEMS = {"L": "linux", "W": "windows"}
FIT_FILE = FOLDER / "nas.fit.toml"
CLOSE = 2e-3
"""Relative error of the time at which the fit stops."""
MOST_REPLAYS = 4
LEAST = 0.1
"""Lower limit of the fitted computation, as a share of the published time; a slower runtime misses the time instead."""


@dataclass(frozen=True)
class Cell:
    """``program`` such as LUA (benchmark and class), ``system`` L or W, processes."""

    program: str
    system: str
    processes: int

    @property
    def trace(self) -> str:
        """Name of the captured trace."""
        return f"npb3.3.1-{self.program[:-1].lower()}-{self.program[-1]}-{self.processes}"

    @property
    def name(self) -> str:
        """``L16``: system and processes as in a claim's name."""
        return f"{self.system}{self.processes:02d}"


@cache
def _index() -> Mapping[str, Any]:
    return tomllib.loads((reference_dir() / "traces" / "INDEX.toml").read_text(encoding="utf-8"))


def section(trace: str) -> str:
    """The lines of rank 0 that the benchmark times; UsageError for an unknown trace."""
    if trace not in _index():
        raise UsageError(f"no trace '{trace}'; shipped: {', '.join(_index())}", code="unknown-trace")
    return str(_index()[trace]["section"])


@cache
def _bytes_hash(trace: str) -> str:
    return hashlib.sha256((reference_dir() / "traces" / f"{trace}.tar.zst").read_bytes()).hexdigest()


def read(trace: str) -> Trace:
    """The shipped trace of that name, its computation averaged over the iterations (the capture's noise is not the program's)."""
    return traces.read(reference_dir() / "traces" / f"{trace}.tar.zst").smoothed()


@cache
def _programs() -> Mapping[str, Any]:
    return tomllib.loads((FOLDER / "nas.toml").read_text(encoding="utf-8"))


def _host(platform: str) -> Host:
    """The first host of a platform; those of a NAS run are alike."""
    return registry.platform(platform).hosts[0]


def memory_seconds(program: str, platform: str) -> float:
    """Seconds that one processor waits for main memory in the timed part of the undivided problem (counts of nas.toml)."""
    told = _programs()[program[:-1]]
    rates = {"read": _host(platform).read_mem, "write": units.parse(_programs()["rates"]["write"]["value"], "B/s")}
    words = told["iterations"] * told["elements"][program[-1]] * told["word"]
    return float(sum(words * sum(loop[way] for loop in told["loops"]) / rate for way, rate in rates.items()))


def arithmetic_seconds(program: str, platform: str) -> float | None:
    """Seconds of arithmetic in the timed part, by the program's operations and the host's clock; None if its operations are not known."""
    told = _programs()[program[:-1]]
    if "operations" not in told:
        return None
    of, _, name = _programs()["arithmetic"]["host"].partition(":")
    reference = registry.platform(of).host(name)
    operations = 0.0
    for coefficient in told["operations"]:
        operations = operations * told["points"][program[-1]] + coefficient
    return float(told["iterations"] * operations / (_host(platform).clock * reference.flops / reference.clock))


def published(what: str = "T", *, fit: bool = False) -> dict[Cell, Claim]:
    """Cell -> its published time (``T``) or speed-up (``S``); with ``fit`` only the claims available to a calibration (`for_fit`)."""
    out = {}
    for claim in [*for_fit("mpibip"), *for_fit("mpibip:windows")] if fit else by_paper(PAPER):
        parts = claim.id.split("-")
        if claim.id.startswith("LW-NAS-") and parts[-1] == what:
            out[Cell(parts[2], parts[3][0], int(parts[3][1:]))] = claim
    return out


def _seconds(claim: Claim) -> float:
    assert claim.low is not None
    return claim.low


def one_process_seconds(program: str, system: str) -> float:
    """The published one-process time; four times that of four processes if the paper has none."""
    told = published(fit=True)
    alone = told.get(Cell(program, system, 1))
    return _seconds(alone) if alone else 4 * _seconds(told[Cell(program, system, 4)])


def memory_share(program: str, system: str, platform: str) -> float:
    """Share of the computation spent on the memory bus, at most 1. Independent of any time on two CPUs."""
    return fits()[program, system].memory_share(program, platform)


@dataclass(frozen=True)
class Fit:
    """``compute_s``: computation of the timed part on one process, seconds; ``gain``: its factor when the problem is distributed."""

    compute_s: float
    gain: float

    def of(self, processes: int) -> float:
        """Computation of all processes together, seconds."""
        return self.compute_s * (1.0 if processes == 1 else self.gain)

    def memory_share(self, program: str, platform: str) -> float:
        """Counted memory seconds over those and the arithmetic's, if the operations are known; otherwise over the fitted computation.

        Not over T(1), which for IS includes copies by the library.
        """
        memory, arithmetic = memory_seconds(program, platform), arithmetic_seconds(program, platform)
        return min(1.0, memory / (self.compute_s if arithmetic is None else memory + arithmetic))


def fits() -> dict[tuple[str, str], Fit]:
    """(program, system) -> what ``retrompi paper nas --fit`` found; InputError if it has not been run."""
    try:
        data = tomllib.loads(FIT_FILE.read_text(encoding="utf-8"))
        return {(k[:-1], k[-1]): Fit(float(v["compute_s"]), float(v["gain"])) for k, v in data["fit"].items()}
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise InputError(
            f"no usable fit of the NAS programs: {error}; make it with 'retrompi paper nas --fit'", FIT_FILE, code="unreadable-file"
        ) from None


def cell(
    store: Store,
    at: Cell,
    system: tuple[str, str],
    fit: Fit,
    *,
    trace: Callable[[], Trace] | None = None,
    fresh: bool = False,
    draw: Draw | None = None,
) -> tuple[int, dict[str, Any], bool]:
    """(run id, facts, found) of one replay: ``timed_s`` is the benchmark's own time, ``replay_s`` the wall time of the replay.

    ``system``: model and platform. One process on each host, then a second one on each. ``trace`` returns the parsed trace when needed.
    Of a ``draw``, the discrepancy changes the share of the time that is spent in MPI.
    """
    model, platform = system
    compute_s = fit.of(at.processes)
    program = Program(section(at.trace), compute_s, fit.memory_share(at.program, platform))
    made = {"file": _bytes_hash(at.trace), **program.row()}
    question = Question(model, platform, Experiment.of("nas", at.trace, made))
    asked = Resolved.of(apply_draw(draw, question))

    def work() -> dict[str, Any]:
        found = trace() if trace is not None else read(at.trace)
        result = simulate.run(asked.with_fields(workload=Replay(found, at.trace, program)))
        simulate.require_completed(result, f"{at.trace} of {model} on {platform}")
        assert result.section is not None
        in_mpi = sum(r["mpi_s"] for r in result.per_rank) / max(sum(r["time_s"] for r in result.per_rank), 1e-30)
        counted = {k: getattr(result, k) for k in ("ranks", "actions", "messages", "bytes", "events")}
        timed = {"timed_s": result.section["seconds"], "replay_s": result.wall_s, "mpi_share": in_mpi, "compute_s": compute_s}
        return {**counted, **timed}

    run_id, facts, found = facts_of(store, specification(asked), work, fresh=fresh)
    if draw is not None:
        facts["timed_s"] *= 1 + facts["mpi_share"] * (factor(draw, question) - 1)
    return run_id, facts, found


Progress = Callable[[int, int, str], None]


def _solve(time_of: Callable[[float], float], start: float, slope: float, wanted: float) -> tuple[float, float]:
    """(x, relative error) with ``time_of(x)`` near ``wanted``: secant steps, the first with the given slope."""
    x, t = start, time_of(start)
    for _ in range(MOST_REPLAYS - 1):
        if abs(t / wanted - 1) <= CLOSE:
            break
        following = max(x + (wanted - t) / slope, LEAST * start)
        t_new = time_of(following)
        if following != x and t_new != t:
            slope = (t_new - t) / (following - x)
        x, t = following, t_new
    return x, t / wanted - 1


def _fit_one(
    store: Store, program: str, system: str, model: str, platform: str, told: Mapping[Cell, Claim], loaded: Trace
) -> dict[str, Any]:
    """Computation and gain of one program on one system; ``loaded`` is its trace on four processes."""
    alone, four = Cell(program, system, 1), Cell(program, system, 4)

    def time_alone(compute_s: float) -> float:
        return float(cell(store, alone, (model, platform), Fit(compute_s, 1.0))[1]["timed_s"])

    def time_four(compute_s: float, gain: float) -> float:
        return float(cell(store, four, (model, platform), Fit(compute_s, gain), trace=lambda: loaded)[1]["timed_s"])

    compute_s, gain, wanted = one_process_seconds(program, system), 1.0, _seconds(told[four])
    off_alone: float | None = None
    if alone in told:
        compute_s, off_alone = _solve(time_alone, compute_s, 1.0, _seconds(told[alone]))
        divided, off_four = _solve(lambda c: time_four(compute_s, c / compute_s), compute_s, 0.25, wanted)
        gain = divided / compute_s
    else:
        compute_s, off_four = _solve(lambda c: time_four(c, 1.0), compute_s, 0.25, wanted)
    return {
        "program": program,
        "system": system,
        "compute_s": compute_s,
        "gain": gain,
        "memory_share": Fit(compute_s, gain).memory_share(program, platform),
        "error_1": off_alone,
        "error_4": off_four,
        "claims": [told[c].id for c in (alone, four) if c in told],
    }


def calibrate(
    store: Store, models: Mapping[str, str], platform: str, progress: Progress | None = None, *, write: bool = True
) -> list[dict[str, Any]]:
    """Fit computation and gain of every program on every system to T(1) and T(4), and ``write`` ``nas.fit.toml``.

    ``models`` maps L and W to a runtime. Only rows marked calibrate are used. The rows returned have program, system,
    compute_s, gain, memory_share and the errors of both times.
    """
    told = published(fit=True)
    programs = sorted({c.program for c in told})
    rows = []
    for program in programs:
        loaded = read(Cell(program, "L", 4).trace)
        for system, model in models.items():
            rows.append(_fit_one(store, program, system, model, platform, told, loaded))
            if progress is not None:
                progress(len(rows), len(programs) * len(models), f"{program} {SYSTEMS[system]}")
    if write:
        _write(rows, models, platform)
    return rows


def _write(rows: Iterable[Mapping[str, Any]], models: Mapping[str, str], platform: str) -> None:
    from retrompi.store.identity import code_version

    lines = [
        "# Made by 'retrompi paper nas --fit'; do not edit. compute_s: computation of the timed part on one process, so that",
        "# the replay takes the published T(1). gain: factor of it on several processes (smaller pieces fit the caches better), so",
        "# that the replay on 4 takes the published T(4); kept for 8 and 16, which the fit has not seen.",
        "",
        f'date = "{date.today().isoformat()}"',
        f'code = "{code_version()}"',
        f'platform = "{platform}"',
        *(f'{SYSTEMS[s]} = "{m}"' for s, m in models.items()),
    ]
    for r in rows:
        lines += ["", f"[fit.{r['program']}{r['system']}]", f"compute_s = {r['compute_s']:.6g}", f"gain = {r['gain']:.5g}"]
        lines += [f"error_{p} = {r[f'error_{p}']:.2g}" for p in (1, 4) if r[f"error_{p}"] is not None]
        lines.append(f"claims = {r['claims']!r}".replace("'", '"'))
    FIT_FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def table(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows program, system, processes, use, published_s, time_s, error, published_speedup, speedup, replay_s for every published time.

    ``facts`` are those of the experiment ``nas``: program -> cell name -> timed_s and others.
    """
    speedups = published("S")
    out = []
    for at, claim in published().items():
        got = facts.get(at.program, {}).get(at.name, {})
        time_s = got.get("timed_s")
        out.append(
            {
                "claim": claim.id,
                "program": at.program,
                "system": SYSTEMS[at.system],
                "processes": at.processes,
                "use": "fit" if claim.use == "calibrate" else "held out",
                "published_s": claim.low,
                "time_s": time_s,
                "error": None if time_s is None else time_s / _seconds(claim) - 1,
                "published_speedup": speedups[at].low if at in speedups else None,
                "speedup": got.get("speedup"),
                "replay_s": got.get("replay_s"),
            }
        )
    return out


def summary(rows: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Median and maximum absolute error of the held-out times, and their number."""
    off = [abs(float(r["error"])) for r in rows if r["use"] == "held out" and r["error"] is not None]
    return {"cells": len(off), "median": median(off) if off else 0.0, "largest": max(off, default=0.0)}
