"""Jobs of a lab's page: a check, the right values in advance, a report. Independent of Dash."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any

from retrompi.base.translate import _
from retrompi.labs import grade, sandbox, student, work
from retrompi.labs.bench import Bench
from retrompi.labs.lab import Lab
from retrompi.labs.work import CheckRequest, Shelf, Work

if TYPE_CHECKING:
    from retrompi.studio.jobs.job import JobState

__all__ = ["Known", "bench_of", "check", "check_work", "expected_values", "key_of", "report_page"]

MOST = 4000
"""Students' numbers whose right values are remembered."""


class Known:
    """The right values and those of mistakes, by lab and parameters: computed once for all who have the same. Thread-safe."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._asked: set[str] = set()
        self._lock = Lock()

    def get(self, key: str) -> dict[str, Any] | None:
        """The values, if they are known."""
        with self._lock:
            return self._kept.get(key)

    def put(self, key: str, values: Mapping[str, Any]) -> None:
        """Remembers values."""
        with self._lock:
            self._kept[key] = dict(values)
            self._kept.move_to_end(key)
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)

    def asks(self, key: str) -> bool:
        """Whether nobody has asked for these in advance yet: then the caller does."""
        with self._lock:
            new = key not in self._asked and key not in self._kept
            self._asked.add(key)
            return new


def key_of(lab: Lab, who: str) -> str:
    """The key of a student's values: lab, version, parameters."""
    texts = student.draw(lab, who).texts
    return "\0".join([lab.name, str(lab.version), *(f"{k}={v}" for k, v in sorted(texts.items()))])


def bench_of(lab: Lab, who: str, store: str | None, known: Mapping[str, Any] | None) -> Bench:
    """Where a student's values are computed, or known already."""
    from retrompi.store import open_store

    boxed = not sandbox.missing() if getattr(lab.reference, "RUNS", ()) else False
    bench = Bench(open_store(store), may_run=boxed or not getattr(lab.reference, "RUNS", ()), boxed=boxed)
    if known is not None:
        mine = tuple(sorted(student.draw(lab, who).texts.items()))
        bench.once(("expected", lab.name, mine), lambda: known["expected"])
        bench.once(("mistakes", lab.name, mine), lambda: known["mistakes"])
    return bench


def expected_values(report: Any, name: str, who: str, store: str | None) -> dict[str, Any]:
    """The right values of a student's numbers and those that mistakes lead to, as JSON keeps them."""
    from retrompi.labs import lab as _lab

    lab = _lab.lab(name)
    report(0, 1, lab.title)
    p, bench = student.draw(lab, who), bench_of(lab, who, store, None)
    return {"expected": grade.right_values(lab, p, bench), "mistakes": grade.usual(lab, p, bench)}


def check_work(report: Any, done: Work, store: str | None, known: Mapping[str, Any] | None) -> dict[str, Any]:
    """The grading of a sealed work, as a row; and the values that were computed for it."""
    from retrompi.labs import lab as _lab

    lab, who = _lab.lab(done.state.lab), done.state.student
    report(0, 1, lab.title)
    bench = bench_of(lab, who, store, known)
    grading = work.grade_work(done, lab, bench)
    p = student.draw(lab, who)
    values = known or {"expected": grade.right_values(lab, p, bench), "mistakes": grade.usual(lab, p, bench)}
    return {"grading": grading.row(), "known": values}


def check(
    asked: CheckRequest, shelf: Shelf, done: Work, store: str | None, known: Known
) -> tuple[str, Callable[..., Any], tuple[Any, ...], Callable[[JobState], None]]:
    """The job that answers a check: its title, function and arguments; and what keeps the result on the shelf of who asked, whoever is
    still there when it ends."""
    from retrompi.labs import lab as _lab

    lab = _lab.lab(asked.lab)
    key = key_of(lab, done.state.student)

    def then(state: JobState) -> None:
        if state.status == "done":
            known.put(key, state.result["known"])
            shelf.keep_check(asked, grade.Grading.from_row(state.result["grading"]))
        else:
            shelf.keep_failure(asked, state.error if state.status == "failed" else "")

    return _("checking lab {key}").format(key=lab.key), check_work, (done, store, known.get(key)), then


def report_page(report: Any, done: Work, store: str | None, known: Mapping[str, Any] | None) -> dict[str, Any]:
    """The report of a work as a page."""
    from retrompi.labs import lab as _lab
    from retrompi.labs import report as _report

    lab, who = _lab.lab(done.state.lab), done.state.student
    bench = bench_of(lab, who, store, known)
    bench.may_run = False
    return {"page": _report.page(lab, done.state, work.grade_work(done, lab, bench), student.draw(lab, who), bench)}
