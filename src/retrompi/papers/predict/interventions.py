"""Published interventions: one option of a runtime is changed and nothing else, and how much faster it becomes is printed.

``validate/interventions.toml`` names the two rows of the reference, or, where the published values are kept apart, the two predicted
curves; the effect is the ratio of the largest bandwidths.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrompi.base import paths
from retrompi.base import toml as toml_text
from retrompi.base.errors import InputError, nearest
from retrompi.papers.judging.verdicts import Verdict
from retrompi.papers.predict import predictions
from retrompi.papers.statements.claims import Claim, load
from retrompi.papers.statements.metrics import PREDICTED

__all__ = ["Effect", "effects"]

_KEYS = ("title", "option", "before", "after")


@dataclass(frozen=True)
class Effect:
    """An intervention: ``option`` as a user sets it, ``published`` and ``simulated`` ratios (None: kept apart, or not judged).

    ``low``..``high`` is the published ratio by the reading tolerances of its rows.
    """

    title: str
    option: str
    before: str
    after: str
    published: float | None
    low: float
    high: float
    simulated: float | None

    @property
    def direction(self) -> bool | None:
        """Whether the simulated effect has the published sign; None if either is unknown."""
        if self.published is None or self.simulated is None:
            return None
        return (self.published > 1) == (self.simulated > 1)

    @property
    def size(self) -> bool | None:
        """Whether the simulated effect is within the published one, with the tolerance of a number that no fit saw."""
        if self.published is None or self.simulated is None:
            return None
        return self.low * (1 - PREDICTED) <= self.simulated <= self.high * (1 + PREDICTED)


def effects(verdicts: Iterable[Verdict], file: Path | None = None) -> list[Effect]:
    """Every intervention, in the file's order; InputError for a wrong file."""
    file = file or paths.validate_dir() / "interventions.toml"
    claims = {c.id: c for c in load()}
    observed = {v.id: v.observed for v in verdicts}
    shipped = predictions.shipped_predictions()
    out = []
    with toml_text.taken_apart("list of interventions", file):
        for given in toml_text.read(file, "list of interventions")[1]["intervention"]:
            for key in given:
                if key not in _KEYS:
                    raise InputError(f"unknown key '{key}'{nearest(key, _KEYS)}", file, code="unknown-key")
            words = [given[k] for k in _KEYS]
            out.append(_effect(words, claims, observed, shipped))
    return out


def _effect(words: list[str], claims: Mapping[str, Claim], observed: Mapping[str, Any], shipped: Mapping[str, Mapping[str, Any]]) -> Effect:
    title, option, before, after = words
    if before in shipped and after in shipped:
        return Effect(title, option, before, after, None, 0, 0, _rate(shipped[after]) / _rate(shipped[before]))
    a, b = claims.get(before), claims.get(after)
    if a is None or b is None:
        return Effect(title, option, before, after, None, 0, 0, None)
    if not (a.low and a.high and b.low and b.high):
        raise ValueError(f"{before} and {after} are no rates with a range")
    x, y = observed.get(before), observed.get(after)
    simulated = y / x if isinstance(x, float | int) and isinstance(y, float | int) and x else None
    return Effect(title, option, before, after, _value(b) / _value(a), b.low / a.high, b.high / a.low, simulated)


def _value(claim: Claim) -> float:
    """The printed number, or the middle of its reading where words stand with it."""
    try:
        return float(claim.value)
    except ValueError:
        return ((claim.low or 0.0) + (claim.high or 0.0)) / 2


def _rate(told: Mapping[str, Any]) -> float:
    return max(float(v["size_B"] / v["nominal_s"]) for v in told["value"])
