"""Verdicts of curves: the median and the largest error of their points, the seen ones and those held out apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from retrompi.papers.judging.curve_checks import times_of
from retrompi.papers.judging.verdicts import Verdict
from retrompi.papers.statements.curves import CurvePoint, PaperCurve
from retrompi.papers.statements.metrics import PREDICTED

__all__ = ["HELD_OUT", "KIND", "Errors", "curve_id", "errors", "judge", "rows"]

KIND = "curve"
"""The kind of a curve's verdict, where that of a claim is one of `retrompi.papers.statements.claims.KINDS`."""
HELD_OUT = "held-out sizes"


@dataclass(frozen=True)
class Errors:
    """How far simulated points of a curve are from the published ones (simulated / published - 1, absolute); ``largest_at`` in B."""

    points: int
    median: float
    largest: float
    largest_at: int


def curve_id(key: str, curve: PaperCurve) -> str:
    """The identifier of a curve's verdict: ``turner-chen-2002:ga620``."""
    return f"{key}:{curve.name}"


def errors(curve: PaperCurve, among: Sequence[CurvePoint], got: Mapping[int, float]) -> Errors | None:
    """The errors at the points of ``among`` that judge; ``got``: size -> time, s. None without such points."""
    found = [(abs(got[p.size] / p.time - 1), p.size) for p in curve.judging(among) if p.size in got]
    if not found:
        return None
    largest, at = max(found, key=lambda e: e[0])
    return Errors(len(found), median(e for e, _ in found), largest, at)


def judge(key: str, curves: Iterable[PaperCurve], facts: Mapping[str, Any]) -> list[Verdict]:
    """A verdict a curve with points of use calibrate or validate, and one for the sizes that a fit did not see.

    ``facts``: of a study, with ``curves`` as of `retrompi.papers.judging.curve_checks.facts_of`; a curve that is not there is unjudged.
    """
    found = []
    for curve in curves:
        if curve.blind or curve.use == "context":
            continue
        told = facts.get("curves", {}).get(curve.name)
        got = {} if told is None else times_of(told)
        found.append(_verdict(curve_id(key, curve), curve, curve.seen, got, curve.use))
        if curve.held_out:
            found.append(_verdict(f"{curve_id(key, curve)}:held-out", curve, curve.held_out, got, "validate"))
    return found


def _verdict(name: str, curve: PaperCurve, among: Sequence[CurvePoint], got: Mapping[int, float], use: str) -> Verdict:
    limit = curve.tolerance if use == curve.use else max(curve.tolerance, PREDICTED)
    found = errors(curve, among, got)
    if found is None:
        note = "not simulated yet" if not got else f"no point is exact to {curve.fine:.0%}"
        word, observed = "unjudged", None
    else:
        word = "pass" if found.median <= limit and found.largest <= max(curve.largest, limit) else "fail"
        observed = 100 * found.median
        note = (f"{found.points} points; median error {found.median:.1%} (at most {limit:.0%}), largest {found.largest:.1%} at "
                f"{found.largest_at} B (at most {max(curve.largest, limit):.0%})")
        note += f"; not simulated: {curve.missing}" if curve.missing else ""
    what = curve.title if use == curve.use else f"{curve.title}: {HELD_OUT}"
    return Verdict(
        id=name, system=curve.model, use=use, verdict=word, observed=observed, low=0.0, high=100 * limit, unit="%", note=note,
        observable=f"curve: {what}", published=f"{len(among)} points",
        residual=None if observed is None else max(0.0, observed - 100 * limit),
        source=curve.source.file.name if curve.source else "", kind=KIND, models=(curve.model,),
    )


def rows(curve: PaperCurve, facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The simulated sizes of a curve beside what was published: curve, size_B, simulated_us, published_us, error (a share), judges.

    A size with several published points has a row for each, one with none has None there.
    """
    told = facts.get("curves", {}).get(curve.name)
    got = {} if told is None else {int(s): t for s, t in zip(told["size_B"], told["time_us"], strict=True)}
    found: list[dict[str, Any]] = []
    for size, time in got.items():
        mine = [p for p in curve.points if p.size == size]
        row = {"curve": curve.name, "size_B": size, "simulated_us": time}
        found += [{**row, "published_us": p.time * 1e6, "error": p.error, "judges": p.error <= curve.fine} for p in mine]
        if not mine:
            found.append({**row, "published_us": None, "error": None, "judges": False})
    return found
