"""Verdicts: every claim is judged from stored points and facts by the evaluators named in its checks.

The checks of every claim are beside ``claims.csv``; published numbers come from the claim's own row. An evaluator returns a
`Finding`; several findings of one claim make one `Verdict`, which passes when all of them do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from retrompi.papers.judging.evaluators import EVALUATORS, evaluate, stated_count
from retrompi.papers.judging.findings import Data, Finding, Observed, residual
from retrompi.papers.statements.claims import Checks, Claim, checks
from retrompi.papers.statements.metrics import curves
from retrompi.spec.declare.curve import TimeCurve

__all__ = ["EVALUATORS", "NOT_DRAWN", "Agreement", "Data", "Finding", "Summary", "Verdict", "judge", "measure", "residual", "stated_count",
           "summary"]


@dataclass(frozen=True)
class Agreement:
    """The third verdict of a claim (`retrompi.papers.reproduce.agreement`): agrees, disagrees or cannot tell.

    ``share`` of the ``draws`` pass. ``low``, ``median``, ``high``: the interval of the observed number in the unit of the verdict, None
    for a statement without one; ``stated_low``, ``stated_high``: the range of what is printed or read (None: open). ``inside``: whether
    the two overlap for every number of the claim.
    """

    word: str
    share: float
    draws: int
    low: float | None = None
    median: float | None = None
    high: float | None = None
    stated_low: float | None = None
    stated_high: float | None = None
    inside: bool | None = None

    def row(self) -> dict[str, Any]:
        """Its columns in the row of a verdict."""
        return {"agreement": self.word, "share": self.share, "draws": self.draws, "observed_low": self.low,
                "observed_median": self.median, "observed_high": self.high, "stated_low": self.stated_low,
                "stated_high": self.stated_high, "inside": self.inside}


NOT_DRAWN: Mapping[str, None] = dict.fromkeys(Agreement("", 0.0, 0).row())
"""The columns of a claim that no draw could judge, in a table where others have them."""


@dataclass(frozen=True)
class Verdict:
    """The judgement of one claim.

    ``verdict`` is pass, fail or unjudged; ``observed`` is in ``unit``; ``residual`` is the signed distance of the observed
    number outside ``low``..``high`` (0 inside, None without a number); ``reading`` is the interpretation of the words;
    ``contradiction`` is the reference's own note.
    """

    id: str
    system: str
    use: str
    verdict: str
    observed: Observed
    low: float | None
    high: float | None
    unit: str
    note: str
    observable: str = ""
    published: str = ""
    residual: float | None = None
    reading: str = ""
    contradiction: str = ""
    source: str = ""
    kind: str = ""
    models: tuple[str, ...] = ()
    agreement: Agreement | None = None
    """The third verdict, if draws were made."""

    def row(self) -> dict[str, Any]:
        """The flat JSON object that scripts rely on; the contradiction is part of its note."""
        note = "; ".join(t for t in (self.note, f"reference: {self.contradiction}" if self.contradiction else "") if t)
        return {
            "id": self.id,
            "system": self.system,
            "use": self.use,
            "verdict": self.verdict,
            "observed": self.observed,
            "low": self.low,
            "high": self.high,
            "unit": self.unit,
            "note": note,
        }


def _no_check(claim: Claim) -> str:
    if claim.use == "context":
        return "context: configuration or definition, nothing to judge"
    return "its runtime or test is not simulated yet"


_UNITS = re.compile(r"(?<![A-Za-z])(?:[KMG]?B(?:yte)?/s|[KMG]bit/s|[KMG]bps|ms|us|µs|seconds|processors|functions|times)(?![A-Za-z])")


def _published_text(claim: Claim) -> str:
    """The published text with its unit, which is not repeated where the text has it."""
    if claim.kind != "quant" or claim.unit == "-" or claim.unit in claim.value or _UNITS.search(claim.value):
        return claim.value
    return f"{claim.value} {claim.unit}"


def _verdict(claim: Claim, data: Data, how: Checks) -> Verdict:
    entries = how.get(claim.id, ())
    findings = [evaluate(claim, c, data) for c in entries]
    oks = [f.ok for f in findings]
    word = "unjudged" if not findings or (None in oks and False not in oks) else "pass" if all(oks) else "fail"
    notes = [f.note for f in findings if f.note] or ([] if findings else [_no_check(claim)])
    if claim.use == "exclude":
        word = "unjudged"
        notes.insert(0, "excluded: the paper contradicts itself here; shown, not judged")
    # The row shows the first failed finding, if any, else the first with a number.
    ranked = [f for f in findings if f.ok is False] + [f for f in findings if isinstance(f.observed, float)] + findings
    shown = ranked[0] if ranked else Finding(None, None)
    texts = [f.observed for f in findings if isinstance(f.observed, str) and f is not shown]
    observed = shown.observed
    if isinstance(observed, str):  # join findings in words; a number is shown alone
        observed, texts = "; ".join([observed, *texts]), []
    low, high = (shown.low, shown.high) if shown.low is not None or shown.unit else (claim.low, claim.high)
    number = shown.observed if isinstance(shown.observed, float) else None
    distance = None if number is None or low is None or high is None else residual(number, low, high)
    return Verdict(
        id=claim.id,
        system=claim.system,
        use=claim.use,
        verdict=word,
        observed=observed,
        low=low,
        high=high,
        unit=shown.unit or (claim.unit if claim.unit != "-" else ""),
        note="; ".join(dict.fromkeys(notes + texts)),
        observable=claim.observable,
        published=_published_text(claim),
        residual=distance,
        reading=" ".join(str(c["reading"]) for c in entries if "reading" in c),
        contradiction=claim.note,
        source=claim.source,
        kind=claim.kind,
        models=tuple(dict.fromkeys(m for c in entries for m in c.get("models", ()))),
    )


def _data(points: Iterable[Mapping[str, Any]], facts: Mapping[str, Any], stand_in: Mapping[str, str] | None) -> Data:
    return Data(curves(points), facts, stand_in or {})


def judge(
    claims: Iterable[Claim],
    points: Iterable[Mapping[str, Any]],
    facts: Mapping[str, Any],
    *,
    stand_in: Mapping[str, str] | None = None,
    entries: Checks | None = None,
) -> list[Verdict]:
    """One verdict per claim, in the order given.

    ``points``: rows with model, mode, size_B, time_us. ``facts``: see `retrompi.papers.reproduce.reproduction`. ``stand_in`` maps a
    model to the variant whose points are used for it; ``entries`` are the checks of claims outside the papers.
    Deterministic; nothing is simulated here.
    """
    data = _data(points, facts, stand_in)
    how = {**checks(), **(entries or {})}
    return [_verdict(c, data, how) for c in claims]


def measure(
    claim: Claim,
    points: Iterable[Mapping[str, Any]] | Mapping[tuple[str, str], TimeCurve],
    facts: Mapping[str, Any] | None = None,
    *,
    stand_in: Mapping[str, str] | None = None,
    entries: Checks | None = None,
) -> list[Finding]:
    """The findings behind a verdict, for a calibration: numbers in the claim's unit with the range low..high.

    ``points`` may be rows or ready curves; ``entries`` as for `judge`.
    """
    ready = dict(points) if isinstance(points, Mapping) else curves(points)
    data = Data(ready, facts or {}, stand_in or {})
    return [evaluate(claim, c, data) for c in {**checks(), **(entries or {})}.get(claim.id, ())]


@dataclass(frozen=True)
class Summary:
    """Numbers of passed, failed and unjudged claims of one use."""

    use: str
    passed: int
    failed: int
    unjudged: int
    agreement: Mapping[str, int] = field(default_factory=dict)
    """Third verdict -> how many have it; empty without draws."""
    numbers: int = 0
    inside: int = 0
    """How many claims have a number, and of how many what is stated lies inside the interval."""

    @property
    def judged(self) -> int:
        """Number of passed and failed claims."""
        return self.passed + self.failed

    def __str__(self) -> str:
        word = {"calibrate": "fit", "validate": "held out", "exclude": "excluded"}.get(self.use, self.use)
        if not self.judged:
            return f"{word}: {self.unjudged} not judged"
        told = f"{word}: {self.passed} of {self.judged} pass ({self.passed / self.judged:.0%}), {self.unjudged} not judged"
        if self.agreement:
            words = ", ".join(f"{n} {w.replace('agrees', 'agree')}" for w, n in self.agreement.items())
            told += f"; {words}; {self.inside} of {self.numbers} numbers inside the interval"
        return told


def summary(verdicts: Sequence[Verdict]) -> list[Summary]:
    """Counts by use: fit, held-out, then excluded and context if there are any."""
    out = []
    for use in ("calibrate", "validate", "exclude", "context"):
        mine = [v.verdict for v in verdicts if v.use == use]
        third = [v.agreement for v in verdicts if v.use == use and v.agreement is not None]
        words = {w: sum(a.word == w for a in third) for w in ("agrees", "cannot tell", "disagrees")} if third else {}
        numbers = [a.inside for a in third if a.inside is not None]
        if mine:
            out.append(Summary(use, mine.count("pass"), mine.count("fail"), mine.count("unjudged"), words, len(numbers), sum(numbers)))
    return out
