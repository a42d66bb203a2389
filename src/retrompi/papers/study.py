"""Replaying papers' studies: their curves and facts from the store or simulated now, judged and stored."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from retrompi.base import units
from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.base.paths import validate_dir
from retrompi.papers.claims import Claim, by_paper, paper_key, papers
from retrompi.papers.exhibits import FigurePlan, TablePlan, read_figures, read_tables
from retrompi.papers.experiments import Done, Job, jobs, merge
from retrompi.papers.verdicts import Verdict, judge
from retrompi.sim import worker
from retrompi.spec import registry
from retrompi.spec.model import resolve

if TYPE_CHECKING:
    from retrompi.render.measured import Measured
    from retrompi.store.database import Store

__all__ = ["WORKERS", "Progress", "Setup", "Study", "run_paper", "run_papers", "setup", "setups"]

WORKERS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""Simulations at a time unless said otherwise; each runs in a worker process of its own, a thread here only waits for it."""

Progress = Callable[[int, int, str], None]
"""Called after each job with (work done, work in all, the job); work is the jobs' weight in thousandths."""


@dataclass(frozen=True)
class Why:
    """An anomaly and the mechanism that makes it; ``size`` B names the message whose anatomy shows it, None for none."""

    title: str
    model: str
    mode: str
    claims: tuple[str, ...]
    mechanism: str
    text: str
    size: int | None = None


@dataclass(frozen=True)
class Setup:
    """How a study is replayed, from ``papers/KEY.toml``: its experiments (`retrompi.papers.experiments`) and their options.

    ``models`` and ``platforms`` are shown as cards; the first platform is the one that experiments use unless they say
    otherwise. ``figure_plans`` and ``table_plans`` are what the report draws.
    """

    paper: str
    title: str
    authors: str
    models: tuple[str, ...]
    platforms: tuple[str, ...]
    experiments: tuple[str, ...]
    why: tuple[Why, ...] = ()
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    fidelity: str = "mechanism"
    """The rung at which curves, scenarios and anatomies are simulated."""
    figure_plans: tuple[FigurePlan, ...] = ()
    table_plans: tuple[TablePlan, ...] = ()

    def options(self, kind: str) -> Mapping[str, Any]:
        """The options of an experiment; {} without any."""
        return self.tables.get(kind, {})

    @property
    def platform(self) -> str:
        """The platform of experiments that name no other."""
        return self.platforms[0]

    @property
    def modes(self) -> tuple[str, ...]:
        """Modes of the PingPong curves; () without any."""
        return tuple(self.options("pingpong").get("modes", ()))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Message sizes of the PingPong curves, bytes; () without any."""
        text = self.options("pingpong").get("sizes")
        return () if text is None else tuple(units.parse_sizes(text))


@dataclass(frozen=True)
class Study:
    """A replayed study: everything the report and the verdict table are made from.

    ``points``: rows model, platform, mode, size_B, time_us, bandwidth_MBps, repetitions, run_id. ``anatomy``: rows model,
    mode, size_B, total_s, stages, run_id. ``simulated`` of ``len(runs)`` runs were made now, the others found in the store.
    """

    setup: Setup
    claims: tuple[Claim, ...]
    points: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    anatomy: list[dict[str, Any]] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    runs: tuple[int, ...] = ()
    simulated: int = 0
    measured: tuple[Measured, ...] = ()
    """Measured curves of the store that the page shows beside the published and simulated ones."""


def _size(text: str) -> int:
    return int(units.parse(text, "B"))


@cache
def setups() -> Mapping[str, Setup]:
    """Key of a study -> how it is replayed, in the order of the reference."""
    folder = validate_dir() / "papers"
    out: dict[str, Setup] = {}
    for path in sorted(folder.glob("*.toml"), key=lambda p: papers().index(p.stem)):
        try:
            t = tomllib.loads(path.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise InputError(str(error), path) from None
        out[path.stem] = Setup(
            paper=path.stem,
            title=t.pop("title"),
            authors=t.pop("authors"),
            models=tuple(t.pop("models")),
            platforms=tuple(t.pop("platforms")),
            experiments=tuple(t.pop("experiments")),
            why=tuple(
                Why(
                    title=w["title"],
                    model=w["model"],
                    mode=w["mode"],
                    claims=tuple(w["claims"]),
                    mechanism=w["mechanism"],
                    text=" ".join(w["text"].split()),
                    size=_size(w["size"]) if "size" in w else None,
                )
                for w in t.pop("why", ())
            ),
            figure_plans=read_figures(t.pop("figure", ()), path),
            table_plans=read_tables(t.pop("table", ()), path),
            tables=t,
        )
    return out


def setup(paper: str) -> Setup:
    """How ``paper`` is replayed; UsageError when it is unknown or its runtimes are not modelled yet."""
    key = paper_key(paper)
    if key not in setups():
        if key in papers():
            raise UsageError(f"the runtimes of '{key}' are not modelled yet; valid: {', '.join(setups())}", code="unknown-paper")
        raise UsageError(f"no paper '{paper}'{nearest(paper, papers())}", code="unknown-paper")
    return setups()[key]


def _parameters(plan: Setup) -> dict[str, dict[str, float | str]]:
    platform = registry.platform(plan.platform)
    return {m: resolve(registry.model(m), platform)[0].as_dict() for m in plan.models}


def _run(work: Sequence[tuple[str, Job]], progress: Progress | None, workers: int) -> list[Done]:
    """The results of labelled jobs, in their order; the longest begin first, since one begun at the end keeps everybody waiting."""
    results: dict[int, Done] = {}
    cost = [max(round(1000 * job.weight), 1) for _, job in work]
    spent = 0
    try:
        with ThreadPoolExecutor(max_workers=max(workers, 1)) as pool:
            futures = {pool.submit(work[i][1].work): i for i in sorted(range(len(work)), key=lambda i: -cost[i])}
            try:
                for future in as_completed(futures):
                    i = futures[future]
                    results[i] = future.result()
                    spent += cost[i]
                    if progress is not None:
                        progress(spent, sum(cost), work[i][0])
            except BaseException:
                # Nothing new is begun once one has failed or the user has had enough, and what runs is not waited for.
                pool.shutdown(wait=False, cancel_futures=True)
                worker.halt()
                raise
    finally:
        worker.resume()
    return [results[i] for i in range(len(work))]


def _study(plan: Setup, finished: Sequence[Done]) -> Study:
    """A study from what its jobs gave, in an order of its own, not of their ends: the same study is the same to the byte."""
    points = [row for r in finished if r.where == "points" for row in r.result]
    rank = {name: i for i, name in enumerate([*plan.modes, *plan.models])}
    points.sort(key=lambda p: (rank.get(p["mode"], len(rank)), rank.get(p["model"], len(rank))))
    anatomy = [row for r in finished if r.where == "anatomy" for row in r.result]
    facts: dict[str, Any] = {"parameters": _parameters(plan)}
    for r in finished:
        if r.where not in ("points", "anatomy"):
            merge(facts, r.where, r.result)
    claims = by_paper(plan.paper)
    runs = tuple(dict.fromkeys(i for r in finished for i in r.run_ids))
    return Study(plan, tuple(claims), points, facts, anatomy, judge(claims, points, facts), runs, sum(r.simulated for r in finished))


def run_papers(
    names: Sequence[str],
    store: Store,
    fresh: bool = False,
    progress: Progress | None = None,
    *,
    keep: bool = True,
    workers: int = WORKERS,
    fidelity: str = "mechanism",
) -> list[Study]:
    """Replay studies, all their jobs in one pool of ``workers``: what the store has is used, the rest simulated (all, if ``fresh``).

    The verdicts are stored unless ``keep`` is False, as for a page drawn again, or ``fidelity`` is below mechanism. Raises
    UsageError for an unknown paper, and what a failing simulation raises; what was simulated before that, or before an
    interrupt, stays stored.
    """
    plans = [replace(setup(name), fidelity=fidelity) for name in names]
    # A kind of experiment is told about one study at a time; only the pool sees all of them.
    work = [(i, job) for i, plan in enumerate(plans) for kind in plan.experiments for job in jobs(kind, plan, store, fresh)]
    labelled = [(job.label if len(plans) == 1 else f"{plans[i].paper}: {job.label}", job) for i, job in work]
    results = _run(labelled, progress, workers)
    out = []
    for i, plan in enumerate(plans):
        study = _study(plan, [done for (mine, _), done in zip(work, results, strict=True) if mine == i])
        if keep and fidelity == "mechanism":
            store.add_verdicts(plan.paper, [v.row() for v in study.verdicts], run_ids=study.runs)
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
) -> Study:
    """Replay one study; see `run_papers`."""
    return run_papers([paper], store, fresh, progress, keep=keep, workers=workers, fidelity=fidelity)[0]


def facts_of_experiment(paper: str, kind: str, store: Store, fresh: bool = False, progress: Progress | None = None) -> dict[str, Any]:
    """The facts of one kind of experiment of a study, without its verdicts. Raises what `run_paper` raises."""
    facts: dict[str, Any] = {}
    for done in _run([(job.label, job) for job in jobs(kind, setup(paper), store, fresh)], progress, WORKERS):
        merge(facts, done.where, done.result)
    return facts


def judge_all(studies: Sequence[Study]) -> list[Verdict]:
    """A verdict for every row of the reference: those of ``studies``, and the rest unjudged, in file order."""
    from retrompi.papers.claims import load

    mine = {v.id: v for s in studies for v in s.verdicts}
    return [mine.get(v.id, v) for v in judge(load(), [], {})]
