"""Each lab for student numbers that draw all ends of its parameters' ranges: what `lab_students` examines for 200 of them by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import lab_students
import pytest
from cases import for_each
from doc_pages import ROOT

from retrompi.labs import answers, grade, student
from retrompi.labs import lab as _lab
from retrompi.labs.bench import Bench
from retrompi.store import open_store

NAMES = _lab.lab_names()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One store for all, as in a class."""
    opened = open_store(tmp_path_factory.mktemp("statements") / "labs.db")
    with opened.hold_connection():
        yield opened


@for_each("name", NAMES)
def test_what_a_lab_says_is_true_for_the_ends_of_its_ranges(name: str, store: Any) -> None:
    lab, found = _lab.lab(name), lab_students.Found()
    for who in lab_students.covering(lab, 8):
        lab_students.examine(lab, who, Bench(store), found)
    assert found.wrong == {}


@for_each("name", NAMES)
def test_a_statement_is_a_sentence_of_the_lab(name: str, store: Any) -> None:
    lab = _lab.lab(name)
    who = lab_students.covering(lab, 1)[0]
    told = lab_students.statements(lab, student.draw(lab, who), Bench(store))
    assert len(told) >= 5, "a lab whose sentences nobody asserts"
    assert lab_students.unquoted(lab, told) == [], "a sentence that was changed needs its assertion looked at again"


@for_each("name", NAMES)
def test_open_questions_have_a_rubric_and_a_model_answer(name: str) -> None:
    lab = _lab.lab(name)
    for task in lab.tasks:
        if task.kind == "text":
            assert len(task.model.split()) >= 1.5 * task.words, f"{task.id}: a model answer is more than the least that is asked"
            assert len(task.criteria) >= 2, task.id
            assert all(c.levels for c in task.criteria), task.id


@cache
def verdicts() -> dict[str, str]:
    """Claim -> verdict, as the validation's pages have them."""
    pages = (ROOT / "docs" / "validation").glob("*.md")
    rows = [
        re.findall(r"^\| ([A-Z]{2}-[A-Z0-9-]+[a-z]?) \| \w+ \| \**(pass|fail|unjudged)\** \|", page.read_text(), re.MULTILINE)
        for page in pages
    ]
    return {claim: verdict for found in rows for claim, verdict in found}


@for_each("name", NAMES)
def test_what_is_not_settled_in_the_validation_is_told_as_not_settled(name: str) -> None:
    """A claim that fails is named as failed where the lab uses it, and none that passes is; the pages that a lab names are there."""
    lab = _lab.lab(name)
    told = lab_students.words(lab)
    cited = set(re.findall(r"\b(?:BF|HW|KB|LW)-(?:[A-Z]+-)?\d+[a-z]?\b", told))
    sentences = [s for s in re.split(r"(?<=[.:]) ", told) if re.search(r"counts .* as failed", s)]
    assert {c for c in cited if verdicts().get(c) == "fail"} == {c for c in cited if any(c in s for s in sentences)}
    for page in re.findall(r"docs/([\w/-]+\.md)", told):
        assert (ROOT / "docs" / page).is_file(), page


def test_the_validation_has_verdicts_to_be_compared_with() -> None:
    assert len(verdicts()) > 60
    assert (verdicts()["BF-SM-04"], verdicts()["BF-SM-15"], verdicts()["KB-14"]) == ("fail", "pass", "pass")


def test_a_false_sentence_and_a_mistake_that_is_right_are_found(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = _lab.lab("9")
    who, found = "student 0", lab_students.Found()
    right = lab.reference.expected(student.draw(lab, who), Bench(store))
    monkeypatch.setattr(lab.reference, "statements", lambda p, bench: {"All three are safe, but not equally efficient": False})
    monkeypatch.setattr(lab.reference, "mistakes", lambda p, bench: {"cycle": {"pair": right["cycle"]}})
    lab_students.examine(lab, who, Bench(store), found)
    assert "not true: All three are safe, but not equally efficient" in found.wrong
    assert "cycle: the mistake 'pair' leads to the right answer" in found.wrong
    assert lab_students.unquoted(lab, ["no such sentence"]) == ["no such sentence"]


def test_a_grader_that_takes_everything_or_nothing_is_found(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = _lab.lab("9")
    who = "student 0"
    for taken in (True, False):
        found = lab_students.Found()
        with monkeypatch.context() as patch:
            patch.setattr(grade, "is_right", lambda task, value, right, taken=taken: taken)
            lab_students.examine(lab, who, Bench(store), found)
        told = " ".join(found.wrong)
        assert ("a random value" in told and "is graded 'right'" in told) == taken, told
        assert ("the reference's answer is graded 'wrong'" in told) == (not taken), told


def test_a_mistake_that_leads_below_zero_is_named(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lab, who, bench = _lab.lab("10"), "student 0", Bench(store)
    task = lab.task("startup")
    monkeypatch.setattr(lab.reference, "mistakes", lambda p, bench: {"startup": {"last": -43.5e-6}})
    sheet = {t.id: answers.Given("", "") for t in lab.tasks}

    def graded(told: str) -> grade.TaskResult:
        given = sheet | {"startup": answers.Given(told, told)}
        state = student.new_state(lab, who)
        state = replace(state, sealed={name: student.Sealed("1", 1) for name in task.after})
        return next(r for r in grade.grade(lab, Path("no folder"), state, bench, given).results if r.task == "startup")

    assert (graded("-43.5 us").status, graded("-43.5 us").says) == ("wrong", task.mistakes[0].says)
    assert (graded("-43 kB").status, graded("-43.5").status) == ("unreadable", "unreadable"), "another unit, or none"
    monkeypatch.setattr(lab.reference, "mistakes", lambda p, bench: {"startup": {"last": 43.5e-6}})
    bench = Bench(store)
    assert "is negative" in graded("-43.5 us").says
