"""One screen about a reproduced paper: what passed by runtime, the anomalies with what came out, and what fails with its reason.

The whole table of verdicts is in the page, in CSV and JSON, and in ``retrompi validate --all``.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from retrompi.papers.judging.verdicts import Verdict
from retrompi.papers.reproduce.reproduction import Reproduction

__all__ = ["LINES", "WIDTH", "anomalies", "counts", "digest", "failures", "stated_and_found"]

LINES, WIDTH = 36, 80
"""The most lines and columns of a digest; a screen of 40 lines has space for what is said of runs and of the page below it."""

_GROUPS, _ANOMALIES = 8, 10
_WORDS = 30  # columns for a statement in words
_REST = "others"


def digest(study: Reproduction) -> list[str]:
    """Lines of text, at most `LINES` of `WIDTH` columns."""
    plan = study.paper
    head = _cut(plan.title, WIDTH), _cut(f"{plan.authors}, {plan.year}", WIDTH), ""
    judged = [v for v in study.verdicts if v.use in ("calibrate", "validate")]
    if not judged:
        return [*head, "no statement of it is judged"]
    lines = [*head, *counts(judged)]
    if odd := anomalies(study):
        lines += ["", "anomalies: published, simulated", *odd]
    left = LINES - len(lines) - 2
    if failed := failures(judged, left):
        lines += ["", f"{sum(v.verdict == 'fail' for v in judged)} statements fail: published, simulated", *failed]
    return lines


def counts(judged: Sequence[Verdict]) -> list[str]:
    """A table of how many statements pass, fitted and held out, by what they are about; small groups together in the last row."""
    groups: dict[str, list[Verdict]] = {}
    for v in judged:
        if v.verdict != "unjudged":
            groups.setdefault(v.system, []).append(v)
    ranked = sorted(groups, key=lambda g: -len(groups[g]))
    kept = ranked if len(ranked) <= _GROUPS else ranked[: _GROUPS - 1]
    rows = [(name, groups[name]) for name in kept]
    if rest := [v for g in ranked[len(kept) :] for v in groups[g]]:
        rows.append((_REST, rest))
    rows.append(("all", list(judged)))
    name_width = min(max(len(name) for name, _ in rows), WIDTH - 30)
    lines = [f"{'pass':<{name_width}}  {'fitted':>12}  {'held out':>12}"]
    for name, mine in rows:
        cells = [_count([v for v in mine if v.use == use]) for use in ("calibrate", "validate")]
        lines.append(f"{_cut(name, name_width):<{name_width}}  {cells[0]:>12}  {cells[1]:>12}")
    if unjudged := sum(v.verdict == "unjudged" for v in judged):
        lines.append(f"not judged: {unjudged}")
    return lines


def _count(mine: Sequence[Verdict]) -> str:
    told = [v for v in mine if v.verdict != "unjudged"]
    return f"{sum(v.verdict == 'pass' for v in told)} of {len(told)}" if told else "-"


def anomalies(study: Reproduction) -> list[str]:
    """A line each: the verdict of the statement that shows it, the anomaly, what was published and what came out."""
    by_id = {v.id: v for v in study.verdicts}
    lines = []
    for why in study.paper.why[:_ANOMALIES]:
        mine = [by_id[i] for i in why.claims if i in by_id and by_id[i].verdict != "unjudged"]
        if not mine:
            lines.append(f"  -    {_cut(why.title, WIDTH - 7)}")
            continue
        failed = [v for v in mine if v.verdict == "fail"]
        numbers = [v for v in mine if isinstance(v.observed, float)]
        shown = (failed or numbers or mine)[0]
        lines.append(_line(shown.verdict, why.title, stated_and_found(shown)))
    return lines


def failures(judged: Sequence[Verdict], most: int) -> list[str]:
    """At most ``most`` lines: the identifier of each statement that fails, what it says, and its numbers."""
    failed = [v for v in judged if v.verdict == "fail"]
    shown = failed if len(failed) <= most else failed[: max(most - 1, 0)]
    lines = [_line(v.id, v.observable or v.system, stated_and_found(v)) for v in shown]
    if len(shown) < len(failed):
        lines.append(f"  and {len(failed) - len(shown)} more: the page and 'retrompi validate' list them")
    return lines


def stated_and_found(v: Verdict) -> str:
    """``2.5..4.5, 2.97 MB/s``: the published number or range, the simulated one, and their unit; of a statement in words what came out."""
    if not isinstance(v.observed, float):
        return _cut(str(v.observed or v.published), _WORDS)
    unit = f" {v.unit}" if v.unit and v.unit != "-" else ""
    if v.low is None and v.high is None:
        return f"{_cut(v.published, _WORDS)}, {v.observed:.4g}{unit}"
    stated = f"{v.low:.4g}" if v.low == v.high else "..".join("" if n is None else f"{n:.4g}" for n in (v.low, v.high))
    return f"{stated}, {v.observed:.4g}{unit}"


def _line(lead: str, text: str, numbers: str) -> str:
    lead = f"  {lead} "
    return f"{lead}{_cut(text, WIDTH - len(lead) - len(numbers) - 2)}: {numbers}"


def _cut(text: str, width: int) -> str:
    return textwrap.shorten(text, width, placeholder=" …") if len(" ".join(text.split())) > width else " ".join(text.split())
