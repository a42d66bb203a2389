"""Published statements and the verdicts on them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrompi.api.frames import Progress, Row, Table, opened, reporting
from retrompi.papers.claims import Claim

if TYPE_CHECKING:
    from retrompi.papers import Reproduction, Verdict
    from retrompi.store import Store

__all__ = ["Claim", "Verdicts", "claim", "claims", "verdicts"]


class _Claims(Table):
    def __init__(self, found: Sequence[Claim]) -> None:
        self.found = found

    @property
    def title(self) -> str:
        return "published statements"

    @property
    def rows(self) -> Sequence[Row]:
        return [c.row() for c in self.found]


class Verdicts(Table):
    """The verdicts on published statements: a row each, with what was simulated, what is published, and the words of the check.

    >>> retrompi.verdicts("baker-fox").frame[["id", "verdict", "observed", "unit"]]    # doctest: +SKIP
    """

    def __init__(self, found: Sequence[Verdict], papers: Sequence[Reproduction]) -> None:
        self.found, self.papers = found, papers

    @property
    def title(self) -> str:
        """Verdicts of which papers."""
        return f"verdicts on {', '.join(p.paper.key for p in self.papers)}"

    @property
    def rows(self) -> Sequence[Row]:
        """id, use, verdict, observed, low, high, unit, note and more, of every statement."""
        return [v.row() for v in self.found]

    def counts(self, held_out: bool) -> tuple[int, int]:
        """(passed, judged) of the statements that are held out, or of those that a fit has seen."""
        mine = [v for v in self.found if (v.use == "validate") is held_out and v.verdict in ("pass", "fail")]
        return sum(v.verdict == "pass" for v in mine), len(mine)


def claim(name: str) -> Claim:
    """A published statement by its identifier. UsageError for an unknown one.

    >>> found = retrompi.claim("BF-SM-12a")
    >>> found.observable, found.unit
    ('bandwidth at 512K', 'MByte/s')
    """
    from retrompi.papers.claims import find

    return find(name)


def claims(paper: str | None = None) -> Table:
    """The published statements of a paper, or all.

    >>> len(retrompi.claims("baker-fox")) > 50
    True
    """
    from retrompi.papers.claims import by_paper, load

    return _Claims(load() if paper is None else by_paper(paper))


def verdicts(
    paper: str | Path | None = None, *, store: Store | Path | str | None = None, fresh: bool = False, jobs: int = 2,
    progress: Progress | None = None,
) -> Verdicts:  # fmt: skip
    """Simulates what a paper (key or folder; None: all) measured, unless it is stored, and judges its statements.

    ``progress`` is called with (done, all, what); True shows a bar. Raises UsageError for an unknown paper, InputError for a faulty folder.

    >>> retrompi.verdicts("krishna").counts(held_out=True)    # doctest: +SKIP
    (14, 14)
    """
    from retrompi.papers import all_papers, judge_all, of_curves, run_papers
    from retrompi.papers.paper import working_with

    at = opened(store)
    with working_with(*(all_papers() if paper is None else [str(paper)])) as plans, reporting(progress, "studies") as report:
        done: list[Any] = list(run_papers([p.key for p in plans], at, fresh, report, workers=jobs))
        found = done[0].verdicts if paper is not None else [*judge_all(done), *of_curves(done)]
    return Verdicts(found, done)
