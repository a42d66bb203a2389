"""Common to the questions that take several runs of a scenario: looking up the scenario and the metric, and opening the store and the
executor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from retrompi.api.frames import Progress, Table, as_store, reporting
from retrompi.base.errors import UsageError
from retrompi.sim.cautions import Caution

if TYPE_CHECKING:
    from retrompi.store import Store
    from retrompi.studies.define.metrics import Metric
    from retrompi.studies.define.scenario import Scenario
    from retrompi.studies.draws.uncertainty import Spec
    from retrompi.studies.search.reading import Asker

__all__ = ["Answer", "Asking", "asking_in", "cautions_of", "metric_of", "scenario_of", "spec_of"]


class Asking(Protocol):
    """Opens the store and the executor for the runs of a question; ``expected`` is an estimate of their number, for the progress bar."""

    def __call__(self, scenario: Scenario, metric: Metric, expected: int) -> AbstractContextManager[Asker]: ...


class Answer(Table):
    """The answer to a question about a scenario by several runs."""

    def __init__(self, scenario: Scenario, metric: Metric, warnings: Sequence[Caution]) -> None:
        self.scenario, self.metric = scenario, metric
        self._warnings = tuple(warnings)

    @property
    def warnings(self) -> tuple[Caution, ...]:
        """Cautions about the scenario and its runs; ``about`` says how many of the runs a caution concerns, unless it concerns all."""
        return self._warnings


def scenario_of(name: str | Path, changes: Mapping[str, str]) -> Scenario:
    """The scenario with these overrides. Raises UsageError for an unknown name, and for an override that is wrong or without effect."""
    from retrompi.studies.define import case, catalogue
    from retrompi.studies.define.used_overrides import refuse_idle

    found = case.apply(catalogue.scenario(str(name)), changes)
    case.identity(found)
    refuse_idle(found)
    return found


def metric_of(name: str | None, default: str, scenario: Scenario) -> Metric:
    """The metric by name. UsageError if the scenario's runs cannot have it."""
    from retrompi.studies.define import metrics

    found = metrics.parse(name or default)
    found.check(scenario)
    return found


def asking_in(store: Store | Path | str | None, fresh: bool, jobs: int | None, progress: Progress | None, label: str) -> Asking:
    """Runs in a store, made by ``jobs`` processes (default: one a processor)."""
    from retrompi.studies.execute.worker_pool import WorkerPool
    from retrompi.studies.search.reading import Asker

    @contextmanager
    def ask(scenario: Scenario, metric: Metric, expected: int) -> Iterator[Asker]:
        with reporting(progress, label) as report, WorkerPool(jobs) as executor:
            yield Asker(as_store(store), scenario, metric, executor, fresh, report, expected, label)

    return ask


def spec_of(level: float, draws: int) -> Spec | None:
    """The level and number of draws as a `Spec`; None for no draws. UsageError for a level outside 0..1 and for a single draw."""
    from retrompi.studies.draws.uncertainty import Spec

    if not 0 < level < 1:
        raise UsageError(f"the level is above 0 and below 1, not {level:g}; example: level=0.9", code="out-of-range")
    if draws < 0 or draws == 1:
        raise UsageError(f"draws are 0 (none) or at least 2, not {draws}", code="out-of-range")
    return Spec(level, draws) if draws else None


def cautions_of(ask: Asker, scenarios: Sequence[Scenario], spec: Spec | None = None) -> list[Caution]:
    """Cautions about a search: about its base and its ends (``scenarios``), about its runs, and about draws that are too few for the
    level of ``spec``."""
    from retrompi.studies.read.cautions import of_search
    from retrompi.studies.read.interval_reasons import unresolved_level

    return [*of_search(ask.store, scenarios, ask.run_ids), *(unresolved_level(spec) if spec is not None else [])]
