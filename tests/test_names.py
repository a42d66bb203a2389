"""Names that do not say what they name (packaging/names.py): no more than there are."""

from __future__ import annotations

from pathlib import Path

import pytest
from cases import for_each
from scripts import ROOT, script

names = script("packaging/names.py")


@for_each("kind", list(names.KINDS))
def test_there_are_no_more_of_them(kind: str) -> None:
    found = names.KINDS[kind](ROOT)
    assert len(found) <= names.MOST[kind], "\n".join(map(str, found))


def test_a_participle_that_stays_is_still_there() -> None:
    assert {(n.file, n.what) for n in names.all_participles(ROOT)} >= names.STAY.keys()


def _found(kind: str, folder: Path, files: dict[str, str]) -> list[tuple[str, str]]:
    for file, text in files.items():
        (folder / "cli" / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / "cli" / file).write_text(text)
    return [(n.file.removeprefix("cli/"), n.what) for n in names.KINDS[kind](folder)]


@for_each(
    "text, found",
    [
        ("def told(error): ...", ["told"]),
        ("class A:\n    async def _opened(self): ...", ["_opened"]),
        ("def f():\n    def judged(): ...", ["judged"]),
        ("def told_before(): ...\ndef read(): ...\ndef seed(): ...\ndef error_text(): ...", []),
        ("class A:\n    @property\n    def ended(self): ...", []),
    ],
)
def test_a_function_that_is_a_participle_is_found(text: str, found: list[str], tmp_path: Path) -> None:
    assert _found("participles", tmp_path, {"a.py": text}) == [("a.py", name) for name in found]


@for_each(
    "file, text, found",
    [
        ("a.py", "def f(room_B): return x.rooms", ["room_B", "rooms"]),
        ("a.py", "from retrompi import classroom, mushroom as m\nf(headroom=1)  # no room", ["mushroom", "headroom"]),
        ("a.py", 'text = "a room"', []),
        ("a.cpp", '// room\nx = "room"; /* room\nroom */ int64_t room() const;', ["room"]),
        ("lab_room.py", "", ["lab_room.py"]),
    ],
)
def test_an_identifier_with_a_room_is_found(file: str, text: str, found: list[str], tmp_path: Path) -> None:
    assert sorted(_found("room", tmp_path, {file: text})) == sorted((file, name) for name in found)


def test_a_class_that_two_modules_have_is_found(tmp_path: Path) -> None:
    files = {"a.py": "class Curve: ...\nclass _Own: ...", "b.py": "class Curve: ...\nclass _Own: ...", "c.py": "class Other: ..."}
    assert _found("classes", tmp_path, files) == [("a.py", "Curve"), ("b.py", "Curve")]


def test_classes_of_one_meaning_are_still_there() -> None:
    assert {name: {n.file for n in some} for name, some in names.same_names(ROOT).items()} == {
        name: set(files) for name, (files, _) in names.ONE_MEANING.items()
    }


def test_a_class_is_of_one_meaning_only_in_the_files_that_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "ONE_MEANING", {"Curve": (frozenset({"cli/a.py", "cli/b.py"}), "times by size")})
    files = {"a.py": "class Curve: ...", "b.py": "class Curve: ..."}
    assert _found("classes", tmp_path, files) == []
    assert _found("classes", tmp_path, {"c.py": "class Curve: ..."}) == [("a.py", "Curve"), ("b.py", "Curve"), ("c.py", "Curve")]


def test_a_kind_has_a_bound() -> None:
    assert names.KINDS.keys() == names.MOST.keys()
