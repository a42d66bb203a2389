"""Draws of a paper's parameters in its crate: asked for how, the third verdict of each statement, intervals of the curves.

The draws' own runs are not in the crate, which would hold a hundred times as many; they are simulated again by `retrompi.crate.verify` as
all others are, since a sample follows from its specification.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import UsageError
from retrompi.studies.draws.uncertainty import Spec

if TYPE_CHECKING:
    from retrompi.papers.judging.verdicts import Verdict
    from retrompi.papers.reproduce.reproduction import Reproduction

__all__ = ["BAND", "MOST", "agreement", "of_study", "round_quantile", "spec_in", "technique"]

BAND = ("model", "mode", "size_B", "low_us", "median_us", "high_us")
MOST = 10_000
"""Draws that a crate may ask to simulate again."""
_DIGITS = 12
"""Significant digits of a quantile, whose last ones may differ between versions of NumPy."""


def round_quantile(value: float) -> float:
    """A quantile, in as many digits as are the same everywhere."""
    return float(f"{value:.{_DIGITS}g}")


def of_study(study: Reproduction) -> dict[str, Any]:
    """The draws of a paper in a record: the specification, and the interval of each simulated time; {} without draws."""
    if study.spec is None:
        return {}
    bands = [
        dict(zip(BAND, (model, mode, size, *map(round_quantile, span)), strict=True))
        for (model, mode), sizes in study.bands.items()
        for size, *span in sizes
    ]
    return {"uncertainty": asdict(study.spec), "bands": bands}


def agreement(verdict: Verdict) -> dict[str, Any]:
    """The draws of a verdict in a record; {} without them."""
    if verdict.agreement is None:
        return {}
    told = {k: round_quantile(v) if isinstance(v, float) else v for k, v in verdict.agreement.row().items()}
    return {"agreement": told}


def spec_in(record: Mapping[str, Any]) -> Spec | None:
    """The specification in a record, of which nothing is trusted; None without one. UsageError for what is none."""
    told = record.get("uncertainty")
    if told is None:
        return None
    try:
        found = Spec(**told)
        good = 0 < found.level < 1 and 2 <= found.draws <= MOST and all(type(n) is int for n in (found.draws, found.seed))
    except TypeError:
        good = False
    if not good or type(found.discrepancy) is not bool:
        raise UsageError("its record asks for draws that cannot be made", code="bad-crate")
    return found


def technique(record: Mapping[str, Any], draws: int) -> str:
    """In words, what kind of interval a verdict has over its draws."""
    return f"{record['uncertainty']['level']:.0%} interval over {draws} draws of the parameters"
