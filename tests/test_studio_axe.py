"""Every page of the studio and every kind of report is usable without seeing it: no violation of WCAG 2.2 AA that axe-core finds, light and
dark, on a phone and on a desk; each figure has a name, and a table of its numbers; Tab reaches every control."""

from __future__ import annotations

from typing import Any

import pytest
from axe import violations
from browser import Server, browser, session, settled, studio, until, walk  # noqa: F401  (fixtures)
from cases import sampled

PAGES = ("/", "/curves", "/whatif?model=nemesis", "/anatomy?view=two", "/replay", "/scorecard", "/models", "/platforms", "/studies",
         "/labs", "/labs?lab=1&student=ann&step=2", "/labs?lab=9&student=ann", "/nowhere")


@pytest.mark.parametrize(("path", "theme"), sampled([(p, t) for p in PAGES for t in ("light", "dark")], 13))
def test_no_page_breaks_wcag(path: str, theme: str, browser: Any, studio: Server) -> None:  # noqa: F811
    size = "phone" if theme == "light" else "tablet"
    with session(browser, studio, size, color_scheme=theme, bypass_csp=True) as (page, seen):
        page.goto(path)
        settled(page)
        assert violations(page) == []
        seen.errors.clear()  # axe's own reading of style sheets


@pytest.mark.parametrize("path", ["/curves", "/whatif", "/replay", "/anatomy"])
def test_a_figure_has_a_name_and_a_table(path: str, browser: Any, studio: Server) -> None:  # noqa: F811
    with session(browser, studio) as (page, _seen):
        page.goto(path)
        settled(page)
        named = page.evaluate("() => [...document.querySelectorAll('#main [role=figure]')].map((e) => e.getAttribute('aria-label') || '')")
        assert named
        assert all(len(name) > 10 for name in named)
        until(page, "document.querySelectorAll('#main table td').length > 10")


def test_the_switches_work_by_key_and_are_remembered(browser: Any, studio: Server) -> None:  # noqa: F811
    with session(browser, studio, color_scheme="light") as (page, _seen):
        page.goto("/curves")
        settled(page)
        light = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        page.keyboard.press("d")
        dark = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        assert dark != light
        page.reload()
        settled(page)
        assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == dark
        assert page.get_attribute("#studio-theme", "aria-pressed") == "true"
        before = page.evaluate("() => parseFloat(getComputedStyle(document.documentElement).fontSize)")
        with page.expect_navigation():  # the figures are drawn again for larger letters
            page.keyboard.press("p")
        until(page, "document.documentElement.dataset.projector === '1'")
        settled(page)
        assert page.evaluate("() => parseFloat(getComputedStyle(document.documentElement).fontSize)") > before
        assert not page.is_visible(".upload-row")


def test_a_link_of_a_runtime_means_its_own_platform(browser: Any, studio: Server) -> None:  # noqa: F811
    with session(browser, studio) as (page, _seen):
        page.goto("/whatif?model=nemesis")
        settled(page)
        until(page, "location.search.includes('platform=abe')")
        assert not page.is_visible("#whatif-own")
        page.goto("/whatif?model=nemesis&platform=nt-pair")
        settled(page)
        assert page.is_visible("#whatif-own")
        assert "calibrated on another platform, Abe" in page.inner_text("#whatif-apart")
        page.click("#whatif-own")
        until(page, "location.search.includes('platform=abe')")


def test_the_first_answer_has_the_figure(browser: Any, studio: Server) -> None:  # noqa: F811
    """Before any script of Dash or Plotly has come, the figure can be seen."""
    with session(browser, studio, "phone") as (page, _seen):
        page.route("**/_dash-component-suites/**", lambda route: route.abort())
        for path in ("/whatif", "/curves"):
            page.goto(path, wait_until="commit")
            until(page, "document.querySelectorAll('#first-sketch svg .curve').length >= 1")
            box = page.locator("#first-sketch svg").first.bounding_box()
            assert box is not None
            assert box["y"] + box["height"] <= 844


def test_a_message_plays_before_the_page_has_come_and_goes_on_in_it(browser: Any, studio: Server) -> None:  # noqa: F811
    with session(browser, studio, "phone") as (page, seen):
        page.route("**/_dash-component-suites/**", lambda route: route.abort())
        for path, scenes in (("/anatomy", 1), ("/anatomy?view=two", 2)):
            page.goto(path, wait_until="commit")
            until(page, f"document.querySelectorAll('#first-player svg.scene .place').length === 3 * {scenes}")
            box = page.locator("#first-player svg.scene").first.bounding_box()
            assert box is not None
            assert box["y"] + box["height"] <= 844
            page.click("#anatomy-next")
            until(page, "document.getElementById('anatomy-clock').innerText.startsWith('64.2 µs')")
        seen.errors.clear()  # of what was held back
        page.unroute_all()
        held: list[Any] = []
        page.route("**/_dash-component-suites/**", lambda route: held.append(route))
        page.goto("/anatomy", wait_until="commit")
        until(page, "document.querySelectorAll('#first-player svg.scene').length > 0")
        page.click("#anatomy-next")
        page.evaluate("() => { window.before = document.querySelector('svg.scene'); }")
        for route in held:
            route.continue_()
        page.unroute_all()
        settled(page)
        until(page, "document.querySelectorAll('#anatomy-hops-a tbody tr').length > 2")
        assert page.evaluate("() => window.before === document.querySelector('#main #anatomy-player svg.scene')"), "the same, not another"
        assert page.inner_text("#anatomy-clock").startswith("64.2 µs")
        assert page.locator("#anatomy-play").count() == 1
        page.fill("#anatomy-size", "1 KiB")
        page.keyboard.press("Enter")
        until(page, "!document.body.contains(window.before)")
        assert seen.errors == []
