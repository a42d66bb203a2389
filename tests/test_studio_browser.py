"""The studio in a real browser: what a teacher and a student do with it, on a phone and on a projector, by hand and by keyboard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import SIZES, Seen, Server, browser, session, settled, studio, walk

from retrompi.studio.page import pages

__all__ = ["browser", "studio"]  # fixtures

PATHS = [p.path for p in pages()]


@pytest.fixture(scope="module")
def reader(browser: Any, studio: Server) -> Iterator[tuple[Any, Seen]]:
    """One visitor who reads every page: what a browser keeps of the first it need not ask for again."""
    with session(browser, studio, "phone") as (page, seen):
        yield page, seen


@pytest.fixture(params=PATHS)
def opened(request: pytest.FixtureRequest, reader: tuple[Any, Seen]) -> Any:
    """A page that has been drawn at a phone's width, without an error on the console."""
    page, seen = reader
    seen.errors.clear()
    page.set_viewport_size(dict(zip(("width", "height"), SIZES["phone"], strict=True)))
    page.emulate_media(color_scheme="light")
    page.goto(request.param)
    settled(page)
    yield page
    assert seen.errors == [], "the page complains on the console"
    assert seen.foreign == [], "the page asks another host for something"


class TestEveryPage:
    """A new page is tested without a line of code here."""

    def test_fits_every_screen_and_is_told_from_what_is_behind_it(self, opened: Any) -> None:
        for size, (width, height) in SIZES.items():
            opened.set_viewport_size({"width": width, "height": height})
            assert opened.evaluate("looked.overflow()") == [], f"it is wider than a {size}"
        for scheme in ("light", "dark"):
            opened.emulate_media(color_scheme=scheme)
            assert opened.evaluate("looked.contrast()") == [], f"too little contrast in the {scheme}"

    def test_is_reached_and_used_by_keyboard(self, opened: Any) -> None:
        wanted = opened.evaluate("looked.controls()")
        seen = walk(opened)
        assert len(seen) > 5
        assert seen[0]["name"] == "Skip to the page"
        assert [e["what"] for e in seen if not e["name"]] == [], "controls without a name"
        assert [e["what"] for e in seen if not e["ring"]] == [], "controls on which one does not see the focus"
        assert [w for w in wanted if w not in {e["what"] for e in seen}] == [], "controls that TAB does not reach"

    def test_has_one_heading_a_title_and_landmarks(self, opened: Any) -> None:
        assert opened.locator("h1").count() == 1
        assert "retrompi" in opened.title()
        assert opened.locator("h1").inner_text() in opened.title() or opened.url.count("/") == 3 and opened.url.endswith("/")
        for landmark in ("header", "nav", "main"):
            assert opened.locator(f"#studio {landmark}").count() == 1
        levels = opened.evaluate("[...document.querySelectorAll('main :is(h1,h2,h3,h4)')].map((h) => +h.tagName[1])")
        assert all(b <= a + 1 for a, b in zip(levels, levels[1:], strict=False)), f"a level of headings is left out: {levels}"
        unlabelled = opened.evaluate(
            "[...document.querySelectorAll('main :is(input, select, textarea, [role=combobox], [role=slider])')].filter((e) =>"
            " e.type !== 'hidden' && e.ariaHidden !== 'true' && e.checkVisibility() && !e.labels?.length && !e.ariaLabel"
            " && !e.getAttribute('aria-labelledby')).map((e) => e.outerHTML.slice(0, 200))"
        )
        assert unlabelled == []
        for label in opened.locator(".field > label[for]").all():
            words, target = label.inner_text(), label.get_attribute("for")
            assert opened.get_by_label(words, exact=False).count(), f"nothing is called '{words}' ({target})"
