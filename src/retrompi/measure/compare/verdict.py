"""The error bounds requested of a comparison, and whether they hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from retrompi.base.errors import UsageError, nearest
from retrompi.measure.compare.comparison import Comparison
from retrompi.measure.compare.errors import distribution

__all__ = ["ComparisonVerdict", "judge", "parse_within"]

STATISTICS = ("median", "p95", "worst", "whole")
"""The statistics that can be bounded: of the magnitudes of held-out errors, and the whole program's error."""


@dataclass(frozen=True)
class ComparisonVerdict:
    """Whether every bound holds for every pair with the reference, as a ``line``; ``found``: (pair, statistic) -> error's magnitude."""

    passed: bool
    line: str
    found: Mapping[tuple[str, str, str], float] = field(default_factory=dict)


def parse_within(text: str) -> dict[str, float]:
    """``10%`` (the median) or ``median=5%,p95=15%`` as shares. Raises UsageError for anything else."""
    out: dict[str, float] = {}
    for part in text.split(","):
        name, equals, number = part.strip().rpartition("=")
        name = name.strip() if equals else "median"
        if name not in STATISTICS:
            raise UsageError(f"--within {text}: no bound '{name}'{nearest(name, STATISTICS)}", code="unknown-name")
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", number.strip())
        if match is None:
            raise UsageError(
                f"--within {text}: '{number.strip()}' is not a percentage; example: --within 10% or --within median=5%,p95=15%",
                code="bad-syntax",
            )
        out[name] = float(match[1]) / 100
    return out


def judge(c: Comparison, bounds: Mapping[str, float]) -> ComparisonVerdict:
    """Check each pair with the reference against ``bounds`` (statistic -> share).

    The pairs are SMPI and the model with the native run, or without one the model with SMPI. Judged are the sections that no fit saw, or
    the whole program if there are none. Missing comparisons fail.
    """
    reference = "native" if "native" in c.executions else "smpi"
    found: dict[tuple[str, str, str], float] = {}
    told, passed = [], c.completed
    for backend, other in c.pairs:
        if other != reference:
            continue
        spread = distribution((r.label, r.error(backend, other)) for r in c.judged_rows())
        whole = c.whole.error(backend, other)
        values: dict[str, float] = {} if spread is None else {"median": spread.median, "p95": spread.p95, "worst": abs(spread.worst)}
        if whole is not None:
            values["whole"] = abs(whole)
        for name, bound in bounds.items():
            value = values.get(name)
            if value is None:
                passed = False
                told.append(f"{backend} against {other}: no {name}")
                continue
            found[backend, other, name] = value
            passed = passed and value <= bound
            told.append(f"{backend} against {other}: {name} {100 * value:.1f} % ({'<=' if value <= bound else '>'} {100 * bound:g} %)")
    if not c.completed:
        told.append("; ".join(f"{b} did not complete ({e.outcome})" for b, e in c.executions.items() if not e.completed))
    return ComparisonVerdict(passed and bool(told), f"{'within' if passed else 'not within'} the bound: {'; '.join(told)}", found)
