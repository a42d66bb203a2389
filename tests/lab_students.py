"""Every lab for many student numbers: answers, mistakes, and each sentence that depends on the numbers.

`examine` is what tests/test_lab_statements.py asserts for a few numbers of each lab. Run by hand, this file does it for 200:

    python tests/lab_students.py [LAB ...] [--students 200] [--jobs 2] [--files]

For each student the reference's answers are graded, written with a unit and five digits as a student writes them, and then, answer by
answer, the value of every common mistake and a random wrong one, which must fail. The simulations of all students go through one store, so
that what two students share is simulated once, and students who drew the same numbers are one. ``--files`` does it through the folder as
well, with the reference solution's files (lab 02's trace, lab 09's program, compiled and run) and the wrong ones.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from retrompi.labs import answers, grade, start, student, text
from retrompi.labs import lab as _lab
from retrompi.labs.bench import Bench
from retrompi.store import open_store

STUDENTS = 200


def numbers(count: int = STUDENTS) -> list[str]:
    """The students."""
    return [f"student {i}" for i in range(count)]


@cache
def words(lab: _lab.Lab) -> str:
    """Everything that a student may read of a lab, with single blanks: where a quotation must be found."""
    pieces = [lab.text, lab.title, lab.summary]
    for task in lab.tasks:
        pieces += [task.question, *task.hints, *(m.says for m in task.mistakes), task.model]
        for criterion in task.criteria:
            pieces += [criterion.says, *(said for _, said in criterion.levels)]
    return _single("\n".join(pieces))


def _single(told: str) -> str:
    return " ".join(told.split())


def statements(lab: _lab.Lab, p: student.Parameters, bench: Bench) -> dict[str, bool]:
    """Quotation from the lab -> whether it is true for the student; empty for a lab without such a function."""
    made = getattr(lab.reference, "statements", None)
    return dict(made(p, bench)) if made else {}


def unquoted(lab: _lab.Lab, told: Iterable[str]) -> list[str]:
    """The statements that the lab does not hold word for word."""
    return [quote for quote in told if _single(quote) not in words(lab)]


def covering(lab: _lab.Lab, count: int = 12) -> list[str]:
    """Students of the first 200 that together draw as many values of every parameter as possible, the ends of its range first."""
    pool = {who: student.draw(lab, who) for who in numbers()}
    ends = {(q.name, v) for q in lab.parameters for v in (q.values[0], q.values[-1])}
    rest = {(q.name, v) for q in lab.parameters for v in q.values} - ends
    chosen: list[str] = []
    while len(chosen) < count:
        worth = {w: (len(ends & set(p.texts.items())), len(rest & set(p.texts.items()))) for w, p in pool.items() if w not in chosen}
        best = max(worth, key=lambda w: worth[w])
        chosen.append(best)
        ends -= set(pool[best].texts.items())
        rest -= set(pool[best].texts.items())
    return chosen


@dataclass
class Found:
    """What is wrong with a lab: complaint -> the students whom it concerns; and the smallest and largest right answer of each task."""

    wrong: dict[str, list[str]] = field(default_factory=dict)
    ranges: dict[str, list[float]] = field(default_factory=dict)
    words: dict[str, Counter[str]] = field(default_factory=dict)
    refused: int = 0
    """Wrong answers that were graded wrong."""

    def add(self, complaint: str, who: str) -> None:
        """Notes a complaint."""
        self.wrong.setdefault(complaint, []).append(who)

    def join(self, other: Found) -> None:
        """Adds the findings of other students."""
        for complaint, those in other.wrong.items():
            self.wrong.setdefault(complaint, []).extend(those)
        for task, (low, high) in other.ranges.items():
            at = self.ranges.setdefault(task, [low, high])
            at[0], at[1] = min(at[0], low), max(at[1], high)
        for task, counted in other.words.items():
            self.words.setdefault(task, Counter()).update(counted)
        self.refused += other.refused


def examine(lab: _lab.Lab, who: str, bench: Bench, found: Found) -> None:
    """Everything that a lab claims, for one student."""
    p = student.draw(lab, who)
    values, wrongs = grade.right_values(lab, p, bench), grade.usual(lab, p, bench)
    known = text.names(lab, p, who)
    for task in lab.tasks:
        if task.kind not in ("number", "choice", "order"):
            continue
        right = values[task.id]
        if task.kind == "number":
            found.join(Found(ranges={task.id: [float(right), float(right)]}))
        else:
            found.words.setdefault(task.id, Counter())[", ".join(right) if task.kind == "order" else str(right)] += 1
        if not grade.is_right(task, right, right):
            found.add(f"{task.id}: the right answer fails", who)
        told = {m.name: m.says for m in task.mistakes}
        if task.kind != "choice" and set(told) != set(wrongs.get(task.id, {})):
            found.add(f"{task.id}: mistakes() and lab.toml name different mistakes", who)
        _mistakes(task, right, wrongs.get(task.id, {}), told, found, who)
        for said in told.values():
            text.fill(said, known)
    _graded(lab, p, who, bench, found)
    for quote, holds in statements(lab, p, bench).items():
        if not holds:
            found.add(f"not true: {quote}", who)


def _mistakes(task: _lab.Task, right: Any, wrongs: Mapping[str, Any], told: Mapping[str, str], found: Found, who: str) -> None:
    """The value of every mistake is refused, and named by its own message or by that of a mistake with the same value."""
    for name, wrong in wrongs.items():
        if task.kind == "choice":
            if str(wrong) == str(right):
                continue  # a choice's options each have a message, which one student's right one never shows
        elif grade.is_right(task, wrong, right):
            found.add(f"{task.id}: the mistake '{name}' leads to the right answer", who)
            continue
        said = grade.diagnose(task, wrong, right, wrongs)
        same = [n for n, v in wrongs.items() if task.kind == "number" and abs(v - wrong) <= 0.002 * abs(wrong)]
        if said not in [told.get(name), *(told.get(n) for n in same)]:
            found.add(f"{task.id}: the mistake '{name}' is diagnosed as: {said}", who)


def _graded(lab: _lab.Lab, p: student.Parameters, who: str, bench: Bench, found: Found) -> None:
    """The reference's answers get their points by the grader, and no wrong one does: each common mistake, and a random value."""
    values, wrongs = grade.right_values(lab, p, bench), grade.usual(lab, p, bench)
    known = text.names(lab, p, who)
    asked = [t for t in lab.tasks if t.kind in ("number", "choice", "order")]
    good = {t.id: written(t, values[t.id]) for t in asked}
    good |= {t.id: written(t, text.fill(t.model, known, strict=False)) for t in lab.tasks if t.kind == "text"}
    guesses = {t.id: written(t, values[t.of] if t.of else (t.choices or (1.0,))[0]) for t in lab.predictions}
    empty = {t.id: answers.Given("", "") for t in lab.tasks}
    state = grade.seal(lab, student.new_state(lab, who), empty | guesses)
    nowhere = Path("no folder")

    def status(sheet: Mapping[str, answers.Given]) -> dict[str, str]:
        return {r.task: r.status for r in grade.grade(lab, nowhere, state, bench, empty | guesses | sheet).results if r.kind != "file"}

    for task, was in status(good).items():
        if was not in grade.GOOD:
            found.add(f"{task}: the reference's answer is graded '{was}'", who)
    rng = random.Random(f"{lab.name} {who}")
    rounds: list[dict[str, tuple[str, Any]]] = [{t.id: ("a random value", wrong_value(t, values[t.id], rng)) for t in asked}]
    for task in asked:
        for i, (name, wrong) in enumerate(n for n in wrongs.get(task.id, {}).items() if not grade.is_right(task, n[1], values[task.id])):
            rounds += [{}] if len(rounds) < i + 2 else []
            rounds[i + 1][task.id] = (f"the mistake '{name}'", wrong)
    for one in rounds:
        graded = status({**good, **{t: written(lab.task(t), wrong) for t, (_, wrong) in one.items()}})
        for wrong_task, (name, wrong) in one.items():
            found.refused += graded[wrong_task] == "wrong"
            if graded[wrong_task] != "wrong":
                found.add(f"{wrong_task}: {name} ({wrong}) is graded '{graded[wrong_task]}'", who)


def written(task: _lab.Task, value: Any) -> answers.Given:
    """An answer as a student writes it on the sheet: five digits and a unit."""
    raw = value if task.kind == "text" else tomllib.loads(f"x = {start.value_text(task, value)}")["x"]
    return answers.Given(raw, answers.as_text(raw))


def wrong_value(task: _lab.Task, right: Any, rng: random.Random) -> Any:
    """A wrong answer that nobody thought of: from just outside the tolerance to twenty times off, either way; another choice or order."""
    if task.kind == "choice":
        return rng.choice([c for c in task.choices if c != right])
    if task.kind == "order":
        return next(o for o in iter(lambda: rng.sample(list(right), len(right)), None) if list(o) != list(right))
    # A ratio is off by more than the tolerance in both directions, also after rounding to five digits.
    room = 1.2 * max(task.tolerance, task.absolute / abs(right) if right else 0.0, 1e-4)
    factor = (1 + room) / max(1 - room, 0.05) * 20 ** rng.random()
    if task.unit == "count":
        return int(right) + 1 + int(task.absolute) + int(factor)
    if not right:
        return max(1.2 * task.absolute, 1e-3) * factor
    if task.unit == "probability" and right * factor > 1:
        return right / factor if room < 0.9 else right + (1 - right) * rng.uniform(1.2 * task.absolute, 1)
    return right / factor if room < 0.9 and rng.random() < 0.5 else right * factor


def files(lab: _lab.Lab, who: str, store: Any, found: Found) -> None:
    """The reference's folder is graded full marks, the spoilt one no task right: through the folder, as ``lab check`` does it."""
    for name, fill, good in (("solved", start.solve, True), ("spoilt", start.spoil, False)):
        with tempfile.TemporaryDirectory() as place:
            folder = start.start(lab, who, Path(place) / "mine")
            p, bench = student.draw(lab, who), Bench(store, folder, may_run=True)
            fill(lab, folder, p, bench, who)
            state = student.read_state(folder)
            state = student.write_state(folder, grade.seal(lab, state, answers.read(folder, lab)))
            graded = grade.grade(lab, folder, state, bench)
            for r in graded.results:
                if r.kind in ("number", "choice", "order", "file") and (r.status == "right") != good:
                    found.add(f"{name}: {r.task} is {r.status}: {r.says}", who)


def apart(lab: _lab.Lab, whos: Sequence[str]) -> list[str]:
    """The students of whom no two drew the same numbers."""
    return list({tuple(sorted(student.draw(lab, who).texts.items())): who for who in reversed(whos)}.values())[::-1]


def _part(name: str, whos: Sequence[str], store_label: str, with_files: bool) -> Found:
    """The findings for some students of a lab."""
    lab, found = _lab.lab(name), Found()
    store = open_store(Path(store_label))
    with store.hold_connection():
        for who in whos:
            examine(lab, who, Bench(store), found)
            if with_files:
                files(lab, who, store, found)
    return found


def main(words_given: Sequence[str] | None = None) -> int:
    """Examines labs and prints what is wrong, and the ranges of the answers; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("labs", nargs="*", default=[])
    parser.add_argument("--students", type=int, default=STUDENTS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--store", default="")
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--ranges", action="store_true", help="also print the smallest and largest right answer of every task")
    parser.add_argument("--covering", type=int, default=0, help="instead of the first students, so many that draw all values")
    given = parser.parse_args(words_given)
    bad = 0
    with tempfile.TemporaryDirectory() as place:
        for name in given.labs or _lab.lab_names():
            lab, found, begin = _lab.lab(name), Found(), time.monotonic()
            whos = covering(lab, given.covering) if given.covering else numbers(given.students)
            drawn = apart(lab, whos)
            parts = [drawn[i :: given.jobs] for i in range(given.jobs)]
            label = given.store or str(Path(place) / "labs.db")
            if given.jobs == 1:
                found = _part(name, drawn, label, given.files)
            else:
                with ProcessPoolExecutor(given.jobs) as pool:
                    for part in pool.map(_part, [name] * given.jobs, parts, [label] * given.jobs, [given.files] * given.jobs):
                        found.join(part)
            p = student.draw(lab, whos[0])
            told = statements(lab, p, Bench(open_store(Path(label))))
            for quote in unquoted(lab, told):
                found.add(f"not in the lab's text: {quote}", "all")
            print(
                f"lab {lab.key} version {lab.version}: {len(whos)} students, {len(drawn)} sets of numbers, {len(told)} statements, "
                f"{found.refused} wrong answers refused, {len(found.wrong)} complaints, {time.monotonic() - begin:.0f} s",
                flush=True,
            )
            for complaint, those in found.wrong.items():
                print(f"  {len(those):3} {re.sub(r' +', ' ', complaint)[:300]}  ({', '.join(those[:3])})", flush=True)
            if given.ranges:
                for task, (low, high) in found.ranges.items():
                    print(f"  {task}: {low:.4g} .. {high:.4g}")
                for task, counted in found.words.items():
                    print(f"  {task}: {dict(counted)}")
            bad += len(found.wrong)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
