"""docs/add-an-option.md: one line declares an option of a question, one gives it to a command; made in a copy of the source."""

from __future__ import annotations

from pathlib import Path

import pytest
from changed_source import changed_copy, python
from doc_pages import ROOT, blocks

PAGE = "docs/add-an-option.md"
TRACE = ROOT / "examples" / "traces" / "jacobi-4.tar.zst"


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return changed_copy(tmp_path_factory.mktemp("source"), PAGE)


def test_an_option_is_two_files_besides_what_it_does() -> None:
    edited = [b.title for b in blocks(PAGE) if b.kind == "diff"]
    assert edited == ["src/retrompi/spec/question.py", "cli/replay.py", "src/retrompi/sim/simulate.py"]


def test_it_is_an_option_of_everything(changed: Path) -> None:
    """Of a command, a function, a scenario's file and a study's axis; each is the same question, and is found in the store as such."""
    told = python(changed, f"""
import json
from pathlib import Path
from click.testing import CliRunner
import retrompi
from retrompi.cli.main import cli
from retrompi.spec.question import Question, Replay
from retrompi.studies.define import case, scenario
from retrompi.store import open_store
trace, store = {str(TRACE)!r}, str(Path("store.db").resolve())

def command(*more):
    args = ["replay", trace, "-m", "wmpi", "-p", "nt-cluster", *more, "--store", store]
    done = CliRunner().invoke(cli, [*args, "--json"])
    return json.loads(done.stdout) if done.exit_code == 0 else str(done.exception)

whole, half = (command(*more) for more in ((), ("--computation", "0.5")))
again = retrompi.replay(trace, "wmpi", "nt-cluster", computation=0.5, store=store)
plain = retrompi.replay(trace, "wmpi", "nt-cluster", store=store)
file = Path("half.toml")
file.write_text('''name = "half"
title = "t"
summary = "s"
reproduces = "what-if: nothing"
model = "wmpi"
platform = "nt-cluster"
mode = "natural"
computation = 0.5
[trace]
file = "%s"
''' % trace)
read = scenario.load(file)
axis = case.apply(read, {{"computation": "2"}})
row = read.question().row()
stored = open_store(store)
print(json.dumps({{
    "compute": [max(r["compute_s"] for r in run["per_rank"]) for run in (whole, half)], "same": [again.run_id, plain.run_id],
    "runs": [half["run_id"], whole["run_id"]], "row": row["computation"], "axis": axis.question().computation,
    "back": Question.from_row(row, lambda r: read.question().workload.trace) == read.question(),
    "hashes": len({{read.hash, axis.hash, case.apply(read, {{"computation": "1"}}).hash}}),
    "default": "computation" in case.apply(read, {{"computation": "1"}}).question().row(),
    "wrong": command("--computation", "-1"), "shown": read.row()["computation"], "about": case.about(read, "computation").value,
}}))
""")
    whole, half = told.pop("compute")
    assert whole > 0
    assert half == pytest.approx(whole / 2, rel=0.1), "what the clock interrupts is as before"
    assert told.pop("same") == told.pop("runs"), "a stored run is found by whoever asks the same"
    assert "--computation: '-1'" in told.pop("wrong")
    assert told == {"row": 0.5, "axis": 2.0, "back": True, "hashes": 3, "default": False, "shown": 0.5, "about": 0.5}
