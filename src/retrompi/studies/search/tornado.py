"""Sensitivity analysis: keys varied one at a time between two ends, or Sobol indices of all of them together.

One at a time is cheap and sees no interactions; Sobol's indices (Saltelli's sample and estimators, by SALib) split the variance of the
metric among the keys drawn independently over their ranges. Values of a list are drawn with equal probability.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from retrompi.base.errors import UsageError
from retrompi.studies.define.axes import Axis
from retrompi.studies.search.reading import NoNumber, Reading, count_runs

__all__ = ["CONFIDENCE", "Bar", "Index", "OneAtATime", "Second", "Sobol", "one_at_a_time", "saltelli", "sobol"]

CONFIDENCE = 0.95
RESAMPLES = 500
"""Resamples of the bootstrap for the confidence intervals."""
MOST_RUNS = 100_000
"""Maximum number of runs of a Sobol sample; a larger one would take days."""

Evaluate = Callable[[Sequence[Mapping[str, str]]], Sequence[Reading]]


@dataclass(frozen=True)
class Bar:
    """One factor's runs: a reading for each of its ``ends``; ``swing`` is the largest minus the smallest, including the base."""

    factor: Axis
    readings: tuple[Reading, ...]
    swing: float | None

    @property
    def ended(self) -> list[tuple[str, Reading]]:
        """The values at which the run did not complete."""
        return [(t, r) for t, r in zip(self.factor.ends, self.readings, strict=True) if r.value is None]


@dataclass(frozen=True)
class OneAtATime:
    """The base and a bar for each factor, the largest swing first; bars without a swing (nothing completed) last."""

    base: Reading
    bars: list[Bar]

    @property
    def counts(self) -> tuple[int, int]:
        """(runs evaluated, of which simulated now)."""
        return count_runs([self.base, *(r for b in self.bars for r in b.readings)])


def one_at_a_time(evaluate: Evaluate, factors: Sequence[Axis]) -> OneAtATime:
    """The base run, and every end of every factor with all others at their base.

    Raises NoNumber when the base run does not complete, UsageError without factors.
    """
    if not factors:
        raise UsageError("nothing varies; give --vary KEY=LOW..HIGH", code="nothing-varies")
    asked: list[Mapping[str, str]] = [{}, *({f.key: t} for f in factors for t in f.ends)]
    base, *rest = evaluate(asked)
    if base.value is None:
        raise NoNumber(f"the base itself has no number: {base.outcome_text()}")
    bars = []
    for f in factors:
        own, rest = tuple(rest[: len(f.ends)]), rest[len(f.ends) :]
        known = [r.value for r in own if r.value is not None]
        swing = max([base.value, *known]) - min([base.value, *known]) if known else None
        bars.append(Bar(f, own, swing))
    bars.sort(key=lambda b: (b.swing is None, -(b.swing or 0.0)))
    return OneAtATime(base, bars)


@dataclass(frozen=True)
class Index:
    """A factor's share of the variance: alone (``first``) and with all its interactions (``total``), each ± a half interval."""

    factor: Axis
    first: float
    first_conf: float
    total: float
    total_conf: float


@dataclass(frozen=True)
class Second:
    """Second-order index: the interaction of two factors."""

    a: str
    b: str
    index: float
    conf: float


@dataclass(frozen=True)
class Sobol:
    """Indices, the largest total first; ``values`` are the metric's mean, deviation, least and greatest over the sample.

    ``dropped`` of the sample's blocks had a run that did not complete (``ended`` has the runs); the others count.
    """

    indices: list[Index]
    seconds: list[Second]
    samples: int
    values: Mapping[str, float]
    counts: tuple[int, int]
    """(runs evaluated, of which simulated now)."""
    dropped: int = 0
    ended: Sequence[tuple[Mapping[str, str], Reading]] = field(default_factory=list)


def _salib() -> tuple[Any, Any]:
    try:
        from SALib.analyze import sobol as analysis
        from SALib.sample import sobol as sample
    except ImportError:
        raise UsageError("Sobol indices need the package SALib: pip install 'retrompi[sensitivity]'", code="missing-tool") from None
    return sample, analysis


def _problem(factors: Sequence[Axis]) -> dict[str, Any]:
    return {"num_vars": len(factors), "names": [f.key for f in factors], "bounds": [[0.0, 1.0]] * len(factors)}


def saltelli(factors: Sequence[Axis], samples: int, seed: int, second: bool) -> list[dict[str, str]]:
    """Saltelli's sample as points key -> text: ``samples`` blocks of k + 2 points, with ``second`` of 2 k + 2.

    Raises UsageError for fewer than two factors, a factor with a single value, or a number of samples that is not a power of two (Sobol's
    sequence is balanced only then).
    """
    if len(factors) < 2:
        raise UsageError("Sobol indices are of two keys at least; for one, '--method oat' says all there is")
    if samples < 2 or samples & (samples - 1):
        near = 2 ** max(1, round(math.log2(max(samples, 2))))
        raise UsageError(f"--samples {samples} is no power of two, which Sobol's sequence needs; the nearest is {near}", code="bad-syntax")
    for f in factors:
        if f.span is None and len(f) < 2:
            raise UsageError(f"'{f.key}' has one value only; give LOW..HIGH or a list", code="nothing-varies")
    runs = samples * ((2 if second else 1) * len(factors) + 2)
    if runs > MOST_RUNS:
        raise UsageError(
            f"--samples {samples} of {len(factors)} keys are {runs} runs, more than {MOST_RUNS}; fewer samples or keys", code="too-many"
        )
    sample, _ = _salib()
    shares = sample.sample(_problem(factors), samples, calc_second_order=second, seed=seed)
    return [{f.key: f.at(float(u)) for f, u in zip(factors, row, strict=True)} for row in shares]


def sobol(
    evaluate: Evaluate, factors: Sequence[Axis], *, samples: int = 64, seed: int = 1, second: bool = False, incomplete: str = "refuse"
) -> Sobol:
    """First, total and (``second``) second-order indices with 95 % confidence intervals.

    ``incomplete`` selects the treatment of runs without a number: ``refuse`` raises NoNumber naming the first; ``drop`` leaves out
    the blocks of the sample that contain one, so that the indices no longer cover the whole range.
    """
    _, analysis = _salib()
    points = saltelli(factors, samples, seed, second)
    readings = list(evaluate(points))
    ended = [(p, r) for p, r in zip(points, readings, strict=True) if r.value is None]
    if ended and incomplete == "refuse":
        where = ", ".join(f"{k}={v}" for k, v in ended[0][0].items())
        raise NoNumber(f"{len(ended)} of {len(points)} runs have no number, the first at {where}: {ended[0][1].outcome_text()}; "
                     "narrow the ranges, or take --incomplete drop")
    block = len(points) // samples
    groups = [readings[i * block : (i + 1) * block] for i in range(samples)]
    whole = [g for g in groups if all(r.value is not None for r in g)]
    if len(whole) < max(2, samples // 2):
        raise NoNumber(f"only {len(whole)} of the sample's {samples} blocks are complete: too few for indices; narrow the ranges")
    import numpy as np

    numbers = np.array([r.value for g in whole for r in g], dtype=float)
    values = {"mean": float(numbers.mean()), "deviation": float(numbers.std()), "least": float(numbers.min()), "most": float(numbers.max())}
    if values["most"] - values["least"] <= 1e-12 * max(abs(values["most"]), abs(values["least"])):
        raise NoNumber(f"the metric is the same at all {len(numbers)} points: nothing to split among the keys")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from the bootstrap when an index is zero
        found = analysis.analyze(
            _problem(factors), numbers, calc_second_order=second, num_resamples=RESAMPLES, conf_level=CONFIDENCE, seed=seed
        )
    indices = [
        Index(f, *(float(found[k][i]) for k in ("S1", "S1_conf", "ST", "ST_conf"))) for i, f in enumerate(factors)
    ]
    seconds = []
    if second:
        pairs = [(i, j) for i in range(len(factors)) for j in range(i + 1, len(factors))]
        seconds = [Second(factors[i].key, factors[j].key, float(found["S2"][i, j]), float(found["S2_conf"][i, j])) for i, j in pairs]
        seconds.sort(key=lambda s: -abs(s.index))
    indices.sort(key=lambda i: -i.total)
    return Sobol(indices, seconds, samples, values, count_runs(readings), samples - len(whole), ended)
