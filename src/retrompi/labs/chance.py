"""How likely two people write the same by chance, by the class itself: words by the words before them, numbers by their spread."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from retrompi.labs.tokens import WORDS

__all__ = ["Numbers", "Phrases"]

NEIGHBOURHOOD = 0.1
"""The values within this share of a number tell how densely the class's values lie there."""


class Phrases:
    """The words of a class: how surprising a piece's last word is after the others, in the texts of everybody else.

    Interpolated by the rule of Witten and Bell: a context that is followed by many different words says little about the next one, and a
    shorter context is asked.
    """

    def __init__(self, texts: Sequence[Collection[Sequence[str]]], known: Sequence[str]) -> None:
        """``texts``: the texts of each student, as words; ``known``: words that all have read."""
        self._each = [_count_sequences(words) for words in texts]
        self._all: Counter[tuple[str, ...]] = _count_sequences([known])
        for counts in self._each:
            self._all.update(counts)
        self._after: dict[tuple[str, ...], set[str]] = {}
        for gram in self._all:
            self._after.setdefault(gram[:-1], set()).add(gram[-1])

    def surprise(self, piece: tuple[str, ...], without: Collection[int]) -> float:
        """-log10 of the probability of the piece's last word after the others, by all texts but those of the students ``without``."""
        chance = 1 / (1 + len(self._after[()]))
        for begin in range(len(piece) - 1, -1, -1):
            before = piece[begin:-1]
            left = {w: n for w in self._after.get(before, ()) if (n := self._count((*before, w), without)) > 0}
            if not left:
                break  # nobody else has written it: a longer context is not there either
            chance = (left.get(piece[-1], 0) + len(left) * chance) / (sum(left.values()) + len(left))
        return -math.log10(chance)

    def _count(self, gram: tuple[str, ...], without: Collection[int]) -> int:
        return self._all[gram] - sum(self._each[k][gram] for k in without)


def _count_sequences(texts: Collection[Sequence[str]]) -> Counter[tuple[str, ...]]:
    """Every sequence of one to `WORDS` words, and how often it is there."""
    return Counter(
        tuple(words[i : i + length]) for words in texts for length in range(1, WORDS + 1) for i in range(len(words) - length + 1)
    )


class Numbers:
    """The right answers of a class, task by task: how many of them lie around a number."""

    def __init__(self, expected: Sequence[Mapping[str, float]]) -> None:
        self._sorted = {t: sorted(e[t] for e in expected if t in e) for t in {t for e in expected for t in e}}

    def surprise(self, task: str, value: float, digits: int) -> float:
        """-log10 of the probability that somebody's right answer has the first ``digits`` digits of ``value``."""
        around = self._sorted.get(task, [])
        low, high = sorted((value * (1 - NEIGHBOURHOOD), value * (1 + NEIGHBOURHOOD)))
        near = bisect_right(around, high) - bisect_left(around, low)
        mantissa = float(f"{abs(value):e}".split("e")[0])
        width = 10.0 ** (1 - digits) / mantissa  # of all numbers that are written like this one, relative to it
        chance = (near + 1) / (len(around) + 1) * width / (2 * NEIGHBOURHOOD)
        return -math.log10(min(chance, 1.0))
