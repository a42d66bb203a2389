"""Wrong entries are told beside their controls, the platform follows the runtime, and both are undone as easily."""

from __future__ import annotations

from typing import Any

import pytest
from axe import violations
from browser import Server, browser, session, settled, studio, until
from refusals import refused

from retrompi.labs.lab import lab
from retrompi.labs.shelf import FolderShelf
from retrompi.labs.work import answer as answered
from retrompi.labs.work import change, seal
from retrompi.spec import registry
from retrompi.studio.components import menus
from retrompi.studio.labs import lab_text
from retrompi.studio.pages import anatomy, replay
from retrompi.studio.requests import wrong_entries
from retrompi.studio.requests.state import Query

__all__ = ["browser", "studio"]  # fixtures


def told(page: Any, control: str) -> str:
    """What is told beside a control, once anything is: it is marked as wrong, described by that line, and an alert."""
    at = f"document.getElementById('{control}')"
    used = f"({at}.matches('input, [role=combobox], button') ? {at} : {at}.querySelector('input, [role=combobox], button'))"
    until(page, f"{used}.getAttribute('aria-invalid') === 'true'")
    found: dict[str, str] = page.evaluate(
        f"() => {{ const used = {used}; const ids = used.getAttribute('aria-describedby').split(' ');"
        " const lines = ids.map((id) => document.getElementById(id)).filter((e) => e && e.getAttribute('role') === 'alert');"
        " const a = used.getBoundingClientRect(), b = lines[0].getBoundingClientRect();"
        " return { text: lines[0].innerText, apart: String(Math.round(b.top - a.bottom)) }; }"
    )
    assert 0 <= int(found["apart"]) < 140, "it is told below the control, and near it"
    return found["text"]


def right(page: Any) -> None:
    """Waits until nothing is marked as wrong any more."""
    until(page, "!document.querySelector('.wrong, [aria-invalid=true]') && looked.settled()")


def enter(page: Any, control: str, value: str) -> None:
    box = page.locator(f"#{control}")
    (box if box.evaluate("e => e.tagName") == "INPUT" else box.locator("input")).fill(value)
    page.keyboard.press("Enter")


@pytest.mark.parametrize(
    ("path", "control", "wrong", "expected", "good"),
    [
        ("/anatomy", "anatomy-size", "twelve", "twelve", "1 KiB"),
        ("/anatomy", "anatomy-set", "pakcet=1KiB", "did you mean 'packet'", "packet=1KiB"),
        ("/anatomy?view=two", "anatomy-b-size", "1 GiB", "longer than the longest", "1 KiB"),
        ("/anatomy", "anatomy-set", "udp_timeout=1s", "path between machines", ""),
        ("/replay", "replay-size", "1,2", "one size", "1 KiB"),
        ("/replay", "replay-set", "wmpi.packet=5ms", "packet", ""),
        ("/curves", "curves-sizes", "1 parsec", "parsec", "1KiB,2KiB"),
    ],
)
def test_a_wrong_entry_is_told_beside_its_field_until_it_is_right(
    path: str, control: str, wrong: str, expected: str, good: str, browser: Any, studio: Server
) -> None:
    with session(browser, studio) as (page, seen):
        page.goto(path)
        until(page, "document.querySelector('#main > [id^=page-]')")
        settled(page)
        page.evaluate("() => document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        enter(page, control, wrong)
        assert expected in told(page, control)
        assert page.inner_text("#studio-notice") == ""
        enter(page, control, good)
        right(page)
        assert seen.errors == []


def test_a_link_s_wrong_key_is_told_at_the_form_of_a_study(browser: Any, studio: Server) -> None:
    with session(browser, studio) as (page, seen):
        page.goto("/studies?key=wmpi.pakcet&values=1KiB")
        until(page, "document.getElementById('studies-key')")
        assert "did you mean 'wmpi.packet'" in told(page, "studies-key")
        enter(page, "studies-key", "wmpi.packet")
        right(page)
        assert seen.errors == []


def test_a_field_s_line_is_short_and_names_the_nearest() -> None:
    with refused(wrong_entries.WrongEntries, "bad-value | did you mean 'wmpi.packet'?") as caught, wrong_entries.beside_control("set"):
        registry.resolve("wmpi", "nt-pair", ["wmpi.pakcet=1KiB"])
    assert len(str(caught.value)) < 100
    with refused(wrong_entries.WrongEntries, "bad-value | wmpi.zzzzzzzzz") as caught, wrong_entries.beside_control("set"):
        registry.resolve("wmpi", "nt-pair", ["wmpi.zzzzzzzzz=1KiB"])
    assert len(str(caught.value)) <= 280


def test_what_a_run_finds_wrong_is_told_where_it_stands() -> None:
    fields = {"size": "1 KiB", "set": "wmpi.udp_timeout=1s, packet=2", "share": "half"}
    assert set(wrong_entries.blame_values("wmpi.udp_timeout belongs to the path between machines", fields)) == {"set"}
    assert set(wrong_entries.blame_values("'half' is no share, as 0.3 or 30 %", fields)) == {"share"}
    assert wrong_entries.blame_values("the store is locked", fields) == {}


def test_a_what_if_s_wrong_value_is_told_at_its_slider(browser: Any, studio: Server) -> None:
    with session(browser, studio) as (page, seen):
        page.goto("/whatif")
        until(page, "document.querySelector('#main > [id^=page-]')")
        settled(page)
        slot = page.locator("[data-name='wmpi.packet']")
        slot.locator(".typed input").fill("5 ms")
        page.keyboard.press("Enter")
        until(page, "document.querySelector(\"[data-name='wmpi.packet'] .wrong\")")
        assert "B" in slot.locator(".wrong").inner_text()
        assert slot.locator(".typed input").get_attribute("aria-invalid") == "true"
        slot.locator(".typed input").fill("16 KiB")
        page.keyboard.press("Enter")
        right(page)
        assert seen.errors == []


def answer(task: str) -> str:
    return wrong_entries.element({"type": "labs-answer", "task": task})


def test_a_lab_s_wrong_answer_is_told_at_its_field(browser: Any, studio: Server) -> None:
    with session(browser, studio, bypass_csp=True) as (page, seen):
        page.goto("/labs?lab=1&student=Wrong&step=2")
        settled(page)
        field = page.locator("#labs-task-p-startup input[type=text]")
        field.fill("5")
        assert "unit" in told(page, answer("p-startup"))
        until(page, "document.querySelector('#labs-task-p-startup .lab-tools').innerText.includes('saved')")
        field.fill("6")
        until(page, "document.querySelector('#labs-task-p-startup .wrong')?.innerText.includes('6')")
        assert violations(page) == []
        page.reload()
        settled(page)
        assert "'6'" in told(page, answer("p-startup")), "told as long as it stands there"
        page.get_by_role("button", name="Seal my predictions").click()
        assert "no prediction yet" in told(page, answer("p-half"))
        assert "'6'" in told(page, answer("p-startup"))
        until(page, "document.querySelector('#labs-task-p-better [role=radiogroup][aria-invalid=true][aria-describedby]')")
        assert page.locator("[role=radiogroup] [aria-invalid], [role=radiogroup] [role=radiogroup]").count() == 0
        assert violations(page) == []
        field.fill("6 ms")
        page.locator("#labs-task-p-half input[type=text]").fill("4 KiB")
        until(page, "!document.querySelector('#labs-task-p-startup .wrong, #labs-task-p-half .wrong, #labs-task-p-half [aria-invalid]')")
        seen.errors.clear()  # axe's own reading of style sheets


def test_a_lab_s_order_is_told_at_the_place_that_is_missing(browser: Any, studio: Server) -> None:
    three = lab("3")
    order = next(t for t in three.tasks if t.kind == "order")
    guesses = {t.id: t.choices[0] if t.choices else f"3 {'' if t.unit == '1' else t.unit}" for t in three.predictions}
    mine = FolderShelf(studio.folder / "data" / "retrompi" / "lab-work", "Wrong")
    work = change(mine, three, lambda w: seal(answered(w, three, guesses), three))
    step = 1 + next(i for i, s in enumerate(lab_text.steps(three, work)) if order in s.tasks)
    with session(browser, studio) as (page, seen):
        page.goto(f"/labs?lab=3&student=Wrong&step={step}")
        settled(page)
        place = page.locator(f"#labs-task-{order.id} .lab-order button, #labs-task-{order.id} .lab-order [role=combobox]").first
        place.click()
        page.get_by_role("option").first.click()
        assert f"1 of {len(order.choices)}" in told(page, wrong_entries.element({"type": "labs-place", "task": order.id, "place": "01"}))
        assert seen.errors == []


@pytest.mark.parametrize("path", ["/anatomy", "/replay"])
def test_the_platform_follows_the_runtime(path: str, browser: Any, studio: Server) -> None:
    name = path.strip("/")
    with session(browser, studio) as (page, seen):
        page.goto(f"{path}?model=nemesis")
        until(page, "location.search.includes('platform=abe')")
        settled(page)
        assert not page.is_visible(f"#{name}-own")
        page.goto(f"{path}?model=nemesis&platform=nt-pair")
        settled(page)
        assert "Abe" in page.inner_text(f"#{name}-apart")
        page.click(f"#{name}-own")
        until(page, "location.search.includes('platform=abe')")
        until(page, f"!document.getElementById('{name}-own').checkVisibility() && looked.settled()")
        assert seen.errors == []


def test_a_platform_stays_while_the_runtime_s_machines_are_the_same() -> None:
    assert menus.following("winmpich", "nt-cluster", "wmpi") == "nt-cluster"
    assert menus.following("nemesis", "nt-cluster", "wmpi") == "abe"
    assert menus.following("nemesis", "abe-windows", "wmpi") == "abe"  # Nemesis for Unix
    assert menus.following("nemesis:windows", "abe-windows", "wmpi") == "abe-windows"
    both = menus.with_platforms(Query("?model=nemesis&b-model=wmpi"), anatomy.PAGE.controls, "b-")
    assert (both["platform"], both.get("b-platform")) == ("abe", None), "the page's own platform is right already"


def test_all_that_is_wrong_is_told_together() -> None:
    given = {c.id: c.default for c in replay.PAGE.controls} | {"replay-size": "twelve", "replay-ranks": 1000}
    with refused(wrong_entries.WrongEntries, "bad-value | twelve | 1000") as caught:
        wrong_entries.check_controls(replay.PAGE.controls, given)
    assert isinstance(caught.value, wrong_entries.WrongEntries)
    assert set(caught.value.lines) == {"replay-size", "replay-ranks"}


def test_a_component_s_element_is_named_as_dash_names_it() -> None:
    assert wrong_entries.element({"type": "whatif-text", "name": "wmpi.packet"}) == '{"name":"wmpi.packet","type":"whatif-text"}'
