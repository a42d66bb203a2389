"""Similarity of submissions: facts for the teacher to examine, never a verdict.

Only data that the task itself does not make similar is compared: parameters differ between students, and short answers are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from retrompi.labs.grade import within

__all__ = ["Facts", "Pair", "normal_source", "normal_text", "pairs"]

LEAST_WORDS = 8
LEAST_SOURCE = 300
"""Minimum length, in characters without blanks and comments, at which equal files are significant."""
NEAR = 0.7
"""Share of common three-word sequences from which two texts count as nearly the same."""


@dataclass(frozen=True)
class Facts:
    """The compared data of a submission; ``name`` is the student's displayed name.

    ``expected`` and ``given`` are its correct and answered numbers, in base units; ``tolerances`` are (relative, absolute).
    """

    student: str
    name: str
    lab: str
    token: str
    texts: Mapping[str, str] = field(default_factory=dict)
    predictions: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, float] = field(default_factory=dict)
    expected: Mapping[str, float] = field(default_factory=dict)
    tolerances: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Pair:
    """Two submissions (their indices) and their similarities, the strongest first."""

    one: int
    other: int
    why: tuple[str, ...]


def normal_text(text: str) -> str:
    """A free-text answer without case, punctuation and layout."""
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))


def normal_source(text: str) -> str:
    """A program or table without comments, blanks and case."""
    plain = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    plain = re.sub(r"(//|#)(?!\s*(include|define)\b).*", "", plain)
    return "".join(plain.split())


def _pieces(text: str) -> set[tuple[str, ...]]:
    words = text.split()
    return {tuple(words[i : i + 3]) for i in range(len(words) - 2)}


def pairs(facts: Sequence[Facts | None]) -> list[Pair]:
    """Every pair of similar submissions of one lab by different students, the most similar first."""
    kept = [(i, f) for i, f in enumerate(facts) if f is not None]
    pieces = {(i, t): _pieces(text) for i, f in kept for t, text in f.texts.items()}
    found = []
    for (i, a), (j, b) in combinations(kept, 2):
        if a.lab != b.lab:
            continue
        why = _alike(a, b, pieces, i, j)
        if why:
            found.append(Pair(i, j, tuple(why)))
    return sorted(found, key=lambda p: (-len(p.why), p.one, p.other))


def _alike(a: Facts, b: Facts, pieces: Mapping[Any, set[tuple[str, ...]]], i: int, j: int) -> list[str]:
    """The similarities of two submissions, in words."""
    why = []
    if a.student == b.student:
        return ["the same student twice"]
    if a.token == b.token:
        why.append("begun by one and the same 'lab start' (a copied folder)")
    for task in (t for t in a.texts if t in b.texts):
        one, other = a.texts[task], b.texts[task]
        if min(len(one.split()), len(other.split())) < LEAST_WORDS:
            continue
        if one == other:
            why.append(f"the same words in '{task}'")
        elif (both := pieces[i, task] | pieces[j, task]) and len(pieces[i, task] & pieces[j, task]) / len(both) >= NEAR:
            why.append(f"nearly the same words in '{task}'")
    why += [f"the same file {n}" for n, text in a.files.items() if len(text) >= LEAST_SOURCE and b.files.get(n) == text]
    same = [t for t, text in a.predictions.items() if b.predictions.get(t) == text]
    if len(same) >= 3 and len(same) == len(a.predictions):
        why.append("all predictions the same")
    for its, theirs in ((a, b), (b, a)):
        fitting = _fits_other(its, theirs)
        if len(fitting) >= 2:
            why.append(f"numbers of {its.name} are the right ones of {theirs.name}: {', '.join(fitting)}")
    return sorted(why, key=lambda w: ("nearly" in w, "predictions" in w))


def _fits_other(one: Facts, other: Facts) -> list[str]:
    """Tasks whose answer in ``one`` is wrong but would be correct for ``other``."""

    def near(value: float, right: float, task: str) -> bool:
        return within(value, right, *one.tolerances[task])

    return [
        task for task, value in one.given.items()
        if task in one.expected and task in other.expected and not near(value, one.expected[task], task)
        and near(value, other.expected[task], task)
    ]  # fmt: skip
