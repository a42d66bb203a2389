"""Comparison of runtimes on one program (a scenario, a recorded trace or a generator); the model and the platform vary."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import RetrompiError, UsageError, nearest
from retrompi.base.files import exists
from retrompi.base.units import PS, format_time
from retrompi.sim import simulate
from retrompi.sim.cautions import Caution, merge_cautions, stored_cautions
from retrompi.sim.critical_path import difference
from retrompi.sim.observe import Observe
from retrompi.sim.resolved import Resolved
from retrompi.sim.stages import STAGE_WORDS
from retrompi.spec import registry
from retrompi.spec.conditions.bounds import Bounds
from retrompi.spec.declare.outcome import Outcome
from retrompi.spec.machine import composition, machines
from retrompi.spec.machine.placements import NATURAL
from retrompi.store.identity import stopped_at
from retrompi.studies.define import case, catalogue, metrics
from retrompi.studies.define.scenario import Scenario, trace_of
from retrompi.studies.draws.uncertainty import Ensemble, Interval, Spec, interval
from retrompi.studies.execute.run import PointRun, runs_of
from retrompi.studies.execute.watched_executor import Watched
from retrompi.studies.read.cautions import of_scenarios
from retrompi.studies.read.interval_reasons import DrawnReading, reasons
from retrompi.studies.search.certainty import Ahead, ahead
from retrompi.studies.search.worth import deciding
from retrompi.traces import generate

if TYPE_CHECKING:
    from retrompi.store import Store
    from retrompi.studies.execute.run import Executor, Report

__all__ = ["ALL", "OWN_PLATFORMS", "SEVERAL", "Candidates", "DrawnComparison", "PairStatement", "RuntimeRow", "causes", "cautions",
           "cautions_of_draws", "platforms_of", "program", "questions_of", "rows", "runtimes", "with_draws"]


OWN = ("model", "platform", "outcome", "reason", "time_s", "relative", "in_mpi", "computing", "messages", "packets", "run_id", "found",
       "fiction")


@dataclass(frozen=True)
class RuntimeRow:
    """The program's result on one runtime. Times in seconds; None if it did not complete."""

    model: str
    platform: str
    outcome: str
    reason: str
    run_id: int | None
    found: bool
    time_s: float | None = None
    relative: float | None = None
    """The time relative to that of the fastest."""
    in_mpi: float | None = None
    computing: float | None = None
    """Shares of all ranks' time inside MPI calls and computing."""
    messages: int | None = None
    packets: int | None = None
    values: Mapping[str, float | None] = field(default_factory=dict)
    """Requested metric -> value."""
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    """Column -> its interval over the draws; empty without draws."""
    kept: tuple[Caution, ...] = ()
    """The cautions that its run kept."""

    @property
    def fiction(self) -> str:
        """What is said of a pair that never was (`--what-if-hardware`); empty for one that can have been."""
        return next((c.text for c in self.kept if c.code == "never-ran-there"), "")

    def row(self) -> dict[str, Any]:
        """One flat row; beside a column with an interval its ends, and the share of the draws that completed."""
        told: dict[str, Any] = {}
        for name, value in {**{k: getattr(self, k) for k in OWN}, **self.values}.items():
            told[name] = value
            if name in self.intervals:
                i = self.intervals[name]
                told |= {f"{name}_low": i.low if i.completed else None, f"{name}_high": i.high if i.completed else None}
        if self.intervals:
            told["completed"] = next(iter(self.intervals.values())).completed
        return told


def program(text: str, arguments: Sequence[str], model: str, platform: str | None, mode: str | None, np: int | None) -> Scenario:
    """The program ``text`` as a scenario: a scenario's name or file, a generator with ``KEY=VALUE`` arguments, or a trace.

    ``platform`` and ``mode`` None: the scenario's own; for a generator or trace, the model's own platform, and its natural
    placement. Raises UsageError if ``text`` is none of these.
    """
    if text in catalogue.scenario_names() or text.endswith(".toml"):
        if arguments:
            raise UsageError(f"a scenario takes no arguments; change it with --set, e.g. --set {arguments[0]}", code="unused-option")
        found = catalogue.scenario(text)
        given = {"platform": platform, "mode": mode, "trace.np": None if np is None or found.trace is None else str(np)}
        return case.apply(found, {k: v for k, v in given.items() if v is not None})
    platform = registry.own_platform(model) if platform is None else platform
    words: dict[str, Any] = dict.fromkeys(("name", "title", "summary"), text) | {"reproduces": "what-if: another runtime"}
    words |= {"model": model, "platform": platform, "mode": mode or NATURAL}
    if text in generate.GENERATORS:
        return _generated_scenario(text, arguments, words, np)
    path = Path(text)
    if not exists(path):
        known_names = [*catalogue.scenario_names(), *generate.GENERATORS]
        told = f"no scenario, generator or trace '{text}'{nearest(text, known_names)}; generators: {', '.join(generate.GENERATORS)}"
        raise UsageError(told, code="unknown-scenario")
    if arguments:
        raise UsageError("a trace takes no arguments", code="unused-option")
    if path.suffix in (".c", ".cc", ".cpp", ".f", ".f90", ".py"):
        raise UsageError(
            f"'{text}' is a program, record it first: retrompi trace record -o TRACE -- mpiexec -n {np or 2} ...", code="missing-option"
        )
    return Scenario(**{**words, "name": path.name}, trace=path.resolve(), np=np)


def _generated_scenario(name: str, arguments: Sequence[str], words: Mapping[str, Any], np: int | None) -> Scenario:
    takes = generate.generator(name).arguments
    given: dict[str, str] = {}
    for item in arguments:
        key, equals, value = item.partition("=")
        if not equals or not key or not value:
            raise UsageError(f"'{item}' is not KEY=VALUE, an argument of {name}; it takes {', '.join(takes)}", code="bad-syntax")
        given[key.removeprefix("trace.")] = value
    if "ranks" in takes and "ranks" not in given:
        given["ranks"] = str(np or 2)
    made = case.apply(Scenario(**words, generator=name), {f"trace.{k}": v for k, v in given.items()})
    generate.generator(name).check(made.args)
    return made


ALL = "all"
"""Stands for every runtime, or every platform, in a comparison."""
OWN_PLATFORMS = "own"
"""Stands for the platforms that the runtimes are calibrated on, in a comparison."""
SEVERAL = (ALL, OWN_PLATFORMS)
"""What is no name of a platform."""


def runtimes(names: Sequence[str]) -> tuple[str, ...]:
    """The runtimes that ``names`` say, `ALL` for every one. Raises UsageError for an unknown one."""
    found = registry.models() if ALL in names else names
    for name in found:
        registry.model(name)
    return tuple(found)


def platforms_of(names: Sequence[str], networks: Sequence[str], ranks: int, models: Sequence[str] = ()) -> tuple[str, ...]:
    """The platforms that ``names`` say, `ALL` for every one, `OWN_PLATFORMS` for those of the ``models``; with ``networks`` a host of the
    library among them is joined by each of these. Hosts of the library are as many as ``ranks`` need.

    Raises UsageError for an unknown name, and for networks without a host that they could join.
    """
    known = machines.hosts()
    found: list[str] = []
    for name in names:
        if name == ALL:
            found += registry.platforms()
        elif name == OWN_PLATFORMS:
            found += [_enough_hosts(own, ranks) for m in models for own in registry.own_platforms(registry.model(m))]
        elif networks and name in known:
            found += [f"{name}*{_hosts_needed(name, ranks)}@{network}" for network in networks]
        else:
            found.append(name)
    if networks and not any(name in known for name in names):
        raise UsageError(f"--networks joins hosts of the library, and none of {', '.join(names) or 'no platform'} is one; "
                         "'retrompi platforms hosts' has them", code="unused-option")
    for name in dict.fromkeys(found):
        registry.platform(name)
    return tuple(dict.fromkeys(found))


def _hosts_needed(host: str, ranks: int) -> int:
    return -(-ranks // int(machines.hosts()[host].quantities["cores"].value))


def _enough_hosts(platform: str, ranks: int) -> str:
    """A platform with as many hosts as ``ranks`` need, if it is made of hosts of one kind and its network joins so many; else as it is."""
    if "@" not in platform:
        return platform
    made = composition.parse(platform)
    if len(made.terms) > 1:
        return platform
    larger = composition.with_size(platform, max(made.hosts, _hosts_needed(made.terms[0][0], ranks)))
    try:
        registry.platform(larger)
    except UsageError:  # a cable has two ends
        return platform
    return larger


EVENTS = 200_000_000
"""Events that a pair may take, besides those of its actions (assumed: 10 to 20 s; receives that poll take most, 116 million in MG class A
with wmpi:absorbed over a T1 line)."""
EVENTS_AN_ACTION = 100
"""Events that a pair may take for each action of the program (assumed: without such receives it is 2 to 55 in the NAS benchmarks)."""


@dataclass(frozen=True)
class Candidates:
    """The program of ``base`` on each of ``models`` (on each of ``platforms``; empty: its own), with the ``wanted`` metrics."""

    base: Scenario
    models: Sequence[str]
    platforms: Sequence[str] = ()
    wanted: Sequence[metrics.Metric] = ()
    bounds: Bounds = field(default_factory=Bounds)
    """What a pair may take; without events or wall time as many events as `EVENTS` and `EVENTS_AN_ACTION` say."""

    @property
    def bounds_of_each(self) -> Bounds:
        """The bounds of each pair: one of many must not keep all others from being answered."""
        if self.bounds.events is not None or self.bounds.wall_s is not None:
            return self.bounds
        actions = 0 if self.base.start else trace_of(self.base).actions
        return replace(self.bounds, events=EVENTS + EVENTS_AN_ACTION * actions)

    @property
    def time(self) -> metrics.Metric:
        """The time by which the candidates are ranked: of a generator with a warm-up the time of what is timed, else that of the job, as of
        every scenario's file."""
        made = None if self.base.generator is None or self.base.path is not None else generate.generator(self.base.generator)
        warmed = made is not None and int(made.with_defaults(self.base.args).get("warm_up") or 0) > 0
        return metrics.parse("timed" if warmed and self.base.outcome == Outcome.COMPLETED and not self.base.setting("kills") else "time")

    def each(self) -> list[tuple[str, str, Scenario]]:
        """(model, platform, scenario) of each candidate."""
        pairs = [(m, p) for p in (self.platforms or [self.base.platform]) for m in self.models]
        return [(m, p, case.apply(self.base, {"model": m, "platform": p})) for m, p in pairs]


def rows(
    store: Store, candidates: Candidates, *, executor: Executor | None = None, fresh: bool = False, report: Report | None = None
) -> list[RuntimeRow]:
    """The result of each candidate, fastest first, then those that did not complete.

    Raises UsageError for an unknown name, or a metric that the program cannot have; a runtime that cannot run the program gives a row
    with the reason.
    """
    for name in candidates.models:
        registry.model(name)
    for name in candidates.platforms:
        registry.platform(name)
    if len(set(candidates.models)) < len(candidates.models):
        raise UsageError("a runtime is named twice", code="duplicate-name")
    for metric in candidates.wanted:
        metric.check(candidates.base)
    each = candidates.each()
    stopped = {} if fresh else _stopped_before(store, candidates, each)
    asked = [(m, p, s) for m, p, s in each if (m, p) not in stopped]
    watched = Watched(executor, [f"{m} on {p}" for m, p, _ in asked], candidates.bounds_of_each, report)
    found = runs_of(store, [scenario for _, _, scenario in asked], executor=watched, fresh=fresh)
    answers = {**stopped, **{(m, p): r for (m, p, _), r in zip(asked, found, strict=True)}}
    return _rank_rows([_row(store, (m, p), answers[m, p], candidates) for m, p, _ in each])


def _stopped_before(
    store: Store, candidates: Candidates, each: Sequence[tuple[str, str, Scenario]]
) -> dict[tuple[str, str], PointRun]:
    """The pairs that a run in the store has shown to be stopped at the bound on events, which is the same each time. A run that was stopped
    is no answer to its question and is stored as another (`RunSpec.stopped`): asked for by its question, it would be simulated again."""
    events = candidates.bounds_of_each.events
    if events is None:
        return {}
    names = {}
    for model, platform, scenario in each:
        with suppress(RetrompiError):  # `runs_of` says why it cannot be asked
            names[replace(case.specification(scenario), stopped=stopped_at(events)).identity] = (model, platform)
    runs = store.find_runs(list(names))
    endings = store.endings(list(runs.values()))
    return {names[name]: PointRun(run, *endings[run], True) for name, run in runs.items()}


MOST_CAUSES = 4


def causes(candidates: Candidates, found: Sequence[RuntimeRow]) -> list[str]:
    """Why the fastest candidate is faster than the next one on another runtime, in words, from their critical paths: a line for each
    mechanism with most of the difference, and one for all others. Empty with fewer than two that completed. Simulates both once more."""
    done = [r for r in found if r.time_s is not None]
    if len(done) < 2:
        return []
    scenarios = {(m, p): s for m, p, s in candidates.each()}
    best, other = done[0], next((r for r in done[1:] if _family(r) != _family(done[0])), done[1])
    paths = [simulate.run(scenarios[r.model, r.platform].question(), Observe(critical_path=True)).critical_path for r in (best, other)]
    if paths[0] is None or paths[1] is None:
        return []
    parts = difference(paths[0], paths[1])
    whole = paths[1].took - paths[0].took
    elsewhere = f"{f' on {other.platform}' if other.platform != best.platform else ''}{_fiction(other)}"
    skipped = "of other runtimes " if _family(other) != _family(best) and other is not done[1] else ""
    told = [f"{best.model} on {best.platform}{_fiction(best)} is the fastest; {skipped}{other.model}{elsewhere} takes "
            f"{format_time(whole * PS)} more:"]
    told += [_cause(str(STAGE_WORDS.get(d.stage, d.stage)), d.a, d.b) for d in parts[:MOST_CAUSES]]
    rest = parts[MOST_CAUSES:]
    return [*told, *([_cause("all else", sum(d.a for d in rest), sum(d.b for d in rest))] if rest else [])]


def _fiction(row: RuntimeRow) -> str:
    return " (a fiction)" if row.fiction else ""


def _family(row: RuntimeRow) -> str:
    """The runtime without its variant."""
    return row.model.partition(":")[0]


def _cause(what: str, a: int, b: int) -> str:
    """A part of a difference: what it is spent with, and the times of both (ps)."""
    return f"{what}: {format_time(a * PS)} against {format_time(b * PS)} ({'+' if b >= a else '-'}{format_time(abs(b - a) * PS)})"


@dataclass(frozen=True)
class PairStatement:
    """Two candidates compared in one metric, draw by draw: ``a`` and ``b`` are their names."""

    metric: metrics.Metric
    a: str
    b: str
    ahead: Ahead

    def row(self, level: float) -> dict[str, Any]:
        """JSON values."""
        return {"metric": self.metric.name, "a": self.a, "b": self.b, **self.ahead.row(), "decided": self.ahead.winner(level) or None,
                "text": self.ahead.sentence((self.a, self.b), self.metric, level)}


@dataclass(frozen=True)
class DrawnComparison:
    """A comparison over draws: the ``rows`` with their intervals, and every pair that both can be run, compared in each metric.

    ``neighbours`` are the pairs that follow each other in the order of medians.
    """

    rows: list[RuntimeRow]
    statements: list[PairStatement]
    neighbours: list[PairStatement]
    ensembles: Mapping[tuple[str, str], Ensemble]

    @property
    def spec(self) -> Spec:
        """Level, draws and seed."""
        return next(iter(self.ensembles.values())).spec

    def row(self) -> dict[str, Any]:
        """JSON values."""
        return {"level": self.spec.level, "draws": self.spec.draws, "statements": [s.row(self.spec.level) for s in self.statements]}

    def lines(self) -> list[str]:
        """The statements in words, of neighbours; where the order is not determined, what would decide it, as far as the draws tell."""
        told = []
        for s in self.neighbours:
            told.append(s.ahead.sentence((s.a, s.b), s.metric, self.spec.level))
            if not s.ahead.winner(self.spec.level):
                told += [f"  {line}" for line in deciding(self.named[s.a], self.named[s.b], s.metric)]
        return told

    @property
    def named(self) -> dict[str, Ensemble]:
        """Name of a candidate in statements -> its draws."""
        several = len({p for _, p in self.ensembles}) > 1
        return {f"{m} on {p}" if several else m: one for (m, p), one in self.ensembles.items()}


def questions_of(candidates: Candidates, found: Sequence[RuntimeRow]) -> dict[tuple[str, str], Resolved]:
    """(model, platform) -> the question to be drawn, of each candidate that could be run to its end."""
    ran = {(r.model, r.platform) for r in found if r.run_id is not None and r.outcome != Outcome.LIMIT}
    bounds = candidates.bounds_of_each
    return {(m, p): Resolved.of(s.question().with_(bounds=bounds)) for m, p, s in candidates.each() if (m, p) in ran}


def with_draws(candidates: Candidates, found: Sequence[RuntimeRow], ensembles: Mapping[tuple[str, str], Ensemble]) -> DrawnComparison:
    """The comparison ``found`` (`rows`) over the draws of each candidate (`questions_of`), in each of the wanted metrics, the time if none
    is.

    Raises UsageError without any candidate that could be run.
    """
    if not ensembles:
        raise UsageError("no runtime can run this: there is nothing to draw", code="nothing-varies")
    spec = next(iter(ensembles.values())).spec
    time = candidates.time
    columns = {"time_s": time, **{m.name: m for m in candidates.wanted}}
    values = {(*pair, name): one.values(metric) for pair, one in ensembles.items() for name, metric in columns.items()}
    new = []
    for r in found:
        mine = {name: interval(values[r.model, r.platform, name], spec.level) for name in columns if (r.model, r.platform, name) in values}
        new.append(replace(r, intervals=mine))
    platforms = {p for _, p in ensembles}
    statements, neighbours = [], []
    for metric in list(candidates.wanted) or [time]:
        name = "time_s" if metric.name == time.name else metric.name
        of = {f"{m} on {p}" if len(platforms) > 1 else m: values[m, p, name] for m, p in ensembles}
        order = sorted(of, key=lambda k: _rank(interval(of[k], spec.level).median, metric.more_is_better))
        made = {(a, b): PairStatement(metric, a, b, ahead(of[a], of[b], metric.more_is_better)) for a, b in combinations(order, 2)}
        statements += list(made.values())
        neighbours += [made[pair] for pair in pairwise(order)]
    return DrawnComparison(new, statements, neighbours, ensembles)


def _rank(median: float, more_is_better: bool) -> tuple[bool, float]:
    return math.isnan(median), -median if more_is_better else median


def _row(store: Store, where: tuple[str, str], ran: PointRun, candidates: Candidates) -> RuntimeRow:
    wanted = candidates.wanted
    about = (*where, ran.outcome, ran.reason, ran.run_id, ran.found)
    kept = tuple(stored_cautions({"cautions": store.cautions([ran.run_id]).get(ran.run_id, ())})) if ran.run_id is not None else ()
    if ran.run_id is None or ran.outcome != Outcome.COMPLETED:
        return RuntimeRow(*about, values={m.name: None for m in wanted}, kept=kept)
    run, points, ranks = store.run(ran.run_id), store.points(ran.run_id), store.ranks(ran.run_id)
    total = sum(r["time_s"] for r in ranks)
    shares = [sum(r[k] for r in ranks) / total if total > 0 else None for k in ("mpi_s", "compute_s")]
    values = {m.name: m.of(run, points, ranks) for m in wanted}
    took = candidates.time.of(run, points, ranks)
    return RuntimeRow(*about, took, None, shares[0], shares[1], run["messages"], run["packets"], values, kept=kept)


def _rank_rows(told: Sequence[RuntimeRow]) -> list[RuntimeRow]:
    fastest = min((r.time_s for r in told if r.time_s), default=None)
    out = [r if not r.time_s or fastest is None else replace(r, relative=r.time_s / fastest) for r in told]
    return sorted(out, key=lambda r: (r.time_s is None, r.time_s or 0.0))


def cautions(candidates: Candidates, found: Sequence[RuntimeRow]) -> list[Caution]:
    """Cautions about the candidates and their runs; ``about`` names those that a caution concerns, unless it concerns all."""
    kept = {(r.model, r.platform): r.kept for r in found}
    several = len({p for _, p in kept}) > 1
    named = {(m, p): f"{m} on {p}" if several else m for m, p in kept}
    return of_scenarios(((named[m, p], s) for m, p, s in candidates.each()), {named[pair]: some for pair, some in kept.items()})


def cautions_of_draws(candidates: Candidates, drawn: DrawnComparison) -> list[Caution]:
    """Cautions about the intervals of the time, by candidate."""
    took = {(r.model, r.platform): r.time_s for r in drawn.rows}
    names = {id(one): name for name, one in drawn.named.items()}
    readings = {
        names[id(one)]: (one, [DrawnReading("time", nominal, one.values(candidates.time))])
        for pair, one in drawn.ensembles.items() if (nominal := took.get(pair)) is not None
    }
    return merge_cautions((name, reasons(one, some)) for name, (one, some) in readings.items())
