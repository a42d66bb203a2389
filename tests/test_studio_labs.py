"""Labs in the studio: a student on a phone finishes lab 1 without a shell; nothing shows before its prediction is sealed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from browser import Server, browser, session, settled, studio, until

from retrompi.base import units
from retrompi.labs import lab as _lab
from retrompi.labs import work

__all__ = ["browser", "studio"]  # fixtures

ONE = _lab.lab("1")


class Phone:
    """A student's hands and eyes: what they see is the page's text."""

    def __init__(self, page: Any) -> None:
        self.page = page

    def open(self, lab: str, student: str) -> None:
        self.page.goto(f"/labs?lab={lab}&student={student}")
        settled(self.page)

    @property
    def text(self) -> str:
        return str(self.page.locator("#labs-view").inner_text())

    def step(self, number: int) -> None:
        """Goes to a step by the list of steps."""
        if not self.page.locator(".lab-way").evaluate("e => e.open"):
            self.page.locator(".lab-way summary").click()
        self.page.locator(".lab-steps button").nth(number - 1).click()
        until(self.page, f"document.querySelector('.lab-way summary').textContent.includes(' {number} ')")
        settled(self.page)

    def task(self, name: str) -> Any:
        return self.page.locator(f"#labs-task-{name}")

    def type(self, name: str, answer: str) -> None:
        self.task(name).locator("input[type=text], textarea").fill(answer)

    def choose(self, name: str, choice: str) -> None:
        self.task(name).get_by_label(choice, exact=True).check()

    def seal(self) -> None:
        shut = self.page.locator(".lab-seal").count()
        assert shut == 1
        self.page.get_by_role("button", name="Seal my predictions").click()
        until(self.page, "!document.querySelector('.lab-seal') || document.querySelector('#labs-seal-said').textContent")
        assert self.page.locator(".lab-seal").count() == 0, self.page.locator("#labs-seal-said").inner_text()
        settled(self.page)

    def run(self, form: int, **changed: str) -> dict[str, list[str]]:
        """Runs a form; the rows of its table, by their first cell."""
        place = self.page.locator(".lab-form").nth(form)
        for label, value in changed.items():
            place.get_by_role("textbox", name=label.replace("__", "."), exact=True).fill(value)
        place.get_by_role("button", name="Run").click()
        until(self.page, f"document.querySelectorAll('.lab-form')[{form}].textContent.includes('done in')")
        rows = place.locator("tbody tr").all()
        return {cells[0]: cells for cells in ([c.inner_text() for c in row.locator("td").all()] for row in rows)}

    def check(self) -> dict[str, str]:
        """Checks; the outcome of every task of the step."""
        before = self.page.locator("#labs-summary").inner_text()
        self.page.get_by_role("button", name="Check", exact=True).last.click()
        until(self.page, f"document.querySelector('#labs-summary').textContent !== {before!r}")
        settled(self.page)
        found = self.page.locator(".lab-task").all()
        results = {t.get_attribute("id").removeprefix("labs-task-"): t.locator(".lab-result") for t in found}
        return {task: result.inner_text() for task, result in results.items() if result.count()}


def seconds(shown: str) -> float:
    return units.parse(shown.replace("µs", "us"), "s")


@pytest.fixture(scope="module")
def phone(browser: Any, studio: Server) -> Any:
    with session(browser, studio, "phone", accept_downloads=True, is_mobile=True, has_touch=True) as (page, seen):
        yield Phone(page)
        assert seen.errors == []


def test_a_student_on_a_phone_finishes_lab_1_without_a_shell(phone: Phone, studio: Server) -> None:
    phone.open("1", "Ann")
    assert "PingPong" in phone.text
    phone.step(3)
    assert "175" not in phone.text, "the paper's figures show before the predictions are sealed"
    assert "opens when the predictions" in phone.text
    phone.step(2)
    assert "Stop here" not in phone.text
    phone.type("p-startup", "1 ms")
    phone.type("p-half", "4 KiB")
    phone.choose("p-better", "twice the copy rate")
    phone.seal()
    assert "1 ms" in phone.task("p-startup").inner_text()

    phone.step(3)
    assert phone.page.evaluate("looked.overflow()") == []
    held: list[Any] = []
    phone.page.route("**/plotly*.js*", lambda route: held.append(route))
    curve = phone.run(0)
    assert phone.page.locator(".lab-form figure").count() == 2
    until(phone.page, "document.querySelectorAll('.lab-form figure .sketch svg .curve').length === 2")  # on a slow line Plotly comes late
    until(phone.page, "document.querySelectorAll('.lab-form .js-plotly-plot').length === 0")
    assert held
    for route in held:
        route.continue_()
    until(phone.page, "document.querySelectorAll('.lab-form .js-plotly-plot .trace').length === 2")
    until(phone.page, "document.querySelectorAll('.lab-form .sketch:not(:empty)').length === 0")
    phone.page.unroute_all()
    ask = phone.task("loop").inner_text()
    reps = int(re.search(r"performs (\d+) round trips", ask)[1])  # type: ignore[index]
    probe = re.search(r"a message of ([\d.]+ KiB)", ask)[1]  # type: ignore[index]
    phone.type("startup", curve["0 B"][1].replace("µs", "us"))
    phone.type("loop", f"{2 * reps * seconds(curve[probe][1]):.6g} s")
    phone.type("rate", curve[probe][2].replace("MB/s", "KB"))
    outcome = phone.check()
    assert "✓ right" in outcome["startup"]
    assert "✓ right" in outcome["loop"]
    assert "cannot be read" in outcome["rate"], "an error stands at its field"
    phone.type("rate", curve[probe][2])
    assert "✓ right" in phone.check()["rate"]

    phone.step(4)
    ends = re.search(r"Use the points ([\d.]+ KiB) and ([\d.]+ KiB)", phone.text)
    assert ends
    n1, n2 = (units.parse(e, "B") for e in ends.groups())

    def line(rows: dict[str, list[str]]) -> tuple[float, float]:
        t1, t2 = (seconds(rows[e][1]) for e in ends.groups())
        rate = (n2 - n1) / (t2 - t1)
        return t1 - n1 / rate, rate

    t0, rate = line(curve)
    phone.type("line-rate", f"{rate / 1e6:.6g} MB/s")
    phone.type("half", f"{t0 * rate:.6g} B")
    assert all("✓ right" in said for said in phone.check().values())

    phone.step(5)
    ask = phone.task("aggregate").inner_text()
    many, each = re.search(r"sends (\d+) messages of ([\d.]+ B)", ask).groups()  # type: ignore[union-attr]
    whole = int(many) * units.parse(each, "B")
    phone.type("aggregate", f"{(int(many) * t0 + whole / rate) / (t0 + whole / rate):.5g}")
    form = phone.page.locator(".lab-form").nth(1)
    library = form.get_by_role("textbox", name="wmpi.library", exact=True).input_value()
    copy = form.get_by_role("textbox", name="platform.host.copy_l2", exact=True).input_value()

    def total() -> float:
        found = re.search(r": ([\d.]+ \S+) one way", form.inner_text())
        assert found
        return seconds(found[1])

    def changed(value: str, factor: float) -> str:
        number, unit = re.fullmatch(r"([\d.]+)\s*(\D+)", value).groups()  # type: ignore[union-attr]
        return f"{float(number) * factor:g} {unit}"

    phone.run(1, wmpi__library=changed(library, 0.5))
    half_library = total()
    phone.run(1, wmpi__library=library, platform__host__copy_l2=changed(copy, 2))
    until(phone.page, f"!document.querySelectorAll('.lab-form')[1].textContent.includes('{half_library}')")
    phone.page.wait_for_timeout(1500)
    phone.choose("better", "half the library work" if half_library < total() else "twice the copy rate")
    assert all("✓ right" in said for said in phone.check().values())

    phone.step(6)
    assert phone.page.locator(".lab-form").count() == 0, "the numbers of what is to be predicted"
    phone.type("p-beyond", "2")
    phone.seal()
    far = phone.run(0)
    at = units.parse("512 KiB", "B")
    phone.type("beyond", f"{seconds(far['512 KiB'][1]) / (t0 + at / rate):.5g}")
    assert "✓ right" in phone.check()["beyond"]

    phone.step(7)
    far_t0, far_rate = line(phone.run(0))
    phone.type("net-half", f"{far_t0 * far_rate:.6g} B")
    for name in ("explain", "advice"):
        phone.type(name, work.model_answer(work.begin(ONE, "Ann"), ONE, name))
    outcome = phone.check()
    assert "✓ right" in outcome["net-half"]
    assert "open" in outcome["explain"]

    phone.step(8)
    summary = phone.page.locator("#labs-summary").inner_text()
    of_texts = sum(t.points for t in ONE.tasks if t.kind == "text")
    assert summary.startswith(f"{ONE.points - of_texts:g} of {ONE.points:g} points; {of_texts:g} open until marked; check")
    with phone.page.expect_download() as given:
        phone.page.get_by_role("button", name="Report").click()
    report = given.value.path().read_text(encoding="utf-8")
    assert "Ann" in report
    assert "Predictions" in report
    phone.page.goto("/labs?student=Ann")
    settled(phone.page)
    assert f"{len(ONE.tasks)} of {len(ONE.tasks)} answered" in phone.page.locator("#labs-list").inner_text()
    kept = next((studio.folder / "data" / "retrompi" / "lab-work").glob("lab01-*/answers.toml"))
    assert 'p-startup = "1 ms"' in kept.read_text(), "a folder as the command line has it"
