"""Similarity of submissions, with reasons: facts for the teacher to examine, never a verdict.

Only what the task itself does not make similar is compared. Parameters differ between students, so that a number copied from another
student is wrong for the copier; mistakes that many make, short answers, the question's own words and the given program are left out.
Every reason has a weight: roughly the decimal digits of how unlikely it is by chance. A pair is reported from `LEAST` on, at which one
such pair is expected in a million by chance; equal predictions add to other reasons, but make no pair.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from retrompi.labs.chance import Numbers, Phrases
from retrompi.labs.grade import within
from retrompi.labs.tokens import normal_source, passages, pieces, shapes

__all__ = ["LEAST", "Facts", "Reason", "SimilarPair", "normal_source", "normal_text", "pairs"]

LEAST = 6.0
"""Minimum weight of a pair."""
CERTAIN = 12.0
"""Weight of what has no other explanation than a copy."""
LEAST_SOURCE = 300
"""Minimum length, in characters without blanks and comments, at which equal files are significant."""
LEAST_PIECES = 4
"""Minimum number of common pieces of a text: eight words one after the other, or several shorter passages."""
PIECE = 0.75
"""Maximum weight of a common piece: less than its own improbability, since people write of the same things in the same phrases."""
LEAST_SHAPES = 30
"""Minimum number of sequences of tokens, besides the given program's, at which the structure of a program is significant."""
NEAR = 0.6
"""Share of common sequences of tokens from which two programs count as nearly the same."""
COMMON = 4
"""Number of students of a class, at least, who may have a thing in common that still counts; a fiftieth of a large class."""
WEAK = 3.0
"""Maximum weight of what two may have in common otherwise: the same mistake in all of their numbers, the same predictions."""
PREDICTIONS = 2.0
"""Maximum weight of equal predictions."""


@dataclass(frozen=True)
class Facts:
    """The compared data of a submission; ``name`` is the student's displayed name.

    ``expected`` and ``given`` are its correct and answered numbers, in base units; ``tolerances`` are (relative, absolute). ``usual``:
    values that common mistakes lead to with this student's parameters. ``told``: words that the student has read in the lab (its text,
    questions, hints). ``files``: programs and tables as they are; ``templates``: the files that the lab gave.
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
    usual: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    told: str = ""
    templates: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reason:
    """A similarity in words, and its weight; ``weak`` ones make no pair alone."""

    text: str
    weight: float
    weak: bool = False


@dataclass(frozen=True)
class SimilarPair:
    """Two submissions (their indices) and the reasons, the strongest first."""

    one: int
    other: int
    reasons: tuple[Reason, ...]

    @property
    def why(self) -> tuple[str, ...]:
        """The reasons in words."""
        return tuple(r.text for r in self.reasons)

    @property
    def weight(self) -> float:
        """The sum of the reasons' weights, of the weak ones at most `WEAK`."""
        weak = sum(r.weight for r in self.reasons if r.weak)
        return sum(r.weight for r in self.reasons if not r.weak) + min(weak, WEAK)


def normal_text(text: str) -> str:
    """A free-text answer without case, punctuation and layout."""
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))


def pairs(facts: Sequence[Facts | None]) -> list[SimilarPair]:
    """Every pair of similar submissions of one lab by different students, the most similar first."""
    by_lab: dict[str, list[tuple[int, Facts]]] = defaultdict(list)
    for i, f in enumerate(facts):
        if f is not None:
            by_lab[f.lab].append((i, f))
    found = []
    for kept in by_lab.values():
        class_ = _Class([f for _, f in kept])
        for (m, (i, _)), (n, (j, _)) in combinations(enumerate(kept), 2):
            pair = SimilarPair(i, j, tuple(sorted(class_.reasons(m, n), key=lambda r: -r.weight)))
            if pair.weight >= LEAST:
                found.append(pair)
    return sorted(found, key=lambda p: (-p.weight, p.one, p.other))


class _Class:
    """The submissions of one lab: what each has of its own, after removal of what many have."""

    def __init__(self, facts: Sequence[Facts]) -> None:
        self.facts = facts
        told = {f.told: pieces(f.told.split()) for f in facts}  # often one text for many
        tokens = [f.token for f in facts]
        self.texts = _own([{(t, p) for t, text in f.texts.items() for p in pieces(text.split()) - told[f.told]} for f in facts], tokens)
        words = [[text.split() for text in f.texts.values()] for f in facts]
        self.phrases = Phrases(words, max((f.told for f in facts), key=len, default="").split())
        self.numbers = Numbers([f.expected for f in facts])
        self.writers: dict[Any, set[int]] = defaultdict(set)
        for i, kept in enumerate(self.texts):
            for piece in kept:
                self.writers[piece].add(i)
        sources = [{(n, s) for n, text in f.files.items() for s in shapes(text) - shapes(f.templates.get(n, ""))} for f in facts]
        self.sources = _own(sources, tokens)
        wrong = [_wrong(f) for f in facts]
        left = _own([{(t, f"{v:.3g}") for t, v in one.items()} for one in wrong], tokens)
        self.wrong = [{t: v for t, v in one.items() if (t, f"{v:.3g}") in kept} for one, kept in zip(wrong, left, strict=True)]
        guessed = Counter((t, text) for f in facts for t, text in f.predictions.items())
        self.guesses = [{t: _rarity(guessed[t, text], len(facts)) for t, text in f.predictions.items()} for f in facts]

    def reasons(self, m: int, n: int) -> list[Reason]:
        """The similarities of two submissions."""
        a, b = self.facts[m], self.facts[n]
        if a.student == b.student:
            return [Reason(f"handed in twice for the student '{a.name}'", CERTAIN)]
        out = [Reason("begun by one and the same 'lab start' (a copied folder)", CERTAIN)] if a.token == b.token else []
        out += self._numbers(m, n)
        out += self._passages(m, n)
        out += self._programs(m, n)
        return out + self._predictions(m, n) if out else out

    def _numbers(self, m: int, n: int) -> list[Reason]:
        """The same value under different parameters, where it is wrong for at least one."""
        out = []
        a, b = self.facts[m], self.facts[n]
        fits: dict[int, list[str]] = {m: [], n: []}
        weights = {m: 0.0, n: 0.0}
        both, weight = [], 0.0
        for task in a.given:
            if task not in b.given or task not in a.expected or task not in b.expected:
                continue
            digits = _equal(a.given[task], b.given[task])
            if digits < 3 or within(a.expected[task], b.expected[task], *a.tolerances[task]):
                continue
            mine, theirs = task in self.wrong[m], task in self.wrong[n]
            if mine and theirs:
                both.append(task)
                weight += 0.6 * (digits - 1)
            elif mine and _right(b, task):
                fits[m].append(task)
                weights[m] += self.numbers.surprise(task, b.given[task], digits)
            elif theirs and _right(a, task):
                fits[n].append(task)
                weights[n] += self.numbers.surprise(task, a.given[task], digits)
        for copier, owner in ((m, n), (n, m)):
            if fits[copier]:
                one, other = self.facts[copier].name, self.facts[owner].name
                told = f"numbers of {one} are the right ones of {other}: {', '.join(fits[copier])}"
                tried = sum(t in self.facts[owner].expected for t in self.wrong[copier])  # any of them might have been the one that fits
                out.append(Reason(told, weights[copier] - math.log10(math.comb(tried, len(fits[copier])))))
        if both and not _same_slip(a, b):
            told = f"the same wrong numbers under different parameters: {', '.join(both)}"
            out.append(Reason(told, weight, weak=True))
        return out

    def _passages(self, m: int, n: int) -> list[Reason]:
        out = []
        a, b = self.facts[m], self.facts[n]
        for task in (t for t in a.texts if t in b.texts):
            common = {p for t, p in self.texts[m] & self.texts[n] if t == task}
            if not common:
                continue
            if len(common) < LEAST_PIECES:
                continue
            weight = min(self._phrase_weight(task, common, m, n), CERTAIN)
            runs = passages(a.texts[task].split(), common)
            words = sum(map(len, runs))
            told = f"the same {words} words in '{task}'"
            if a.texts[task] != b.texts[task]:
                told = f"the same {words} words in '{task}': “{' '.join(max(runs, key=len)[:12])} …”"
            out.append(Reason(told, weight))
        return out

    def _phrase_weight(self, task: str, common: set[tuple[str, ...]], m: int, n: int) -> float:
        """The weight of common pieces: each counts by how little the texts of others let expect it, and the most likely one not at all.

        Who has half of the pieces as well is one of the copiers and no witness of what people write.
        """
        having = Counter(k for piece in common for k in self.writers[task, piece])
        without = {m, n, *(k for k, count in having.items() if 2 * count >= len(common))}
        weights = sorted(min(self.phrases.surprise(piece, without), PIECE) for piece in common)
        return sum(weights[1:])

    def _programs(self, m: int, n: int) -> list[Reason]:
        out = []
        a, b = self.facts[m], self.facts[n]
        for name in (f for f in a.files if f in b.files):
            plain = normal_source(a.files[name])
            one, other = ({s for f, s in self.sources[k] if f == name} for k in (m, n))
            if len(plain) >= LEAST_SOURCE and plain == normal_source(b.files[name]) and one:
                out.append(Reason(f"the same file {name}", CERTAIN))
                continue
            share = len(one & other) / len(one | other) if one or other else 0.0
            if min(len(one), len(other)) >= LEAST_SHAPES and share >= NEAR:
                told = f"the same structure in {name}: {share:.0%} of its statements, whatever they are named"
                out.append(Reason(told, min(CERTAIN, 6 + 10 * (share - NEAR))))
        return out

    def _predictions(self, m: int, n: int) -> list[Reason]:
        a, b = self.facts[m].predictions, self.facts[n].predictions
        same = [t for t in a if b.get(t) == a[t]]
        weight = min(sum(self.guesses[m][t] for t in same), PREDICTIONS)
        if len(same) < 2 or weight < 0.5:
            return []
        return [Reason(f"the same predictions: {', '.join(same)}", weight, weak=True)]


def _rarity(count: int, of: int) -> float:
    """How unlikely a thing is that ``count`` of ``of`` students have, decimal digits."""
    return math.log10(of / count) if count else 0.0


def _own(sets: Sequence[set[Any]], tokens: Sequence[str]) -> list[set[Any]]:
    """Each set without what several have, which is what people write or get wrong anyway; copies of one folder count once."""
    holders: dict[Any, set[str]] = defaultdict(set)
    for one, token in zip(sets, tokens, strict=True):
        for x in one:
            holders[x].add(token)
    most = max(COMMON, len(sets) // 50)
    return [{x for x in one if len(holders[x]) <= most} for one in sets]


def _right(facts: Facts, task: str) -> bool:
    return within(facts.given[task], facts.expected[task], *facts.tolerances[task])


def _wrong(facts: Facts) -> dict[str, float]:
    """Task -> wrong answer that is none of the usual mistakes, and no round number."""
    out: dict[str, float] = {}
    for task, value in facts.given.items():
        if task not in facts.expected or _right(facts, task):
            continue
        if any(within(value, wrong, 0.02, 0.0) for wrong in facts.usual.get(task, ())):
            continue
        if _digits(value) >= 3:
            out[task] = value
    return out


def _same_slip(a: Facts, b: Facts) -> bool:
    """Whether both made a usual mistake that leads to the same value whatever the parameters, as running the machine without them.

    Then their other wrong numbers are the same without a copy.
    """
    for task in a.given.keys() & b.given.keys() & a.expected.keys() & b.expected.keys():
        if _right(a, task) or _right(b, task) or not within(a.given[task], b.given[task], 0.01, 0.0):
            continue
        if all(any(within(f.given[task], wrong, 0.02, 0.0) for wrong in f.usual.get(task, ())) for f in (a, b)):
            return True
    return False


def _digits(value: float) -> int:
    """The significant digits of a number as a person wrote it."""
    if not value or not math.isfinite(value):
        return 0
    return len(f"{abs(value):.6e}".split("e")[0].replace(".", "").rstrip("0"))


def _equal(one: float, other: float) -> int:
    """The digits to which two numbers are one and the same, one of them perhaps rounded; 0 if they are not."""
    digits = min(_digits(one), _digits(other), 6)
    if digits < 3:
        return 0
    return digits if f"{one:.{digits - 1}e}" == f"{other:.{digits - 1}e}" else 0
