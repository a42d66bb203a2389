"""PingPong curves: every model of the study in every mode."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from retrompi.papers.experiments import Done, Job, Look, Seen
from retrompi.papers.judging.evidence import evidence, sizes_asked
from retrompi.papers.statements.claims import checks
from retrompi.papers.statements.draw import answer_drawn
from retrompi.sim import simulate
from retrompi.sim.resolved import MODES
from retrompi.spec import registry
from retrompi.spec.question import Question, Starts, pingpong

if TYPE_CHECKING:
    from retrompi.papers.statements.paper import Paper
    from retrompi.store.database import Store


def jobs(plan: Paper, store: Store, fresh: bool) -> list[Job]:
    """Options: ``modes``, ``sizes``, and ``rivals``: variants that are drawn beside the models in the first mode and judged by nothing.

    Models and the first platform are the study's. A draw has the repetitions of a calibration.
    """

    def curve(model: str, mode: str) -> Done:
        work = pingpong(plan.sizes, None if plan.draw is None else _repetitions)
        got = answer_drawn(plan.draw, store, Question(model, plan.platform, work, mode, fidelity=plan.fidelity), fresh)
        tag = {"model": model, "platform": plan.platform, "mode": mode}
        return Done("points", [{**tag, **row, "run_id": got.run_id} for row in got.rows], (got.run_id,), int(not got.found))

    # Runs between machines have the most events and are started first, to balance the load.
    drawn = [(model, mode) for mode in plan.modes for model in plan.models]
    drawn += [(rival, mode) for rival in plan.options("pingpong").get("rivals", ()) for mode in plan.modes[:1]]
    return [Job(f"{model} {mode}", partial(curve, model, mode), 1.0 if mode == "shared" else 3.0) for model, mode in reversed(drawn)]


STARTUP_SEEDS = 2000


def _repetitions(size: int) -> int:
    """The published number at 0 B, where the first use of a connection matters; otherwise enough for the steady state."""
    return 1000 if size == 0 else 40 if size <= 1024 else 4


def _judged_modes(model: str) -> list[str]:
    """The modes used in the checks of a model; the others need not be simulated for a fit."""
    cls = registry.model(model)
    base = cls.name.partition(":")[0]
    theirs = [c for entries in checks().values() for c in entries if base in c.get("models", ())]
    theirs += [c for entries in evidence(cls)[1].values() for c in entries]
    judged = {str(c.get("mode")) for c in theirs}
    return [m for m in MODES if m in judged]


def looks(model: str, platform: str) -> list[Look]:
    """The runs by which a model is measured for its fit: points of both modes with few repetitions, and facts of its start-up."""
    base = registry.model(model).name.partition(":")[0]
    sizes = sizes_asked(evidence(registry.model(model))[1])

    def curve(question: Question) -> Seen:
        tag = {"model": base, "platform": platform, "mode": question.where}
        return [{**tag, **row} for row in simulate.benchmark(question)], {"parameters": {base: {}}}

    def starts(question: Question) -> Seen:
        own = {k: v for k, v in question.sets.items() if not k.startswith("platform.")}
        return [], {"startup": {base: simulate.startup(question.with_(overrides=own))}}

    modes = _judged_modes(model) or MODES
    return [
        *(Look(m, Question(model, platform, pingpong(sizes, _repetitions), m, idle_overrides=True), curve) for m in modes),
        Look("start-up", Question(model, platform, Starts(2, STARTUP_SEEDS), idle_overrides=True), starts),
    ]
