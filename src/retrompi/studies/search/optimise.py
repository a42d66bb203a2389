"""Searching for the best value of a metric over several keys at once, by Optuna.

    found = optimise(ask, space(scenario, ["wmpi.packet=16KiB..1MiB", ...]), trials=60, seed=1)
    found.best.values, found.best.reading.value

Trials are proposed a few at a time and told in order, whatever the number of processes: a seed gives the same trials on any number of
them, a longer search begins with the trials of a shorter one, and both find their runs in the store.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import UsageError
from retrompi.studies.define import axes, case
from retrompi.studies.define.axes import Axis
from retrompi.studies.define.keys import number, with_range
from retrompi.studies.define.used_overrides import refuse_idle
from retrompi.studies.search.reading import Reading, count_runs

if TYPE_CHECKING:
    from retrompi.studies.define.metrics import Metric
    from retrompi.studies.define.scenario import Scenario

__all__ = ["TOGETHER", "Optimum", "Trial", "optimise", "proposed_text", "read_axis", "space"]

TOGETHER = 4
"""Trials proposed together: more would use more processors, and each would know less of those before it."""
STARTUP = 16
"""Trials drawn at random before the others are drawn from where the best ones were."""


def read_axis(scenario: Scenario, text: str) -> Axis:
    """A key of the search: of ``KEY=LOW..HIGH``, with ``:log`` or ``:linear`` where the default (logarithmic over a factor of 8 or more) is
    not wanted, or of ``KEY=A,B,C``. Raises UsageError for anything else, and for a key or a value that the scenario cannot have."""
    name, equals, given = text.partition("=")
    key = case.proper(name)
    if not equals or not key or not given.strip():
        raise UsageError(f"'--over {text}' is not KEY=LOW..HIGH or KEY=A,B; example: --over wmpi.packet=16KiB..1MiB", code="bad-syntax")
    low, dots, high = given.partition("..")
    if not dots or "," in given or '"' in given:
        found = axes.parse(key, given)
        if len(found) < 2:
            raise UsageError(f"'--over {text}' has one value; set it with --set", code="bad-range")
        return found
    high, _, shape = high.partition(":")
    if shape not in ("", "log", "linear"):
        raise UsageError(f"'--over {text}': a range ends in nothing, :log or :linear", code="bad-range")
    span = with_range(number(scenario, key), [low.strip(), high.strip()], log={"": None, "log": True, "linear": False}[shape])
    if span.low >= span.high:
        raise UsageError(f"'--over {text}' is empty: write the smaller end first", code="bad-range")
    return Axis(span.path, (), span)


def proposed_text(over: Axis, drawn: Any) -> str:
    """A proposal as text, within the ends: the value that is simulated."""
    if over.span is None:
        return over.values[int(drawn)]
    return over.span.text(min(max(over.span.snap(drawn), over.span.low), over.span.high))


def space(scenario: Scenario, texts: Sequence[str]) -> list[Axis]:
    """The keys of a search (`read_axis`); UsageError, before anything runs, for one that is given twice, or that no run of it uses."""
    overs = [read_axis(scenario, text) for text in texts]
    keys = [over.key for over in overs]
    for over in overs:
        if keys.count(over.key) > 1:
            raise UsageError(f"'--over {over.key}' is given twice", code="duplicate-name")
        ends = [case.apply(scenario, {over.key: end}) for end in over.ends]
        for end in ends:
            case.identity(end)
        refuse_idle(*ends)
    return overs


@dataclass(frozen=True)
class Trial:
    """A point of the search: the text of each key, and what was read there. ``number`` counts from 1; 0 is the scenario as it is."""

    number: int
    values: Mapping[str, str]
    reading: Reading

    def row(self, overs: Sequence[Axis], metric: Metric) -> dict[str, Any]:
        """As a row of a table; the metric in its unit."""
        r = self.reading
        return {"trial": self.number, **{o.key: self.values.get(o.key, "") for o in overs}, metric.name: r.value, "unit": metric.unit,
                "outcome": r.outcome, "reason": r.reason, "run_id": r.run_id, "found": r.found}


@dataclass(frozen=True)
class Optimum:
    """The scenario as it is, every trial in order, and the best of all of them (None if none has a number)."""

    base: Trial
    trials: Sequence[Trial]
    best: Trial | None

    @property
    def counts(self) -> tuple[int, int]:
        """(runs, of which simulated now)."""
        return count_runs([self.base.reading, *(t.reading for t in self.trials)])


def optimise(
    ask: Callable[[Sequence[Mapping[str, str]]], Sequence[Reading]],
    overs: Sequence[Axis],
    *,
    trials: int,
    seed: int = 1,
    more_is_better: bool = False,
) -> Optimum:
    """The best of ``trials`` points proposed by Optuna's tree-structured Parzen estimator from ``seed``, and of the scenario as it is.

    A run without a number (it did not complete) counts as worse than all that have one. Raises UsageError if Optuna is not installed.
    """
    try:
        import optuna
    except ImportError:
        raise UsageError("a search over several keys needs the package optuna: pip install 'retrompi[optimise]'",
                         code="missing-tool") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True, n_startup_trials=STARTUP)
    study = optuna.create_study(direction="maximize" if more_is_better else "minimize", sampler=sampler)
    within = {over.key: _distribution(optuna, over) for over in overs}
    base = Trial(0, {}, ask([{}])[0])
    found: list[Trial] = []
    while len(found) < trials:
        asked = [study.ask(within) for _ in range(min(TOGETHER, trials - len(found)))]
        values = [_concerning({over.key: proposed_text(over, trial.params[over.key]) for over in overs}) for trial in asked]
        for trial, point, reading in zip(asked, values, ask(values), strict=True):
            found.append(Trial(len(found) + 1, point, reading))
            if _number(reading) is None:
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)  # known to be worse, unlike a trial that failed
            else:
                study.tell(trial, reading.value)
    having = [t for t in (base, *found) if _number(t.reading) is not None]
    sign = -1 if more_is_better else 1
    return Optimum(base, found, min(having, key=lambda t: sign * (_number(t.reading) or 0.0), default=None))


def _concerning(values: dict[str, str]) -> dict[str, str]:
    """Without the parameters of other models than the one proposed."""
    model = values.get("model")
    return values if model is None else {k: v for k, v in values.items() if case.concerns(k, model)}


def _number(reading: Reading) -> float | None:
    return reading.value if reading.value is not None and math.isfinite(reading.value) else None


def _distribution(optuna: Any, over: Axis) -> Any:
    span = over.span
    if span is None:
        return optuna.distributions.CategoricalDistribution(tuple(range(len(over))))
    if span.whole:
        return optuna.distributions.IntDistribution(math.ceil(span.low), math.floor(span.high), log=span.log)
    return optuna.distributions.FloatDistribution(span.low, span.high, log=span.log)
