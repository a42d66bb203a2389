"""A student's work as a value and as a folder: one state for the command line, the studio and a class's server."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from refusals import refused

from retrompi.base.errors import RetrompiError
from retrompi.labs import answers, start, student, text, work
from retrompi.labs import lab as _lab
from retrompi.labs.bench import Bench
from retrompi.labs.shelf import FolderShelf, pack, read_folder, unpack
from retrompi.store import open_store

ONE = _lab.lab("1")
PREDICTED = {"p-startup": "1 ms", "p-half": "4 KiB", "p-better": "twice the copy rate", "p-beyond": "3"}


def test_the_command_line_and_a_shelf_share_one_folder(tmp_path: Path, retrompi: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RETROMPI_STORE", str(tmp_path / "labs.db"))
    shelf = FolderShelf(tmp_path, "Ann Bee")
    assert shelf.labs() == []
    shelf.save(work.answer(shelf.open(ONE), ONE, {"p-startup": "1 ms"}))
    assert shelf.labs() == [ONE.name]
    told = retrompi("lab", "check", "1").out
    assert "p-startup" in told
    assert "sealed" in told
    assert shelf.open(ONE).state.sealed["p-startup"].text == "1 ms"
    retrompi("lab", "hint", "1", "half")
    assert work.hints(shelf.open(ONE), ONE, "half")
    other = retrompi("lab", "start", "1", "--student", "Ann Bee")
    assert other.code == 2, "the shelf's folder is the one that the command line would make"


def test_a_sheet_keeps_its_comments_and_reads_the_same(tmp_path: Path) -> None:
    shelf = FolderShelf(tmp_path, "Ann")
    sheet = shelf.place(ONE) / "answers.toml"
    shelf.open(ONE)
    sheet.write_text(sheet.read_text() + "\n# my own note = 7\n")
    given = {**PREDICTED, "p-startup": 'a "quoted" \\ text'}
    texts = 'two\nlines, and more\n\nand """ quotes\\'
    kept = shelf.save(work.seal(work.answer(shelf.open(ONE), ONE, given), ONE))
    kept = shelf.save(work.answer(kept, ONE, {"explain": texts}))
    kept = shelf.save(work.answer(kept, ONE, {"explain": texts, "advice": "first\nsecond"}))
    assert dict(shelf.open(ONE).answers) == {**given, "explain": texts, "advice": "first\nsecond"} == dict(kept.answers)
    assert "# my own note = 7" in sheet.read_text()
    shelf.save(work.answer(shelf.open(ONE), ONE, {"explain": "", "advice": "short"}))
    assert dict(shelf.open(ONE).answers) == {**given, "advice": "short"}
    assert "# my own note = 7" in sheet.read_text()


def test_a_save_of_what_was_changed_elsewhere_is_refused_and_a_change_is_done_again(tmp_path: Path) -> None:
    shelf = FolderShelf(tmp_path, "Ann")
    first, second = shelf.open(ONE), shelf.open(ONE)
    shelf.save(work.answer(first, ONE, {"p-startup": "1 ms"}))
    with refused(RetrompiError, "changed-meanwhile"):
        shelf.save(work.answer(second, ONE, {"p-half": "4 KiB"}))
    work.change(shelf, ONE, lambda w: work.answer(w, ONE, {"p-half": "4 KiB"}))
    assert dict(shelf.open(ONE).answers) == {"p-startup": "1 ms", "p-half": "4 KiB"}


def test_a_sealed_prediction_stays_and_an_answer_waits_for_it() -> None:
    begun = work.begin(ONE, "Ann")
    with refused(RetrompiError, "sealed | p-startup"):
        work.answer(begun, ONE, {"startup": "190 us"})
    sealed = work.seal(work.answer(begun, ONE, PREDICTED), ONE)
    assert set(sealed.state.sealed) == set(PREDICTED)
    assert sealed.state.intact
    with refused(RetrompiError, "sealed | p-half"):
        work.answer(sealed, ONE, {"p-half": "5 KiB"})
    assert work.answer(sealed, ONE, {"p-half": "4 KiB", "startup": "190 us"}).answers["startup"] == "190 us"


def test_an_edited_state_keeps_its_flag() -> None:
    begun = work.begin(ONE, "Ann")
    forged = replace(begun, state=replace(begun.state, sealed={"p-half": student.Sealed("7 KiB", 0)}))
    assert not forged.state.intact
    assert not work.seal(work.answer(forged, ONE, {"p-startup": "1 s"}), ONE).state.intact
    assert not work.hint(forged, ONE, "half")[0].state.intact


def test_open_answers_count_when_they_are_marked(tmp_path: Path) -> None:
    shelf = FolderShelf(tmp_path, "Ann")
    place = start.start(ONE, "Ann", shelf.place(ONE))
    bench = Bench(open_store(tmp_path / "labs.db"), place)
    start.solve(ONE, place, student.draw(ONE, "Ann"), bench, "Ann")
    _, grading = work.check(shelf.open(ONE), ONE, bench)
    texts = [r for r in grading.results if r.kind == "text"]
    assert [(r.status, r.points, r.open) for r in texts] == [("open", 0.0, r.of) for r in texts]
    assert grading.open == sum(r.of for r in texts) > 0
    assert grading.points + grading.open == grading.of
    assert grading.passed


@pytest.mark.parametrize("name", ["01", "02", "09", "10"])
def test_a_work_packed_and_unpacked_is_the_same(name: str, tmp_path: Path) -> None:
    lab = _lab.lab(name)
    begun = work.begin(lab, "Ann, Bée")
    given = {t.id: t.choices[0] if t.choices else "3 ms" for t in lab.predictions}
    done = work.put(work.seal(work.answer(begun, lab, given), lab), "mine.c", b"int main;\n\xff")
    found, again = unpack(pack(done, lab))
    assert found.name == lab.name
    assert (again.state, dict(again.answers), dict(again.files)) == (done.state, dict(done.answers), dict(done.files))
    assert start.start(lab, "Ann, Bée", tmp_path / "started").is_dir()
    assert dict(read_folder(tmp_path / "started")[1].files) == dict(begun.files)


def test_what_cannot_be_a_file_or_a_zip_of_a_work_is_refused() -> None:
    begun = work.begin(ONE, "Ann")
    for name in ("../x", "a/b", ".lab.toml", "answers.toml", "", "x" * 101):
        with refused(RetrompiError, "bad-name"):
            work.put(begun, name, b"")
    with refused(RetrompiError, "too-large"):
        work.put(begun, "big", bytes(work.LARGEST_FILE + 1))
    with refused(RetrompiError, "damaged-file"):
        unpack(b"no zip")


def test_criteria_of_a_text_are_read_and_their_faults_told(tmp_path: Path) -> None:
    folder = tmp_path / "77-marked"
    folder.mkdir()
    (folder / "text.md").write_text("# x\n")
    head = (ONE.folder / "lab.toml").read_text().partition("[[task]]")[0]
    task = '[[task]]\nid = "why"\nkind = "text"\nquestion = "Why?"\npoints = 2\nmodel = "Because {library}."\n'
    first = '[[task.criterion]]\nname = "cause"\npoints = 1.5\nsays = "the cause"\nlevels = ["0: none", "0.5: half", "1.5: all"]\n'
    second = '[[task.criterion]]\nname = "words"\npoints = 0.5\nsays = "its words"\n'
    (folder / "lab.toml").write_text(head + task + first + second)
    (why,) = _lab.load(folder).tasks
    assert [(c.name, c.points, c.levels) for c in why.criteria] == [
        ("cause", 1.5, ((0.0, "none"), (0.5, "half"), (1.5, "all"))), ("words", 0.5, ()),
    ]
    for wrong, said in ((first, "1.5 points, the task 2"), (first.replace("0.5: half", "2: half") + second, "a level"),
                        (first.replace("1.5: all", "1: all") + second, "do not rise")):
        (folder / "lab.toml").write_text(head + task + wrong)
        with refused(RetrompiError, "bad-value") as caught:
            _lab.load(folder)
        assert said in str(caught.value)


def test_a_folder_s_answers_are_read_as_written(tmp_path: Path) -> None:
    shelf = FolderShelf(tmp_path, "Ann")
    shelf.open(ONE)
    sheet = shelf.place(ONE) / "answers.toml"
    sheet.write_text(sheet.read_text().replace('p-half = ""', "p-half = 4096"))
    opened = shelf.open(ONE)
    assert opened.answers["p-half"] == 4096
    assert opened.lines["p-half"] == answers.line_of(sheet.read_text(), "p-half")


def test_a_form_s_last_result_is_kept_beside_the_work(tmp_path: Path) -> None:
    one, shelf = _lab.lab("1"), FolderShelf(tmp_path, "Ann")
    before = shelf.open(one)
    told = {"lines": ["done"], "tables": [], "figures": {}, "cautions": [], "chart": "<p>", "files": {"trace.ti": "00"}}
    for value in ("1", "2"):
        shelf.keep(one, work.Ran("3", "retrompi pingpong", {"reps": value}, told))
    (kept,) = shelf.ran(one).values()
    assert (kept.key, kept.values, kept.told) == ("3", {"reps": "2"}, {k: v for k, v in told.items() if k != "files"})
    assert shelf.open(one) == before, "it is no part of the work, nor of what is handed in"
    large = work.Ran("4", "x", {}, {**told, "chart": os.urandom(2 << 20).hex()})
    assert "chart" not in work.Ran.unpack(large.pack()).told, "a timeline that is too large is left out"
    (next(shelf.place(one).glob(".result-3"))).write_bytes(b"damaged")
    assert shelf.ran(one) == {}


def test_a_sentence_for_the_browser_is_another_in_a_terminal() -> None:
    said = "[[Run `it`.|Press *Run*.]] Then[[ check|]], and go on."
    assert text.text_for(said, browser=False) == "Run `it`. Then check, and go on."
    assert text.text_for(said, browser=True) == "Press *Run*. Then, and go on."
