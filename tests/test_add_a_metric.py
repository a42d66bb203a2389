"""docs/add-a-metric.md: one line declares a counter, one counts it; the changes are made to a copy of the source.

`make exhaustive` builds the engine there and runs a study of the new metric.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from changed_source import build, changed_copy, python
from doc_pages import blocks

PAGE = "docs/add-a-metric.md"


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return changed_copy(tmp_path_factory.mktemp("source"), PAGE)


def test_a_metric_is_one_file_besides_what_counts_it() -> None:
    edited = [b.title for b in blocks(PAGE) if b.kind == "diff"]
    assert edited == ["src/retrompi/spec/declare/result.py", "src/retrompi/engine/mpi/receive.cpp"]


def test_one_line_is_a_metric_everywhere(changed: Path) -> None:
    """The declaration alone: the engine's struct, the result, the metric and what is held for it of a large study's runs."""
    told = python(changed, """
import json
from retrompi.sim.result import Result, counters_of
from retrompi.spec.compiled import cpp
from retrompi.spec.declare.result import Counters, outputs
from retrompi.studies.define import metrics
run = {"outcome": "completed", "facts": {"unexpected": 7}}
print(json.dumps({
    "header": cpp.header(), "result": Result().unexpected, "answer": counters_of(dict.fromkeys(outputs(Counters), 3))["unexpected"],
    "metric": metrics.NAMES["unexpected"], "value": metrics.parse("unexpected").of(run), "facts": "unexpected" in metrics.facts(),
    "older": metrics.parse("unexpected").of({**run, "facts": {}}),
}))
""")
    header = told.pop("header")
    assert "  int64_t unexpected{};  // messages that came before their receive was posted" in header
    assert '    f("unexpected", &CounterFields::unexpected);' in header
    assert told == {"result": 0, "answer": 3, "metric": "unexpected messages, count", "value": 7.0, "facts": True, "older": None}


@pytest.mark.exhaustive
@pytest.mark.skipif(shutil.which(os.environ.get("CXX", "c++")) is None, reason="no C++ compiler")
def test_the_metric_of_the_page_is_counted(changed: Path) -> None:
    """Builds the changed engine: a message that is taken in while another is awaited is unexpected, one that is awaited is not."""
    build(changed)
    told = python(changed, """
import json
from retrompi._engine import Trace
from retrompi.sim import simulate
from retrompi.spec.question import Question, Replay
from retrompi.store import open_store
from retrompi.store.lookup import answer
from retrompi.studies.archive import export
from retrompi.studies.compare import run_differences
from retrompi.studies.define import metrics
from retrompi.studies.read import interval_reasons
def question(*tags):
    sends, receives = ["0 send 1 0 1000 6", "0 send 1 1 1000 6"], [f"1 recv 0 {tag} 1000 6" for tag in tags]
    ranks = (["0 init", *sends, "0 finalize"], ["1 init", *receives, "1 finalize"])
    return Question("wmpi", "nt-pair", Replay(Trace.parse([("\\n".join(lines).encode(), f"rank {r}", r) for r, lines in enumerate(ranks)])))
if __name__ == "__main__":
    counted = [simulate.run(question(*tags)).unexpected for tags in ((0, 1), (1, 0))]
    store = open_store("runs.db")
    stored = store.run(answer(store, question(1, 0)).run_id)
    print(json.dumps({
        "counted": counted, "metric": metrics.parse("unexpected").of(stored), "column": export._RUN["unexpected"],
        "compared": run_differences.RESULTS["facts.unexpected"].unit, "reason": interval_reasons._COUNTERS["unexpected"],
    }))
""")
    assert told == {
        "counted": [0, 1], "metric": 1.0, "column": ["int", "unexpected messages"], "compared": "count", "reason": "unexpected messages",
    }
