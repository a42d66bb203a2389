"""Running a study: every point found in the store, or simulated by an executor and stored by this process, the only writer."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from retrompi.base.errors import RetrompiError, StoreError
from retrompi.base.signals import terminated_is_interrupted
from retrompi.sim.cautions import Caution, of_question
from retrompi.sim.resolved import Resolved
from retrompi.studies.define import case
from retrompi.studies.define.axes import ABSENT
from retrompi.studies.define.case import ERROR, PointJob, PointResult
from retrompi.studies.define.same_but_seed import Alike
from retrompi.studies.execute import design
from retrompi.studies.execute.design import Study, StudyPoint
from retrompi.studies.execute.plan import Outside, keep_reason

if TYPE_CHECKING:
    from retrompi.store.database import Store
    from retrompi.studies.define.scenario import Scenario

__all__ = ["Executor", "Here", "PointRun", "StudyRun", "run_study", "runs_of"]

GATHER_S = 0.03
"""Results arriving within this time (seconds) are written in one transaction; a killed main process loses at most these and the
runs in flight."""
GATHERED = 512
"""Maximum number of results in one transaction."""
LOOKED_UP = 256
"""Maximum number of points that are looked up in the store together; the first few are looked up at once, so that work begins."""
Report = Callable[[int, int, str], None]


class Executor(Protocol):
    """Runs simulations. ``evaluate`` takes jobs from an iterator, in the calling thread and at most ``window`` (0: its own choice)
    beyond those completed, and yields them in the order of completion. The job of a lost worker is repeated, three times at
    most; after that it is a Done with outcome ``error``."""

    def __enter__(self) -> Any: ...

    def __exit__(self, *what: object) -> None: ...

    def evaluate(self, jobs: Iterable[PointJob], window: int = 0) -> Iterator[tuple[int, PointResult]]:
        """(position, result) of each job, in the order of completion."""
        ...

    def ready(self, within: float = 0.0) -> bool:
        """Whether the next result is available, waiting at most ``within`` seconds for it, so that both are written together."""
        ...

    def describe(self) -> str:
        """A few words: ``2 processes here``."""
        ...


class Here:
    """The executor that simulates in this process, one job after another."""

    def __enter__(self) -> Here:
        return self

    def __exit__(self, *what: object) -> None:
        return None

    def evaluate(self, jobs: Iterable[PointJob], window: int = 0) -> Iterator[tuple[int, PointResult]]:
        """As of `Executor`."""
        alike = Alike()
        for count, job in enumerate(jobs, 1):
            if count % LOOKED_UP == 0:
                alike = Alike()
            yield job.position, case.evaluate(job, alike)

    def ready(self, within: float = 0.0) -> bool:
        """False: nothing is computed in the background."""
        return False

    def describe(self) -> str:
        """A few words."""
        return "this process"


@dataclass
class StudyRun:
    """Result of running a study: the numbers of points in all, done before, found in the store and simulated, and their outcomes.

    ``simulated`` counts runs; points that share a run count once. ``outcomes`` counts points.
    """

    study_id: int
    points: int
    kept: int = 0
    found: int = 0
    simulated: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    draws: int = 0
    """Draws of each point; a draw is a point too."""
    refused_draws: int = 0
    """Draws without a run: their values exclude each other."""
    seconds: float = 0.0
    reasons: list[str] = field(default_factory=list)
    """The first few reasons of points without a run."""
    outside: str = ""
    """Points outside the models' calibrated range, in one line."""
    warnings: list[Caution] = field(default_factory=list)
    """What lies outside, and what the question gives cause for; those that its runs kept are in the store (`of_study`)."""
    applies: list[str] = field(default_factory=list)
    """The overrides that only some of the points use, a line each."""

    @property
    def errors(self) -> int:
        """Number of points without a run, apart from draws."""
        return self.outcomes[ERROR] - self.refused_draws

    def count(self, outcome: str, reason: str, points: int = 1) -> None:
        """Counts points by outcome; the reason of points without a run is recorded if it is among the first few."""
        self.outcomes[outcome] += points
        if outcome == ERROR and reason:
            keep_reason(self.reasons, reason)


def run_study(
    store: Store,
    study: Study,
    *,
    executor: Executor | None = None,
    fresh: bool = False,
    limit: int = design.LIMIT,
    report: Report | None = None,
) -> StudyRun:
    """Runs a study, or what is left of it. A point whose run is in the store is not simulated unless ``fresh``; points without a run
    (errors) are tried again.

    Raises UsageError or InputError, before anything runs, for an invalid study (`design.check`), and StoreError when the store
    cannot be written or another process runs this study. Results received before an interrupt are stored.
    """
    design.check(study, limit)
    study_id = store.add_study(study.name, study.hash, study.definition())
    run = _Run(store, study, study_id, fresh, report)
    shard, shards = study.shard
    if shards > 1:
        store.put_shards(study_id, [study.shard])
    # Shards may run at the same time on one store.
    lock = study.hash if shards == 1 else sha256(f"{study.hash} {shard}/{shards}".encode()).hexdigest()
    with store.study_lock(lock), store.hold_connection(), terminated_is_interrupted(), executor or Here() as workers:
        return run.go(workers)


class _Run:
    """State of a running study: the points waiting for each run, and results received but not yet written."""

    def __init__(self, store: Store, study: Study, study_id: int, fresh: bool, report: Report | None) -> None:
        self.store = store
        self.study = study
        self.fresh = fresh
        self.report = report
        self.told = StudyRun(study_id, design.count(study), applies=study.applies.lines(), draws=study.draws)
        self.waiting: dict[str, list[StudyPoint]] = {}
        self.names: dict[int, str] = {}
        self.pending: list[tuple[str, PointResult]] = []
        self.rows: list[dict[str, Any]] = []
        self.known: dict[str, int] = {}
        self.wrote: dict[str, int] = {}
        """The runs written since points were last looked up."""
        self.outside = Outside()
        self.came = 0

    def go(self, executor: Executor) -> StudyRun:
        """Runs all of it."""
        began = time.monotonic()
        due = began
        try:
            for position, done in executor.evaluate(self.jobs()):
                if not self.pending:
                    due = time.monotonic() + GATHER_S
                self.pending.append((self.names.pop(position), done))
                self.came += 1
                self.tell(done.outcome)
                left = due - time.monotonic()
                if left <= 0 or len(self.pending) >= GATHERED or not executor.ready(left):
                    self.write()
            self.write()
        except BaseException as error:
            if not isinstance(error, StoreError):
                with suppress(RetrompiError):
                    self.write()
            raise
        finally:
            self.told.seconds = time.monotonic() - began
            points = self.told.points // (1 + self.study.draws)
            self.told.outside = self.outside.line(points)
            self.told.warnings += self.outside.cautions(points)
        return self.told

    def jobs(self) -> Iterator[PointJob]:
        """The points that have to be simulated; the rows of all others are queued for writing."""
        done = {} if self.fresh else self.store.study_done(self.told.study_id)
        each, together = design.each(self.study), 4
        while points := list(islice(each, together)):
            together = min(2 * together, LOOKED_UP)
            named = list(self.identify(points, done))
            stored = {} if self.fresh else self.store.find_runs(list({identity for _, identity in named}))
            endings = self.store.endings(list(stored.values()))
            self.wrote.clear()
            for point, identity in named:
                if identity in self.waiting:
                    self.waiting[identity].append(point)
                    continue
                known = self.known.get(identity) if self.fresh else stored.get(identity, self.wrote.get(identity))
                if known is not None:
                    self.told.found += 1
                    self.row(point, identity, known, *(endings.get(known) or _ending(self.store, known)), 0.0)
                    if len(self.rows) > LOOKED_UP:
                        self.write()
                    continue
                self.waiting[identity] = [point]
                self.names[point.position] = identity
                yield PointJob(point.position, point.scenario)

    def identify(self, points: Iterable[StudyPoint], done: Mapping[int, str]) -> Iterator[tuple[StudyPoint, str]]:
        """The points that have to be looked up, with the identities of their runs."""
        alike = Alike()
        for point in points:
            if not _is_draw(point):
                self.outside.add(point.scenario)
                if point.position == 0:
                    self.told.warnings += _assumed_computation(point.scenario)
            try:
                identity = alike.specification(point.scenario).identity
            except RetrompiError as error:
                self.row(point, "", None, ERROR, str(error), 0.0)
                continue
            if done.get(point.position) == identity:
                self.told.kept += 1
            else:
                yield point, identity

    def row(self, point: StudyPoint, identity: str, run_id: int | None, outcome: str, reason: str, wall_s: float) -> None:
        """Queues a point's row for the next transaction."""
        if outcome == ERROR and _is_draw(point):
            self.told.refused_draws += 1
        self.told.count(outcome, "" if _is_draw(point) else reason)
        self.rows.append(_row(point, identity, run_id, outcome, reason, wall_s))

    def write(self) -> None:
        """Writes the runs received and the rows of their points, in one transaction; if the store cannot take all, one by one."""
        if not self.pending and not self.rows:
            return
        try:
            self._write(self.pending)
        except StoreError:
            if len(self.pending) < 2:
                raise
            for one in self.pending:  # on a disk that is nearly full some of them still fit
                self._write([one])
        self.pending.clear()

    def _write(self, pending: Sequence[tuple[str, PointResult]]) -> None:
        ids: list[int | None] = []
        part = f"study {self.study.name}"
        with self.store.transaction():
            stored = iter(self.store.keep_all([kept.part_of(part) for _, done in pending for kept in done.runs], fresh=self.fresh))
            for _, done in pending:
                ids.append(None)
                for _ in done.runs:
                    ids[-1] = next(stored)
            rows = list(self.rows)
            for run_id, (name, done) in zip(ids, pending, strict=True):
                identity = done.runs[-1].row["identity"] if done.runs else name
                rows += [_row(p, identity, run_id, done.outcome, done.reason, done.wall_s) for p in self.waiting[name]]
            self.store.put_study_points(self.told.study_id, rows)
        for run_id, (name, done) in zip(ids, pending, strict=True):
            points = self.waiting.pop(name)
            draws = sum(map(_is_draw, points))
            self.told.refused_draws += draws if done.outcome == ERROR else 0
            self.told.count(done.outcome, done.reason if draws < len(points) else "", len(points))
            self.told.simulated += run_id is not None
            if run_id is not None:
                (self.known if self.fresh else self.wrote)[name] = run_id
        self.rows.clear()

    def tell(self, what: str) -> None:
        """Reports progress in runs; stored runs take no time and do not count."""
        if self.report is not None:
            self.report(self.came, max(self.told.points - self.told.kept - self.told.found, self.came), what)


def _assumed_computation(scenario: Scenario) -> list[Caution]:
    """Whether the computation of a study's trace is assumed; its runs do not know."""
    if scenario.trace is None:
        return []
    with suppress(RetrompiError):
        return [c for c in of_question(Resolved.of(scenario.question())) if c.code == "computation-assumed"][:1]
    return []


def _is_draw(point: StudyPoint) -> bool:
    return point.values.get(design.DRAW, ABSENT) != ABSENT


def _row(point: StudyPoint, identity: str, run_id: int | None, outcome: str, reason: str, wall_s: float) -> dict[str, Any]:
    """A point as a row of the store."""
    return {"position": point.position, "axes": point.values, "identity": identity, "run_id": run_id, "outcome": outcome, "reason": reason,
            "wall_s": wall_s}


# -- single points, for answers ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PointRun:
    """The run of a point (None for ``error``), its outcome with the reason, and whether it was stored before."""

    run_id: int | None
    outcome: str
    reason: str
    found: bool


def runs_of(
    store: Store,
    scenarios: Sequence[Scenario],
    *,
    executor: Executor | None = None,
    fresh: bool = False,
    report: Report | None = None,
    part_of: str = "",
) -> list[PointRun]:
    """The run of each scenario, in their order, found in the store or simulated and stored; equal ones are simulated once.

    They are simulated here, or by an ``executor`` that the caller has entered and may use for many calls. A scenario without a run
    gives an Asked with the outcome ``error`` and its reason. ``part_of``: what the runs are made for, if not for themselves.
    """
    told: dict[str, PointRun] = {}
    missing: dict[str, PointJob] = {}
    names = []
    for position, scenario in enumerate(scenarios):
        try:
            name = case.identity(scenario)
        except RetrompiError as error:
            name = f"error {position}"
            told[name] = PointRun(None, ERROR, str(error), False)
        names.append(name)
        if name in told or name in missing:
            continue
        known = None if fresh else store.find_run(name)
        if known is not None:
            told[name] = PointRun(known, *_ending(store, known), True)
        else:
            missing[name] = PointJob(position, scenario)
    if missing:
        here: AbstractContextManager[Executor] = nullcontext(executor) if executor is not None else Here()
        with here as workers, terminated_is_interrupted():
            for count, (position, done) in enumerate(workers.evaluate(list(missing.values())), 1):
                run_id = None
                with store.transaction():
                    for kept in done.runs:
                        run_id = store.keep(kept.part_of(part_of) if part_of else kept, fresh=fresh)
                told[names[position]] = PointRun(run_id, done.outcome, done.reason, False)
                if report is not None:
                    report(count, len(missing), done.outcome)
    return [told[name] for name in names]


def _ending(store: Store, run_id: int) -> tuple[str, str]:
    """Outcome and reason of a stored run."""
    return store.endings([run_id])[run_id]
