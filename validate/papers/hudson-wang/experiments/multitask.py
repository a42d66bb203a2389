"""Scaling of a partly serial program on a shared-memory machine: its efficiency over the number of processors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from retrompi.papers.experiments import Done, Job
from retrompi.papers.statements.claims import find
from retrompi.papers.statements.draw import apply_draw
from retrompi.sim.resolved import Resolved
from retrompi.spec.question import Experiment, Question, Replay
from retrompi.store.identity import specification
from retrompi.store.lookup import facts_of

if TYPE_CHECKING:
    from retrompi.papers.statements.paper import Paper
    from retrompi.store.database import Store

SLOW = True
ENOUGH = 0.5
"""Minimum efficiency at which another processor is useful: the usual half-performance point."""
STEPS = 12
"""Bisections for the parallel fraction: to a 4000th."""


def jobs(plan: Paper, store: Store, fresh: bool) -> list[Job]:
    """Options: ``model``, ``platform``, ``flops``, ``fraction_of`` and ``processors_of``: claims, the
    number of each being the input from which the other quantity is computed. Facts
    ``multitask``: limit (processors), fraction (%), efficiency by number of processors."""
    o = plan.options("multitask")
    model, platform, flops = o["model"], o["platform"], float(o["flops"])
    fraction = float(find(o["fraction_of"]).low or 0) / 100
    span = find(o["processors_of"])
    processors = round(((span.low or 0) + (span.high or 0)) / 2)

    def speed(asked: Resolved, ranks: int, part: float) -> float:
        from retrompi.sim import simulate
        from retrompi.traces import rates

        result = simulate.run(asked.with_fields(workload=Replay(rates.fork_join(ranks, part, flops))))
        simulate.require_completed(result, f"fork-join on {ranks} processors")
        begin, end = (m["time_s"] for m in result.marks)
        return 1 / float(end - begin)

    def measure(asked: Resolved) -> dict[str, Any]:
        cores = int(asked.platform.hosts[0].cores)
        one = speed(asked, 1, fraction)
        efficiency = {n: speed(asked, n, fraction) / one / n for n in range(1, cores + 1)}
        low, high = 0.0, 1.0
        for _ in range(STEPS):
            middle = (low + high) / 2
            good = speed(asked, processors, middle) / speed(asked, 1, middle) / processors >= ENOUGH
            low, high = (low, middle) if good else (middle, high)
        limit = max(n for n, e in efficiency.items() if e >= ENOUGH)
        return {"multitask": {"limit": limit, "fraction": 100 * high, "efficiency": {str(n): e for n, e in efficiency.items()}}}

    def work() -> Done:
        made = {"flops": flops, "fraction": fraction, "processors": processors, "enough": ENOUGH}
        asked = Resolved.of(apply_draw(plan.draw, Question(model, platform, Experiment.of("multitask", "fork-join", made), "shared")))
        run_id, facts, found = facts_of(store, specification(asked), lambda: measure(asked), fresh=fresh)
        return Done("multitask", facts["multitask"], (run_id,), int(not found))

    return [Job("multitasking", work, 2.0)]
