"""docs/add-a-parameter.md: its changes are made to a copy of the source; `make exhaustive` builds the engine there and runs its models."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from changed_source import build, changed_copy, python


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return changed_copy("docs/add-a-parameter.md", tmp_path_factory.mktemp("source"))


def test_one_line_is_a_field_everywhere(changed: Path) -> None:
    """The declaration alone: types, checks, the engine's struct and its reader."""
    told = python(changed, """
import json
from retrompi.base.errors import UsageError
from retrompi.spec import cpp
from retrompi.spec.media import Pipe, Ring, Stream
ends, sizes = ("rank", "rank"), {"packet": 64, "header": 8}
errors = []
for make, more in ((Ring, {"slots": 1, "fence": -1.0}), (Stream, {"call": 0.0, "fence": 1e-6}), (Pipe, {}), (Pipe, {"capacity": 0.5})):
    try:
        make(ends, **sizes, **more)
    except (TypeError, UsageError) as error:
        errors.append(f"{type(error).__name__}: {error}")
print(json.dumps({"errors": errors, "header": cpp.header(), "ring": Ring(ends, **sizes, slots=1).to_engine()}))
""")  # fmt: skip
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


@pytest.mark.exhaustive
@pytest.mark.skipif(shutil.which(os.environ.get("CXX", "c++")) is None, reason="no C++ compiler")
def test_the_models_of_the_page_carry_messages(changed: Path) -> None:
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
""")  # fmt: skip
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
