"""A class server as browsers see it: forms that are posted by a real one, which sends headers that no test client does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import WAIT_MS, Server, browser, until

from retrompi.classroom.course import members, settings
from retrompi.classroom.course.class_list import Entry
from retrompi.classroom.course.database import Database
from retrompi.classroom.grades import records
from retrompi.classroom.works.shelf import DatabaseShelf
from retrompi.labs.lab import lab
from retrompi.labs.work import answer, change, seal

__all__ = ["browser"]  # a fixture


class CourseServer(Server):
    """``retrompi course serve`` in the same way; ``db`` is the course's database."""

    command = ("course", "serve", "--as-root", "--host", "127.0.0.1")

    def __init__(self, folder: Path, *more: Entry) -> None:
        self.db = Database.open(folder / "course.db", new=True)
        settings.new(self.db, "MPI", ["1"], [Entry("lecturer", "Lea Lecturer", "teacher"), Entry("ann", "Ann Bee"), *more])
        super().__init__(folder)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[CourseServer]:
    with CourseServer(tmp_path) as server:
        yield server


def come(browser: Any, served: CourseServer, student: str) -> Any:
    """A page of a browser that came in by a link."""
    page = browser.new_context(base_url=served.url).new_page()
    page.set_default_timeout(WAIT_MS)
    page.goto(f"/join/{members.link_for(served.db, members.find(served.db, student)['id'])}")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url(lambda url: "/join/" not in url)
    return page


def test_a_link_lets_a_browser_in_and_the_teacher_sees_who_came(browser: Any, served: CourseServer) -> None:
    student = come(browser, served, "ann")
    student.goto("/labs")
    until(student, "document.querySelectorAll('#labs-list > li').length === 1")  # the course has one lab
    student.goto("/labs?lab=1")
    until(student, "document.querySelector('#labs-who')?.innerText.includes('The numbers of ann')")
    teacher = come(browser, served, "lecturer")
    teacher.goto("/course/teacher")
    assert "Ann Bee" in teacher.inner_text("main")
    student.goto("/course/teacher")
    assert "Ann Bee" not in student.inner_text("body") or "Lea Lecturer" not in student.inner_text("body")


def test_a_check_whose_page_is_closed_reaches_the_teacher_and_the_student_s_other_device(browser: Any, served: CourseServer) -> None:
    one = lab("1")
    mine = DatabaseShelf(served.db, members.person(members.find(served.db, "ann")))
    guesses = {t.id: t.choices[0] if t.choices else {"s": "1 ms", "1": "3"}.get(t.unit, "4 KiB") for t in one.predictions}
    change(mine, one, lambda w: seal(answer(w, one, guesses), one))
    phone, desk, teacher = come(browser, served, "ann"), come(browser, served, "ann"), come(browser, served, "lecturer")
    phone.goto("/labs?lab=1&step=8")
    button = phone.get_by_role("button", name="Check everything")
    button.wait_for()
    with phone.expect_response(lambda r: "labs-question" in (r.request.post_data or "") and '"count":1' in (r.request.post_data or "")):
        button.click()  # the check is asked for: another than the answer to that is never seen here
    phone.context.close()
    desk.goto("/labs?lab=1")  # while it is graded, or after: the page shows it without being asked again
    until(desk, "document.querySelector('#labs-summary')?.textContent.includes('check 2')")
    (row,) = records.standings(served.db).values()
    assert (row.checked is not None, row.results["p-half"], row.results["startup"]) == (True, "sealed", "missing")
    teacher.goto("/course/teacher")
    assert f"{row.points:g}" in teacher.get_by_role("row", name="Ann Bee").inner_text()
