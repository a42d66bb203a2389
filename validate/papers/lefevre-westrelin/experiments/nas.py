"""Replays of the captured NAS benchmarks on the runtimes and machines of the paper."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from retrompi.papers.experiments import Done, Job
from retrompi.papers.fit.kernel_rates import KernelComparison

from . import _nas as nas

if TYPE_CHECKING:
    from retrompi._engine import Trace
    from retrompi.papers.statements.paper import Paper
    from retrompi.store.database import Store

SLOW = True
FACTS = {"nas": "NAS replays"}
# Approximate replay time of a trace in seconds on the development machine; the longest are started first.
WEIGHT = {"LUA": {4: 3.0, 8: 6.0, 16: 16.0}, "LUB": {4: 4.0, 8: 10.0, 16: 26.0}}


def jobs(plan: Paper, store: Store, fresh: bool) -> list[Job]:
    """Options: ``platform``, and ``systems``: L and W -> a model. One job for each trace, so that it is parsed once for all systems.

    The facts are ``nas.PROGRAM.CELL``: ``timed_s``, ``speedup`` against one process (where that is published), ``replay_s``;
    ``nas.ratio.PROGRAM``: the one-process time under Windows over that under Linux.
    """
    o = plan.options("nas")
    systems: dict[str, str] = dict(o["systems"])
    platform = str(o.get("platform", plan.platform))
    cells: dict[tuple[str, int], list[nas.Cell]] = {}
    for at in nas.published():
        if at.system in systems:
            cells.setdefault((at.program, at.processes), []).append(at)

    def replay(program: str, at_once: list[nas.Cell]) -> Done:
        parsed: list[Trace] = []

        def trace() -> Trace:
            if not parsed:
                parsed.append(nas.read(at_once[0].trace))
            return parsed[0]

        told: dict[str, Any] = {}
        runs: list[int] = []
        simulated = 0
        for at in at_once:
            fit = nas.fits()[program, at.system]
            model = systems[at.system]
            run_id, facts, found = nas.cell(store, at, (model, platform), fit, trace=trace, fresh=fresh, draw=plan.draw)
            runs.append(run_id)
            simulated += not found
            keys = ("timed_s", "replay_s", "mpi_share")
            told[at.name] = {k: facts[k] for k in keys} | {"run_id": run_id}
            alone = nas.Cell(program, at.system, 1)
            if alone in nas.published():
                one = nas.cell(store, alone, (model, platform), fit, draw=plan.draw)[1]["timed_s"]
                told[at.name]["speedup"] = one / facts["timed_s"]
        return Done(f"nas.{program}", told, tuple(runs), simulated)

    def ratio(program: str) -> Done:
        one = (nas.cell(store, nas.Cell(program, s, 1), (systems[s], platform), nas.fits()[program, s], draw=plan.draw) for s in ("W", "L"))
        times = [facts["timed_s"] for _, facts, _ in one]
        return Done("nas.ratio", {program: times[0] / times[1]})

    compared = sorted({p for p, n in cells if n == 1 and len(cells[p, 1]) == len(systems) == 2})
    return [Job(f"NAS {p}, Windows over Linux", partial(ratio, p), 0.1) for p in compared] + [
        Job(f"NAS {program[:-1]} class {program[-1]}, {n} processes", partial(replay, program, group), WEIGHT.get(program, {}).get(n, 0.2))
        for (program, n), group in cells.items()
    ]


def kernels() -> Iterator[KernelComparison]:
    """LU on one process: the words of its loops at the memory's rates, its operations at what a P6 does in cache (nas.toml)."""
    platform = "myrinet-piii"
    for cell, claim in nas.published().items():
        arithmetic = nas.arithmetic_seconds(cell.program, platform)
        if cell.processes == 1 and arithmetic is not None and claim.low is not None:
            terms = {"arithmetic": arithmetic, "memory": nas.memory_seconds(cell.program, platform)}
            slowest = max(terms, key=terms.__getitem__)
            yield KernelComparison(claim.id, "NAS", platform, cell.program, 1, claim.low, terms[slowest], slowest)
