"""The script that changes the engine in small ways: what it changes, and that the quick set notices a wrong answer."""

from __future__ import annotations

from types import ModuleType

import program_generator
import pytest
from cases import for_each
from scripts import script


@pytest.fixture
def mutants() -> ModuleType:
    return script("packaging/mutants.py")


@for_each("source, changed", [
    ("  if (a < 7) {", {"  if (a <= 7) {", "  if (a < 8) {"}),
    ("  if (a.full())", {"  if (!(a.full()))"}),
    ("{\n  now += left;\n  ++count;\n}", {"{\n  ++count;\n}", "{\n  now += left;\n}", "{\n  ++count;\n  now += left;\n}",
                                          "{\n  now -= left;\n  ++count;\n}", "{\n  now += left;\n  --count;\n}"}),
    ("  Ps end = 0;", {"  Ps end = 1;"}),
    ("  // a < 7", set()),
    ('  throw Abort{"a < 7"};', set()),
    ("  RETROMPI_ASSERT(a < 7);", set()),
    ("#include <a>", set()),
    ("  return run<int>(x);", set()),
])
def test_what_is_changed(source: str, changed: set[str], mutants: ModuleType) -> None:
    assert changed <= {change.applied(source) for change in mutants.changes_of("f.cpp", source)}
    assert changed or not list(mutants.changes_of("f.cpp", source))


def test_a_change_says_where_it_is(mutants: ModuleType) -> None:
    (change,) = [c for c in mutants.changes_of("host/f.cpp", "a;\n  if (a == b) c();") if "!=" in c.text]
    assert str(change) == "host/f.cpp:2: if (a == b) c()  ->  if (a != b) c()"


def test_a_wrong_answer_is_noticed(mutants: ModuleType) -> None:
    """The engine passes; with an answer of the specification that is a picosecond off, or a run of picoseconds.py that is, it does not."""
    (seed,) = program_generator.seeds(1)
    asked = mutants.questions(1, 1, seed)
    assert mutants.first_wrong(asked) == ""
    for question in (asked[0], asked[-1]):
        answer = question["answer"]
        question["answer"] = {**answer, "time_ps": answer["time_ps"] + 1}
        assert mutants.first_wrong(asked).startswith(f"{question['name']}: time_ps: ")
        question["answer"] = answer
