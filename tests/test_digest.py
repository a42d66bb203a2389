"""The screen about a reproduced paper: it fits, it counts right, and every anomaly is on it."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from retrompi.papers import all_papers
from retrompi.papers.judging.verdicts import judge
from retrompi.papers.reproduce.digest import LINES, WIDTH, digest
from retrompi.papers.reproduce.reproduction import Reproduction
from retrompi.papers.statements.claims import by_paper
from retrompi.papers.statements.paper import find_paper


def study(key: str, seed: int, share_failed: float) -> Reproduction:
    """A paper of the package with verdicts drawn at random."""
    rng, claims = random.Random(seed), by_paper(key)
    drawn = []
    for v in judge(claims, [], {}):
        if v.use not in ("calibrate", "validate") or rng.random() < 0.1:
            drawn.append(v)
            continue
        observed = rng.choice([rng.uniform(0, 1e6), "a text of some length about " + "what came out " * rng.randint(1, 9)])
        drawn.append(replace(v, verdict="fail" if rng.random() < share_failed else "pass", observed=observed))
    return Reproduction(find_paper(key), tuple(claims), verdicts=drawn)


@pytest.mark.parametrize("key", all_papers())
def test_it_fits_a_screen_whatever_fails(key: str) -> None:
    for seed, share in enumerate((0.0, 0.1, 0.5, 1.0)):
        lines = digest(study(key, seed, share))
        assert len(lines) <= LINES
        assert max(map(len, lines)) <= WIDTH
        assert not any("\n" in line for line in lines)


def test_it_counts_fitted_and_held_out_apart_and_every_row_adds_up() -> None:
    found = study("baker-fox", 3, 0.4)
    lines = digest(found)
    first = next(i for i, line in enumerate(lines) if line.startswith("pass "))
    last = max(i for i, line in enumerate(lines) if line.startswith("all "))  # after "all 3"
    for use, at in (("calibrate", slice(-26, -12)), ("validate", slice(-12, None))):
        counts = [[int(n) for n in line[at].split(" of ")] for line in lines[first + 1 : last + 1] if " of " in line[at]]
        mine = [v for v in found.verdicts if v.use == use and v.verdict != "unjudged"]
        assert counts[-1] == [sum(v.verdict == "pass" for v in mine), len(mine)]
        assert [sum(c[i] for c in counts[:-1]) for i in (0, 1)] == counts[-1]


def test_every_anomaly_and_the_number_of_what_fails_are_said() -> None:
    found = study("baker-fox", 4, 0.5)
    text = "\n".join(digest(found))
    assert sum(line.startswith(("  pass ", "  fail ", "  - ")) for line in text.splitlines()) == len(found.paper.why)
    failed = sum(v.verdict == "fail" and v.use in ("calibrate", "validate") for v in found.verdicts)
    assert f"{failed} statements fail" in text
