"""Predictions with their uncertainty: the same question with parameters drawn from posteriors and priors, and intervals over the draws.

    drawn = ensemble(store, [question], Spec(level=0.9, draws=100))[0]
    interval(drawn.values(metrics.parse("time@1KiB")), 0.9)

Draw i has the same value of a parameter in every question that has it, and the same discrepancy for every question about a model in one
placement, so that both cancel in a difference. Each draw is an ordinary run of the store (docs/uncertainty.md).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from retrompi.base.errors import RetrompiError
from retrompi.base.paths import stamp
from retrompi.base.signals import terminated_is_interrupted
from retrompi.sim import worker
from retrompi.sim.computation import by_kernels
from retrompi.sim.resolved import Resolved
from retrompi.spec.declare.number import Number
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.question import Benchmark, Message, Question
from retrompi.store.identity import specification
from retrompi.store.kept import Outbox
from retrompi.store.lookup import answer
from retrompi.studies.draws import posteriors
from retrompi.studies.draws.population import Population, population
from retrompi.studies.draws.priors import priors_of, runnable, sets_at
from retrompi.traces import generate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from retrompi.store.database import Store
    from retrompi.studies.define.metrics import Metric

__all__ = ["DISCREPANCY_SCALE", "LEVEL", "Ensemble", "Interval", "Spec", "brief", "drawn_of", "ends", "ensemble", "interval", "kernel",
           "log_computation", "log_discrepancy", "log_job", "question_of", "sets_of", "with_discrepancy", "with_intervals"]

LEVEL, DRAWS = 0.90, 100
DISCREPANCY_SCALE = 0.1
"""The scale of the half-normal prior of the discrepancy's standard deviation, of the logarithm of a time."""
COMPUTATION_SCALE = 0.71
"""The standard deviation of the logarithm of computation by kernel: what its rule misses (`retrompi.papers.fit.kernel_rates.spread`)."""
LENGTH = 1.0
"""The discrepancy's length, in decades of the size."""
WORKERS = 2
GATHERED = 8
"""Maximum number of runs in one transaction; an interruption loses at most the runs under way."""
_HYPERCUBE = 100
"""Draws in one Latin hypercube: the draws 0..99 of a number are one in each hundredth of its prior, 100..199 again."""
_STEP, _DECADES = 0.25, 16.0
Progress = Callable[[int, int, str], None]
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Spec:
    """A request for draws: the ``level`` of central intervals (0..1), the number of ``draws``, their ``seed``, whether times have the
    model's ``discrepancy``, and whether a machine without measurement has the priors of its `population`."""

    level: float = LEVEL
    draws: int = DRAWS
    seed: int = 1
    discrepancy: bool = True
    population: bool = False


@dataclass(frozen=True)
class Interval:
    """The central interval of a number at ``level`` over the draws that completed, their share ``completed``, and their median; nan if
    none did."""

    low: float
    median: float
    high: float
    level: float
    completed: float

    def holds(self, value: float) -> bool:
        """Whether ``value`` lies inside."""
        return self.low <= value <= self.high


def interval(values: Sequence[float | None] | NDArray[np.float64], level: float = LEVEL) -> Interval:
    """The central interval of ``values``, one for each draw; None and nan are draws that did not complete."""
    told = np.array([math.nan if v is None else float(v) for v in values], dtype=float)
    known = told[~np.isnan(told)]
    share = len(known) / len(told) if len(told) else 0.0
    if not len(known):
        return Interval(math.nan, math.nan, math.nan, level, share)
    low, median, high = np.quantile(known, [(1 - level) / 2, 0.5, (1 + level) / 2])
    return Interval(float(low), float(median), float(high), level, share)


def ends(name: str, found: Interval, scale: float = 1.0) -> dict[str, float | None]:
    """``NAME_low`` and ``NAME_high`` of an interval, times ``scale``; None where no draw completed."""
    both = {f"{name}_low": found.low, f"{name}_high": found.high}
    return {key: value * scale if math.isfinite(value) else None for key, value in both.items()}


# --- what is drawn -------------------------------------------------------------------------------------------------------------


def _random(*of: Any) -> np.random.Generator:
    """Random numbers that depend on these values only, on every machine."""
    digest = hashlib.sha256("\0".join(map(str, of)).encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "little")))


@lru_cache(maxsize=4096)
def _hypercube(seed: int, path: str, block: int) -> NDArray[np.float64]:
    random = _random("prior", seed, path, block)
    return (random.permutation(_HYPERCUBE) + random.random(_HYPERCUBE)) / _HYPERCUBE


@lru_cache(maxsize=256)
def _order(seed: int, group: str, rows: int) -> NDArray[np.int64]:
    return _random("posterior", seed, group).permutation(rows)


@dataclass(frozen=True, eq=False)
class Drawn:
    """The distributions that a run draws from: its ``priors``, and the posteriors ``applied`` to them."""

    asked: Resolved
    spec: Spec
    priors: tuple[Number, ...]
    applied: posteriors.Applied

    def share(self, prior: Number, draw: int) -> float:
        """The share in 0..1 of the prior at which a number is in this draw."""
        found = self.applied.paths.get(prior.path)
        if found is None:
            u = float(_hypercube(self.spec.seed, prior.path, draw // _HYPERCUBE)[draw % _HYPERCUBE])
            return u if (among := self.population(prior)) is None else among.share(u)
        column = found.column(prior.path)
        return prior.share(float(column[self._row(found, len(column), draw)]))

    def population(self, prior: Number) -> Population | None:
        """The measured machines that a number without a posterior has its prior from; None if the range alone says it."""
        return self._populations.get(prior.path)

    @cached_property
    def _populations(self) -> dict[str, Population]:
        if not self.spec.population:
            return {}
        files = posteriors.files(self.asked.model)
        found = {p.path: population(p.path, files) for p in self.priors if p.path not in self.applied.paths}
        return {path: one for path, one in found.items() if one is not None}

    def _row(self, of: posteriors.PosteriorFile, rows: int, draw: int) -> int:
        return int(_order(self.spec.seed, of.group, rows)[draw % rows])

    def sets(self, draw: int) -> dict[str, str]:
        """The overrides of this draw."""
        return sets_at(self.asked, self.priors, {p.path: self.share(p, draw) for p in self.priors})

    @cached_property
    def shares(self) -> dict[str, NDArray[np.float64]]:
        """Path -> shares [draws] in 0..1 of the prior."""
        return {p.path: np.array([self.share(p, i) for i in range(self.spec.draws)]) for p in self.priors}

    @cached_property
    def sigma(self) -> NDArray[np.float64]:
        """The standard deviation of the logarithm of a time [draws]: the posterior's, or the half-normal prior's."""
        draws, of = self.spec.draws, self.applied.discrepancy
        if not self.spec.discrepancy:
            return np.zeros(draws)
        if of is None:
            return np.asarray(DISCREPANCY_SCALE * np.abs(_normal(draws, 1, "discrepancy", self.spec.seed, self.asked.model.name)[:, 0]))
        return self._column(of, posteriors.DISCREPANCY)

    def _column(self, of: posteriors.PosteriorFile, name: str) -> NDArray[np.float64]:
        column = of.column(name)
        return np.array([column[self._row(of, len(column), i)] for i in range(self.spec.draws)])

    @cached_property
    def rough(self) -> NDArray[np.float64] | None:
        """The standard deviation [draws] of the discrepancy's part without correlation between sizes; None where it has none."""
        of = self.applied.discrepancy
        return self._column(of, posteriors.ROUGH) if self.spec.discrepancy and of is not None and of.is_rough else None


_PRIORS: WeakKeyDictionary[Resolved, tuple[tuple[Number, ...], posteriors.Applied]] = WeakKeyDictionary()
_ALIKE: dict[tuple[Any, ...], tuple[tuple[Number, ...], posteriors.Applied]] = {}
_MOST = 256


def drawn_of(asked: Resolved, spec: Spec) -> Drawn:
    """The distributions that a run draws from. Raises what `priors_of` raises, InputError for a posterior that cannot be read."""
    if asked not in _PRIORS:
        key = asked.key, asked.question.overrides, tuple((f, stamp(f)) for f in posteriors.files(asked.model))
        if key not in _ALIKE:
            if len(_ALIKE) >= _MOST:
                _ALIKE.clear()
            priors = tuple(priors_of(asked))
            _ALIKE[key] = priors, posteriors.posteriors_for(asked.model, priors)
        _PRIORS[asked] = _ALIKE[key]
    return Drawn(asked, spec, *_PRIORS[asked])


def sets_of(asked: Resolved, draw: int, spec: Spec) -> dict[str, str]:
    """The overrides, ``--set`` key -> text, of a draw (counted from 0), without the numbers that the question sets itself."""
    return drawn_of(asked, spec).sets(draw)


def question_of(asked: Resolved, draw: int, spec: Spec) -> Question:
    """The question of a draw: the same run with the drawn values, where the user's own overrides stay."""
    q = asked.question
    return replace(q, overrides={**sets_of(asked, draw, spec), **q.sets}, idle_overrides=True)


FEWER = {1000: 50, 100: 20, 20: 5}
"""Repetitions of a PingPong by default (`default_reps`) -> those that suffice for a draw's curve."""


def brief(asked: Resolved) -> Resolved:
    """The question whose draws give the curve of a PingPong: with fewer repetitions, unless their number is given.

    All of the first size stay, since its time has a share of what the first call sets up. A mean over these repetitions is within 2.3 %
    of that over all of them (docs/uncertainty.md); the time of the whole job is not that of the question.
    """
    workload = asked.question.workload
    if not isinstance(workload, Benchmark) or workload.generator != "pingpong" or "reps" in workload.arguments:
        return asked
    sizes = list(workload.arguments.get("sizes") or generate.DEFAULT_SIZES)
    every = {size: generate.default_reps(size) for size in sizes}
    fewer = {size: reps if size == sizes[0] else FEWER.get(reps, reps) for size, reps in every.items()}
    return asked.with_fields(workload=Benchmark("pingpong", {**workload.arguments, "sizes": sizes, "reps": fewer}))


# --- discrepancy ---------------------------------------------------------------------------------------------------------------


def kernel(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Correlation [a, b] of the discrepancy between sizes given as log10(1 + B): squared exponential, of length `LENGTH`."""
    return np.asarray(np.exp(-0.5 * ((a[:, None] - b[None, :]) / LENGTH) ** 2))


@lru_cache(maxsize=1)
def _knots() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Places of the Gaussian process, and what turns independent numbers there into weights of the kernel."""
    at = np.arange(0.0, _DECADES + _STEP, _STEP)
    lower = np.linalg.cholesky(kernel(at, at) + 1e-8 * np.eye(len(at)))
    return at, np.linalg.inv(lower).T


@lru_cache(maxsize=64)
def _normal(draws: int, columns: int, *of: Any) -> NDArray[np.float64]:
    """Independent normal numbers [draws, columns]; more draws begin with the same ones."""
    return _random(*of).standard_normal((draws, columns))


def _where(asked: Resolved) -> str:
    return "shared" if len(set(runnable(asked).placement)) == 1 else "distributed"


def log_discrepancy(asked: Resolved, sizes: Sequence[int], spec: Spec) -> NDArray[np.float64]:
    """The logarithm of (real time / simulated time) of a message [draws, sizes], a random function of the size (B).

    A Gaussian process in log10(1 + size) of length one decade; its standard deviation in each draw is that of the posterior, or the
    half-normal prior's. A posterior of a whole curve adds a part without correlation between sizes. It depends on the seed, the model and
    whether all ranks are on one host, so it is the same for all what-ifs of a model in one placement.
    """
    drawn = drawn_of(asked, spec)
    at, weights = _knots()
    normal = _normal(spec.draws, len(at), "discrepancy of size", spec.seed, asked.model.name, _where(asked))
    x = np.log10(1.0 + np.asarray(sizes, dtype=float))
    found = drawn.sigma[:, None] * (normal @ (kernel(x, at) @ weights).T)
    if drawn.rough is not None:
        own = [_normal(spec.draws, 1, "discrepancy of one size", spec.seed, asked.model.name, _where(asked), size)[:, 0] for size in sizes]
        found += drawn.rough[:, None] * np.array(own).T
    return np.asarray(found)


def log_job(asked: Resolved, spec: Spec) -> NDArray[np.float64]:
    """The logarithm of the one factor [draws] on a job's time outside computation."""
    normal = _normal(spec.draws, 1, "discrepancy of a job", spec.seed, asked.model.name, _where(asked))
    return np.asarray(drawn_of(asked, spec).sigma * normal[:, 0])


def log_computation(asked: Resolved, spec: Spec) -> NDArray[np.float64]:
    """The logarithm of the one factor [draws] on a job's computation: 0 unless its trace names kernels. It depends on the seed and the
    machine, by the name of its hosts, and so cancels in a ratio of two runs on one machine."""
    if not spec.discrepancy or not by_kernels(asked):
        return np.zeros(spec.draws)
    machine = asked.platform.name.partition("@")[0].partition("*")[0]
    return np.asarray(COMPUTATION_SCALE * _normal(spec.draws, 1, "discrepancy of computation", spec.seed, machine)[:, 0])


def with_discrepancy(
    run: Mapping[str, Any], points: Rows = (), ranks: Rows = (), *, at: Callable[[int], float], job: float, computation: float = 0.0
) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    """A stored run with the discrepancy of a draw: ``at`` is its logarithm for a message by size, ``job`` that of the job's time outside
    computation, ``computation`` that of the rest. (run, points, ranks), whose times and bandwidths have changed; a run that did not
    complete has none to change."""
    factor, rest = math.exp(job), math.exp(computation)
    told_points = []
    for p in points:
        f = math.exp(at(int(p["size_B"])))
        told_points.append({**p, "time_us": p["time_us"] * f, "bandwidth_MBps": p["bandwidth_MBps"] / f})
    told_ranks = [dict(r) for r in ranks]
    for r in told_ranks:
        other = r["time_s"] - r["compute_s"]
        r["compute_s"] *= rest
        r["mpi_s"] *= factor
        r["time_s"] = r["compute_s"] + other * factor
    changed = dict(run)
    if run.get("time_s") is not None and run.get("kind") != "rinf1":
        last = max(zip(ranks, told_ranks, strict=True), key=lambda both: both[0]["time_s"], default=None)
        whole = last[1]["time_s"] / last[0]["time_s"] if last is not None and last[0]["time_s"] > 0 else factor
        if run.get("kind") == "explain":
            whole = math.exp(at(_size_of(run)))
        changed["time_s"] = run["time_s"] * whole
        section = (run.get("facts") or {}).get("section")
        if section and section.get("seconds") is not None:
            changed["facts"] = {**run["facts"], "section": {**section, "seconds": section["seconds"] * whole}}
    return changed, told_points, told_ranks


def _size_of(run: Mapping[str, Any]) -> int:
    return int((run.get("facts") or {}).get("size_B", 0))


# --- the ensemble --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Ensemble:
    """A question's draws: the stored runs, or why a draw has none.

    ``runs`` has the row of the store (with ``outcome``, ``detail``, ``time_s``, ``facts``) for each draw, ``points``, ``ranks`` and
    ``stages`` what hangs on it, all as simulated; ``found`` of them were in the store. `values` and `times` have the discrepancy.
    """

    asked: Resolved
    drawn: Drawn
    runs: Sequence[Mapping[str, Any]]
    points: Sequence[Rows]
    ranks: Sequence[Rows]
    stages: Sequence[Rows]
    found: int = 0

    @property
    def spec(self) -> Spec:
        """Level, draws and seed."""
        return self.drawn.spec

    @property
    def outcomes(self) -> list[str]:
        """The outcome of each draw; ``error`` for values that exclude each other."""
        return [str(r["outcome"]) for r in self.runs]

    @property
    def run_ids(self) -> list[int | None]:
        """The run of each draw in the store; None for one without a run."""
        return [r.get("id") for r in self.runs]

    @property
    def completed(self) -> float:
        """The share of the draws that completed."""
        return sum(o == Outcome.COMPLETED for o in self.outcomes) / len(self.runs)

    @property
    def shares(self) -> dict[str, NDArray[np.float64]]:
        """Path -> shares [draws] in 0..1 of the prior."""
        return self.drawn.shares

    @property
    def seen(self) -> dict[str, float]:
        """Path -> share of the prior's variance that is left, of the numbers that are drawn from a posterior."""
        return self.drawn.applied.seen

    @cached_property
    def log_job(self) -> NDArray[np.float64]:
        """`log_job` of the question."""
        return log_job(self.asked, self.spec)

    @cached_property
    def log_computation(self) -> NDArray[np.float64]:
        """`log_computation` of the question."""
        return log_computation(self.asked, self.spec)

    @cached_property
    def _curve(self) -> tuple[dict[int, int], NDArray[np.float64]]:
        """Size -> column of the discrepancy [draws, sizes], of all sizes that occur."""
        sizes = sorted({int(p["size_B"]) for rows in self.points for p in rows} | {self._message})
        return {s: i for i, s in enumerate(sizes)}, log_discrepancy(self.asked, sizes, self.spec)

    @property
    def _message(self) -> int:
        workload = self.asked.question.workload
        return workload.size if isinstance(workload, Message) else 0

    def at(self, draw: int) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
        """(run, points, ranks) of a draw with the discrepancy."""
        columns, logs = self._curve
        run = self.runs[draw]
        if isinstance(self.asked.question.workload, Message):
            run = {**run, "facts": {**(run.get("facts") or {}), "size_B": self._message}}
        return with_discrepancy(run, self.points[draw], self.ranks[draw], at=lambda size: float(logs[draw, columns[size]]),
                                job=float(self.log_job[draw]), computation=float(self.log_computation[draw]))

    def values(self, metric: Metric) -> list[float | None]:
        """The metric of each draw, in its unit; None for a draw that did not complete."""
        return [metric.of(*self.at(i)) for i in range(len(self.runs))]

    def interval(self, metric: Metric) -> Interval:
        """The interval of a metric."""
        return interval(self.values(metric), self.spec.level)

    def times(self, sizes: Sequence[int]) -> NDArray[np.float64]:
        """One-way seconds [draws, sizes] of a curve; nan where a draw did not complete or has no such size."""
        told = np.full((len(self.runs), len(sizes)), math.nan)
        for i, outcome in enumerate(self.outcomes):
            if outcome == Outcome.COMPLETED:
                mine = {int(p["size_B"]): float(p["time_us"]) * 1e-6 for p in self.at(i)[1]}
                told[i] = [mine.get(int(size), math.nan) for size in sizes]
        return told

    def curve(self, sizes: Sequence[int]) -> list[Interval]:
        """The interval of the one-way time (s) at each size."""
        return [interval(column, self.spec.level) for column in self.times(sizes).T]

    def stage_seconds(self) -> dict[tuple[str, str], NDArray[np.float64]]:
        """(stage, process) -> seconds [draws] of a message, 0 where a draw has no such stage, nan where it did not complete."""
        done = np.array([o == Outcome.COMPLETED for o in self.outcomes])
        found: dict[tuple[str, str], NDArray[np.float64]] = {}
        for i in map(int, np.flatnonzero(done)):
            whole = float(self.runs[i]["time_s"])
            factor = float(self.at(i)[0]["time_s"]) / whole if whole else 1.0
            for row in self.stages[i]:
                column = found.setdefault((row["stage"], row["process"]), np.where(done, 0.0, math.nan))
                column[i] += row["seconds"] * factor
        return found

    def failure_counts(self) -> dict[str, int]:
        """Outcome -> how many draws ended with it, of those that did not complete."""
        return {o: self.outcomes.count(o) for o in dict.fromkeys(self.outcomes) if o != Outcome.COMPLETED}


def with_intervals(rows: Rows, drawn: Ensemble) -> list[dict[str, Any]]:
    """The rows of a curve with ``time_us_low``, ``time_us_high`` and those of the bandwidth, and the share of draws that ``completed``."""
    times = drawn.times([r["size_B"] for r in rows])
    told = []
    for row, column in zip(rows, times.T, strict=True):
        time, rate = interval(column, drawn.spec.level), interval(row["size_B"] / column, drawn.spec.level)
        told.append({**row, **ends("time_us", time, 1e6), **ends("bandwidth_MBps", rate, 1e-6), "completed": time.completed})
    return told


@dataclass
class _Task:
    """A run that several draws share: its question, and its identity in the store."""

    question: Question
    identity: str
    run_id: int | None = None
    error: str = ""
    draws: list[tuple[int, int]] = field(default_factory=list)


def ensemble(
    store: Store, questions: Sequence[Question | Resolved], spec: Spec, progress: Progress | None = None, fresh: bool = False,
    workers: int = WORKERS,
) -> list[Ensemble]:
    """The draws of each question, looked up in the store by identity or simulated and stored, ``workers`` at a time; a single
    one simulates in the calling thread, by the server that it has adopted (`retrompi.sim.worker.adopt`).

    A draw that does not complete, or whose values exclude each other, is a draw with that outcome. An interruption keeps what is done:
    asking again goes on from there. ``progress`` is called with (runs simulated, runs to simulate, outcome). Raises UsageError or
    InputError for a question that is wrong itself, before anything runs.
    """
    asked = [Resolved.of(q) for q in questions]
    drawn = [drawn_of(a, spec) for a in asked]
    tasks: dict[str, _Task] = {}
    refused: dict[tuple[int, int], str] = {}
    for k, a in enumerate(asked):
        for i in range(spec.draws):
            try:
                one = question_of(a, i, spec)
                identity = specification(one).identity
            except RetrompiError as error:
                refused[k, i] = str(error)
                continue
            tasks.setdefault(identity, _Task(one, identity)).draws.append((k, i))
    known = {} if fresh else store.find_runs(list(tasks))
    for identity, run_id in known.items():
        tasks[identity].run_id = run_id
    _simulate(store, [t for t in tasks.values() if t.run_id is None], progress, fresh, workers)
    ids = sorted({t.run_id for t in tasks.values() if t.run_id is not None})
    details = store.details(ids)
    rows: list[list[Mapping[str, Any]]] = [[{}] * spec.draws for _ in asked]
    for (k, i), line in refused.items():
        rows[k][i] = {"outcome": "error", "detail": line}
    for task in tasks.values():
        for k, i in task.draws:
            rows[k][i] = details[task.run_id].run if task.run_id is not None else {"outcome": "error", "detail": task.error}
    told = []
    for k, a in enumerate(asked):
        hanging = [details.get(r["id"]) if "id" in r else None for r in rows[k]]
        found = sum(r.get("id") in known.values() for r in rows[k])
        points, ranks, stages = ([getattr(h, name) if h is not None else [] for h in hanging] for name in ("points", "ranks", "anatomy"))
        told.append(Ensemble(a, drawn[k], rows[k], points, ranks, stages, found))
    return told


def _simulate(store: Store, tasks: Sequence[_Task], progress: Progress | None, fresh: bool, workers: int) -> None:
    """Simulates and stores the runs; on an interruption, those that are done."""
    done: list[tuple[_Task, Outbox]] = []
    # Closed before what is done is kept: then nothing is under way any more, whatever happened.
    with terminated_is_interrupted():
        try:
            with closing(_each(tasks, min(workers, len(tasks)))) as completed:
                for count, (task, outbox) in enumerate(completed, 1):
                    done.append((task, outbox))
                    if len(done) >= GATHERED:
                        _keep(store, done, fresh)
                    if progress is not None:
                        progress(count, len(tasks), str(outbox.kept[-1].row["outcome"]) if outbox.kept else "error")
        finally:
            _keep(store, done, fresh)


def _each(tasks: Sequence[_Task], workers: int) -> Generator[tuple[_Task, Outbox], None, None]:
    """The tasks with their runs, as they complete; few are under way at a time, so that an interruption waits for few."""
    if workers <= 1:
        yield from ((task, _run(task)) for task in tasks)
        return
    waiting: dict[Future[Outbox], _Task] = {}
    left = iter(tasks)
    group = worker.Group()
    with ThreadPoolExecutor(max_workers=workers, initializer=group.join) as pool:
        try:
            while True:
                while len(waiting) < 2 * workers and (task := next(left, None)) is not None:
                    waiting[pool.submit(_run, task)] = task
                if not waiting:
                    return
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    yield waiting.pop(future), future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            group.end()
            raise


def _run(task: _Task) -> Outbox:
    outbox = Outbox()
    try:
        answer(outbox, task.question)  # type: ignore[arg-type]
    except RetrompiError as error:
        if error.code == "stopped":
            raise
        task.error = str(error)  # a benchmark that did not complete has been collected nevertheless
    return outbox


def _keep(store: Store, done: list[tuple[_Task, Outbox]], fresh: bool) -> None:
    if not done:
        return
    with store.transaction():
        for task, outbox in done:
            for kept in outbox.kept:
                task.run_id = store.keep(kept.part_of("draws"), fresh=fresh)
    done.clear()
