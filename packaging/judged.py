"""The verdicts that the package comes with: ``make judged`` simulates every paper and writes validate/judged.json (a minute on two cores).

Needed whenever a runtime, a platform, a statement or a check has changed; ``tests/test_judged.py`` tells when. The scorecard shows them
until somebody judges, and says by which version of the code they were made.
"""

from __future__ import annotations

import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from retrompi.papers import all_papers, run_papers
from retrompi.papers.judged import document, file
from retrompi.store import code_version, open_store


def main() -> int:
    """Writes the file, or with a path as the argument to that one."""
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else file()
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(str(Path(folder) / "judged.db"))
        done = run_papers(list(all_papers()), store, True, lambda n, of, what: print(f"{n / of:4.0%} {what}", file=sys.stderr))
        studies = []
        for study in done:
            runs = [store.run(i) for i in study.runs]
            studies.append((study.paper.key, [v.row() for v in study.verdicts], [(r["model"], r["platform"]) for r in runs]))
        text = document(code_version(), f"{datetime.now(UTC):%Y-%m-%d}", studies)
    place.write_text(text, encoding="utf-8")
    print(f"{sum(len(v) for _, v, _ in studies)} verdicts of {len(studies)} papers in {place}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
