"""The example programs and the collectives, compared in turn: one table of held-out results for a machine's model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.base.errors import InputError, UsageError, nearest
from retrompi.base.paths import source_root
from retrompi.measure.compare.comparison import Comparison, cautions
from retrompi.measure.compare.errors import distribution
from retrompi.measure.compare.run import compare
from retrompi.measure.compare.verdict import ComparisonVerdict, judge

if TYPE_CHECKING:
    from retrompi.store.database import Store

__all__ = ["CASES", "COLLECTIVES", "Case", "CaseResult", "cases", "row_of", "run", "totals", "warnings_of"]

COLLECTIVES = ("barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall")
_ODD = "5,20,50,100,200,400,700,1500,3000,6000,12000,24000,48000,96000,200000,400000,800000,1600000,3200000"
_FEW = "5,20,100,400,1500,6000,24000,100000,400000"
"""Sizes between those used by fits (powers of two and 1.5 times these), for the part a fit sees: single messages."""
_LONG = "8,24,96,384,1536,6144,24576,98304,393216"


_FIGURES = re.compile(r" \([^()]*\)")
"""The part in which warnings of one kind differ: a program's figures, in brackets."""


@dataclass(frozen=True)
class Case:
    """A program of ``examples/`` with its arguments; ``group``: point to point, collective or application."""

    name: str
    source: str
    arguments: tuple[str, ...]
    group: str


CASES = (
    Case("pingpong", "pingpong.c", ("--warm-up", "50", "--sizes", _ODD), "point to point"),
    Case("half-to-half", "half_to_half.c", ("--sizes", _FEW), "point to point"),
    Case("half-to-half-both", "half_to_half.c", ("--both", "--sizes", _FEW), "point to point"),
    Case("broadcast", "broadcast.c", ("--sizes", _LONG), "collective"),
    *(Case(name, "collectives.c", ("--operation", name, "--sizes", _LONG), "collective") for name in COLLECTIVES),
    Case("overlap", "overlap.c", (), "application"),
    Case("jacobi", "jacobi.c", (), "application"),
    Case("matmul", "matmul.c", (), "application"),
    Case("sort", "sort.c", (), "application"),
)


@dataclass(frozen=True)
class CaseResult:
    """A case and its result."""

    case: Case
    comparison: Comparison
    verdict: ComparisonVerdict | None


def cases(only: Sequence[str] = ()) -> list[Case]:
    """The cases with these names or groups; all if none are given. Raises UsageError for a wrong name."""
    known = [*(c.name for c in CASES), *dict.fromkeys(c.group for c in CASES)]
    for name in only:
        if name not in known:
            raise UsageError(f"no case '{name}' in the suite{nearest(name, known, 30)}", code="unknown-name")
    return [c for c in CASES if not only or c.name in only or c.group in only]


def _folder() -> Path:
    root = source_root()
    if root is None or not (root / "examples").is_dir():
        raise InputError(
            "the suite needs the example programs, which are not in an installed package: run it from a checkout", code="not-found"
        )
    return root / "examples"


def run(
    store: Store, ranks: int, bounds: Mapping[str, float], wanted: Sequence[Case], options: Mapping[str, Any],
    report: Callable[[int, int, str], None],
) -> list[CaseResult]:
    """Compare each case; ``options`` as in `compare`, which also has the errors raised."""
    folder, out = _folder(), []
    for i, case in enumerate(wanted):
        report(i, len(wanted), case.name)
        done = compare(store, str(folder / case.source), case.arguments, ranks, **options)
        out.append(CaseResult(case, done, judge(done, bounds) if bounds else None))
    report(len(wanted), len(wanted), "")
    return out


def row_of(judged: CaseResult) -> list[dict[str, Any]]:
    """A flat row for each pair of backends: held-out errors, the whole program, the noise."""
    c = judged.comparison
    out = []
    for backend, reference in c.pairs:
        spread = distribution((r.label, r.error(backend, reference)) for r in c.judged_rows())
        inside = [i for r in c.judged_rows() if (i := r.inside(backend, reference)) is not None]
        found = spread.row() if spread else dict.fromkeys(("n", "median", "p95", "worst", "where", "bias"))
        split = next((s for s in c.splits if (s.backend, s.reference) == (backend, reference)), None)
        first = split.calls[0][0] if split and split.calls else ""
        out.append({
            "program": judged.case.name, "group": judged.case.group, "backend": backend, "reference": reference, **found,
            "whole": c.whole.error(backend, reference), "noise": c.noise() if reference == "native" else None,
            "inside": sum(inside) / len(inside) if inside else None, "most_from": first,
            "warnings": [one.row() for one in cautions(c)],
            "loaded": bool((e := c.executions.get("native")) and e.noise and e.noise.loaded),
            "runs": [e.run_id for e in c.executions.values()], "passed": None if judged.verdict is None else judged.verdict.passed,
        })
    return out


def totals(judged: Sequence[CaseResult]) -> list[dict[str, Any]]:
    """For each group and pair: the distribution over all held-out rows, all programs' rows weighted equally."""
    out = []
    pairs = dict.fromkeys(p for j in judged for p in j.comparison.pairs)
    for backend, reference in pairs:
        for group in dict.fromkeys(j.case.group for j in judged):
            rows = [(f"{j.case.name} {r.label}", r.error(backend, reference))
                    for j in judged if j.case.group == group and (backend, reference) in j.comparison.pairs
                    for r in j.comparison.judged_rows()]
            found = distribution(rows)
            if found is not None:
                out.append({"group": group, "backend": backend, "reference": reference, **found.row()})
    return out


def warnings_of(judged: Sequence[CaseResult]) -> list[str]:
    """The warnings of all comparisons, each once, with the programs it concerns unless it concerns all."""
    about: dict[str, list[tuple[str, str]]] = {}
    for j in judged:
        for text in j.comparison.warnings:
            about.setdefault(_FIGURES.sub("", text), []).append((j.case.name, text))
    out = []
    for short, told in about.items():
        text = told[0][1] if len({text for _, text in told}) == 1 else short
        out.append(text if len(told) == len(judged) else f"{', '.join(name for name, _ in told)}: {text}")
    return out
