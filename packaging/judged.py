"""What the package comes with that was simulated in advance: ``make judged``, a minute on two cores.

It simulates every paper and writes validate/judged.json, the verdicts, and src/retrompi/studio/requests/shipped_figures.json, the numbers
of the studio's first figures. Needed whenever a runtime, a platform, a statement or a check has changed; ``tests/test_judged.py`` tells
when. The scorecard shows the verdicts until somebody judges, and says by which version of the code they were made.
"""

from __future__ import annotations

import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from retrompi.papers import all_papers, run_papers
from retrompi.papers.reproduce.judged import document, file
from retrompi.store import code_version, open_store
from retrompi.studio.jobs.queue import Jobs
from retrompi.studio.jobs.resources import Resources
from retrompi.studio.requests import shipped_figures


def figures() -> None:
    """The first figures' numbers."""
    with tempfile.TemporaryDirectory() as folder:
        resources = Resources(Jobs(), str(Path(folder) / "store.db"))
        try:
            answers = dict(shipped_figures.simulate_answers(resources))
            shipped_figures.FILE.write_text(shipped_figures.document(code_version(), answers), encoding="utf-8")
        finally:
            resources.close()


def main() -> int:
    """Writes both files, or with ``figures`` only the studio's: seconds."""
    figures()
    if sys.argv[1:] == ["figures"]:
        return 0
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(str(Path(folder) / "judged.db"))
        done = run_papers(list(all_papers()), store, True, lambda n, of, what: print(f"{n / of:4.0%} {what}", file=sys.stderr))
        studies = []
        for study in done:
            runs = [store.run(i) for i in study.runs]
            studies.append((study.paper.key, [v.row() for v in study.verdicts], [(r["model"], r["platform"]) for r in runs]))
        text = document(code_version(), f"{datetime.now(UTC):%Y-%m-%d}", studies)
    file().write_text(text, encoding="utf-8")
    print(f"{sum(len(v) for _, v, _ in studies)} verdicts of {len(studies)} papers in {file()}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
