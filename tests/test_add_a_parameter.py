"""docs/add-a-parameter.md and docs/add-a-call.md: their changes are made to a copy of the source; `make exhaustive` builds the engine
there and runs what they add."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from changed_source import build, changed_copy, python


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return changed_copy(tmp_path_factory.mktemp("source"), "docs/add-a-parameter.md", "docs/add-a-call.md")


def test_one_line_is_a_field_everywhere(changed: Path) -> None:
    """The declaration alone: types, checks, the engine's struct and its reader."""
    told = python(changed, """
import json
from retrompi.base.errors import UsageError
from retrompi.spec.compiled import cpp
from retrompi.spec.media import Pipe, Ring, Stream
ends, sizes = ("rank", "rank"), {"packet": 64, "header": 8}
errors = []
for make, more in ((Ring, {"slots": 1, "fence": -1.0}), (Stream, {"call": 0.0, "fence": 1e-6}), (Pipe, {}), (Pipe, {"capacity": 0.5})):
    try:
        make(ends, **sizes, **more)
    except (TypeError, UsageError) as error:
        errors.append(f"{type(error).__name__}: {error}")
print(json.dumps({"errors": errors, "header": cpp.header(), "ring": Ring(ends, **sizes, slots=1).to_engine()}))
""")
    negative, foreign, missing, small = told["errors"]
    assert negative == "UsageError: ring: fence: '-1' is negative"
    assert foreign.startswith("TypeError")
    assert "fence" in foreign
    assert missing.startswith("TypeError")
    assert "capacity" in missing
    assert small.startswith("UsageError: pipe: capacity")
    assert "  Work fence = {0};  // memory fence before a packet is linked (ps)" in told["header"]
    assert 'r.seconds("fence", fence.ps);' in told["header"]
    assert "make_chan(World&, SharedParts&, const PipeSpec&, Proc&, Proc&);" in told["header"]
    assert told["ring"]["fence"] == 0.0


def test_one_row_is_a_call_everywhere(changed: Path) -> None:
    """The row alone: the engine's operation, word and attributes, the sets of names, MPI's name, and what a run needs."""
    told = python(changed, """
import json
from retrompi.convert.same_messages import _EPOCHS
from retrompi.sim.preflight import ONE_SIDED
from retrompi.spec.declare.calls import BY_NAME, Calls, function_of, is_of_mpi3
from retrompi.spec.compiled.cpp_calls import calls_header
from retrompi.traces.lines import Renumber
line = Renumber(lambda rank: rank + 2, lambda comm: comm, lambda window: window + 5).line("0 Win_sync win=1")
print(json.dumps({"header": calls_header(), "line": line, "function": function_of("Win_sync"), "new": is_of_mpi3("Win_sync"),
                  "keys": BY_NAME["Win_sync"].attributes, "in": ["Win_sync" in ONE_SIDED, "Win_sync" in _EPOCHS],
                  "needs": Calls(frozenset({"win_sync"})).one_sided}))
""")
    assert "WinWait, WinSync, Mark }" in told["header"]
    assert "{ActionKind::WindowSync, 0x80, Form::Bare},  // WinSync" in told["header"]
    assert '{"Win_sync", Op::WinSync, Form::Bare, 0, CommHow::Split, 0x201, "one-sided' in told["header"]
    assert told["line"] == "2 Win_sync win=6"
    assert (told["function"], told["new"], told["keys"]) == ("MPI_Win_sync", True, ["comm", "win"])
    assert told["in"] == [True, True]
    assert told["needs"]


@pytest.mark.exhaustive
@pytest.mark.skipif(shutil.which(os.environ.get("CXX", "c++")) is None, reason="no C++ compiler")
def test_the_changed_engine_runs_the_models_and_the_call(changed: Path) -> None:
    """Builds the changed engine (the slowest thing of this file: two minutes of one processor)."""
    build(changed)
    told = python(changed, """
import json
from retrompi.base.errors import UsageError
from retrompi.manual.media import media_page
from retrompi.sim import simulate
from retrompi.spec.question import Question, pingpong
if __name__ == "__main__":
    def time(model, size, **sets):
        sets = {k.replace("__", "."): v for k, v in sets.items()}
        (row,) = simulate.benchmark(Question(f"./{model}", "nt-pair", pingpong([size], 3), "shared", sets))
        return row["time_us"]
    def refused(model, **sets):
        try:
            return time(model, 1024, **sets)
        except UsageError as error:
            return str(error)
    print(json.dumps({
        "page": media_page().text,
        "fence": [time("tubes", 1024, tubes__fence=f) for f in ("0 us", "2 us", "10 us")],
        "pipe": [time("tubes:pipes", size) for size in (0, 1024, 65536)],
        "narrow": time("tubes:pipes", 65536, tubes__capacity="512 B"),
        "call": time("tubes:pipes", 1024, platform__host__syscall="1 ms"),
        "refused": [refused("tubes:pipes", tubes__fence="1 us"), refused("tubes:pipes", platform__host__delayed_ack="1 ms")],
    }))
""")
    assert "| `fence` | s | `0` |" in told["page"]
    assert "## Pipe" in told["page"]
    none, some, long = told["fence"]
    assert some - none == pytest.approx(2, abs=1e-6)  # one packet a message, on a host of speed 1
    assert long - none == pytest.approx(10, abs=1e-6)
    empty, small, large = told["pipe"]
    assert 0 < empty < small < large
    assert told["narrow"] > large  # more packets, each with two system calls
    assert told["call"] > small + 1900  # two of a millisecond in place of microseconds
    assert all(isinstance(told, str) for told in told["refused"])
    told = python(changed, """
import json
from pathlib import Path
from retrompi import _engine, traces
from retrompi.reference.compare import UNOBSERVED
from retrompi.sim import simulate
from retrompi.sim.resolved import Resolved
from retrompi.spec.question import Question, Replay
def replay(text):
    trace = traces.parse(text)
    assert traces.Trace.load(trace.dump()) == trace
    asked = Resolved.of(Question("craympt", "cray-t3e", Replay(trace), "distributed"))  # it has one-sided operations, but looks for nothing
    found = _engine.simulate({**UNOBSERVED, **simulate.engine_rows(asked), "test_cpu": 1e-6}, trace)
    return found["outcome"], found["time_ps"]
if __name__ == "__main__":
    text = Path("sync.txt").read_text()
    trace = traces.parse(text)
    bare = traces.parse(text.replace(" win=1", ""))
    print(json.dumps({
        "written": trace.to_ti(0), "calls": trace.info()["calls"], "refused": [row[2] for row in bare.unsupported()],
        "with": replay(text), "without": replay("".join(line for line in text.splitlines(True) if "sync" not in line)),
    }))
""")
    assert "0 Win_sync win=1\n" in told["written"]
    assert told["calls"]["Win_sync"] == 2
    assert told["refused"][-2:] == ["Win_sync", "Win_sync"]
    (outcome, time), (_, before) = told["with"], told["without"]
    assert outcome == "completed"
    assert time > before  # a call of the library more
