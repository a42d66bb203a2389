"""A class's submissions: each is graded anew in a separate process, which may crash, and compared with the others.

Only the student's id, the sealed predictions, the used hints and the answers are read from a folder; verdicts in it are ignored.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from time import monotonic
from typing import Any

from retrompi.base.errors import RetrompiError
from retrompi.labs import alike
from retrompi.labs.accounts import Account
from retrompi.labs.alike import Facts, SimilarPair
from retrompi.labs.submissions import Submission
from retrompi.sim import worker
from retrompi.sim.processes import end_with_parent

__all__ = ["Graded", "collect", "rows", "shortly"]

SECONDS = 300.0
"""Limit on the wall time of one grading, after which it is terminated."""


@dataclass(frozen=True)
class Graded:
    """A submission's outcome: the grading in the form of `grade.Grading.row` and the data to compare; or why it is ``broken``.

    For a broken one, ``student`` and ``lab`` are taken from its ``.lab.toml``, if readable.
    """

    source: str
    row: dict[str, Any] | None
    facts: Facts | None
    broken: str = ""
    student: str = ""
    lab: str = ""
    account: Account | None = None
    """Whose it is by the learning platform from which it was downloaded."""


@dataclass
class _Running:
    process: Any
    line: Connection
    number: int
    since: float


def collect(
    submissions: Sequence[Submission], store: str | None, *, jobs: int, may_run: bool = False,
    report: Callable[[int, int, str], None] = lambda done, total, what: None, seconds: float = SECONDS,
) -> tuple[list[Graded], list[SimilarPair]]:
    """Grade all, ``jobs`` at a time; returns them in order, and the similar pairs. Runs are kept in ``store`` (see `open_store`)."""
    # Forking avoids repeated imports; the store keeps no connection, and a child starts its own simulation server.
    context = multiprocessing.get_context("fork")
    results: dict[int, Graded] = {}
    todo = []
    for number, submission in enumerate(submissions):
        if submission.folder is None:
            results[number] = Graded(submission.source, None, None, submission.broken)
        else:
            todo.append(number)
    todo.reverse()
    running: list[_Running] = []
    try:
        while todo or running:
            while todo and len(running) < jobs:
                number = todo.pop()
                mine, theirs = context.Pipe(duplex=False)
                process = context.Process(target=_work, args=(submissions[number], store, may_run, theirs, os.getpid()), daemon=True)
                process.start()
                theirs.close()
                running.append(_Running(process, mine, number, monotonic()))
            wait([r.line for r in running], timeout=1.0)
            for one in list(running):
                graded = _poll(one, submissions[one.number], seconds)
                if graded is not None:
                    running.remove(one)
                    results[one.number] = graded
                    report(len(results), len(submissions), submissions[one.number].source)
    finally:
        for one in running:
            one.process.kill()
            one.process.join()
    ordered = [replace(results[i], account=submissions[i].account) for i in range(len(submissions))]
    return ordered, alike.pairs([g.facts for g in ordered])


def _poll(one: _Running, submission: Submission, seconds: float) -> Graded | None:
    """The result of a process, or the reason for having none; None while it runs."""
    graded: Graded | None = None
    if one.line.poll():
        try:
            graded = one.line.recv()
        except (EOFError, OSError):
            graded = Graded(submission.source, None, None, "its grading ended without a word (out of memory?)")
    elif monotonic() - one.since > seconds:
        one.process.kill()
        graded = Graded(submission.source, None, None, f"its grading took more than {seconds:.0f} s and was ended")
    if graded is not None:
        one.process.join()
        one.line.close()
    return graded


def _work(submission: Submission, store: str | None, may_run: bool, line: Connection, parent: int) -> None:
    """Grades a submission in a child process and sends the result."""
    end_with_parent(parent)
    server = worker.ForkServer()
    worker.adopt(server)  # a server of the parent is not shared
    try:
        told = _grade(submission, store, may_run)
    except RetrompiError as error:
        told = _without_grade(submission, " ".join(str(error).split())[:400])
    except MemoryError:
        told = _without_grade(submission, "its grading ran out of memory")
    except Exception as error:  # one submission must not stop the grading of a class
        told = _without_grade(submission, f"cannot be graded: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
    line.send(told)
    line.close()
    server.close()


def _without_grade(submission: Submission, why: str) -> Graded:
    """A submission that cannot be graded, with its student and lab if its state file is readable."""
    from retrompi.labs import student

    assert submission.folder is not None
    try:
        state = student.read_state(submission.folder)
    except (RetrompiError, MemoryError):
        return Graded(submission.source, None, None, why)
    return Graded(submission.source, None, None, why, student.shown_id(state.student), student.shown_id(state.lab)[:60])


def _grade(submission: Submission, store: str | None, may_run: bool) -> Graded:
    from retrompi.labs import answers, facts, grade, student
    from retrompi.labs.bench import Bench
    from retrompi.store import open_store

    folder = submission.folder
    assert folder is not None
    state = student.read_state(folder)
    lab = grade.lab_of(state, folder)
    sheet = answers.read(folder, lab)
    bench = Bench(open_store(store), folder, may_run=may_run)
    grading = grade.grade(lab, folder, state, bench, sheet)
    compared = facts.gather_facts(lab, state, sheet, facts.in_folder(lab, folder), bench)
    return Graded(submission.source, grading.row(), compared)


def shortly(row: Mapping[str, Any]) -> list[str]:
    """A grading's flags; those of single predictions are summarised as a count."""
    notes = [n for t in row["tasks"] for n in t["notes"]]
    whole = [f for f in row["flags"] if not any(f.endswith(n) for n in notes)]
    return whole + [f"{count} prediction{'s' if count > 1 else ''} {note}" for note, count in Counter(notes).items()]


def _display_name(graded: Graded) -> str:
    """The student's name in the rows of others: the id in the folder, and the account if that has another name."""
    name = graded.row["student"] if graded.row else graded.student or graded.source
    other = graded.account.name if graded.account else ""
    return f"{name} ({other})" if other and other.casefold() != name.casefold() else str(name)


def rows(graded: Sequence[Graded], pairs: Sequence[SimilarPair]) -> tuple[list[dict[str, Any]], list[str]]:
    """(rows of the grade table, the columns of tasks as LAB:TASK): one row for each submission, broken ones with the reason."""
    names = [_display_name(g) for g in graded]
    columns: dict[str, None] = {}
    out = []
    for number, g in enumerate(graded):
        others = [(names[p.other if p.one == number else p.one], p.why) for p in pairs if number in (p.one, p.other)]
        row: dict[str, Any] = {
            "student": g.student, "source": g.source, "lab": g.lab, "points": None, "of": None, "open": None, "percent": None,
            "passed": None, "checks": None, "hints": None, "problem": g.broken,
            "alike": " | ".join(f"{name}: {'; '.join(why)}" for name, why in others),
            "account": g.account.name if g.account else "", "account_id": g.account.id if g.account else "",
            "late": g.account.late if g.account else None,
        }
        if g.row is not None:
            row |= {k: g.row[k] for k in ("student", "lab", "points", "of", "open", "passed", "checks", "hints")}
            row["percent"] = round(100 * g.row["points"] / g.row["of"], 1) if g.row["of"] else None
            row["problem"] = "; ".join(shortly(g.row))
            for task in g.row["tasks"]:
                key = f"{g.row['lab'][:2]}:{task['task']}"
                columns[key] = None
                row[key] = task["points"]
        out.append(row)
    return out, list(columns)
