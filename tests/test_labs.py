"""Every lab found in labs/, each for ten students: what a teacher relies on. A new lab needs no new test."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cases import for_each

from retrompi.base import units
from retrompi.labs import grade, start, student, text
from retrompi.labs import lab as _lab
from retrompi.labs.bench import Bench
from retrompi.store import open_store

NAMES = _lab.lab_names()
STUDENTS = [f"student {i}" for i in range(10)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One store for all, as in a class: what one student ran is not run again for another with the same numbers."""
    opened = open_store(tmp_path_factory.mktemp("labs") / "labs.db")
    with opened.hold_connection():
        yield opened


def begun(name: str, who: str, place: Path, store: Any) -> tuple[_lab.Lab, Path, student.Parameters, Bench]:
    """A lab as a student has it after ``lab start``."""
    lab = _lab.lab(name)
    folder = start.start(lab, who, place / "mine")
    return lab, folder, student.draw(lab, who), Bench(store, folder)


def checked(lab: _lab.Lab, folder: Path, bench: Bench) -> grade.Grading:
    """What ``lab check`` does."""
    from retrompi.labs import answers

    state = student.read_state(folder)
    state = student.write_state(folder, grade.seal(lab, state, answers.read(folder, lab)))
    return grade.grade(lab, folder, state, bench)


def told_numbers(message: str) -> list[float]:
    """The numbers that a message holds, without definitions of units."""
    plain = re.sub(r"1 \w+(/s)? is (10\^6|2\^20|1024) B|K is 1024", "", message)
    return [float(n) for n in re.findall(r"(?<![\w^])\d+(?:\.\d+)?(?:e[+-]?\d+)?", plain)]


def gives_away(message: str, task: _lab.Task, expected: Any) -> bool:
    """Whether a number of the message is near the right one in any unit."""
    if task.kind == "order":
        return ", ".join(expected) in message
    if task.kind != "number" or not expected:
        return False
    factors = units.UNITS[units.canonical(task.unit)].values()
    return any(abs(n * f - expected) <= 0.05 * abs(expected) for n in told_numbers(message) for f in factors)


@for_each("who", STUDENTS, few=3)
@for_each("name", NAMES)
def test_the_reference_passes_a_wrong_one_fails_and_mistakes_are_recognised(name: str, who: str, tmp_path: Path, store: Any) -> None:
    lab, folder, p, bench = begun(name, who, tmp_path, store)
    start.solve(lab, folder, p, bench, who)
    good = checked(lab, folder, bench)
    assert [(r.task, r.status, r.says) for r in good.results if r.status not in grade.GOOD] == []
    assert good.points + good.open == pytest.approx(lab.points)
    assert good.open >= sum(t.points for t in lab.tasks if t.kind == "text"), "open answers count when they are marked"
    assert all("answer was there already" in f or "not compiled and run" in f for f in good.flags), good.flags

    (tmp_path / "other").mkdir()
    lab, folder, p, bench = begun(name, who, tmp_path / "other", store)
    start.spoil(lab, folder, p, bench, who)
    bad = checked(lab, folder, bench)
    assert not bad.passed
    assert [r.task for r in bad.results if r.kind in ("number", "choice", "order", "file") and r.status == "right"] == []

    values, wrongs = grade.right_values(lab, p, bench), grade.usual(lab, p, bench)
    known = text.names(lab, p, who)
    for task in lab.tasks:
        named = {m.name: m.says for m in task.mistakes}
        if task.kind in ("number", "order"):
            assert set(wrongs.get(task.id, {})) == set(named), f"{task.id}: mistakes() and lab.toml name different mistakes"
        for mistake, wrong in wrongs.get(task.id, {}).items():
            if grade.is_right(task, wrong, values[task.id]):
                continue  # this student's numbers hide the mistake; for how many that may be so is another test
            said = grade.diagnose(task, wrong, values[task.id], wrongs[task.id])
            same = [n for n, v in wrongs[task.id].items() if task.kind == "number" and abs(v - wrong) <= 0.002 * abs(wrong)]
            assert said in [named[mistake], *(named[n] for n in same)], f"{task.id}: '{mistake}' is not recognised: {said}"
            assert not gives_away(text.fill(said, known, strict=False), task, values[task.id]), f"{task.id}: {said}"
        if task.kind == "number":
            for factor in (1.5, 0.7, 1000, 0.001, 2, 0.5):
                said = grade.diagnose(task, values[task.id] * factor, values[task.id], wrongs.get(task.id, {}))
                assert said
                assert not gives_away(text.fill(said, known, strict=False), task, values[task.id]), f"{task.id}: {said}"


@for_each("name", NAMES)
def test_students_have_numbers_of_their_own(name: str) -> None:
    lab = _lab.lab(name)
    drawn = [student.draw(lab, who) for who in STUDENTS]
    assert len({tuple(sorted(p.texts.items())) for p in drawn}) >= len(STUDENTS) - 4, "of some dozen sets, ten students may draw some twice"
    for parameter in lab.parameters:
        assert len({p.text(parameter.name) for p in drawn}) > 1, parameter.name
    assert drawn[0] == student.draw(lab, "  Student  0 ") == student.draw(lab, "STUDENT0"), "blanks and capitals of an id do not count"
    assert drawn[0] != student.draw(lab, "student.0"), "every other character does"


@for_each("name", NAMES)
def test_a_mistake_can_be_told_from_the_answer_for_most_students(name: str, store: Any) -> None:
    lab = _lab.lab(name)
    hidden: dict[str, int] = {}
    for who in STUDENTS:
        p, bench = student.draw(lab, who), Bench(store)
        values, wrongs = grade.right_values(lab, p, bench), grade.usual(lab, p, bench)
        for task in lab.tasks:
            if task.kind in ("number", "order"):
                for mistake, wrong in wrongs.get(task.id, {}).items():
                    hidden[f"{task.id}: {mistake}"] = hidden.get(f"{task.id}: {mistake}", 0) + grade.is_right(task, wrong, values[task.id])
    assert {k: n for k, n in hidden.items() if n > 3} == {}, "mistakes that lead to the right answer"


@for_each("name", NAMES)
def test_the_text_is_whole(name: str, tmp_path: Path, store: Any) -> None:
    lab, folder, p, _ = begun(name, "student 0", tmp_path, store)
    known = text.names(lab, p, "student 0")
    written = (folder / "README.md").read_text()
    assert not re.search(r"\{[a-z][a-z0-9_]*(:arg)?\}|\[task ", written)
    for file in folder.iterdir():
        if file.suffix == ".zst":
            continue
        content = file.read_text()
        left = [k for k in known if f"{{{k}}}" in content or f"{{{k}:arg}}" in content]
        assert not left, f"{file.name}: {left}"
    for task in lab.tasks:
        for piece in (task.question, *task.hints, *(m.says for m in task.mistakes)):
            text.fill(piece, known)
    assert lab.goals
    assert 60 <= lab.minutes <= 90
    assert lab.summary
    assert len(lab.predictions) >= 2
    assert any(t.kind == "text" for t in lab.tasks)
    assert all(t.hints for t in lab.tasks if t.kind in ("number", "order")), "a number without a hint"


def commands(markdown: str) -> list[str]:
    """The retrompi commands of a text: indented lines, fenced lines and code within a line."""
    found = re.findall(r"^(?:    |\$ )?(retrompi [^\n`]+)$", markdown, re.MULTILINE)
    return [c.strip() for c in [*found, *re.findall(r"`(retrompi [^`\n]+)`", markdown)]]


@for_each("name", NAMES)
def test_the_commands_of_the_text_exist(name: str, tmp_path: Path, store: Any) -> None:
    """Every command of the text with every option is one that the command line has."""
    import shlex

    import click

    from retrompi.cli.main import cli

    _, folder, _, _ = begun(name, "student 1", tmp_path, store)
    found = commands((folder / "README.md").read_text())
    assert found
    for line in found:
        words = [w for w in shlex.split(line, comments=True)[1:] if w not in ("\\",)]
        group: click.Command = cli
        context = click.Context(cli)
        while isinstance(group, click.Group) and words:
            below = group.get_command(context, words[0])
            assert below is not None, f"{line}: no command '{words[0]}'"
            group, words = below, words[1:]
        options = {o for q in group.params for o in (*q.opts, *q.secondary_opts)} | {"--help", "-h"}
        for word in words:
            if word == "--":
                break
            if word.startswith("--") or re.fullmatch(r"-[a-z]", word):
                assert word.partition("=")[0] in options, f"{line}: no option '{word}'"


@for_each("name", NAMES)
def test_the_commands_of_the_text_run(name: str, tmp_path: Path, store: Any, retrompi: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a student is told to type, in the order of the text, in a folder with the reference solution; none is refused."""
    import shlex
    import shutil

    lab, folder, p, bench = begun(name, "student 2", tmp_path, store)
    missing = [need for need in lab.needs if not any(shutil.which(tool) for tool in need.split(" or "))]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")
    start.solve(lab, folder, p, bench, "student 2")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("RETROMPI_STORE", store.label)
    lines = re.findall(r"^    (retrompi [^\n]+)$", (folder / "README.md").read_text(), re.MULTILINE)
    assert lines
    for line in lines:
        words = shlex.split(line, comments=True)[1:]
        if words[0] == "studio" or "mpiexec" in words:
            continue  # a server, which its own tests start; and a second way to record, of a binary that the first does not need
        made = folder / words[words.index("-o") + 1] if "-o" in words else None
        if made is not None and made.is_file():
            made.unlink()  # the reference solution has it already
        result = retrompi(*words)
        assert result.code in (0, 1), f"{line}: {result.err}"
