"""Replaying papers' studies: their curves and facts from the store or simulated now, judged and stored."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import InputError, RetrompiError
from retrompi.papers.experiments import Done, Job, jobs, merge
from retrompi.papers.judging import curve_verdicts
from retrompi.papers.judging.verdicts import Verdict, judge
from retrompi.papers.reproduce.inspection import refuse
from retrompi.papers.statements import curves, own_code
from retrompi.papers.statements.claims import Claim, by_paper, load
from retrompi.papers.statements.draw import overrides
from retrompi.papers.statements.paper import Paper, find_paper
from retrompi.papers.statements.tables import line_of, text_of
from retrompi.sim import worker
from retrompi.spec import registry
from retrompi.spec.conditions.network_model import NATIVE, network_in_use
from retrompi.spec.question import Question, Starts
from retrompi.spec.registry import resolve
from retrompi.spec.runtime.overrides import parse_sets

if TYPE_CHECKING:
    from retrompi.measure.stored_curves import StoredCurve
    from retrompi.store.database import Store
    from retrompi.studies.draws.uncertainty import Spec

__all__ = ["WORKERS", "Progress", "Reproduction", "facts_of_experiment", "jobs_of", "judge_all", "kinds", "of_curves",
           "parameters", "run_jobs", "run_paper", "run_papers"]

WORKERS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""Default number of concurrent simulations; each runs in a separate worker process, for which a thread here only waits."""

Progress = Callable[[int, int, str], None]
"""Called after each job with (work done, total work, the job); work is in thousandths of the jobs' weight."""


@dataclass(frozen=True)
class Reproduction:
    """A replayed study: the data of the report and the verdict table.

    ``points``: rows model, platform, mode, size_B, time_us, bandwidth_MBps, repetitions, run_id. ``anatomy``: rows model,
    mode, size_B, total_s, stages, run_id. ``simulated`` of ``len(runs)`` runs were simulated now, the others found in the store.
    """

    paper: Paper
    claims: tuple[Claim, ...]
    points: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    anatomy: list[dict[str, Any]] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    runs: tuple[int, ...] = ()
    simulated: int = 0
    told_by: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Dotted paths of facts, each with the runs that told them."""
    measured: tuple[StoredCurve, ...] = ()
    """Measured curves from the store, shown on the page with the published and simulated ones."""
    bands: Mapping[tuple[str, str], Sequence[tuple[int, float, float, float]]] = field(default_factory=dict)
    """Intervals of the simulated times, if draws were made: see `retrompi.papers.reproduce.agreement.bands`."""
    spec: Spec | None = None
    """What was drawn, if draws were made."""


@contextmanager
def _options_of(plan: Paper, kind: str) -> Iterator[None]:
    """In the body an experiment works with its table in paper.toml: what it cannot do with that is an error of the file."""
    try:
        yield
    except RetrompiError:
        raise
    except (TypeError, AttributeError, LookupError, ValueError) as error:
        file = plan.folder / "paper.toml"
        said = f"'{error.args[0]}' is missing" if isinstance(error, KeyError) and error.args else str(error)
        raise InputError(f"the experiment {kind} cannot be made of these options: {said}", file, line_of(text_of(file), "", kind),
                         code="bad-value") from error


def jobs_of(plan: Paper, kind: str, store: Store, fresh: bool) -> list[Job]:
    """The jobs of one kind of experiment; their errors as those of `_options_of`."""

    own = kind in own_code.names(plan.folder, "experiments")

    @contextmanager
    def guard() -> Iterator[None]:
        with own_code.running(plan.folder, f"the experiment {kind}") if own else nullcontext(), _options_of(plan, kind):
            yield

    def run_guarded(work: Callable[[], Done]) -> Done:
        with guard():
            return work()

    with guard():
        return [replace(job, work=partial(run_guarded, job.work)) for job in jobs(kind, plan, store, fresh)]


def parameters(plan: Paper) -> dict[str, dict[str, float | str]]:
    """Model -> its parameters on the study's first platform, in base units: those of the plan's draw, if it has one."""
    if not plan.platforms:
        return {}
    platform = registry.platform(plan.platform)
    given = {m: overrides(plan.draw, Question(m, plan.platform, Starts(2))) for m in plan.models}
    return {m: resolve(registry.model(m), platform, parse_sets(sets))[0].as_dict() for m, sets in given.items()}


def run_jobs(work: Sequence[tuple[str, Job]], progress: Progress | None, workers: int) -> list[Done]:
    """The results of labelled jobs, in their order; the longest are started first, to balance the load."""
    results: dict[int, Done] = {}
    cost = [max(round(1000 * job.weight), 1) for _, job in work]
    spent = 0
    group = worker.Group()
    with ThreadPoolExecutor(max_workers=max(workers, 1), initializer=group.join) as pool:
        futures = {pool.submit(work[i][1].work): i for i in sorted(range(len(work)), key=lambda i: -cost[i])}
        try:
            for future in as_completed(futures):
                i = futures[future]
                results[i] = future.result()
                spent += cost[i]
                if progress is not None:
                    progress(spent, sum(cost), work[i][0])
        except BaseException:
            # After a failure or an interrupt no further job is started, and running ones are not waited for.
            pool.shutdown(wait=False, cancel_futures=True)
            group.end()
            raise
    return [results[i] for i in range(len(work))]


def _study(plan: Paper, finished: Sequence[Done]) -> Reproduction:
    """A study from the results of its jobs, in an order independent of their completion, so that the output is reproducible to the byte."""
    points = [row for r in finished if r.where == "points" for row in r.result]
    rank = {name: i for i, name in enumerate([*plan.modes, *plan.models])}
    points.sort(key=lambda p: (rank.get(p["mode"], len(rank)), rank.get(p["model"], len(rank))))
    anatomy = [row for r in finished if r.where == "anatomy" for row in r.result]
    facts: dict[str, Any] = {"parameters": parameters(plan)}
    for r in finished:
        if r.where not in ("points", "anatomy"):
            merge(facts, r.where, r.result)
    claims = by_paper(plan.key)
    verdicts = [*judge(claims, points, facts), *curve_verdicts.judge(plan.key, curves.of(plan), facts)]
    runs = tuple(dict.fromkeys(i for r in finished for i in r.run_ids))
    told_by = tuple((path, r.run_ids) for r in finished if r.where not in ("points", "anatomy") for path in _paths(r))
    return Reproduction(plan, tuple(claims), points, facts, anatomy, verdicts, runs, sum(r.simulated for r in finished), told_by)


def _paths(done: Done) -> list[str]:
    """The paths of the facts that a job told, one level below where they are put."""
    return [f"{done.where}.{name}" for name in done.result] if isinstance(done.result, Mapping) else [done.where]


def kinds(plan: Paper) -> tuple[str, ...]:
    """Its experiments; measured curves are simulated whether or not it says so."""
    return plan.experiments if "curves" in plan.experiments or not plan.curves else (*plan.experiments, "curves")


def run_papers(
    names: Sequence[str],
    store: Store,
    fresh: bool = False,
    progress: Progress | None = None,
    *,
    keep: bool = True,
    workers: int = WORKERS,
    fidelity: str = "mechanism",
) -> list[Reproduction]:
    """Replay studies, all their jobs in one pool of ``workers``: stored runs are used, the others simulated (all, if ``fresh``).

    ``names`` are keys of the package's papers and those at hand (`retrompi.papers.statements.paper.working_with`).

    The verdicts are stored unless ``keep`` is False, as when a page is only redrawn, ``fidelity`` is below
    mechanism, or another network carries the frames. Raises
    UsageError for an unknown paper, InputError for what is wrong in its folder, and the error of a failing simulation; runs simulated
    before an error or an interrupt stay stored.
    """
    plans = [replace(find_paper(name), fidelity=fidelity) for name in names]
    for plan in plans:
        refuse(plan)
    # A kind of experiment is called for one study at a time; the pool runs the jobs of all of them.
    work = [(i, job) for i, plan in enumerate(plans) for kind in kinds(plan) for job in jobs_of(plan, kind, store, fresh)]
    labelled = [(job.label if len(plans) == 1 else f"{plans[i].key}: {job.label}", job) for i, job in work]
    results = run_jobs(labelled, progress, workers)
    out = []
    for i, plan in enumerate(plans):
        study = _study(plan, [done for (mine, _), done in zip(work, results, strict=True) if mine == i])
        if keep and fidelity == "mechanism" and network_in_use() == NATIVE:
            store.add_verdicts(plan.key, [v.row() for v in study.verdicts], run_ids=study.runs)
        out.append(study)
    return out


def run_paper(
    paper: str,
    store: Store,
    fresh: bool = False,
    progress: Progress | None = None,
    *,
    keep: bool = True,
    workers: int = WORKERS,
    fidelity: str = "mechanism",
) -> Reproduction:
    """Replay one study; see `run_papers`."""
    return run_papers([paper], store, fresh, progress, keep=keep, workers=workers, fidelity=fidelity)[0]


def facts_of_experiment(paper: str, kind: str, store: Store, fresh: bool = False, progress: Progress | None = None) -> dict[str, Any]:
    """The facts of one kind of experiment of a study, without its verdicts. Raises the errors of `run_paper`."""
    facts: dict[str, Any] = {}
    for done in run_jobs([(job.label, job) for job in jobs(kind, find_paper(paper), store, fresh)], progress, WORKERS):
        merge(facts, done.where, done.result)
    return facts


def judge_all(studies: Sequence[Reproduction]) -> list[Verdict]:
    """A verdict for every row of the reference: judged for ``studies``, otherwise unjudged, in file order."""
    mine = {v.id: v for s in studies for v in s.verdicts}
    return [mine.get(v.id, v) for v in judge(load(), [], {})]


def of_curves(studies: Sequence[Reproduction]) -> list[Verdict]:
    """The verdicts of the measured curves of ``studies``, which are no rows of the reference."""
    return [v for s in studies for v in s.verdicts if v.kind == curve_verdicts.KIND]
