"""The published statements for the scorecard: each with its newest stored verdict, the observed value, and the related pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from retrompi.base.errors import UsageError
from retrompi.base.translate import lazy
from retrompi.papers.judging.findings import residual
from retrompi.papers.judging.verdicts import Summary, Verdict, judge, summary
from retrompi.papers.reproduce import judged
from retrompi.papers.statements.claims import Claim, checks, load, paper_key, papers
from retrompi.papers.statements.paper import Paper, all_papers
from retrompi.papers.statements.systems import system_of, systems

__all__ = ["GROUPS", "KINDS", "VERDICTS", "Statement", "StatementCurves", "StatementFilter", "counts", "matrix", "read",
           "select_statements", "statements"]

VERDICTS = {"pass": lazy("pass"), "fail": lazy("fail"), "unjudged": lazy("not judged")}
GROUPS = {"calibrate": lazy("fitted"), "validate": lazy("held out"), "exclude": lazy("excluded"), "context": lazy("context")}
"""Use of a claim -> the word on the page; fitted and held-out statements are never counted together."""
KINDS = {"quant": lazy("number"), "knee": lazy("position of a knee"), "trend": lazy("trend"), "order": lazy("order"),
         "qual": lazy("in words")}
ANATOMY_MODES = ("shared", "distributed")
NOT_YET = lazy("not judged in this store yet")
_REFERENCE = "reference: "
_SMALL, _LARGE = (0, 1 << 10), (1 << 20, 1 << 22)


@dataclass(frozen=True)
class StatementCurves:
    """The curves a statement is about: ``models`` in ``mode`` on ``platform``; ``low``..``high`` B if it is about sizes."""

    models: tuple[str, ...]
    mode: str
    platform: str
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True)
class Statement:
    """A row of the scorecard. ``when`` and ``code``: when and by which code version its verdict was judged.

    ``in_advance``: it comes with the package, and ``changed`` names what has been changed since.
    """

    claim: Claim
    verdict: Verdict
    system: str
    paper: str
    how: tuple[Mapping[str, Any], ...]
    when: str = ""
    code: str = ""
    in_advance: bool = False
    changed: tuple[str, ...] = ()

    @property
    def place(self) -> StatementCurves | None:
        """The place of its curves; None for a statement that is not about a curve."""
        return _place(self.claim, self.how, all_papers().get(self.paper))

    @property
    def messages(self) -> tuple[tuple[str, str, str, int], ...]:
        """(model, platform, mode, bytes) of the messages whose anatomy explains it, among those the anatomy page can show."""
        plan = all_papers().get(self.paper)
        if plan is None:
            return ()
        told = [w for w in plan.why if self.claim.id in w.claims and w.mode in ANATOMY_MODES]
        return tuple((w.model, plan.platform, w.mode, w.size) for w in told if w.size is not None)

    @property
    def mechanisms(self) -> tuple[tuple[str, str], ...]:
        """(title, text) of the anomalies it belongs to."""
        plan = all_papers().get(self.paper)
        return tuple((w.title, f"{w.mechanism}: {w.text}") for w in (plan.why if plan else ()) if self.claim.id in w.claims)

    def row(self) -> dict[str, Any]:
        """The flat row of an export."""
        v, c = self.verdict, self.claim
        return {
            "id": c.id,
            "paper": self.paper,
            "system": self.system,
            "use": c.use,
            "kind": c.kind,
            "verdict": v.verdict,
            "observable": c.observable,
            "published": v.published,
            "low": v.low,
            "high": v.high,
            "observed": v.observed,
            "unit": v.unit,
            "residual": v.residual,
            "note": v.note,
            "contradiction": v.contradiction,
            "reading": v.reading,
            "source": c.source,
            "judged": self.when,
            "code": self.code,
            "in_advance": self.in_advance,
            "changed": " ".join(self.changed),
        }


@dataclass(frozen=True)
class StatementFilter:
    """A filter of statements; an empty text matches everything. ``text`` is an identifier, or words to search for."""

    paper: str = ""
    system: str = ""
    verdict: str = ""
    group: str = ""
    text: str = ""


def _place(claim: Claim, how: Sequence[Mapping[str, Any]], plan: Paper | None) -> StatementCurves | None:
    curved = [c for c in how if c.get("mode") and (c.get("models") or c.get("better"))]
    curved += [c for c in how if "better" in c and "mode" not in c]
    if not curved or plan is None or not plan.modes:
        return None
    first = curved[0]
    sides = [first[k] for k in ("better", "worse") if k in first]
    models = tuple(first.get("models") or dict.fromkeys(m for m, _ in sides))
    mode = str(first.get("mode") or sides[0][1])
    if mode not in plan.modes:
        return None
    low, high = _sizes(claim, first)
    return StatementCurves(models, mode, plan.platform, low, high)


def _sizes(claim: Claim, check: Mapping[str, Any]) -> tuple[int | None, int | None]:
    where = check.get("sizes")
    if check.get("metric") == "startup":
        return 0, 0
    if check.get("kind") == "knee" and claim.low is not None and claim.high is not None:
        return int(claim.low), int(claim.high)
    if where in ("small", "large"):
        return _SMALL if where == "small" else _LARGE
    found = claim.sizes(str(where)) if where else None
    return (None, None) if found is None else (found.low, found.high)


@cache
def _blank() -> Mapping[str, Verdict]:
    """Claim -> its verdict before any simulation: the reference's text, and the reason why other rows are not judged."""
    return {v.id: v for v in judge(load(), [], {})}


def _verdict_of(claim: Claim, row: Mapping[str, Any]) -> Verdict:
    note = str(row["note"] or "")
    if claim.note:  # a stored note ends with the reference's note, which is shown separately here
        note = note.removesuffix(f"{_REFERENCE}{claim.note}").removesuffix("; ")
    observed, low, high = row["observed"], row["low"], row["high"]
    number = observed if isinstance(observed, int | float) and not isinstance(observed, bool) else None
    far = None if number is None or low is None or high is None else residual(float(number), low, high)
    return replace(
        _blank()[claim.id], verdict=row["verdict"], observed=observed, low=low, high=high, unit=row["unit"] or "", note=note, residual=far
    )


def _day(created: Any) -> str:
    """A stored time as ``2026-11-21 18:21``."""
    return str(created).replace("T", " ")[:16]


def statements(
    rows: Iterable[Mapping[str, Any]],
    batches: Mapping[int, Mapping[str, Any]] | None = None,
    ahead: Mapping[str, judged.AdvanceVerdict] | None = None,
) -> list[Statement]:
    """Every row of the reference in its order, with its verdict from ``rows`` (the store's newest), else the one judged ``ahead``.

    ``batches``: id -> created, code_version of the judgings named in the rows. A claim without a verdict is marked as not judged.
    """
    newest = {str(r["id"]): r for r in rows}
    made = batches or {}
    out = []
    for claim in load():
        how = tuple(checks().get(claim.id, ()))
        blank = Statement(claim, _blank()[claim.id], system_of(claim), paper_key(claim.paper), how)
        row, early = newest.get(claim.id), (ahead or {}).get(claim.id)
        if row is not None:
            batch = made.get(int(row["batch_id"])) if row.get("batch_id") is not None else None
            when, code = (_day(batch["created"]), str(batch["code_version"])) if batch else ("", "")
            out.append(replace(blank, verdict=_verdict_of(claim, row), when=when, code=code))
        elif early is not None:
            by = judged.shipped_verdicts()
            out.append(
                replace(blank, verdict=_verdict_of(claim, early.row), when=by.judged, code=by.code, in_advance=True, changed=early.changed)
            )
        else:
            note = NOT_YET if how and claim.use != "exclude" else blank.verdict.note
            out.append(replace(blank, verdict=replace(blank.verdict, verdict="unjudged", observed=None, note=note)))
    return out


def read(store: Any = None) -> list[Statement]:
    """The statements with the verdicts of a store (`retrompi.store.Store`), and those that come with the package where it has none."""
    if store is None:
        return statements([], ahead=judged.in_advance())
    return statements(store.verdicts(), store.verdict_batches(), judged.in_advance())


def select_statements(all_of_them: Sequence[Statement], want: StatementFilter) -> list[Statement]:
    """The statements that match every filter. Raises UsageError for a filter with an unknown value."""
    from retrompi.base.errors import nearest

    valid = {"paper": papers(), "system": systems(), "verdict": list(VERDICTS), "group": list(GROUPS)}
    for name, values in valid.items():
        value = getattr(want, name)
        if value and value not in values:
            raise UsageError(f"{name} '{value}'{nearest(value, values)}", code="unknown-name")
    words = want.text.casefold().split()
    named = [s for s in all_of_them if s.claim.id.casefold() == want.text.strip().casefold()]
    out = []
    for s in named or all_of_them:
        told = (
            want.paper in ("", s.paper)
            and want.system in ("", s.system)
            and want.verdict in ("", s.verdict.verdict)
            and want.group in ("", s.claim.use)
        )
        if told and (not words or _has(s, words)):
            out.append(s)
    return out


def _has(s: Statement, words: Sequence[str]) -> bool:
    c, v = s.claim, s.verdict
    text = " ".join((c.id, c.system, c.observable, c.value, c.configuration, c.note, v.note, v.reading, *v.models)).casefold()
    return all(w in text for w in words)


def counts(some: Sequence[Statement]) -> list[Summary]:
    """How many pass, fail and are not judged, by use: fitted, held out, excluded, context."""
    return summary([s.verdict for s in some])


def matrix(some: Sequence[Statement]) -> dict[str, dict[str, Counter[str]]]:
    """System -> use (fitted and held out) -> number of passes, failures and not judged; systems without any are left out."""
    out: dict[str, dict[str, Counter[str]]] = {name: {"calibrate": Counter(), "validate": Counter()} for name in systems()}
    for s in some:
        if s.claim.use in ("calibrate", "validate"):
            out[s.system][s.claim.use][s.verdict.verdict] += 1
    return {
        name: {use: Counter({w: n[w] for w in VERDICTS if n[w]}) for use, n in cells.items()}
        for name, cells in out.items()
        if any(cells.values())
    }
