"""How many places state a run's question, its result, its end, what is one paper's, the kinds of links: no more than there are."""

from __future__ import annotations

from pathlib import Path

from cases import for_each
from scripts import ROOT, script

places = script("packaging/places.py")


@for_each("kind", list(places.KINDS))
def test_no_more_places_state_the_same(kind: str) -> None:
    found = places.KINDS[kind](ROOT)
    assert len(found) <= places.MOST[kind], "\n".join(map(str, found))


@for_each(
    "kind, file, text",
    [
        ("question", "a.py", 'asked = Question(seed=1, kills=(), wildcards="free")\n'),
        ("result", "a.py", 'COUNTS = ("messages", "packets", "frames")\n'),
        ("result", "a.py", 'FACTS = (("messages", "count"), ("packets", "count"), ("lost", "count"))\n'),
        ("result", "a.py", 'row = {"time_us": 1.0, "size_B": 2, "repetitions": 1}\n'),
        ("result", "a.cpp", 'o["sent"] = k.sent;\no["received"] = k.received;\no["bytes_sent"] = k.bytes_sent;\n'),
        ("outcome", "a.py", 'good = run["outcome"] == "completed"\n'),
        ("outcome", "a.py", 'bad = outcome in ("deadlock", "aborted")\n'),
        ("outcome", "a.cpp", 'close(p, "aborted", &a);\n'),
        ("papers", "a.py", 'slow = kind in ("suite", "nas")\n'),
        ("papers", "a.py", 'colour = {"wmpi": 0}\n'),
        ("papers", "a.py", 'rival = "wmpi:whole-lines"\n'),
        ("papers", "a.py", 'five = plan.key == "krishna-2010"\n'),
        ("papers", "a.py", 'goal = find("LW-R-06")\n'),
        ("papers", "nas.py", 'from retrompi.base import units\n'),
        ("link", "a.py", 'two = link.kind in ("cable", "torus")\n'),
        ("link", "a.py", 'return Link(kind="switch", shape=())\n'),
        ("link", "a.py", 'elif layout is LinkLayout.PORTS:\n'),
        ("link", "a.cpp", 'if (link.kind == "hub") return hub_wire(loop);\n'),
    ],
)
def test_a_list_or_a_literal_is_found(kind: str, file: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "cli").mkdir(parents=True)
    (tmp_path / "cli" / file).write_text(text)
    (place,) = places.KINDS[kind](tmp_path)
    assert (place.file, place.line) == (f"cli/{file}", 1)


def test_what_names_one_field_is_no_list(tmp_path: Path) -> None:
    (tmp_path / "cli").mkdir()
    (tmp_path / "cli" / "a.py").write_text('lost = run["facts"]["lost"]\nsent = run["sent"]\n')
    assert places.result(tmp_path) == []


def test_an_example_in_a_docstring_and_a_library_of_today_are_no_places(tmp_path: Path) -> None:
    texts = {"cli": '"""Examples: retrompi reproduce baker-fox"""\ndef f():\n    """wmpi"""\n', "src/retrompi/measure": 'x = "mpich"\n'}
    for folder, text in texts.items():
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.py").write_text(text)
    assert places.papers(tmp_path) == []


def test_a_switch_may_be_something_else(tmp_path: Path) -> None:
    (tmp_path / "cli").mkdir()
    (tmp_path / "cli" / "a.py").write_text('stages = ("library", "copy", "switch")\n')
    assert places.link(tmp_path) == []


def test_a_kind_has_a_bound() -> None:
    assert places.KINDS.keys() == places.MOST.keys()
