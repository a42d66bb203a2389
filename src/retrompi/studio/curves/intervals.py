"""The intervals of a what-if: a job that simulates the draws of both curves, and its result beside the curves.

Every draw is a run of its own, kept in the studio's store when it ends: a job that is paused, cancelled or ended by its limits loses the
runs under way, and the same switch goes on from there. Draws of both curves share their parameters, so that the interval of their ratio
is that of the change alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from retrompi.base.translate import _
from retrompi.base.units import format_span
from retrompi.render.document.engine_words import outcome_name
from retrompi.studio.components.parameters import readable

if TYPE_CHECKING:
    from retrompi.studies.draws.uncertainty import Ensemble, Interval
    from retrompi.studio.curves.runs import Places
    from retrompi.studio.jobs.job import Report

__all__ = ["DRAWS", "LEVEL", "METRICS", "beside", "ended_line", "span", "what_if"]

DRAWS, LEVEL = 100, 0.9
METRICS = ("latency", "peak", "n_half")
Row = Mapping[str, Any]


def what_if(
    report: Report, places: Places, model: str, platform: str, mode: str, sets: Sequence[str], draws: int = DRAWS,
    sizes: Sequence[int] | None = None,
) -> dict[str, Any]:
    """The intervals of a what-if's curves.

    asked: the question; level, draws; base and changed (None without ``sets``): points (size_B, and of time_us and bandwidth_MBps the ends
    COLUMN_low and COLUMN_high, None where no draw completed; completed, a share), metrics (name -> ends in its unit, or None), ended
    (outcome -> draws); ratio: by size as text the ends of changed / as it was of the time, and in how many draws it is ahead.
    """
    from retrompi.spec.question import Question, pingpong
    from retrompi.studies.draws.uncertainty import Spec, ensemble
    from retrompi.studio.curves.runs import open_stores
    from retrompi.traces.generate import DEFAULT_SIZES

    spec, at = Spec(level=LEVEL, draws=draws), list(DEFAULT_SIZES if sizes is None else sizes)
    wanted = [Question(model, platform, pingpong(at), mode, s) for s in ([], *([list(sets)] if sets else []))]

    def report_draw(done: int, total: int, what: str) -> None:
        report(done, total, "draws")

    with open_stores(places) as (_, ours):
        found = ensemble(ours, wanted, spec, report_draw, workers=1)
    base, changed = found[0], found[1] if sets else None
    return {
        "asked": [model, platform, mode, list(sets)], "level": LEVEL, "draws": draws, "base": _intervals(base, at),
        "changed": None if changed is None else _intervals(changed, at), "ratio": {} if changed is None else _ratio(base, changed, at),
    }


def _ends(found: Interval) -> list[float] | None:
    return [found.low, found.median, found.high] if isfinite(found.low) else None


def _intervals(of: Ensemble, sizes: Sequence[int]) -> dict[str, Any]:
    from retrompi.studies.define import metrics
    from retrompi.studies.draws.uncertainty import interval

    times, points = of.times(sizes), []
    for size, column in zip(sizes, times.T, strict=True):
        row: dict[str, Any] = {"size_B": size}
        for name, values in (("time_us", column * 1e6), ("bandwidth_MBps", size / column / 1e6)):
            ends = interval(values, of.spec.level)
            low, _middle, high = _ends(ends) or (None, None, None)
            row |= {f"{name}_low": low, f"{name}_high": high, "completed": ends.completed}
        points.append(row)
    shown = {name: _ends(of.interval(metrics.parse(name))) for name in METRICS}
    return {"points": points, "metrics": shown, "ended": of.failure_counts()}


def _ratio(base: Ensemble, changed: Ensemble, sizes: Sequence[int]) -> dict[str, Any]:
    """Size (as text) -> ends of the ratio of the times (changed / as it was), draw by draw, and the share of draws with a shorter time."""
    from retrompi.studies.draws.uncertainty import interval

    ratios = changed.times(sizes) / base.times(sizes)
    return {
        str(size): {"ends": _ends(interval(column, base.spec.level)), "ahead": float((column < 1).sum()) / len(column)}
        for size, column in zip(sizes, ratios.T, strict=True)
    }


# --- beside the curves ---------------------------------------------------------------------------------------------------------


def beside(answer: Mapping[str, Any], told: Mapping[str, Any] | None) -> dict[str, Any]:
    """The answer of `retrompi.studio.curves.runs.what_if` with the intervals ``told`` in the rows of its curves; as it is where they belong
    to another question, or there are none."""
    one = answer["changed"] or answer["base"]
    if told is None or told["asked"] != [one["model"], one["platform"], one["mode"], list(one["sets"])]:
        return {**answer, "intervals": None}
    out = {**answer, "intervals": told}
    for name in ("base", "changed"):
        if answer[name] is not None:
            by_size = {p["size_B"]: p for p in told[name]["points"]}
            out[name] = {**answer[name], "rows": [{**r, **by_size.get(r["size_B"], {})} for r in answer[name]["rows"]]}
    return out


def ended_line(told: Mapping[str, Any]) -> str:
    """A sentence on the draws that did not complete; "" if all did."""
    out = []
    for name, words in (("base", _("as it was")), ("changed", "changed")):
        ended = told[name]["ended"] if told[name] else {}
        if ended:
            count = sum(ended.values())
            how = ", ".join(f"{n} {outcome_name(outcome)}" for outcome, n in ended.items())
            out.append(
                _("{words}: {count} of {draws} draws did not complete ({how})").format(
                    words=words, count=count, draws=told["draws"], how=how
                )
            )
    return _("{out}. The intervals are of the others.").format(out="; ".join(out)) if out else ""


def span(ends: Sequence[float] | None, unit: str) -> str:
    """An interval as text; "" for None."""
    return "" if ends is None else readable(format_span(ends[0], ends[-1], unit))
