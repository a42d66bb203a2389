"""A student does the labs on a phone's screen, by a finger or by a keyboard, without a shell: answers every task to its full points, runs
every form, takes every hint and presses every other button. On no step is anything wider than the screen, and no console says an error.

One lab by each here, all twelve by both with --exhaustive; one student a hand, in one session. RETROMPI_PICTURES=FOLDER keeps a picture of
each step once everything on it is done, at 390 and 1280 px, light and dark, to be looked at.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from browser import Seen, Server, browser, session, settled, studio, until
from hands import HANDS, Finger, Keyboard

from retrompi.base import units
from retrompi.labs import answers, start, text
from retrompi.labs import lab as _lab
from retrompi.labs.bench import Bench
from retrompi.labs.student import draw
from retrompi.store import open_store

__all__ = ["browser", "studio"]  # fixtures

WHO = {"keyboard": "Ann", "finger": "Cleo"}
QUICK = (("03-proxy", "finger"), ("12-critical-path", "keyboard"))
"""One has an order of seven dropdowns, the other a trace to edit and a critical path."""
CASES = [
    pytest.param(name, hand, marks=[] if (name, hand) in QUICK else pytest.mark.exhaustive) for hand in HANDS for name in _lab.lab_names()
]
PICTURES = os.environ.get("RETROMPI_PICTURES")
SIZES = {390: 844, 1280: 800}
OTHERS = ("labs-go", "labs-turn", "labs-check", "labs-report", "labs-pack", "labs-place", "labs-open")
"""Types of buttons that are pressed on the way, or more than once."""


class Student:
    """At one lab: ``given`` has the right answers by task, ``files`` what is to be in files that are asked for."""

    def __init__(
        self, hand: Keyboard | Finger, who: str, lab: _lab.Lab, given: Mapping[str, answers.Given], files: Mapping[str, Path]
    ) -> None:
        self.hand, self.page, self.lab, self.given, self.files = hand, hand.page, lab, given, files
        self.view = self.page.locator("#labs-view")
        self.known = text.names(lab, draw(lab, who), who)
        self.full = self.lost = 0.0
        self.finished = False

    def task(self, name: str) -> Any:
        return self.page.locator(f"#labs-task-{name}")

    def button(self, place: Any, name: str) -> Any:
        return place.get_by_role("button", name=name, exact=True)

    def checked(self, button: Any) -> None:
        """Presses a button that checks, and waits for what it says."""
        before = self.page.locator("#labs-summary").inner_text()
        self.hand.act(button)
        until(self.page, f"document.querySelector('#labs-summary').textContent !== {json.dumps(before)}")
        settled(self.page)

    def result(self, name: str) -> tuple[str, float, float]:
        """(what a task's check says, points, of)."""
        said = self.task(name).locator(".lab-result b").inner_text()
        word, points, of = re.fullmatch(r"(.*); ([\d.]+) of ([\d.]+)", said).groups()  # type: ignore[union-attr]
        return word, float(points), float(of)

    def answer(self, task: _lab.Task) -> None:
        place, raw = self.task(task.id), self.given[task.id].raw if task.kind != "file" else None
        if task.kind == "file":
            self.hand_in(place, task.file)
        elif task.kind == "order":
            for dropdown, choice in zip(place.locator("button.dash-dropdown").all(), raw, strict=True):
                self.hand.select(dropdown, task.choice_text(choice))
        elif task.choices:
            self.hand.choose(place, next(c for c in task.choices if answers.normal(c) == answers.normal(str(raw))))
        else:
            self.hand.write(place.locator("input[type=text], textarea").first, str(raw))

    def hand_in(self, place: Any, file: str) -> None:
        """Into its editor, which may stand at the form that reads it; else by the button that uploads it."""
        content = self.files[file]
        editor = self.view.locator("label.lab-file-editor", has_text=file).locator("textarea")
        if editor.count():
            self.hand.write(editor, content.read_text(encoding="utf-8"))
            return
        with self.page.expect_file_chooser() as chosen:
            self.hand.act(place.locator("button", has_text=f"Upload {file}"))
        chosen.value.set_files(content)
        until(self.page, f"document.querySelector('#labs-view').textContent.includes('{file} is there')")

    def run(self, form: Any) -> str:
        """Runs a form, for the first time or to another result; what stands there then."""
        line, shown = form.locator(".lab-tools [role=status]"), form.locator("[id*=labs-run-shown]")
        before = shown.inner_text()
        self.hand.act(self.button(form, "Run"))
        for _ in range(3000):
            if line.inner_text().startswith("done in") and shown.inner_text() != before:
                break
            assert not form.locator(".notice, [role=alert]").count(), form.inner_text()
            self.page.wait_for_timeout(20)
        else:
            raise AssertionError(f"it never ended: {form.inner_text()}")
        return str(form.inner_text())

    def step(self, number: int) -> None:
        """Everything that a step has."""
        if self.page.locator(".lab-seal").count():
            for task in self.shown():
                if task.kind == "prediction":
                    self.answer(task)
            self.hand.act(self.button(self.view, "Seal my predictions"))
            until(self.page, "!document.querySelector('.lab-seal')")
            settled(self.page)
        asked = [t for t in self.shown() if t.kind != "prediction"]
        for task in asked:
            self.answer(task)
        for form in self.view.locator(".lab-form").all():
            self.run(form)
        if asked:
            self.checked(self.button(self.view, "Check").last)
        for task in asked:
            word, points, of = self.result(task.id)
            assert (word, of) == ("○ open, marked by your teacher" if task.kind == "text" else "✓ right", task.points), (task.id, word)
            assert points == (0 if task.kind == "text" else of), (task.id, self.task(task.id).inner_text())
            self.full += points
        taken = {task.id: self.hints(task) for task in asked}
        if asked:
            self.checked(self.button(self.task(asked[0].id), "Check this"))
            self.checked(self.button(self.view, "Check").last)
        for task in asked:
            lost = min(self.lab.hint_cost * taken[task.id], task.points) if task.kind != "text" else 0.0
            assert self.result(task.id)[1] == (0 if task.kind == "text" else task.points - lost), (task.id, "what its hints cost")
            self.lost += lost
        self.pressed(asked)
        if self.button(self.view, "Report").count():
            self.finish()
        assert self.page.evaluate("looked.overflow()") == [], (number, "wider than the screen")
        if PICTURES:
            self.picture(Path(PICTURES), number)

    def picture(self, folder: Path, number: int) -> None:
        """The whole step, as it is now."""
        folder.mkdir(parents=True, exist_ok=True)
        for width, height in SIZES.items():
            self.page.set_viewport_size({"width": width, "height": height})
            for scheme in ("light", "dark"):
                self.page.emulate_media(color_scheme=scheme)
                settled(self.page)
                self.page.wait_for_timeout(600)  # figures are drawn again
                name = f"lab{self.lab.key}-{number:02}-{width}-{scheme}-{self.hand.name}.png"
                self.page.screenshot(path=str(folder / name), full_page=True)
        self.page.set_viewport_size({"width": 390, "height": SIZES[390]})
        self.page.emulate_media(color_scheme="light")

    def hints(self, task: _lab.Task) -> int:
        """Takes every hint of a task; how many there were."""
        place, taken = self.task(task.id), 0
        for hint in task.hints:
            self.hand.act(self.button(place, "Hint …"))
            place.get_by_text("The next hint costs").wait_for()
            assert place.locator(".lab-hint").count() == taken, "a hint shows before it is taken"
            self.hand.act(self.button(place, "Take the hint"))
            taken += 1
            until(self.page, f"document.querySelectorAll('#labs-task-{task.id} .lab-hint').length === {taken}")
            told = " ".join(place.locator(".lab-hint").last.inner_text().split())
            assert told == " ".join(f"{taken}. {text.fill(hint, self.known)}".split())
        if task.hints:
            self.hand.act(self.button(place, "Hint …"))
            place.get_by_text("There is no further hint.").wait_for()
        return taken

    def finish(self) -> None:
        """The step where the work is handed in: everything is checked again, and two files are taken along."""
        open_ = sum(t.points for t in self.lab.tasks if t.kind == "text")
        sealed = sum(t.points for t in self.lab.predictions)
        assert self.full + sealed + open_ == pytest.approx(self.lab.points), "every point that a check can give"
        assert self.lost > 0
        self.checked(self.button(self.view, "Check everything"))
        told = self.page.locator("#labs-summary").inner_text()
        assert told.startswith(f"{self.lab.points - open_ - self.lost:g} of {self.lab.points:g} points"), told
        for button, suffix in (("Report", ".html"), ("My folder as a zip", ".zip")):
            with self.page.expect_download() as given:
                self.hand.act(self.button(self.view, button))
            assert given.value.suggested_filename.endswith(suffix)
        self.finished = True

    def kept(self, ran: int) -> None:
        """The results of the steps before stand in "My results", and one of them opens."""
        kept = self.view.locator(".lab-found > li")
        assert kept.count() == ran
        if not ran:
            return
        self.hand.act(self.view.locator(".lab-mine > summary", has_text="My results"))
        self.hand.act(kept.first.locator("button").first)
        until(self.page, "document.querySelector('.lab-found [id*=labs-opened]').childElementCount > 0")
        self.hand.act(kept.first.locator("button").first)
        until(self.page, "document.querySelector('.lab-found [id*=labs-opened]').childElementCount === 0")

    def pressed(self, asked: list[_lab.Task]) -> None:
        """No button of the step is of a kind that this test does not press."""
        known = {*OTHERS, "labs-run", *(["labs-hint"] if any(t.hints for t in asked) else [])}
        named = self.view.locator("button[id]").evaluate_all("found => found.map((e) => e.id)")
        assert {json.loads(i)["type"] for i in named} <= known

    def shown(self) -> list[_lab.Task]:
        names = self.view.locator(".lab-task").evaluate_all("found => found.map((e) => e.id.replace('labs-task-', ''))")
        return [self.lab.task(name) for name in names]

    def title(self) -> str:
        return str(self.page.locator("#labs-step-title").inner_text())

    def onward(self, name: str = "Next step") -> bool:
        """Turns the page; whether there is one."""
        button = self.button(self.view, name)
        if not button.count():
            return False
        before = self.title()
        self.hand.act(button)
        until(self.page, f"document.querySelector('#labs-step-title').innerText !== {json.dumps(before)}")
        until(self.page, "document.activeElement.id === 'labs-step-title'")
        return True


@pytest.fixture(scope="module")
def solved(studio: Server, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Of a lab and a student, the reference's answers and files."""

    def of(lab: _lab.Lab, who: str) -> tuple[dict[str, answers.Given], dict[str, Path]]:
        folder = tmp_path_factory.mktemp("solved") / "lab"
        start.start(lab, who, folder)
        start.solve(lab, folder, draw(lab, who), Bench(open_store(studio.store), folder), who)
        return answers.read(folder, lab), {f.name: f for f in folder.iterdir()}

    return of


@pytest.fixture(scope="module")
def visits(browser: Any, studio: Server) -> Iterator[Any]:
    """By the name of a hand, its session on a phone's screen: (the hand, what the browser complained about)."""
    with contextlib.ExitStack() as open_:

        @functools.cache
        def of(name: str) -> tuple[Keyboard | Finger, Seen]:
            page, seen = open_.enter_context(session(browser, studio, "phone", accept_downloads=True, is_mobile=name == "finger",
                                                     has_touch=name == "finger"))
            return HANDS[name](page), seen

        yield of


@pytest.mark.parametrize(("name", "hand"), CASES)
def test_a_lab_is_done_to_full_points_on_a_phone_and_every_hint_is_taken(name: str, hand: str, visits: Any, solved: Any) -> None:
    hands, seen = visits(hand)
    page, lab, who = hands.page, _lab.lab(name), WHO[hand]
    page.goto(f"/labs?lab={lab.key}&student={who}")
    settled(page)
    me = Student(hands, who, lab, *solved(lab, who))
    first = me.title()
    me.step(1)
    assert me.onward()
    assert me.onward("Back")
    assert me.title() == first
    ran, number = me.view.locator(".lab-form").count(), 1
    while me.onward():
        number += 1
        me.kept(ran)
        forms = me.view.locator(".lab-form")
        me.step(number)
        ran += forms.count()
    assert me.finished
    assert seen.errors == []


def test_a_trace_is_edited_and_its_gain_read_off_the_page(visits: Any) -> None:
    """Lab 12: a student finds `gain` and whose computation is on the new path with what the page has."""
    hands, seen = visits("finger")
    page, lab = hands.page, _lab.lab("12")
    p = draw(lab, "Bob")
    page.goto("/labs?lab=12&student=Bob")
    settled(page)
    me = Student(hands, "Bob", lab, {t.id: answers.Given(v := t.choices[0] if t.choices else f"3 {t.unit}".removesuffix(" 1"), v)
                                     for t in lab.predictions}, {})
    number = 1
    while not page.locator(".lab-seal").count():
        assert me.onward()
        number += 1
    me.step(number)
    while "law" not in me.title():
        assert me.onward()
    replay, why = me.view.locator(".lab-form").all()[:2]

    def took() -> float:
        return units.parse(re.search(r"completed after ([\d.]+ \w+)", me.run(replay))[1], "s")  # type: ignore[index]

    before = took()
    editor = replay.locator("textarea")
    mine = int(re.search(r"^0 compute (\d+)", editor.input_value(), re.MULTILINE)[1])  # type: ignore[index]
    me.hand.write(editor, editor.input_value().replace(f"0 compute {mine}\n", f"0 compute {mine / p['factor']:.0f}\n"))
    me.hand.write(me.task("gain").locator("input"), f"{before / took():.5g}")
    table = me.run(why)
    assert "rank 1" in table.partition("Whose it is")[2].partition("Beside the path")[0]
    me.hand.choose(me.task("new-path"), "rank 1")
    me.checked(me.button(me.view, "Check").last)
    assert [me.result(name)[0] for name in ("gain", "new-path")] == ["✓ right", "✓ right"]
    assert seen.errors == []
