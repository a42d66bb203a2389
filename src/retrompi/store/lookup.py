"""Look up or simulate: from a question to a run in the store.

    found = answer(store, Question("wmpi", "nt-pair", pingpong([0, 1024]), "shared"))
    found.rows, found.run_id, found.found
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import UsageError
from retrompi.sim import loop_rates, simulate
from retrompi.sim.observe import NOTHING, Observe
from retrompi.sim.resolved import Resolved
from retrompi.sim.samples import Samples
from retrompi.sim.sampling import NotSampled
from retrompi.sim.timeline import STORED
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.machine import kernels
from retrompi.spec.question import Benchmark, Message, Question, Replay, Starts
from retrompi.store.identity import RunSpec, specification
from retrompi.store.kept import Kept, number_rows, plain

if TYPE_CHECKING:
    from retrompi.sim.result import Result
    from retrompi.store.database import Store

__all__ = ["Found", "Record", "answer", "facts_of", "prepare_samples"]


@dataclass(frozen=True)
class Found:
    """A run's id, its rows, and whether it was ``found`` in the store rather than simulated now."""

    run_id: int
    rows: list[dict[str, Any]]
    found: bool
    timeline: Any = None
    """The complete timeline, if requested; the store keeps a sample."""


@dataclass(frozen=True)
class Record:
    """Stores a replay as a run of another ``kind``: ``about`` converts its result and call profile to facts and points."""

    kind: str
    about: Callable[[Result], tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]]


def answer(
    store: Store, question: Question | Resolved, *, fresh: bool = False, observe: Observe = NOTHING, record: Record | None = None
) -> Found:
    """The run that answers a question: looked up in the store, or simulated now and stored.

    Rows: for a benchmark its curve (size_B, time_us, bandwidth_MBps, repetitions), for Rinf1 the rates of its loops, for a message its
    stages (stage, process, seconds, ps, which sum to the total), for a start-up its steps, for a trace its ranks; everything else is in
    the run's row and its ``facts``. ``fresh`` simulates even if an identical run is stored, as does the request of a timeline.

    Raises `simulate.SimulationEnded` when a benchmark or a message does not complete, for a benchmark after storing its outcome; a trace
    that does not complete is a valid result. UsageError for a workload that is not simulated by itself.
    """
    asked = Resolved.of(question)
    workload = asked.question.workload
    if isinstance(workload, Replay):
        return _replay(store, asked, fresh, observe, record)
    if isinstance(workload, Benchmark):
        return (_loop_rates if workload.generator == "rinf1" else _benchmark)(store, asked, fresh)
    if isinstance(workload, Message):
        return _explain(store, asked, workload.size, fresh)
    if isinstance(workload, Starts):
        return _startup(store, asked, fresh)
    raise UsageError(f"{workload.label} is not simulated by itself")


def facts_of(
    store: Store, spec: RunSpec, work: Callable[[], Mapping[str, Any]], *, fresh: bool = False
) -> tuple[int, dict[str, Any], bool]:
    """(run id, facts, found): the facts stored under ``spec``, or those of ``work`` (a JSON object; its ``outcome`` is the run's)."""
    known = None if fresh else store.find_run(spec)
    if known is not None:
        return known, dict(store.run(known)["facts"]), True
    began = time.perf_counter()
    facts = dict(work())
    run_id = store.keep(Kept.of(spec, {"outcome": Outcome.COMPLETED, "wall_s": time.perf_counter() - began, **facts}), fresh=fresh)
    return run_id, dict(store.run(run_id)["facts"]), False


@dataclass(frozen=True)
class _Shelf:
    """A store as storage of samples (`retrompi.sim.samples.SampleStore`)."""

    store: Store
    fresh: bool

    def has(self, asked: Resolved) -> bool:
        return self.store.read_only or self.store.find_run(specification(asked)) is not None

    def facts(self, asked: Resolved, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if self.store.read_only:
            return measure()
        work = lambda: {"ranks": 2, "sample": measure()}  # noqa: E731
        sample: dict[str, Any] = facts_of(self.store, specification(asked), work, fresh=self.fresh)[1]["sample"]
        return sample


def samples_in(store: Store, fresh: bool = False) -> Samples:
    """Samples looked up and kept in a store."""
    return Samples(simulate.run, _Shelf(store, fresh))


def prepare_samples(store: Store, asked: Resolved, fresh: bool = False) -> None:
    """Below fidelity ``mechanism``: reads the mechanism's samples from the store, or simulates and stores them."""
    if asked.question.fidelity != "mechanism":
        simulate.compile_question(asked)  # rejects an override that no program could use before anything is sampled
        with suppress(NotSampled):  # the run then has the outcome of the mechanism
            samples_in(store, fresh).prepare(asked)


def _benchmark(store: Store, asked: Resolved, fresh: bool) -> Found:
    spec = specification(asked)
    what = simulate.curve_title(asked.question)
    known = None if fresh else store.find_run(spec)
    if known is not None:
        _require_completed(_as_result(store.run(known)), what, known)
        return Found(known, store.points(known), True)
    prepare_samples(store, asked, fresh)
    result = simulate.run(asked)
    # The marks duplicate the points. A benchmark that did not complete is stored too: its outcome is data.
    kept = Kept.of(spec, {**plain(result), "marks": []}, points=simulate.curve_of(asked, result))
    run_id = store.keep(kept, fresh=fresh)
    _require_completed(result, what, run_id)
    return Found(run_id, kept.points, False)


def _require_completed(result: Any, what: str, run_id: int) -> None:
    """`simulate.require_completed`; its error names the run."""
    try:
        simulate.require_completed(result, what)
    except simulate.SimulationEnded as ended:
        ended.run_id = run_id
        raise


def _as_result(row: Mapping[str, Any]) -> Any:
    """A stored run with the attributes that `simulate.require_completed` reads."""
    return SimpleNamespace(outcome=row["outcome"], detail=row["detail"], waits=row["facts"].get("waits", []))


def _loop_rates(store: Store, asked: Resolved, fresh: bool) -> Found:
    """Rinf1 on the host of its one rank, which sends nothing: the model may be any existing runtime."""
    machine = kernels.machine(asked.platform, asked.placement[0])

    def work() -> dict[str, Any]:
        result = simulate.run(asked)
        simulate.require_completed(result, f"Rinf1 on {asked.question.platform}, {asked.question.where}")
        rows = loop_rates.table(loop_rates.readings(result, machine.tick), machine)
        return {"time_s": result.time_s, "ranks": 1, "actions": result.actions, "rows": rows}

    run_id, kept, found = facts_of(store, specification(asked), work, fresh=fresh)
    return Found(run_id, list(kept["rows"]), found)


def _explain(store: Store, asked: Resolved, size: int, fresh: bool) -> Found:
    spec = specification(asked)
    known = None if fresh else store.find_run(spec)
    if known is not None:
        return Found(known, store.anatomy(known), True)
    prepare_samples(store, simulate.of_message(asked), fresh)
    began = time.perf_counter()
    told = simulate.explain(asked)
    facts = {"outcome": Outcome.COMPLETED, "wall_s": time.perf_counter() - began, "ranks": 2, "time_s": told["total_s"],
             "cautions": told["cautions"]}
    stages = [{"size_B": size, **stage} for stage in told["stages"]]
    kept = Kept.of(spec, facts, anatomy=stages)
    return Found(store.keep(kept, fresh=fresh), number_rows(kept.anatomy), False)


def _startup(store: Store, asked: Resolved, fresh: bool) -> Found:
    def work() -> dict[str, Any]:
        told = simulate.startup(asked)
        outcome = Outcome.FAILED_START if asked.apart else Outcome.COMPLETED
        return {"startup": told, "outcome": outcome, "detail": asked.apart, "ranks": asked.ranks}

    run_id, facts, found = facts_of(store, specification(asked), work, fresh=fresh)
    return Found(run_id, facts["startup"]["steps"], found)


def _replay(store: Store, asked: Resolved, fresh: bool, observe: Observe, record: Record | None) -> Found:
    label = asked.question.workload.label
    spec = specification(asked, record.kind if record else "")
    known = None if fresh or observe.timeline or observe.trace_events else store.find_run(spec)
    if known is not None:
        old = store.run(known)
        # A trace's hash does not depend on its path, but a deadlock report names file and line.
        if old["outcome"] == Outcome.COMPLETED or old["trace"] == label:
            return Found(known, store.ranks(known), True)
    prepare_samples(store, asked, fresh)
    result = simulate.run(asked, replace(observe, profile=observe.profile or record is not None))
    whole = result.timeline
    if whole is not None:
        whole.about["trace"] = label
        result = replace(result, timeline=whole.thin_to(STORED).row())
    facts, points = record.about(result) if record else ({}, ())
    # What is observed tells more than the run that is stored.
    again = fresh or known is not None or observe.timeline is not None or bool(observe.trace_events)
    kept = Kept.of(spec, {**plain(result), **facts}, points=points)
    return Found(store.keep(kept, fresh=again), kept.ranks, False, whole)
