"""Judging the published statements again, as a job of the studio."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["run"]


def run(report: Callable[[int, int, str], None], store: str | None, papers: Sequence[str], fresh: bool = False) -> dict[str, Any]:
    """Replays studies (all if ``papers`` is empty) and stores their verdicts; stored runs are reused unless ``fresh``.

    Returns how many statements pass, fail and are not judged by use, how many runs were simulated, and the number of runs.
    """
    from retrompi.papers import all_papers, find_paper, run_papers
    from retrompi.papers.judging.verdicts import summary
    from retrompi.store import open_store

    def whole(done: int, total: int, what: str) -> None:
        report(round(done / 1000), round(total / 1000), what)  # work is counted in thousandths of a job

    keys = [find_paper(p).key for p in papers] or list(all_papers())
    done = run_papers(keys, open_store(store), fresh, whole)
    told = summary([v for s in done for v in s.verdicts])
    return {
        "papers": keys,
        "simulated": sum(s.simulated for s in done),
        "runs": sum(len(s.runs) for s in done),
        "counts": [{"use": s.use, "passed": s.passed, "failed": s.failed, "unjudged": s.unjudged} for s in told],
    }
