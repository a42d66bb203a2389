"""The summary of many pairs of runtimes and platforms: how many completed, the best of each, and by reason what has no time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from retrompi.sim.cautions import CODES, Caution
from retrompi.spec.declare.outcome import Outcome
from retrompi.studies.compare.compare_runtimes import RuntimeRow
from retrompi.studies.define.case import ERROR

__all__ = ["SCREEN", "Side", "Without", "caution_lines", "count_outcomes", "first_beyond_range", "first_clause", "outcome_word",
           "ratio_text", "sides", "without_platform", "without_time"]

SCREEN = 24
"""Pairs of which each is a line; of more there is a summary (the rows of a terminal)."""
CANNOT = "cannot run"
"""What is said of a pair without a run."""


def outcome_word(outcome: str) -> str:
    """The outcome of a pair as it is said."""
    return CANNOT if outcome == ERROR else outcome


def ratio_text(ratio: float | None) -> str:
    """The time of a pair relative to the fastest, ``x1.24``; empty for none."""
    return "" if ratio is None else f"x{ratio:.3g}" if ratio < 1000 else f"x{ratio:.0f}"


@dataclass(frozen=True)
class Side:
    """A runtime on all platforms, or a platform with all runtimes: its pairs, those with a time, and the fastest and slowest of these."""

    name: str
    pairs: int
    timed: int
    fastest: RuntimeRow | None
    slowest: RuntimeRow | None


def sides(found: Sequence[RuntimeRow], what: Literal["model", "platform"]) -> list[Side]:
    """The runtimes, or the platforms, of a comparison: that with the fastest pair first, those without a time last."""
    of: dict[str, list[RuntimeRow]] = {}
    for row in found:
        of.setdefault(getattr(row, what), []).append(row)
    told = []
    for name, mine in of.items():
        timed = sorted((r for r in mine if r.time_s is not None), key=lambda r: r.time_s or 0.0)
        told.append(Side(name, len(mine), len(timed), timed[0] if timed else None, timed[-1] if timed else None))
    return sorted(told, key=lambda s: (s.fastest is None, (s.fastest.time_s or 0.0) if s.fastest else 0.0))


@dataclass(frozen=True)
class Without:
    """Pairs that have no time for the same reason."""

    outcome: str
    reason: str
    rows: tuple[RuntimeRow, ...]

    @property
    def line(self) -> str:
        """In words: how many pairs, the reason, and whose pairs they are."""
        models = list(dict.fromkeys(r.model for r in self.rows))
        platforms = list(dict.fromkeys(r.platform for r in self.rows))
        on = f" on {platforms[0]}" if len(platforms) == 1 else f" on {len(platforms)} platforms"
        return f"{len(self.rows)} {outcome_word(self.outcome)}: {self.reason}: {_some(models)}{on}"


def without_time(found: Iterable[RuntimeRow]) -> list[Without]:
    """The pairs without a time by their reason: what a reason says first, without the names of its pair. Runs that did not end
    well come first, then those that did not start, then pairs that cannot run; of each the most frequent first."""
    of: dict[tuple[str, str], list[RuntimeRow]] = {}
    for row in found:
        if row.time_s is None:
            of.setdefault((row.outcome, first_clause(row)), []).append(row)
    late = (Outcome.FAILED_START, ERROR)
    return sorted((Without(*key, tuple(rows)) for key, rows in of.items()),
                  key=lambda w: (late.index(w.outcome) + 1 if w.outcome in late else 0, -len(w.rows)))


def first_clause(row: RuntimeRow) -> str:
    """The first clause of a reason, which is about more pairs than this one; of a pair that cannot run, without where else it can."""
    line = (row.reason.splitlines() or [""])[0].removeprefix(f"{row.model} ")
    return re.split(r"; |: |, but " if row.outcome == ERROR else r": |, but ", line, maxsplit=1)[0]


def without_platform(found: Sequence[RuntimeRow]) -> list[str]:
    """The runtimes that cannot run on any of the platforms of a comparison."""
    able = {r.model for r in found if r.outcome != ERROR}
    return [m for m in dict.fromkeys(r.model for r in found) if m not in able]


def first_beyond_range(found: Sequence[RuntimeRow], told: Iterable[Caution]) -> str:
    """What of the fastest pair lies outside the range that its model is calibrated for, in a sentence; empty for nothing. A model that does
    not know of a cost, because the machines of its fit had none, may be first for that reason alone."""
    if not found or found[0].time_s is None:
        return ""
    best = found[0]
    names = {best.model, f"{best.model} on {best.platform}"}
    mine = [c for c in told if c.code == "outside-calibration" and (not c.about or names & set(c.about.split(", ")))]
    # Of what is minor the mark; a value that the user overrides has none.
    words = dict.fromkeys(c.mark if c.minor else c.text.partition(": ")[2].partition(" (")[0] for c in mine)
    told_of = ", ".join(filter(None, words))
    return f"the model of {best.model} is not calibrated for all of this: {told_of}" if told_of else ""


MOST_NAMES = 4
"""Names that a line has before it says how many more there are."""


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES + 1 else ""
    return ", ".join(names[: MOST_NAMES if more else None]) + more


def count_outcomes(found: Iterable[RuntimeRow]) -> dict[str, int]:
    """Outcome -> number of pairs, the most frequent first."""
    counts: dict[str, int] = {}
    for row in found:
        outcome = outcome_word(row.outcome)
        counts[outcome] = counts.get(outcome, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def caution_lines(told: Iterable[Caution], pairs: int) -> list[str]:
    """Cautions of ``pairs`` pairs by what they are about: a line for each code, and for what is minor, with how many pairs have one."""
    of: dict[tuple[str, bool], list[Caution]] = {}
    for one in told:
        of.setdefault((one.code, one.minor), []).append(one)
    lines = []
    for (code, minor), some in of.items():
        about = [name for one in some for name in one.about.split(", ") if one.about]
        whose = dict.fromkeys(about) if all(one.about for one in some) else None
        count = f"{pairs if whose is None else len(whose)} of {pairs} pairs"
        texts = list(dict.fromkeys(one.text for one in some))
        far = "" if code != "outside-calibration" else ", a little" if minor else ", by far"
        what = texts[0] if len(texts) == 1 else CODES.get(code, "") + far
        models = _some(list(dict.fromkeys(name.partition(" on ")[0] for name in whose))) if whose else ""
        lines.append(f"{count}: {what}{f' ({models})' if models else ''}")
    return lines
