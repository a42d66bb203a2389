"""The course's own pages, those of strangers, students and teachers: nothing breaks WCAG 2.2 AA, on a phone by day and on a desk by night,
nothing stands out of a page, and no page asks anybody but the course's server for anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from axe import LOOKS, dressed, faults, watched, wide
from browser import browser
from test_course_browser import CourseServer

from retrompi.classroom.course import members, settings
from retrompi.classroom.works import marks
from retrompi.classroom.works.shelf import DatabaseShelf
from retrompi.labs.bench import Bench
from retrompi.labs.grade import right_values
from retrompi.labs.lab import lab
from retrompi.labs.student import draw
from retrompi.labs.work import answer, change, check, seal
from retrompi.store import open_store

__all__ = ["browser"]  # a fixture

WORDS = "Each round trip takes both ways, and " + " ".join(f"word{i}" for i in range(60))
STRANGERS = ("/login", "/join/guessed")
STUDENTS = ("/course/me", "/course/teacher", "/nowhere", "/labs?lab=1")
TEACHERS = ("/course/teacher", "/course/teacher/lab/1", "/course/teacher/marks/1/explain", "/course/teacher/student/{id}", "/course/me")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CourseServer]:
    """A course in which one has done lab 1, one mistake included, and has been marked."""
    with CourseServer(tmp_path_factory.mktemp("course")) as server:
        _work(server)
        yield server


def _work(server: CourseServer) -> None:
    db, one = server.db, lab("1")
    row = members.find(db, "ann")
    mine, bench = DatabaseShelf(db, members.person(row)), Bench(open_store(str(server.folder / "labs.db")))
    usual = {"s": "1 ms", "1": "3"}
    change(mine, one, lambda w: seal(answer(w, one, {t.id: t.choices[0] if t.choices else usual.get(t.unit, "4 KiB")
                                                     for t in one.predictions}), one))
    units = {t.id: {"s": "s", "B/s": "B/s", "B": "B"}.get(t.unit, "") for t in one.tasks}
    right = right_values(one, draw(one, "ann"), bench)
    given = {k: v if isinstance(v, str) else f"{v:.9g} {units[k]}".strip() for k, v in right.items()}
    given |= {t.id: WORDS for t in one.tasks if t.kind == "text"}
    work = change(mine, one, lambda w: answer(w, one, given | {"startup": "1 s"}))
    after, grading = check(work, one, bench)
    mine.keep_check(mine.ask(mine.save(after)), grading)
    marks.release(db, "1", True)
    settings.reveal(db, "1", "p-startup", True)


def paths(server: CourseServer) -> dict[str, list[str]]:
    """Who -> the addresses to look at; "" is a stranger with a link that has not been used."""
    ann = members.find(server.db, "ann")["id"]
    return {"": [*STRANGERS, f"/join/{members.link_for(server.db, ann)}"], "ann": list(STUDENTS),
            "lecturer": [p.format(id=ann) for p in TEACHERS]}


@pytest.mark.parametrize("who", ["", "ann", "lecturer"])
def test_no_page_of_a_course_breaks_wcag_or_asks_others(who: str, browser: Any, served: CourseServer) -> None:
    wrong: list[str] = []
    with watched(browser, base_url=served.url) as (page, foreign, errors):
        if who:
            page.goto(f"/join/{members.link_for(served.db, members.find(served.db, who)['id'])}")
            page.get_by_role("button", name="Start").click()
            page.wait_for_url(lambda url: "/join/" not in url)
        for path in paths(served)[who]:
            page.goto(path)
            page.wait_for_load_state("networkidle")
            for look in LOOKS:
                dressed(page, look)
                wrong += [f"{path} {look}: {fault}" for fault in (*faults(page), *wide(page))]
    assert wrong == []
    assert foreign == []
    assert errors == []
