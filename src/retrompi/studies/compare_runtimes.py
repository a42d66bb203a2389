"""Comparison of runtimes on one program (a scenario, a recorded trace or a generator); the model and the platform vary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import RetrompiError, UsageError, nearest
from retrompi.base.files import exists
from retrompi.spec import registry
from retrompi.spec.placements import NATURAL
from retrompi.studies import case, catalogue, metrics
from retrompi.studies.run import Asked, runs_of
from retrompi.studies.scenario import Scenario

if TYPE_CHECKING:
    from retrompi.store import Store
    from retrompi.studies.run import Executor, Report

__all__ = ["Candidates", "Row", "program", "resolved", "rows"]


OWN = ("model", "platform", "outcome", "reason", "time_s", "relative", "in_mpi", "computing", "messages", "packets", "run_id", "found")


@dataclass(frozen=True)
class Row:
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

    def row(self) -> dict[str, Any]:
        """One flat row."""
        return {**{k: getattr(self, k) for k in OWN}, **self.values}


def program(text: str, arguments: Sequence[str], model: str, platform: str | None, mode: str | None, np: int | None) -> Scenario:
    """The program ``text`` as a scenario: a scenario's name or file, a generator with ``KEY=VALUE`` arguments, or a trace.

    ``platform`` and ``mode`` None: the scenario's own; for a generator or trace, the platform that ``model`` is calibrated on, with one
    host for each rank. Raises UsageError if ``text`` is none of these.
    """
    from retrompi.traces import generate

    if text in catalogue.scenario_names() or text.endswith(".toml"):
        if arguments:
            raise UsageError(f"a scenario takes no arguments; change it with --set, e.g. --set {arguments[0]}", code="unused-option")
        found = catalogue.scenario(text)
        given = {"platform": platform, "mode": mode, "trace.np": None if np is None or found.trace is None else str(np)}
        return case.apply(found, {k: v for k, v in given.items() if v is not None})
    if platform is None:
        known = registry.model(model).calibrated
        if known is None:
            raise UsageError(f"model '{model}' names no platform of its own; give one with -p", code="missing-option")
        platform = known.platforms[0]
    words: dict[str, Any] = dict.fromkeys(("name", "title", "summary"), text) | {"reproduces": "what-if: another runtime"}
    words |= {"model": model, "platform": platform, "mode": mode or NATURAL}
    if text in generate.GENERATORS:
        return _generated(text, arguments, words, np)
    path = Path(text)
    if not exists(path):
        known_names = [*catalogue.scenario_names(), *generate.GENERATORS]
        raise UsageError(f"no scenario, generator or trace '{text}'{nearest(text, known_names)}", code="unknown-scenario")
    if arguments:
        raise UsageError("a trace takes no arguments", code="unused-option")
    if path.suffix in (".c", ".cc", ".cpp", ".f", ".f90", ".py"):
        raise UsageError(
            f"'{text}' is a program, record it first: retrompi trace record -o TRACE -- mpiexec -n {np or 2} ...", code="missing-option"
        )
    return Scenario(**{**words, "name": path.name}, trace=path.resolve(), np=np)


def _generated(name: str, arguments: Sequence[str], words: Mapping[str, Any], np: int | None) -> Scenario:
    from retrompi.traces import generate

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


@dataclass(frozen=True)
class Candidates:
    """The program of ``base`` on each of ``models`` (on each of ``platforms``; empty: its own), with the ``wanted`` metrics."""

    base: Scenario
    models: Sequence[str]
    platforms: Sequence[str] = ()
    wanted: Sequence[metrics.Metric] = ()

    def each(self) -> list[tuple[str, str, Scenario]]:
        """(model, platform, scenario) of each candidate."""
        pairs = [(m, p) for p in (self.platforms or [self.base.platform]) for m in self.models]
        return [(m, p, case.apply(self.base, {"model": m, "platform": p})) for m, p in pairs]


def rows(
    store: Store, candidates: Candidates, *, executor: Executor | None = None, fresh: bool = False, report: Report | None = None
) -> list[Row]:
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
    found = runs_of(store, [scenario for _, _, scenario in each], executor=executor, fresh=fresh, report=report)
    told = [_row(store, (m, p), r, candidates.wanted) for (m, p, _), r in zip(each, found, strict=True)]
    return _ranked(told)


def _row(store: Store, where: tuple[str, str], ran: Asked, wanted: Sequence[metrics.Metric]) -> Row:
    about = (*where, ran.outcome, ran.reason, ran.run_id, ran.found)
    if ran.run_id is None or ran.outcome != "completed":
        return Row(*about, values={m.name: None for m in wanted})
    run, points, ranks = store.run(ran.run_id), store.points(ran.run_id), store.ranks(ran.run_id)
    total = sum(r["time_s"] for r in ranks)
    shares = [sum(r[k] for r in ranks) / total if total > 0 else None for k in ("mpi_s", "compute_s")]
    values = {m.name: m.of(run, points, ranks) for m in wanted}
    return Row(*about, run["time_s"], None, shares[0], shares[1], run["messages"], run["packets"], values)


def _ranked(told: Sequence[Row]) -> list[Row]:
    fastest = min((r.time_s for r in told if r.time_s), default=None)
    out = [r if not r.time_s or fastest is None else replace(r, relative=r.time_s / fastest) for r in told]
    return sorted(out, key=lambda r: (r.time_s is None, r.time_s or 0.0))


def resolved(candidates: Candidates) -> list[Scenario]:
    """The candidates' scenarios that can be resolved, for the check against the calibrated ranges."""
    out = []
    for _, _, made in candidates.each():
        try:
            case.identity(made)
        except RetrompiError:
            continue
        out.append(made)
    return out
